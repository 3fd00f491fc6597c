"""Damaged version 4 manifests are refused with an error of ours, or read; nothing else."""

from __future__ import annotations

import contextlib

from hypothesis import given

from icefloe.codecs.manifest.parquet import decode_parquet_manifest, encode_parquet_manifest
from icefloe.errors import FormatError, UnsupportedError
from support.damage import damaged
from support.manifests.sample import VALUES, column_stats, context, data_file, mixed_partition, table

STATISTICS = {key: value for name, bound in VALUES.items() for key, value in column_stats(name, bound, bound).items()}
ROWS = table([data_file(number, **mixed_partition(), **STATISTICS) for number in range(3)])
GOOD = encode_parquet_manifest(ROWS, context(), content="data")


@given(damaged(GOOD))
def test_a_damaged_manifest_is_refused_or_read(data: bytes) -> None:
    with contextlib.suppress(FormatError, UnsupportedError):
        decode_parquet_manifest(data, context(), where="m0.parquet", content=("data",)).validate(full=True)

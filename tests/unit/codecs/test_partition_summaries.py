"""Partition summaries of manifest lists against brute force over all entries of their manifests.

They were made of live entries alone. Apache Iceberg looks by them for files that a snapshot removed, so it did not see
removals of icefloe: a writer that had read such a file committed its deleted rows again.
"""

from __future__ import annotations

import io
import math
import struct

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.manifest_list import decode_manifest_list, encode_manifest_list
from icefloe.codecs.manifest.manifest_summary import manifest_row
from icefloe.model.entries import ContentType, Status
from support.manifests.random_entries import Row
from support.manifests.sample import context, data_file, mixed_partition, table

Value = str | float | None


def root_row(rows: list[Row], known: ManifestContext) -> pa.Table:
    return manifest_row(
        table(rows),
        known,
        location="file:///m.avro",
        size=99,
        content=ContentType.DATA_MANIFEST,
        status=Status.ADDED,
        snapshot_id=7,
        sequence_number=9,
    )


def listed(row: pa.Table, known: ManifestContext) -> bytes:
    return encode_manifest_list(row, known, snapshot_id=7, parent_id=None, sequence_number=9)


def summaries(data: bytes) -> list[dict[str, object]]:
    (record,) = fastavro.reader(io.BytesIO(data))
    found: list[dict[str, object]] = record["partitions"]  # type: ignore[index, call-overload]
    return found


def order(value: float) -> tuple[float, float]:
    return value, math.copysign(1, value)


def of_texts(values: list[Value]) -> dict[str, object]:
    plain = [str(v).encode() for v in values if v is not None]
    low, high = (min(plain), max(plain)) if len(plain) > 0 else (None, None)
    return {"contains_null": None in values, "contains_nan": False, "lower_bound": low, "upper_bound": high}


def of_numbers(values: list[Value]) -> dict[str, object]:
    told = [float(v) for v in values if v is not None]
    plain = [v for v in told if not math.isnan(v)]
    ends = [None, None] if len(plain) == 0 else [struct.pack("<d", end(plain, key=order)) for end in (min, max)]
    has_nan = len(plain) < len(told)
    return {"contains_null": None in values, "contains_nan": has_nan, "lower_bound": ends[0], "upper_bound": ends[1]}


TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "ü"]))
NUMBERS = st.one_of(st.none(), st.sampled_from([-1.5, -0.0, 0.0, 7.0, math.inf, math.nan]))


@st.composite
def entries(draw: st.DrawFn) -> tuple[str | None, float | None, int, int]:
    """The partition, status and rows of a file; no file without rows has a NaN, which none of its rows could tell."""
    price = draw(NUMBERS)
    rows = draw(st.integers(1 if price is not None and math.isnan(price) else 0, 3))
    return draw(TEXTS), price, draw(st.sampled_from(Status)), rows


@given(st.lists(entries(), min_size=1, max_size=5), st.sampled_from([1, 2, 3]))
def test_a_list_summarizes_the_partitions_of_all_entries_removed_ones_too(
    made: list[tuple[str | None, float | None, int, int]], version: int
) -> None:
    known = context(version)
    rows = [
        data_file(n, status=int(status), record_count=count, **mixed_partition(name, price=price, count=count))
        for n, (name, price, status, count) in enumerate(made)
    ]
    row = root_row(rows, known)
    expected = [of_texts([name for name, *_ in made]), of_numbers([price for _, price, *_ in made])]
    first = listed(row, known)
    name, _, _, price, _ = summaries(first)
    assert [name, price] == expected
    again = listed(decode_manifest_list(first, known, where="here"), known)
    assert summaries(again) == summaries(first), "the next snapshot lists the manifest as it was"
    live = [(name, count) for name, _, status, count in made if status != Status.DELETED]
    assert row["value_count:p1000"].to_pylist() == [sum(count for _, count in live)]
    assert row["null_value_count:p1000"].to_pylist() == [sum(count for name, count in live if name is None)]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_manifest_of_nothing_but_removed_files_is_summarized(version: int) -> None:
    known = context(version)
    rows = [data_file(0, status=2, **mixed_partition(None)), data_file(1, status=2, **mixed_partition(None))]
    name, *_ = summaries(listed(root_row(rows, known), known))
    assert name == {"contains_null": True, "contains_nan": False, "lower_bound": None, "upper_bound": None}


def test_a_root_of_version_4_has_the_statistics_of_live_rows_alone() -> None:
    rows = [data_file(0, status=0, **mixed_partition("b")), data_file(1, status=2, **mixed_partition("a"))]
    row = root_row(rows, context(4))
    assert (row["lower_bound:p1000"].to_pylist(), row["upper_bound:p1000"].to_pylist()) == (["b"], ["b"])
    assert not any(name.startswith("contains") for name in row.column_names)

"""The ends of ORC files, fed mutated: stripes or a typed error, nothing else."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import orc

from fuzz.harness import fuzz
from icefloe.codecs.orc.tail import OrcStripe, read_stripes
from icefloe.errors import CorruptFile

CODECS = ["uncompressed", "zlib", "snappy", "lz4", "zstd"]
ROWS = 20_000
END = 8192  # bytes in which statistics, footer and postscript have room


def written(codec: str) -> bytes:
    """A file of several stripes, whose columns have every kind of statistics."""
    numbers = pa.array(range(ROWS))
    rows = pa.table(
        {
            "i": numbers,
            "f": numbers.cast(pa.float64()),
            "t": numbers.cast(pa.string()),
            "b": pa.array([number % 2 == 0 for number in range(ROWS)]),
            "d": numbers.cast(pa.int32()).cast(pa.date32()),
            "ts": numbers.cast(pa.timestamp("us")),
            "x": numbers.cast(pa.decimal128(20, 0)),
        }
    )
    sink = pa.BufferOutputStream()
    with orc.ORCWriter(sink, compression=codec, stripe_size=16 * 1024, batch_size=1024) as writer:
        for at in range(0, ROWS, 1024):
            writer.write(rows.slice(at, 1024))
    return bytes(sink.getvalue().to_pybytes())


def stripes(data: bytes) -> tuple[OrcStripe, ...]:
    def read(offset: int, length: int) -> bytes:
        if offset < 0 or length < 0 or offset + length > len(data):
            raise CorruptFile("read past the end")
        return data[offset : offset + length]

    return read_stripes(read, len(data))


@pytest.mark.parametrize("codec", CODECS)
def test_damaged_ends_are_read_or_refused(codec: str) -> None:
    whole = written(codec)
    assert len(stripes(whole)) > 1
    # The stripes themselves are not read, so a short file with the same end is as good.
    end = whole[-END:]
    assert stripes(end)[0].columns == stripes(whole)[0].columns
    outcomes = fuzz([end], stripes)
    assert len(outcomes) > 1

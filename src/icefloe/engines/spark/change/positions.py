"""Row positions of a frame as bitmaps per file: Spark's tasks pack them, the driver gets a few bytes per row.

Up to ``WORDS_MAX_ROWS`` planned rows, each task packs 64 positions into one word by a hash aggregate. All words of so
many rows take at most 128 MB. Matches in larger tables are often sparse, and then a word has one position. There the
positions of each range of 32,768 rows become an array of 16-bit numbers, or a bitmap of 4 KB if that is smaller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from icefloe.deletes.bitmaps import bitmap_of
from icefloe.engines.spark.read.read import FILE, POSITION, FileNumbers

WORDS_MAX_ROWS = 500_000_000
_WORD_BITS = 6
_WORD_NUMBER_BITS = 34  # of the key of a word; the bits above it are the number of the file
_RANGE_BITS = 15
_RANGES_AT_ONCE = 1024
_ARRAY_MAX = 2048  # positions; more take less space as a bitmap

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRows:
    """Row positions by file, and whether a row of the frame has the same position as another one."""

    positions: dict[str, BitMap64]
    has_repeated: bool


def positions_of(frame: DataFrame, files: FileNumbers, *, planned_rows: int, chosen: Column | None = None) -> FoundRows:
    """The positions of the rows of a frame, by file: of all rows, or of those for which ``chosen`` is true.

    ``planned_rows`` are the rows of the files that the frame reads.
    """
    is_chosen = F.lit(True) if chosen is None else chosen
    packed = _words(frame, is_chosen) if planned_rows <= WORDS_MAX_ROWS else _ranges(frame, is_chosen)
    positions: dict[str, BitMap64] = {}
    has_repeated = False
    for number, found, is_repeated in packed:
        has_repeated = has_repeated or is_repeated
        if len(found) == 0:
            continue
        location = files.location(number)
        if location in positions:
            positions[location] |= found
        else:
            positions[location] = found
    return FoundRows(positions=positions, has_repeated=has_repeated)


def _words(frame: DataFrame, is_chosen: Column) -> Iterator[tuple[int, BitMap64, bool]]:
    """The chosen positions of each file, from words of 64 bits, and whether one occurs twice, chosen or not."""
    key = F.shiftleft(F.col(FILE), _WORD_NUMBER_BITS) + F.shiftright(F.col(POSITION), _WORD_BITS)
    bit = F.expr(f"shiftleft(1L, cast({POSITION} & {2**_WORD_BITS - 1} as int))")
    packed = frame.groupBy(key.alias("key")).agg(
        F.bit_or(F.when(is_chosen, bit).otherwise(0)).alias("bits"),
        (F.count("*") > F.bit_count(F.bit_or(bit))).alias("repeated"),
    )
    words = packed.toArrow()
    keys, order = _sorted(words["key"])
    bits, repeated = (np.asarray(words[name])[order] for name in ("bits", "repeated"))
    files = keys >> _WORD_NUMBER_BITS
    for number, part in _groups(files):
        starts = (keys[part] & (2**_WORD_NUMBER_BITS - 1)) << _WORD_BITS
        yield number, _unpacked(starts, bits[part]), bool(repeated[part].any())


def _unpacked(starts: _Numbers, words: _Numbers) -> BitMap64:
    """The positions of words, whose lowest bits are the positions ``starts``; some words at a time."""
    found = BitMap64()
    for first in range(0, len(words), 1 << 16):
        part = slice(first, first + (1 << 16))
        bits = np.unpackbits(words[part].astype("<i8").view(np.uint8), bitorder="little").reshape(-1, 64)
        rows, columns = np.nonzero(bits)
        found |= bitmap_of(starts[part][rows] + columns)
    return found


def _ranges(frame: DataFrame, is_chosen: Column) -> Iterator[tuple[int, BitMap64, bool]]:
    """The chosen positions in ranges of rows of each file, and whether one occurs twice, chosen or not."""
    number = F.shiftright(F.col(POSITION), _RANGE_BITS)
    inside = F.col(POSITION).bitwiseAND(2**_RANGE_BITS - 1)
    found = frame.groupBy(F.col(FILE).alias("file"), number.alias("range")).agg(
        (F.count("*") > F.bitmap_count(F.bitmap_construct_agg(inside))).alias("repeated"),
        F.collect_list(F.when(is_chosen, inside.cast("smallint"))).alias("array"),
        F.bitmap_construct_agg(F.when(is_chosen, inside)).alias("bitmap"),
    )
    is_sparse = F.size("array") <= _ARRAY_MAX
    packed = found.select(
        "file",
        "range",
        "repeated",
        F.when(is_sparse, F.col("array")).alias("array"),
        F.when(~is_sparse, F.col("bitmap")).alias("bitmap"),
    ).toArrow()
    for batch in packed.to_batches(max_chunksize=_RANGES_AT_ONCE):
        yield from _of_ranges(batch)


def _of_ranges(ranges: pa.RecordBatch) -> Iterator[tuple[int, BitMap64, bool]]:
    files, starts = np.asarray(ranges["file"]), np.asarray(ranges["range"]) << _RANGE_BITS
    bitmaps = ranges["bitmap"].drop_null()
    with_bitmap = np.flatnonzero(ranges["bitmap"].is_valid())
    rows, bits = np.nonzero(
        np.unpackbits(_bytes(bitmaps).reshape(len(bitmaps), 2**_RANGE_BITS // 8), axis=1, bitorder="little")
    )
    parents = np.concatenate([np.asarray(pc.list_parent_indices(ranges["array"])), with_bitmap[rows]])
    inside = np.concatenate([np.asarray(pc.list_flatten(ranges["array"])).astype(np.int64), bits])
    repeated = np.asarray(ranges["repeated"])
    order = np.argsort(files[parents], kind="stable")
    parents, inside = parents[order], inside[order]
    for number, part in _groups(files[parents]):
        yield number, bitmap_of(starts[parents[part]] + inside[part]), bool(repeated[files == number].any())


def _bytes(values: pa.Array) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join(value.as_buffer() for value in values), np.uint8)


def _sorted(column: pa.ChunkedArray) -> tuple[_Numbers, _Numbers]:
    values = np.asarray(column)
    order = np.argsort(values, kind="stable")
    return values[order], order


def _groups(numbers: _Numbers) -> Iterator[tuple[int, slice]]:
    """The runs of equal numbers in a sorted array."""
    unique, starts = np.unique(numbers, return_index=True)
    ends = np.append(starts[1:], len(numbers))
    for number, start, end in zip(unique.tolist(), starts.tolist(), ends[: len(unique)].tolist(), strict=True):
        yield number, slice(start, end)

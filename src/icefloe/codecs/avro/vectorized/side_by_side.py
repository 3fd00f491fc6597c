"""Avro records of many blocks into Arrow columns, the blocks side by side (spec: Appendix A, Avro).

Where a record ends is known only after reading it, but where a block begins is known at once. So all blocks are
scanned side by side, one record of each block per step, to find where every record begins. Then all records are read
together, column by column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from icefloe.codecs.avro.vectorized.lanes import Longs, Source
from icefloe.codecs.avro.vectorized.readers import Reader, reader_of
from icefloe.errors import UnsupportedError


def decode_side_by_side(blocks: Sequence[bytes], counts: Longs, plain: Any, wanted: pa.StructType) -> pa.StructArray:
    """The wanted fields of all records of some blocks; ``counts`` are the numbers of records in the blocks."""
    reader = reader_of(plain)
    source, ends = Source.of(blocks)
    starts = _starts(source, reader, counts, ends)
    rows, stops = reader.read(source, starts, wanted)
    if not (np.array_equal(stops[:-1], starts[1:]) and stops[-1] == ends[-1]):
        raise UnsupportedError("records are not as long as they say")
    return rows.arrow(source, wanted)


def _starts(source: Source, reader: Reader, counts: Longs, ends: Longs) -> Longs:
    """Where each record begins."""
    order = np.argsort(-counts, kind="stable")  # blocks with many records first: unfinished blocks stay in front
    first, many = (np.cumsum(counts) - counts)[order], counts[order]
    at = np.concatenate(([0], ends[:-1]))[order]
    going = np.searchsorted(-many, -np.arange(int(many[0])), side="left")  # blocks that still have a record, per step
    starts = np.empty(int(counts.sum()), np.int64)
    for step, blocks in enumerate(going.tolist()):
        here = at[:blocks]
        starts[first[:blocks] + step] = here
        at[:blocks] = reader.skip(source, here)
    if not np.array_equal(at, ends[order]):
        raise UnsupportedError("records do not end where their blocks do")
    return starts

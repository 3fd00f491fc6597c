"""Records of Avro data files as Arrow columns (spec: Appendix A, Avro).

Where a record ends is known only after reading it, but where a block begins is known at once. So all blocks are
scanned side by side, one record of each block per step, to find where every record begins. Then all records are read
together, column by column. If there are few blocks, or their types have no vectorized reader, fastavro reads the
records in order.
"""

from __future__ import annotations

from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from icefloe.codecs.avro.container import Block, records_of
from icefloe.codecs.avro.vectorized.lanes import PADDING, Longs, Source
from icefloe.codecs.avro.vectorized.readers import Reader, reader_of
from icefloe.errors import UnsupportedError

LEAST_LANES = 24  # with fewer blocks than this side by side, reading in order is faster


class RowDecoder:
    """Decodes blocks of records that have a plain schema (see ``avro_stored``)."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain
        self.together = True  # until a block shows that it is of no use

    def decode(self, blocks: list[Block], wanted: pa.StructType) -> pa.StructArray:
        """The wanted fields of all records, in order; ``wanted`` has the types and names of the plain schema."""
        counts = np.array([block.count for block in blocks], np.int64)
        if self.together and int(counts.sum()) >= LEAST_LANES * int(counts.max()):
            try:
                return _together(blocks, counts, reader_of(self._plain), wanted)
            except UnsupportedError:
                self.together = False
        return _in_order(blocks, self._plain, wanted)


def _together(blocks: list[Block], counts: Longs, reader: Reader, wanted: pa.StructType) -> pa.StructArray:
    source = Source(b"".join([*(block.data for block in blocks), PADDING]))
    ends = np.cumsum([len(block.data) for block in blocks], dtype=np.int64)
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


def _in_order(blocks: list[Block], plain: Any, wanted: pa.StructType) -> pa.StructArray:
    parsed = fastavro.parse_schema({"type": "array", "items": plain})
    # Block by block, so that few Python objects are alive at any time.
    return pa.concat_arrays([pa.array(records_of(block, parsed), wanted) for block in blocks])

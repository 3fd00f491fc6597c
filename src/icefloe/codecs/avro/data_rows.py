"""Records of Avro data files as Arrow columns (spec: Appendix A, Avro).

Many blocks are decoded side by side with numpy. If there are few blocks, or their types have no vectorized reader,
fastavro reads the records in order.
"""

from __future__ import annotations

from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from icefloe.codecs.avro.container import Block, records_of
from icefloe.codecs.avro.vectorized import decode_side_by_side
from icefloe.errors import UnsupportedError

LEAST_LANES = 24  # with fewer blocks than this side by side, reading in order is faster


class RowDecoder:
    """Decodes blocks of records that have a plain schema (see ``file_schema``)."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain
        self.together = True  # until a block shows that it is of no use

    def decode(self, blocks: list[Block], wanted: pa.StructType) -> pa.StructArray:
        """The wanted fields of all records, in order; ``wanted`` has the types and names of the plain schema."""
        counts = np.array([block.count for block in blocks], np.int64)
        if self.together and int(counts.sum()) >= LEAST_LANES * int(counts.max()):
            try:
                return decode_side_by_side([block.data for block in blocks], counts, self._plain, wanted)
            except UnsupportedError:
                self.together = False
        return _in_order(blocks, self._plain, wanted)


def _in_order(blocks: list[Block], plain: Any, wanted: pa.StructType) -> pa.StructArray:
    parsed = fastavro.parse_schema({"type": "array", "items": plain})
    # Block by block, so that few Python objects are alive at any time.
    return pa.concat_arrays([pa.array(records_of(block, parsed), wanted) for block in blocks])

"""Avro records decoded into Arrow columns with numpy, without a Python object per record.

Replaces fastavro for many records (decision 024). ``decode_together`` is for records whose first texts begin alike, as
in manifests. ``decode_side_by_side`` is for records in many blocks, as in data files. Both take decompressed blocks,
and raise ``UnsupportedError`` if fastavro must read them.
"""

from __future__ import annotations

from icefloe.codecs.avro.vectorized.decode import FEWEST_RECORDS, decode_side_by_side, decode_together

__all__ = ["FEWEST_RECORDS", "decode_side_by_side", "decode_together"]

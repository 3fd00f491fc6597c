"""Avro records decoded into Arrow columns with numpy, without a Python object per record.

Replaces fastavro for many records (decision 024). ``decode_together`` decodes records whose first texts begin alike, as
those of manifests do. ``decode_side_by_side`` decodes any records that are in many blocks, as those of data files are.
Both take decompressed blocks, and raise ``UnsupportedError`` for what fastavro has to read.
"""

from __future__ import annotations

from icefloe.codecs.avro.vectorized.decode import FEWEST_RECORDS, decode_side_by_side, decode_together

__all__ = ["FEWEST_RECORDS", "decode_side_by_side", "decode_together"]

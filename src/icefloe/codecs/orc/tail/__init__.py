"""Reads the stripes of an ORC file and their statistics from the end of the file.

Replaces an ORC library with generated protocol buffers (decision 024): Arrow reads the rows of stripes but reports
neither their row counts nor their statistics. ``read_stripes`` is the only entry point.
"""

from __future__ import annotations

from icefloe.codecs.orc.tail.stripes import OrcColumn, OrcStripe, read_stripes

__all__ = ["OrcColumn", "OrcStripe", "read_stripes"]

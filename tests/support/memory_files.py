"""The files of a storage in memory, for tests that copy a storage or change the age of its files."""

from __future__ import annotations

from typing import Any

from icefloe.io.memory import MemoryFileIO


def files_in(io: MemoryFileIO) -> dict[str, Any]:
    """Files by location, each with ``data`` and ``modified_ms``; what changes here changes in the storage."""
    return io._files

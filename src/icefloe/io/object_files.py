"""Objects as files for Arrow: reading by range, writing as a stream that uploads in parts.

Opening a file takes one request, which returns its size and its last bytes. A Parquet footer and small files are then
read from memory.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

TAIL_BYTES = 64 * 1024  # as much as Arrow asks for to find the footer of a Parquet file


class Ranged(Protocol):
    """Storage that reads ranges of a file."""

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset``."""
        ...

    def read_tail(self, location: str, length: int) -> tuple[int, bytes]:
        """The file's length and its last bytes, at most ``length`` of them."""
        ...


class RangeFile:
    """A readable file for ``pyarrow.PythonFile``; every read outside of the tail is one request."""

    def __init__(self, storage: Ranged, location: str) -> None:
        self._storage = storage
        self._location = location
        self._size, self._tail = storage.read_tail(location, TAIL_BYTES)
        self._position = 0
        self.closed = False

    def size(self) -> int:
        """The file's length."""
        return self._size

    def tell(self) -> int:
        """Where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position counted from the start, from here or from the end."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def read(self, length: int | None = -1) -> bytes:
        """Up to ``length`` bytes, less only at the end of the file."""
        rest = max(0, self._size - self._position)
        wanted = rest if length is None or length < 0 else min(length, rest)
        data = self._read_at(self._position, wanted)
        self._position += len(data)
        return data

    def _read_at(self, offset: int, length: int) -> bytes:
        start = offset - (self._size - len(self._tail))
        if start >= 0:
            return self._tail[start : start + length]
        return self._storage.read_range(self._location, offset, length) if length > 0 else b""

    def close(self) -> None:
        """Free the bytes."""
        self._tail, self.closed = b"", True


class Upload:
    """A file being written, for ``pyarrow.PythonFile``; it appears, whole, when it is closed."""

    def __init__(self, stream: Any, translated: Callable[[], AbstractContextManager[None]]) -> None:
        self._stream = stream
        self._translated = translated
        self.closed = False

    def write(self, data: Any) -> int:
        """Add bytes; they are uploaded whenever they fill a part."""
        octets = memoryview(data).cast("B")  # Arrow's own buffers hold signed bytes, which the client refuses
        with self._translated():
            self._stream.write(octets)
        return len(octets)

    def flush(self) -> None:
        """Does nothing: the file appears only when it is closed."""

    def close(self) -> None:
        """Finish the upload."""
        if not self.closed:
            self.closed = True
            with self._translated():
                self._stream.close()

"""A disk in memory that becomes full, and a real one of a megabyte where the machine lets a test mount it."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.io.file_io import translated
from icefloe.io.memory import MemoryFileIO


class SmallDisk(MemoryFileIO):
    """Files in memory, of which only some bytes more can be written; deleted files make room."""

    def __init__(self) -> None:
        super().__init__()
        self.capacity = 1 << 30

    @property
    def used(self) -> int:
        return sum(file.size for file in self.list("memory://wh"))

    @property
    def names(self) -> set[str]:
        return {file.location for file in self.list("memory://wh")}

    def write_many(self, files: Sequence[tuple[str, bytes]]) -> None:
        size = 0
        for location, data in files:
            size += len(data)
            self._take(location, size)
        super().write_many(files)

    def put_if_absent(self, location: str, data: bytes) -> bool:
        self._take(location, len(data))
        return super().put_if_absent(location, data)

    def _take(self, location: str, size: int) -> None:
        with translated("write", location):
            self._check(size)

    def _check(self, size: int) -> None:
        if self.used + size > self.capacity:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _open_output(self, location: str) -> Any:
        return pa.PythonFile(_Output(self, location), mode="w")


class _Output:
    """A file that is written in place, as on a disk: what was written before an error stays."""

    def __init__(self, disk: SmallDisk, location: str) -> None:
        self._disk, self._location, self._data = disk, location, b""
        self.closed = False
        disk.replace(location, b"")

    def write(self, data: Any) -> int:
        self._disk._check(len(data))
        self._data += bytes(data)
        self._disk.replace(self._location, self._data)
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        self.closed = True


@contextmanager
def mounted(folder: Path, kib: int) -> Iterator[Path]:
    """A file system of some KiB; the test is skipped where mounting is refused."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)]
    try:
        made = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no program to mount a file system")
    if made.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)

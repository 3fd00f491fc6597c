"""Decoded manifests in a folder on local disk, so that the next process need not decode them again.

A file is an Arrow IPC file behind a short frame with a checksum. It is written under another name and renamed, so
several processes may share a folder: a reader sees a whole file or none. What is damaged, or was made for another shape
of the table, is not used and is replaced. Files that were used least recently go when the folder is full.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from icefloe.errors import InputError
from icefloe.limits import MIB

FOLDER_BYTES = 2048 * MIB
_MAGIC = b"ICEFLOE1"
_FRAME = struct.Struct("<8sI32s")  # magic, checksum of what follows the frame, digest of the key
_SUFFIX = ".arrow"
_EVICT_TO = 0.9  # of the allowed size, so that not every write evicts


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskKey:
    """What a decoded manifest depends on: the file, by its location and length, and the shape of the table.

    The shape includes what the root says of the manifest.
    """

    location: str
    length: int
    shape: str

    @property
    def digest(self) -> bytes:
        """The key in 32 bytes."""
        return hashlib.sha256("\0".join((self.location, str(self.length), self.shape)).encode()).digest()


class DiskCache:
    """A bounded folder of decoded manifests; nothing that goes wrong with it is an error of the table."""

    def __init__(self, folder: str, max_bytes: int = FOLDER_BYTES) -> None:
        self._folder = Path(folder)
        self._max_bytes = max_bytes
        self._bytes: int | None = None  # of the whole folder, as far as this process knows
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cache.folder {folder!r} cannot be made: {error.strerror}", folder=folder) from error

    def get(self, key: DiskKey, columns: frozenset[str] | None = None) -> pa.Table | None:
        """The table under a key, or its statistics of these keys only; none if it is not there or not whole."""
        path = self._path(key)
        try:
            data = path.read_bytes()
            table = _decode(data, key, columns)
        except (OSError, ValueError, pa.ArrowException):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # now the most recently used
        return table

    def put(self, key: DiskKey, table: pa.Table) -> None:
        """Keep a table; a folder that cannot be written to keeps nothing."""
        data = _encode(key, table)
        if len(data) > self._max_bytes:
            return
        path = self._path(key)
        temporary = self._folder / f".{path.name}.{uuid.uuid4().hex}.tmp"
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            return
        self._bytes = None if self._bytes is None else self._bytes + len(data)
        self._evict()

    def _path(self, key: DiskKey) -> Path:
        return self._folder / f"{key.digest.hex()}{_SUFFIX}"

    def _evict(self) -> None:
        """Delete the files used least recently, and what crashed writers left, when the folder is full."""
        if self._bytes is not None and self._bytes <= self._max_bytes:
            return
        found: list[tuple[float, int, Path]] = []
        with contextlib.suppress(OSError):
            for entry in os.scandir(self._folder):
                with contextlib.suppress(OSError):
                    facts = entry.stat()
                    found.append((facts.st_mtime, facts.st_size, Path(entry.path)))
        total = sum(size for _, size, _ in found)
        allowed = self._max_bytes if total <= self._max_bytes else int(self._max_bytes * _EVICT_TO)
        for _, size, path in sorted(found):
            if total <= allowed:
                break
            if path.name.endswith((_SUFFIX, ".tmp")):
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
                    total -= size
        self._bytes = total


def _encode(key: DiskKey, table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks())
    body: bytes = sink.getvalue().to_pybytes()
    return _FRAME.pack(_MAGIC, zlib.crc32(body), key.digest) + body


def _decode(data: bytes, key: DiskKey, wanted: frozenset[str] | None) -> pa.Table:
    if len(data) < _FRAME.size:
        raise ValueError("cut short")
    magic, checksum, digest = _FRAME.unpack_from(data)
    body = memoryview(data)[_FRAME.size :]
    if magic != _MAGIC or digest != key.digest or zlib.crc32(body) != checksum:
        raise ValueError("not the file that was written")
    buffer = pa.py_buffer(body)
    schema = pa.ipc.open_file(buffer).schema
    kept = [i for i, name in enumerate(schema.names) if _is_kept(name, wanted)]
    return pa.ipc.open_file(buffer, options=pa.ipc.IpcReadOptions(included_fields=kept)).read_all()


def _is_kept(name: str, wanted: frozenset[str] | None) -> bool:
    _, colon, key = name.partition(":")
    return wanted is None or colon == "" or key.startswith("p") or key in wanted

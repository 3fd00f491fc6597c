"""A cache of decoded manifests in a folder on local disk, for later processes.

A cache file is a header with a checksum, followed by an Arrow IPC file. It is written under another name and renamed,
so several processes may share a folder: a reader sees a complete file or none. A damaged file, or one for other schemas
of the table, is not used and is replaced. If the folder is full, the least recently used files are deleted.
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
from icefloe.model.entries import ContentType, StatKeys, parse_stat

FOLDER_BYTES = 2048 * MIB
_MAGIC = b"ICEFLOE1"
_HEADER = struct.Struct("<8sI32s")  # magic, checksum of the rest of the file, digest of the key
_SUFFIX = ".arrow"
_EVICT_TO = 0.9  # of the maximum size, so that not every write evicts


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskKey:
    """What a decoded manifest depends on: location and length of its file, the schemas of the table, its root row."""

    location: str
    length: int
    schemas: str  # the fingerprint of a ManifestContext
    content: ContentType
    spec_id: int | None

    @property
    def digest(self) -> bytes:
        """The SHA-256 digest of the key."""
        listed = f"{self.schemas} {self.content.name} {self.spec_id}"
        return hashlib.sha256("\0".join((self.location, str(self.length), listed)).encode()).digest()


class DiskCache:
    """A bounded folder of decoded manifests. Errors in it are ignored, as it is only a cache."""

    def __init__(self, folder: str, max_bytes: int = FOLDER_BYTES) -> None:
        self._folder = Path(folder)
        self._max_bytes = max_bytes
        self._bytes: int | None = None  # of the folder, without writes of other processes; none if not known
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cache.folder {folder!r} cannot be created: {error.strerror}", folder=folder) from error

    def get(self, key: DiskKey, columns: StatKeys | None = None) -> pa.Table | None:
        """The table of a key, or only its statistics of these keys; none if it is missing or damaged."""
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
        """Store a table, if the folder can be written."""
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
        """If the folder is full, delete the least recently used files and temporary files of crashed writers."""
        if self._bytes is not None and self._bytes <= self._max_bytes:
            return
        files: list[tuple[float, int, Path]] = []
        with contextlib.suppress(OSError):
            for entry in os.scandir(self._folder):
                with contextlib.suppress(OSError):
                    status = entry.stat()
                    files.append((status.st_mtime, status.st_size, Path(entry.path)))
        total = sum(size for _, size, _ in files)
        allowed = self._max_bytes if total <= self._max_bytes else int(self._max_bytes * _EVICT_TO)
        for _, size, path in sorted(files):
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
    return _HEADER.pack(_MAGIC, zlib.crc32(body), key.digest) + body


def _decode(data: bytes, key: DiskKey, wanted: StatKeys | None) -> pa.Table:
    if len(data) < _HEADER.size:
        raise ValueError("truncated")
    magic, checksum, digest = _HEADER.unpack_from(data)
    body = memoryview(data)[_HEADER.size :]
    if magic != _MAGIC or digest != key.digest or zlib.crc32(body) != checksum:
        raise ValueError("not the file that was written")
    buffer = pa.py_buffer(body)
    schema = pa.ipc.open_file(buffer).schema
    kept = [i for i, name in enumerate(schema.names) if _is_kept(name, wanted)]
    return pa.ipc.open_file(buffer, options=pa.ipc.IpcReadOptions(included_fields=kept)).read_all()


def _is_kept(name: str, wanted: StatKeys | None) -> bool:
    column = parse_stat(name)
    return wanted is None or column is None or column.key.is_partition or column.key in wanted

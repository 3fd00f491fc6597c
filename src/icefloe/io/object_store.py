"""Files in object stores: S3 and compatible stores, Google Cloud Storage, Azure.

A put is atomic for readers, and durable once the store confirms it. ``put_if_absent`` is a put with a condition that
the store checks (``object_requests``). All other requests may be repeated: reads change nothing, and names of new files
are unique.

Arrow opens an object to read with one request, which returns its size and its last bytes: a Parquet footer and small
files are then read from memory. It writes an object as a stream that is uploaded in parts.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import obstore
import pyarrow as pa

from icefloe.env import SYSTEM, Env
from icefloe.errors import (
    AlreadyExists,
    IcefloeError,
    InputError,
    NoSuchFile,
    StorageError,
    UnsupportedError,
)
from icefloe.io.arrow_view import arrow_view
from icefloe.io.file_io import FileInfo, check_size, raise_not_deleted
from icefloe.io.local import check_range, short_file
from icefloe.io.object_requests import Bucket, Object, Put, translated_request
from icefloe.io.retries import DEFAULT_PATIENCE, retried
from icefloe.io.storage_locations import plain_location, scheme_family, storage_properties
from icefloe.io.store_settings import open_store
from icefloe.limits import MIB

_T = TypeVar("_T")
_R = TypeVar("_R")

PARTS_FROM = 64 * MIB  # files from this size on are uploaded in parts
PART_BYTES = 16 * MIB
_TAIL_BYTES = 64 * 1024  # as much as Arrow requests to find the footer of a Parquet file
_THREADS = 8
_DELETED_AT_ONCE = 1000  # the most that S3 takes in one request


class _Threads:
    """Detects forks: the threads of the client are not copied, so a request in the forked process would never end."""

    def __init__(self) -> None:
        self._process: int | None = None

    def check(self) -> None:
        """Refuse to use them from a process that was forked after they were started."""
        process = os.getpid()
        if self._process is None:
            self._process = process
        if self._process != process:
            raise UnsupportedError(
                "object stores cannot be used in a process that was forked after their first use; start processes"
                " with multiprocessing's 'spawn' or 'forkserver'"
            )


_CLIENT_THREADS = _Threads()


class ObjectStoreFileIO:
    """The FileIO of every bucket of one kind of store that the same properties open.

    The properties are those of other Iceberg libraries, as ``s3.endpoint`` and ``s3.access-key-id``.
    """

    def __init__(self, scheme: str, properties: Mapping[str, str] | None = None, env: Env = SYSTEM) -> None:
        self._schemes = scheme_family(scheme)
        if len(self._schemes) == 0:
            raise UnsupportedError(f"{scheme!r} is not the scheme of an object store", scheme=scheme)
        self._scheme = scheme
        self._properties = storage_properties(properties or {})
        self._env = env
        self._buckets: dict[str, Bucket] = {}

    @property
    def properties(self) -> Mapping[str, str]:
        """What it was opened with, keys included."""
        return self._properties

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectStoreFileIO, (self._scheme, self._properties)

    def read(self, location: str, limit: int | None = None) -> bytes:
        """The whole file."""
        target = self._object(location)
        with translated_request("read", location):
            answer = obstore.get(target.bucket.retrying, target.key)
            check_size(location, answer.meta["size"], limit)
            return bytes(answer.bytes())

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset``."""
        check_range(location, offset, length)
        target = self._object(location)
        if length == 0:
            self.size(location)
            return b""
        try:
            with translated_request("read", location):
                data = bytes(obstore.get_range(target.bucket.retrying, target.key, start=offset, length=length))
        except StorageError:
            # A range that begins past the end gets the same error as any other invalid request.
            size = self.size(location)
            if offset < size:
                raise
            raise short_file(location, offset, length, got=0) from None
        if len(data) < length:
            raise short_file(location, offset, length, got=len(data))
        return data

    def read_tail(self, location: str, length: int) -> tuple[int, bytes]:
        """The file's length and its last bytes, at most ``length`` of them, in one request if the store can."""
        target = self._object(location)
        try:
            with translated_request("read", location):
                answer = obstore.get(target.bucket.retrying, target.key, options={"range": {"suffix": length}})
                return answer.meta["size"], bytes(answer.bytes())
        except (StorageError, UnsupportedError):  # no suffix ranges in this store, or not for empty files
            size = self.size(location)
            return size, self.read_range(location, max(0, size - length), min(size, length))

    def size(self, location: str) -> int:
        """The file's length in bytes."""
        target = self._object(location)
        with translated_request("look at", location):
            return int(obstore.head(target.bucket.retrying, target.key)["size"])

    def exists(self, location: str) -> bool:
        """Whether there is a file at the location."""
        try:
            self.size(location)
        except NoSuchFile:
            return False
        return True

    def write_new(self, location: str, data: bytes) -> None:
        """Write a file that must not exist yet; durable on return, deleted again on error."""
        target = self._object(location)
        put = Put(target, data)
        try:
            if len(data) < PARTS_FROM:
                retried(put.create, passes=_passes, env=self._env)
            else:
                self._upload(target, data)
        except AlreadyExists:
            raise
        except BaseException:
            self._take_back(put)
            raise

    def write_many(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write several new files at the same time; all or none."""
        names: set[str] = set()
        for location, _ in files:
            if location in names:
                raise AlreadyExists(f"{location} is to be written twice", location=location)
            names.add(location)
        errors = _in_parallel(lambda file: self._attempt(*file), files)
        failure = next((error for error in errors if error is not None), None)
        if failure is not None:
            made = [location for (location, _), error in zip(files, errors, strict=True) if error is None]
            with contextlib.suppress(IcefloeError):
                self.delete(made)
            raise failure

    def put_if_absent(self, location: str, data: bytes) -> bool:
        """Create the file unless the name is taken: True for the only winner."""
        return Put(self._object(location), data).is_won(self._env)

    def link_if_absent(self, source: str, location: str) -> bool:
        """Create a copy of a file unless the name is taken."""
        return self.put_if_absent(location, self.read(source))

    def sync(self, locations: Sequence[str]) -> None:
        """Check that the files are there: an object is durable as soon as it can be seen."""
        _in_parallel(self.size, locations)

    def delete(self, locations: Sequence[str]) -> None:
        """Delete files, many per request; files that do not exist are ignored."""
        failures: dict[str, IcefloeError] = {}
        buckets: defaultdict[str, list[Object]] = defaultdict(list)
        for target in map(self._object, locations):
            buckets[target.authority].append(target)
        for objects in buckets.values():
            for start in range(0, len(objects), _DELETED_AT_ONCE):
                failures |= self._delete(objects[start : start + _DELETED_AT_ONCE])
        raise_not_deleted(failures, len(locations))

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """Every file under the folder ``prefix``, spelled like ``prefix``."""
        base = prefix.rstrip("/")
        folder = self._object(base, is_folder=True)
        with translated_request("list", prefix):
            for page in obstore.list(folder.bucket.retrying, folder.key, chunk_size=1000):
                for entry in page:
                    inner = entry["path"].removeprefix(folder.key).removeprefix("/")
                    modified = int(entry["last_modified"].timestamp() * 1000)
                    yield FileInfo(location=f"{base}/{inner}", size=entry["size"], modified_ms=modified)

    def arrow_path(self, location: str) -> tuple[Any, str]:
        """An Arrow file system over this store, and the path in it: the location without its scheme."""
        self._object(location)
        scheme, _, path = location.partition("://")
        view = arrow_view(self, f"{scheme}://", open_input=self._open_input, open_output=self._open_output)
        return view, path

    def _open_input(self, location: str) -> Any:
        return pa.PythonFile(_RangeFile(self, location), mode="r")

    def _open_output(self, location: str) -> Any:
        target = self._object(location)
        stream = obstore.open_writer(target.bucket.retrying, target.key, buffer_size=PART_BYTES)
        return pa.PythonFile(_Upload(stream, location), mode="w")

    def _attempt(self, location: str, data: bytes) -> BaseException | None:
        try:
            self.write_new(location, data)
        except BaseException as error:
            return error
        return None

    def _upload(self, target: Object, data: bytes) -> None:
        if self.exists(target.location):
            raise AlreadyExists(f"there is a file at {target.location} already", location=target.location)
        with translated_request("write", target.location):
            obstore.put(target.bucket.retrying, target.key, data, use_multipart=True, chunk_size=PART_BYTES)

    def _take_back(self, put: Put) -> None:
        """Delete the file of a failed write, if it is ours. Errors are ignored: the file is then an orphan."""
        with contextlib.suppress(IcefloeError):
            if put.is_stored() is not False:
                self.delete([put.target.location])

    def _delete(self, objects: Sequence[Object]) -> dict[str, IcefloeError]:
        """Delete files of one bucket; the errors by location."""
        try:
            with translated_request("delete", objects[0].location):
                obstore.delete(objects[0].bucket.retrying, [target.key for target in objects])
            return {}
        except IcefloeError:  # it does not say which files failed: delete them one by one
            errors = _in_parallel(_delete_one, objects)
        return {target.location: error for target, error in zip(objects, errors, strict=True) if error is not None}

    def _object(self, location: str, *, is_folder: bool = False) -> Object:
        _CLIENT_THREADS.check()
        parsed = plain_location(location)
        key = parsed.path.removeprefix("/")
        if parsed.scheme not in self._schemes or parsed.authority == "":
            example = f"{self._scheme}://bucket/path"
            raise InputError(f"{location!r} is not a location of this store; write {example}", location=location)
        if "" in key.split("/") and not (is_folder and key == ""):
            raise InputError(f"{location!r} names no file, or holds an empty segment", location=location)
        bucket = self._buckets.get(parsed.authority)
        if bucket is None:
            # Two threads may both open it; the first one is kept, and both are equivalent.
            bucket = self._buckets.setdefault(parsed.authority, self._open(parsed.scheme, parsed.authority))
        return Object(location=location, authority=parsed.authority, bucket=bucket, key=key)

    def _open(self, scheme: str, authority: str) -> Bucket:
        retries = DEFAULT_PATIENCE.attempts - 1
        return Bucket(
            retrying=open_store(scheme, authority, self._properties, retries=retries),
            once=open_store(scheme, authority, self._properties, retries=0),
        )


def _delete_one(target: Object) -> IcefloeError | None:
    try:
        with translated_request("delete", target.location):
            obstore.delete(target.bucket.once, target.key)
    except NoSuchFile:
        return None
    except IcefloeError as error:
        return error
    return None


def _in_parallel(action: Callable[[_T], _R], items: Sequence[_T]) -> list[_R]:
    """The results of independent requests, several of which run at the same time."""
    if len(items) <= 1:
        return [action(item) for item in items]
    with ThreadPoolExecutor(min(_THREADS, len(items)), thread_name_prefix="icefloe-store") as pool:
        return list(pool.map(action, items))


def _passes(error: Exception) -> bool:
    """Whether a retry may succeed: not after a definite answer of the store."""
    return isinstance(error, StorageError) and error.retryable


class _RangeFile:
    """A readable file for ``pyarrow.PythonFile``; every read outside of the tail is one request."""

    def __init__(self, storage: ObjectStoreFileIO, location: str) -> None:
        self._storage = storage
        self._location = location
        self._size, self._tail = storage.read_tail(location, _TAIL_BYTES)
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


class _Upload:
    """A file being written, for ``pyarrow.PythonFile``; it appears, whole, when it is closed."""

    def __init__(self, stream: Any, location: str) -> None:
        self._stream = stream
        self._location = location
        self.closed = False

    def write(self, data: Any) -> int:
        """Add bytes; they are uploaded whenever they fill a part."""
        octets = memoryview(data).cast("B")  # Arrow's own buffers hold signed bytes, which the client refuses
        with translated_request("write", self._location):
            self._stream.write(octets)
        return len(octets)

    def flush(self) -> None:
        """Does nothing: the file appears only when it is closed."""

    def close(self) -> None:
        """Finish the upload."""
        if not self.closed:
            self.closed = True
            with translated_request("write", self._location):
                self._stream.close()

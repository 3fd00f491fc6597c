"""Arrow's view of a MemoryFileIO, so that data files can live in memory too.

Arrow calls a handler for each verb of its file system. Folders do not exist in the store: a path is a folder when a
file lies under it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

from icefloe.errors import NoSuchFile, UnsupportedError

if TYPE_CHECKING:
    from icefloe.io.memory import MemoryFileIO


def arrow_file_system(store: MemoryFileIO) -> Any:
    """A ``pyarrow.fs.FileSystem`` whose paths are the store's locations without their scheme."""
    return fs.PyFileSystem(_Handler(store))


class _Buffer(io.BytesIO):
    """A stream that hands over its bytes when it is closed."""

    def __init__(self, done: Callable[[bytes], None]) -> None:
        super().__init__()
        self._done = done

    def close(self) -> None:
        if not self.closed:
            self._done(self.getvalue())
        super().close()


class _Handler(fs.FileSystemHandler):  # type: ignore[misc]
    """Each verb that Arrow's readers and writers use; the others are refused by name."""

    def __init__(self, store: MemoryFileIO) -> None:
        self._store = store

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Handler) and other._store is self._store

    def __hash__(self) -> int:
        return hash(id(self._store))

    def get_type_name(self) -> str:
        return "memory"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[Any]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        files = [file.location for file in self._store.list(_location(selector.base_dir))]
        if len(files) == 0 and not selector.allow_not_found:
            raise FileNotFoundError(selector.base_dir)
        depth = selector.base_dir.rstrip("/").count("/") + 1
        paths = [location[len(_location("")) :] for location in files]
        names = paths if selector.recursive else sorted({"/".join(path.split("/")[: depth + 1]) for path in paths})
        return [self._info(name) for name in names]

    def open_input_file(self, path: str) -> Any:
        return pa.BufferReader(self._bytes(path))

    def open_input_stream(self, path: str) -> Any:
        return pa.BufferReader(self._bytes(path))

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        return pa.PythonFile(_Buffer(lambda data: self._store.replace(_location(path), data)), mode="w")

    def create_dir(self, path: str, recursive: bool) -> None:
        return None

    def delete_file(self, path: str) -> None:
        self._bytes(path)
        self._store.delete([_location(path)])

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise _refused("append to")

    def copy_file(self, src: str, dest: str) -> None:
        raise _refused("copy")

    def move(self, src: str, dest: str) -> None:
        raise _refused("move")

    def delete_dir(self, path: str) -> None:
        raise _refused("delete the folders of")

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise _refused("delete the folders of")

    def delete_root_dir_contents(self) -> None:
        raise _refused("delete the folders of")

    def _info(self, path: str) -> Any:
        if self._store.exists(_location(path)):
            return fs.FileInfo(path, fs.FileType.File, size=self._store.size(_location(path)))
        folder = next(iter(self._store.list(_location(path))), None)
        return fs.FileInfo(path, fs.FileType.NotFound if folder is None else fs.FileType.Directory)

    def _bytes(self, path: str) -> bytes:
        try:
            return self._store.read(_location(path))
        except NoSuchFile as error:
            raise FileNotFoundError(path) from error


def _location(path: str) -> str:
    return f"memory://{path}"


def _refused(verb: str) -> UnsupportedError:
    return UnsupportedError(f"Arrow cannot {verb} files in memory:// locations; write a new file instead")

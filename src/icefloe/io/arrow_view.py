"""A ``pyarrow`` file system over a FileIO that has none of its own, for data files that Arrow reads and writes.

Arrow calls a handler for each method of its file system. A path is a location without its scheme. Folders do not exist
in such storage: a path is a folder if there is a file under it. Errors keep their type on the way through Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyarrow import fs

from icefloe.errors import NoSuchFile, UnsupportedError
from icefloe.io.file_io import FileIO

Open = Callable[[str], Any]


def arrow_view(io: FileIO, scheme: str, *, open_input: Open, open_output: Open) -> Any:
    """A ``pyarrow.fs.FileSystem`` whose paths are the storage's locations without ``scheme``, as ``memory://``.

    It refers to the storage, which must not refer to it: Python cannot collect a cycle through Arrow.
    """
    return fs.PyFileSystem(_Handler(io, scheme, open_input, open_output))


class _Handler(fs.FileSystemHandler):  # type: ignore[misc]
    """The methods that Arrow's readers and writers use; others raise UnsupportedError."""

    def __init__(self, io: FileIO, scheme: str, open_input: Open, open_output: Open) -> None:
        self._io = io
        self._scheme = scheme
        self._open_input = open_input
        self._open_output = open_output

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Handler) and (other._io is self._io and other._scheme == self._scheme)

    def __hash__(self) -> int:
        return hash((id(self._io), self._scheme))

    def get_type_name(self) -> str:
        return self._scheme.removesuffix("://")

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[Any]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        files = list(self._io.list(self._location(selector.base_dir)))
        if len(files) == 0 and not selector.allow_not_found:
            raise FileNotFoundError(selector.base_dir)
        sizes = {file.location.removeprefix(self._scheme): file.size for file in files}
        if selector.recursive:
            return [fs.FileInfo(path, fs.FileType.File, size=size) for path, size in sizes.items()]
        depth = selector.base_dir.rstrip("/").count("/") + 2
        names = dict.fromkeys("/".join(path.split("/")[:depth]) for path in sizes)
        return [
            fs.FileInfo(name, fs.FileType.File, size=sizes[name])
            if name in sizes
            else fs.FileInfo(name, fs.FileType.Directory)
            for name in names
        ]

    def open_input_file(self, path: str) -> Any:
        try:
            return self._open_input(self._location(path))
        except NoSuchFile as error:
            raise FileNotFoundError(path) from error

    def open_input_stream(self, path: str) -> Any:
        return self.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        return self._open_output(self._location(path))

    def create_dir(self, path: str, recursive: bool) -> None:
        return None

    def delete_file(self, path: str) -> None:
        if not self._io.exists(self._location(path)):
            raise FileNotFoundError(path)
        self._io.delete([self._location(path)])

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise self._refused("append to")

    def copy_file(self, src: str, dest: str) -> None:
        raise self._refused("copy")

    def move(self, src: str, dest: str) -> None:
        raise self._refused("move")

    def delete_dir(self, path: str) -> None:
        raise self._refused("delete the folders of")

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise self._refused("delete the folders of")

    def delete_root_dir_contents(self) -> None:
        raise self._refused("delete the folders of")

    def _info(self, path: str) -> Any:
        try:
            return fs.FileInfo(path, fs.FileType.File, size=self._io.size(self._location(path)))
        except NoSuchFile:
            folder = next(iter(self._io.list(self._location(path))), None)
            return fs.FileInfo(path, fs.FileType.NotFound if folder is None else fs.FileType.Directory)

    def _location(self, path: str) -> str:
        return f"{self._scheme}{path}"

    def _refused(self, verb: str) -> UnsupportedError:
        return UnsupportedError(f"Arrow cannot {verb} files in {self._scheme} locations; write a new file instead")

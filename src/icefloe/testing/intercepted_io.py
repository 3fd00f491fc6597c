"""A FileIO that passes every call through one method, where a test makes it fail."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from icefloe.io.file_io import FileInfo, FileIO

_T = TypeVar("_T")
Locations = list[str]


class Effect(StrEnum):
    """How much of a failed call was done before the failure."""

    NONE = "none"
    HALF = "half"
    ALL = "all"

    def happen(self, call: Callable[[], object], half: Callable[[], object] | None) -> None:
        """Run this much of the call; a call that has no half does nothing halfway."""
        if self is Effect.ALL:
            call()
        if self is Effect.HALF and half is not None:
            half()


class InterceptedFileIO(ABC):
    """Forwards calls to ``inner`` through ``_call``, with a function that does half of the call."""

    def __init__(self, inner: FileIO) -> None:
        self.inner = inner

    @abstractmethod
    def _call(
        self, verb: str, location: str, effect: Callable[[], _T], *, half: Callable[[], object] | None = None
    ) -> _T:
        """Run a call, or fail before, after or halfway through it."""

    def read(self, location: str, limit: int | None = None) -> bytes:
        """The whole file."""
        return self._call("read", location, lambda: self.inner.read(location, limit))

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """A part of the file."""
        return self._call("read_range", location, lambda: self.inner.read_range(location, offset, length))

    def size(self, location: str) -> int:
        """The file's length."""
        return self._call("size", location, lambda: self.inner.size(location))

    def exists(self, location: str) -> bool:
        """Whether there is a file."""
        return self._call("exists", location, lambda: self.inner.exists(location))

    def write_new(self, location: str, data: bytes) -> None:
        """Write a new file; halfway leaves a file with half of the bytes."""
        half = data[: len(data) // 2]
        self._call(
            "write_new",
            location,
            lambda: self.inner.write_new(location, data),
            half=lambda: self.inner.write_new(location, half),
        )

    def write_many(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write new files with one call per file; if one fails, the files before it are deleted."""
        written: Locations = []
        try:
            for location, data in files:
                self.write_new(location, data)
                written.append(location)
        except BaseException as error:
            if not self._ends_the_process(error):
                self.inner.delete(written)
            raise

    def put_if_absent(self, location: str, data: bytes) -> bool:
        """Write a file unless the name is taken; an error after the effect is an unknown outcome."""
        return self._call("put_if_absent", location, lambda: self.inner.put_if_absent(location, data))

    def link_if_absent(self, source: str, location: str) -> bool:
        """Give a file one more name unless that is taken; an error after the effect is an unknown outcome."""
        return self._call("link_if_absent", location, lambda: self.inner.link_if_absent(source, location))

    def sync(self, locations: Sequence[str]) -> None:
        """Make files durable; halfway syncs the first half of them."""
        half = locations[: len(locations) // 2]
        self._call("sync", _few(locations), lambda: self._sync(locations), half=lambda: self._sync(half))

    def delete(self, locations: Sequence[str]) -> None:
        """Delete files; halfway deletes the first half of them."""
        half = locations[: len(locations) // 2]
        self._call("delete", _few(locations), lambda: self._delete(locations), half=lambda: self._delete(half))

    def list(self, prefix: str) -> Iterator[FileInfo]:
        """The files under a folder."""
        return self._call("list", prefix, lambda: self.inner.list(prefix))

    def arrow_path(self, location: str) -> tuple[Any, str]:
        """Arrow's file system and the path in it."""
        return self._call("arrow_path", location, lambda: self.inner.arrow_path(location))

    def _sync(self, locations: Sequence[str]) -> None:
        self.inner.sync(locations)

    def _delete(self, locations: Sequence[str]) -> None:
        self.inner.delete(locations)

    def _ends_the_process(self, error: BaseException) -> bool:
        """Whether an error simulates the end of the process, after which nothing is cleaned up."""
        return False


def _few(locations: Sequence[str]) -> str:
    return f"{len(locations)} files" if len(locations) != 1 else locations[0]

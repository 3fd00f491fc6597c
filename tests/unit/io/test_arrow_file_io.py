"""Arrow's and fsspec's file systems: faults that pass, faults that stay, and files that must not stay."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from icefloe.env import Env
from icefloe.errors import InputError, NoSuchFile, StorageError
from icefloe.io.arrow_fs import ArrowFileIO, fsspec_file_io
from icefloe.io.retries import Patience, retried

PAUSES: list[float] = []
ENV = Env(sleep=PAUSES.append, jitter=lambda: 0.0)


class Shaky(MemoryFileSystem):  # type: ignore[misc]
    """Files in memory, and errors that are met before them."""

    protocol = "shaky"
    cachable = False
    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012
    reads: list[Exception] = []  # noqa: RUF012
    writes: list[Exception] = []  # noqa: RUF012

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        errors = self.reads if mode == "rb" else self.writes
        if len(errors) > 0:
            raise errors.pop(0)
        return super()._open(path, mode, **kwargs)


@pytest.fixture
def io() -> ArrowFileIO:
    Shaky.store, Shaky.reads, Shaky.writes = {}, [], []
    PAUSES.clear()
    return fsspec_file_io(Shaky(), root="shaky://top", base="/top", env=ENV)


@pytest.mark.parametrize(
    "error", [TimeoutError("slow"), ConnectionResetError("gone"), OSError(errno.ETIMEDOUT, "timed out")]
)
def test_a_fault_that_passes_is_waited_for(io: ArrowFileIO, error: Exception) -> None:
    io.write_new("shaky://top/a", b"0123")
    Shaky.reads = [error] * 3
    assert io.read("shaky://top/a") == b"0123"
    assert PAUSES == [0.05, 0.1, 0.2]
    Shaky.reads = [error]
    assert io.read_range("shaky://top/a", 1, 2) == b"12"


def test_a_fault_that_stays_is_a_storage_error(io: ArrowFileIO) -> None:
    io.write_new("shaky://top/a", b"0123")
    Shaky.reads = [TimeoutError("slow")] * 4
    with pytest.raises(StorageError, match="could not read shaky://top/a: slow"):
        io.read("shaky://top/a")
    assert len(Shaky.reads) == 0


def test_a_fault_that_will_not_pass_is_not_waited_for(io: ArrowFileIO) -> None:
    io.write_new("shaky://top/a", b"0123")
    Shaky.reads = [PermissionError(errno.EACCES, "no")]
    with pytest.raises(StorageError) as caught:
        io.read("shaky://top/a")
    assert caught.value.errno == errno.EACCES
    with pytest.raises(NoSuchFile):
        io.read("shaky://top/none")
    assert PAUSES == []


def test_a_write_is_not_repeated(io: ArrowFileIO) -> None:
    Shaky.writes = [TimeoutError("slow")]
    with pytest.raises(StorageError, match="could not write shaky://top/b"):
        io.write_many([("shaky://top/b", b"1")])
    assert PAUSES == []
    assert list(io.list("shaky://top")) == []


def test_a_failed_write_takes_its_companions_back(io: ArrowFileIO, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Shaky._open

    def second_fails(self: Shaky, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        if path.endswith("/b") and mode != "rb":
            raise OSError(errno.ENOSPC, "full")
        return written(self, path, mode, **kwargs)

    monkeypatch.setattr(Shaky, "_open", second_fails)
    with pytest.raises(StorageError) as caught:
        io.write_many([("shaky://top/a", b"1"), ("shaky://top/b", b"2")])
    assert caught.value.errno == errno.ENOSPC
    assert list(io.list("shaky://top")) == []


def test_only_locations_of_the_storage_are_served(io: ArrowFileIO) -> None:
    for location in ("shaky://other/a", "file:///top/a", "shaky://top/../a"):
        verbs: tuple[Callable[[str], object], ...] = (io.read, io.size, io.arrow_path, lambda text: io.delete([text]))
        for verb in verbs:
            with pytest.raises(InputError):
                verb(location)


def test_deleting_goes_on_after_a_failure(tmp_path: Path) -> None:
    io = fsspec_file_io(fsspec.filesystem("file"), root="file:///")
    io.write_many([(f"file://{tmp_path}/{name}", b"") for name in ("a", "folder/x", "b")])
    with pytest.raises(StorageError, match="1 of 3 files"):
        io.delete([f"file://{tmp_path}/{name}" for name in ("a", "folder", "b")])
    assert [file.location for file in io.list(f"file://{tmp_path}")] == [f"file://{tmp_path}/folder/x"]


def test_the_number_of_attempts_is_the_limit() -> None:
    tried: list[int] = []

    def fail(attempt: int) -> None:
        tried.append(attempt)
        raise TimeoutError

    with pytest.raises(TimeoutError):
        retried(fail, passes=lambda error: True, patience=Patience(attempts=3), env=ENV)
    assert tried == [1, 2, 3]

"""The order of system calls behind every promise that survives a power cut, and what happens when one of them fails."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icefloe.errors import AlreadyExists, CommitStateUnknown, NoSuchFile, StorageError, UnsupportedError
from icefloe.io.local import LocalFileIO

WATCHED = ("open", "write", "fsync", "link", "unlink", "mkdir")


class Recorder:
    """Records system calls by file name, and can make the Nth of a name fail."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, str]] = []
        self.failures: dict[tuple[str, int], BaseException] = {}
        self.after: set[str] = set()
        self._names: dict[int, str] = {}
        self._counts: dict[str, int] = {}
        for name in WATCHED:
            patch.setattr(os, name, self._wrapped(name, getattr(os, name)))

    def fail(self, name: str, error: BaseException, *, at: int = 1, after: bool = False) -> None:
        self.failures[(name, at)] = error
        if after:
            self.after.add(name)

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            label = self._label(name, arguments)
            self._counts[name] = self._counts.get(name, 0) + 1
            error = self.failures.get((name, self._counts[name]))
            if error is not None and name not in self.after:
                raise error
            result = real(*arguments, **options)
            if name == "open":
                self._names[result] = label
            if name != "open" or arguments[1] & os.O_CREAT:
                self.calls.append((name, label))
            if error is not None:
                raise error
            return result

        return call

    def _label(self, name: str, arguments: tuple[Any, ...]) -> str:
        if name in ("write", "fsync"):
            return self._names[arguments[0]]
        return _short(arguments[1] if name == "link" else arguments[0])


def _short(path: str) -> str:
    name = os.path.basename(path)
    return "temporary" if name.endswith(".tmp") else name


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def io(root: Path) -> LocalFileIO:
    """An io that knows the root to be durable already."""
    io = LocalFileIO()
    io.write_new(f"{root}/warm", b"")
    return io


@pytest.fixture
def record(io: LocalFileIO, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(monkeypatch)


def test_a_new_file_is_synced_before_its_folder(io: LocalFileIO, root: Path, record: Recorder) -> None:
    io.write_new(f"{root}/a", b"x")
    assert record.calls == [("open", "a"), ("write", "a"), ("fsync", "a"), ("fsync", "root")]


def test_many_files_share_one_sync_of_their_folder(io: LocalFileIO, root: Path, record: Recorder) -> None:
    io.write_many([(f"{root}/a", b"x"), (f"{root}/b", b"y")])
    assert [call for call in record.calls if call[0] == "fsync"] == [("fsync", "a"), ("fsync", "b"), ("fsync", "root")]


def test_a_new_folder_is_durable_before_the_file_in_it(io: LocalFileIO, root: Path, record: Recorder) -> None:
    io.write_new(f"{root}/d/e/a", b"x")
    assert record.calls == [
        ("mkdir", "d"),
        ("fsync", "root"),
        ("mkdir", "e"),
        ("fsync", "d"),
        ("open", "a"),
        ("write", "a"),
        ("fsync", "a"),
        ("fsync", "e"),
    ]


def test_a_folder_made_by_someone_else_is_synced_once(io: LocalFileIO, root: Path, record: Recorder) -> None:
    (root / "d").mkdir()
    record.calls.clear()
    io.write_new(f"{root}/d/a", b"")
    io.write_new(f"{root}/d/b", b"")
    syncs = [label for name, label in record.calls if name == "fsync"]
    assert syncs == ["root", "a", "d", "b", "d"]


def test_a_folder_that_was_removed_is_made_again(io: LocalFileIO, root: Path) -> None:
    io.write_new(f"{root}/d/a", b"1")
    (root / "d" / "a").unlink()
    (root / "d").rmdir()
    io.write_new(f"{root}/d/a", b"2")
    assert io.read(f"{root}/d/a") == b"2"


def test_a_put_is_written_synced_linked_and_synced_again(io: LocalFileIO, root: Path, record: Recorder) -> None:
    assert io.put_if_absent(f"{root}/v1", b"x")
    assert record.calls == [
        ("open", "temporary"),
        ("write", "temporary"),
        ("fsync", "temporary"),
        ("link", "v1"),
        ("fsync", "root"),
        ("unlink", "temporary"),
    ]


def test_files_of_others_are_synced_with_all_their_folders(io: LocalFileIO, root: Path, record: Recorder) -> None:
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "e" / "a").write_bytes(b"x")
    (root / "d" / "e" / "b").write_bytes(b"x")
    record.calls.clear()
    io.sync([f"{root}/d/e/a", f"{root}/d/e/b"])
    assert [label for _, label in record.calls] == ["a", "b", "root", "d", "e"]


@pytest.mark.parametrize(("name", "at"), [("write", 1), ("fsync", 1), ("fsync", 2), ("fsync", 3), ("write", 2)])
def test_a_failed_write_leaves_nothing(io: LocalFileIO, root: Path, record: Recorder, name: str, at: int) -> None:
    record.fail(name, OSError(errno.ENOSPC, "No space left on device"), at=at)
    with pytest.raises(StorageError, match="No space left") as caught:
        io.write_many([(f"{root}/a", b"x"), (f"{root}/b", b"y")])
    assert caught.value.errno == errno.ENOSPC
    assert isinstance(caught.value, OSError)
    assert os.listdir(root) == ["warm"]


def test_an_interrupt_leaves_nothing(io: LocalFileIO, root: Path, record: Recorder) -> None:
    record.fail("fsync", KeyboardInterrupt(), at=2)
    with pytest.raises(KeyboardInterrupt):
        io.write_many([(f"{root}/a", b"x"), (f"{root}/b", b"y")])
    assert os.listdir(root) == ["warm"]


def test_short_writes_are_continued(io: LocalFileIO, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:3]))
    io.write_new(f"{root}/a", b"0123456789")
    assert io.read(f"{root}/a") == b"0123456789"


def test_a_put_that_fails_before_the_link_leaves_nothing(io: LocalFileIO, root: Path, record: Recorder) -> None:
    record.fail("fsync", OSError(errno.EIO, "Input/output error"))
    with pytest.raises(StorageError):
        io.put_if_absent(f"{root}/v1", b"x")
    assert os.listdir(root) == ["warm"]


def test_a_put_whose_folder_cannot_be_synced_is_unknown(io: LocalFileIO, root: Path, record: Recorder) -> None:
    record.fail("fsync", OSError(errno.EIO, "Input/output error"), at=2)
    with pytest.raises(CommitStateUnknown, match="may or may not"):
        io.put_if_absent(f"{root}/v1", b"x")
    assert (root / "v1").read_bytes() == b"x"


def test_a_staged_file_is_linked_and_its_folder_synced(io: LocalFileIO, root: Path, record: Recorder) -> None:
    io.write_new(f"{root}/staged", b"x")
    record.calls.clear()
    assert io.link_if_absent(f"{root}/staged", f"{root}/v1") is True
    assert record.calls == [("link", "v1"), ("fsync", "root")]
    (root / "other").write_bytes(b"y")
    assert io.link_if_absent(f"{root}/other", f"{root}/v1") is False
    assert (root / "v1").read_bytes() == (root / "staged").read_bytes() == b"x"
    with pytest.raises(NoSuchFile):
        io.link_if_absent(f"{root}/never", f"{root}/v2")


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSPC, errno.ETIMEDOUT])
def test_a_staged_file_stays_where_its_link_fails(io: LocalFileIO, root: Path, record: Recorder, code: int) -> None:
    io.write_new(f"{root}/staged", b"x")
    record.fail("link", OSError(code, os.strerror(code)))
    with pytest.raises(CommitStateUnknown if code == errno.ETIMEDOUT else (UnsupportedError, StorageError)):
        io.link_if_absent(f"{root}/staged", f"{root}/v1")
    assert sorted(os.listdir(root)) == ["staged", "warm"]


def test_a_link_that_landed_but_was_reported_taken_has_won(io: LocalFileIO, root: Path, record: Recorder) -> None:
    record.fail("link", FileExistsError(errno.EEXIST, "File exists"), after=True)
    assert io.put_if_absent(f"{root}/v1", b"x") is True
    assert sorted(os.listdir(root)) == ["v1", "warm"]


def test_an_interrupted_link_that_landed_has_won(io: LocalFileIO, root: Path, record: Recorder) -> None:
    record.fail("link", OSError(errno.EINTR, "Interrupted"), after=True)
    assert io.put_if_absent(f"{root}/v1", b"x") is True


def test_a_link_of_unclear_fate_is_unknown_and_keeps_its_evidence(
    io: LocalFileIO, root: Path, record: Recorder
) -> None:
    record.fail("link", OSError(errno.ETIMEDOUT, "Timed out"))
    with pytest.raises(CommitStateUnknown):
        io.put_if_absent(f"{root}/v1", b"x")
    assert any(name.endswith(".tmp") for name in os.listdir(root))


@pytest.mark.parametrize(
    ("code", "expected"), [(errno.EPERM, UnsupportedError), (errno.ENOSPC, StorageError), (errno.EROFS, StorageError)]
)
def test_a_link_that_the_system_refuses_is_a_definite_failure(
    io: LocalFileIO, root: Path, record: Recorder, code: int, expected: type[Exception]
) -> None:
    record.fail("link", OSError(code, os.strerror(code)))
    with pytest.raises(expected):
        io.put_if_absent(f"{root}/v1", b"x")
    assert os.listdir(root) == ["warm"]


def test_an_exclusive_write_spares_the_file_that_is_there(io: LocalFileIO, root: Path) -> None:
    (root / "a").write_bytes(b"theirs")
    with pytest.raises(AlreadyExists):
        io.write_new(f"{root}/a", b"ours")
    assert (root / "a").read_bytes() == b"theirs"


def test_new_files_obey_the_umask(io: LocalFileIO, root: Path) -> None:
    before = os.umask(0o027)
    try:
        io.write_new(f"{root}/a", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(root / "a").st_mode) == 0o640

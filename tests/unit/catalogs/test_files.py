"""File-system tables: the layout of Hadoop tables, the hint that nobody trusts, and what is known after a failure."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import pickle
import uuid
from pathlib import Path
from typing import Any

import pytest

from icefloe.catalogs.catalog import Stale, Swapped, Unknown
from icefloe.catalogs.file_versions import FileVersions
from icefloe.catalogs.files import FilesCatalog
from icefloe.errors import (
    AlreadyExists,
    CommitStateUnknown,
    FormatError,
    InputError,
    NoSuchFile,
    NoSuchTable,
    StorageError,
    UnsupportedError,
)
from icefloe.io.exclusive import ExclusivePut
from icefloe.io.local import LocalFileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.testing.counting_io import CountingFileIO
from icefloe.testing.faulty_io import EXCLUSIVE, Fault, FaultyFileIO
from icefloe.testing.intercepted_io import Effect

FORK = multiprocessing.get_context("fork")
PROCESSES, SWAPS = 8, 20


class Folder:
    """The metadata folder of one table of a catalog."""

    def __init__(self, tmp_path: Path, io: Any = None) -> None:
        self.path = tmp_path / "wh" / "db" / "t" / "metadata"
        self.catalog = FilesCatalog("demo", warehouse=str(tmp_path / "wh"), io=io)

    def stage(self, text: str = "{}") -> str:
        path = self.path / f"{uuid.uuid4()}.metadata.json"
        self.path.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return f"file://{path}"

    def location(self, name: str) -> str:
        return f"file://{self.path}/{name}"

    def head(self) -> str:
        return self.catalog.load("db.t").rsplit("/", 1)[-1]

    def swap(self, text: str = "{}") -> object:
        return self.catalog.swap("db.t", self.catalog.load("db.t"), self.stage(text))

    def names(self) -> list[str]:
        return sorted(path.name for path in self.path.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path)
    made.catalog.create_namespace("db")
    made.catalog.create("db.t", made.stage("1"))
    return made


def test_versions_are_named_as_hadoop_tables_name_them(folder: Folder) -> None:
    assert folder.swap("2") == Swapped(pointer=folder.location("v2.metadata.json"))
    assert folder.names() == ["v1.metadata.json", "v2.metadata.json", "version-hint.text"]
    assert (folder.path / "version-hint.text").read_text() == "2"
    assert (folder.path / "v2.metadata.json").read_text() == "2"


@pytest.mark.parametrize("hint", [None, "", "x", "-1", "0", "1", "2", "99", "1.5", "9" * 30, b"\xff\xfe1"])
def test_a_hint_is_never_trusted(folder: Folder, hint: str | bytes | None) -> None:
    for _ in range(3):
        folder.swap()
    if hint is None:
        (folder.path / "version-hint.text").unlink()
    else:
        (folder.path / "version-hint.text").write_bytes(hint.encode() if isinstance(hint, str) else hint)
    assert folder.head() == "v4.metadata.json"
    assert folder.swap() == Swapped(pointer=folder.location("v5.metadata.json"))


def test_versions_whose_beginning_was_deleted_go_on(folder: Folder) -> None:
    for _ in range(3):
        folder.swap()
    for number in (1, 2):
        (folder.path / f"v{number}.metadata.json").unlink()
    (folder.path / "version-hint.text").write_text("1")
    assert folder.head() == "v4.metadata.json"
    with pytest.raises(AlreadyExists):
        folder.catalog.create("db.t", folder.stage())


@pytest.mark.parametrize("name", ["v2.gz.metadata.json", "v2.metadata.json.gz"])
def test_compressed_versions_of_others_are_read_and_followed(folder: Folder, name: str) -> None:
    (folder.path / name).write_bytes(gzip.compress(b"{}"))
    assert folder.head() == name
    base = folder.location("v1.metadata.json")
    assert folder.catalog.swap("db.t", base, folder.stage()) == Stale()
    assert folder.swap() == Swapped(pointer=folder.location("v3.metadata.json"))


def test_compressed_metadata_has_the_name_that_hadoop_tables_give_it(folder: Folder) -> None:
    data = gzip.compress(b"2", mtime=0)
    (folder.path / "new.gz.metadata.json").write_bytes(data)
    swapped = folder.catalog.swap("db.t", folder.catalog.load("db.t"), folder.location("new.gz.metadata.json"))
    assert swapped == Swapped(pointer=folder.location("v2.gz.metadata.json"))
    assert (folder.path / folder.head()).read_bytes() == data
    assert folder.swap("3") == Swapped(pointer=folder.location("v3.metadata.json"))


def test_version_1_has_one_name_whoever_creates_it(folder: Folder) -> None:
    (folder.path / "new.gz.metadata.json").write_bytes(gzip.compress(b"1") + gzip.compress(b"2"))
    folder.catalog.drop("db.t")
    folder.catalog.create("db.t", folder.location("new.gz.metadata.json"))
    assert (folder.path / "v1.metadata.json").read_bytes() == b"12"


def test_a_swap_links_the_staged_file_and_reads_only_beginnings(tmp_path: Path) -> None:
    """The file was read back and written a second time, which doubled the bytes of each commit."""
    io = CountingFileIO(LocalFileIO())
    folder = Folder(tmp_path, io)
    folder.catalog.create_namespace("db")
    folder.catalog.create("db.t", folder.stage("1"))
    folder.swap("2")
    base, staged = folder.catalog.load("db.t"), folder.stage("x" * 100_000)
    file = Path(staged.removeprefix("file://")).stat().st_ino
    io.reset()
    assert folder.catalog.swap("db.t", base, staged) == Swapped(pointer=folder.location("v3.metadata.json"))
    assert io.count("put_if_absent", "write_new") == 0
    assert io.volume("read", "read_range") < 2000
    assert (folder.path / "v3.metadata.json").stat().st_ino == file
    assert folder.names() == ["v1.metadata.json", "v2.metadata.json", "v3.metadata.json", "version-hint.text"]


def test_metadata_staged_elsewhere_is_copied(folder: Folder, tmp_path: Path) -> None:
    staged = tmp_path / "elsewhere.json"
    staged.write_text("2")
    folder.catalog.swap("db.t", folder.catalog.load("db.t"), f"file://{staged}")
    assert (folder.path / folder.head()).read_text() == "2"


def test_a_version_in_two_files_is_an_error_that_names_both(folder: Folder) -> None:
    (folder.path / "v1.gz.metadata.json").write_bytes(b"")
    with pytest.raises(FormatError, match=r"v1\.gz\.metadata\.json and .*v1\.metadata\.json"):
        folder.catalog.load("db.t")


@pytest.mark.parametrize(
    "name", ["v02.metadata.json", "v2.metadata.json.tmp", "xv2.metadata.json", "v2", "V2.metadata.json"]
)
def test_other_files_are_no_versions(folder: Folder, name: str) -> None:
    (folder.path / name).write_text("{}")
    (folder.path / "version-hint.text").unlink()
    assert folder.head() == "v1.metadata.json"


def test_files_of_lost_attempts_stay_with_their_owner(folder: Folder) -> None:
    base = folder.catalog.load("db.t")
    folder.swap("2")
    staged = folder.stage("mine")
    assert folder.catalog.swap("db.t", base, staged) == Stale()
    assert Path(staged.removeprefix("file://")).read_text() == "mine"


def test_metadata_that_was_not_written_moves_nothing(folder: Folder) -> None:
    with pytest.raises(NoSuchFile):
        folder.catalog.swap("db.t", folder.catalog.load("db.t"), folder.location("never.metadata.json"))
    assert folder.head() == "v1.metadata.json"


class Replacing(LocalFileIO):
    """A storage whose second put replaces the first, as some mounted object stores do."""

    def put_if_absent(self, location: str, data: bytes) -> bool:
        path = Path(location.removeprefix("file://"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return True

    def link_if_absent(self, source: str, location: str) -> bool:
        return self.put_if_absent(location, self.read(source))


def test_storage_without_an_exclusive_put_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    folder = Folder(tmp_path, Replacing())
    folder.catalog.create_namespace("db")
    staged = folder.stage()
    with pytest.raises(UnsupportedError, match="writers create one file"):
        folder.catalog.create("db.t", staged)
    assert [f"file://{folder.path}/{name}" for name in folder.names()] == [staged]


@pytest.mark.parametrize("warehouse", ["s3://bucket/wh", "memory://wh"])
def test_a_warehouse_that_is_no_folder_is_refused(warehouse: str) -> None:
    with pytest.raises(UnsupportedError, match="local disk"):
        FilesCatalog("demo", warehouse=warehouse)


def faulty(tmp_path: Path, fault: Fault) -> tuple[Folder, FaultyFileIO]:
    """A table with version 1 in a catalog whose storage will fail at a put."""
    io = FaultyFileIO(LocalFileIO())
    folder = Folder(tmp_path, io)
    folder.catalog.create_namespace("db")
    folder.catalog.create("db.t", folder.stage("1"))
    io.fault = fault
    return folder, io


def test_a_put_that_failed_is_definite(tmp_path: Path) -> None:
    folder, _ = faulty(tmp_path, Fault(at=1, verbs=EXCLUSIVE))
    with pytest.raises(StorageError):
        folder.swap()
    assert folder.head() == "v1.metadata.json"
    assert folder.swap() == Swapped(pointer=folder.location("v2.metadata.json"))


def test_a_put_that_may_have_worked_is_unknown(tmp_path: Path) -> None:
    folder, _ = faulty(tmp_path, Fault(at=1, effect=Effect.ALL, verbs=EXCLUSIVE))
    outcome = folder.swap("2")
    assert isinstance(outcome, Unknown)
    assert isinstance(outcome.cause, CommitStateUnknown)
    assert folder.head() == "v2.metadata.json"


class Interrupted(LocalFileIO):
    """Interrupts the put of a version, before or after it is done."""

    after: bool | None = None

    def link_if_absent(self, source: str, location: str) -> bool:
        if self.after is False:
            raise KeyboardInterrupt
        won = super().link_if_absent(source, location)
        if self.after is True:
            raise MemoryError
        return won


@pytest.mark.parametrize("after", [True, False])
def test_an_interrupt_during_the_put_is_unknown(tmp_path: Path, after: bool) -> None:
    io = Interrupted()
    folder = Folder(tmp_path, io)
    folder.catalog.create_namespace("db")
    folder.catalog.create("db.t", folder.stage("1"))
    io.after = after
    outcome = folder.swap("2")
    assert isinstance(outcome, Unknown)
    assert isinstance(outcome.cause, MemoryError if after else KeyboardInterrupt)
    assert folder.head() == ("v2.metadata.json" if after else "v1.metadata.json")


class Slow(LocalFileIO):
    """Lets others act between the look and the put of a version."""

    act: Any = None

    def link_if_absent(self, source: str, location: str) -> bool:
        act, self.act = self.act, None
        if act is not None:
            act()
        return super().link_if_absent(source, location)


def test_a_writer_overtaken_by_the_deletion_of_old_versions_does_not_know(tmp_path: Path) -> None:
    io = Slow()
    folder = Folder(tmp_path, io)
    folder.catalog.create_namespace("db")
    folder.catalog.create("db.t", folder.stage("1"))
    others = FilesCatalog("demo", warehouse=str(tmp_path / "wh"))

    def overtake() -> None:
        for _ in range(3):
            others.swap("db.t", others.load("db.t"), folder.stage("theirs"))
        for number in (1, 2, 3):
            (folder.path / f"v{number}.metadata.json").unlink()

    io.act = overtake
    assert isinstance(folder.swap("mine"), Unknown)
    assert folder.head() == "v4.metadata.json"
    assert (folder.path / "v4.metadata.json").read_text() == "theirs"


def test_a_writer_that_comes_after_such_a_deletion_is_stale(folder: Folder) -> None:
    base = folder.catalog.load("db.t")
    for _ in range(3):
        folder.swap()
    for number in (1, 2, 3):
        (folder.path / f"v{number}.metadata.json").unlink()
    assert folder.catalog.swap("db.t", base, folder.stage()) == Stale()
    assert "v2.metadata.json" not in folder.names()


def slow(tmp_path: Path, io: Slow) -> tuple[Folder, FilesCatalog]:
    """A table with two versions, on storage that lets others act before its next put, and a catalog of those others."""
    folder = Folder(tmp_path, io)
    folder.catalog.create_namespace("db")
    folder.catalog.create("db.t", folder.stage("old 1"))
    folder.swap("old 2")
    return folder, FilesCatalog("demo", warehouse=str(tmp_path / "wh"))


def make_again(folder: Folder, others: FilesCatalog, versions: int) -> None:
    """Drop the table and make another one with so many versions."""
    others.drop("db.t")
    others.create("db.t", folder.stage("new 1"))
    for number in range(2, versions + 1):
        others.swap("db.t", others.load("db.t"), folder.stage(f"new {number}"))


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("versions", [1, 2, 3])
def test_a_commit_that_lands_on_a_table_made_again_meanwhile_is_withdrawn(
    tmp_path: Path, versions: int, compressed: bool
) -> None:
    """Its version became the head of the new table, at once or when that came as far, and the new one was lost."""
    io = Slow()
    folder, others = slow(tmp_path, io)
    io.act = lambda: make_again(folder, others, versions)
    late = folder.stage("late")
    if compressed:
        Path(late.removeprefix("file://")).write_bytes(gzip.compress(b"late"))
    assert folder.catalog.swap("db.t", folder.catalog.load("db.t"), late) == Stale()
    (folder.path / "version-hint.text").unlink()
    assert (folder.path / folder.head()).read_text() == f"new {versions}"
    for number in range(versions + 1, 6):
        assert folder.swap(f"new {number}") == Swapped(pointer=folder.location(f"v{number}.metadata.json"))


def test_a_commit_that_lands_after_its_table_was_dropped_brings_nothing_back(tmp_path: Path) -> None:
    """After a purge its files are gone, so what it brought back was a table that nobody could read or make anew."""
    io = Slow()
    folder, others = slow(tmp_path, io)
    io.act = lambda: others.drop("db.t")
    with pytest.raises(NoSuchTable):
        folder.swap("late")
    assert not any(name.startswith("v") for name in folder.names())


def test_a_late_version_that_others_went_on_from_stays_and_is_unknown(tmp_path: Path) -> None:
    """Whoever is told that it did not land deletes its files, which the next version names."""

    class Followed(Slow):
        def read_range(self, location: str, offset: int, length: int) -> bytes:
            if location.endswith("/v3.metadata.json"):
                others.swap("db.t", others.load("db.t"), folder.stage("theirs"))
            return super().read_range(location, offset, length)

    io = Followed()
    folder, others = slow(tmp_path, io)
    io.act = lambda: make_again(folder, others, 2)
    outcome = folder.swap("late")
    assert isinstance(outcome, Unknown)
    assert isinstance(outcome.cause, CommitStateUnknown)
    assert folder.head() == "v4.metadata.json"
    assert "v3.metadata.json" in folder.names()


def test_a_table_registered_again_is_not_the_version_that_had_its_number(folder: Folder) -> None:
    """A handle that stood at version 1 took the state of version 3 for its own, and its commit lost two others."""
    old = folder.catalog.load("db.t")
    folder.swap("2")
    folder.swap("3")
    folder.catalog.register("db.t", folder.catalog.drop("db.t"))
    assert folder.catalog.load("db.t") == old
    assert folder.catalog.swap("db.t", old, folder.stage("late")) == Stale()
    assert (folder.path / folder.head()).read_text() == "3"


def test_a_pointer_travels_to_another_process(folder: Folder) -> None:
    old = pickle.loads(pickle.dumps(folder.catalog.load("db.t")))
    assert isinstance(folder.catalog.swap("db.t", old, folder.stage("2")), Swapped)
    make_again(folder, folder.catalog, 1)
    assert folder.catalog.swap("db.t", old, folder.stage("late")) == Stale()


def test_a_hint_that_can_be_neither_read_nor_written_is_no_failure(folder: Folder) -> None:
    (folder.path / "version-hint.text").unlink()
    (folder.path / "version-hint.text").mkdir()
    assert folder.swap() == Swapped(pointer=folder.location("v2.metadata.json"))
    assert folder.head() == "v2.metadata.json"
    assert folder.names() == ["v1.metadata.json", "v2.metadata.json", "version-hint.text"]


@pytest.mark.parametrize("die_at", range(1, 6))
def test_a_table_that_is_half_dropped_still_opens(tmp_path: Path, die_at: int) -> None:
    folder, io = faulty(tmp_path, Fault(at=10_000))
    for _ in range(3):
        folder.swap("old")
    folder.swap("last")
    io.fault, io.calls = Fault(at=die_at), 0
    try:
        folder.catalog.drop("db.t")
    except StorageError:
        head = folder.catalog.load("db.t")
        assert Path(head.removeprefix("file://")).read_text() == "last"
    else:
        assert folder.catalog.list_tables("db") == ()


def test_a_commit_during_a_drop_is_dropped_too(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.catalog.create_namespace("db")
    folder.catalog.create("db.t", folder.stage("1"))

    class Committing(LocalFileIO):
        struck = False

        def delete(self, locations: Any) -> None:
            if not self.struck:
                self.struck = True
                folder.swap("2")
            super().delete(locations)

    dropping = FilesCatalog("demo", warehouse=str(tmp_path / "wh"), io=Committing())
    kept = dropping.drop("db.t")
    assert Path(kept.removeprefix("file://")).read_text() == "2"
    with pytest.raises(NoSuchTable):
        folder.catalog.load("db.t")
    assert folder.names() == [kept.rsplit("/", 1)[-1]]


def test_a_table_lives_in_the_folder_of_its_name(folder: Folder, tmp_path: Path) -> None:
    elsewhere = tmp_path / "x.metadata.json"
    elsewhere.write_text("{}")
    for location in (f"file://{elsewhere}", folder.stage()):
        with pytest.raises(InputError, match="folder of its name"):
            folder.catalog.register("db.other", location)


def test_a_folder_metadata_is_not_a_namespace(folder: Folder) -> None:
    for name in ("db.metadata", "db.t.metadata.x"):
        with pytest.raises(InputError, match="metadata"):
            folder.catalog.create_namespace(name)
    with pytest.raises(InputError, match=r"db\.t is a table"):
        folder.catalog.create_namespace("db.t.inner")
    with pytest.raises(AlreadyExists, match="table"):
        folder.catalog.create_namespace("db.t")
    assert folder.catalog.list_namespaces("db") == ()


def test_a_namespace_is_never_taken_for_a_table(folder: Folder) -> None:
    folder.catalog.create_namespace("db.inner")
    path = folder.path.parents[1] / "inner" / "x.json"
    path.write_text("{}")
    with pytest.raises(AlreadyExists):
        folder.catalog.create("db.inner", f"file://{path}")


def test_a_catalog_travels_to_another_process(folder: Folder) -> None:
    copy = pickle.loads(pickle.dumps(folder.catalog))
    assert copy.load("db.t") == folder.catalog.load("db.t")


def test_versions_work_on_any_storage_with_an_exclusive_put() -> None:
    io = MemoryFileIO()
    versions = FileVersions(io, "memory://b/t", ExclusivePut(io))
    for number in (1, 2, 3):
        io.write_new(f"memory://b/t/metadata/{number}.json", b"{}")
    versions.create("memory://b/t/metadata/1.json", keep=False)
    for number in (1, 2):
        assert versions.advance(
            f"memory://b/t/metadata/v{number}.metadata.json", f"memory://b/t/metadata/{number + 1}.json"
        ) == Swapped(pointer=f"memory://b/t/metadata/v{number + 1}.metadata.json")
    assert io.read("memory://b/t/metadata/version-hint.text") == b"3"
    assert len(list(io.list("memory://b/t"))) == 4


def test_no_swap_between_processes_is_lost(folder: Folder) -> None:
    start = FORK.Barrier(PROCESSES)
    folder.swap("0")

    def work(worker: int) -> None:
        acknowledged = 0
        start.wait()
        while acknowledged < SWAPS:
            base = folder.catalog.load("db.t")
            count = int(Path(base.removeprefix("file://")).read_text())
            acknowledged += isinstance(folder.catalog.swap("db.t", base, folder.stage(str(count + 1))), Swapped)
        os._exit(0)

    processes = [FORK.Process(target=work, args=(worker,)) for worker in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    head = folder.catalog.load("db.t")
    assert Path(head.removeprefix("file://")).read_text() == str(PROCESSES * SWAPS)
    assert head.endswith(f"/v{PROCESSES * SWAPS + 2}.metadata.json")

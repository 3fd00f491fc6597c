"""Built-in storage, and the counting and faulty wrappers that tests are built on."""

from __future__ import annotations

import errno
import gc
import os
import pickle
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import fs

from icefloe.errors import CommitStateUnknown, InputError, StorageError, UnsupportedError
from icefloe.io.arrow_fs import ArrowFileIO
from icefloe.io.contained import Contained
from icefloe.io.file_io import FileIO
from icefloe.io.folders import DurableFolders
from icefloe.io.local import LocalFileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.io.object_store import ObjectStoreFileIO
from icefloe.testing.counting_io import Call, CountingFileIO
from icefloe.testing.crash_io import CrashFileIO, Fuse
from icefloe.testing.faulty_io import CHANGES, EXIT_CODE, READS, Fault, FaultyFileIO
from icefloe.testing.intercepted_io import Effect


def test_a_memory_store_takes_only_its_own_locations() -> None:
    with pytest.raises(InputError):
        MemoryFileIO().read("file:///a")


def test_memory_is_not_handed_to_another_process() -> None:
    with pytest.raises(UnsupportedError, match="one process"):
        pickle.dumps(MemoryFileIO())


def test_storage_of_a_table_stays_confined_in_another_process(tmp_path: Path) -> None:
    for files in (LocalFileIO(), ArrowFileIO(fs.LocalFileSystem(), root="file:///")):
        io = Contained(files, f"file://{tmp_path}/t")
        location = f"file://{tmp_path}/t/{type(files).__name__}"
        io.write_new(location, b"1")
        copy = pickle.loads(pickle.dumps(io))
        assert copy.read(location) == b"1"
        with pytest.raises(InputError, match="outside"):
            copy.write_new(f"file://{tmp_path}/other", b"1")


def test_what_is_durable_is_found_out_again_in_another_process(tmp_path: Path) -> None:
    folders = DurableFolders()
    folders.ensure(str(tmp_path / "a"))
    assert len(folders._known) > 0
    assert len(pickle.loads(pickle.dumps(folders))._known) == 0


def test_memory_keeps_its_own_copy_of_the_bytes() -> None:
    io, data = MemoryFileIO(), bytearray(b"abc")
    io.write_new("memory://t/a", data)  # type: ignore[arg-type]
    data[0] = 0
    assert io.read("memory://t/a") == b"abc"


def test_arrow_can_scan_a_folder_in_memory() -> None:
    io = MemoryFileIO()
    file_system, path = io.arrow_path("memory://t/data")
    ds.write_dataset(pa.table({"id": [1, 2, 3]}), path, format="parquet", filesystem=file_system)
    assert ds.dataset(path, filesystem=file_system).to_table().num_rows == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "location"),
    [
        (MemoryFileIO, "memory://t/a"),
        (partial(ObjectStoreFileIO, "s3", {"s3.endpoint": "http://127.0.0.1:1"}), "s3://bucket/a"),
        (lambda: CrashFileIO(MemoryFileIO(), Fuse(None)), "memory://t/a"),
    ],
    ids=["memory", "object store", "struck"],
)
def test_storage_that_nobody_uses_any_more_is_freed(make: Callable[[], FileIO], location: str) -> None:
    """Storage and Arrow's view of it held each other, so that every table of an object store stayed in memory."""
    io = make()
    view, _ = io.arrow_path(location)
    assert view == io.arrow_path(location)[0]
    seen = weakref.ref(io)
    del io, view
    gc.collect()
    assert seen() is None


def test_every_file_of_every_call_is_counted() -> None:
    io = CountingFileIO(MemoryFileIO())
    io.write_many([("memory://t/a", b"1"), ("memory://t/b", b"22")])
    io.put_if_absent("memory://t/c", b"333")
    io.link_if_absent("memory://t/c", "memory://t/d")
    io.read("memory://t/b")
    io.read_range("memory://t/c", 1, 2)
    io.delete(["memory://t/a", "memory://t/b"])
    assert io.calls == [
        Call(verb="write_new", location="memory://t/a", size=1),
        Call(verb="write_new", location="memory://t/b", size=2),
        Call(verb="put_if_absent", location="memory://t/c", size=3),
        Call(verb="link_if_absent", location="memory://t/d"),
        Call(verb="read", location="memory://t/b", size=2),
        Call(verb="read_range", location="memory://t/c", size=2),
        Call(verb="delete", location="memory://t/a"),
        Call(verb="delete", location="memory://t/b"),
    ]
    assert io.count("write_new", "put_if_absent") == 3
    assert io.volume("write_new", "put_if_absent") == 6
    io.reset()
    assert io.calls == []


def test_a_fault_strikes_once_at_its_turn() -> None:
    io = FaultyFileIO(MemoryFileIO(), Fault(at=2, code=errno.ENOSPC))
    io.write_new("memory://t/a", b"1")
    io.read("memory://t/a")
    with pytest.raises(StorageError, match="call 2: write_new") as caught:
        io.write_new("memory://t/b", b"2")
    assert caught.value.errno == errno.ENOSPC
    assert io.hit
    assert not io.exists("memory://t/b")
    io.write_new("memory://t/b", b"2")


@pytest.mark.parametrize(("effect", "left"), [(Effect.NONE, None), (Effect.HALF, b"01"), (Effect.ALL, b"0123")])
def test_a_fault_leaves_as_much_as_its_effect_says(effect: Effect, left: bytes | None) -> None:
    io = FaultyFileIO(MemoryFileIO(), Fault(at=1, effect=effect))
    with pytest.raises(StorageError):
        io.write_new("memory://t/a", b"0123")
    assert (io.read("memory://t/a") if io.exists("memory://t/a") else None) == left


def test_a_put_that_fails_after_its_effect_is_unknown() -> None:
    io = FaultyFileIO(MemoryFileIO(), Fault(at=1, effect=Effect.ALL))
    with pytest.raises(CommitStateUnknown):
        io.put_if_absent("memory://t/a", b"1")
    assert io.exists("memory://t/a")


def test_a_fault_between_many_files_undoes_them() -> None:
    io = FaultyFileIO(MemoryFileIO(), Fault(at=2))
    with pytest.raises(StorageError):
        io.write_many([("memory://t/a", b"1"), ("memory://t/b", b"2")])
    assert list(io.list("memory://t")) == []


def test_a_fault_can_strike_reads() -> None:
    io = FaultyFileIO(MemoryFileIO(), Fault(at=2, verbs=CHANGES | READS))
    io.write_new("memory://t/a", b"1")
    with pytest.raises(StorageError, match="call 2: read"):
        io.read("memory://t/a")


def test_counting_on_until_a_fault_is_not_hit_visits_every_call() -> None:
    met = 0
    while True:
        io = FaultyFileIO(MemoryFileIO(), Fault(at=met + 1))
        try:
            io.write_new("memory://t/a", b"1")
            io.put_if_absent("memory://t/b", b"2")
            io.delete(["memory://t/a"])
        except StorageError:
            met += 1
            continue
        assert not io.hit
        break
    assert met == 3


@pytest.mark.parametrize(("effect", "names"), [(Effect.NONE, ["a"]), (Effect.ALL, ["a", "b"])])
def test_a_deadly_fault_ends_the_process_at_once(tmp_path: Path, effect: Effect, names: list[str]) -> None:
    child = os.fork()
    if child == 0:
        io = FaultyFileIO(LocalFileIO(), Fault(at=2, effect=effect, die=True))
        io.write_many([(f"{tmp_path}/a", b"1"), (f"{tmp_path}/b", b"2"), (f"{tmp_path}/c", b"3")])
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == EXIT_CODE
    assert sorted(os.listdir(tmp_path)) == names

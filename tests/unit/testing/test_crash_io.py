"""Strikes: which calls they fit, what is left of the call, and what a dead process can still do."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.catalogs.catalog import Unknown
from icefloe.catalogs.memory import MemoryCatalog
from icefloe.errors import CommitStateUnknown, NoSuchFile, StorageError
from icefloe.io.memory import MemoryFileIO
from icefloe.testing.crash_io import CrashFileIO, CrashPointers, Died, Fuse, Kind, Strike
from icefloe.testing.intercepted_io import Effect

NAME = ("db", "t")
A, B = "memory://t/a", "memory://t/b"


def storage(strike: Strike) -> tuple[CrashFileIO, MemoryFileIO]:
    inner = MemoryFileIO()
    inner.write_new(A, b"1234")
    return CrashFileIO(inner, Fuse(strike)), inner


def pointers(strike: Strike) -> tuple[CrashPointers, MemoryCatalog]:
    inner = MemoryCatalog("test")
    inner.create_namespace("db")
    inner.create(NAME, "old")
    return CrashPointers(inner, Fuse(strike)), inner


@pytest.mark.parametrize(("effect", "left"), [(Effect.NONE, None), (Effect.HALF, b"56"), (Effect.ALL, b"5678")])
def test_as_much_of_a_write_is_left_as_the_strike_says(effect, left):
    io, inner = storage(Strike(at=1, kind=Kind.ERROR, effect=effect))
    with pytest.raises(StorageError, match="call 1"):
        io.write_new(B, b"5678")
    assert (inner.read(B) if inner.exists(B) else None) == left


def test_a_dead_process_does_nothing_more():
    io, inner = storage(Strike(at=2, kind=Kind.DEATH))
    with pytest.raises(Died):
        io.write_many([(B, b"5"), ("memory://t/c", b"6")])
    assert inner.exists(B)
    assert not inner.exists("memory://t/c")
    for late in (lambda: io.delete([A]), lambda: io.read(A), lambda: io.write_new("memory://t/d", b"")):
        with pytest.raises(Died):
            late()
    assert inner.read(A) == b"1234"


def test_an_error_takes_back_the_files_written_with_it():
    io, inner = storage(Strike(at=2, kind=Kind.ERROR))
    with pytest.raises(StorageError):
        io.write_many([(B, b"5"), ("memory://t/c", b"6")])
    assert not inner.exists(B)


def test_only_reads_miss_a_file():
    io, _ = storage(Strike(at=1, kind=Kind.MISSING))
    io.write_new(B, b"5")
    assert io.exists(A)
    with pytest.raises(NoSuchFile):
        io.read(A)
    assert io.read(A) == b"1234"


@pytest.mark.parametrize(("effect", "pointer"), [(Effect.NONE, "old"), (Effect.ALL, "new")])
def test_a_swap_of_unknown_outcome_has_landed_or_not(effect, pointer):
    catalog, inner = pointers(Strike(at=1, kind=Kind.UNKNOWN, effect=effect))
    outcome = catalog.swap(NAME, "old", "new")
    assert isinstance(outcome, Unknown)
    assert isinstance(outcome.cause, TimeoutError)
    assert inner.load(NAME) == pointer
    assert catalog.swaps == [("old", "new")]


def test_an_interrupted_swap_is_an_answer_and_an_interrupt_is_not():
    catalog, _ = pointers(Strike(at=1, kind=Kind.INTERRUPTED_SWAP))
    outcome = catalog.swap(NAME, "old", "new")
    assert isinstance(outcome, Unknown)
    assert isinstance(outcome.cause, KeyboardInterrupt)
    catalog, _ = pointers(Strike(at=2, kind=Kind.INTERRUPT))
    catalog.load(NAME)
    with pytest.raises(KeyboardInterrupt):
        catalog.swap(NAME, "old", "new")


def test_a_put_of_unknown_outcome_raises():
    io, inner = storage(Strike(at=1, kind=Kind.UNKNOWN, effect=Effect.ALL))
    with pytest.raises(CommitStateUnknown):
        io.put_if_absent(B, b"5")
    assert inner.exists(B)


def test_a_swap_that_raises_an_error_has_not_moved_the_pointer():
    assert "swap" in Strike(at=1, kind=Kind.ERROR).verbs
    assert "swap" not in Strike(at=1, kind=Kind.ERROR, effect=Effect.ALL).verbs


def test_a_power_cut_tears_what_arrow_wrote_and_nobody_synced():
    io, inner = storage(Strike(at=99, kind=Kind.DEATH))
    for location in (B, "memory://t/c"):
        filesystem, path = io.arrow_path(location)
        pq.write_table(pa.table({"x": [1, 2, 3]}), path, filesystem=filesystem)
    io.sync([B])
    whole = inner.read("memory://t/c")
    io.power_cut()
    assert inner.read(B) == whole
    assert inner.read("memory://t/c") == whole[: len(whole) // 2]


def test_the_files_that_arrow_opens_and_closes_are_counted():
    io, inner = storage(Strike(at=2, kind=Kind.DEATH, effect=Effect.HALF))
    filesystem, path = io.arrow_path(B)
    pq.write_table(pa.table({"x": [1]}), path, filesystem=filesystem)
    filesystem, path = io.arrow_path("memory://t/c")
    with pytest.raises(Died):
        pq.write_table(pa.table({"x": [1]}), path, filesystem=filesystem)
    assert io.fuse.hit == "output"
    assert 0 < inner.size("memory://t/c") < inner.size(B)

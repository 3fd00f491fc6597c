"""The swap of the SQL catalog: exactly once between processes, and honest about what it does not know."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import event

from icefloe.catalogs.catalog import Stale, Swapped, Unknown
from icefloe.catalogs.sql import SqlCatalog
from icefloe.errors import CommitStateUnknown, NoSuchTable, StorageError

PROCESSES, SWAPS = 8, 25
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def catalog(path: Path) -> SqlCatalog:
    catalog = SqlCatalog("demo", f"sqlite:///{path}")
    catalog.create_namespace("db")
    catalog.create("db.t", "0")
    return catalog


def without_its_where(catalog: SqlCatalog, base: str, new: str) -> object:
    """A swap that does not check: what the control must show to lose commits."""
    catalog.connections.get().exec_driver_sql("UPDATE iceberg_tables SET metadata_location = ?", (new,))
    return Swapped()


def with_its_where(catalog: SqlCatalog, base: str, new: str) -> object:
    return catalog.swap("db.t", base, new)


def lost(catalog: SqlCatalog, swap: Callable[[SqlCatalog, str, str], object]) -> int:
    """How many acknowledged swaps of many processes the final pointer does not count."""
    start, queue = FORK.Barrier(PROCESSES), FORK.SimpleQueue()

    def work(worker: int) -> None:
        acknowledged = 0
        start.wait()
        while acknowledged < SWAPS:
            base = catalog.load("db.t")
            new = f"{int(base.split('-')[0]) + 1}-{worker}"
            acknowledged += swap(catalog, base, new) == Swapped()
        queue.put(acknowledged)

    processes = [FORK.Process(target=work, args=(worker,)) for worker in range(PROCESSES)]
    for process in processes:
        process.start()
    acknowledged = sum(queue.get() for _ in processes)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert acknowledged == PROCESSES * SWAPS
    return acknowledged - int(catalog.load("db.t").split("-")[0])


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_no_swap_between_processes_is_lost(catalog: SqlCatalog, path: Path, journal: str) -> None:
    catalog.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute(f"PRAGMA journal_mode = {journal}").fetchone() == (journal,)
    connection.close()
    assert lost(catalog, with_its_where) == 0


def test_the_harness_catches_a_swap_that_does_not_check(catalog: SqlCatalog) -> None:
    assert lost(catalog, without_its_where) > 0


def test_the_pointer_before_is_kept_beside_it(catalog: SqlCatalog, path: Path) -> None:
    catalog.swap("db.t", "0", "1")
    rows = sqlite3.connect(path).execute("SELECT * FROM iceberg_tables").fetchall()
    assert rows == [("demo", "db", "t", "1", "0", "TABLE")]


def broken(catalog: SqlCatalog, error: BaseException, *, when: str) -> None:
    """Make the next UPDATE raise, before or after the database has run it."""
    struck: list[bool] = []

    def strike(connection: object, cursor: object, statement: str, *others: object) -> None:
        if statement.startswith("UPDATE") and struck == []:
            struck.append(True)
            raise error

    event.listen(catalog.connections.engine, f"{when}_cursor_execute", strike)


@pytest.mark.parametrize(
    "error", [sqlite3.OperationalError("disk I/O error"), OSError("reset"), MemoryError(), KeyboardInterrupt()]
)
def test_an_error_after_the_update_is_unknown_and_it_landed(catalog: SqlCatalog, error: BaseException) -> None:
    broken(catalog, error, when="after")
    outcome = catalog.swap("db.t", "0", "1")
    assert isinstance(outcome, Unknown)
    assert getattr(outcome.cause, "orig", outcome.cause) is error
    assert catalog.load("db.t") == "1"
    assert catalog.swap("db.t", "1", "2") == Swapped()


def test_an_error_as_the_update_is_sent_is_unknown_and_it_did_not_land(catalog: SqlCatalog) -> None:
    broken(catalog, OSError("reset"), when="before")
    assert isinstance(catalog.swap("db.t", "0", "1"), Unknown)
    assert catalog.load("db.t") == "0"
    assert catalog.swap("db.t", "0", "1") == Swapped()


def test_a_create_of_unknown_outcome_says_so(catalog: SqlCatalog) -> None:
    def strike(connection: object, cursor: object, statement: str, *others: object) -> None:
        if statement.startswith("INSERT"):
            raise OSError("reset")

    event.listen(catalog.connections.engine, "after_cursor_execute", strike)
    with pytest.raises(CommitStateUnknown, match=r"create db\.u"):
        catalog.create("db.u", "0")
    assert catalog.load("db.u") == "0"


def locked(path: Path) -> sqlite3.Connection:
    """A connection of another program that holds the database's write lock."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE iceberg_tables SET previous_metadata_location = 'x'")
    return other


def test_a_locked_database_is_stale_and_nothing_is_lost(catalog: SqlCatalog, path: Path) -> None:
    hurried = SqlCatalog("demo", f"sqlite:///{path}", busy_seconds=0.05)
    other = locked(path)
    assert hurried.swap("db.t", "0", "1") == Stale()
    assert hurried.load("db.t") == "0"
    with pytest.raises(StorageError, match="another program holds it"):
        hurried.create("db.u", "0")
    other.execute("ROLLBACK")
    assert hurried.swap("db.t", "0", "1") == Swapped()


def test_a_reader_that_blocks_the_commit_makes_it_stale(catalog: SqlCatalog, path: Path) -> None:
    catalog.close()
    other = sqlite3.connect(path, isolation_level=None)
    assert other.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    hurried = SqlCatalog("demo", f"sqlite:///{path}", busy_seconds=0.05)
    other.execute("BEGIN")
    other.execute("SELECT * FROM iceberg_tables").fetchall()  # a shared lock, kept: the write cannot reach the file
    assert hurried.swap("db.t", "0", "1") == Stale()
    other.execute("COMMIT")
    assert hurried.load("db.t") == "0"
    assert hurried.swap("db.t", "0", "1") == Swapped()


def test_a_lock_that_is_let_go_in_time_is_waited_for(catalog: SqlCatalog, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.2, other.execute, ["ROLLBACK"]).start()
    assert catalog.swap("db.t", "0", "1") == Swapped()


def test_a_database_that_may_not_be_written_is_a_definite_failure(catalog: SqlCatalog) -> None:
    catalog.connections.get().exec_driver_sql("PRAGMA query_only = ON")
    with pytest.raises(StorageError, match="readonly"):
        catalog.swap("db.t", "0", "1")
    assert catalog.load("db.t") == "0"


def test_a_table_dropped_by_another_is_missing_not_stale(catalog: SqlCatalog, path: Path) -> None:
    SqlCatalog("demo", f"sqlite:///{path}").drop("db.t")
    with pytest.raises(NoSuchTable):
        catalog.swap("db.t", "0", "1")


def test_a_forked_child_opens_its_own_connection(catalog: SqlCatalog) -> None:
    in_parent = catalog.connections.get()
    child = os.fork()
    if child == 0:
        own = catalog.connections.get() is not in_parent and catalog.connections.get() is catalog.connections.get()
        swapped = catalog.swap("db.t", "0", "from the child") == Swapped()
        os._exit(0 if own and swapped else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert catalog.connections.get() is in_parent
    assert catalog.load("db.t") == "from the child"
    assert catalog.swap("db.t", "from the child", "from the parent") == Swapped()


def test_each_thread_has_a_connection_of_its_own(catalog: SqlCatalog) -> None:
    seen: list[object] = [catalog.connections.get()]
    thread = threading.Thread(target=lambda: seen.append(catalog.connections.get()))
    thread.start()
    thread.join()
    assert catalog.connections.get() is seen[0]
    assert seen[1] is not seen[0]


def test_a_catalog_travels_to_another_process(catalog: SqlCatalog) -> None:
    copy = pickle.loads(pickle.dumps(catalog))
    assert copy.load("db.t") == "0"
    assert repr(copy) == repr(catalog)


def test_a_change_of_folder_does_not_change_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = SqlCatalog("demo", "sqlite:///deep/er/cat.db")
    catalog.create_namespace("db")
    catalog.close()
    monkeypatch.chdir("/")
    assert catalog.namespace_exists("db")
    assert (tmp_path / "deep" / "er" / "cat.db").is_file()


def test_many_processes_may_make_the_same_new_database(path: Path) -> None:
    start = FORK.Barrier(PROCESSES)

    def work(worker: int) -> None:
        start.wait()
        SqlCatalog("demo", f"sqlite:///{path}").create_namespace(f"n{worker}")

    processes = [FORK.Process(target=work, args=(worker,)) for worker in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    assert len(SqlCatalog("demo", f"sqlite:///{path}").list_namespaces()) == PROCESSES

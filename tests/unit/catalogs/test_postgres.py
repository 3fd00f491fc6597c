"""The SQL catalog on a PostgreSQL server: what is known after each way to fail, and a database shared with others."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog as OtherSqlCatalog
from sqlalchemy import event

from icefloe.catalogs.catalog import Stale, Swapped, Unknown
from icefloe.catalogs.sql import SqlCatalog
from icefloe.errors import AlreadyExists, CommitStateUnknown, InputError, NoSuchTable, StorageError
from support.servers.postgres import PostgresServer

FORK = multiprocessing.get_context("fork")
PROCESSES, SWAPS = 8, 25
ROW = "SELECT metadata_location FROM iceberg_tables FOR UPDATE"


@pytest.fixture
def database(postgres_server: PostgresServer) -> str:
    return postgres_server.new_database()


@pytest.fixture
def uri(postgres_server: PostgresServer, database: str) -> str:
    return postgres_server.uri(database)


@pytest.fixture
def other(postgres_server: PostgresServer, database: str) -> psycopg.Connection:
    """A connection of another program to the same database."""
    return postgres_server.connect(database)


@pytest.fixture
def catalog(uri: str) -> SqlCatalog:
    catalog = SqlCatalog("demo", uri)
    catalog.create_namespace("db")
    catalog.create("db.t", "0")
    return catalog


def backend(catalog: SqlCatalog) -> int:
    return int(catalog.connections.get().exec_driver_sql("SELECT pg_backend_pid()").scalar() or 0)


def kill(other: psycopg.Connection, pid: int) -> None:
    """End a session of the server, and wait until it is gone."""
    other.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))


def at(catalog: SqlCatalog, statement: str, act: Callable[[], None], *, when: str = "before") -> None:
    """Do something once, just before or after a statement runs."""
    done: list[bool] = []

    def strike(connection: object, cursor: object, said: str, *others: object) -> None:
        if said.startswith(statement) and len(done) == 0:
            done.append(True)
            act()

    event.listen(catalog.connections.engine, f"{when}_cursor_execute", strike)


def raising(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def waits_for_a_lock(other: psycopg.Connection) -> None:
    """Return when some session waits for a lock."""
    for _ in range(1000):
        other.execute("SELECT pg_stat_clear_snapshot()")  # else a transaction sees what it saw first
        if other.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchone() != (0,):
            return
        time.sleep(0.01)
    raise AssertionError("nobody waits")


def test_a_connection_that_died_while_it_was_idle_is_replaced(catalog: SqlCatalog, other: psycopg.Connection) -> None:
    kill(other, backend(catalog))
    assert catalog.load("db.t") == "0"
    kill(other, backend(catalog))
    assert catalog.swap("db.t", "0", "1") == Swapped()
    kill(other, backend(catalog))
    catalog.create("db.u", "0")
    assert catalog.list_tables("db") == (("db", "t"), ("db", "u"))


def test_a_connection_lost_before_the_commit_changes_nothing(catalog: SqlCatalog, other: psycopg.Connection) -> None:
    killed: list[int] = []

    def strike(connection: object, cursor: object, said: str, *others: object) -> None:
        if said.startswith("UPDATE"):
            killed.append(backend(catalog))
            kill(other, killed[-1])

    event.listen(catalog.connections.engine, "before_cursor_execute", strike)
    with pytest.raises(StorageError):
        catalog.swap("db.t", "0", "1")
    assert len(set(killed)) == 2  # it was tried once more on a new connection
    assert catalog.load("db.t") == "0"


def test_a_connection_lost_as_the_commit_is_sent_leaves_it_unknown(
    catalog: SqlCatalog, other: psycopg.Connection
) -> None:
    pid = backend(catalog)
    at(catalog, "COMMIT", lambda: kill(other, pid))
    outcome = catalog.swap("db.t", "0", "1")
    assert isinstance(outcome, Unknown)
    assert catalog.load("db.t") == "0"
    assert catalog.swap("db.t", "0", "1") == Swapped()


@pytest.mark.parametrize("error", [OSError("reset"), MemoryError(), KeyboardInterrupt()])
def test_an_error_after_the_commit_is_unknown_and_it_landed(catalog: SqlCatalog, error: BaseException) -> None:
    at(catalog, "COMMIT", raising(error), when="after")
    outcome = catalog.swap("db.t", "0", "1")
    assert isinstance(outcome, Unknown)
    assert outcome.cause is error
    assert catalog.load("db.t") == "1"


def test_an_interrupt_before_the_commit_is_handed_on_as_unknown(catalog: SqlCatalog) -> None:
    at(catalog, "UPDATE", raising(KeyboardInterrupt()), when="after")
    outcome = catalog.swap("db.t", "0", "1")
    assert isinstance(outcome, Unknown)
    assert isinstance(outcome.cause, KeyboardInterrupt)
    assert catalog.load("db.t") == "0"


@pytest.mark.parametrize("error", [psycopg.errors.DeadlockDetected(), psycopg.errors.SerializationFailure()])
@pytest.mark.parametrize("statement", ["UPDATE", "COMMIT"])
def test_a_rollback_by_the_server_is_stale(catalog: SqlCatalog, statement: str, error: psycopg.Error) -> None:
    at(catalog, statement, raising(error))
    assert catalog.swap("db.t", "0", "1") == Stale()
    assert catalog.load("db.t") == "0"
    assert catalog.swap("db.t", "0", "1") == Swapped()


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_who_waits_for_the_row_and_finds_it_changed_is_stale(
    catalog: SqlCatalog, uri: str, other: psycopg.Connection, isolation: str
) -> None:
    other.execute(f"ALTER DATABASE {other.info.dbname} SET default_transaction_isolation = '{isolation}'")
    patient = SqlCatalog("demo", uri)
    outcomes: list[object] = []
    with other.transaction():
        other.execute("UPDATE iceberg_tables SET metadata_location = 'theirs'")
        thread = threading.Thread(target=lambda: outcomes.append(patient.swap("db.t", "0", "1")))
        thread.start()
        waits_for_a_lock(other)
    thread.join()
    assert outcomes == [Stale()]
    assert catalog.load("db.t") == "theirs"


def test_who_waits_too_long_for_the_row_is_stale(catalog: SqlCatalog, uri: str, other: psycopg.Connection) -> None:
    hurried = SqlCatalog("demo", uri, busy_seconds=0.1)
    with other.transaction():
        other.execute(ROW)
        assert hurried.swap("db.t", "0", "1") == Stale()
        with pytest.raises(StorageError, match="another program holds it"):
            hurried.drop("db.t")
    assert hurried.swap("db.t", "0", "1") == Swapped()


def test_a_session_ended_while_it_waits_tries_once_more(
    catalog: SqlCatalog, uri: str, other: psycopg.Connection
) -> None:
    outcomes: list[object] = []
    pids: list[int] = []

    def work() -> None:
        pids.append(backend(catalog))
        outcomes.append(catalog.swap("db.t", "0", "1"))

    with other.transaction():
        other.execute(ROW)
        thread = threading.Thread(target=work)
        thread.start()
        waits_for_a_lock(other)
        kill(other, pids[0])
        waits_for_a_lock(other)
    thread.join()
    assert outcomes == [Swapped()]
    assert catalog.load("db.t") == "1"


def test_a_change_of_unknown_outcome_says_so(catalog: SqlCatalog) -> None:
    at(catalog, "COMMIT", raising(OSError("reset")), when="after")
    with pytest.raises(CommitStateUnknown, match=r"create db\.u"):
        catalog.create("db.u", "0")
    assert catalog.load("db.u") == "0"


def test_properties_are_set_all_or_none(catalog: SqlCatalog) -> None:
    catalog.set_namespace_properties("db", {"a": "1", "b": "1"})
    with pytest.raises(StorageError, match="too long"):
        catalog.set_namespace_properties("db", {"a": "2", "b": "x" * 2000}, [])
    assert catalog.namespace_properties("db") == {"a": "1", "b": "1"}


def test_what_the_server_refuses_is_a_definite_failure(
    catalog: SqlCatalog, uri: str, other: psycopg.Connection
) -> None:
    with pytest.raises(StorageError, match="too long"):
        catalog.swap("db.t", "0", "x" * 2000)
    other.execute(f"ALTER DATABASE {other.info.dbname} SET default_transaction_read_only = on")
    with pytest.raises(StorageError, match="read-only"):
        SqlCatalog("demo", uri).swap("db.t", "0", "1")
    assert catalog.load("db.t") == "0"


def test_a_server_that_is_not_there_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="check the file or the server"):
        SqlCatalog("demo", f"postgresql://postgres@/db?host={tmp_path}")


def test_a_password_is_never_shown(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        SqlCatalog("demo", f"postgresql://ann:secret@/db?host={tmp_path}")
    assert "secret" not in str(caught.value)


def test_a_user_who_may_not_make_the_tables_is_told(other: psycopg.Connection, uri: str) -> None:
    other.execute("DROP ROLE IF EXISTS guest")
    other.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(StorageError, match="permission denied"):
        SqlCatalog("demo", uri.replace("postgres@", "guest@"))


@pytest.mark.parametrize(("set_to", "kept"), [("off", "on"), ("local", "local"), ("on", "on")])
def test_a_commit_is_on_disk_when_it_is_acknowledged(
    catalog: SqlCatalog, uri: str, other: psycopg.Connection, set_to: str, kept: str
) -> None:
    other.execute(f"ALTER DATABASE {other.info.dbname} SET synchronous_commit = '{set_to}'")
    opened = SqlCatalog("demo", uri)
    assert opened.connections.get().exec_driver_sql("SHOW synchronous_commit").scalar() == kept


def test_a_forked_child_opens_its_own_connection(catalog: SqlCatalog) -> None:
    in_parent = backend(catalog)
    child = os.fork()
    if child == 0:
        own = backend(catalog) != in_parent
        swapped = catalog.swap("db.t", "0", "from the child") == Swapped()
        os._exit(0 if own and swapped else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert backend(catalog) == in_parent
    assert catalog.swap("db.t", "from the child", "from the parent") == Swapped()


def in_processes(work: Callable[[int], None]) -> None:
    processes = [FORK.Process(target=work, args=(worker,)) for worker in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * PROCESSES


def test_many_processes_may_make_the_tables_of_a_new_database(uri: str) -> None:
    start = FORK.Barrier(PROCESSES)

    def work(worker: int) -> None:
        start.wait()
        SqlCatalog("demo", uri).create_namespace(f"n{worker}")

    in_processes(work)
    assert len(SqlCatalog("demo", uri).list_namespaces()) == PROCESSES


@pytest.mark.parametrize("check", [True, False])
def test_only_a_swap_that_checks_loses_nothing_between_processes(catalog: SqlCatalog, check: bool) -> None:
    start = FORK.Barrier(PROCESSES)

    def swap(base: str, new: str) -> object:
        if check:
            return catalog.swap("db.t", base, new)
        catalog.connections.get().exec_driver_sql(f"UPDATE iceberg_tables SET metadata_location = '{new}'")
        return Swapped()

    def work(worker: int) -> None:
        acknowledged = 0
        start.wait()
        while acknowledged < SWAPS:
            base = catalog.load("db.t")
            acknowledged += swap(base, f"{int(base.split('-')[0]) + 1}-{worker}") == Swapped()

    in_processes(work)
    lost = PROCESSES * SWAPS - int(catalog.load("db.t").split("-")[0])
    assert (lost == 0) == check


def test_pyiceberg_and_icefloe_share_a_database(uri: str, tmp_path: Path) -> None:
    catalog = SqlCatalog("demo", uri, warehouse=f"file://{tmp_path}/wh")
    catalog.create_namespace("db", {"owner": "ann"})
    theirs = OtherSqlCatalog(
        "demo", uri=uri.replace("postgresql:", "postgresql+psycopg:"), warehouse=f"file://{tmp_path}/wh"
    )
    assert theirs.load_namespace_properties("db") == {"exists": "true", "owner": "ann"}
    table = theirs.create_table("db.t", pa.schema([("id", pa.int64())]))
    base = catalog.load("db.t")
    assert base == table.metadata_location
    table.append(pa.table({"id": [1, 2]}))
    assert catalog.swap("db.t", base, "file:///ours") == Stale()
    assert catalog.list_tables("db") == (("db", "t"),)


def test_views_and_rows_of_other_catalogs_are_not_tables(catalog: SqlCatalog, other: psycopg.Connection) -> None:
    other.execute("INSERT INTO iceberg_tables VALUES ('demo', 'db', 'v', '1', NULL, 'VIEW')")
    other.execute("INSERT INTO iceberg_tables VALUES ('demo', 'db', 'old', '1', NULL, NULL)")
    other.execute("INSERT INTO iceberg_tables VALUES ('elsewhere', 'db', 'far', '1', NULL, 'TABLE')")
    assert catalog.list_tables("db") == (("db", "old"), ("db", "t"))
    for name in ("db.v", "db.far"):
        with pytest.raises(NoSuchTable):
            catalog.load(name)
    with pytest.raises(AlreadyExists):
        catalog.rename("db.t", "db.v")
    with pytest.raises(InputError, match="not empty"):
        catalog.drop_namespace("db")

"""The SQL catalog's database: other programs open ours, and we open theirs."""

from __future__ import annotations

import logging
import pickle
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog as OtherSqlCatalog

from icefloe.catalogs.catalog import Stale, Swapped
from icefloe.catalogs.sql import SqlCatalog
from icefloe.catalogs.sql_connections import sqlite_uri
from icefloe.errors import AlreadyExists, FormatError, InputError, NoSuchTable, StorageError

DATA = pa.table({"id": [1, 2, 3]})
V0_TABLE = (
    "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,table_namespace VARCHAR(255) NOT NULL,"
    "table_name VARCHAR(255) NOT NULL,metadata_location VARCHAR(1000),previous_metadata_location VARCHAR(1000),"
    "PRIMARY KEY (catalog_name, table_namespace, table_name))"
)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/catalog.db"


def other(uri: str, tmp_path: Path, **properties: str) -> OtherSqlCatalog:
    return OtherSqlCatalog("demo", uri=uri, warehouse=f"file://{tmp_path}/wh", **properties)


def ours(uri: str, tmp_path: Path) -> SqlCatalog:
    return SqlCatalog("demo", uri, warehouse=f"file://{tmp_path}/wh")


def rows(uri: str, table: str) -> list[tuple[object, ...]]:
    return sqlite3.connect(uri.removeprefix("sqlite:///")).execute(f"SELECT * FROM {table}").fetchall()


def as_version_0(uri: str) -> None:
    """Take the column ``iceberg_type`` away, as in databases of earlier releases."""
    with sqlite3.connect(uri.removeprefix("sqlite:///")) as connection:
        connection.execute("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    connection.close()


@pytest.mark.parametrize("version", [0, 1])
def test_a_table_of_pyiceberg_is_loaded_and_swapped(uri: str, tmp_path: Path, version: int) -> None:
    theirs = other(uri, tmp_path)
    theirs.create_namespace("db")
    table = theirs.create_table("db.t", DATA.schema)
    first = table.metadata_location
    table.append(DATA)
    second = table.metadata_location
    theirs.close()
    if version == 0:
        as_version_0(uri)
    catalog = ours(uri, tmp_path)
    assert catalog.list_namespaces() == (("db",),)
    assert catalog.list_tables("db") == (("db", "t"),)
    assert catalog.load("db.t") == second
    assert catalog.swap("db.t", first, "file:///nowhere") == Stale()
    assert catalog.swap("db.t", second, first) == Swapped()
    assert other(uri, tmp_path).load_table("db.t").scan().to_arrow().num_rows == 0
    assert catalog.default_location("db.t") == table.location()


@pytest.mark.parametrize("version", [0, 1])
def test_pyiceberg_works_on_a_database_of_ours(uri: str, tmp_path: Path, version: int) -> None:
    catalog = ours(uri, tmp_path)
    catalog.create_namespace("db")
    catalog.create_namespace("lake.inner")
    catalog.close()
    if version == 0:
        as_version_0(uri)
        catalog = ours(uri, tmp_path)
    theirs = other(uri, tmp_path)
    assert sorted(theirs.list_namespaces()) == [("db",), ("lake",)]
    assert theirs.load_namespace_properties("db") == {"exists": "true"}
    table = theirs.create_table("db.t", DATA.schema)
    table.append(DATA)
    assert catalog.load("db.t") == table.metadata_location
    catalog.create("lake.inner.copy", table.metadata_location)
    assert theirs.load_table("lake.inner.copy").scan().to_arrow().equals(DATA.cast(table.schema().as_arrow()))
    assert theirs.list_tables("lake.inner") == [("lake", "inner", "copy")]
    theirs.rename_table("lake.inner.copy", "db.renamed")
    assert catalog.list_tables("db") == (("db", "renamed"), ("db", "t"))


def test_a_commit_of_pyiceberg_makes_our_swap_stale_and_the_other_way_round(uri: str, tmp_path: Path) -> None:
    theirs = other(uri, tmp_path)
    theirs.create_namespace("db")
    table = theirs.create_table("db.t", DATA.schema)
    catalog = ours(uri, tmp_path)
    base = catalog.load("db.t")
    table.append(DATA)
    assert catalog.swap("db.t", base, "file:///ours") == Stale()
    latest = catalog.load("db.t")
    copy = f"{latest.removesuffix('.metadata.json')}-copy.metadata.json"
    Path(copy.removeprefix("file://")).write_bytes(Path(latest.removeprefix("file://")).read_bytes())
    assert catalog.swap("db.t", latest, copy) == Swapped()
    assert theirs.load_table("db.t").metadata_location == copy


def test_a_new_database_has_the_layout_of_version_1(uri: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    catalog = ours(uri, tmp_path)
    catalog.create_namespace("db")
    catalog.create("db.t", "1")
    assert rows(uri, "iceberg_tables") == [("demo", "db", "t", "1", None, "TABLE")]
    assert rows(uri, "iceberg_namespace_properties") == [("demo", "db", "exists", "true")]
    with caplog.at_level(logging.WARNING):
        other(uri, tmp_path)
    assert caplog.records == []  # it would warn of version 0


def columns(uri: str, table: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(uri.removeprefix("sqlite:///"))
    return [row[1:3] + row[5:] for row in connection.execute(f"PRAGMA table_info({table})")]


@pytest.mark.parametrize("table", ["iceberg_tables", "iceberg_namespace_properties"])
def test_our_columns_are_those_of_pyiceberg(tmp_path: Path, table: str) -> None:
    mine, theirs = f"sqlite:///{tmp_path}/mine.db", f"sqlite:///{tmp_path}/theirs.db"
    ours(mine, tmp_path)
    other(theirs, tmp_path)
    assert columns(mine, table) == columns(theirs, table)


def test_views_of_other_programs_are_not_tables(uri: str, tmp_path: Path) -> None:
    catalog = ours(uri, tmp_path)
    catalog.create_namespace("db")
    with sqlite3.connect(uri.removeprefix("sqlite:///")) as connection:
        connection.execute("INSERT INTO iceberg_tables VALUES ('demo', 'db', 'v', '1', NULL, 'VIEW')")
        connection.execute("INSERT INTO iceberg_tables VALUES ('demo', 'db', 'old', '1', NULL, NULL)")
    assert catalog.list_tables("db") == (("db", "old"),)
    assert catalog.load("db.old") == "1"
    for verb in (catalog.load, catalog.drop):
        with pytest.raises(NoSuchTable):
            verb("db.v")
    with pytest.raises(NoSuchTable):
        catalog.swap("db.v", "1", "2")
    with pytest.raises(AlreadyExists):
        catalog.create("db.v", "2")
    with pytest.raises(InputError, match="not empty"):
        catalog.drop_namespace("db")


def test_catalogs_in_one_database_do_not_see_each_other(uri: str, tmp_path: Path) -> None:
    one, two = SqlCatalog("one", uri), SqlCatalog("two", uri)
    one.create_namespace("db")
    one.create("db.t", "1")
    assert not two.namespace_exists("db")
    two.create_namespace("db")
    two.create("db.t", "1")
    assert one.swap("db.t", "1", "2") == Swapped()
    assert two.load("db.t") == "1"
    two.drop("db.t")
    assert one.load("db.t") == "2"


def test_a_namespace_with_properties_but_no_mark_exists(uri: str, tmp_path: Path) -> None:
    theirs = other(uri, tmp_path)
    theirs.create_namespace("db", {"location": "file:///elsewhere/db/"})
    catalog = ours(uri, tmp_path)
    assert catalog.namespace_exists("db")
    assert catalog.default_location("db.t") == "file:///elsewhere/db/t"
    with pytest.raises(AlreadyExists):
        catalog.create_namespace("db")
    catalog.drop_namespace("db")
    assert not theirs.namespace_exists("db")


def test_a_database_with_only_the_first_table_gets_the_second(uri: str, tmp_path: Path) -> None:
    with sqlite3.connect(uri.removeprefix("sqlite:///")) as connection:
        connection.execute(V0_TABLE)
        connection.execute("INSERT INTO iceberg_tables VALUES ('demo', 'db', 't', '1', NULL)")
    catalog = ours(uri, tmp_path)
    assert catalog.load("db.t") == "1"
    assert catalog.namespace_exists("db")
    assert catalog.list_namespaces() == (("db",),)


def test_a_new_file_has_a_write_ahead_log_and_others_keep_their_mode(uri: str, tmp_path: Path) -> None:
    mode = "PRAGMA journal_mode"
    assert ours(uri, tmp_path).connections.get().exec_driver_sql(mode).scalar() == "wal"
    theirs = f"sqlite:///{tmp_path}/theirs.db"
    other(theirs, tmp_path).close()
    connection = ours(theirs, tmp_path).connections.get()
    assert connection.exec_driver_sql(mode).scalar() == "delete"
    assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_a_row_without_a_location_is_named(uri: str, tmp_path: Path) -> None:
    catalog = ours(uri, tmp_path)
    with sqlite3.connect(uri.removeprefix("sqlite:///")) as connection:
        connection.execute("INSERT INTO iceberg_tables VALUES ('demo', 'db', 't', NULL, NULL, 'TABLE')")
    with pytest.raises(FormatError, match=r"no metadata location for table db\.t"):
        catalog.load("db.t")


def test_a_file_that_is_no_database_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(StorageError, match="not a database"):
        SqlCatalog("demo", f"sqlite:///{tmp_path}/x.db")


@pytest.mark.parametrize("uri", ["sqlite://", "sqlite:///:memory:", "catalog.db", "", "sqlite:///file:x?mode=memory"])
def test_what_is_no_lasting_database_is_refused(uri: str) -> None:
    with pytest.raises(InputError):
        SqlCatalog("demo", uri)


def test_a_catalog_without_a_warehouse_asks_for_a_location(uri: str) -> None:
    catalog = SqlCatalog("demo", uri)
    catalog.create_namespace("db")
    with pytest.raises(InputError, match=r"warehouse=\.\.\. or create the table with location"):
        catalog.default_location("db.t")


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "a%20b.db", "雪.db", "q?x=1#y.db"])
def test_a_database_of_any_name_is_opened_and_travels(tmp_path: Path, name: str) -> None:
    catalog = SqlCatalog("demo", sqlite_uri(f"{tmp_path}/{name}"))
    catalog.create_namespace("db")
    catalog.close()
    assert (tmp_path / name).is_file()
    assert pickle.loads(pickle.dumps(catalog)).namespace_exists("db")

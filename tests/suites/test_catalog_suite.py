"""The catalog suite, for every implementation and for databases that other programs laid out."""

from __future__ import annotations

import sqlite3
import uuid
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog as OtherSqlCatalog

from icefloe.catalogs.catalog import Catalog
from icefloe.catalogs.files import FilesCatalog
from icefloe.catalogs.memory import MemoryCatalog
from icefloe.catalogs.names import NameLike, parse_identifier, table_location
from icefloe.catalogs.sql import SqlCatalog
from icefloe.io.select import file_io
from icefloe.testing.suites.catalog_suite import CatalogSuite

JDBC_TABLES = (
    "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,table_namespace VARCHAR(255) NOT NULL,"
    "table_name VARCHAR(255) NOT NULL,metadata_location VARCHAR(1000),previous_metadata_location VARCHAR(1000),"
    "PRIMARY KEY (catalog_name, table_namespace, table_name))",
    "CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL,namespace VARCHAR(255) NOT NULL,"
    "property_key VARCHAR(255),property_value VARCHAR(1000),PRIMARY KEY (catalog_name, namespace, property_key))",
)


def jdbc_database(path: Path, *, version: int) -> None:
    """A database as Java's JdbcCatalog lays it out, in schema version 0 or 1."""
    connection = sqlite3.connect(path)
    for statement in JDBC_TABLES:
        connection.execute(statement)
    if version == 1:
        connection.execute("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")
    connection.commit()
    connection.close()


class TestMemoryCatalog(CatalogSuite):
    @pytest.fixture
    def catalog(self) -> Catalog:
        return MemoryCatalog("demo")


class TestSqlCatalog(CatalogSuite):
    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        return SqlCatalog("demo", f"sqlite:///{tmp_path}/a b%20c.db", warehouse="file:///wh/")


class TestSqlCatalogOnJdbcVersion0(CatalogSuite):
    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        jdbc_database(tmp_path / "c.db", version=0)
        return SqlCatalog("demo", f"sqlite:///{tmp_path}/c.db", warehouse="file:///wh")


class TestSqlCatalogOnJdbcVersion1(CatalogSuite):
    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        jdbc_database(tmp_path / "c.db", version=1)
        return SqlCatalog("demo", f"sqlite:///{tmp_path}/c.db", warehouse="file:///wh")


class TestSqlCatalogOnPyIceberg(CatalogSuite):
    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        OtherSqlCatalog("demo", uri=f"sqlite:///{tmp_path}/c.db", warehouse="file:///wh").close()
        return SqlCatalog("demo", f"sqlite:///{tmp_path}/c.db", warehouse="file:///wh")


class TestSqlCatalogOnPostgres(CatalogSuite):
    @pytest.fixture
    def catalog(self, postgres_uri: str) -> Catalog:
        return SqlCatalog("demo", postgres_uri, warehouse="file:///wh")


class TestFilesCatalog(CatalogSuite):
    renames = keeps_properties = forgets_files = False

    @pytest.fixture
    def catalog(self, tmp_path: Path) -> Catalog:
        return FilesCatalog("demo", warehouse=str(tmp_path / "wh"))

    def place(self, catalog: Catalog, name: NameLike, label: str) -> str:
        folder = table_location(str(catalog.warehouse), parse_identifier(name))
        location = f"{folder}/metadata/{uuid.uuid4()}.metadata.json"
        file_io(location).write_new(location, label.encode())
        return location

    def label(self, location: str) -> str:
        return file_io(location).read(location).decode()

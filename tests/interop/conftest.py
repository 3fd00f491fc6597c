"""Other programs on the same tables: pyiceberg, DuckDB, iceberg-rust, and Apache Iceberg in the Spark of icefloe."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg
import pyarrow as pa
import pytest
from datafusion import SessionContext
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg_core.datafusion import IcebergDataFusionTable
from pyspark.sql import SparkSession

from support.jars import classpath
from support.servers.java_options import QUICK_START
from support.shared_files import shared
from support.tables import new_catalog

CATALOG = "lake"


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """The one folder with the one catalog file that all programs share."""
    return tmp_path_factory.mktemp("interop")


@pytest.fixture(scope="session")
def catalog(folder):
    """icefloe's view of the catalog; made first, so that icefloe creates the file."""
    return new_catalog(folder, CATALOG)


@pytest.fixture(scope="session")
def spark(folder, catalog):
    """Spark with Apache Iceberg's runtime, its catalog on the shared file."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    prefix = f"spark.sql.catalog.{CATALOG}"
    session = (
        SparkSession.builder.master("local[2]")
        .appName("icefloe-interop")
        .config("spark.jars", classpath())
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", QUICK_START)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "Asia/Kolkata")
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config(prefix, "org.apache.iceberg.spark.SparkCatalog")
        .config(f"{prefix}.catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog")
        .config(f"{prefix}.uri", f"jdbc:sqlite:{folder}/catalog.db")
        .config(f"{prefix}.jdbc.schema-version", "V1")
        .config(f"{prefix}.warehouse", f"file://{folder}/warehouse")
        .config(f"{prefix}.cache-enabled", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def pyiceberg(folder, catalog):
    """pyiceberg on the shared file."""
    return SqlCatalog(CATALOG, uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")


@pytest.fixture(scope="session")
def duck():
    """DuckDB with its Iceberg extension, both from packages."""
    connection = duckdb.connect()
    for package, name in ((duckdb_extension_avro, "avro"), (duckdb_extension_iceberg, "iceberg")):
        (found,) = Path(package.__file__).parent.rglob(f"{name}.duckdb_extension")
        connection.execute(f"LOAD '{found}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@pytest.fixture(scope="session")
def readers(spark, pyiceberg, duck):
    """Each program's rows of a table, as Arrow: name -> function of an icefloe table."""

    def by_pyiceberg(table) -> pa.Table:
        return pyiceberg.load_table(table.name).scan().to_arrow()

    def by_duckdb(table) -> pa.Table:
        return duck.execute(f"SELECT * FROM iceberg_scan('{table.metadata_location}')").to_arrow_table()

    def by_iceberg(table) -> pa.Table:
        return spark.table(f"{CATALOG}.{table.name}").toArrow()

    def by_rust(table) -> pa.Table:
        context = SessionContext()
        provider = IcebergDataFusionTable(table.name.split("."), table.metadata_location, {})
        context.register_table("read", provider)
        return context.sql("SELECT * FROM read").to_arrow_table()

    return {"pyiceberg": by_pyiceberg, "duckdb": by_duckdb, "apache iceberg": by_iceberg, "iceberg-rust": by_rust}


@pytest.fixture
def golden_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder in which golden tables are where their metadata says."""
    tables = shared("golden/tables")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "persistent").symlink_to(tables)
    (tmp_path / "lineitem_iceberg").symlink_to(tables / "iceberg" / "lineitem_iceberg")
    monkeypatch.chdir(tmp_path)

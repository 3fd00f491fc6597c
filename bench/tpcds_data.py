"""The data and the queries of TPC-DS, made by DuckDB's extension."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from pathlib import Path

import duckdb

# The sales of each channel, by the column that divides them: a day each.
PARTITIONED = {
    "store_sales": "ss_sold_date_sk",
    "catalog_sales": "cs_sold_date_sk",
    "web_sales": "ws_sold_date_sk",
}
_QUOTED = re.compile(r'"([^"]+)"')


def generate(folder: Path, scale: float) -> None:
    """A Parquet file for each table, named after it."""
    part = folder.with_suffix(".part")
    part.mkdir(parents=True)
    with _database() as database:
        database.execute(f"CALL dsdgen(sf = {scale})")
        for (name,) in database.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall():
            database.execute(f"COPY {name} TO '{part / name}.parquet' (FORMAT parquet)")
    part.rename(folder)


def queries() -> Mapping[int, str]:
    """The 99 queries by number; quoted names are quoted as Spark does."""
    with _database() as database:
        found = database.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
    return {int(number): _QUOTED.sub(r"`\1`", text).rstrip().rstrip(";") for number, text in found}


def _database() -> duckdb.DuckDBPyConnection:
    package = importlib.import_module("duckdb_extension_tpcds")
    (extension,) = Path(str(package.__file__)).parent.rglob("tpcds.duckdb_extension")
    database = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    database.execute(f"LOAD '{extension}'")
    return database

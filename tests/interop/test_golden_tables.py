"""Tables that other programs wrote, kept as files: icefloe returns DuckDB's rows, or says why it does not read them."""

from __future__ import annotations

import shutil
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import QueryExecutionException

from icefloe.deletes.vectors import load_vectors
from icefloe.engines.arrow.read import read_plan
from icefloe.engines.spark.identity import IdentityColumns
from icefloe.engines.spark.read import Source, dataframe
from icefloe.errors import UnsupportedError
from icefloe.expr.nodes import ALWAYS_TRUE, Expr
from icefloe.expr.text import parse_filter
from icefloe.formats.parquet_reader import stored_columns
from icefloe.io.local import LocalFileIO
from icefloe.scan.tasks import Plan
from interop.golden import Relative, metadata_files, metadata_of, plan_of

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("golden_folder")]

EQUAL = (  # each metadata folder's newest version
    "case_sensitive_names/default.db/case_sensitive_names",
    "expression_filter",
    "hive_partitioned_table",
    "iceberg/lineitem_iceberg",
    "null_stats/default/test_nulls",
    "partition_bigint",
    "partition_binary",
    "partition_decimal_bigint",
    "partition_decimal_integer",
    "partition_double",
    "partition_timestamp/default.db/partition_timestamp",
    "uuid",
)
REFUSED = {
    "add_columns_with_defaults/default.db/add_columns_with_defaults": "column 'col_boolean' has an initial default",
    "column_mapping/warehouse/default.db/my_table": "no column has a field id, and reading by name mapping is not",
    "equality_deletes/warehouse/mydb/mytable": "equality deletes are not applied yet",
    "equality_deletes/warehouse/mydb/mytable_partitioned": "equality deletes are not applied yet",
    "name_mapping/warehouse_1/mydb/t1": "no column has a field id, and reading by name mapping is not",
}
TWO_SPECS = "hive_partitioned_table"
OF_VERSION_1 = "iceberg_v1_repro/repro/merch_v1"
PARTITION_ONLY = {  # tables whose files lack the columns that they are partitioned by, and a filter on one of these
    TWO_SPECS: "event_date = DATE '2024-01-01'",
    "partition_bigint": "partition_col > 0",
    "partition_binary": "partition_col is not null",
    "partition_decimal_bigint": "partition_col < 0",
    "partition_decimal_integer": "partition_col >= 1234.5432",
    "partition_double": "partition_col > 3",
    "partition_timestamp/default.db/partition_timestamp": "partition_col < TIMESTAMP_NTZ '2023-06-01 00:00:00'",
}


def by_icefloe(file: str, where: str | None = None) -> pa.Table:
    plan = plan_of(metadata_of(file), parse_filter(where))
    return read_plan(Relative(), plan, load_vectors(Relative(), plan.tasks)).read_all()


def by_duckdb(duck: Any, file: str, where: str = "true") -> pa.Table:
    condition = where.replace("TIMESTAMP_NTZ", "TIMESTAMP")
    return duck.execute(f"SELECT * FROM iceberg_scan('{file}') WHERE {condition}").to_arrow_table()


def rows(table: pa.Table) -> list[str]:
    """Rows as text, in an order of their own; columns go by position, since DuckDB makes their names distinct."""
    return sorted(repr(tuple(column[row].as_py() for column in table.columns)) for row in range(table.num_rows))


def as_uuids(table: pa.Table, names: list[str]) -> pa.Table:
    for name in names:
        text = [None if value is None else str(uuid.UUID(bytes=value)) for value in table[name].to_pylist()]
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(text, pa.string()))
    return table


@pytest.mark.parametrize("table", EQUAL)
def test_rows_are_those_of_duckdb(duck: Any, table: str) -> None:
    file = metadata_files(table)[-1]
    ours = by_icefloe(file)
    assert ours.num_rows > 0
    uuids = [field.name for field in metadata_of(file).schema.fields if str(field.type) == "uuid"]
    assert rows(as_uuids(ours, uuids)) == rows(by_duckdb(duck, file))


@pytest.mark.parametrize("table", REFUSED)
def test_what_is_not_handled_is_refused_by_name(table: str) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        by_icefloe(metadata_files(table)[-1])
    assert REFUSED[table] in str(refusal.value)


def test_a_table_that_was_upgraded_from_version_1_keeps_its_rows(duck: Any) -> None:
    files = metadata_files(OF_VERSION_1)
    before, upgraded = files[-2], files[-1]
    assert rows(by_icefloe(before)) == rows(by_duckdb(duck, before))
    assert by_icefloe(before).num_rows > 0
    assert rows(by_icefloe(upgraded)) == rows(by_icefloe(before))


def test_every_golden_table_is_looked_at() -> None:
    root = Path("data/persistent").resolve()
    found = {str(folder.parent.relative_to(root)) for folder in root.rglob("metadata") if folder.is_dir()}
    assert found == {*EQUAL, *REFUSED, OF_VERSION_1}


@pytest.mark.parametrize(("table", "where"), PARTITION_ONLY.items())
def test_filters_on_values_that_only_partitions_have(duck: Any, table: str, where: str) -> None:
    file = metadata_files(table)[-1]
    ours = by_icefloe(file, where)
    assert ours.num_rows > 0
    assert rows(ours) == rows(by_duckdb(duck, file, where))


def spark_source(table: str) -> Source:
    """A golden table for Spark, at absolute locations; the checksums there are of files that had the column."""
    metadata, copied = metadata_of(metadata_files(table)[-1]), Path("copied").absolute()
    within = Path("data", "persistent", table, "data")
    shutil.copytree(within, copied / within, ignore=shutil.ignore_patterns("*.crc"))

    def plan(filter_: Expr) -> Plan:
        found = plan_of(metadata, filter_)
        at = pa.array([str(copied / location) for location in found.tasks["location"].to_pylist()])
        return found.with_tasks(found.tasks.set_column(0, "location", at))

    spec_ids = plan(ALWAYS_TRUE).tasks["partition_spec_id"]
    return Source(
        plan=plan,
        vectors=lambda _: {},
        schema=metadata.schema,
        location=str(copied),
        size_bytes=1,
        has_deletes=False,
        identity=IdentityColumns(metadata.schema, metadata.specs, spec_ids, partial(stored_columns, LocalFileIO())),
    )


@pytest.mark.parametrize(
    ("table", "where"), [(table, where) for table, where in PARTITION_ONLY.items() if table != TWO_SPECS]
)
def test_spark_reads_values_that_only_partitions_have(duck: Any, spark: Any, table: str, where: str) -> None:
    file = metadata_files(table)[-1]
    frame = dataframe(spark, spark_source(table))
    assert rows(frame.toArrow()) == rows(by_duckdb(duck, file))
    assert rows(frame.where(where).toArrow()) == rows(by_duckdb(duck, file, where))


def test_spark_refuses_a_column_that_some_files_hold_and_only_partitions_of_others_have(spark: Any) -> None:
    frame = dataframe(spark, spark_source(TWO_SPECS))
    with pytest.raises(QueryExecutionException, match=r"event_type=\w+/\S+: the file lacks the column 'event_type'"):
        frame.toArrow()

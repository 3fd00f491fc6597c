"""Tables that other programs wrote, kept as files: icefloe has the rows of DuckDB and pyiceberg, at every snapshot."""

from __future__ import annotations

import contextlib
import shutil
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from pyspark.errors import QueryExecutionException

from icefloe.engines.spark.read.footers import Footers
from icefloe.engines.spark.read.identity_columns import IdentityColumns
from icefloe.engines.spark.read.read import dataframe
from icefloe.engines.spark.read.source import Source
from icefloe.errors import FormatError, NoSuchFile
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr, Op, Predicate
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.io.local import LocalFileIO
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.types import UUID, is_primitive
from icefloe.scan.tasks import Plan
from interop.golden import (
    LINEITEM,
    NAME_MAPPING,
    OF_VERSION_1,
    TABLES,
    has_root,
    metadata_files,
    metadata_of,
    plan_of,
    read,
)

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("golden_folder")]

REFUSED = {  # metadata with a name mapping that no table can be read by
    f"{NAME_MAPPING}/metadata/v2.metadata.json": "schema.name-mapping.default: expected a list, got an object",
    f"{NAME_MAPPING}/metadata/v3.2.metadata.json": "the file lacks the required column 'a'",
}
OF_PYICEBERG = {  # what pyiceberg itself does not read
    "equality_deletes": "does not yet support equality deletes",
    "partition_timestamp": "Field is required, and could not be found in the file",
    f"{NAME_MAPPING}/metadata/v3.1": "Could not find field with name",
    f"{NAME_MAPPING}/metadata/v4.1": "Could not find field with name",
}
UPGRADED = f"{OF_VERSION_1}/metadata/00004-v3-upgraded-v1-null-counts.metadata.json"  # DuckDB does not read this one
TWO_SPECS = "hive_partitioned_table"
PARTITION_ONLY = {  # tables whose files lack the columns that they are partitioned by, and a filter on one of these
    TWO_SPECS: "event_date = DATE '2024-01-01'",
    "partition_bigint": "partition_col > 0",
    "partition_binary": "partition_col is not null",
    "partition_decimal_bigint": "partition_col < 0",
    "partition_decimal_integer": "partition_col >= 1234.5432",
    "partition_double": "partition_col > 3",
    "partition_timestamp/default.db/partition_timestamp": "partition_col < TIMESTAMP_NTZ '2023-06-01 00:00:00'",
}


def by_duckdb(duck: Any, file: str, where: str = "true", columns: str = "*", snapshot: int | None = None) -> pa.Table:
    condition = where.replace("TIMESTAMP_NTZ", "TIMESTAMP")
    chosen = "" if snapshot is None else f", snapshot_from_id={snapshot}"
    return duck.execute(f"SELECT {columns} FROM iceberg_scan('{file}'{chosen}) WHERE {condition}").to_arrow_table()


def rows(table: pa.Table) -> list[str]:
    """Rows as text, in an order of their own; columns go by position, since DuckDB makes their names distinct."""
    columns = [column.to_pylist() for column in as_texts(table).columns]
    return sorted(map(repr, zip(*columns, strict=True)))


def as_texts(table: pa.Table) -> pa.Table:
    """The table with texts in place of UUIDs, which every program represents in its own way."""
    for index, field in enumerate(table.schema):
        values = table.column(index)
        if isinstance(field.type, pa.BaseExtensionType) or (field.metadata or {}).get(b"type") == b"uuid":
            stored = values.cast(field.type.storage_type) if isinstance(field.type, pa.BaseExtensionType) else values
            texts = [None if value is None else str(uuid.UUID(bytes=value)) for value in stored.to_pylist()]
            table = table.set_column(index, field.name, pa.array(texts, pa.string()))
    return table


def with_uuids(table: pa.Table, metadata: TableMetadata) -> pa.Table:
    """icefloe's rows with their UUIDs marked."""
    for index, field in enumerate(table.schema):
        column = metadata.schema.by_name.get(field.name)
        if column is not None and column.type == UUID:
            table = table.set_column(index, field.with_metadata({"type": "uuid"}), table.column(index))
    return table


def ours(metadata: TableMetadata, *args: Any, **options: Any) -> pa.Table:
    return with_uuids(read(metadata, *args, **options), metadata)


def check_same(duck: Any, one: pa.Table, other: pa.Table, what: object) -> None:
    """The same rows, each as often; DuckDB compares large ones."""
    assert one.num_rows == other.num_rows, what
    if one.num_rows < 1000:
        assert rows(one) == rows(other), what
        return
    duck.register("one", as_texts(one))
    duck.register("other", as_texts(other))
    assert duck.execute("SELECT * FROM one EXCEPT ALL SELECT * FROM other LIMIT 3").fetchall() == [], what


def readable_files(table: str) -> list[str]:
    """The metadata files of a table that has rows and can be read."""
    refused = {f"data/persistent/{name}" for name in REFUSED}
    found = [file for file in metadata_files(table) if file not in refused]
    return [file for file in found if metadata_of(file).current_snapshot is not None]


@pytest.mark.parametrize("table", TABLES)
def test_rows_are_those_of_duckdb_at_every_snapshot(duck: Any, table: str) -> None:
    seen = 0
    for file in readable_files(table):
        metadata = metadata_of(file)
        if file.endswith(UPGRADED):
            continue
        for snapshot in metadata.snapshots:
            is_current = snapshot.snapshot_id == metadata.current_snapshot_id
            if not has_root(snapshot):
                with pytest.raises(NoSuchFile, match=f"snapshot {snapshot.snapshot_id}: "):
                    read(metadata, snapshot=snapshot)
                continue
            # The current snapshot is read with the current columns, others with those of their time.
            theirs = by_duckdb(duck, file, snapshot=None if is_current else snapshot.snapshot_id)
            check_same(duck, ours(metadata, snapshot=snapshot), theirs, (file, snapshot.snapshot_id))
            seen += theirs.num_rows
    assert seen > 0


@pytest.mark.parametrize("table", TABLES)
def test_rows_are_those_of_pyiceberg_at_every_snapshot(duck: Any, table: str) -> None:
    for file in readable_files(table):
        metadata, scans = metadata_of(file), StaticTable.from_metadata(file)
        for snapshot in metadata.snapshots:
            if not has_root(snapshot):
                continue
            is_current = snapshot.snapshot_id == metadata.current_snapshot_id
            scan = scans.scan(snapshot_id=None if is_current else snapshot.snapshot_id)
            not_done = [says for name, says in OF_PYICEBERG.items() if name in file]
            with contextlib.ExitStack() as stack:
                if len(not_done) > 0 and not _is_simple(metadata, snapshot):
                    stack.enter_context(pytest.raises(Exception, match=not_done[0]))  # of kinds of its own
                check_same(duck, ours(metadata, snapshot=snapshot), scan.to_arrow(), (file, snapshot.snapshot_id))


def _is_simple(metadata: TableMetadata, snapshot: Snapshot) -> bool:
    """Whether a snapshot of a table with equality deletes has none yet."""
    return "equality_deletes" in metadata.location and plan_of(metadata, snapshot=snapshot).deletes.num_rows == 0


@pytest.mark.parametrize("file", REFUSED)
def test_a_name_mapping_that_maps_nothing_is_refused_by_name(file: str) -> None:
    with pytest.raises(FormatError) as refusal:
        read(metadata_of(f"data/persistent/{file}"))
    assert REFUSED[file] in str(refusal.value)
    assert "table data/persistent/name_mapping/warehouse_1/mydb/t1" in str(refusal.value)


def test_every_golden_table_is_looked_at() -> None:
    root = Path("data/persistent").resolve()
    found = {str(folder.parent.relative_to(root)) for folder in root.rglob("metadata") if folder.is_dir()}
    assert found == set(TABLES)


def newest(table: str) -> str:
    """The newest metadata of a table that DuckDB reads too."""
    return [file for file in readable_files(table) if not file.endswith(UPGRADED)][-1]


def names_in_duckdb(duck: Any, file: str) -> list[str]:
    """DuckDB's own names of the columns, in their order."""
    duck.execute(f"SELECT * FROM iceberg_scan('{file}') LIMIT 0")
    return [column[0] for column in duck.description]


@pytest.mark.parametrize("table", TABLES)
def test_projections_are_those_of_duckdb(duck: Any, table: str) -> None:
    file = newest(table)
    metadata = metadata_of(file)
    names = [field.name for field in metadata.schema.fields]
    own = dict(zip(names, names_in_duckdb(duck, file), strict=True))
    for chosen in (*([name] for name in names), names[::-1], names[1::2] or names[:1]):
        columns = ", ".join(f'"{own[name]}"' for name in chosen)
        found = ours(metadata, columns=chosen)
        assert found.column_names == chosen
        check_same(duck, found, by_duckdb(duck, file, columns=columns), chosen)


TESTS = {"=": Op.EQ, "<>": Op.NE, "<": Op.LT, ">=": Op.GE}


@pytest.mark.parametrize("table", TABLES)
def test_filters_on_every_column_are_those_of_duckdb(duck: Any, table: str) -> None:
    file = newest(table)
    metadata = metadata_of(file)
    own = names_in_duckdb(duck, file)
    everything = by_duckdb(duck, file)
    for index, field in enumerate(metadata.schema.fields):
        if not is_primitive(field.type):
            continue
        column, values = f'"{own[index]}"', everything.column(index).drop_null()
        for missing, op in (("is null", Op.IS_NULL), ("is not null", Op.NOT_NULL))[: 1 if table == LINEITEM else 2]:
            found = ours(metadata, Predicate(op, field.name))
            check_same(duck, found, by_duckdb(duck, file, f"{column} {missing}"), (field.name, missing))
        if len(values) == 0:
            continue
        value = values[len(values) // 2].as_py()
        tests = dict([list(TESTS.items())[index % len(TESTS)]]) if table == LINEITEM else TESTS  # which is large
        for sign, op in tests.items():
            query = f"SELECT * FROM iceberg_scan('{file}') WHERE {column} {sign} ?"
            theirs = duck.execute(query, [value]).to_arrow_table()
            literal = uuid.UUID(value) if field.type == UUID else value
            found = ours(metadata, Predicate(op, field.name, (literal,)))
            check_same(duck, found, theirs, (field.name, sign, value))
            assert sign not in ("=", ">=") or found.num_rows > 0, (field.name, sign, value)


@pytest.mark.parametrize(("table", "where"), PARTITION_ONLY.items())
def test_filters_on_values_that_only_partitions_have(duck: Any, table: str, where: str) -> None:
    file = newest(table)
    found = ours(metadata_of(file), parse_filter(where))
    assert found.num_rows > 0
    check_same(duck, found, by_duckdb(duck, file, where), where)


def spark_source(table: str) -> Source:
    """A golden table for Spark, at absolute locations; the checksums there are of files that had the column."""
    metadata, copied = metadata_of(metadata_files(table)[-1]), Path("copied").absolute()
    within = Path("data", "persistent", table, "data")
    shutil.copytree(within, copied / within, ignore=shutil.ignore_patterns("*.crc"))

    def plan(filter_: Expr, bounded: tuple[int, ...] = ()) -> Plan:
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
        identity=IdentityColumns(metadata.schema, metadata.specs, spec_ids, Footers.in_storage(LocalFileIO())),
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

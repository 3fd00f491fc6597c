"""Metadata tables of the same tables by Apache Iceberg and by icefloe: the same columns, types and rows."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.inspect.metadata_tables.tables import METADATA_TABLES
from icefloe.table.catalog import Catalog
from icefloe.table.table import Table
from interop.iceberg_reads import CATALOG, read_by_spark
from interop.plain_rows import plain

pytestmark = pytest.mark.interop

VERSIONS = (1, 2, 3)
SCHEMA = (
    "id bigint not null, city string, n int, x double, price decimal(9,2), at timestamp, local timestamp_ntz, day date,"
    " ok boolean, raw binary, place struct<street: string, `a.b`: int>, tags array<string>, attrs map<string, int>"
)
START = dt.datetime(2026, 11, 17, 9, 30, tzinfo=dt.UTC)
# The columns that differ for tables whose columns changed as in ``promoted``, and why. Everything else is equal.
DIFFERENCES = {
    "lower_bounds": "bounds have the width of the current type, there that of the type when the file was written",
    "upper_bounds": "the same",
    "partition_summaries": "a bound of a partition field whose column was dropped is shown, there it is null",
}


def rows(*ids: int, **more: object) -> pa.Table:
    made = [
        {
            "id": i,
            "city": ("Oslo", None, "São Paulo")[i % 3],
            "n": None if i % 5 == 0 else i,
            "x": (0.5, float("nan"), None)[i % 3],
            "price": Decimal(i) / 4,
            "at": START + dt.timedelta(hours=i),
            "local": START.replace(tzinfo=None) + dt.timedelta(days=i % 2, microseconds=i),
            "day": START.date() + dt.timedelta(days=i % 2),
            "ok": i % 2 == 0,
            "raw": bytes([i]),
            "place": None if i % 4 == 0 else {"street": f"s{i}", "a.b": i},
            "tags": (None, [], ["a", None])[i % 3],
            "attrs": {"k": i},
            **more,
        }
        for i in ids
    ]
    return pa.Table.from_pylist(made, ARROW if len(more) == 0 else None)


ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("price", pa.decimal128(9, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("ok", pa.bool_()),
        ("raw", pa.binary()),
        ("place", pa.struct([("street", pa.string()), ("a.b", pa.int32())])),
        ("tags", pa.list_(pa.string())),
        ("attrs", pa.map_(pa.string(), pa.int32())),
    ]
)


def evolved(catalog: Catalog, version: int) -> Table:
    """Appends, deletes in both modes, other partitions and columns, a branch, a tag and a rollback."""
    table = catalog.create_table(
        f"db.inspected_{version}", schema=SCHEMA, partition_by=["day(at)", "city"], format_version=version
    )
    table.append(rows(1, 2, 3, 4))
    table.append(rows(10, 11, 20, 30))
    table.tag("v1")
    table.delete("id = 2")  # by copy
    with table.update_partitioning() as edit:
        edit.remove("city")
        edit.add("bucket(4, id)", name="shard")
        edit.add("truncate(2, city)")
    table.append(rows(40, 41, 42))
    table.branch("side")
    table.append(rows(50), branch="side")
    if version > 1:
        table.set_properties({"write.delete.mode": "merge-on-read"})
        table.delete("id = 41")
        table.upsert(rows(42, 43), on=["id", "at", "city"], deletes="equality")
        table.delete("id in (10, 11)")
    with table.update_schema() as edit:
        edit.rename_column("n", "number")
        edit.drop_column("ok")
        edit.add_column("more", "string")
        edit.update_column("price", type="decimal(12,2)")
    with table.update_partitioning() as edit:
        edit.add("local")
        edit.add("price")
        edit.add("raw")
        edit.add("month(day)")
    table.append(renamed(rows(60, 61)))
    head = table.metadata.current_snapshot_id
    table.append(renamed(rows(70)))
    table.rollback(snapshot=head)
    table.rewrite_manifests().execute()
    table.append(renamed(rows(80)))
    table.set_sort_order("id")
    table.append(renamed(rows(81)))
    return table


def renamed(made: pa.Table) -> pa.Table:
    return made.drop_columns(["ok"]).rename_columns({"n": "number"})


def plain_table(catalog: Catalog, version: int) -> Table:
    """A table without partitions."""
    table = catalog.create_table(f"db.flat_{version}", schema="id bigint, s string", format_version=version)
    table.append(pa.table({"id": [1, 2, 3], "s": ["a", "b", None]}))
    if version > 1:
        table.set_properties({"write.delete.mode": "merge-on-read"})
    table.delete("id = 2")
    return table


def promoted(catalog: Catalog, version: int) -> Table:
    """A table with wider types than its first file, which is partitioned by a column that was dropped."""
    table = catalog.create_table(
        f"db.promoted_{version}", schema="n int, x float, kind string", partition_by=["kind"], format_version=version
    )
    table.append(
        pa.table({"n": pa.array([1, 2], pa.int32()), "x": pa.array([0.5, 1.5], pa.float32()), "kind": ["a"] * 2})
    )
    with table.update_partitioning() as edit:
        edit.remove("kind")
        edit.add("truncate(10, n)")
    with table.update_schema() as edit:
        edit.drop_column("kind")
        edit.update_column("n", type="bigint")
        edit.update_column("x", type="double")
    table.append(pa.table({"n": [30], "x": [2.5]}))
    return table


@pytest.fixture(scope="module", params=VERSIONS)
def tables(request: pytest.FixtureRequest, catalog: Catalog) -> tuple[Table, ...]:
    version = request.param
    empty = catalog.create_table(f"db.never_written_{version}", schema="id bigint", format_version=version)
    made = (evolved, plain_table, promoted)
    return *(make(catalog, version) for make in made), empty


def theirs(spark: SparkSession, table: Table, name: str, version: str = "") -> DataFrame:
    return spark.sql(f"SELECT * FROM {CATALOG}.{table.name}.{name} {version}")


@pytest.mark.parametrize("name", METADATA_TABLES)
def test_the_columns_are_those_of_apache_iceberg(spark: SparkSession, tables: tuple[Table, ...], name: str) -> None:
    for table in tables:
        expected = theirs(spark, table, name).schema
        found = getattr(table.inspect, name)(spark=spark).schema
        assert found.simpleString() == expected.simpleString()
        assert json.dumps(_flags(found.jsonValue())) == json.dumps(_flags(expected.jsonValue()))


def _flags(node: object) -> object:
    """A schema without comments."""
    if isinstance(node, dict):
        return {key: _flags(value) for key, value in node.items() if key != "metadata"}
    return [_flags(value) for value in node] if isinstance(node, list) else node


@pytest.mark.parametrize("name", METADATA_TABLES)
def test_the_rows_are_those_of_apache_iceberg(spark: SparkSession, tables: tuple[Table, ...], name: str) -> None:
    for table in tables:
        frames, arrow = {}, {}
        for text, point in points(table, name).items():
            frames[f"theirs {text}"] = comparable(theirs(spark, table, name, text), table)
            frames[f"ours {text}"] = comparable(getattr(table.inspect, name)(**point, spark=spark), table)
            arrow[text] = plain(getattr(table.inspect, name)(**point))
        found = read_by_spark(frames)
        for text, rows_in_arrow in arrow.items():
            assert found[f"ours {text}"] == found[f"theirs {text}"], f"{table.name}.{name} {text}"
            if ".promoted_" not in table.name:
                assert rows_in_arrow == found[f"ours {text}"], f"{table.name}.{name} {text}"


def points(table: Table, name: str) -> dict[str, dict[str, object]]:
    """The states to compare, in SQL and as arguments: the current one, all snapshots, branches and tags."""
    found: dict[str, dict[str, object]] = {"": {}}
    if METADATA_TABLES[name].of_snapshot:
        found |= {f"VERSION AS OF {s.snapshot_id}": {"snapshot": s.snapshot_id} for s in table.snapshots}
        found |= {f"VERSION AS OF '{name}'": {ref.type: name} for name, ref in table.refs.items()}
    return found


def comparable(frame: DataFrame, table: Table) -> DataFrame:
    """The rows without the columns that differ, for a table that shows the differences."""
    if ".promoted_" not in table.name:
        return frame
    if "data_file" in frame.columns:
        frame = frame.withColumn("data_file", F.col("data_file").dropFields("lower_bounds", "upper_bounds"))
    return frame.drop(*DIFFERENCES)


def test_the_listed_differences_exist(spark: SparkSession, tables: tuple[Table, ...]) -> None:
    (table,) = (table for table in tables if ".promoted_" in table.name)
    names = {"lower_bounds": "files", "upper_bounds": "files", "partition_summaries": "manifests"}
    assert set(names) == set(DIFFERENCES)
    for column, name in names.items():
        ours = getattr(table.inspect, name)(spark=spark).select(column)
        found = read_by_spark({"ours": ours, "theirs": theirs(spark, table, name).select(column)})
        assert found["ours"] != found["theirs"], column


@pytest.mark.usefixtures("spark")  # runs beside the tests above, which share the tables
def test_every_table_has_rows(tables: tuple[Table, ...]) -> None:
    of_deletes = ("delete_files", "all_delete_files", "position_deletes")
    for name in METADATA_TABLES:
        has_rows = tables[0].format_version > 1 or name not in of_deletes
        assert any(getattr(table.inspect, name)().num_rows > 0 for table in tables) == has_rows, name

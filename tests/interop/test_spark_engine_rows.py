"""Rows that icefloe's Spark engine wrote and changed, read by Apache Iceberg in the same Spark, at every snapshot."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from icefloe.table.catalog import Catalog
from icefloe.table.table import Table
from interop.iceberg_reads import check_every_snapshot, check_head

pytestmark = pytest.mark.interop
FLAT = (
    "id bigint not null, ts timestamp, at timestamp_ntz, city string, n int, price decimal(9,2), day date, ok boolean,"
    " seq bigint, is_deleted boolean, place struct<street: string, zip: int>, raw binary"
)  # columns that Spark's Parquet writer writes; with the others, tasks write the files in any format
OTHERS = ("tags", "attrs", "key", "code")
SCHEMA = f"{FLAT}, tags array<string>, attrs map<string, int>, key uuid, code fixed(2)"
START = dt.datetime(1969, 12, 30, 23, 30)
FILTERS = (
    "id >= 10 and id < 33",
    "city = 'OSLO' or n is null",
    "price > 3.5",
    "day < date '1970-01-10'",
    "place.zip = 7",
)
COPY = {f"write.{kind}.mode": "copy-on-write" for kind in ("delete", "update", "merge")}
MERGE = dict.fromkeys(COPY, "merge-on-read")
CASES = {  # version, file format, columns, partitions, properties
    "version 1": (1, "parquet", FLAT, ["truncate(2, city)"], {}),
    "version 2, copy-on-write": (2, "parquet", FLAT, ["bucket(2, id)"], COPY),
    "version 2, position deletes": (
        2,
        "orc",
        SCHEMA,
        ["bucket(2, id)"],
        MERGE | {"write.delete.granularity": "partition", "write.delete.format.default": "avro"},
    ),
    "version 3, copy-on-write": (3, "avro", SCHEMA, [], COPY),
    "version 3, deletion vectors": (3, "parquet", FLAT, ["bucket(2, id)"], MERGE),
}


def rows(table: Table, ids: Iterable[int]) -> pa.Table:
    """Rows for a table on both sides of 1970, with nulls in every column that may have them."""
    columns = {
        "id": ("bigint", lambda i: i),
        "ts": (
            "ts",
            lambda i: None if i % 11 == 3 else (START + dt.timedelta(hours=7 * (i % 9))).replace(tzinfo=dt.UTC),
        ),
        "at": ("ntz", lambda i: None if i % 13 == 2 else START + dt.timedelta(minutes=97 * i)),
        "city": ("string", lambda i: ("Oslo", None, "", "São Paulo", "a=b/c")[i % 5]),
        "n": ("int", lambda i: None if i % 7 == 0 else i - 20),
        "price": ("price", lambda i: None if i % 4 == 0 else Decimal(i) / 4),
        "day": ("day", lambda i: None if i % 6 == 1 else START.date() + dt.timedelta(days=i)),
        "ok": ("ok", lambda i: None if i % 4 == 1 else i % 2 == 0),
        "seq": ("bigint", lambda i: 1),
        "is_deleted": ("ok", lambda i: False),
        "place": ("place", lambda i: None if i % 5 == 0 else {"street": None if i % 3 == 0 else f"s{i}", "zip": i}),
        "tags": ("tags", lambda i: (None, [], ["a", None], ["b"])[i % 4]),
        "attrs": ("attrs", lambda i: (None, [], [("x", i), ("y", None)])[i % 3]),
        "key": ("raw", lambda i: None if i % 8 == 0 else uuid.UUID(int=(i * 37 % 256) << 120 | i).bytes),
        "code": ("raw", lambda i: None if i % 9 == 0 else bytes((i % 256, 255))),
        "raw": ("raw", lambda i: (None, b"", b"\xff\x00")[i % 3]),
    }
    known = {field.name for field in table.schema.fields}
    chosen = {name: column for name, column in columns.items() if name in known or name not in OTHERS}
    return pa.table({name: pa.array([of(i) for i in ids], TYPES[kind]) for name, (kind, of) in chosen.items()})


TYPES = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "string": pa.string(),
    "ts": pa.timestamp("us", tz="UTC"),
    "ntz": pa.timestamp("us"),
    "price": pa.decimal128(9, 2),
    "day": pa.date32(),
    "ok": pa.bool_(),
    "place": pa.struct([("street", pa.string()), ("zip", pa.int32())]),
    "tags": pa.list_(pa.string()),
    "attrs": pa.map_(pa.string(), pa.int32()),
    "raw": pa.binary(),
}


def frame(spark: SparkSession, table: Table, ids: Iterable[int]) -> DataFrame:
    """The rows as a DataFrame; times without a zone stay so."""
    arrow = rows(table, list(ids))
    return spark.createDataFrame(arrow, from_arrow_schema(arrow.schema, prefer_timestamp_ntz=True)).coalesce(1)


@pytest.mark.parametrize("case", CASES)
def test_apache_iceberg_reads_the_rows_after_every_operation(case: str, catalog: Catalog, spark: SparkSession) -> None:
    version, file_format, schema, partitions, properties = CASES[case]
    table = catalog.create_table(
        f"db.spark_operations_{list(CASES).index(case)}",
        schema=schema,
        partition_by=partitions,
        format_version=version,
        properties={**properties, "write.format.default": file_format},
    )
    table.append(frame(spark, table, range(40)))
    table.delete("id in (3, 14) or pmod(id, 20) = 19", spark=spark)
    table.update({"city": "upper(city)", "place.zip": "place.zip + 1", "n": "length(city)"}, "id % 7 = 1", spark=spark)
    table.overwrite(frame(spark, table, [30, 31, 100]), where="id >= 30 and id < 33")
    table.upsert(frame(spark, table, [5, 6, 50]).withColumn("n", F.lit(None).cast("int")), on=["id"])
    _merge(spark, table)
    changes = "(7L, 5, 2L, 'U'), (7L, 6, 3L, 'U'), (8L, 0, 4L, 'D'), (200L, 1, 1L, 'U')"
    table.apply_changes(
        spark.sql(f"SELECT * FROM VALUES {changes} AS v(id, n, seq, op)"),
        keys=["id"],
        sequence_by="seq",
        delete_when="op = 'D'",
        columns=["id", "n", "seq"],
    )
    _branches(spark, table)
    with table.transaction() as work:
        work.append(frame(spark, table, [300, 301, 302]))
        work.append(rows(table, [303, 304]))
        work.delete("id = 301", spark=spark)
        work.update({"city": "'tx'"}, where="id >= 302")
        work.upsert(frame(spark, table, [300, 1]), on=["id"])
    _schema(spark, table)
    other = "avro" if file_format == "parquet" else "parquet"
    table.set_properties({"write.format.default": other})
    table.append(frame(spark, table, [500, 501]))
    table.delete("id in (500, 9)", spark=spark)
    check_every_snapshot(spark, table)
    check_head(spark, table, FILTERS)


def _merge(spark: SparkSession, table: Table) -> None:
    """Every clause, then the star forms."""
    values = "(0L, 'D', 1), (1L, 'U', 5), (2L, 'K', 5), (60L, 'U', 7), (61L, 'S', 8)"
    source = spark.sql(f"SELECT * FROM VALUES {values} AS v(id, op, n)")
    result = (
        table.merge(source, on="t.id = s.id")
        .when_matched_delete("s.op = 'D'")
        .when_matched_update({"n": "t.n + s.n", "place": "named_struct('street', s.op, 'zip', s.n)"}, "s.op = 'U'")
        .when_not_matched_insert({"id": "s.id", "city": "initcap('bern')", "n": "s.n", "seq": "1"}, "s.op <> 'S'")
        .when_not_matched_by_source_update({"ok": "not ok"}, "t.id = 10")
        .when_not_matched_by_source_delete("t.id = 11")
        .execute()
    )
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (1, 2, 2)
    stars = table.merge(frame(spark, table, [4, 62]).withColumn("city", F.lit("star")), on="t.id = s.id")
    result = stars.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (result.rows_inserted, result.rows_updated) == (1, 1)


def _branches(spark: SparkSession, table: Table) -> None:
    """Rows on a branch, and a staged snapshot that is published."""
    table.branch("audit")
    table.append(frame(spark, table, [250, 251]), branch="audit")
    table.delete("id = 250 or id = 20", branch="audit", spark=spark)
    table.update({"city": "'audit'"}, where="id = 21", branch="audit", spark=spark)
    staged = table.append(frame(spark, table, [260]), wap_id="tuesday")
    table.cherry_pick(staged.snapshot_id)


def _schema(spark: SparkSession, table: Table) -> None:
    """Columns that rows add, renamed and widened ones; then an upsert by equality deletes."""
    table.append(frame(spark, table, [400]).selectExpr("*", "'x' AS added"), schema_mode="merge")
    with table.update_schema() as edit:
        edit.rename_column("city", "town")
        edit.update_column("n", type="bigint")
    table.update({"town": "concat(town, added)"}, where="id >= 300", spark=spark)
    with table.update_schema() as edit:
        edit.rename_column("town", "city")
    merge = table.merge(spark.sql("SELECT 400L AS id, 'm' AS added, 1.5D AS late"), on=["id"]).with_schema_evolution()
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    if table.format_version > 1:
        columns = {"added": F.lit("e"), "late": F.lit(0.5)}
        table.upsert(frame(spark, table, [2, 400]).withColumns(columns), on=["id"], deletes="equality")

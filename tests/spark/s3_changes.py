"""All operations of Spark on a table in S3, for tests with and without a Hadoop file system for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icefloe.io.select import file_io
from icefloe.table.catalog import Catalog
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from spark.cluster_faults import locations_of
from support.servers.s3 import S3Server

SCHEMA = "id bigint, city string, amount int, tags array<string>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A version, a mode of changes, and how the files are."""

    version: int
    mode: str
    partition_by: tuple[str, ...] = ()
    file_format: str = "parquet"


def rows(spark: SparkSession, ids: str, amount: str = "int(id)") -> DataFrame:
    """A row for each id that ``ids``, a text such as ``range(3)``, has."""
    city = "if(id % 2 = 0, 'Oslo', 'Rome')"
    return spark.sql(f"SELECT id, {city} AS city, {amount} AS amount, array({city}, 'x') AS tags FROM {ids}")


def changed_table(spark: SparkSession, lake: Catalog, name: str, layout: Layout) -> Table:
    """A table that Spark wrote and changed: two appends, then a delete, an update, an upsert and a merge."""
    modes = {f"write.{verb}.mode": layout.mode for verb in ("delete", "update", "merge")}
    table = lake.create_table(
        name,
        schema=SCHEMA,
        partition_by=list(layout.partition_by),
        format_version=layout.version,
        properties={**modes, "write.format.default": layout.file_format},
    )
    table.append(rows(spark, "range(10)"))
    table.append(rows(spark, "range(10, 20)"))
    assert table.delete("pmod(id, 5) = 4", spark=spark).rows_deleted == 4  # 4, 9, 14, 19
    table.update({"amount": "amount + 100"}, where="soundex(city) = 'R500' and id < 10", spark=spark)  # 1, 3, 5, 7
    table.upsert(rows(spark, "range(2, 6)", "int(-id)"), on=["id"])  # 4 is new
    merge = table.merge(rows(spark, "range(11, 23)"), on="t.id = s.id").when_matched_delete("s.id = 12")
    merge = merge.when_matched_update({"amount": "s.amount * 10"}).when_not_matched_insert_all("s.id > 20")
    merge.execute()  # 14, 19 and 20 stay away
    return table


AMOUNTS = {
    0: 0,
    1: 101,
    2: -2,
    3: -3,
    4: -4,
    5: -5,
    6: 6,
    7: 107,
    8: 8,
    10: 10,
    11: 110,
    13: 130,
    15: 150,
    16: 160,
    17: 170,
    18: 180,
    21: 21,
    22: 22,
}


def check_rows(spark: SparkSession, table: Table) -> DataFrame:
    """The rows are right on both engines; returns the DataFrame of all."""
    right = [
        (id_, ("Oslo", "Rome")[id_ % 2], amount, [("Oslo", "Rome")[id_ % 2], "x"]) for id_, amount in AMOUNTS.items()
    ]
    frame = table.scan().to_spark(spark)
    assert sorted(tuple(row) for row in frame.collect()) == right
    assert sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist()) == right
    few = table.scan("amount > 100", columns=["id"]).to_spark(spark).where("id < 15")
    assert sorted(row.id for row in few.collect()) == [1, 7, 11, 13]
    assert check_table(table) == []
    return frame


def check_objects(table: Table, s3: S3Server) -> None:
    """Every object under ``data`` is named by a snapshot."""
    folder = f"{table.location}/data"
    stored = {file.location for file in file_io(folder, s3.properties).list(folder)}
    assert stored - set(locations_of(table)) == set()


def plan_of(frame: DataFrame) -> str:
    """The physical plan as text."""
    execution: Any = frame._jdf.queryExecution()
    return str(execution.executedPlan().toString())

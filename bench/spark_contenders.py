"""The programs of the benches ``spark`` and ``spark_sql``: each writes, reads and changes its own tables."""

from __future__ import annotations

import shutil
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icefloe
from lineitem import SUPPLIERS

BUCKETS = 16
KEYS = ("l_orderkey", "l_linenumber")
HUNDREDTH = SUPPLIERS // 100


class Layout(Enum):
    """How a table is divided."""

    PLAIN = "unpartitioned"
    YEAR = "by year"
    BUCKET = "by bucket"
    SORTED = "sorted"


class Mode(Enum):
    """How rows of existing files are changed."""

    MERGE_ON_READ = "merge-on-read"
    COPY_ON_WRITE = "copy-on-write"


class Change(Enum):
    """A change of 1 % of the rows, which are spread over all files."""

    UPSERT = "upsert"
    MERGE = "MERGE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


UPDATED = f"l_suppkey >= {HUNDREDTH} AND l_suppkey < {2 * HUNDREDTH}"
DELETED = f"l_suppkey >= {2 * HUNDREDTH} AND l_suppkey < {3 * HUNDREDTH}"
NEW_COMMENT = "upper(l_comment)"
ON = " AND ".join(f"t.{key} = s.{key}" for key in KEYS)


def changed_rows(rows: DataFrame) -> DataFrame:
    """The source of upserts and merges: 1 % of the rows, a tenth of them with keys that the table lacks."""
    chosen = rows.where(f"l_suppkey < {HUNDREDTH}")
    is_new = F.pmod(F.xxhash64(*KEYS), F.lit(10)) == 0
    key = F.when(is_new, -F.col("l_orderkey") - 1).otherwise(F.col("l_orderkey"))
    return chosen.withColumns({"l_orderkey": key, "l_quantity": F.col("l_quantity") + 1})


class Contender(Protocol):
    """A program with tables, which are named by short words."""

    name: str

    def write(self, rows: DataFrame, table: str, layout: Layout, mode: Mode = Mode.MERGE_ON_READ) -> None:
        """Create a table with these rows."""
        ...

    def drop(self, table: str) -> None:
        """Remove a table and its files."""
        ...

    def read(self, table: str) -> DataFrame:
        """All rows, opened anew."""
        ...

    def change(self, table: str, change: Change, source: DataFrame) -> None:
        """Change 1 % of the rows."""
        ...

    def undo(self, table: str) -> None:
        """Go back to the state after the rows were written."""
        ...


class PlainParquet:
    """Folders of Parquet files, without changes."""

    name = "plain Parquet"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self._schema: Any = None

    def write(self, rows: DataFrame, table: str, layout: Layout, mode: Mode = Mode.MERGE_ON_READ) -> None:
        divided, by = divided_rows(rows, layout)
        if layout is Layout.SORTED:
            divided = divided.repartitionByRange("l_shipdate").sortWithinPartitions("l_shipdate")
        writer = divided.write.option("compression", "zstd")
        (writer if by is None else writer.partitionBy(by)).parquet(str(self._folder / table))
        self._schema = rows.schema

    def drop(self, table: str) -> None:
        shutil.rmtree(self._folder / table)

    def read(self, table: str) -> DataFrame:
        return self._spark.read.schema(self._schema).parquet(str(self._folder / table))

    def change(self, table: str, change: Change, source: DataFrame) -> None:
        raise NotImplementedError("plain Parquet has no changes")

    def undo(self, table: str) -> None:
        raise NotImplementedError("plain Parquet has no changes")


def divided_rows(rows: DataFrame, layout: Layout) -> tuple[DataFrame, str | None]:
    """The rows with a column to partition by, as formats without partition transforms need it."""
    if layout is Layout.YEAR:
        return rows.withColumn("part", F.year("l_shipdate")), "part"
    if layout is Layout.BUCKET:
        return rows.withColumn("part", F.pmod(F.hash("l_orderkey"), F.lit(BUCKETS))), "part"
    return rows, None


class Icefloe:
    """Tables of this library."""

    name = "icefloe"

    def __init__(self, spark: SparkSession, folder: Path, version: int = 4) -> None:
        self._spark, self._version = spark, version
        uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}/icefloe"
        self._catalog = icefloe.catalog("shared", uri=uri, warehouse=warehouse)
        self._first: dict[str, int] = {}

    def write(self, rows: DataFrame, table: str, layout: Layout, mode: Mode = Mode.MERGE_ON_READ) -> None:
        partition_by = {Layout.YEAR: ["year(l_shipdate)"], Layout.BUCKET: [f"bucket({BUCKETS}, l_orderkey)"]}
        made = self._catalog.create_table(
            f"db.{table}",
            schema=rows.schema,
            partition_by=partition_by.get(layout, []),
            sort_by=["l_shipdate"] if layout is Layout.SORTED else [],
            format_version=self._version,
            properties={f"write.{verb}.mode": mode.value for verb in ("delete", "update", "merge")},
        )
        made.append(rows)
        self.mark(table)

    def mark(self, table: str) -> None:
        """Let ``undo`` go back to this state."""
        self._first[table] = self.table(table).metadata.current_snapshot_id

    def drop(self, table: str) -> None:
        location = self._catalog.load_table(f"db.{table}").location
        self._catalog.drop_table(f"db.{table}")
        shutil.rmtree(location.removeprefix("file://"))

    def table(self, table: str) -> Any:
        """The table as the library opens it."""
        return self._catalog.load_table(f"db.{table}")

    def read(self, table: str) -> DataFrame:
        rows: DataFrame = self.table(table).scan().to_spark(self._spark)
        return rows

    def change(self, table: str, change: Change, source: DataFrame) -> None:
        opened = self.table(table)
        match change:
            case Change.UPSERT:
                opened.upsert(source, on=list(KEYS))
            case Change.MERGE:
                merge = opened.merge(source, on=ON).when_matched_delete("s.l_linenumber = 4")
                merge.when_matched_update({"l_quantity": "s.l_quantity"}).when_not_matched_insert_all().execute()
            case Change.UPDATE:
                opened.update({"l_comment": NEW_COMMENT}, where=UPDATED, spark=self._spark)
            case Change.DELETE:
                opened.delete(DELETED, spark=self._spark)

    def undo(self, table: str) -> None:
        self.table(table).rollback(snapshot=self._first[table])


class SqlTables:
    """Tables that are changed by Spark's own statements."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def _change(self, name: str, change: Change, source: DataFrame) -> None:
        source.createOrReplaceTempView("bench_source")
        merge = f"MERGE INTO {name} t USING bench_source s ON {ON}"
        columns = ", ".join(source.columns)
        inserted = ", ".join(f"s.{column}" for column in source.columns)
        insert = f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({inserted})"
        updates = ", ".join(f"{column} = s.{column}" for column in source.columns)
        statements = {
            Change.UPSERT: f"{merge} WHEN MATCHED THEN UPDATE SET {updates} {insert}",
            Change.MERGE: f"{merge} WHEN MATCHED AND s.l_linenumber = 4 THEN DELETE"
            f" WHEN MATCHED THEN UPDATE SET l_quantity = s.l_quantity {insert}",
            Change.UPDATE: f"UPDATE {name} SET l_comment = {NEW_COMMENT} WHERE {UPDATED}",
            Change.DELETE: f"DELETE FROM {name} WHERE {DELETED}",
        }
        self._spark.sql(statements[change]).collect()


class IcefloeSql(Icefloe, SqlTables):
    """Tables of this library in an attached catalog, ``demo``."""

    name = "icefloe SQL"

    def __init__(self, spark: SparkSession, folder: Path, version: int = 4) -> None:
        folder.mkdir()
        Icefloe.__init__(self, spark, folder, version)
        icefloe.attach(spark, "demo", self._catalog)

    def read(self, table: str) -> DataFrame:
        return self._spark.table(f"demo.db.{table}")

    def change(self, table: str, change: Change, source: DataFrame) -> None:
        self._change(f"demo.db.{table}", change, source)


class ApacheIceberg(SqlTables):
    """Tables of Apache Iceberg's Java library, in version 3."""

    name = "Apache Iceberg"

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._first: dict[str, int] = {}

    def write(self, rows: DataFrame, table: str, layout: Layout, mode: Mode = Mode.MERGE_ON_READ) -> None:
        name = f"iceberg.db.{table}"
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in rows.schema)
        transforms = {Layout.YEAR: "years(l_shipdate)", Layout.BUCKET: f"bucket({BUCKETS}, l_orderkey)"}
        by = f"PARTITIONED BY ({transforms[layout]})" if layout in transforms else ""
        properties = {"format-version": "3", "write.parquet.compression-codec": "zstd"}
        properties |= {f"write.{verb}.mode": mode.value for verb in ("delete", "update", "merge")}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self._spark.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {by} TBLPROPERTIES ({listed})")
        if layout is Layout.SORTED:
            self._spark.sql(f"ALTER TABLE {name} WRITE ORDERED BY l_shipdate")
        rows.writeTo(name).append()
        self.mark(table)

    def mark(self, table: str) -> None:
        """Let ``undo`` go back to this state."""
        self._first[table] = self._java(table).currentSnapshot().snapshotId()

    def drop(self, table: str) -> None:
        self._spark.sql(f"DROP TABLE iceberg.db.{table} PURGE")

    def read(self, table: str) -> DataFrame:
        return self._spark.table(f"iceberg.db.{table}")

    def change(self, table: str, change: Change, source: DataFrame) -> None:
        self._change(f"iceberg.db.{table}", change, source)

    def undo(self, table: str) -> None:
        self._java(table).manageSnapshots().rollbackTo(self._first[table]).commit()
        self._spark.sql(f"REFRESH TABLE iceberg.db.{table}")

    def _java(self, table: str) -> Any:
        jvm: Any = self._spark._jvm
        return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            self._spark._jsparkSession, f"iceberg.db.{table}"
        )


class DeltaLake(SqlTables):
    """Tables of Delta Lake, with deletion vectors for merge-on-read."""

    name = "Delta Lake"

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(spark)
        self._folder = folder

    def write(self, rows: DataFrame, table: str, layout: Layout, mode: Mode = Mode.MERGE_ON_READ) -> None:
        divided, by = divided_rows(rows, layout)
        if layout is Layout.SORTED:
            divided = divided.repartitionByRange("l_shipdate").sortWithinPartitions("l_shipdate")
        vectors = str(mode is Mode.MERGE_ON_READ).lower()
        writer = divided.write.format("delta").option("delta.enableDeletionVectors", vectors)
        writer = writer.option("compression", "zstd")
        (writer if by is None else writer.partitionBy(by)).save(str(self._folder / table))

    def drop(self, table: str) -> None:
        shutil.rmtree(self._folder / table)

    def read(self, table: str) -> DataFrame:
        return self._spark.read.format("delta").load(str(self._folder / table))

    def change(self, table: str, change: Change, source: DataFrame) -> None:
        self._change(f"delta.`{self._folder / table}`", change, source)

    def undo(self, table: str) -> None:
        self._spark.sql(f"RESTORE TABLE delta.`{self._folder / table}` TO VERSION AS OF 0").collect()

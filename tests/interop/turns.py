"""The steps of two programs that change one table in turns: icefloe's Spark engine, and Apache Iceberg in SQL."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from icefloe.table.table import Table

CATALOG = "lake"
MAIN, SIDE = "main", "side"
DDL = {"id": "bigint", "city": "string", "n": "int", "at": "timestamp", "tags": "array<string>"}
FIELDS = {  # the partition fields of icefloe, in the words of Apache Iceberg
    "city": "city",
    "bucket(3, id)": "bucket(3, id)",
    "truncate(2, city)": "truncate(2, city)",
    "day(at)": "days(at)",
}


class Program(Protocol):
    """What both programs can do to a table."""

    def append(self, rows: DataFrame, branch: str) -> None: ...
    def delete(self, where: str, branch: str) -> None: ...
    def update(self, values: dict[str, str], where: str, branch: str) -> None: ...
    def upsert(self, rows: DataFrame, branch: str) -> None: ...
    def merge(self, source: DataFrame, branch: str) -> None: ...
    def overwrite(self, rows: DataFrame, where: str, branch: str) -> None: ...
    def create_branch(self) -> None: ...
    def publish_branch(self) -> None: ...
    def add_column(self, name: str) -> None: ...
    def rename_column(self, name: str, new: str) -> None: ...
    def partition_by(self, field: str) -> None: ...
    def sort(self) -> None: ...
    def upgrade(self, version: int) -> None: ...
    def rewrite(self) -> None: ...
    def set_property(self, name: str, value: str) -> None: ...


class Icefloe:
    """Steps of icefloe, on Spark."""

    def __init__(self, table: Table, spark: SparkSession) -> None:
        self.table = table
        self.spark = spark

    def append(self, rows: DataFrame, branch: str) -> None:
        self.table.append(rows, branch=branch)

    def delete(self, where: str, branch: str) -> None:
        self.table.delete(where, branch=branch, spark=self.spark)

    def update(self, values: dict[str, str], where: str, branch: str) -> None:
        self.table.update(values, where, branch=branch, spark=self.spark)

    def upsert(self, rows: DataFrame, branch: str) -> None:
        self.table.upsert(rows, on=["id"], branch=branch)

    def merge(self, source: DataFrame, branch: str) -> None:
        merge = self.table.merge(source, on="t.id = s.id", branch=branch)
        merge.when_matched_delete("s.op = 'D'").when_matched_update({"n": "s.n", "city": "concat(t.city, s.op)"})
        merge.when_not_matched_insert({"id": "s.id", "city": "s.op", "n": "s.n"}, "s.op <> 'D'").execute()

    def overwrite(self, rows: DataFrame, where: str, branch: str) -> None:
        self.table.overwrite(rows, where, branch=branch)

    def create_branch(self) -> None:
        self.table.branch(SIDE)

    def publish_branch(self) -> None:
        self.table.publish(SIDE)
        self.table.remove_ref(SIDE)

    def add_column(self, name: str) -> None:
        with self.table.update_schema() as edit:
            edit.add_column(name, "int")

    def rename_column(self, name: str, new: str) -> None:
        with self.table.update_schema() as edit:
            edit.rename_column(name, new)

    def partition_by(self, field: str) -> None:
        with self.table.update_partitioning() as edit:
            edit.add(field)

    def sort(self) -> None:
        self.table.set_sort_order("city", "id desc")

    def upgrade(self, version: int) -> None:
        self.table.upgrade(version)

    def rewrite(self) -> None:
        self.table.rewrite_manifests().execute()

    def set_property(self, name: str, value: str) -> None:
        self.table.set_properties({name: value})


class Iceberg:
    """Steps of Apache Iceberg, in SQL."""

    def __init__(self, name: str, spark: SparkSession) -> None:
        self.name = name
        self.spark = spark

    def _of(self, branch: str) -> str:
        return f"{CATALOG}.{self.name}" + ("" if branch == MAIN else f".branch_{branch}")

    def append(self, rows: DataFrame, branch: str) -> None:
        rows.writeTo(self._of(branch)).append()

    def delete(self, where: str, branch: str) -> None:
        self.spark.sql(f"DELETE FROM {self._of(branch)} WHERE {where}")

    def update(self, values: dict[str, str], where: str, branch: str) -> None:
        changes = ", ".join(f"{name} = {value}" for name, value in values.items())
        self.spark.sql(f"UPDATE {self._of(branch)} SET {changes} WHERE {where}")

    def upsert(self, rows: DataFrame, branch: str) -> None:
        self._merge(rows, branch, "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")

    def merge(self, source: DataFrame, branch: str) -> None:
        self._merge(
            source,
            branch,
            "WHEN MATCHED AND s.op = 'D' THEN DELETE"
            " WHEN MATCHED THEN UPDATE SET n = s.n, city = concat(t.city, s.op)"
            " WHEN NOT MATCHED AND s.op <> 'D' THEN INSERT (id, city, n) VALUES (s.id, s.op, s.n)",
        )

    def _merge(self, source: DataFrame, branch: str, clauses: str) -> None:
        source.createOrReplaceTempView("turn")
        self.spark.sql(f"MERGE INTO {self._of(branch)} t USING turn s ON t.id = s.id {clauses}")

    def overwrite(self, rows: DataFrame, where: str, branch: str) -> None:
        """Deletes and inserts: OVERWRITE refuses conditions that it cannot decide for whole files."""
        self.delete(where, branch)
        self.append(rows, branch)

    def create_branch(self) -> None:
        self._alter(f"CREATE BRANCH {SIDE}")

    def publish_branch(self) -> None:
        self.spark.sql(f"CALL {CATALOG}.system.fast_forward('{self.name}', '{MAIN}', '{SIDE}')")
        self._alter(f"DROP BRANCH {SIDE}")

    def add_column(self, name: str) -> None:
        self._alter(f"ADD COLUMN {name} int")

    def rename_column(self, name: str, new: str) -> None:
        self._alter(f"RENAME COLUMN {name} TO {new}")

    def partition_by(self, field: str) -> None:
        self._alter(f"ADD PARTITION FIELD {FIELDS[field]}")

    def sort(self) -> None:
        self._alter("WRITE ORDERED BY city, id DESC")

    def upgrade(self, version: int) -> None:
        self.set_property("format-version", str(version))

    def rewrite(self) -> None:
        self.spark.sql(
            f"CALL {CATALOG}.system.rewrite_data_files('{self.name}', options => map('rewrite-all', 'true'))"
        )

    def set_property(self, name: str, value: str) -> None:
        self._alter(f"SET TBLPROPERTIES ('{name}' = '{value}')")

    def _alter(self, change: str) -> None:
        self.spark.sql(f"ALTER TABLE {CATALOG}.{self.name} {change}")

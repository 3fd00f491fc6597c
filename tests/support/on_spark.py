"""Tables whose changes run on Spark, so that tests of changes run on both engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from icefloe.table.table import Table
from icefloe.table.transaction import Transaction


def frame_of(spark: SparkSession, rows: Any) -> DataFrame:
    """Arrow rows as a DataFrame; anything else is returned unchanged."""
    return spark.createDataFrame(rows) if isinstance(rows, pa.Table) else rows


def ids_of_all(frames: list[DataFrame]) -> list[list[int]]:
    """The ids of each frame, read in one job."""
    numbered = [frame.selectExpr("id", f"{number} number") for number, frame in enumerate(frames)]
    found: list[list[int]] = [[] for _ in frames]
    for id_, number in reduce(DataFrame.union, numbered).collect():
        found[number].append(id_)
    return [sorted(ids) for ids in found]


class _OnSpark:
    """Passes changes on with DataFrames and the session; everything else is that of the table or transaction."""

    def __init__(self, changed: Any, spark: SparkSession) -> None:
        self._changed = changed
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._changed, name)

    def merge(self, source: Any, on: Any, **options: Any) -> Any:
        return self._changed.merge(frame_of(self._spark, source), on, **options)

    def apply_changes(self, changes: Any, **options: Any) -> Any:
        return self._changed.apply_changes(frame_of(self._spark, changes), **options)

    def upsert(self, source: Any, on: Sequence[str] | None = None, **options: Any) -> Any:
        return self._changed.upsert(frame_of(self._spark, source), on, **options)

    def update(self, changes: Mapping[str, Any], where: Any = None, **options: Any) -> Any:
        return self._changed.update(changes, where, spark=self._spark, **options)

    def delete(self, where: Any, **options: Any) -> Any:
        return self._changed.delete(where, spark=self._spark, **options)


class TransactionOnSpark(_OnSpark):
    """A transaction whose changes run on Spark."""

    _changed: Transaction

    def __enter__(self) -> TransactionOnSpark:
        self._changed.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._changed.__exit__(*error)


class TableOnSpark(_OnSpark):
    """A table whose changes run on Spark; appends stay in this process."""

    _changed: Table

    @property
    def plain(self) -> Table:
        """The table itself."""
        return self._changed

    def transaction(self) -> TransactionOnSpark:
        return TransactionOnSpark(self._changed.transaction(), self._spark)


def on_spark(changed: Table | Transaction, spark: SparkSession) -> Any:
    """A table or transaction whose changes run on Spark."""
    return TransactionOnSpark(changed, spark) if isinstance(changed, Transaction) else TableOnSpark(changed, spark)

"""The rows that changed between two snapshots as a DataFrame (spec: Row-level Deletes, Scan Planning).

Spark reads the planned files of every snapshot. Deletes of positions are compared in the driver, as for every scan.
Equality deletes are compared by joins: rows that are live before a snapshot and not after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType, LongType, StringType

from icefloe.deletes.bitmaps import all_positions
from icefloe.engines.change_feed import ChangeRequest
from icefloe.engines.spark.read.change_folding import IS_INSERT, fold, unfolded
from icefloe.engines.spark.read.column_types import filter_on_longs
from icefloe.engines.spark.read.read import dataframe, survivors
from icefloe.engines.spark.read.scan import planned_source
from icefloe.engines.spark.read.selection import select_columns
from icefloe.engines.spark.schema import struct_type
from icefloe.engines.spark.session import local_frame
from icefloe.engines.spark.write.conform import quoted
from icefloe.engines.work import PlannedFiles
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.expr.text.spark_sql import to_sql
from icefloe.formats.read.row_group_reader import merged
from icefloe.model.entries import ContentType, of_type
from icefloe.model.schema.metadata_columns import FILE, POS, ROW_ID
from icefloe.model.schema.types import INT, LONG, STRING, Field
from icefloe.scan.changes.plan import CHANGE_COLUMNS, CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT, ChangeStep
from icefloe.scan.tasks import Plan

_PLACE = (FILE, POS)


def read_changes(spark: SparkSession, request: ChangeRequest) -> DataFrame:
    """The changed rows of a request."""
    return _Reader(spark, request).frame()


class _Reader:
    """Reads the steps of one request."""

    def __init__(self, spark: SparkSession, request: ChangeRequest) -> None:
        self._spark = spark
        self._request = request
        self._plan = request.plan()
        by_row_id = request.pairs is not None and len(request.pairs.keys) == 0
        returned = tuple(field for field in self._plan.schema.fields if field.id not in self._plan.table_schema.by_id)
        self._inherited: tuple[Field, ...] = merged(returned, (ROW_ID,) if by_row_id else ())

    def frame(self) -> DataFrame:
        """The changes of all steps."""
        alone: list[DataFrame] = []
        together: list[DataFrame] = []
        for step in self._plan.steps:
            is_mixed = self._request.net or (step.may_insert and step.may_delete)
            (together if is_mixed else alone).extend(self._rows(step))
        parts = [unfolded(reduce(DataFrame.union, alone))] if len(alone) > 0 else []
        if len(together) > 0:
            compared = [field.name for field in self._plan.table_schema.fields]
            rows = reduce(DataFrame.union, together)
            parts.append(fold(rows, compared, self._request.pairs, net=self._request.net))
        if len(parts) == 0:
            return self._nothing()
        rows = reduce(DataFrame.union, [part.select(*map(quoted, self._columns())) for part in parts])
        return self._selected(rows)

    def _columns(self) -> list[str]:
        """All columns of the table, the metadata columns to return, and the columns of changes."""
        read = (*self._plan.table_schema.fields, *self._inherited)
        return [*(field.name for field in read), *CHANGE_COLUMNS]

    def _selected(self, rows: DataFrame) -> DataFrame:
        """The columns to return."""
        changes = (
            Field(-1, CHANGE_TYPE, STRING),
            Field(-2, CHANGE_ORDINAL, INT),
            Field(-3, COMMIT_SNAPSHOT, LONG),
        )
        read = (*self._plan.table_schema.fields, *self._inherited, *changes)
        return select_columns(rows, (*self._plan.schema.fields, *changes), read)

    def _nothing(self) -> DataFrame:
        schema = struct_type(self._plan.schema).add(CHANGE_TYPE, StringType())
        return local_frame(self._spark, [], schema.add(CHANGE_ORDINAL, IntegerType()).add(COMMIT_SNAPSHOT, LongType()))

    def _rows(self, step: ChangeStep) -> Iterator[DataFrame]:
        """The deleted and the inserted rows of a step; rows that were copied are among both."""
        by_value = _has_equality_deletes(step.before) | _has_equality_deletes(step.after)
        for is_insert, whole, live, other in (
            (False, step.removed, step.before, step.after),
            (True, step.added, step.after, step.before),
        ):
            parts = [self._live_rows(whole, self._inherited)] if whole.files > 0 else []
            parts.extend(self._by_position(_some(live, ~by_value), _some(other, ~by_value)))
            parts.extend(self._by_join(_some(live, by_value), _some(other, by_value)))
            for rows in parts:
                yield self._of_step(rows, step, is_insert=is_insert)

    def _of_step(self, rows: DataFrame, step: ChangeStep, *, is_insert: bool) -> DataFrame:
        """The rows that match the filter, with the step that changed them."""
        if self._plan.filter != ALWAYS_TRUE:
            rows = rows.where(F.expr(to_sql(filter_on_longs(self._plan.filter))))
        return rows.withColumns(
            {
                IS_INSERT: F.lit(is_insert),
                CHANGE_ORDINAL: F.lit(step.ordinal).cast("int"),
                COMMIT_SNAPSHOT: F.lit(step.snapshot.snapshot_id).cast("bigint"),
            }
        )

    def _live_rows(self, plan: Plan, inherited: tuple[Field, ...]) -> DataFrame:
        """The live rows of planned files."""
        return dataframe(
            self._spark, planned_source(self._spark, self._planned(plan), self._plan.table_schema, inherited)
        )

    def _by_position(self, live: Plan, other: Plan) -> Iterator[DataFrame]:
        """The rows of files without equality deletes that are live in the first plan only."""
        locations = live.tasks["location"].to_pylist()
        dead, wanted = (plan.deleted_rows(self._request.io).positions(locations) for plan in (live, other))
        chosen = {file: wanted[file] - dead.get(file, BitMap64()) for file in wanted}
        counts = dict(zip(locations, live.tasks["record_count"].to_pylist(), strict=True))
        chosen = {file: positions for file, positions in chosen.items() if len(positions) > 0}
        if len(chosen) == 0:
            return
        plan = _without_deletes(live, chosen)
        source = planned_source(self._spark, self._planned(plan), self._plan.table_schema, self._inherited)
        others = {file: all_positions(counts[file]) - positions for file, positions in chosen.items()}
        yield survivors(self._spark, source, others)

    def _by_join(self, live: Plan, other: Plan) -> Iterator[DataFrame]:
        """The rows of files with equality deletes that are live in the first plan only."""
        if live.files == 0:
            return
        rows = self._live_rows(live, merged(self._inherited, _PLACE))
        still = self._live_rows(other, _PLACE).select(*(field.name for field in _PLACE))
        changed = rows.join(still, [field.name for field in _PLACE], "left_anti")
        wanted = (*self._plan.table_schema.fields, *self._inherited)
        yield changed.select(*(quoted(field.name) for field in wanted))

    def _planned(self, plan: Plan) -> PlannedFiles:
        base = self._request.base
        return PlannedFiles.of(base.store.io, base.metadata, plan)


def _has_equality_deletes(plan: Plan) -> npt.NDArray[np.bool_]:
    """Which planned files have equality deletes."""
    lists = plan.tasks["deletes"].combine_chunks()
    owners, numbers = pc.list_parent_indices(lists).to_numpy(), pc.list_flatten(lists).to_numpy()
    is_equality = np.asarray(of_type(plan.deletes, ContentType.EQUALITY_DELETES))
    found = np.zeros(plan.files, np.bool_)
    found[owners[is_equality[numbers]]] = True
    return found


def _some(plan: Plan, mask: npt.NDArray[np.bool_]) -> Plan:
    return plan.with_tasks(plan.tasks.filter(pa.array(mask)))


def _without_deletes(plan: Plan, files: Mapping[str, BitMap64]) -> Plan:
    """Some planned files as if no row of them were deleted."""
    tasks = plan.tasks
    tasks = tasks.filter(pc.is_in(tasks["location"], value_set=pa.array(list(files), pa.string())))
    for number, field in enumerate(tasks.schema):
        if field.name.startswith("dv_"):
            tasks = tasks.set_column(number, field, pa.nulls(tasks.num_rows, field.type))
        elif field.name == "deletes":
            none = pa.array([[]], field.type).take(pa.array(np.zeros(tasks.num_rows, np.int64)))
            tasks = tasks.set_column(number, field, none)
    return plan.with_tasks(tasks)

"""The rows that changed between two snapshots as a DataFrame (spec: Row-level Deletes, Scan Planning).

Spark reads the planned files of every snapshot. Deletes of positions are compared in the driver, as for every scan.
Equality deletes are compared by joins: rows that are live before a snapshot and not after it.

Window functions reduce deleted and inserted rows to changes: rows that were only copied are none, and updates become
pairs. The rules are those of ``engines/arrow/read/change_folding.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    VariantType,
)

from icefloe.deletes.bitmaps import all_positions
from icefloe.engines.spark.read.column_types import filter_on_longs, select_columns
from icefloe.engines.spark.read.read import dataframe, survivors
from icefloe.engines.spark.read.scan import planned_source
from icefloe.engines.spark.schema import struct_type
from icefloe.engines.spark.session import local_frame
from icefloe.engines.spark.write.conform import VALUE, failure
from icefloe.engines.work import ChangeRequest, PlannedFiles, repeated_key
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.expr.text.spark_sql import quoted, to_sql
from icefloe.model.entries import ContentType, of_type
from icefloe.model.schema.metadata_columns import FILE, POS, ROW_ID
from icefloe.model.schema.schema import merged_fields
from icefloe.model.schema.types import INT, LONG, STRING, Field
from icefloe.scan.changes.pairing import UpdatePairs
from icefloe.scan.changes.plan import (
    CHANGE_COLUMNS,
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT,
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    ChangeStep,
)
from icefloe.scan.tasks import Plan

_PLACE = (FILE, POS)
_IS_INSERT = "_icefloe_is_insert"
_ROW, _IDENTITY, _IS_PAIR = "_icefloe_row", "_icefloe_identity", "_icefloe_is_pair"
_RANK, _SURPLUS, _POSITION, _COUNT = "_icefloe_rank", "_icefloe_surplus", "_icefloe_position", "_icefloe_count"
_EXISTED, _EXISTS, _IS_SAME = "_icefloe_existed", "_icefloe_exists", "_icefloe_is_same"
_WHEN, _BY = "_icefloe_when", "_icefloe_by"


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
        self._inherited: tuple[Field, ...] = merged_fields(returned, (ROW_ID,) if by_row_id else ())

    def frame(self) -> DataFrame:
        """The changes of all steps."""
        alone: list[DataFrame] = []
        together: list[DataFrame] = []
        for step in self._plan.steps:
            is_mixed = self._request.net or (step.may_insert and step.may_delete)
            (together if is_mixed else alone).extend(self._rows(step))
        parts = [_unfolded(reduce(DataFrame.union, alone))] if len(alone) > 0 else []
        if len(together) > 0:
            compared = [field.name for field in self._plan.table_schema.fields]
            rows = reduce(DataFrame.union, together)
            parts.append(_fold(rows, compared, self._request.pairs, net=self._request.net))
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
                _IS_INSERT: F.lit(is_insert),
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
        rows = self._live_rows(live, merged_fields(self._inherited, _PLACE))
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


def _unfolded(rows: DataFrame) -> DataFrame:
    """Rows of which none can cancel another one, with their change types."""
    return rows.withColumn(CHANGE_TYPE, F.when(F.col(_IS_INSERT), INSERT).otherwise(DELETE))


def _fold(rows: DataFrame, compared: Sequence[str], pairs: UpdatePairs | None, *, net: bool) -> DataFrame:
    """The changes that remain of deleted and inserted rows, by snapshot or with ``net`` of all snapshots together."""
    values = (_comparable(F.col(quoted(name)), rows.schema[name].dataType) for name in compared)
    rows = rows.withColumn(_ROW, F.struct(*(value.alias(f"c{number}") for number, value in enumerate(values))))
    scope = [] if net else [CHANGE_ORDINAL]
    if net:  # else a later snapshot that only copied a row would be the one that changed it
        by_row_id = pairs is not None and len(pairs.keys) == 0
        rows = _remaining(rows, [_ROW, CHANGE_ORDINAL, *([ROW_ID.name] if by_row_id else [])])
    if pairs is None:
        return _unfolded(_remaining(rows, [_ROW, *scope]))
    if len(pairs.keys) > 0:
        return _paired_by_keys(_remaining(rows, [_ROW, *scope]), pairs.keys, scope)
    return _paired_by_row_ids(rows, scope)


def _remaining(rows: DataFrame, by: Sequence[str]) -> DataFrame:
    """The rows that remain if deleted and inserted rows that are equal cancel each other; the last ones do.

    Rows that are paired already remain.
    """
    is_insert = F.col(_IS_INSERT)
    same, ranked = Window.partitionBy(*by), Window.partitionBy(*by, _IS_INSERT).orderBy(F.col(CHANGE_ORDINAL).desc())
    inserted, count = F.sum(is_insert.cast("int")).over(same), F.count(F.lit(1)).over(same)
    surplus = F.when(is_insert, inserted * 2 - count).otherwise(count - inserted * 2)
    counted = rows.withColumns({_SURPLUS: surplus, _RANK: F.row_number().over(ranked)})
    remains = F.col(_RANK) <= F.col(_SURPLUS)
    return counted.where(F.col(_IS_PAIR) | remains if _IS_PAIR in rows.columns else remains)


def _paired_by_row_ids(rows: DataFrame, scope: Sequence[str]) -> DataFrame:
    """Changes in which the first deleted and the last inserted row of a row id are an update."""
    unique = F.lit(-1) - F.monotonically_increasing_id()  # rows without an id are in no pair
    rows = rows.withColumn(_IDENTITY, F.coalesce(F.col(ROW_ID.name), unique))
    in_time = Window.partitionBy(_IDENTITY, *scope).orderBy(CHANGE_ORDINAL, _IS_INSERT)
    whole = in_time.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    rows = rows.withColumns(
        {
            _POSITION: F.row_number().over(in_time),
            _COUNT: F.count(F.lit(1)).over(whole),
            _EXISTED: ~F.first(_IS_INSERT).over(whole),
            _EXISTS: F.last(_IS_INSERT).over(whole),
            _IS_SAME: F.first(_ROW).over(whole).eqNullSafe(F.last(_ROW).over(whole)),
            _WHEN: F.last(CHANGE_ORDINAL).over(whole),
            _BY: F.last(COMMIT_SNAPSHOT).over(whole),
        }
    )
    is_before = (F.col(_POSITION) == 1) & ~F.col(_IS_INSERT)
    is_after = (F.col(_POSITION) == F.col(_COUNT)) & F.col(_IS_INSERT)
    rows = rows.withColumn(_IS_PAIR, F.col(_EXISTED) & F.col(_EXISTS))
    # Of an id that came and went, and of one that went and came back, the rows in between are no change.
    kept = F.when(F.col(_IS_PAIR), (is_before | is_after) & ~F.col(_IS_SAME)).otherwise(
        (is_before & ~F.col(_EXISTS)) | (is_after & ~F.col(_EXISTED))
    )
    return _labelled(_remaining(rows.where(kept), [_ROW, _IS_PAIR, *scope]))


def _paired_by_keys(rows: DataFrame, keys: Sequence[str], scope: Sequence[str]) -> DataFrame:
    """Changes in which the deleted and the inserted row of a key are an update; a repeated key fails the query."""
    columns = [F.col(quoted(name)) for name in keys]
    types = [rows.schema[name].dataType for name in keys]
    same = [_comparable(column, type_) for column, type_ in zip(columns, types, strict=True)]
    by = Window.partitionBy(*same, *(F.col(name) for name in scope))
    has_key = ~reduce(or_, (column.isNull() for column in columns))
    inserted = F.sum(F.col(_IS_INSERT).cast("int")).over(by)
    deleted = F.count(F.lit(1)).over(by) - inserted
    is_repeated = has_key & ((inserted > 1) | (deleted > 1))
    shown = F.to_json(F.struct(*columns))
    message = str(repeated_key(VALUE))
    is_pair = F.when(is_repeated, failure(message, shown).cast("boolean")).otherwise(
        has_key & (inserted == 1) & (deleted == 1)
    )
    after = {_WHEN: CHANGE_ORDINAL, _BY: COMMIT_SNAPSHOT}
    later = {name: F.max(F.when(F.col(_IS_INSERT), F.col(source))).over(by) for name, source in after.items()}
    return _labelled(rows.withColumns({_IS_PAIR: is_pair, **later}))


def _labelled(rows: DataFrame) -> DataFrame:
    """The rows with their change types; both rows of an update have the ordinal and snapshot of the later one."""
    is_insert, is_pair = F.col(_IS_INSERT), F.col(_IS_PAIR)
    update = F.when(is_insert, UPDATE_AFTER).otherwise(UPDATE_BEFORE)
    single = F.when(is_insert, INSERT).otherwise(DELETE)
    return rows.withColumns(
        {
            CHANGE_TYPE: F.when(is_pair, update).otherwise(single),
            CHANGE_ORDINAL: F.when(is_pair, F.col(_WHEN)).otherwise(F.col(CHANGE_ORDINAL)),
            COMMIT_SNAPSHOT: F.when(is_pair, F.col(_BY)).otherwise(F.col(COMMIT_SNAPSHOT)),
        }
    )


def _comparable(column: Column, type_: DataType) -> Column:
    """A value that Spark can group by and that is equal where this library holds values for equal.

    Spark does not group by maps, and groups 0.0 with -0.0. Their texts differ, and every NaN has the same text.
    """
    match type_:
        case FloatType() | DoubleType() | VariantType():
            return column.cast("string")
        case StructType():
            fields = (_comparable(column.getField(field.name), field.dataType) for field in type_.fields)
            inside = F.struct(*(value.alias(f"c{number}") for number, value in enumerate(fields)))
            return F.when(column.isNotNull(), inside)
        case ArrayType():
            element = type_.elementType
            return F.transform(column, lambda value: _comparable(value, element))
        case MapType():
            key, item = type_.keyType, type_.valueType
            return F.transform(
                F.map_entries(column),
                lambda entry: F.struct(
                    _comparable(entry.getField("key"), key).alias("key"),
                    _comparable(entry.getField("value"), item).alias("value"),
                ),
            )
        case _:
            return column

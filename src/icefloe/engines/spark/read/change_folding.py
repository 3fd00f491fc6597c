"""Reduces deleted and inserted rows to changes, on Spark: rows that were only copied are none, updates become pairs.

The rules are those of ``engines/arrow/read/change_folding.py``; window functions apply them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructType, VariantType

from icefloe.engines.change_feed import repeated_key
from icefloe.engines.spark.write.conform import VALUE, failure, quoted
from icefloe.model.schema.metadata_columns import ROW_ID
from icefloe.scan.changes.pairing import UpdatePairs
from icefloe.scan.changes.plan import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT,
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
)

IS_INSERT = "_icefloe_is_insert"
_ROW, _IDENTITY, _IS_PAIR = "_icefloe_row", "_icefloe_identity", "_icefloe_is_pair"
_RANK, _SURPLUS, _POSITION, _COUNT = "_icefloe_rank", "_icefloe_surplus", "_icefloe_position", "_icefloe_count"
_EXISTED, _EXISTS, _IS_SAME = "_icefloe_existed", "_icefloe_exists", "_icefloe_is_same"
_WHEN, _BY = "_icefloe_when", "_icefloe_by"


def unfolded(rows: DataFrame) -> DataFrame:
    """Rows of which none can cancel another one, with their change types."""
    return rows.withColumn(CHANGE_TYPE, F.when(F.col(IS_INSERT), INSERT).otherwise(DELETE))


def fold(rows: DataFrame, compared: Sequence[str], pairs: UpdatePairs | None, *, net: bool) -> DataFrame:
    """The changes that remain of deleted and inserted rows, by snapshot or with ``net`` of all snapshots together."""
    values = (_comparable(F.col(quoted(name)), rows.schema[name].dataType) for name in compared)
    rows = rows.withColumn(_ROW, F.struct(*(value.alias(f"c{number}") for number, value in enumerate(values))))
    scope = [] if net else [CHANGE_ORDINAL]
    if net:  # else a later snapshot that only copied a row would be the one that changed it
        by_row_id = pairs is not None and len(pairs.keys) == 0
        rows = _remaining(rows, [_ROW, CHANGE_ORDINAL, *([ROW_ID.name] if by_row_id else [])])
    if pairs is None:
        return unfolded(_remaining(rows, [_ROW, *scope]))
    if len(pairs.keys) > 0:
        return _paired_by_keys(_remaining(rows, [_ROW, *scope]), pairs.keys, scope)
    return _paired_by_row_ids(rows, scope)


def _remaining(rows: DataFrame, by: Sequence[str]) -> DataFrame:
    """The rows that remain if deleted and inserted rows that are equal cancel each other; the last ones do.

    Rows that are paired already remain.
    """
    is_insert = F.col(IS_INSERT)
    same, ranked = Window.partitionBy(*by), Window.partitionBy(*by, IS_INSERT).orderBy(F.col(CHANGE_ORDINAL).desc())
    inserted, count = F.sum(is_insert.cast("int")).over(same), F.count(F.lit(1)).over(same)
    surplus = F.when(is_insert, inserted * 2 - count).otherwise(count - inserted * 2)
    counted = rows.withColumns({_SURPLUS: surplus, _RANK: F.row_number().over(ranked)})
    remains = F.col(_RANK) <= F.col(_SURPLUS)
    return counted.where(F.col(_IS_PAIR) | remains if _IS_PAIR in rows.columns else remains)


def _paired_by_row_ids(rows: DataFrame, scope: Sequence[str]) -> DataFrame:
    """Changes in which the first deleted and the last inserted row of a row id are an update."""
    unique = F.lit(-1) - F.monotonically_increasing_id()  # rows without an id are in no pair
    rows = rows.withColumn(_IDENTITY, F.coalesce(F.col(ROW_ID.name), unique))
    in_time = Window.partitionBy(_IDENTITY, *scope).orderBy(CHANGE_ORDINAL, IS_INSERT)
    whole = in_time.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    rows = rows.withColumns(
        {
            _POSITION: F.row_number().over(in_time),
            _COUNT: F.count(F.lit(1)).over(whole),
            _EXISTED: ~F.first(IS_INSERT).over(whole),
            _EXISTS: F.last(IS_INSERT).over(whole),
            _IS_SAME: F.first(_ROW).over(whole).eqNullSafe(F.last(_ROW).over(whole)),
            _WHEN: F.last(CHANGE_ORDINAL).over(whole),
            _BY: F.last(COMMIT_SNAPSHOT).over(whole),
        }
    )
    is_before = (F.col(_POSITION) == 1) & ~F.col(IS_INSERT)
    is_after = (F.col(_POSITION) == F.col(_COUNT)) & F.col(IS_INSERT)
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
    inserted = F.sum(F.col(IS_INSERT).cast("int")).over(by)
    deleted = F.count(F.lit(1)).over(by) - inserted
    is_repeated = has_key & ((inserted > 1) | (deleted > 1))
    shown = F.to_json(F.struct(*columns))
    message = str(repeated_key(VALUE))
    is_pair = F.when(is_repeated, failure(message, shown).cast("boolean")).otherwise(
        has_key & (inserted == 1) & (deleted == 1)
    )
    after = {_WHEN: CHANGE_ORDINAL, _BY: COMMIT_SNAPSHOT}
    later = {name: F.max(F.when(F.col(IS_INSERT), F.col(source))).over(by) for name, source in after.items()}
    return _labelled(rows.withColumns({_IS_PAIR: is_pair, **later}))


def _labelled(rows: DataFrame) -> DataFrame:
    """The rows with their change types; both rows of an update have the ordinal and snapshot of the later one."""
    is_insert, is_pair = F.col(IS_INSERT), F.col(_IS_PAIR)
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

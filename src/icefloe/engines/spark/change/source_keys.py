"""The keys of the source of a change: the files and rows of the table that may have one of them.

Upserts, ``t.merge`` and the statements of Spark SQL find their rows by these keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.change.conditions import conjuncts_of
from icefloe.engines.spark.session import java_class
from icefloe.expr.filter.nodes import ALWAYS_FALSE, Expr, Op, Predicate, conjunction
from icefloe.expr.text.spark_sql import quoted
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DATE, INT, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, Decimal, Field

_LISTED_ROWS = 100  # up to this number of rows a filter lists their keys; of more it has their range
_ORDERED = frozenset({INT, LONG, DATE, TIMESTAMP, TIMESTAMPTZ, STRING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A column of the table that equals a value of the source."""

    column: str
    value: Column


def has_ordered_values(field: Field) -> bool:
    """Whether the least and the greatest value of a column filter files."""
    return field.type in _ORDERED or isinstance(field.type, Decimal)


def keys_of_join(join: Any, table: Any, source: Any, schema: Schema) -> list[Key]:
    """The equalities in the condition of a Catalyst join between columns of a table and values of a source.

    ``table`` and ``source`` are the sets of their attributes.
    """
    tools = java_class(SparkSession.active(), "org.apache.spark.sql.classic.ExpressionUtils")
    keys = []
    for part in conjuncts_of(join.condition().get()) if join.condition().isDefined() else ():
        if part.getClass().getSimpleName() != "EqualTo":
            continue
        for ours, theirs in ((part.left(), part.right()), (part.right(), part.left())):
            column, used = _plain_column(ours), theirs.references()
            if column is None or not table.contains(column) or used.isEmpty() or not used.subsetOf(source):
                continue
            field = schema.by_name.get(column.name())
            if field is not None and has_ordered_values(field) and theirs.deterministic():
                keys.append(Key(column=field.name, value=Column(tools.column(theirs))))
    return keys


def _plain_column(expression: Any) -> Any | None:
    """The attribute of an expression that is a column, or a column widened from int to bigint."""
    name = expression.getClass().getSimpleName()
    if name == "Cast" and expression.dataType().typeName() == "long":
        child = expression.child()
        return child if child.dataType().typeName() == "integer" and _plain_column(child) is not None else None
    return expression if name == "AttributeReference" else None


def key_filter(source: DataFrame, keys: Sequence[Key]) -> Expr:
    """A filter for the rows of the table with a key of the source: the range of the keys, or a list of few keys."""
    count, *ends = (column[0].as_py() for column in source.agg(F.count("*"), *ends_of(keys)).toArrow().columns)
    if count == 0:
        return ALWAYS_FALSE
    if len(keys) == 0 or count > _LISTED_ROWS:
        return range_filter(keys, ends)
    listed = source.select(*(key.value.alias(str(number)) for number, key in enumerate(keys))).toArrow()
    return conjunction(_in(key.column, values.to_pylist()) for key, values in zip(keys, listed.columns, strict=True))


def ends_of(keys: Sequence[Key]) -> list[Column]:
    """The least and the greatest value of each key, as aggregates of the source."""
    return [
        end(key.value).alias(f"{number} {end.__name__}") for number, key in enumerate(keys) for end in (F.min, F.max)
    ]


def range_filter(keys: Sequence[Key], ends: Sequence[Any]) -> Expr:
    """The filter of the least and the greatest value of each key; no row has a key that is always null."""
    if any(end is None for end in ends):
        return ALWAYS_FALSE
    pairs = zip(keys, ends[::2], ends[1::2], strict=True)
    return conjunction(
        Predicate(op, key.column, (end,)) for key, *both in pairs for op, end in zip((Op.GE, Op.LE), both, strict=True)
    )


def _in(column: str, values: Sequence[Any]) -> Expr:
    known = tuple(value for value in dict.fromkeys(values) if value is not None)
    return Predicate(Op.IN, column, known) if len(known) > 0 else ALWAYS_FALSE


def rows_with_keys(table: DataFrame, source: DataFrame, keys: Sequence[Key]) -> DataFrame:
    """The rows of a table with a key of the source, if Spark would broadcast these keys; otherwise all rows.

    An outer join shuffles the rows of both sides, and needs no other rows of the table.
    """
    if len(keys) == 0:
        return table
    names = [f"_icefloe_key_{number}" for number in range(len(keys))]
    wanted = source.select(*(key.value.alias(name) for key, name in zip(keys, names, strict=True)))
    size = int(wanted._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())
    limit = source.sparkSession._jsparkSession.sessionState().conf().autoBroadcastJoinThreshold()
    equal = [F.col(quoted(key.column)) == F.col(name) for key, name in zip(keys, names, strict=True)]
    return table.join(wanted, reduce(and_, equal), "left_semi") if size <= limit else table

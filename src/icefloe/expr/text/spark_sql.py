"""Bound filters as Spark SQL that means the same in every session (spec: Partition Transforms).

Nothing depends on the session's time zone: an instant is computed from its microseconds, and so are its year, month,
day and hour, which are those of UTC. What Spark cannot say exactly is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icefloe.errors import UnsupportedError
from icefloe.expr.filter.nodes import (
    And,
    Bound,
    BoundPredicate,
    Branch,
    Constant,
    Leaf,
    Op,
    bound_leaf,
    fold,
    with_both_zeros,
)
from icefloe.expr.text.datetime_text import micros
from icefloe.model.schema import types as iceberg


def to_sql(bound: Bound) -> str:
    """The filter as Spark SQL that means the same in every session: names quoted, literals typed.

    >>> to_sql(BoundPredicate(Op.IN, 1, ("a", "b"), iceberg.LONG, (1, 2)))
    '`a`.`b` IN (1L, 2L)'
    """
    return fold(bound, _sql_leaf, _sql_branch)


def _sql_branch(node: Branch, parts: list[str]) -> str:
    return "(" + (" AND " if isinstance(node, And) else " OR ").join(parts) + ")"


def _sql_leaf(leaf: Leaf) -> str:
    node = bound_leaf(leaf)
    if isinstance(node, Constant):
        return "true" if node.value else "false"
    if node.type == iceberg.TIME and len(node.literals) > 0:
        # As text, which has the same order: Spark takes literals of the type only in sessions that enable it.
        literals = [sql_literal(_time_text(value), iceberg.STRING) for value in node.literals]
        return sql_condition(node.op, f"CAST({sql_term(node)} AS STRING)", literals)
    literals = [sql_literal(value, node.type) for value in with_both_zeros(node.literals)]
    condition = sql_condition(node.op, sql_term(node), literals)
    return f"({condition})" if node.op in (Op.NOT_NAN, Op.NOT_STARTS_WITH) else condition


def _time_text(value: Any) -> str:
    """A time as Spark casts it to a string: without zeros at the end of its fraction."""
    text: str = value.isoformat()
    return text.rstrip("0") if "." in text else text


def quoted(*path: str) -> str:
    """A column by the names down to it.

    >>> quoted("a b", "c`d")
    '`a b`.`c``d`'
    """
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


def sql_term(node: BoundPredicate) -> str:
    """What a predicate tests: the column, or an expression that computes the transform of it."""
    column = quoted(*node.path)
    if node.source is None:
        return column
    if node.source in (iceberg.TIMESTAMP_NS, iceberg.TIMESTAMPTZ_NS):
        raise _no_nanos(node.source)
    term = node.transform.spark_sql(column, node.source)
    if term is None:
        raise UnsupportedError(
            f"Spark SQL has no function for {node.transform} of column {node.name!r}; filter with another condition",
            transform=str(node.transform),
        )
    return term


def sql_condition(op: Op, term: str, literals: Sequence[str]) -> str:
    """A test of a term; its operators bind closer than AND.

    >>> sql_condition(Op.NOT_IN, "id", ["1", "2"])
    'id NOT IN (1, 2)'
    """
    match op:
        case Op.IS_NULL | Op.NOT_NULL:
            return f"{term} {op.value.upper()}"
        case Op.IN | Op.NOT_IN:
            return f"{term} {op.value.upper()} ({', '.join(literals)})"
        case Op.IS_NAN | Op.NOT_NAN:
            test = f"isnan({term})"
        case Op.STARTS_WITH | Op.NOT_STARTS_WITH:
            test = f"startswith({term}, {literals[0]})"
        case _:
            return f"{term} {op.value} {literals[0]}"
    return f"NOT {test}" if op in (Op.NOT_NAN, Op.NOT_STARTS_WITH) else test


def sql_literal(value: Any, type_: iceberg.Type) -> str:
    """A literal that Spark reads as exactly this value of the type."""
    match type_:
        case _ if isinstance(value, bool):
            return "true" if value else "false"
        case _ if type_ == iceberg.INT:
            return str(value)
        case _ if type_ == iceberg.LONG:
            return f"{value}L"
        case _ if type_ in (iceberg.FLOAT, iceberg.DOUBLE):
            text = repr(value).replace("inf", "Infinity")
            return f"CAST('{text}' AS {str(type_).upper()})"
        case iceberg.Decimal(precision, scale):
            return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"
        case _ if type_ == iceberg.STRING:
            return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
        case _ if type_ == iceberg.DATE:
            return f"DATE '{value.isoformat()}'"
        case _ if type_ == iceberg.TIME:
            return f"TIME '{value.isoformat()}'"
        case _ if type_ == iceberg.TIMESTAMP:
            return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
        case _ if type_ == iceberg.TIMESTAMPTZ:
            return f"timestamp_micros({micros(value)}L)"
        case _ if type_ in (iceberg.TIMESTAMP_NS, iceberg.TIMESTAMPTZ_NS):
            raise _no_nanos(type_)
        case _:
            return f"X'{value.hex().upper()}'"


def _no_nanos(type_: iceberg.Type) -> UnsupportedError:
    return UnsupportedError(f"Spark has no timestamps of nanoseconds, so it cannot filter a {type_}", type=str(type_))

"""Terms and literals of bound filters as Spark SQL that means the same in every session (spec: Partition Transforms).

Nothing depends on the session's time zone: an instant is computed from its microseconds, and so are its year, month,
day and hour, which are those of UTC. What Spark cannot say exactly is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icefloe.errors import UnsupportedError
from icefloe.expr.filter.nodes import BoundPredicate, Op
from icefloe.expr.text.datetime_text import micros
from icefloe.model.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    Decimal,
    Type,
)


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
    if node.source in (TIMESTAMP_NS, TIMESTAMPTZ_NS):
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


def sql_literal(value: Any, type_: Type) -> str:
    """A literal that Spark reads as exactly this value of the type."""
    match type_:
        case _ if isinstance(value, bool):
            return "true" if value else "false"
        case _ if type_ == INT:
            return str(value)
        case _ if type_ == LONG:
            return f"{value}L"
        case _ if type_ in (FLOAT, DOUBLE):
            text = repr(value).replace("inf", "Infinity")
            return f"CAST('{text}' AS {str(type_).upper()})"
        case Decimal(precision, scale):
            return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"
        case _ if type_ == STRING:
            return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
        case _ if type_ == DATE:
            return f"DATE '{value.isoformat()}'"
        case _ if type_ == TIME:
            return f"TIME '{value.isoformat()}'"
        case _ if type_ == TIMESTAMP:
            return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
        case _ if type_ == TIMESTAMPTZ:
            return f"timestamp_micros({micros(value)}L)"
        case _ if type_ in (TIMESTAMP_NS, TIMESTAMPTZ_NS):
            raise _no_nanos(type_)
        case _:
            return f"X'{value.hex().upper()}'"


def _no_nanos(type_: Type) -> UnsupportedError:
    return UnsupportedError(f"Spark has no timestamps of nanoseconds, so it cannot filter a {type_}", type=str(type_))

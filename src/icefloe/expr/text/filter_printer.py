"""Filters as text that ``parse_filter`` reads back as the same filter (spec: Scan Planning).

The text is for people, logs and other programs of this library: names are quoted only where they must be, and literals
keep their types. ``spark_sql.to_sql`` is for Spark, and does not depend on the session.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import uuid
from functools import cache

from icefloe.errors import InputError
from icefloe.expr.filter.nodes import (
    And,
    BoundPredicate,
    Branch,
    Constant,
    Expr,
    Leaf,
    Not,
    Op,
    Predicate,
    TransformTerm,
    fold,
)
from icefloe.expr.text.datetime_text import Nanos, from_micros, nanos
from icefloe.expr.text.spark_sql import quoted, sql_condition
from icefloe.lazy import LazyModule
from icefloe.model.partition.transform_names import PLAIN_FUNCTIONS, SIZED_FUNCTIONS
from icefloe.model.schema.types import TIMESTAMP_NS, TIMESTAMPTZ_NS, UUID, Type

spark_dialect = LazyModule("sqlglot.dialects.spark")

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FUNCTION_OF = {transform: function for function, transform in PLAIN_FUNCTIONS.items()}
_SIZED = re.compile(rf"({'|'.join(SIZED_FUNCTIONS)})\[(\d{{1,10}})\]", re.ASCII)
_PLAIN_FLOAT = re.compile(r"-?\d+\.\d+", re.ASCII)


def to_text(expr: Expr) -> str:
    """A filter, bound or not, as SQL text.

    >>> to_text(And((Predicate(Op.EQ, TransformTerm("bucket[16]", "id"), (3,)), Predicate(Op.IS_NULL, "a b"))))
    'bucket(16, id) = 3 AND `a b` IS NULL'
    """
    return fold(expr, _leaf, _branch)[0]


_Text = tuple[str, bool]  # and whether it needs parentheses inside another condition


def _branch(node: Branch, parts: list[_Text]) -> _Text:
    inside = [f"({text})" if is_open else text for text, is_open in parts]
    if isinstance(node, Not):
        return f"NOT ({parts[0][0]})", True
    if len(inside) == 0:
        return ("true" if isinstance(node, And) else "false"), False
    if len(inside) == 1:
        return parts[0]
    return (" AND " if isinstance(node, And) else " OR ").join(inside), True


def _leaf(leaf: Leaf) -> _Text:
    match leaf:
        case Constant(value):
            return ("true" if value else "false"), False
        case BoundPredicate():
            transform = None if leaf.transform.is_identity else str(leaf.transform)
            term = _term(quoted(*leaf.path) if _must_quote(leaf.path) else leaf.name, transform, leaf.name)
            return _condition(leaf.op, term, [_bound_literal(value, leaf.type) for value in leaf.literals])
        case Predicate(op, TransformTerm(transform, column)):
            return _condition(op, _term(_name(column), transform, column), [_literal(v) for v in leaf.literals])
        case Predicate(op, _):
            return _condition(op, _name(leaf.column), [_literal(value) for value in leaf.literals])


def _condition(op: Op, term: str, literals: list[str]) -> _Text:
    if op.takes_literals and op not in (Op.IN, Op.NOT_IN) and len(literals) != 1:
        raise InputError(f"{term} {op.value}: one literal is needed, not {len(literals)}", term=term)
    return sql_condition(op, term, literals), False


def _name(column: str) -> str:
    parts = tuple(column.split("."))
    if not _must_quote(parts):
        return column
    # Between quotes a dot belongs to the name, and joined names read the same; empty names are ambiguous.
    return quoted(*parts) if all(part != "" for part in parts) else quoted(column)


def _must_quote(path: tuple[str, ...]) -> bool:
    return any(_PLAIN_NAME.fullmatch(part) is None or part.upper() in _keywords() for part in path)


@cache
def _keywords() -> frozenset[str]:
    """The words that Spark SQL does not take for names."""
    spark = spark_dialect.Spark
    keywords = (*spark.Tokenizer.KEYWORDS, *spark.Parser.NO_PAREN_FUNCTION_PARSERS)
    return frozenset(word for keyword in keywords for word in keyword.split())


def _term(name: str, transform: str | None, column: str) -> str:
    if transform is None or transform == "identity":
        return name
    if (function := _FUNCTION_OF.get(transform)) is not None:
        return f"{function}({name})"
    if (match := _SIZED.fullmatch(transform)) is not None:
        return f"{match[1]}({match[2]}, {name})"
    raise InputError(f"transform {transform!r} of column {column!r} cannot be written in SQL", transform=transform)


def _bound_literal(value: object, type_: Type) -> str:
    if type_ in (TIMESTAMP_NS, TIMESTAMPTZ_NS) and isinstance(value, int):
        return _literal(Nanos(value, type_ == TIMESTAMPTZ_NS))
    if type_ == UUID and isinstance(value, bytes):
        return _literal(uuid.UUID(bytes=value))
    return _literal(value)


def _literal(value: object) -> str:
    try:
        return _written(value)
    except ValueError as error:  # a timestamp or a number that has no text
        raise InputError(f"a literal cannot be written in SQL: {error}") from error


def _written(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _float(value)
        case decimal.Decimal():
            return _decimal(value)
        case str():
            return _string(value)
        case bytes() | bytearray():
            return f"X'{value.hex().upper()}'"
        case uuid.UUID():
            return f"CAST('{value}' AS UUID)"
        case dt.datetime():
            return f"TIMESTAMP '{_moment(value)}'"
        case Nanos():
            return f"TIMESTAMP '{str(value).replace('T', ' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case dt.time():
            return f"TIME '{value.isoformat()}'"
    raise InputError(f"a literal of type {type(value).__name__} cannot be written in SQL: {value!r}")


def _float(value: float) -> str:
    text = repr(float(value))
    if _PLAIN_FLOAT.fullmatch(text) is not None:
        return f"{text}D"
    return f"CAST('{text if math.isfinite(value) else text.replace('inf', 'Infinity')}' AS DOUBLE)"


def _decimal(value: decimal.Decimal) -> str:
    if not value.is_finite():
        return _float(float(value))
    text = str(value)
    return text if _PLAIN_FLOAT.fullmatch(text) is not None else f"CAST('{text}' AS DECIMAL)"


def _string(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _moment(value: dt.datetime) -> str:
    """In UTC if it has an offset; with nine digits if it counts nanoseconds, as pandas' timestamps do."""
    count = nanos(value)
    if count % 1000 != 0:
        return str(Nanos(count, value.tzinfo is not None)).replace("T", " ")
    moment = from_micros(count // 1000)
    return (moment if value.tzinfo is not None else moment.replace(tzinfo=None)).isoformat(sep=" ")

"""Terms and literals of bound filters as Spark SQL that means the same in every session (spec: Partition Transforms).

Nothing depends on the session's time zone: an instant is computed from its microseconds, and so are its year, month,
day and hour, which are those of UTC. What Spark cannot say exactly is refused.
"""

from __future__ import annotations

import decimal
from typing import Any

from icefloe.errors import UnsupportedError
from icefloe.expr.filter.nodes import BoundPredicate
from icefloe.expr.text.datetime_text import micros
from icefloe.model.schema.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    MAX_DECIMAL_PRECISION,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    Decimal,
    PrimitiveType,
    Type,
)
from icefloe.transforms import Day, Hour, Month, Truncate, Year

_MICROS_PER_DAY = "86400000000L"
_MICROS_PER_HOUR = "3600000000L"


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
    match node.transform:
        case Year():
            return f"(year({_day(column, node.source)}) - 1970)"
        case Month():
            day = _day(column, node.source)
            return f"((year({day}) - 1970) * 12 + month({day}) - 1)"
        case Day():
            return _day(column, node.source)
        case Hour():
            return _hour(column, node.source)
        case Truncate(width):
            return _truncated(column, node.source, width)
    raise UnsupportedError(
        f"Spark SQL has no function for {node.transform} of column {node.name!r}; filter with another condition",
        transform=str(node.transform),
    )


def _day(column: str, source: PrimitiveType) -> str:
    """The UTC day; casting a local timestamp or a date to a date knows no time zone."""
    if source != TIMESTAMPTZ:
        return f"CAST({column} AS DATE)"
    return f"date_from_unix_date(CAST({_units(column, _MICROS_PER_DAY)} AS INT))"


def _hour(column: str, source: PrimitiveType) -> str:
    if source == TIMESTAMPTZ:
        return f"CAST({_units(column, _MICROS_PER_HOUR)} AS INT)"
    return f"(unix_date({_day(column, source)}) * 24 + hour({column}))"


def _units(column: str, size: str) -> str:
    """How many units from 1970, rounded towards the past; Spark's own division rounds towards 1970."""
    count = f"unix_micros({column})"
    return f"(({count} - pmod({count}, {size})) div {size})"


def _truncated(column: str, source: PrimitiveType, width: int) -> str:
    if source in (STRING, BINARY):
        return f"substring({column}, 1, {width})"
    if not isinstance(source, Decimal):
        return f"({column} - pmod({column}, {sql_literal(width, source)}))"
    if source.precision >= MAX_DECIMAL_PRECISION:
        raise UnsupportedError(f"Spark cannot compute truncate[{width}] of {source} without rounding", type=str(source))
    step = decimal.Decimal(width).scaleb(-source.scale, decimal.Context(prec=100))
    unit = Decimal(max(len(str(width)), source.scale), source.scale)
    return f"({column} - pmod({column}, {sql_literal(step, unit)}))"


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

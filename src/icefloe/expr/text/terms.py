"""What a condition in a filter text tests: a column, or a transform of one (spec: Partition Transforms).

Transforms have the names of Iceberg's SQL functions, which count from 1970: ``bucket(16, id)``, ``truncate(4, name)``,
``years(ts)``, ``months(ts)``, ``days(ts)``, ``hours(ts)``, also with the prefix ``system.`` or a catalog's name and
``system.``. SQL's own ``year(ts)`` is the same transform counted from year 0; its ``month``, ``day`` and ``hour`` are
parts of a date.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from icefloe.expr.filter.nodes import Op, Predicate, TransformTerm
from icefloe.model.partition.transform_names import PLAIN_FUNCTIONS, SIZED_FUNCTIONS

_FUNCTIONS = frozenset({*PLAIN_FUNCTIONS, *SIZED_FUNCTIONS})
_CALENDAR: dict[Any, tuple[str, str]] = {
    exp.Month: ("month", "months"),
    exp.Day: ("day", "days"),
    exp.DayOfMonth: ("dayofmonth", "days"),
    exp.Hour: ("hour", "hours"),
}
_TERMS = (exp.Column, exp.Dot, exp.Year, exp.Trunc, *_CALENDAR)
_FIRST_YEAR = 1970
_MAX_DIGITS = 10
_EXACT = decimal.Context(prec=500, traps=[decimal.Inexact, decimal.InvalidOperation])
_NO_COLUMN = "one side must be a column and the other a literal"


@dataclass(frozen=True, slots=True)
class Functions:
    """Which functions are transforms for certain: those without ``system.`` (``bare``), and SQL's ``year``.

    The filters of a Spark session may call a function of its user that is named ``bucket``, and their ``year`` is that
    of the session's time zone.
    """

    bare: bool = True
    year: bool = True


@dataclass(frozen=True, slots=True)
class Subject:
    """The left side of a condition; ``first`` is taken off its literals, for SQL's years count from 0."""

    term: str | TransformTerm
    first: int = 0

    def test(self, op: Op, *literals: object) -> Predicate:
        """The predicate that compares with these literals."""
        if self.first == 0:
            return Predicate(op, self.term, literals)
        return Predicate(op, self.term, tuple(_less(literal, self.first) for literal in literals))


def is_term(node: Any) -> bool:
    """Whether a side of a comparison is what it tests, and not the literal."""
    if isinstance(node, exp.Anonymous):
        return _function_name(node) in _FUNCTIONS
    return isinstance(node, _TERMS)


def subject_of(node: Any, functions: Functions) -> Subject:
    """The column or transform that a node names; ValueError for anything else."""
    match node:
        case exp.Paren():
            return subject_of(node.this, functions)
        case exp.Dot(expression=exp.Anonymous() as call) if _is_system(node.this):
            return Subject(_transform(_function_name(call), call.expressions))
        case exp.Column() | exp.Dot():
            return Subject(_name(node))
        case exp.Year() if functions.year:
            return Subject(TransformTerm("year", _name(node.this)), _FIRST_YEAR)
        case exp.Trunc() if functions.bare:
            return Subject(_transform("truncate", list(node.iter_expressions())))
        case exp.Anonymous() if functions.bare and is_term(node):
            return Subject(_transform(_function_name(node), node.expressions))
        case _ if (names := _CALENDAR.get(type(node))) is not None:
            raise ValueError(f"{names[0]} is a part of a date; the transform that counts from 1970 is {names[1]}")
    raise ValueError(_NO_COLUMN)


def _transform(function: str, arguments: list[Any]) -> TransformTerm:
    if function in SIZED_FUNCTIONS:
        if len(arguments) != 2 or not _is_size(arguments[0]):
            raise ValueError(f"write {function}(N, column) with a whole number N")
        return TransformTerm(f"{function}[{arguments[0].this}]", _name(arguments[1]))
    if function not in PLAIN_FUNCTIONS:
        raise ValueError(f"system.{function} is not a transform; there are {', '.join(sorted(_FUNCTIONS))}")
    if len(arguments) != 1:
        raise ValueError(f"write {function}(column)")
    return TransformTerm(PLAIN_FUNCTIONS[function], _name(arguments[0]))


def _is_size(node: Any) -> bool:
    is_number = isinstance(node, exp.Literal) and not node.is_string
    return is_number and node.this.isdecimal() and node.this.isascii() and len(node.this) <= _MAX_DIGITS


def _is_system(node: Any) -> bool:
    """Whether a prefix is ``system``, or a catalog's name and ``system``."""
    last = node.expression if isinstance(node, exp.Dot) else node
    return isinstance(last, exp.Identifier) and str(last.name).lower() == "system"


def _function_name(node: Any) -> str:
    return str(node.name).lower()


def _name(node: Any) -> str:
    """The dotted name of a column."""
    if isinstance(node, (exp.Paren, exp.TsOrDsToDate)):  # what the parser puts into calls of year
        return _name(node.this)
    if isinstance(node, exp.Dot):
        return f"{_name(node.this)}.{_identifier(node.expression)}"
    if isinstance(node, exp.Column):
        return ".".join(_identifier(part) for part in node.parts)
    raise ValueError(_NO_COLUMN)


def _identifier(node: Any) -> str:
    if not isinstance(node, exp.Identifier):
        raise ValueError(_NO_COLUMN)
    return str(node.name)


def _less(literal: object, first: int) -> object:
    """A number less ``first``, exactly; null stays null."""
    if literal is None:
        return None
    if isinstance(literal, bool) or not isinstance(literal, (int, float, decimal.Decimal)):
        raise ValueError("a year is a number")
    if isinstance(literal, int):
        return literal - first
    number = decimal.Decimal(literal)
    if not number.is_finite():
        return literal
    try:
        return _EXACT.subtract(number, decimal.Decimal(first))
    except decimal.Inexact as error:
        raise ValueError(f"{literal} has too many digits for a year") from error

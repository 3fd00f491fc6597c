"""Parses the conditions of a filter text with sqlglot (see ``filter_parser``).

``boolean_parser`` splits the logic, sqlglot parses each condition, and this module converts it to predicates. Only
conditions that compare one column, or a transform of one, with literals are filters. Others are refused, with a reason.

Transforms have the names of Iceberg's SQL functions, which count from 1970 (spec: Partition Transforms): ``bucket(16,
id)``, ``truncate(4, name)``, ``years(ts)``, ``months(ts)``, ``days(ts)``, ``hours(ts)``, also with the prefix
``system.`` or a catalog's name and ``system.``. SQL's own ``year(ts)`` is the same transform counted from year 0; its
``month``, ``day`` and ``hour`` are parts of a date.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
import zoneinfo
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from icefloe.errors import InputError
from icefloe.expr.filter.nodes import (
    Constant,
    Expr,
    Op,
    Predicate,
    TransformTerm,
    conjunction,
    negation,
)
from icefloe.expr.text.boolean_parser import parse_logic
from icefloe.expr.text.sql_tree import NOT_SQL, Localize, literal, sql_tree
from icefloe.model.partition.transform_names import PLAIN_FUNCTIONS, SIZED_FUNCTIONS

_COMPARISONS: dict[Any, tuple[Op, Op]] = {  # the operator, and the one for "literal operator column"
    exp.LT: (Op.LT, Op.GT),
    exp.LTE: (Op.LE, Op.GE),
    exp.GT: (Op.GT, Op.LT),
    exp.GTE: (Op.GE, Op.LE),
    exp.EQ: (Op.EQ, Op.EQ),
    exp.NEQ: (Op.NE, Op.NE),
}
_NULL_TESTS = {"isnull": Op.IS_NULL, "isnotnull": Op.NOT_NULL}
_FIXED_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):(\d{2})")
_FIRST_TRUSTED_YEAR = 1970
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
    """Which functions are certainly transforms: those without ``system.`` (``bare``), and SQL's ``year``.

    The filters of a Spark session may call a function of its user that is named ``bucket``, and their ``year`` is that
    of the session's time zone.
    """

    bare: bool = True
    year: bool = True


@dataclass(frozen=True, slots=True)
class Subject:
    """The left side of a condition; ``first`` is subtracted from its literals, because SQL's years count from 0."""

    term: str | TransformTerm
    first: int = 0

    def test(self, op: Op, *literals: object) -> Predicate:
        """The predicate that compares with these literals."""
        if self.first == 0:
            return Predicate(op, self.term, literals)
        return Predicate(op, self.term, tuple(_less(literal, self.first) for literal in literals))


@dataclass(frozen=True, slots=True)
class _Reading:
    """How to read local times and function names, whose meaning depends on the source of the text."""

    localize: Localize
    functions: Functions


def parse_text(text: str) -> Expr:
    """The filter that a text of a user means.

    >>> parse_text("id = 1")
    Predicate(op=<Op.EQ: '='>, term='id', literals=(1,))
    """
    reading = _Reading(_as_read, Functions())
    return parse_logic(text, lambda part: _atom(part, reading))


def parse_pushed(texts: Sequence[str], time_zone: str) -> Expr:
    """The filter of texts that Spark pushes down; those that are not understood are ``ALWAYS_TRUE``."""
    return conjunction(part for part in parse_conjuncts(texts, time_zone) if part is not None)


def parse_conjuncts(texts: Sequence[str], time_zone: str) -> list[Expr | None]:
    """The filters of texts in Catalyst's SQL, one by one; none for a text that is not understood."""
    zone = _zone(time_zone)
    reading = _Reading(_localizer(zone, time_zone), Functions(bare=False, year=zone is dt.UTC))
    return [_pushed(text, reading) for text in texts]


def _pushed(text: str, reading: _Reading) -> Expr | None:
    try:
        return parse_logic(text, lambda part: _atom(part, reading))
    except InputError:
        return None


def _as_read(moment: dt.datetime) -> dt.datetime:
    return moment


def _localizer(zone: dt.tzinfo | None, time_zone: str) -> Localize:
    """Converts local times of a zone to UTC; ValueError if the result is not certain."""

    def localize(local: dt.datetime) -> dt.datetime:
        if zone is None:
            raise ValueError(f"the time zone {time_zone!r} is not known")
        # Zone data of different vendors disagrees about the time before 1970.
        if local.year < _FIRST_TRUSTED_YEAR and zone is not dt.UTC:
            raise ValueError("local times before 1970 are not certain")
        earlier, later = local.replace(tzinfo=zone, fold=0), local.replace(tzinfo=zone, fold=1)
        if earlier.utcoffset() != later.utcoffset():
            raise ValueError(f"{local} occurs twice or never in {time_zone}")
        return earlier.astimezone(dt.UTC)

    return localize


def _zone(name: str) -> dt.tzinfo | None:
    if name in ("UTC", "Z", "GMT", "Etc/UTC"):
        return dt.UTC
    if (match := _FIXED_OFFSET.fullmatch(name)) is not None:
        offset = dt.timedelta(hours=int(match[2]), minutes=int(match[3]))
        return dt.timezone(offset if match[1] == "+" else -offset) if offset < dt.timedelta(days=1) else None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _atom(text: str, reading: _Reading) -> Expr:
    """The meaning of a part without logic."""
    try:
        return _condition(sql_tree(text), reading)
    except NOT_SQL as error:
        raise _refused(text, "it is not a condition in SQL") from error
    except RecursionError as error:
        raise _refused(text, "it is nested too deeply") from error
    except (ValueError, ArithmeticError) as error:
        raise _refused(text, str(error)) from error


def _refused(text: str, reason: str) -> InputError:
    shown = text if len(text) <= 200 else f"{text[:200]}..."
    return InputError(f"cannot use {shown!r} as a filter: {reason}", filter=text)


def _condition(node: Any, reading: _Reading) -> Expr:
    if (operators := _COMPARISONS.get(type(node))) is not None:
        return _comparison(node, operators, reading)
    match node:
        case exp.Paren():
            return _condition(node.this, reading)
        case exp.Not():
            return negation(_condition(node.this, reading))
        case exp.Boolean():
            return Constant(bool(node.this))
        case exp.Column() | exp.Dot():
            return subject_of(node, reading.functions).test(Op.EQ, True)
        case exp.Is():
            return _is(node, reading)
        case exp.In() if not _has(node, "query", "unnest", "field"):
            return _subject(node, reading).test(Op.IN, *(_literal(part, reading) for part in node.expressions))
        case exp.Between() if not _has(node, "symmetric"):
            subject = _subject(node, reading)
            low, high = _literal(node.args["low"], reading), _literal(node.args["high"], reading)
            return conjunction([subject.test(Op.GE, low), subject.test(Op.LE, high)])
        case exp.NullSafeEQ():
            return _null_safe(node, reading)
        case exp.NullSafeNEQ():
            return negation(_null_safe(node, reading))
        case exp.Like():
            return _like(node, reading)
        case exp.StartsWith():
            return _subject(node, reading).test(Op.STARTS_WITH, _string(node.expression, reading))
        case exp.IsNan():
            return _subject(node, reading).test(Op.IS_NAN)
        case exp.Anonymous() if node.name.lower() in _NULL_TESTS and len(node.expressions) == 1:
            return subject_of(node.expressions[0], reading.functions).test(_NULL_TESTS[node.name.lower()])
        case _:
            raise ValueError("only comparisons of a column with literals are supported")


def _has(node: Any, *parts: str) -> bool:
    """Whether a condition has unsupported parts: IN a subquery or a column, BETWEEN SYMMETRIC."""
    return any(node.args.get(part) is not None for part in parts)


def _subject(node: Any, reading: _Reading) -> Subject:
    return subject_of(node.this, reading.functions)


def _literal(node: Any, reading: _Reading) -> object:
    return literal(node, reading.localize)


def _comparison(node: Any, operators: tuple[Op, Op], reading: _Reading) -> Expr:
    left, right = node.this.unnest(), node.expression.unnest()
    if is_term(left):
        return subject_of(left, reading.functions).test(operators[0], _literal(right, reading))
    return subject_of(right, reading.functions).test(operators[1], _literal(left, reading))


def _null_safe(node: Any, reading: _Reading) -> Expr:
    """Equality that is never null: NOT of it must match rows where the column is null."""
    column, other = node.this.unnest(), node.expression.unnest()
    if not is_term(column):
        column, other = other, column
    subject, value = subject_of(column, reading.functions), _literal(other, reading)
    if value is None:
        return subject.test(Op.IS_NULL)
    return conjunction([subject.test(Op.NOT_NULL), subject.test(Op.EQ, value)])


def _is(node: Any, reading: _Reading) -> Expr:
    subject = _subject(node, reading)
    match node.expression:
        case exp.Null():
            return subject.test(Op.IS_NULL)
        case exp.Boolean(this=value):
            return conjunction([subject.test(Op.NOT_NULL), subject.test(Op.EQ, bool(value))])
        case _:
            raise ValueError("IS takes NULL, TRUE or FALSE")


def _like(node: Any, reading: _Reading) -> Expr:
    subject, pattern = _subject(node, reading), _string(node.expression, reading)
    if pattern is None:
        test = subject.test(Op.EQ, None)
    else:
        prefix, wildcard = _like_prefix(pattern)
        test = subject.test(Op.STARTS_WITH if wildcard else Op.EQ, prefix)
    return negation(test) if node.args.get("negate") else test


def _like_prefix(pattern: str) -> tuple[str, bool]:
    """The fixed text of a LIKE pattern and whether it ends in ``%``; other wildcards are a ValueError."""
    fixed: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("%", "_", "\\"):
                raise ValueError("a backslash in LIKE comes before %, _ or another backslash")
            fixed.append(escaped)
        elif character == "%":
            rest = "".join(characters)
            if rest.strip("%") != "":
                raise ValueError("LIKE is supported with % at the end only")
            return "".join(fixed), True
        elif character == "_":
            raise ValueError("LIKE is supported with % at the end only, not with _")
        else:
            fixed.append(character)
    return "".join(fixed), False


def _string(node: Any, reading: _Reading) -> str | None:
    value = _literal(node, reading)
    if value is not None and not isinstance(value, str):
        raise ValueError("a string is needed here")
    return value


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

"""Parses the conditions of a filter text with sqlglot (see ``filter_parser``).

``boolean_parser`` splits the logic, sqlglot parses each condition, and this module turns it into predicates. Only
conditions that compare one column, or a transform of one, with literals are filters here; anything else is refused by
name.
"""

from __future__ import annotations

import datetime as dt
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
    conjunction,
    negation,
)
from icefloe.expr.text.boolean_parser import parse_logic
from icefloe.expr.text.sql_tree import NOT_SQL, Localize, literal, sql_tree
from icefloe.expr.text.terms import Functions, Subject, is_term, subject_of

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


@dataclass(frozen=True, slots=True)
class _Reading:
    """How to read what does not mean the same to everybody: local times, and functions."""

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
    """How to read local times of a zone; a ValueError where the zone does not say for certain."""

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
    """Whether a condition says more than its list or its limits: IN a subquery or a column, BETWEEN SYMMETRIC."""
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

"""Conditions that Spark pushes to a write or a delete, as filters.

Columns come in the spelling of the query. Literals come as Spark stores them: dates as days, timestamps as
microseconds, both from 1970.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import msgspec

from icefloe.errors import InputError, UnsupportedError
from icefloe.expr.filter.nodes import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Expr,
    Op,
    Predicate,
    conjunction,
    disjunction,
    negation,
)
from icefloe.model.schema.schema import Schema


class Column(msgspec.Struct, frozen=True, kw_only=True, tag_field="node", tag="column"):
    """A column in a condition, by its path, spelled as in the query."""

    path: tuple[str, ...]


class LiteralValue(msgspec.Struct, frozen=True, kw_only=True, tag_field="node", tag="literal"):
    """A literal in a condition: the text of the value as Spark stores it, and its type; bytes are in base 64."""

    type: str
    value: str | None


class Condition(msgspec.Struct, frozen=True, kw_only=True, tag_field="node", tag="predicate"):
    """A predicate in a condition, by the name that Spark gives it."""

    name: str
    arguments: tuple[Condition | Column | LiteralValue | OtherExpression, ...]


class OtherExpression(msgspec.Struct, frozen=True, kw_only=True, tag_field="node", tag="other"):
    """An expression that no message covers, as text."""

    text: str


Node = Condition | Column | LiteralValue | OtherExpression

_EPOCH = datetime(1970, 1, 1)
_COMPARISONS = {"=": Op.EQ, "<>": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE, "<=>": Op.EQ}
_SWAPPED = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
_TESTS = {"IS_NULL": Op.IS_NULL, "IS_NOT_NULL": Op.NOT_NULL}
_VALUES: Mapping[str, Callable[[str], object]] = {
    "boolean": lambda text: text == "true",
    "tinyint": int,
    "smallint": int,
    "int": int,
    "bigint": int,
    "float": float,
    "double": float,
    "decimal": Decimal,
    "string": str,
    "binary": base64.b64decode,
    "date": lambda text: date(1970, 1, 1) + timedelta(days=int(text)),
    "timestamp": lambda text: (_EPOCH + timedelta(microseconds=int(text))).replace(tzinfo=UTC),
    "timestamp_ntz": lambda text: _EPOCH + timedelta(microseconds=int(text)),
}


def pushed_filter(conditions: Iterable[Node], schema: Schema, *, case_sensitive: bool) -> Expr:
    """The conjunction of those conditions that are filters on the columns of a table.

    >>> pushed_filter([OtherExpression(text="rand() > 0")], Schema(fields=()), case_sensitive=False)
    Constant(value=True)
    """
    parts = []
    for condition in conditions:
        try:
            parts.append(filter_of([condition], schema, case_sensitive=case_sensitive))
        except (UnsupportedError, InputError):  # such as a condition on a metadata column
            continue
    return conjunction(parts)


def filter_of(conditions: Iterable[Node], schema: Schema, *, case_sensitive: bool) -> Expr:
    """The conjunction of conditions as a filter on the columns of a table; UnsupportedError names what is none."""

    def column(node: Column) -> str:
        name = ".".join(node.path)
        field = schema.find(name, case_sensitive=case_sensitive)
        return schema.names[field.id]

    return conjunction([_filter(node, column) for node in conditions])


def _filter(node: Node, column: Callable[[Column], str]) -> Expr:
    if isinstance(node, Column):  # a boolean column
        return Predicate(Op.EQ, column(node), (True,))
    if not isinstance(node, Condition):
        raise _unsupported(node)
    name, arguments = node.name, node.arguments
    if name in ("ALWAYS_TRUE", "ALWAYS_FALSE"):
        return ALWAYS_TRUE if name == "ALWAYS_TRUE" else ALWAYS_FALSE
    if name == "NOT" and _compares_with_null(node):  # null, which NOT leaves null, and not false
        raise _unsupported(node)
    if name in ("AND", "OR", "NOT"):
        parts = [_filter(part, column) for part in arguments]
        return negation(parts[0]) if name == "NOT" else conjunction(parts) if name == "AND" else disjunction(parts)
    tested = arguments[0]
    if name in _COMPARISONS and isinstance(tested, LiteralValue) and isinstance(arguments[1], Column):
        op = _COMPARISONS[name]
        return _comparison(name, _SWAPPED.get(op, op), column(arguments[1]), (tested,))
    literals = [part for part in arguments[1:] if isinstance(part, LiteralValue)]
    if not isinstance(tested, Column) or len(literals) != len(arguments) - 1:
        raise _unsupported(node)
    if name in _TESTS:
        return Predicate(_TESTS[name], column(tested))
    if name in ("IN", "STARTS_WITH"):
        values = tuple(_value(part) for part in literals if part.value is not None)
        return Predicate(Op.IN if name == "IN" else Op.STARTS_WITH, column(tested), values)
    if name not in _COMPARISONS:
        raise _unsupported(node)
    return _comparison(name, _COMPARISONS[name], column(tested), tuple(literals))


def _compares_with_null(node: Node) -> bool:
    """Whether a part of a condition may be null because of a literal."""
    if isinstance(node, Condition):
        return node.name != "<=>" and any(_compares_with_null(part) for part in node.arguments)
    return isinstance(node, LiteralValue) and node.value is None


def _comparison(name: str, op: Op, column: str, literals: tuple[LiteralValue, ...]) -> Expr:
    (literal,) = literals
    if literal.value is None and name == "<=>":
        return Predicate(Op.IS_NULL, column)
    compared = Predicate(op, column, (_value(literal),))
    return conjunction([Predicate(Op.NOT_NULL, column), compared]) if name == "<=>" else compared


def _value(literal: LiteralValue) -> object:
    kind = literal.type.split("(")[0].split(" ")[0]
    if kind not in _VALUES or literal.value is None:  # a comparison with null is null, also inside NOT
        shown = "null" if literal.value is None else f"a literal of type {literal.type}"
        raise UnsupportedError(f"a condition with {shown} cannot be a filter here")
    return _VALUES[kind](literal.value)


def _unsupported(node: Node) -> UnsupportedError:
    text = node.name if isinstance(node, Condition) else getattr(node, "text", "a literal")
    return UnsupportedError(f"the condition {text} cannot be a filter here; use comparisons of columns with literals")

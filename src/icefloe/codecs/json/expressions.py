"""Filters as JSON values, as REST catalogs and scan tasks exchange them (spec: Appendix C: JSON serialization).

``{"type": "eq", "term": "id", "value": 1}``, with a transform of a column as
``{"type": "transform", "transform": "bucket[16]", "term": "id"}``. Literals are JSON single values (spec: JSON
single-value serialization): dates, times, UUIDs, decimals and bytes in hexadecimal digits are all strings, so the type
of a string or number is decided when the filter is bound to a column. Null is the literal NULL of SQL.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from dataclasses import dataclass
from typing import Any

from icefloe.errors import FormatError, InputError, LimitError
from icefloe.expr.filter.literal_conversion import JsonNumber, JsonText
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
    conjunction,
    disjunction,
    fold,
    negation,
)
from icefloe.expr.text.datetime_text import Nanos
from icefloe.limits import DEFAULT, Limits
from icefloe.model.schema.json_values import value_to_json
from icefloe.model.schema.types import Type

_TYPES: dict[Op, str] = {
    Op.IS_NULL: "is-null",
    Op.NOT_NULL: "not-null",
    Op.IS_NAN: "is-nan",
    Op.NOT_NAN: "not-nan",
    Op.LT: "lt",
    Op.LE: "lt-eq",
    Op.GT: "gt",
    Op.GE: "gt-eq",
    Op.EQ: "eq",
    Op.NE: "not-eq",
    Op.IN: "in",
    Op.NOT_IN: "not-in",
    Op.STARTS_WITH: "starts-with",
    Op.NOT_STARTS_WITH: "not-starts-with",
}
_OPS = {name: op for op, name in _TYPES.items()}
_SETS = (Op.IN, Op.NOT_IN)
_INNER = {"and": ("left", "right"), "or": ("left", "right"), "not": ("child",)}
_CONSTANTS = {"true": True, "false": False}


def expr_to_json(expr: Expr) -> object:
    """The JSON value of a filter, bound or not; many terms nest only as deep as their number's logarithm.

    >>> expr_to_json(Predicate(Op.EQ, TransformTerm("bucket[16]", "id"), (3,)))
    {'type': 'eq', 'term': {'type': 'transform', 'transform': 'bucket[16]', 'term': 'id'}, 'value': 3}
    """
    return fold(expr, _leaf_to_json, _branch_to_json)


def _leaf_to_json(leaf: Leaf) -> object:
    if isinstance(leaf, Constant):
        return leaf.value
    if isinstance(leaf, BoundPredicate):
        term = _term_to_json(leaf.name, None if leaf.transform.is_identity else str(leaf.transform))
        values = [_bound_to_json(value, leaf.type) for value in leaf.literals]
    else:
        transform = leaf.term.transform if isinstance(leaf.term, TransformTerm) else None
        term = _term_to_json(leaf.column, transform)
        values = [_literal_to_json(value, leaf.column) for value in leaf.literals]
    predicate: dict[str, object] = {"type": _TYPES[leaf.op], "term": term}
    if leaf.op in _SETS:
        predicate["values"] = values
    elif leaf.op.takes_literals:
        if len(values) != 1:
            raise InputError(f"{leaf.op.value}: one literal is needed, not {len(values)}", field=leaf.op.value)
        predicate["value"] = values[0]
    return predicate


def _term_to_json(column: str, transform: str | None) -> object:
    return column if transform is None else {"type": "transform", "transform": transform, "term": column}


def _bound_to_json(value: object, type_: Type) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return _not_finite(value)
    return value_to_json(value, type_)


def _literal_to_json(value: object, column: str) -> object:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case decimal.Decimal():
            return str(value) if value.is_finite() else _not_finite(float(value))
        case dt.datetime():
            return value.isoformat() if value.tzinfo is None else value.astimezone(dt.UTC).isoformat()
        case dt.date() | dt.time():
            return value.isoformat()
        case Nanos() | uuid.UUID():
            return str(value)
        case bytes() | bytearray():
            return value.hex()
    raise InputError(f"column {column!r}: a literal of {type(value).__name__} has no JSON form", field=column)


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _branch_to_json(node: Branch, parts: list[object]) -> object:
    if isinstance(node, Not):
        return {"type": "not", "child": parts[0]}
    if len(parts) == 0:
        return isinstance(node, And)
    kind = "and" if isinstance(node, And) else "or"
    # In pairs, and pairs of pairs: readers of JSON refuse deep nesting.
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [{"type": kind, "left": pair[0], "right": pair[1]} if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


@dataclass(frozen=True, slots=True)
class _Pending:
    """A JSON value to read; once ``expanded``, the filters inside it have been read."""

    value: object
    path: str
    depth: int
    expanded: bool = False


def expr_from_json(value: object, path: str = "filter", *, limits: Limits = DEFAULT) -> Expr:
    """The filter of a JSON value that was parsed already; ``path`` is its position in the document, for errors.

    >>> expr_from_json({"type": "not", "child": {"type": "is-null", "term": "id"}})
    Predicate(op=<Op.NOT_NULL: 'is not null'>, term='id', literals=())
    >>> expr_from_json({"type": "eq", "value": 1})
    Traceback (most recent call last):
    icefloe.errors.FormatError: filter: missing term
    """
    pending = [_Pending(value, path, 1)]
    done: list[Expr] = []
    while len(pending) > 0:
        step = pending.pop()
        kind = _kind(step.value, step.path)
        inner = _INNER.get(kind, ())
        if step.expanded:
            parts = done[len(done) - len(inner) :]
            done[len(done) - len(inner) :] = [_join(kind, parts)]
        elif len(inner) == 0:
            done.append(_leaf(kind, step.value, step.path))
        elif step.depth >= limits.expression_depth:
            raise LimitError(
                f"{path}: filters nest deeper than {limits.expression_depth} levels, the limit expression_depth",
                field=path,
            )
        else:
            pending.append(_Pending(step.value, step.path, step.depth, expanded=True))
            for key in reversed(inner):
                part = _member(step.value, key, step.path)
                pending.append(_Pending(part, f"{step.path}.{key}", step.depth + 1))
    return done[0]


def _kind(value: object, path: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    kind = _member(value, "type", path)
    if isinstance(kind, bool):
        return "true" if kind else "false"
    if not isinstance(kind, str) or not (kind in _INNER or kind in _OPS or kind in _CONSTANTS):
        known = ", ".join([*_CONSTANTS, *_INNER, *_OPS])
        raise FormatError(f"{path}.type: {_shown(kind)} is not one of {known}", field=f"{path}.type")
    return kind


def _member(value: object, key: str, path: str) -> Any:
    if not isinstance(value, dict):
        raise FormatError(f"{path}: expected a filter as an object or a boolean, got {_shown(value)}", field=path)
    if key not in value:
        raise FormatError(f"{path}: missing {key}", field=f"{path}.{key}")
    return value[key]


def _join(kind: str, parts: list[Expr]) -> Expr:
    if kind == "not":
        return negation(parts[0])
    return conjunction(parts) if kind == "and" else disjunction(parts)


def _leaf(kind: str, value: object, path: str) -> Expr:
    if kind in _CONSTANTS:
        return Constant(_CONSTANTS[kind])
    op = _OPS[kind]
    term = _term(_member(value, "term", path), f"{path}.term")
    if op in _SETS:
        values = _member(value, "values", path)
        if not isinstance(values, list):
            raise FormatError(f"{path}.values: expected a list, got {_shown(values)}", field=f"{path}.values")
        return Predicate(op, term, tuple(_literal(literal, f"{path}.values[{i}]") for i, literal in enumerate(values)))
    if op.takes_literals:
        return Predicate(op, term, (_literal(_member(value, "value", path), f"{path}.value"),))
    return Predicate(op, term)


def _term(value: object, path: str) -> str | TransformTerm:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise FormatError(f"{path}: expected a name or an object, got {_shown(value)}", field=path)
    kind = _member(value, "type", path)
    if kind == "reference":
        return _text(_member(value, "term", path), f"{path}.term")
    if kind != "transform":
        raise FormatError(f"{path}.type: {_shown(kind)} is not one of reference, transform", field=f"{path}.type")
    transform = _text(_member(value, "transform", path), f"{path}.transform")
    inner = _member(value, "term", path)
    if isinstance(inner, dict) and inner.get("type") == "reference":
        column = _text(_member(inner, "term", f"{path}.term"), f"{path}.term.term")
    else:
        column = _text(inner, f"{path}.term")
    return TransformTerm(transform, column)


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise FormatError(f"{path}: expected a string, got {_shown(value)}", field=path)
    return value


def _literal(value: object, path: str) -> object:
    if isinstance(value, dict) and value.get("type") == "literal":
        value, path = _member(value, "value", path), f"{path}.value"
    match value:
        case None | bool() | int():
            return value
        case float():
            return JsonNumber(value)
        case str():
            return JsonText(value)
    raise FormatError(f"{path}: expected a string, number or boolean, got {_shown(value)}", field=path)


def _shown(value: object) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."

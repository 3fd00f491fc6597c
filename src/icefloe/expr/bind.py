"""Binding: names become fields of a schema, literals become values of their types, NOT disappears.

The result asks exactly the same of every row. Comparisons follow Spark: null never matches, NaN equals NaN and is
larger than every other value, -0.0 equals 0.0. ``isnan(null)`` is false, so its negation matches null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from icefloe.errors import InputError
from icefloe.expr.convert import Exact, Gap, NotANumber, Place, place
from icefloe.expr.nodes import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    Bound,
    BoundPredicate,
    Constant,
    Expr,
    Leaf,
    Not,
    Op,
    Or,
    Predicate,
    conjunction,
    conjuncts,
    disjunction,
    fold,
    negation,
)
from icefloe.model.schema import Schema
from icefloe.model.types import DOUBLE, FLOAT, STRING, Decimal, Field, Fixed, Primitive, PrimitiveType, Struct


@dataclass(frozen=True, slots=True)
class _Column:
    """A column that filters can use: primitive, and not inside a list or map."""

    field_id: int
    path: tuple[str, ...]
    type: PrimitiveType
    required: bool

    def test(self, op: Op, *literals: object) -> Expr:
        return BoundPredicate(op, self.field_id, self.path, self.type, literals)

    def not_null(self) -> Expr:
        return ALWAYS_TRUE if self.required else self.test(Op.NOT_NULL)


def bind(expr: Expr, schema: Schema) -> Bound:
    """The expression with its columns resolved and its literals in the columns' types.

    >>> from icefloe.model.types import INT
    >>> schema = Schema(fields=(Field(1, "id", INT),))
    >>> bind(Predicate(Op.GT, "id", (2**40,)), schema)
    Constant(value=False)
    """
    return _bind(expr, _columns(schema), schema)


def bind_pushed(expr: Expr, schema: Schema) -> Bound:
    """Like ``bind`` for filters of an engine that applies them itself: conjuncts that do not bind are left out.

    >>> bind_pushed(Predicate(Op.IS_NULL, "no such column"), Schema(fields=()))
    Constant(value=True)
    """
    columns = _columns(schema)
    return _as_bound(conjunction(_bind_or_skip(part, columns, schema) for part in conjuncts(expr)))


def _bind_or_skip(expr: Expr, columns: Mapping[str, _Column], schema: Schema) -> Expr:
    try:
        return _bind(expr, columns, schema)
    except InputError:
        return ALWAYS_TRUE


def _bind(expr: Expr, columns: Mapping[str, _Column], schema: Schema) -> Bound:
    def leaf(node: Leaf) -> Expr:
        if not isinstance(node, Predicate):
            return node
        column = columns.get(node.term)
        if column is None:
            raise _no_column(node.term, schema)
        return _bind_predicate(node, column)

    def branch(node: And | Or | Not, parts: list[Expr]) -> Expr:
        if isinstance(node, And):
            return _merge(conjunction(parts), Op.NE, Op.NOT_IN)
        return _merge(disjunction(parts), Op.EQ, Op.IN)

    return _as_bound(fold(push_not(expr), leaf, branch))


def _as_bound(expr: Expr) -> Bound:
    if isinstance(expr, (Not, Predicate)):
        raise InputError(f"not a bound expression: {type(expr).__name__}")
    return expr


def push_not(expr: Expr) -> Expr:
    """The same expression without NOT: it is pushed into the operators of the predicates (De Morgan)."""
    # Each subtree gives both itself and its negation, so that one pass over any depth is enough.
    kept, _ = fold(expr, _both, _both_of)
    return kept


def _both(leaf: Leaf) -> tuple[Expr, Expr]:
    return leaf, negation(leaf)


def _both_of(node: And | Or | Not, parts: list[tuple[Expr, Expr]]) -> tuple[Expr, Expr]:
    if isinstance(node, Not):
        kept, negated = parts[0]
        return negated, kept
    every, some = conjunction, disjunction
    if isinstance(node, Or):
        every, some = some, every
    return every(kept for kept, _ in parts), some(negated for _, negated in parts)


def _columns(schema: Schema) -> dict[str, _Column]:
    return {".".join(column.path): column for column in _walk(schema.fields, (), True)}


def _walk(fields: tuple[Field, ...], parents: tuple[str, ...], required: bool) -> Iterator[_Column]:
    for field in fields:
        path, always = (*parents, field.name), required and field.required
        if isinstance(field.type, Struct):
            yield from _walk(field.type.fields, path, always)
        elif isinstance(field.type, (Primitive, Decimal, Fixed)):
            yield _Column(field.id, path, field.type, always)


def _no_column(name: str, schema: Schema) -> InputError:
    field = schema.field(name)  # raises, listing the columns, when there is none
    return InputError(
        f"column {name!r} of type {field.type} cannot be used in a filter: use a primitive column", field=name
    )


def _bind_predicate(node: Predicate, column: _Column) -> Expr:
    match node.op:
        case Op.IS_NULL:
            return ALWAYS_FALSE if column.required else column.test(Op.IS_NULL)
        case Op.NOT_NULL:
            return column.not_null()
        case Op.IS_NAN | Op.NOT_NAN:
            if column.type in (FLOAT, DOUBLE):
                return column.test(node.op)
            return Constant(node.op is Op.NOT_NAN)
        case Op.STARTS_WITH | Op.NOT_STARTS_WITH:
            return _bind_prefix(node, column)
        case Op.IN:
            return _bind_in(node, column)
        case Op.NOT_IN:
            return _bind_not_in(node, column)
        case _:
            return _bind_comparison(node, column)


def _place(node: Predicate, literal: object, column: _Column) -> Place:
    try:
        return place(literal, column.type)
    except ValueError as error:
        raise InputError(
            f"{node.term} {node.op.value} {literal!r}: column {node.term!r} is of type {column.type}: {error}",
            field=node.term,
        ) from error


def _one(node: Predicate) -> object:
    if len(node.literals) != 1:
        raise InputError(
            f"{node.term} {node.op.value}: one literal is needed, not {len(node.literals)}", field=node.term
        )
    return node.literals[0]


def _bind_comparison(node: Predicate, column: _Column) -> Expr:
    literal = _one(node)
    if literal is None:
        return ALWAYS_FALSE
    match _place(node, literal, column):
        case Exact(value):
            return column.test(node.op, value)
        case Gap(below, above):
            return _beside_gap(node.op, below, above, column)
        case NotANumber():
            return _beside_nan(node.op, column)


def _beside_gap(op: Op, below: object | None, above: object | None, column: _Column) -> Expr:
    """A comparison with a literal between two values of the column."""
    match op:
        case Op.EQ:
            return ALWAYS_FALSE
        case Op.NE:
            return column.not_null()
        case Op.LT | Op.LE:
            if below is None:
                return ALWAYS_FALSE
            return column.not_null() if above is None else column.test(Op.LE, below)
        case _:
            if above is None:
                return ALWAYS_FALSE
            return column.not_null() if below is None else column.test(Op.GE, above)


def _beside_nan(op: Op, column: _Column) -> Expr:
    """A comparison with NaN, the largest value."""
    match op:
        case Op.EQ | Op.GE:
            return column.test(Op.IS_NAN)
        case Op.NE | Op.LT:
            return conjunction([column.not_null(), column.test(Op.NOT_NAN)])
        case Op.LE:
            return column.not_null()
        case _:
            return ALWAYS_FALSE


def _bind_in(node: Predicate, column: _Column) -> Expr:
    places = [_place(node, literal, column) for literal in node.literals if literal is not None]
    found = _membership(Op.IN, [p.value for p in places if isinstance(p, Exact)], column)
    nan = any(isinstance(p, NotANumber) for p in places)
    return disjunction([found, column.test(Op.IS_NAN)]) if nan else found


def _bind_not_in(node: Predicate, column: _Column) -> Expr:
    if len(node.literals) == 0:
        return ALWAYS_TRUE  # nothing is in an empty list, not even null
    if any(literal is None for literal in node.literals):
        return ALWAYS_FALSE  # neither true nor false for any row
    places = [_place(node, literal, column) for literal in node.literals]
    found = _membership(Op.NOT_IN, [p.value for p in places if isinstance(p, Exact)], column)
    nan = any(isinstance(p, NotANumber) for p in places)
    return conjunction([found, column.test(Op.NOT_NAN)]) if nan else found


def _membership(op: Op, values: list[object], column: _Column) -> Expr:
    """IN or NOT IN over values of the column's type, in the simplest form."""
    distinct = sorted(set(values))  # type: ignore[type-var]
    positive = op is Op.IN
    if len(distinct) == 0:
        return ALWAYS_FALSE if positive else column.not_null()
    if len(distinct) == 1:
        return column.test(Op.EQ if positive else Op.NE, distinct[0])
    return column.test(op, *distinct)


def _bind_prefix(node: Predicate, column: _Column) -> Expr:
    prefix = _one(node)
    if column.type != STRING:
        raise InputError(f"{node.term!r} is of type {column.type}: only strings can start with a text", field=node.term)
    if prefix is None:
        return ALWAYS_FALSE
    if not isinstance(_place(node, prefix, column), Exact):
        raise InputError(f"{node.term} {node.op.value}: a string is needed", field=node.term)
    if prefix == "":
        return column.not_null() if node.op is Op.STARTS_WITH else ALWAYS_FALSE
    return column.test(node.op, prefix)


def _merge(expr: Expr, single: Op, many: Op) -> Expr:
    """Equalities of one column joined into one IN (inequalities into one NOT IN), so that they are tested at once."""
    if not isinstance(expr, (And, Or)):
        return expr
    groups: dict[int, list[BoundPredicate]] = {}
    for part in expr.children:
        if isinstance(part, BoundPredicate) and part.op in (single, many):
            groups.setdefault(part.field_id, []).append(part)
    if all(len(group) == 1 for group in groups.values()):
        return expr
    merged: list[Expr] = []
    for part in expr.children:
        group = groups.get(part.field_id, []) if isinstance(part, BoundPredicate) and part.op in (single, many) else []
        if len(group) <= 1:
            merged.append(part)
        elif part is group[0]:
            column = _Column(part.field_id, part.path, part.type, False)
            merged.append(_membership(many, [value for each in group for value in each.literals], column))
    return conjunction(merged) if isinstance(expr, And) else disjunction(merged)

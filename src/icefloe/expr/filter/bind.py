"""Binds filters to a schema: resolves names, converts literals to the types of columns, and removes NOT.

The bound filter matches exactly the same rows. Comparisons follow Spark: null never matches, NaN equals NaN and is
larger than every other value, -0.0 equals 0.0. ``isnan(null)`` is false, so its negation matches null. A transform of a
column is null where the column is, so tests for null test the column itself (spec: Partition Transforms).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from icefloe.errors import FormatError, InputError
from icefloe.expr.filter.literal_conversion import (
    After,
    Exact,
    Gap,
    NotANumber,
    Position,
    position_among_results,
    position_of,
)
from icefloe.expr.filter.nodes import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    IDENTITY,
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
    TransformTerm,
    conjunction,
    conjuncts,
    disjunction,
    fold,
    push_not,
)
from icefloe.model.partition.transform_names import TRANSFORM_NAMES
from icefloe.model.schema.schema import Schema, derived
from icefloe.model.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    UNKNOWN,
    Field,
    Geography,
    Geometry,
    PrimitiveType,
    Struct,
    Type,
    is_primitive,
)
from icefloe.transforms import Transform, parse_transform


@dataclass(frozen=True, slots=True)
class _Column:
    """A column that filters can use, or a transform of one: primitive, and not inside a list or map."""

    field_id: int
    path: tuple[str, ...]
    type: PrimitiveType  # of what is tested
    required: bool
    transform: Transform = IDENTITY
    source: PrimitiveType | None = None

    def test(self, op: Op, *literals: object) -> Expr:
        if self.source == self.type == DATE:  # the day of a date is that date
            return self.itself.test(op, *literals)
        return BoundPredicate(op, self.field_id, self.path, self.type, literals, self.transform, self.source)

    def not_null(self) -> Expr:
        return ALWAYS_TRUE if self.required else self.itself.test(Op.NOT_NULL)

    @property
    def itself(self) -> _Column:
        """The column without its transform."""
        return self if self.source is None else replace(self, type=self.source, transform=IDENTITY, source=None)


@dataclass(frozen=True, slots=True)
class _Nested:
    """A struct, list, map or variant that is not inside a list or map: it can only be tested for null."""

    field_id: int
    path: tuple[str, ...]
    type: Type
    required: bool

    def test(self, node: Predicate) -> Expr:
        if node.op not in (Op.IS_NULL, Op.NOT_NULL) or isinstance(node.term, TransformTerm):
            raise InputError(
                f"column {node.column!r} of type {self.type} can only be tested for null: compare a primitive column",
                field=node.column,
            )
        if self.required:
            return Constant(node.op is Op.NOT_NULL)
        return BoundPredicate(node.op, self.field_id, self.path, self.type)


_Columns: TypeAlias = Mapping[str, _Column | _Nested]


def bind(expr: Expr, schema: Schema) -> Bound:
    """The expression with its columns resolved and its literals in the columns' types.

    >>> from icefloe.model.schema.types import INT
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


def _bind_or_skip(expr: Expr, columns: _Columns, schema: Schema) -> Expr:
    try:
        return _bind(expr, columns, schema)
    except InputError:
        return ALWAYS_TRUE


def _bind(expr: Expr, columns: _Columns, schema: Schema) -> Bound:
    def leaf(node: Leaf) -> Expr:
        if not isinstance(node, Predicate):
            return node
        column = columns.get(node.column)
        if column is None:
            raise _no_column(node.column, schema)
        if isinstance(column, _Nested):
            return column.test(node)
        if isinstance(node.term, TransformTerm):
            return _bind_transformed(node, column, node.term.transform)
        return _bind_predicate(node, column)

    def branch(node: And | Or | Not, parts: list[Expr]) -> Expr:
        return _merge(conjunction(parts) if isinstance(node, And) else disjunction(parts))

    return _as_bound(fold(push_not(expr), leaf, branch))


def _as_bound(expr: Expr) -> Bound:
    if isinstance(expr, (Not, Predicate)):
        raise InputError(f"not a bound expression: {type(expr).__name__}")
    return expr


def _columns(schema: Schema) -> _Columns:
    columns: _Columns = derived(schema, "columns to bind", _named)
    return columns


def _named(schema: Schema) -> _Columns:
    return {".".join(column.path): column for column in _walk(schema.fields, (), True)}


def _walk(fields: tuple[Field, ...], parents: tuple[str, ...], required: bool) -> Iterator[_Column | _Nested]:
    for field in fields:
        path, always = (*parents, field.name), required and field.required
        if is_primitive(field.type):
            yield _Column(field.id, path, field.type, always)
            continue
        yield _Nested(field.id, path, field.type, always)
        if isinstance(field.type, Struct):
            yield from _walk(field.type.fields, path, always)


def _no_column(name: str, schema: Schema) -> InputError:
    field = schema.field(name)  # raises, listing the columns, when there is none
    return InputError(
        f"column {name!r} of type {field.type} is inside a list or map and cannot be used in a filter", field=name
    )


def _bind_transformed(node: Predicate, column: _Column, text: str) -> Expr:
    try:
        transform = parse_transform(text)
    except FormatError as error:
        raise InputError(f"{node.term} {node.op.value}: {error}", field=node.column) from error
    if not transform.accepts(column.type):
        reason = (
            f"transform {transform} does not accept column {node.column!r} of type {column.type}"
            if transform.is_known
            else f"the transform is not known; use one of {', '.join(names.name for names in TRANSFORM_NAMES)}"
        )
        raise InputError(f"{node.term} {node.op.value}: {reason}", field=node.column, transform=text)
    result = transform.result_type(column.type)
    if transform.is_void:
        return _bind_null(node)
    if transform.is_identity:
        return _bind_predicate(node, column)
    if not is_primitive(result):
        raise InputError(f"{node.term} is a {result}, which cannot be compared", field=node.column)
    return _bind_predicate(node, replace(column, type=result, transform=transform, source=column.type))


def _bind_predicate(node: Predicate, column: _Column) -> Expr:
    if column.type == UNKNOWN:
        return _bind_null(node)
    match node.op:
        case Op.IS_NULL:
            return ALWAYS_FALSE if column.required else column.itself.test(Op.IS_NULL)
        case Op.NOT_NULL:
            return column.not_null()
        case Op.IS_NAN | Op.NOT_NAN:
            if column.type in (FLOAT, DOUBLE):
                return column.test(node.op)
            return Constant(node.op is Op.NOT_NAN)
        case _ if isinstance(column.type, (Geometry, Geography)):
            raise InputError(
                f"column {node.column!r} of type {column.type} has no order: test it only for null", field=node.column
            )
        case Op.STARTS_WITH | Op.NOT_STARTS_WITH:
            return _bind_prefix(node, column)
        case Op.IN:
            return _bind_in(node, column)
        case Op.NOT_IN:
            return _bind_not_in(node, column)
        case _:
            return _bind_comparison(node, column)


def _bind_null(node: Predicate) -> Expr:
    """A test of a term that is null in every row."""
    match node.op:
        case Op.IS_NULL | Op.NOT_NAN:
            return ALWAYS_TRUE
        case Op.NOT_IN:
            return Constant(len(node.literals) == 0)
        case _:
            return ALWAYS_FALSE


def _position(node: Predicate, literal: object, column: _Column) -> Position:
    try:
        if column.source is None:
            return position_of(literal, column.type)
        return position_among_results(literal, column.transform, column.source, column.type)
    except ValueError as error:
        what = f"column {node.column!r}" if column.source is None else str(node.term)
        raise InputError(
            f"{node.term} {node.op.value} {literal!r}: {what} is of type {column.type}: {error}", field=node.column
        ) from error


def _one(node: Predicate) -> object:
    if len(node.literals) != 1:
        raise InputError(
            f"{node.term} {node.op.value}: one literal is needed, not {len(node.literals)}", field=node.column
        )
    return node.literals[0]


def _bind_comparison(node: Predicate, column: _Column) -> Expr:
    literal = _one(node)
    if literal is None:
        return ALWAYS_FALSE
    match _position(node, literal, column):
        case Exact(value):
            return column.test(node.op, value)
        case Gap() | After() if node.op is Op.EQ:
            return ALWAYS_FALSE
        case Gap() | After() if node.op is Op.NE:
            return column.not_null()
        case After(value):
            return column.test(Op.LE if node.op in (Op.LT, Op.LE) else Op.GT, value)
        case Gap(below, above):
            return _beside_gap(node.op, below, above, column)
        case NotANumber():
            return _beside_nan(node.op, column)


def _beside_gap(op: Op, below: object | None, above: object | None, column: _Column) -> Expr:
    """A comparison by order with a literal between two values of the column."""
    bound, nearest, beyond = (Op.LE, below, above) if op in (Op.LT, Op.LE) else (Op.GE, above, below)
    if nearest is None:
        return ALWAYS_FALSE
    return column.not_null() if beyond is None else column.test(bound, nearest)


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
    positions = [_position(node, literal, column) for literal in node.literals if literal is not None]
    membership = _membership(Op.IN, [p.value for p in positions if isinstance(p, Exact)], column)
    nan = any(isinstance(p, NotANumber) for p in positions)
    return disjunction([membership, column.test(Op.IS_NAN)]) if nan else membership


def _bind_not_in(node: Predicate, column: _Column) -> Expr:
    if len(node.literals) == 0:
        return ALWAYS_TRUE  # an empty list contains nothing, not even null
    if any(literal is None for literal in node.literals):
        return ALWAYS_FALSE  # neither true nor false for any row
    positions = [_position(node, literal, column) for literal in node.literals]
    membership = _membership(Op.NOT_IN, [p.value for p in positions if isinstance(p, Exact)], column)
    nan = any(isinstance(p, NotANumber) for p in positions)
    return conjunction([membership, column.test(Op.NOT_NAN)]) if nan else membership


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
        raise InputError(
            f"{str(node.term)!r} is of type {column.type}: only strings can start with a text", field=node.column
        )
    if prefix is None:
        return ALWAYS_FALSE
    if not isinstance(prefix, str):
        raise InputError(f"{node.term} {node.op.value} {prefix!r}: a string is needed", field=node.column)
    # A truncated text starts with a prefix of at most its width where the column does, and never with a longer one.
    if isinstance(_position(node, prefix, column), After):
        return ALWAYS_FALSE if node.op is Op.STARTS_WITH else column.not_null()
    if prefix == "":
        return column.not_null() if node.op is Op.STARTS_WITH else ALWAYS_FALSE
    return column.itself.test(node.op, str(prefix))


def _merge(expr: Expr) -> Expr:
    """Merge equalities of one column into one IN (inequalities into one NOT IN), so that they are tested together."""
    if not isinstance(expr, (And, Or)):
        return expr
    # Depends on the node itself: a disjunction with a single part left may have become a conjunction.
    single, many = (Op.NE, Op.NOT_IN) if isinstance(expr, And) else (Op.EQ, Op.IN)
    groups: dict[tuple[int, Transform], list[BoundPredicate]] = {}
    for part in expr.children:
        if isinstance(part, BoundPredicate) and part.op in (single, many):
            groups.setdefault((part.field_id, part.transform), []).append(part)
    if all(len(group) == 1 for group in groups.values()):
        return expr
    merged: list[Expr] = []
    for part in expr.children:
        if not (isinstance(part, BoundPredicate) and part.op in (single, many)):
            merged.append(part)
            continue
        group = groups[part.field_id, part.transform]
        if len(group) == 1:
            merged.append(part)
        elif part is group[0]:
            type_ = cast(PrimitiveType, part.type)  # only such values are compared
            column = _Column(part.field_id, part.path, type_, False, part.transform, part.source)
            merged.append(_membership(many, [value for predicate in group for value in predicate.literals], column))
    return conjunction(merged) if isinstance(expr, And) else disjunction(merged)

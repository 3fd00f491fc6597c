"""Filters on rows as filters on the partition values of files (spec: Scan Planning, Partition Transforms).

The inclusive projection holds for the partition of every row that matches, the strict one only for partitions of which
every row matches: where the inclusive projection of the opposite fails. Values that writers got wrong pass the
inclusive one: times before 1970 rounded towards it, integers below the lowest that came out at the other end.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expr.filter.nodes import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    IDENTITY,
    And,
    Bound,
    BoundPredicate,
    Branch,
    Constant,
    Expr,
    Leaf,
    Op,
    conjunction,
    disjunction,
    fold,
)
from icefloe.expr.filter.preimage import over_columns
from icefloe.expr.prune.projection import is_evidence, lowest_number, wrapped_zones
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DATE, Decimal, PrimitiveType, is_primitive
from icefloe.transforms import Bucket, Day, TimeTransform, Transform, Truncate, parse_transform

Projection: TypeAlias = Callable[[BoundPredicate, "Target"], Expr]

_NULL_TESTS = (Op.IS_NULL, Op.NOT_NULL)
_EXACT = decimal.Context(prec=100)
_EPOCH = dt.date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Target:
    """A partition field that says something about a column of type ``source``."""

    field: PartitionField
    transform: Transform
    source: PrimitiveType
    type: PrimitiveType

    def test(self, op: Op, *literals: object) -> BoundPredicate:
        """A predicate on the partition value."""
        return BoundPredicate(op, self.field.field_id, (self.field.name,), self.type, literals)

    @property
    def not_null(self) -> BoundPredicate:
        """A test that every row of a partition passes whose value is known."""
        return self.test(Op.NOT_NULL)

    @property
    def rounds_late(self) -> bool:
        """Whether old writers rounded towards 1970: all units of time but the day of a date, which is the date."""
        return isinstance(self.transform, TimeTransform) and not (
            isinstance(self.transform, Day) and self.source == DATE
        )

    def among(self, op: Op, values: set[Any]) -> Expr:
        """IN or NOT IN in its simplest form."""
        if len(values) == 0:
            return ALWAYS_FALSE if op is Op.IN else self.not_null
        if len(values) == 1:
            return self.test(Op.EQ if op is Op.IN else Op.NE, *values)
        return self.test(op, *sorted(values))


def project_inclusive(bound: Bound, fields: Sequence[PartitionField], schema: Schema) -> Bound:
    """The filter that the partition values of every matching row pass.

    >>> from icefloe.model.schema.types import INT, Field
    >>> schema = Schema(fields=(Field(1, "i", INT),))
    >>> tens = PartitionField(source_id=1, field_id=1000, name="tens", transform="truncate[10]")
    >>> found = project_inclusive(BoundPredicate(Op.GT, 1, ("i",), INT, (25,)), [tens], schema)
    >>> found.path, found.op, found.literal
    (('tens',), <Op.GE: '>='>, 20)
    """
    return _project(bound, fields, schema, inclusive, conjunction)


def project_strict(bound: Bound, fields: Sequence[PartitionField], schema: Schema) -> Bound:
    """The filter that partition values pass only if every row with them matches.

    >>> from icefloe.model.schema.types import INT, Field
    >>> schema = Schema(fields=(Field(1, "i", INT),))
    >>> tens = PartitionField(source_id=1, field_id=1000, name="tens", transform="truncate[10]")
    >>> found = project_strict(BoundPredicate(Op.GT, 1, ("i",), INT, (39,)), [tens], schema)
    >>> [(part.op, part.literal) for part in found.children]
    [(<Op.GT: '>'>, 30), (<Op.NE: '!='>, 2147483646)]
    """
    return _project(bound, fields, schema, strict, disjunction)


def _project(
    bound: Bound,
    fields: Sequence[PartitionField],
    schema: Schema,
    rule: Projection,
    join: Callable[[Iterator[Expr]], Expr],
) -> Bound:
    by_column = targets(fields, schema)

    def leaf(node: Leaf) -> Expr:
        if not isinstance(node, BoundPredicate):
            return node
        return join(rule(node, target) for target in by_column.get(node.field_id, ()))

    return cast(Bound, fold(over_columns(bound), leaf, joined))


def joined(node: Branch, parts: list[Expr]) -> Expr:
    """A branch over other children, constants folded."""
    return conjunction(parts) if isinstance(node, And) else disjunction(parts)


def targets(fields: Sequence[PartitionField], schema: Schema) -> dict[int, list[Target]]:
    """The partition fields that say something, by the column they were made from."""
    found: dict[int, list[Target]] = {}
    for field in fields:
        source, transform = schema.by_id.get(field.source_id), parse_transform(field.transform)
        if source is None or not is_evidence(field, transform, source.type) or not is_primitive(source.type):
            continue
        result = transform.result_type(source.type)
        if is_primitive(result):
            found.setdefault(field.source_id, []).append(Target(field, transform, source.type, result))
    return found


def inclusive(node: BoundPredicate, target: Target) -> Expr:
    """What must hold for the value of one partition field if the predicate holds for a row."""
    exact = _exact(node, target)
    if exact is not None:
        return exact
    if node.transform != IDENTITY:
        return ALWAYS_TRUE
    if isinstance(target.transform, Bucket):
        return _by_bucket(node, target)
    if node.op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return _by_prefix(node, target)
    return disjunction([_by_order(node, target), *_misplaced(node, target)])


def strict(node: BoundPredicate, target: Target) -> Expr:
    """What must hold for the value of one partition field so that the predicate holds for all its rows."""
    exact = _exact(node, target)
    if exact is not None:
        return exact
    return _otherwise(inclusive(replace(node, op=node.op.negated), target), target)


def _otherwise(projected: Expr, target: Target) -> Expr:
    """Where a partition value is known and fails a test; the rows of a null partition match no comparison."""

    def leaf(node: Leaf) -> Expr:
        if isinstance(node, Constant):
            return ALWAYS_FALSE if node.value else target.not_null
        if not isinstance(node, BoundPredicate) or node.op is Op.NOT_NULL:
            return ALWAYS_FALSE
        return replace(node, op=node.op.negated)

    def branch(node: Branch, parts: list[Expr]) -> Expr:
        return disjunction(parts) if isinstance(node, And) else conjunction(parts)

    return fold(projected, leaf, branch)


def _exact(node: BoundPredicate, target: Target) -> Expr | None:
    """The test of a partition value that says the same as the predicate of every row; None if there is none."""
    if node.op in _NULL_TESTS:
        return target.test(node.op)
    if target.transform == IDENTITY:
        return replace(node, field_id=target.field.field_id, path=(target.field.name,))
    if isinstance(target.transform, Bucket) and target.transform == node.transform:
        return target.test(node.op, *node.literals)
    return None


def _by_bucket(node: BoundPredicate, target: Target) -> Expr:
    if node.op not in (Op.EQ, Op.IN):
        return target.not_null
    literals = pa.array(node.literals, arrow_type(target.source))
    return target.among(Op.IN, set(target.transform.apply(literals, target.source).to_pylist()))


def _by_prefix(node: BoundPredicate, target: Target) -> Expr:
    """Texts that start with something were cut to texts that start with it, unless it is longer than the cut."""
    if not isinstance(target.transform, Truncate):
        return target.not_null
    prefix, width = str(node.literal), target.transform.width
    if len(prefix) <= width:
        return target.test(node.op, prefix)
    return target.test(Op.EQ, prefix[:width]) if node.op is Op.STARTS_WITH else target.not_null


# -- transforms that keep order


@dataclass(frozen=True, slots=True)
class _Image:
    """The partition value of a literal, and whether the literal is the first and the last value that has it."""

    value: Any
    first: bool
    last: bool


def _by_order(node: BoundPredicate, target: Target) -> Expr:
    images = _images(node.literals, target)
    match node.op:
        case Op.EQ | Op.IN:
            return target.among(Op.IN, {value for each in images for value in (each.value, _late(each.value, target))})
        case Op.NE | Op.NOT_IN:
            return target.among(Op.NOT_IN, {each.value for each in images if each.first and each.last})
    if len(images) == 0:  # the partition value of the literal is below all values of the type
        return ALWAYS_FALSE if node.op in (Op.LT, Op.LE) else target.not_null
    image = images[0]
    match node.op:
        case Op.LT if image.first:
            holds_earlier = target.rounds_late and _units(image.value) <= 0
            return target.test(Op.LE if holds_earlier else Op.LT, image.value)
        case Op.LT | Op.LE:
            return target.test(Op.LE, _late(image.value, target))
        case Op.GT if image.last:
            return target.test(Op.GT, image.value)
        case _:
            return target.test(Op.GE, image.value)


def _units(value: Any) -> int:
    return (value - _EPOCH).days if isinstance(value, dt.date) else int(value)


def _late(value: Any, target: Target) -> Any:
    """The value that old writers may have stored: units before 1970 were rounded towards it."""
    if not target.rounds_late or _units(value) >= 0:
        return value
    return value + (dt.timedelta(days=1) if isinstance(value, dt.date) else 1)


def _misplaced(node: BoundPredicate, target: Target) -> Iterator[Expr]:
    """Tests that let rows pass whose partition value is below the lowest of its type."""
    transform, source = target.transform, target.source
    if not isinstance(transform, Truncate) or node.op not in (Op.LT, Op.LE, Op.EQ, Op.IN):
        return
    for zone in wrapped_zones(transform, source):
        if any(zone.touches(node.op, literal) for literal in node.literals):
            yield target.test(Op.EQ, zone.stored)
    if isinstance(source, Decimal) and any(_cut(a, target) is None for a in node.literals):
        yield target.test(Op.LE, decimal.Decimal(1 - 10**source.precision).scaleb(-source.scale, _EXACT))


def _images(literals: tuple[Any, ...], target: Target) -> list[_Image]:
    """The images of literals, without those below all values of the type."""
    if isinstance(target.transform, Truncate):
        found = [_cut(literal, target) for literal in literals]
        return [image for image in found if image is not None]
    values, before, after = _neighbours(literals, target)
    columns = (values, pc.not_equal(values, before), pc.not_equal(values, after))
    return [_Image(*each) for each in zip(*(column.to_pylist() for column in columns), strict=True)]


def _neighbours(literals: tuple[Any, ...], target: Target) -> list[pa.Array]:
    """The partition values of moments, and of those right before and after; of themselves at the ends of the type."""
    type_, size = arrow_type(target.source), len(literals)
    plain = pa.int32() if target.source == DATE else pa.int64()
    numbers = pa.array(literals, type_).cast(plain).to_numpy()
    limits = np.iinfo(numbers.dtype)
    moved = np.concatenate([numbers, numbers - (numbers > limits.min), numbers + (numbers < limits.max)])
    values = target.transform.apply(pa.array(moved, plain).cast(type_), target.source)
    return [values.slice(start, size) for start in range(0, 3 * size, size)]


def _cut(literal: Any, target: Target) -> _Image | None:
    """The image of a literal under a truncation; None if it is below all values of the type."""
    width = target.transform.width  # type: ignore[attr-defined]
    if isinstance(literal, (str, bytes)):
        return _Image(literal[:width], len(literal) <= width, len(literal) < width)
    scale = target.source.scale if isinstance(target.source, Decimal) else None
    number = int(literal if scale is None else literal.scaleb(scale, _EXACT))
    rest = number % width
    if number - rest < lowest_number(target.source):
        return None
    value = number - rest if scale is None else decimal.Decimal(number - rest).scaleb(-scale, _EXACT)
    return _Image(value, rest == 0, rest == width - 1)

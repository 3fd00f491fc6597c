"""Filters on rows as filters on the partition values of files (spec: Scan Planning, Partition Transforms).

The inclusive projection holds for the partition of every row that matches, the strict one only for partitions of which
every row matches: where the inclusive projection of the opposite fails. Values that writers got wrong pass the
inclusive one: times before 1970 rounded towards it, integers below the lowest that came out at the other end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import pyarrow as pa

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
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import PrimitiveType, is_primitive
from icefloe.transforms import Transform, Zone, transform_of

Projection: TypeAlias = Callable[[BoundPredicate, "Target"], Expr]

_NULL_TESTS = (Op.IS_NULL, Op.NOT_NULL)


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
    >>> projected = project_inclusive(BoundPredicate(Op.GT, 1, ("i",), INT, (25,)), [tens], schema)
    >>> projected.path, projected.op, projected.literal
    (('tens',), <Op.GE: '>='>, 20)
    """
    return _project(bound, fields, schema, inclusive, conjunction)


def project_strict(bound: Bound, fields: Sequence[PartitionField], schema: Schema) -> Bound:
    """The filter that partition values pass only if every row with them matches.

    >>> from icefloe.model.schema.types import INT, Field
    >>> schema = Schema(fields=(Field(1, "i", INT),))
    >>> tens = PartitionField(source_id=1, field_id=1000, name="tens", transform="truncate[10]")
    >>> projected = project_strict(BoundPredicate(Op.GT, 1, ("i",), INT, (39,)), [tens], schema)
    >>> [(part.op, part.literal) for part in projected.children]
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
    by_source: dict[int, list[Target]] = {}
    for field in fields:
        source, transform = schema.by_id.get(field.source_id), transform_of(field)
        if source is None or not transform.is_evidence(source.type) or not is_primitive(source.type):
            continue
        result = transform.result_type(source.type)
        if is_primitive(result):
            by_source.setdefault(field.source_id, []).append(Target(field, transform, source.type, result))
    return by_source


def inclusive(node: BoundPredicate, target: Target) -> Expr:
    """What must hold for the value of one partition field if the predicate holds for a row."""
    exact = _exact(node, target)
    if exact is not None:
        return exact
    if node.transform != IDENTITY:
        return ALWAYS_TRUE
    if not target.transform.preserves_order:
        return _by_equality(node, target)
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
    if target.transform == node.transform and not target.transform.preserves_order:
        return target.test(node.op, *node.literals)
    return None


def _by_equality(node: BoundPredicate, target: Target) -> Expr:
    """Equal values have equal results, which is all that is known of a transform without order."""
    if node.op not in (Op.EQ, Op.IN):
        return target.not_null
    literals = pa.array(node.literals, arrow_type(target.source))
    return target.among(Op.IN, set(target.transform.apply(literals, target.source).to_pylist()))


def _by_prefix(node: BoundPredicate, target: Target) -> Expr:
    """Texts that start with something were cut to texts that start with it, unless it is longer than the cut."""
    prefix, length = str(node.literal), target.transform.prefix_length(target.source)
    if length is None:
        return target.not_null
    if len(prefix) <= length:
        return target.test(node.op, prefix)
    return target.test(Op.EQ, prefix[:length]) if node.op is Op.STARTS_WITH else target.not_null


# -- transforms that keep order


def _by_order(node: BoundPredicate, target: Target) -> Expr:
    images = target.transform.images(node.literals, target.source)
    match node.op:
        case Op.EQ | Op.IN:
            return target.among(Op.IN, {value for image in images for value in (image.value, image.late)})
        case Op.NE | Op.NOT_IN:
            return target.among(Op.NOT_IN, {image.value for image in images if image.first and image.last})
    if len(images) == 0:  # the partition value of the literal is below all values of the type
        return ALWAYS_FALSE if node.op in (Op.LT, Op.LE) else target.not_null
    image = images[0]
    match node.op:
        case Op.LT if image.first:
            return target.test(Op.LE if image.holds_earlier else Op.LT, image.value)
        case Op.LT | Op.LE:
            return target.test(Op.LE, image.late)
        case Op.GT if image.last:
            return target.test(Op.GT, image.value)
        case _:
            return target.test(Op.GE, image.value)


def _misplaced(node: BoundPredicate, target: Target) -> Iterator[Expr]:
    """Tests that let rows pass whose partition value does not fit its type."""
    if node.op not in (Op.LT, Op.LE, Op.EQ, Op.IN):
        return
    for zone in target.transform.overflow_zones(target.source):
        if any(_touches(zone, node.op, literal) for literal in node.literals):
            yield target.test(Op.EQ if zone.overflows else Op.LE, zone.stored)


def _touches(zone: Zone, op: Op, literal: Any) -> bool:
    """Whether a value of the zone can be less than, at most or equal to a literal, and ``_by_order`` misses it."""
    match op:
        case Op.LT if zone.overflows:
            return bool(literal > zone.low)
        case Op.LE if zone.overflows:
            return bool(literal >= zone.low)
        case _:
            return bool(zone.low <= literal < zone.end)

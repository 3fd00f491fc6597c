"""Checks that the transforms of a new partition spec or sort order accept their columns (spec: Partitioning, Sorting).

Readers ignore unknown transforms, but writers must compute them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from icefloe.errors import InputError
from icefloe.model.metadata.version_rules import rules
from icefloe.model.partition.sort_order import SortField, SortOrder, order_problem
from icefloe.model.partition.spec import (
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    redundancy_problem,
    spec_problem,
)
from icefloe.model.schema.schema import Schema
from icefloe.transforms.transform import transform_of

_F = TypeVar("_F", PartitionField, SortField)


def check_spec(
    spec: PartitionSpec, schema: Schema, format_version: int, *, former: PartitionSpec = UNPARTITIONED
) -> None:
    """Refuse a spec that writers of a table could not use: the error names the field and the rule.

    Fields that ``former``, the table's spec until now, had already may be redundant; new ones may not.
    """
    for problem in (spec_problem(spec, schema), redundancy_problem(spec, former)):
        if problem is not None:
            raise InputError(problem, spec_id=spec.spec_id)
    for field, misfit in _misfits(spec.fields, schema, format_version):
        raise InputError(f"partition field {field.name!r}: {misfit}", field=field.name)


def check_order(order: SortOrder, schema: Schema, format_version: int) -> None:
    """Refuse an order that writers of a table could not use: the error names the column and the rule."""
    problem = order_problem(order, schema)
    if problem is not None:
        raise InputError(problem, order_id=order.order_id)
    for _, misfit in _misfits(order.fields, schema, format_version):
        raise InputError(f"sort order: {misfit}", order_id=order.order_id)


def _misfits(fields: Iterable[_F], schema: Schema, format_version: int) -> Iterator[tuple[_F, str]]:
    """The fields whose transforms do not fit their columns, with the reasons."""
    for field in fields:
        misfit = _misfit(field, schema, format_version)
        if misfit is not None:
            yield field, misfit


def _misfit(field: PartitionField | SortField, schema: Schema, format_version: int) -> str | None:
    transform = transform_of(field)
    if transform.is_void:
        return None
    columns = ", ".join(repr(schema.names[source_id]) for source_id in field.source_ids)
    if len(field.source_ids) > 1 and not rules(format_version).source_ids:
        return f"{field.transform} of {columns}: transforms of several columns need format version 3"
    if not transform.is_known:
        return f"{field.transform} of {columns} is not a transform that can be computed"
    for source in (schema.by_id[source_id] for source_id in field.source_ids):
        if not transform.accepts(source.type):
            return f"{field.transform} does not take column {schema.names[source.id]!r} of type {source.type}"
    return None

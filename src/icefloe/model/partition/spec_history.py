"""Makes a partition spec or sort order the default of a table, which keeps all its older ones.

Files refer to their spec and sort order by id, so neither is ever changed (spec: Partition Evolution, Sorting). The
commit sets times and the metadata log.
"""

from __future__ import annotations

from dataclasses import replace

from icefloe.errors import InputError
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import UNSORTED, SortOrder, order_problem, same_order
from icefloe.model.partition.spec import (
    PartitionField,
    PartitionSpec,
    compatible,
    expressions_for,
    spec_problem,
    with_distinct_ids,
)


def add_spec(metadata: TableMetadata, spec: PartitionSpec) -> TableMetadata:
    """The table with ``spec`` as its default spec.

    If the table has a compatible spec, that one becomes the default. Otherwise the spec is added with the highest spec
    id plus one. InputError if it contradicts written files: if a field id was used for another value before or, in
    version 1, if a field was moved. In V4 each new derived field gets an expression, with an id after those of the
    columns.
    """
    problem = spec_problem(spec, metadata.schema)
    if problem is not None:
        raise InputError(problem, spec_id=spec.spec_id)
    for known in metadata.specs:
        if compatible(known, spec):
            return replace(metadata, default_spec_id=known.spec_id)
    if metadata.rules.partition_ids:
        _check_ids(metadata, spec)
    else:
        _check_places(metadata, spec)
    spec_id = max(known.spec_id for known in metadata.specs) + 1
    added = replace(
        metadata,
        specs=with_distinct_ids((*metadata.specs, replace(spec, spec_id=spec_id))),
        default_spec_id=spec_id,
        last_partition_id=max((metadata.last_partition_id, *(field.stored_id for field in spec.fields))),
    )
    return with_expressions(added) if metadata.rules.expressions else added


def with_expressions(metadata: TableMetadata) -> TableMetadata:
    """The table with an expression for every derived field of its specs (V4 proposal)."""
    fields = [field for spec in metadata.specs for field in spec.fields]
    expressions = expressions_for(fields, metadata.expressions, last_id=metadata.last_column_id)
    last_column_id = max((metadata.last_column_id, *(e.expr_id for e in expressions)))
    return replace(metadata, expressions=expressions, last_column_id=last_column_id)


def _check_ids(metadata: TableMetadata, spec: PartitionSpec) -> None:
    known = {(field.stored_id, field.derivation) for other in metadata.specs for field in other.fields}
    for field in spec.fields:
        if field.is_void or field.stored_id > metadata.last_partition_id:
            continue
        if (field.stored_id, field.derivation) not in known:
            raise InputError(
                f"partition field {field.name!r} has id {field.stored_id}, which was used before; give it"
                f" {metadata.last_partition_id + 1}",
                field=field.name,
            )


def _check_places(metadata: TableMetadata, spec: PartitionSpec) -> None:
    """Refuse a spec that moves or removes fields: version 1 identifies partition values by position."""
    for place, former in enumerate(metadata.spec.fields):
        field = spec.fields[place] if place < len(spec.fields) else None
        if field is None or not _stays(former, field):
            raise InputError(
                f"partition field {former.name!r} must keep its position in version 1; make it void to remove it",
                field=former.name,
            )


def _stays(former: PartitionField, field: PartitionField) -> bool:
    return field.derivation == former.derivation or (field.is_void and field.source_ids == former.source_ids)


def add_order(metadata: TableMetadata, order: SortOrder) -> TableMetadata:
    """The table with ``order`` as its default one.

    An order without keys is "unsorted", which is order 0 in every table. If the table has an equal order, that one
    becomes the default. Otherwise the order is added with the highest order id plus one.
    """
    problem = order_problem(order, metadata.schema)
    if problem is not None:
        raise InputError(problem, order_id=order.order_id)
    if len(order.fields) == 0:
        orders = metadata.sort_orders
        if all(known.order_id != UNSORTED.order_id for known in orders):
            orders = (UNSORTED, *orders)
        return replace(metadata, sort_orders=orders, default_sort_order_id=UNSORTED.order_id)
    for known in metadata.sort_orders:
        if same_order(known, order):
            return replace(metadata, default_sort_order_id=known.order_id)
    order_id = max((UNSORTED.order_id, *(known.order_id for known in metadata.sort_orders))) + 1
    return replace(
        metadata,
        sort_orders=(*metadata.sort_orders, replace(order, order_id=order_id)),
        default_sort_order_id=order_id,
    )

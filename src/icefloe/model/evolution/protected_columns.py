"""The partition specs, sort orders and expressions that limit changes of columns (spec: Schema Evolution)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from icefloe.model.evolution.change_rules import keeps_partition_values, partition_source_problem
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import SortOrder
from icefloe.model.partition.spec import Expression, PartitionField, PartitionSpec
from icefloe.model.partition.transform_names import VOID
from icefloe.model.schema.types import Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """The partition specs, sort orders and expressions of a table.

    A column that the current spec or sort order uses cannot be dropped, because writers must compute its value; void
    fields use no column. ``historic`` specs are used by old files only. Their columns may be dropped: the partition
    values are in the manifests, their types are in older schemas of the table (``TableMetadata.types``), and no filter
    can refer to a dropped column. Their names stay reserved: a column may not get the name of a partition field of any
    spec that is derived from another column. Older sort orders protect nothing: files store the id of an order only.

    A promotion must not change the values of any spec or expression, because old files keep theirs.
    """

    specs: tuple[PartitionSpec, ...] = ()
    orders: tuple[SortOrder, ...] = ()
    historic: tuple[PartitionSpec, ...] = ()
    expressions: tuple[Expression, ...] = ()

    @property
    def parts(self) -> Iterator[tuple[PartitionSpec, PartitionField]]:
        """Every partition field, live or historic, with its spec."""
        return ((spec, part) for spec in (*self.specs, *self.historic) for part in spec.fields)

    def drop_problem(self, column_id: int) -> str | None:
        """The reason why a column cannot be dropped; ``None`` if it can."""
        for spec in self.specs:
            for part in spec.fields:
                if column_id in part.source_ids and part.transform != VOID:
                    return f"{_of(part, spec)} needs it; evolve the partitioning first"
        return self._order_problem(column_id)

    def promotion_problem(self, column_id: int, old: Type, new: Type) -> str | None:
        """The reason why a column cannot be promoted; ``None`` if it can."""
        unfit = partition_source_problem(new)
        for spec, part in self.parts:
            if column_id not in part.source_ids or part.transform == VOID:
                continue
            if unfit is not None:
                return f"{_of(part, spec)} is about it, and {unfit}; add a new column instead"
            if not keeps_partition_values(part.transform, old):
                return f"{_of(part, spec)} ({part.transform}) would give other values; add a new column instead"
        for expression in self.expressions:
            if column_id in expression.source_ids and not keeps_partition_values(expression.transform, old):
                values = f"expression {expression.name!r} ({expression.transform}) would give other values"
                return f"{values}; add a new column instead"
        return None if unfit is None else self._order_problem(column_id)

    def _order_problem(self, column_id: int) -> str | None:
        for order in self.orders:
            if any(column_id in key.source_ids and key.transform != VOID for key in order.fields):
                return f"sort order {order.order_id} needs it; replace the sort order first"
        return None


NOTHING_PROTECTED = Protected()


def protected_of(metadata: TableMetadata) -> Protected:
    """What a table protects: its default spec and sort order are current, all other specs are historic."""
    return Protected(
        specs=(metadata.spec,),
        orders=tuple(o for o in metadata.sort_orders if o.order_id == metadata.default_sort_order_id),
        historic=tuple(s for s in metadata.specs if s.spec_id != metadata.default_spec_id),
        expressions=metadata.expressions,
    )


def _of(part: PartitionField, spec: PartitionSpec) -> str:
    return f"partition field {part.name!r} of spec {spec.spec_id}"

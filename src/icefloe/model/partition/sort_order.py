"""Sort orders: how rows are ordered inside files (spec: Sorting).

``icefloe.model.text.partition_text`` parses sort keys; ``icefloe.transforms.ordering`` sorts rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Geography, Geometry, Unknown

Direction: TypeAlias = Literal["asc", "desc"]
NullOrder: TypeAlias = Literal["nulls-first", "nulls-last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SortField:
    """One key of a sort order: a transform of a source column, or of several (``other_source_ids``, v3)."""

    source_id: int
    transform: str = "identity"
    direction: Direction = "asc"
    null_order: NullOrder = "nulls-first"
    other_source_ids: tuple[int, ...] = ()
    extra: Unknown = ()

    @property
    def source_ids(self) -> tuple[int, ...]:
        """All source columns in the order of the transform's arguments."""
        return (self.source_id, *self.other_source_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class SortOrder:
    """A numbered list of sort keys; order 0 is "unsorted"."""

    order_id: int = 0
    fields: tuple[SortField, ...] = ()
    extra: Unknown = ()

    @property
    def is_sorted(self) -> bool:
        """Whether there is any key to sort by."""
        return len(self.fields) > 0


UNSORTED = SortOrder()


def same_order(a: SortOrder, b: SortOrder) -> bool:
    """Whether two orders have the same keys; their ids are not compared."""
    return [_key(field) for field in a.fields] == [_key(field) for field in b.fields]


def _key(field: SortField) -> tuple[tuple[int, ...], str, Direction, NullOrder]:
    return field.source_ids, field.transform, field.direction, field.null_order


def order_problem(order: SortOrder, schema: Schema) -> str | None:
    """Why a table of this schema cannot have the order, without checks of transforms; ``None`` if it can."""
    if not order.is_sorted:
        return None if order.order_id == UNSORTED.order_id else f"sort order {order.order_id} has no keys; only 0 may"
    seen: set[tuple[tuple[int, ...], str]] = set()
    for field in order.fields:
        for source_id in field.source_ids:
            column = schema.by_id.get(source_id)
            if column is None:
                return f"sort order: there is no column of id {source_id}"
            name = schema.names[source_id]
            if source_id not in schema.measured or isinstance(column.type, (Geometry, Geography)):
                return f"sort order: column {name!r} of type {column.type} cannot be sorted by"
        if (field.source_ids, field.transform) in seen:
            names = ", ".join(schema.names[i] for i in field.source_ids)
            return f"sort order: {field.transform} of {names} is there twice"
        seen.add((field.source_ids, field.transform))
    return None

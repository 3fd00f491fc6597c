"""A change of partitioning as people write it: ``add("month(ts)")``, ``remove("ts_day")`` (spec: Partition Evolution).

A ``PartitionUpdate`` is a value: each call gives a new one, and nothing happens to the table until a commit takes
what ``apply`` returns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.evolution import (
    AddPartitionField,
    EvolvedSpec,
    PartitionChange,
    RemovePartitionField,
    RemovePartitionValue,
    RenamePartitionField,
    evolve_spec,
)
from icefloe.model.partition.history import add_spec
from icefloe.model.text.ddl import parse_partition


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionUpdate:
    """Steps to carry out on the default partition spec of a table.

    >>> from icefloe.model.text.ddl import parse_ddl, partition_spec
    >>> schema = parse_ddl("id bigint, ts timestamp")
    >>> table = TableMetadata(format_version=2, table_uuid="u", location="file:///t", last_updated_ms=0,
    ...     last_column_id=2, schemas=(schema,), specs=(partition_spec(["day(ts)"], schema),), last_partition_id=1000)
    >>> changed = PartitionUpdate(metadata=table).add("month(ts)", name="m").remove("day(ts)").apply()
    >>> changed.spec.spec_id, [(field.field_id, field.name) for field in changed.spec.fields]
    (1, [(1001, 'm')])
    """

    metadata: TableMetadata
    steps: tuple[PartitionChange, ...] = ()

    def add(self, text: str, name: str | None = None) -> PartitionUpdate:
        """Partition by one more value, such as ``day(ts)``, ``bucket(16, id)``, ``bucket(16, a, b)`` or a column."""
        transform, sources = parse_partition(text, self.metadata.schema)
        return self._then(AddPartitionField(transform=transform, columns=sources, name=name))

    def remove(self, field: str) -> PartitionUpdate:
        """Remove a partition field, identified by its name or by its transform and column, such as ``day(ts)``."""
        if "(" not in field or self.metadata.spec.field(field) is not None:
            return self._then(RemovePartitionField(field=field))
        transform, sources = parse_partition(field, self.metadata.schema)
        return self._then(RemovePartitionValue(transform=transform, columns=sources))

    def rename(self, field: str, name: str) -> PartitionUpdate:
        """Another name for a field."""
        return self._then(RenamePartitionField(field=field, name=name))

    def evolved(self) -> EvolvedSpec:
        """The spec after the steps."""
        table = self.metadata
        return evolve_spec(
            table.spec,
            self.steps,
            schema=table.schema,
            specs=table.specs,
            last_partition_id=table.last_partition_id,
            format_version=table.format_version,
        )

    def apply(self) -> TableMetadata:
        """The table with the spec after the steps as its default one."""
        return add_spec(self.metadata, self.evolved().spec)

    def _then(self, step: PartitionChange) -> PartitionUpdate:
        return replace(self, steps=(*self.steps, step))

"""Partition specs: how rows are grouped into files (spec: Partitioning)."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_PARTITION_FIELD_ID = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionField:
    """One value of the partition tuple: a transform of a source column.

    ``transform`` is the text of the spec (``identity``, ``day``, ``bucket[16]``); ``icefloe.transforms`` parses it.
    """

    source_id: int
    field_id: int
    name: str
    transform: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpec:
    """A numbered list of partition fields; empty means unpartitioned."""

    spec_id: int = 0
    fields: tuple[PartitionField, ...] = ()

    @property
    def is_partitioned(self) -> bool:
        """Whether any field groups rows; void fields do not."""
        return any(field.transform != "void" for field in self.fields)


UNPARTITIONED = PartitionSpec()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A derived value with an id from the id space of the columns, so that it can have statistics (V4 proposal).

    Linked from a partition field by ``partition_field_id``; identity and void fields need none.
    """

    expr_id: int
    source_ids: tuple[int, ...]
    transform: str
    name: str
    partition_field_id: int | None = None

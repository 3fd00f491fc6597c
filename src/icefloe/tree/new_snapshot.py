"""The identity of a snapshot that is being made, and the row ids it hands out (V4 proposal)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.model.entries import Status, put


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The identity of the snapshot that an attempt makes."""

    snapshot_id: int
    sequence_number: int
    first_row_id: int | None  # where this snapshot's row ids begin; none without row lineage


class RowIds:
    """Hands out row ids in the order rows are added; stays silent in tables without row lineage."""

    def __init__(self, first: int | None) -> None:
        self._first = first
        self.next = first

    @property
    def used(self) -> int:
        """How many ids were handed out."""
        return 0 if self.next is None or self._first is None else self.next - self._first

    def take(self, count: int) -> int | None:
        """The first of ``count`` ids."""
        start = self.next
        self.next = None if start is None else start + count
        return start


def mark_deleted(rows: pa.Table, ordinals: BitMap64, moment: Moment) -> pa.Table:
    """The rows, those with these ordinals as DELETED by the snapshot that is made."""
    if len(ordinals) == 0:
        return rows
    chosen = pc.is_in(rows["ordinal"], value_set=pa.array(ordinals.to_array(), pa.int64()))
    rows = put(rows, "status", pc.if_else(chosen, pa.scalar(int(Status.DELETED), pa.int32()), rows["status"]))
    return put(rows, "snapshot_id", pc.if_else(chosen, moment.snapshot_id, rows["snapshot_id"]))

"""The identity of a new snapshot, and the row ids that it assigns (V4 proposal)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.model.entries import Status, put_where


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotIdentity:
    """The numbers of the snapshot that an attempt makes."""

    snapshot_id: int
    sequence_number: int
    first_row_id: int | None  # the first row id that it may assign; none without row lineage


class RowIds:
    """Assigns row ids in the order in which rows are added; none in tables without row lineage."""

    def __init__(self, first: int | None) -> None:
        self._first = first
        self.next = first

    @property
    def used(self) -> int:
        """How many ids were assigned."""
        return 0 if self.next is None or self._first is None else self.next - self._first

    def take(self, count: int) -> int | None:
        """The first of ``count`` new ids."""
        start = self.next
        self.next = None if start is None else start + count
        return start

    def take_each(self, counts: npt.NDArray[np.int64]) -> pa.Array | None:
        """The first new id of each of several files, by their row counts."""
        start = self.take(int(counts.sum()))
        return None if start is None else pa.array(consecutive(start, counts), pa.int64())


def consecutive(start: int, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The first number of each of several consecutive ranges.

    >>> consecutive(10, np.array([2, 0, 3])).tolist()
    [10, 12, 12]
    """
    return start + np.concatenate(([0], np.cumsum(counts)[:-1]))


def mark_deleted(rows: pa.Table, ordinals: BitMap64, identity: SnapshotIdentity) -> pa.Table:
    """The rows, with those at these ordinals DELETED by the new snapshot."""
    if len(ordinals) == 0:
        return rows
    chosen = pc.is_in(rows["ordinal"], value_set=pa.array(ordinals.to_array(), pa.int64()))
    return put_where(rows, chosen, status=int(Status.DELETED), snapshot_id=identity.snapshot_id)

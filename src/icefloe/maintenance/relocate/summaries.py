"""Sizes in the summaries of snapshots whose position delete files were rewritten (spec: Snapshots).

The sizes of delete files are part of three keys. Deletion vectors count with the size of their blob, which stays.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.base import Base
from icefloe.model.entries import ContentType, Status, concat, live, of_status, of_type
from icefloe.model.metadata.snapshots import Snapshot, SummaryKey
from icefloe.model.moved_locations import Moves
from icefloe.tree.root import leaves_of, read_leaves, read_root
from icefloe.tree.store import NO_STATISTICS


def with_new_sizes(base: Base, snapshot: Snapshot, moves: Moves) -> Mapping[str, str]:
    """The summary of a snapshot, with the sizes that its delete files have now; keys that it lacks stay absent."""
    sizes = {SummaryKey.TOTAL_FILES_SIZE, SummaryKey.ADDED_FILES_SIZE, SummaryKey.REMOVED_FILES_SIZE}
    if sizes.isdisjoint(snapshot.summary):
        return snapshot.summary
    rows = _position_files(base, snapshot)
    old = rows["file_size_in_bytes"]
    growth = pc.fill_null(pc.subtract(moves.sizes(rows["location"], old), old), 0)
    own = pc.equal(rows["snapshot_id"], snapshot.snapshot_id)
    masks = {
        SummaryKey.TOTAL_FILES_SIZE: live(rows),
        SummaryKey.ADDED_FILES_SIZE: pc.and_(own, of_status(rows, Status.ADDED)),
        SummaryKey.REMOVED_FILES_SIZE: pc.and_(own, of_status(rows, Status.DELETED)),
    }
    changes = {key: int(pc.sum(growth.filter(mask), min_count=0).as_py()) for key, mask in masks.items()}
    return {
        key: _added(value, changes.get(SummaryKey(key), 0)) if key in sizes else value
        for key, value in snapshot.summary.items()
    }


def _added(recorded: str, change: int) -> str:
    return str(int(recorded) + change) if change != 0 and recorded.isdecimal() else recorded


def _position_files(base: Base, snapshot: Snapshot) -> pa.Table:
    """The entries of position delete files, of any status; deletion vectors are not among them."""
    root = read_root(base.store, snapshot)
    leaves = list(leaves_of(root.rows(ContentType.DELETE_MANIFEST)))
    rows = concat([root.entries, *read_leaves(base.store, leaves, NO_STATISTICS)])
    return rows.filter(pc.and_(of_type(rows, ContentType.POSITION_DELETES), pc.is_null(rows["dv_offset"])))

"""Commits a change once, however often it is repeated: its key is in the summary of its snapshot.

A change with a key looks for it in the snapshots of its branch before it writes anything, and again in every attempt to
commit. Two runs of one job that race therefore commit once. A key is known as long as its snapshot is retained.
"""

from __future__ import annotations

from collections.abc import Collection

from icefloe.errors import InputError
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata, ancestors
from icefloe.model.text.text_checks import check_text

IDEMPOTENCY_KEY = "icefloe.idempotency-key"


def check_key(key: str | None) -> None:
    """InputError if a key is no text, or empty."""
    if key is None:
        return
    check_text(key, "idempotency_key")
    if key == "":
        raise InputError(
            "idempotency_key is empty; give a text that names this run of the job, such as its id and date"
        )


def committed_snapshot(
    metadata: TableMetadata, branch: str, key: str, *, staged: bool = False, ignored: Collection[int] = ()
) -> Snapshot | None:
    """The newest snapshot of a branch with this key, or of the whole table for a ``staged`` one; None if there is none.

    Snapshots whose ids are ``ignored`` are made by the same commit.
    """
    ref = metadata.refs.get(branch)
    head = metadata.current_snapshot_id if ref is None else ref.snapshot_id
    snapshots = metadata.snapshots if staged else () if head is None else ancestors(metadata, head)
    for snapshot in snapshots:
        if snapshot.summary.get(IDEMPOTENCY_KEY) == key and snapshot.snapshot_id not in ignored:
            return snapshot
    return None

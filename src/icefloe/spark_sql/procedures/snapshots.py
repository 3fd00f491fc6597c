"""Procedures of CALL that choose the snapshot of main or of a branch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from icefloe.errors import InputError
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.spark_sql.procedures.shape import Arguments, Row
from icefloe.table.table import Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WAP_ID = "wap.id"


def _current(table: Table) -> int | None:
    return table.metadata.current_snapshot_id


def rollback_to_snapshot(table: Table, arguments: Arguments) -> list[Row]:
    """Set main to one of its earlier snapshots; the row has the ids before and after."""
    before = _current(table)
    table.rollback(snapshot=int(arguments["snapshot_id"]))
    return [(before, _current(table.refresh()))]


def rollback_to_timestamp(table: Table, arguments: Arguments) -> list[Row]:
    """Set main to the snapshot that was current at a time; the row has the ids before and after."""
    before = _current(table)
    table.rollback(timestamp=_EPOCH + timedelta(microseconds=int(arguments["timestamp"])))
    return [(before, _current(table.refresh()))]


def set_current_snapshot(table: Table, arguments: Arguments) -> list[Row]:
    """Set main to any snapshot, or to that of a branch or tag; the row has the ids before and after."""
    if ("snapshot_id" in arguments) == ("ref" in arguments):
        raise InputError("set_current_snapshot: give either snapshot_id or ref")
    before = _current(table)
    snapshot = arguments.get("snapshot_id")
    table.set_current_snapshot(None if snapshot is None else int(snapshot), ref=arguments.get("ref"))
    return [(before, _current(table.refresh()))]


def cherrypick_snapshot(table: Table, arguments: Arguments) -> list[Row]:
    """Apply the changes of a staged snapshot to main; the row has its id and that of the new snapshot."""
    source = int(arguments["snapshot_id"])
    table.cherry_pick(source)
    return [(source, _current(table.refresh()))]


def publish_changes(table: Table, arguments: Arguments) -> list[Row]:
    """Apply the changes that were staged with an id to main; the row has both snapshot ids."""
    wap_id = arguments["wap_id"]
    staged = [snapshot for snapshot in table.snapshots if snapshot.summary.get(_WAP_ID) == wap_id]
    if len(staged) == 0:
        raise InputError(f"publish_changes: no snapshot was staged with wap_id {wap_id!r}", wap_id=wap_id)
    if len(staged) > 1:
        raise InputError(
            f"publish_changes: {len(staged)} snapshots were staged with wap_id {wap_id!r}; publish one of them with"
            " cherrypick_snapshot",
            wap_id=wap_id,
        )
    table.cherry_pick(staged[0].snapshot_id)
    return [(staged[0].snapshot_id, _current(table.refresh()))]


def fast_forward(table: Table, arguments: Arguments) -> list[Row]:
    """Move a branch forward to the snapshot of another ref; the row has the ids before and after."""
    branch = arguments["branch"]
    before = table.refs.get(branch)
    table.fast_forward(branch, to=arguments["to"])
    after = table.refresh().refs[branch].snapshot_id
    return [(branch, None if before is None else before.snapshot_id, after)]


def ancestors_of(table: Table, arguments: Arguments) -> list[Row]:
    """A snapshot and those that it was made from: ids and times in milliseconds."""
    known = {snapshot.snapshot_id: snapshot for snapshot in table.snapshots}
    given = arguments.get("snapshot_id")
    next_id = _current(table) if given is None else int(given)
    if given is not None and next_id not in known:
        raise InputError(f"ancestors_of: the table has no snapshot {given}", snapshot_id=given)
    found: list[Snapshot] = []
    while next_id is not None and next_id in known:
        found.append(known[next_id])
        next_id = known[next_id].parent_id
    return [(snapshot.snapshot_id, snapshot.timestamp_ms) for snapshot in found]

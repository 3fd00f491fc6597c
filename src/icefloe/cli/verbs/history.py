"""Verbs about the history of a table: snapshots, refs, branch, tag, rollback."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from icefloe.cli.arguments import Execute, Limit, SnapshotId, TableName, Time, limit_of
from icefloe.cli.output import Listing, Record
from icefloe.cli.session import Session

if TYPE_CHECKING:
    from icefloe.commit.result import CommitResult
    from icefloe.model.metadata.snapshots import Snapshot
    from icefloe.table.table import Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIGURES = {  # column -> key of the summary
    "files_added": "added-data-files",
    "files_removed": "deleted-data-files",
    "rows_added": "added-records",
    "rows_deleted": "deleted-records",
    "bytes_added": "added-files-size",
    "rows": "total-records",
    "files": "total-data-files",
}
_SNAPSHOT = ("snapshot_id", "committed_at", "operation", "parent_id", "refs", *_FIGURES)


def snapshots(session: Session, table: TableName, limit: Limit = 100) -> Listing:
    """List the snapshots of a table, newest first, with what each of them changed."""
    opened = session.table(table)
    refs: dict[int, list[str]] = {}
    for name, ref in opened.refs.items():
        refs.setdefault(ref.snapshot_id, []).append(name)
    rows = (_snapshot(snapshot, refs.get(snapshot.snapshot_id, [])) for snapshot in reversed(opened.snapshots))
    return Listing(columns=(*_SNAPSHOT, "summary"), shown_columns=_SNAPSHOT, rows=rows, limit=limit_of(limit))


def _snapshot(snapshot: Snapshot, refs: list[str]) -> dict[str, Any]:
    summary = dict(snapshot.summary)
    return {
        "snapshot_id": snapshot.snapshot_id,
        "committed_at": _time(snapshot),
        "operation": str(snapshot.operation),
        "parent_id": snapshot.parent_id,
        "refs": ", ".join(refs),
        **{column: int(summary[key]) if key in summary else None for column, key in _FIGURES.items()},
        "summary": summary,
    }


def _time(snapshot: Snapshot) -> datetime:
    return _EPOCH + timedelta(milliseconds=snapshot.timestamp_ms)


def refs(session: Session, table: TableName) -> Listing:
    """List the branches and tags of a table with their retention."""
    opened = session.table(table)
    columns = ("name", "type", "snapshot_id", "min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms")
    rows = [
        {"name": name, **{column: getattr(ref, column) for column in columns[1:]}} for name, ref in opened.refs.items()
    ]
    return Listing(columns=columns, rows=rows)


Remove = Annotated[bool, typer.Option("--remove", help="Remove it; its snapshots stay until they expire.")]


def branch(
    session: Session,
    table: TableName,
    name: Annotated[str, typer.Argument(help="Name of the branch.")],
    snapshot: SnapshotId = None,
    remove: Remove = False,
) -> Record:
    """Create a branch at a snapshot, by default at the current one, or remove a branch."""
    opened = session.table(table)
    return _changed_ref(opened, name, None if remove else opened.branch(name, snapshot=snapshot))


def tag(
    session: Session,
    table: TableName,
    name: Annotated[str, typer.Argument(help="Name of the tag.")],
    snapshot: SnapshotId = None,
    remove: Remove = False,
) -> Record:
    """Tag a snapshot, by default the current one, or remove a tag."""
    opened = session.table(table)
    return _changed_ref(opened, name, None if remove else opened.tag(name, snapshot=snapshot))


def _changed_ref(table: Table, name: str, made: CommitResult | None) -> Record:
    """A branch or tag that was made; if none was, it is removed."""
    if made is None:
        return Record(fields=table.remove_ref(name).as_dict(), text=f"removed {name!r} from {table.name}")
    ref = table.refs[name]
    return Record(fields=made.as_dict(), text=f"{ref.type} {name!r} of {table.name} is at snapshot {ref.snapshot_id}")


def rollback(
    session: Session, table: TableName, snapshot: SnapshotId = None, at: Time = None, execute: Execute = False
) -> Record:
    """Set main to one of its earlier snapshots, by id or by the time at which it was current."""
    opened = session.table(table)
    if execute:
        result = opened.rollback(snapshot=snapshot, timestamp=at)
        text = f"{opened.name} is at snapshot {opened.metadata.current_snapshot_id}"
        return Record(fields=result.as_dict(), text=text)
    now, then = opened.metadata.current_snapshot, opened.at(snapshot=snapshot, timestamp=at).snapshot
    ids = [None if point is None else point.snapshot_id for point in (now, then)]
    return Record(
        fields={"table": opened.name, "from": ids[0], "to": ids[1], "executed": False},
        text=f"{opened.name} is at snapshot {ids[0]}; --execute sets it to {ids[1]}"
        + ("" if then is None else f", committed at {_time(then).isoformat(timespec='seconds')}"),
    )


def set_current_snapshot(
    session: Session,
    table: TableName,
    snapshot: Annotated[int | None, typer.Option(help="Any snapshot of the table.")] = None,
    ref: Annotated[str | None, typer.Option(help="Or the snapshot of this branch or tag.")] = None,
) -> Record:
    """Set main to any snapshot, also to one that is not in its history."""
    opened = session.table(table)
    opened.set_current_snapshot(snapshot, ref=ref)
    return _moved(opened, "main")


def fast_forward(
    session: Session,
    table: TableName,
    branch: Annotated[str, typer.Argument(help="The branch that moves.")],
    to: Annotated[str, typer.Argument(help="A branch or tag that has all its snapshots.")],
) -> Record:
    """Move a branch forward to the snapshot of another branch or tag."""
    opened = session.table(table)
    opened.fast_forward(branch, to=to)
    return _moved(opened, branch)


def _moved(table: Table, branch: str) -> Record:
    """A branch that was moved."""
    fields: dict[str, Any] = {"branch": branch, "snapshot_id": table.refs[branch].snapshot_id}
    return Record(fields=fields, text=f"{branch} of {table.name} is at snapshot {fields['snapshot_id']}")

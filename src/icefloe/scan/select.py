"""Chooses the snapshot to read (spec: Snapshot Reference)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from icefloe.errors import InputError, NoSuchSnapshot
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata, ancestors

Point: TypeAlias = int | str | datetime  # a snapshot id, a branch, a tag, or a time with a time zone

_DIGITS_OF_MILLISECONDS = 13  # from 2001 to 2286
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def select_snapshot(
    metadata: TableMetadata,
    *,
    snapshot: int | None = None,
    tag: str | None = None,
    branch: str | None = None,
    ref: str | None = None,
    timestamp: datetime | str | None = None,
) -> Snapshot | None:
    """The chosen snapshot; without arguments the current one, or none if the table has no snapshot.

    ``ref`` is a branch or a tag. ``timestamp`` selects the snapshot that was current on main at that time, even if main
    was rolled back later.
    """
    arguments = {"snapshot": snapshot, "tag": tag, "branch": branch, "ref": ref, "timestamp": timestamp}
    chosen = [name for name, value in arguments.items() if value is not None]
    if len(chosen) > 1:
        raise InputError(f"give one of {', '.join(chosen)}, not several")
    if snapshot is not None:
        return metadata.snapshot(snapshot)
    if tag is not None:
        return _by_ref(metadata, tag, "tag")
    if branch is not None:
        return _by_ref(metadata, branch, "branch")
    if ref is not None:
        return metadata.snapshot(metadata.ref(ref).snapshot_id)
    if timestamp is not None:
        return _by_time(metadata, to_epoch_ms(timestamp))
    return metadata.current_snapshot


def snapshot_at(metadata: TableMetadata, point: Point, argument: str = "snapshot") -> Snapshot | None:
    """The snapshot of an id, a branch, a tag or a time; a text that begins with a digit and is no ref is a time.

    ``argument`` is the name of the argument in errors.
    """
    if isinstance(point, bool) or not isinstance(point, (int, str, datetime)):
        raise InputError(
            f"{argument}={point!r}: give a snapshot id, the name of a branch or tag, or a time with a time zone"
        )
    if isinstance(point, int):
        if metadata.snapshots.find(point) is None and (hint := _if_milliseconds(point)) != "":
            raise NoSuchSnapshot(
                f"{argument}={point}: table {metadata.location} has no snapshot of this id{hint}", snapshot_id=point
            )
        return select_snapshot(metadata, snapshot=point)
    if isinstance(point, str) and (point in metadata.refs or not point[:1].isdigit()):
        return select_snapshot(metadata, ref=point)
    return select_snapshot(metadata, timestamp=point)


def to_epoch_ms(timestamp: datetime | str) -> int:
    """Milliseconds since 1970 of a timestamp with a time zone; one without is an error.

    >>> to_epoch_ms("1970-01-01T01:00:00+01:00")
    0
    """
    if isinstance(timestamp, str):
        try:
            timestamp = datetime.fromisoformat(timestamp)
        except ValueError as error:
            hint = _if_milliseconds(timestamp)
            raise InputError(
                f"timestamp {timestamp!r} is not ISO 8601, such as 2026-11-15T09:00:00+01:00{hint}"
            ) from error
    if not isinstance(timestamp, datetime):
        raise InputError(
            f"timestamp {timestamp!r} is of type {type(timestamp).__name__}; give a datetime with a time zone, or text"
            f" such as 2026-11-15T09:00:00+01:00{_if_milliseconds(timestamp)}"
        )
    if timestamp.tzinfo is None:
        raise InputError(f"timestamp {timestamp.isoformat()} has no time zone; add one, such as +00:00")
    return (timestamp - _EPOCH) // timedelta(milliseconds=1)


def _if_milliseconds(number: object) -> str:
    """What a number would be as milliseconds since 1970, if that is a time of these centuries."""
    text = str(number)
    if not (text.isdecimal() and text.isascii() and len(text) == _DIGITS_OF_MILLISECONDS):
        return ""
    return f". As milliseconds since 1970 it is {(_EPOCH + timedelta(milliseconds=int(text))).isoformat()}: give that"


def _by_ref(metadata: TableMetadata, name: str, kind: str) -> Snapshot:
    ref = metadata.refs.get(name)
    if ref is None or ref.type != kind:
        known = ", ".join(n for n, r in metadata.refs.items() if r.type == kind) or "none"
        raise NoSuchSnapshot(f"table {metadata.location} has no {kind} {name!r}; it has: {known}", name=name)
    return metadata.snapshot(ref.snapshot_id)


def _by_time(metadata: TableMetadata, at_ms: int) -> Snapshot:
    """The snapshot that was current at a time, by the snapshot log."""
    log = metadata.snapshot_log
    current = metadata.current_snapshot_id
    if len(log) == 0 and current is not None:  # the log is optional; without it, the ancestors are used
        ids = [s.snapshot_id for s in ancestors(metadata, current) if s.timestamp_ms <= at_ms][:1]
    else:
        ids = [entry.snapshot_id for entry in log if entry.timestamp_ms <= at_ms][-1:]
    if len(ids) == 0:
        raise NoSuchSnapshot(f"table {metadata.location} has no snapshot at or before {at_ms} ms", timestamp_ms=at_ms)
    snapshot = metadata.snapshots.find(ids[0])
    if snapshot is None:
        raise NoSuchSnapshot(
            f"table {metadata.location}: snapshot {ids[0]}, current at {at_ms} ms, has expired", snapshot_id=ids[0]
        )
    return snapshot

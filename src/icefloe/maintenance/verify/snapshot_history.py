"""Checks of what table metadata says by itself: schemas, snapshots, parents, logs and refs (spec: Table Metadata)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from icefloe.maintenance.verify.findings import Finding, Rule, Severity, finding
from icefloe.model.metadata.snapshots import MAIN, Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.schema_rules import id_problems

CLOCK_SKEW_MS = 60_000  # writers on different machines may disagree by this much


def check_history(metadata: TableMetadata, where: str) -> Iterator[Finding]:
    """Findings about the history of a table, located at its metadata file."""
    for message in _problems(metadata):
        yield finding(rule=Rule.HISTORY, location=where, message=message)
    yield from _schemas(metadata, where)
    for message in _row_ids(metadata):
        yield finding(rule=Rule.ROW_IDS, location=where, message=message)


def _problems(metadata: TableMetadata) -> Iterator[str]:
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    if len(snapshots) != len(metadata.snapshots):
        yield "two snapshots have the same id"
    for snapshot in snapshots.values():
        parent = None if snapshot.parent_id is None else snapshots.get(snapshot.parent_id)
        yield from _snapshot(metadata, snapshot, parent)
    if metadata.rules.sequence_numbers:
        numbers = [s.sequence_number for s in snapshots.values() if s.sequence_number > 0]  # 0 from version 1
        if len(set(numbers)) != len(numbers):
            yield "two snapshots have the same sequence number"
    yield from _cycles(snapshots)
    yield from _refs(metadata, snapshots)
    yield from _logs(metadata, snapshots)


def _snapshot(metadata: TableMetadata, snapshot: Snapshot, parent: Snapshot | None) -> Iterator[str]:
    name = f"snapshot {snapshot.snapshot_id}"
    if snapshot.sequence_number > metadata.last_sequence_number:
        yield f"{name} has sequence number {snapshot.sequence_number}, the last is {metadata.last_sequence_number}"
    if snapshot.timestamp_ms > metadata.last_updated_ms + CLOCK_SKEW_MS:
        yield f"{name} is younger than the metadata that names it"
    if snapshot.schema_id is not None and all(schema.schema_id != snapshot.schema_id for schema in metadata.schemas):
        yield f"{name} has schema {snapshot.schema_id}, which the table lacks"
    if parent is None:
        return
    if parent.sequence_number >= snapshot.sequence_number > 0:
        yield f"{name} has sequence number {snapshot.sequence_number}, its parent {parent.sequence_number}"
    if parent.timestamp_ms > snapshot.timestamp_ms + CLOCK_SKEW_MS:
        yield f"{name} is older than its parent {parent.snapshot_id}"


def _schemas(metadata: TableMetadata, where: str) -> Iterator[Finding]:
    """Columns of the current schema that no schema may have; those of former ones are only reported."""
    for schema in metadata.schemas:
        severity = Severity.ERROR if schema.schema_id == metadata.current_schema_id else Severity.WARNING
        for name, problem in id_problems(schema):
            message = f"schema {schema.schema_id}: column {name!r}: {problem}"
            yield finding(rule=Rule.SCHEMAS, location=where, message=message, severity=severity)


def _cycles(snapshots: dict[int, Snapshot]) -> Iterator[str]:
    """A snapshot cannot be its own ancestor."""
    known: set[int] = set()
    for snapshot_id in snapshots:
        line: set[int] = set()
        following: int | None = snapshot_id
        while following is not None and following in snapshots and following not in known:
            if following in line:
                yield f"snapshot {following} is its own ancestor"
                break
            line.add(following)
            following = snapshots[following].parent_id
        known |= line


def _refs(metadata: TableMetadata, snapshots: dict[int, Snapshot]) -> Iterator[str]:
    current = metadata.current_snapshot_id
    if current is not None and current not in snapshots:
        yield f"the current snapshot {current} is not in the table"
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in snapshots:
            yield f"{ref.type} {name!r} names snapshot {ref.snapshot_id}, which is not in the table"
    main = metadata.refs.get(MAIN)
    if main is not None and main.snapshot_id != current:
        yield f"main is at snapshot {main.snapshot_id}, the current snapshot is {current}"


def _logs(metadata: TableMetadata, snapshots: dict[int, Snapshot]) -> Iterator[str]:
    log = metadata.snapshot_log
    for entry in log:
        if entry.snapshot_id not in snapshots:
            yield f"the snapshot log names {entry.snapshot_id}, which is not in the table"
    if len(log) > 0 and log[-1].snapshot_id != metadata.current_snapshot_id:
        yield f"the snapshot log ends with {log[-1].snapshot_id}, not with the current snapshot"
    for name, times in (
        ("snapshot log", [entry.timestamp_ms for entry in log]),
        ("metadata log", [entry.timestamp_ms for entry in metadata.metadata_log]),
    ):
        if any(later < earlier - CLOCK_SKEW_MS for earlier, later in pairwise(times)):
            yield f"the {name} goes back in time"


def _row_ids(metadata: TableMetadata) -> Iterator[str]:
    """The row ids of snapshots do not overlap, on any branch."""
    ranges = sorted(
        (s.first_row_id, s.added_rows or 0, s.snapshot_id) for s in metadata.snapshots if s.first_row_id is not None
    )
    end = 0
    for first, count, snapshot_id in ranges:
        if first < end:
            yield f"snapshot {snapshot_id} begins with row id {first}, another has given those below {end}"
        end = max(end, first + count)
    if end > metadata.next_row_id:
        yield f"next-row-id is {metadata.next_row_id}, snapshots have given those below {end}"

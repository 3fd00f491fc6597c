"""The changes between snapshots by brute force: every snapshot is read as a whole, and the rows are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa

from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.model.metadata.table_metadata import ancestors
from icefloe.model.schema.schema import Schema
from icefloe.scan.changes.plan import CHANGE_COLUMNS, CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT
from icefloe.table.table import Table
from support.row_histories.columns import in_order

OLD, NEW = ("delete", "update_before"), ("insert", "update_after")


def line_of(table: Table) -> list[Snapshot]:
    """The snapshots of main, oldest first."""
    head = table.metadata.current_snapshot_id
    return [] if head is None else list(reversed(list(ancestors(table.metadata, head))))


def rows_at(table: Table, snapshot: Snapshot | None, schema: Schema, where: str | None = None) -> Counter[str]:
    """The rows of a snapshot, read with a schema."""
    if snapshot is None:
        return Counter()
    at = table.at(snapshot=snapshot.snapshot_id).with_schema(schema)
    return Counter(in_order(at.scan(where).to_arrow().to_pylist()))


def plain(changes: pa.Table) -> list[str]:
    """The rows of changes without the columns of changes."""
    return in_order(changes.drop_columns(list(CHANGE_COLUMNS)).to_pylist())


def of_types(changes: pa.Table, *types: str) -> pa.Table:
    """The changes of some types."""
    return changes.filter(pa.array([kind in types for kind in changes[CHANGE_TYPE].to_pylist()], pa.bool_()))


def old_and_new(changes: pa.Table) -> tuple[Counter[str], Counter[str]]:
    """The rows of the old state alone and those of the new state alone."""
    return Counter(plain(of_types(changes, *OLD))), Counter(plain(of_types(changes, *NEW)))


def difference(before: Counter[str], after: Counter[str]) -> tuple[Counter[str], Counter[str]]:
    """The rows that are in one of two states only, as often as the other state lacks them."""
    return before - after, after - before


def check_steps(changes: pa.Table, states: Sequence[Counter[str]], steps: Iterable[Snapshot]) -> None:
    """Each step of the changes is the difference of two states, without rows that appear in both."""
    ordinal = 0
    for number, snapshot in enumerate(steps):
        own = changes.filter(
            pa.array([by == snapshot.snapshot_id for by in changes[COMMIT_SNAPSHOT].to_pylist()], pa.bool_())
        )
        expected = difference(states[number], states[number + 1])
        assert old_and_new(own) == expected, f"changes of snapshot {snapshot.snapshot_id} ({snapshot.operation})"
        if snapshot.operation != Operation.REPLACE:
            assert set(own[CHANGE_ORDINAL].to_pylist()) <= {ordinal}
            ordinal += 1
    known = {snapshot.snapshot_id for snapshot in steps}
    assert set(changes[COMMIT_SNAPSHOT].to_pylist()) <= known

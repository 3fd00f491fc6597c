"""Branches, tags and the history of a table, as its object shows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.table.held_table import pointer_of
from support.tables import VERSIONS, new_catalog


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.mark.parametrize("version", VERSIONS)
def test_history_says_which_snapshots_were_current_and_when(tmp_path: Path, version: int) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint", format_version=version)
    assert (table.history, dict(table.refs)) == ((), {})
    started = datetime.now(UTC)
    first, second = table.append(rows(1)).snapshot_id, table.append(rows(2)).snapshot_id
    table.rollback(snapshot=first)
    third = table.append(rows(3)).snapshot_id
    found = [(entry.snapshot_id, entry.parent_id, entry.is_current_ancestor) for entry in table.history]
    assert found == [(first, None, True), (second, first, False), (first, None, True), (third, first, True)]
    times = [entry.made_current_at for entry in table.history]
    assert times == sorted(times)
    assert abs((times[0] - started).total_seconds()) < 60
    assert all(isinstance(entry, icefloe.HistoryEntry) for entry in table.history)


@pytest.mark.parametrize("version", VERSIONS)
def test_refs_are_branches_and_tags_by_name(tmp_path: Path, version: int) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint", format_version=version)
    first = table.append(rows(1)).snapshot_id
    table.tag("v1")
    audit = table.append(rows(2), branch="audit", create_branch=True).snapshot_id
    assert {name: (ref.type, ref.snapshot_id) for name, ref in table.refs.items()} == {
        "main": ("branch", first),
        "v1": ("tag", first),
        "audit": ("branch", audit),
    }
    assert all(isinstance(ref, icefloe.Ref) for ref in table.refs.values())


def test_history_begins_after_the_last_expired_snapshot(tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint")
    first, second = table.append(rows(1)).snapshot_id, table.append(rows(2)).snapshot_id
    assert first is not None
    metadata = table.metadata
    pointer_of(table).remember(table.metadata_location, metadata.without_snapshots([first]))
    found = [(entry.snapshot_id, entry.parent_id, entry.is_current_ancestor) for entry in table.history]
    assert found == [(second, first, True)]


def test_the_surface_that_people_type_is_exported() -> None:
    for name in ("Snapshot", "Ref", "Transaction", "MergeBuilder", "HistoryEntry", "SchemaEdit", "PartitionEdit"):
        assert name in icefloe.__all__
        assert isinstance(getattr(icefloe, name), type)


def test_a_rollback_takes_the_snapshot_that_time_travel_reads_at_that_time(tmp_path: Path) -> None:
    t = icefloe.catalog("times", uri=f"file://{tmp_path}").create_table("db.t", schema="id bigint")
    first = t.append(pa.table({"id": [1]})).snapshot_id
    t.append(pa.table({"id": [2]}))
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=t.snapshots[0].timestamp_ms)
    at_that_time = t.at(timestamp=time).snapshot
    assert at_that_time is not None
    t.rollback(timestamp=time)
    assert t.metadata.current_snapshot_id == at_that_time.snapshot_id
    assert at_that_time.snapshot_id == first or t.snapshots[1].timestamp_ms == t.snapshots[0].timestamp_ms

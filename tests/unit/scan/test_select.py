"""Which snapshot is meant by an id, a ref or a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icefloe.errors import InputError, NoSuchSnapshot
from icefloe.model.metadata.snapshots import Ref, Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, Field
from icefloe.scan.select import select_snapshot


def at(seconds: int) -> str:
    return f"1970-01-01T00:00:{seconds:02}+00:00"


def table() -> TableMetadata:
    """Snapshots 1, 2 and 3 at their seconds; a branch with 4 on top of 2; main rolled back to 1 at second 9."""
    metadata = TableMetadata(
        format_version=2,
        table_uuid="00000000-0000-0000-0000-000000000000",
        location="memory://t",
        last_updated_ms=0,
        last_column_id=1,
        schemas=(Schema(fields=(Field(1, "id", LONG),)),),
    )
    for number in (1, 2, 3):
        metadata = metadata.with_snapshot(snapshot(number, None if number == 1 else number - 1))
    metadata = metadata.with_snapshot(snapshot(4, 2), branch="audit")
    metadata = metadata.with_ref("first", Ref(snapshot_id=1, type="tag"))
    return metadata.set_current_snapshot(1, timestamp_ms=9_000)


def snapshot(number: int, parent: int | None) -> Snapshot:
    return Snapshot(
        snapshot_id=number,
        parent_id=parent,
        sequence_number=number,
        timestamp_ms=1000 * number,
        root=f"memory://{number}",
    )


def chosen(metadata: TableMetadata, **asked: object) -> int:
    return select_snapshot(metadata, **asked).snapshot_id


def test_without_a_wish_the_current_snapshot_is_meant():
    assert chosen(table()) == 1
    assert select_snapshot(replace(table(), current_snapshot_id=None)) is None


@pytest.mark.parametrize(("second", "expected"), [(1, 1), (2, 2), (3, 3), (8, 3), (9, 1), (50, 1)])
def test_a_time_means_what_main_was_then_even_if_it_was_rolled_back(second, expected):
    assert chosen(table(), timestamp=at(second)) == expected


def test_commits_to_other_branches_are_not_in_the_history_of_main():
    assert chosen(table(), timestamp=at(4)) == 3


def test_a_time_before_the_first_snapshot_is_refused():
    with pytest.raises(NoSuchSnapshot, match="at or before 0 ms"):
        chosen(table(), timestamp=at(0))


def test_a_snapshot_that_was_current_then_and_has_expired_is_named():
    metadata = table()
    expired = replace(metadata, snapshots=metadata.snapshots.without({3}))
    with pytest.raises(NoSuchSnapshot, match="snapshot 3, current at 5000 ms, has expired"):
        chosen(expired, timestamp=at(5))


def test_a_table_without_a_log_answers_by_the_parents_of_its_current_snapshot():
    metadata = replace(table().set_current_snapshot(3, timestamp_ms=10_000), snapshot_log=())
    assert chosen(metadata, timestamp=at(2)) == 2
    with pytest.raises(NoSuchSnapshot):
        chosen(metadata, timestamp=at(0))


def test_refs_are_branches_or_tags():
    metadata = table()
    assert (chosen(metadata, branch="audit"), chosen(metadata, tag="first")) == (4, 1)
    assert (chosen(metadata, ref="audit"), chosen(metadata, ref="first")) == (4, 1)
    with pytest.raises(NoSuchSnapshot, match="no tag 'audit'; it has: first"):
        chosen(metadata, tag="audit")
    with pytest.raises(NoSuchSnapshot, match="no branch or tag 'gone'"):
        chosen(metadata, ref="gone")


def test_an_id_means_itself_and_must_be_there():
    assert chosen(table(), snapshot=4) == 4
    with pytest.raises(NoSuchSnapshot, match="no snapshot 7"):
        chosen(table(), snapshot=7)


def test_two_wishes_are_refused():
    with pytest.raises(InputError, match="snapshot, ref"):
        chosen(table(), snapshot=1, ref="first")

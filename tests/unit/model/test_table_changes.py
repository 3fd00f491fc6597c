"""Changes of table metadata as values: branches and tags, snapshots that come and go, properties, statistics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icefloe.errors import FormatError, InputError, NoSuchSnapshot
from icefloe.model.metadata.properties import MAX_REF_AGE_MS, MAX_SNAPSHOT_AGE_MS, MIN_SNAPSHOTS_TO_KEEP
from icefloe.model.metadata.snapshots import MAIN, Ref, Retention, Snapshot, Snapshots, ref_problem, retention
from icefloe.model.metadata.statistics_files import PartitionStatisticsFile, StatisticsFile
from icefloe.model.metadata.table_metadata import MetadataLogEntry, SnapshotLogEntry, TableMetadata, ancestors
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, Field


def snapshot(snapshot_id: int, parent_id: int | None = None, **changes: object) -> Snapshot:
    base = {"snapshot_id": snapshot_id, "parent_id": parent_id, "timestamp_ms": 100 + snapshot_id, "root": "r"}
    return Snapshot(**{**base, "sequence_number": snapshot_id, **changes})


def entry(snapshot_id: int, timestamp_ms: int | None = None) -> SnapshotLogEntry:
    at = 100 + snapshot_id if timestamp_ms is None else timestamp_ms
    return SnapshotLogEntry(timestamp_ms=at, snapshot_id=snapshot_id)


def table(commits: int = 3) -> TableMetadata:
    """Snapshots 1, 2, 3 ... on main, each the child of the one before."""
    made = TableMetadata(
        format_version=3,
        table_uuid="u",
        location="file:///t",
        last_updated_ms=50,
        last_column_id=1,
        schemas=(Schema(fields=(Field(1, "a", LONG),)),),
    )
    for number in range(1, commits + 1):
        child = snapshot(number, number - 1 if number > 1 else None, added_rows=10)
        made = made.with_snapshot(child).committed(timestamp_ms=child.timestamp_ms, former_location=f"m{number}")
    return made


# Rules of refs


@pytest.mark.parametrize(
    ("name", "ref", "problem"),
    [
        ("main", Ref(snapshot_id=1, type="tag"), "main must be a branch"),
        ("", Ref(snapshot_id=1), "the name is empty"),
        ("t", Ref(snapshot_id=1, type="tag", min_snapshots_to_keep=1), "a tag has no min-snapshots-to-keep"),
        ("t", Ref(snapshot_id=1, type="tag", max_snapshot_age_ms=1), "a tag has no max-snapshot-age-ms"),
        ("b", Ref(snapshot_id=1, min_snapshots_to_keep=0), "min-snapshots-to-keep is 0; it must be positive"),
        ("b", Ref(snapshot_id=1, max_snapshot_age_ms=-1), "max-snapshot-age-ms is -1"),
        ("b", Ref(snapshot_id=1, max_ref_age_ms=0), "max-ref-age-ms is 0"),
    ],
)
def test_refs_that_break_a_rule_are_refused_with_the_rule(name, ref, problem):
    assert problem in ref_problem(name, ref)
    with pytest.raises(InputError, match=problem.partition(";")[0]):
        table().with_ref(name, ref)


def test_refs_that_keep_the_rules_are_fine():
    branch = Ref(snapshot_id=1, min_snapshots_to_keep=1, max_snapshot_age_ms=1, max_ref_age_ms=1)

    assert ref_problem("b", branch) is None
    assert ref_problem("main", branch) is None
    assert ref_problem("t", Ref(snapshot_id=1, type="tag", max_ref_age_ms=1)) is None


def test_retention_falls_back_to_properties_and_then_to_icebergs_defaults():
    properties = {MIN_SNAPSHOTS_TO_KEEP.name: "7", MAX_SNAPSHOT_AGE_MS.name: "8", MAX_REF_AGE_MS.name: "9"}
    five_days = 5 * 24 * 3600 * 1000

    def kept(name: str, ref: Ref, properties: dict[str, str]) -> tuple[int | None, int | None, int | None]:
        found: Retention = retention(name, ref, properties)
        return found.min_snapshots_to_keep, found.max_snapshot_age_ms, found.max_ref_age_ms

    own = Ref(snapshot_id=1, min_snapshots_to_keep=2, max_snapshot_age_ms=3, max_ref_age_ms=4)
    assert kept("b", own, properties) == (2, 3, 4)
    assert kept("b", Ref(snapshot_id=1), properties) == (7, 8, 9)
    assert kept("b", Ref(snapshot_id=1), {}) == (1, five_days, None)
    assert kept("main", own, properties) == (2, 3, None)
    assert kept("t", Ref(snapshot_id=1, type="tag"), properties) == (None, None, 9)


# Branches and tags of a table


def test_a_commit_to_a_branch_leaves_main_alone():
    before = table(2)

    after = before.with_snapshot(snapshot(9, 2, added_rows=5), branch="audit")
    after = after.committed(timestamp_ms=109, former_location="m9")

    assert after.ref("audit") == Ref(snapshot_id=9)
    assert (after.current_snapshot_id, after.ref(MAIN).snapshot_id) == (2, 2)
    assert after.snapshot_log == before.snapshot_log
    assert after.snapshot(9).parent_id == 2
    assert (after.last_sequence_number, after.next_row_id, after.last_updated_ms) == (9, 25, 109)
    assert after.metadata_log[-1] == MetadataLogEntry(timestamp_ms=102, metadata_file="m9")


def test_a_branch_keeps_its_settings_and_a_tag_never_moves():
    before = table().with_ref("b", Ref(snapshot_id=1, max_ref_age_ms=5)).with_ref("t", Ref(snapshot_id=1, type="tag"))

    assert before.with_snapshot(snapshot(9), branch="b").ref("b") == Ref(snapshot_id=9, max_ref_age_ms=5)
    with pytest.raises(InputError, match="'t' is a tag, which never moves"):
        before.with_snapshot(snapshot(9), branch="t")


def test_refs_are_added_changed_and_removed():
    tagged = table().with_ref("eom", Ref(snapshot_id=2, type="tag"))

    assert tagged.ref("eom").snapshot_id == 2
    assert tagged.with_ref("eom", Ref(snapshot_id=3, type="tag")).ref("eom").snapshot_id == 3
    assert tagged.without_ref("eom") == table()
    assert tagged.with_ref(MAIN, Ref(snapshot_id=3, max_snapshot_age_ms=5)).ref(MAIN).max_snapshot_age_ms == 5


def test_refs_must_name_what_there_is():
    with pytest.raises(NoSuchSnapshot, match="no snapshot 77"):
        table().with_ref("t", Ref(snapshot_id=77, type="tag"))
    with pytest.raises(NoSuchSnapshot, match="no branch or tag 'x'; it has: main"):
        table().ref("x")
    with pytest.raises(NoSuchSnapshot, match="it has: none"):
        table(0).ref(MAIN)
    with pytest.raises(NoSuchSnapshot):
        table().without_ref("x")
    with pytest.raises(InputError, match="main cannot be removed"):
        table().without_ref(MAIN)
    with pytest.raises(InputError, match="set_current_snapshot"):
        table().with_ref(MAIN, Ref(snapshot_id=1))
    with pytest.raises(InputError, match="'t' is a tag already"):
        table().with_ref("t", Ref(snapshot_id=1, type="tag")).with_ref("t", Ref(snapshot_id=1))


def test_main_can_be_put_on_any_snapshot_and_the_log_says_when():
    before = table().with_ref(MAIN, Ref(snapshot_id=3, min_snapshots_to_keep=4))

    back = before.set_current_snapshot(1, timestamp_ms=500)

    assert back.current_snapshot_id == 1
    assert back.ref(MAIN) == Ref(snapshot_id=1, min_snapshots_to_keep=4)
    assert back.snapshot_log == (*before.snapshot_log, entry(1, 500))
    assert len(back.snapshots) == 3
    assert back.set_current_snapshot(1, timestamp_ms=600) == back
    with pytest.raises(NoSuchSnapshot):
        before.set_current_snapshot(77, timestamp_ms=500)


def test_a_staged_snapshot_can_become_the_first_of_main():
    staged = table(0).with_snapshot(snapshot(5), branch="audit")

    published = staged.set_current_snapshot(5, timestamp_ms=9)

    assert staged.current_snapshot is None
    assert published.ref(MAIN) == Ref(snapshot_id=5)
    assert published.snapshot_log == (entry(5, 9),)


# Expiry


def statistics(snapshot_id: int, path: str = "s") -> StatisticsFile:
    return StatisticsFile(
        snapshot_id=snapshot_id, statistics_path=path, file_size_in_bytes=1, file_footer_size_in_bytes=1
    )


def partition_statistics(snapshot_id: int, path: str = "p") -> PartitionStatisticsFile:
    return PartitionStatisticsFile(snapshot_id=snapshot_id, statistics_path=path, file_size_in_bytes=1)


def test_expired_snapshots_take_their_statistics_and_the_log_before_them():
    before = table(4).set_current_snapshot(1, timestamp_ms=300).set_current_snapshot(4, timestamp_ms=301)
    for number in (1, 2, 3):
        before = before.with_statistics(statistics(number)).with_partition_statistics(partition_statistics(number))

    after = before.without_snapshots({2, 77})

    assert [s.snapshot_id for s in after.snapshots] == [1, 3, 4]
    assert [e.snapshot_id for e in after.snapshot_log] == [3, 4, 1, 4]
    assert [s.snapshot_id for s in after.statistics] == [1, 3]
    assert [s.snapshot_id for s in after.partition_statistics] == [1, 3]
    assert [e.snapshot_id for e in before.without_snapshots([1]).snapshot_log] == [4]
    assert before.without_snapshots([]) == before


def test_a_snapshot_that_something_names_cannot_expire():
    before = table().with_ref("eom", Ref(snapshot_id=2, type="tag"))
    for snapshot_id, name in ((2, "eom"), (3, "main")):
        with pytest.raises(InputError, match=f"snapshot {snapshot_id} cannot expire: '{name}' names it"):
            before.without_snapshots([1, snapshot_id])
    with pytest.raises(InputError, match="'main' names it"):
        replace(table(), refs={}).without_snapshots([3])


# Properties and statistics


def test_properties_are_set_and_removed():
    before = table().with_properties({"a": "1", "b": "2"})

    assert before.with_properties({"a": "3", "c": "4"}, ["b", "nope"]).properties == {"a": "3", "c": "4"}
    with pytest.raises(InputError, match="'a' is both set and removed"):
        before.with_properties({"a": "1"}, ["a"])


def test_a_snapshot_has_one_file_of_each_kind_of_statistics():
    before = table().with_statistics(statistics(1)).with_partition_statistics(partition_statistics(1))

    after = before.with_statistics(statistics(1, "new")).with_partition_statistics(partition_statistics(1, "new"))

    assert [s.statistics_path for s in after.statistics] == ["new"]
    assert [s.statistics_path for s in after.partition_statistics] == ["new"]
    assert after.without_statistics(1).statistics == ()
    assert after.without_statistics(1).partition_statistics == after.partition_statistics
    assert after.without_partition_statistics(1).partition_statistics == ()
    for refused in (
        lambda: after.with_statistics(statistics(9)),
        lambda: after.with_partition_statistics(partition_statistics(9)),
    ):
        with pytest.raises(NoSuchSnapshot):
            refused()


def test_a_commit_without_snapshot_keeps_the_logs_in_step():
    before = table(1)

    after = before.with_properties({"a": "b"}).committed(timestamp_ms=900, former_location="m9")

    assert after.last_updated_ms == 900
    assert after.metadata_log[-1] == MetadataLogEntry(timestamp_ms=101, metadata_file="m9")
    assert after.snapshot_log == before.snapshot_log


# Ancestors


class Counting(Snapshots):
    """Snapshots that count how often they are looked up."""

    looked_up = 0

    def find(self, snapshot_id: int) -> Snapshot | None:
        Counting.looked_up += 1
        return Snapshots.find(self, snapshot_id)


def test_ancestors_are_looked_up_when_they_are_asked_for():
    counted = replace(table(5), snapshots=Counting(tuple(table(5).snapshots)))

    chain = ancestors(counted, 4)
    first = next(chain)

    assert first.snapshot_id == 4
    assert Counting.looked_up == 1
    assert [s.snapshot_id for s in chain] == [3, 2, 1]


def test_ancestors_end_where_snapshots_expired():
    assert [s.snapshot_id for s in ancestors(table().without_snapshots([1]), 3)] == [3, 2]
    with pytest.raises(NoSuchSnapshot):
        next(ancestors(table(), 9))


def test_a_circle_of_ancestors_breaks_the_format_and_does_not_hang():
    looped = replace(table(), snapshots=Snapshots((snapshot(1, 2), snapshot(2, 1))))

    chain = ancestors(looped, 2)

    assert [next(chain).snapshot_id, next(chain).snapshot_id] == [2, 1]
    with pytest.raises(FormatError, match="snapshot 2 is its own ancestor"):
        next(chain)

"""Every operation on files, in every version, against a plain model of which files are there."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.commit.operations.append import Append
from icefloe.commit.operations.overwrite import OverwriteFiles, OverwriteWhere, ReplacePartitions
from icefloe.commit.operations.remove_files import RemoveFiles
from icefloe.commit.operations.rewrite import RewriteFiles, RewriteManifests
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.errors import ConflictError, InputError
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.entries import Status
from icefloe.model.metadata.snapshots import Operation
from icefloe.tree.file_changes import FileChanges
from support.entry_tables import at, audit, changed, data, equality_deletes, new_world, position_deletes, rows, vector
from support.tables import VERSIONS

MERGE_EARLY = {"commit.manifest.min-count-to-merge": "2"}
pytestmark = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def world(version):
    world = new_world(version)
    world.commit(Append(added=rows(data("a1", "Oslo", 0, 9), data("b1", "Rome", 10, 19))))
    world.commit(Append(added=rows(data("a2", "Oslo", 20, 29))))
    return world


def test_appends_add_files_and_say_so(world):
    assert world.names() == ["a1", "a2", "b1"]
    assert changed(world, world.head, Status.ADDED) == ["a2"]
    assert world.head.summary["added-data-files"] == "1"
    assert world.head.summary["added-records"] == "10"
    assert world.head.summary["total-data-files"] == "3"
    assert world.head.summary["changed-partition-count"] == "1"
    audit(world)


def test_a_merge_append_keeps_every_entry_its_numbers_and_its_row_ids(version):
    world, plain = new_world(version, **MERGE_EARLY), new_world(version)
    for number in range(5):
        for each in (world, plain):
            each.commit(Append(added=rows(data(f"f{number}", rows=number + 1))))
        audit(world)
    columns = ["location", "snapshot_id", "sequence_number", "file_sequence_number", "first_row_id", "record_count"]
    merged, apart = (each.entries().select(columns).sort_by("location").to_pydict() for each in (world, plain))
    order = [snapshot.snapshot_id for snapshot in world.metadata.snapshots]
    other = [snapshot.snapshot_id for snapshot in plain.metadata.snapshots]
    merged["snapshot_id"], apart["snapshot_id"] = (
        [o.index(x) for x in ids] for o, ids in ((order, merged["snapshot_id"]), (other, apart["snapshot_id"]))
    )
    assert merged == apart
    assert len(world.leaves()) == (0 if version == 4 else 1)
    assert changed(world, world.head, Status.ADDED) == ["f4"]


def test_a_fast_append_leaves_other_manifests_alone(version):
    world = new_world(version, **MERGE_EARLY)
    for number in range(3):
        world.commit(Append(added=rows(data(f"f{number}")), fast=True))
    assert len(world.leaves()) == (0 if version == 4 else 3)
    audit(world)


def test_merging_can_be_turned_off(version):
    world = new_world(version, **MERGE_EARLY, **{"commit.manifest-merge.enabled": "false"})
    for number in range(3):
        world.commit(Append(added=rows(data(f"f{number}"))))
    assert len(world.leaves()) == (0 if version == 4 else 3)


def test_merging_after_a_lost_race_keeps_the_other_writers_files_and_leaves_nothing_behind(version):
    world = new_world(version, **MERGE_EARLY)
    world.commit(Append(added=rows(data("f0"))))
    world.catalog.between = [lambda: world.commit(Append(added=rows(data("other"))))]
    assert world.commit(Append(added=rows(data("late")))).attempts == 2
    assert world.names() == ["f0", "late", "other"]
    audit(world)


def test_merging_drops_what_others_deleted_and_keeps_what_this_snapshot_deletes(version):
    world = new_world(version, **MERGE_EARLY)
    world.commit(Append(added=rows(data("f0"), data("f1"), data("f2"))))
    world.commit(RemoveFiles(locations=(at("f0"),)))
    world.commit(Append(added=rows(data("f3"))))
    assert changed(world, world.head, Status.DELETED) == []
    world.commit(
        OverwriteFiles(changes=FileChanges(added=rows(data("f4")), removed=world.tasks("f1")), read=world.head)
    )
    assert changed(world, world.head, Status.DELETED) == ["f1"]
    assert changed(world, world.head, Status.ADDED) == ["f4"]
    assert world.names() == ["f2", "f3", "f4"]
    audit(world)


def test_overwriting_files_replaces_them(world):
    world.commit(
        OverwriteFiles(changes=FileChanges(added=rows(data("a3")), removed=world.tasks("a1", "a2")), read=world.head)
    )
    assert world.names() == ["a3", "b1"]
    assert changed(world, world.head, Status.DELETED) == ["a1", "a2"]
    assert world.head.summary["deleted-data-files"] == "2"
    assert world.head.summary["operation"] == "overwrite"
    audit(world)


def test_overwriting_by_filter_replaces_the_files_that_match_whole(world):
    world.commit(OverwriteWhere(filter=parse_filter("city = 'Oslo'"), added=rows(data("a3"))))
    assert world.names() == ["a3", "b1"]
    audit(world)


def test_deleting_by_filter_is_a_matter_of_metadata(world):
    world.commit(OverwriteWhere(filter=parse_filter("city = 'Rome'"), operation=Operation.DELETE))
    assert world.names() == ["a1", "a2"]
    assert world.head.summary["operation"] == "delete"
    audit(world)


def test_a_filter_that_cuts_through_a_file_is_refused_by_its_name(world):
    before = world.files()
    with pytest.raises(InputError, match=r"a1\.parquet.*id < 5"):
        world.commit(OverwriteWhere(filter=parse_filter("id < 5"), operation=Operation.DELETE))
    assert world.files() == before


def test_deleting_what_is_not_there_makes_no_snapshot_and_no_commit(world):
    before = world.base().pointer
    result = world.commit(OverwriteWhere(filter=parse_filter("city = 'Lima'"), operation=Operation.DELETE))
    assert (result.attempts, result.snapshots, result.snapshot_id) == (0, 0, None)
    assert world.base().pointer == before
    audit(world)


def test_replacing_partitions_takes_everything_in_the_partitions_of_the_new_files(world):
    world.commit(ReplacePartitions(added=rows(data("a3"), data("c1", "Bern"))))
    assert world.names() == ["a3", "b1", "c1"]
    assert world.head.summary["replace-partitions"] == "true"
    audit(world)


def test_replacing_the_partition_of_null_leaves_the_others(world):
    world.commit(Append(added=rows(data("n1", None))))
    world.commit(ReplacePartitions(added=rows(data("n2", None))))
    assert world.names() == ["a1", "a2", "b1", "n2"]


def test_replacing_partitions_of_an_unpartitioned_table_replaces_all(version):
    world = new_world(version, partition_by=())
    plain = [{k: v for k, v in data(name).items() if ":p" not in k} for name in ("a", "b", "c")]
    world.commit(Append(added=rows(*plain[:2])))
    world.commit(ReplacePartitions(added=rows(plain[2])))
    assert world.names() == ["c"]


def test_removing_files_by_name(world):
    world.commit(RemoveFiles(locations=(at("a1"), at("b1"))))
    assert world.names() == ["a2"]
    assert changed(world, world.head, Status.DELETED) == ["a1", "b1"]
    audit(world)


def test_removing_a_file_that_is_not_there_is_refused_by_its_name(world):
    with pytest.raises(ConflictError, match=r"x1\.parquet is not a live data file") as refused:
        world.commit(RemoveFiles(locations=(at("a1"), at("x1"))))
    assert refused.value.context["files"] == [at("x1")]
    assert world.names() == ["a1", "a2", "b1"]


def test_rewriting_files_keeps_the_sequence_number_it_is_given(world, version):
    read = world.head
    rewrite = RewriteFiles(
        changes=FileChanges(added=rows(data("a3", rows=20)), removed=world.tasks("a1", "a2")),
        read=read,
        sequence_number=read.sequence_number,
    )
    world.commit(Append(added=rows(data("b2", "Rome"))))
    world.commit(rewrite)
    assert world.names() == ["a3", "b1", "b2"]
    (entry,) = [row for row in world.entries().to_pylist() if row["location"] == at("a3")]
    assert entry["sequence_number"] == read.sequence_number == (0 if version == 1 else 2)
    assert entry["file_sequence_number"] == (0 if version == 1 else 4)
    assert world.head.summary["operation"] == "replace"
    assert world.head.summary["total-records"] == "40"
    audit(world)


def test_rewriting_manifests_changes_no_file_and_no_number(world, version):
    columns = ["location", "snapshot_id", "sequence_number", "file_sequence_number", "first_row_id"]
    before = world.entries().select(columns).sort_by("location")
    result = world.commit(RewriteManifests())
    assert world.entries().select(columns).sort_by("location").equals(before)
    if version == 4:  # all files are in the root: there is nothing to do
        assert (len(world.leaves()), result.attempts) == (0, 0)
        return
    assert len(world.leaves()) == 1
    assert world.head.summary["operation"] == "replace"
    assert changed(world, world.head, Status.ADDED) == changed(world, world.head, Status.DELETED) == []
    assert world.commit(RewriteManifests()).attempts == 0  # nothing is left to do
    audit(world)


def test_a_summary_counts_the_manifests_that_a_snapshot_wrote_kept_and_left_behind(version):
    world = new_world(version, **{"commit.root.max-data-files": "0"})
    keys = ("manifests-created", "manifests-kept", "manifests-replaced")
    seen = []
    for name in ("a", "b"):
        world.commit(Append(added=rows(data(name))))
        seen.append([int(world.head.summary[key]) for key in keys])
    world.commit(RewriteManifests())
    seen.append([int(world.head.summary[key]) for key in keys])
    root = 1 if version == 4 else 0  # which is a manifest there, and written by every commit
    assert seen == [[1 + root, 0, 0], [1 + root, 1, root], [1 + root, 0, 2 + root]]


def test_rewriting_manifests_of_an_empty_table_does_nothing(version):
    world = new_world(version)
    assert world.commit(RewriteManifests()).attempts == 0
    assert world.head is None


def test_manifests_are_rewritten_to_the_size_that_the_table_asks_for(version):
    world = new_world(version, **{"commit.manifest.target-size-bytes": "1", "commit.root.max-data-files": "1"})
    for number in range(3):
        world.commit(Append(added=rows(data(f"f{number}a", "Oslo"), data(f"f{number}b", "Rome")), fast=True))
    world.commit(RewriteManifests())
    assert len(world.leaves()) == len(world.names()) == 6
    audit(world)


def test_a_row_delta_deletes_rows_and_adds_files(world, version):
    if version == 1:
        with pytest.raises(InputError, match="version 1 has no delete files"):
            world.commit(RowDelta(changes=FileChanges(added=rows(position_deletes("d1", "a1"))), read=world.head))
        assert world.names() == ["a1", "a2", "b1"]
        return
    make = position_deletes if version == 2 else vector
    world.commit(RowDelta(changes=FileChanges(added=rows(make("d1", "a1", rows=3), data("a3"))), read=world.head))
    assert world.names() == ["a1", "a2", "a3", "b1"]
    assert world.head.summary["added-position-deletes"] == "3"
    assert world.head.summary["total-delete-files"] == "1"
    assert world.head.summary.get("added-dvs") == (None if version == 2 else "1")
    assert world.head.summary.get("added-position-delete-files") == ("1" if version == 2 else None)
    assert world.deletes()["sequence_number"].to_pylist() == [3]
    audit(world)


def test_a_row_delta_is_refused_when_a_file_that_its_deletes_point_at_without_naming_it_was_compacted(world, version):
    if version != 2:
        return
    entry = {**position_deletes("d1", "a1"), "referenced_file": None}
    delta = RowDelta(changes=FileChanges(added=rows(entry), referenced=(at("a1"),)), read=world.head)
    blind = RowDelta(changes=FileChanges(added=rows({**entry, "location": at("d2")})), read=world.head)
    world.commit(
        RewriteFiles(
            changes=FileChanges(added=rows(data("c")), removed=world.tasks("a1")), read=world.head, sequence_number=1
        )
    )
    with pytest.raises(ConflictError, match="was removed by another commit"):
        world.commit(delta)
    world.commit(blind)  # nothing tells what it points at


def test_a_vector_is_replaced_by_one_that_holds_more(world, version):
    if version < 3:
        return
    world.commit(RowDelta(changes=FileChanges(added=rows(vector("d1", "a1", rows=1))), read=world.head))
    world.commit(
        RowDelta(
            changes=FileChanges(added=rows(vector("d2", "a1", rows=4)), revectored=world.tasks("a1")), read=world.head
        )
    )
    assert world.deletes()["location"].to_pylist() == ["memory://wh/t/data/d2.deletes"]
    assert world.head.summary["removed-dvs"] == "1"
    assert world.head.summary["total-position-deletes"] == "4"
    audit(world)


def test_a_file_that_leaves_takes_its_vector_along(world, version):
    if version < 3:
        return
    world.commit(RowDelta(changes=FileChanges(added=rows(vector("d1", "a1", rows=1))), read=world.head))
    world.commit(RemoveFiles(locations=(at("a1"),)))
    assert world.deletes().num_rows == 0
    assert world.head.summary["total-delete-files"] == "0"
    audit(world)


def test_equality_deletes_are_entries_like_others(world, version):
    if version == 1:
        return
    world.commit(RowDelta(changes=FileChanges(added=rows(equality_deletes("e1", rows=2))), read=world.head))
    assert world.deletes()["equality_ids"].to_pylist() == [[1]]
    assert world.head.summary["added-equality-delete-files"] == "1"
    assert world.head.summary["total-equality-deletes"] == "2"
    audit(world)


def test_compaction_drops_the_deletes_that_it_applied(world, version):
    if version == 1:
        return
    world.commit(
        RowDelta(
            changes=FileChanges(added=rows(equality_deletes("e1"), equality_deletes("e2", "Rome"))), read=world.head
        )
    )
    deletes = world.deletes()
    gone = deletes.filter(pa.compute.equal(deletes["location"], "memory://wh/t/data/e1.deletes"))
    rewrite = RewriteFiles(
        changes=FileChanges(added=rows(data("a3")), removed=world.tasks("a1", "a2"), removed_deletes=gone),
        read=world.head,
        sequence_number=3,
    )
    world.commit(rewrite)
    assert world.deletes()["location"].to_pylist() == ["memory://wh/t/data/e2.deletes"]
    assert world.head.summary["removed-equality-delete-files"] == "1"
    audit(world)


def test_position_delete_files_written_before_an_upgrade_are_refused_after_it(world, version):
    """Apache Iceberg #16146: version 3 has deletion vectors instead."""
    if version != 2:
        return
    late = RowDelta(changes=FileChanges(added=rows(position_deletes("d1", "a1"))), read=world.head)
    world.table().upgrade(3)
    with pytest.raises(ConflictError, match=r"deletion vectors, not by position delete files such as .*d1"):
        world.commit(late)
    audit(world)

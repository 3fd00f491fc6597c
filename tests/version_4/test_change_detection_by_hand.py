"""Statement 56: the scenarios of change detection, with roots made by hand, as another writer may write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from icefloe.codecs.manifest.manifests import encode_leaf, encode_root
from icefloe.model.entries import ContentType, Status, column_key, entries
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.tree.root import read_root
from icefloe.tree.snapshot_changes import snapshot_changes
from support.metadata_tree import LOCATION, Tree, data_file, planned_files, rows, short
from unit.tree.test_snapshot_changes import check, linked
from version_4.scenes import TO_LEAVES, Row

pytestmark = pytest.mark.broken_tables  # only readers must understand most of these encodings

KEPT = {"commit.leaf.max-dead-percent": "1000", "commit.manifest-merge.enabled": "false"}


class Hand:
    """Snapshot 1 has leaf m1 of ten files, snapshot 2 hides seven of them, snapshot 3 is made by hand."""

    def __init__(self) -> None:
        self.tree = Tree(properties={**TO_LEAVES, **KEPT})
        self.tree.commit(added=rows(*(data_file(f"D{n}") for n in range(10))))
        self.tree.commit(removed=planned_files(*(f"D{n}" for n in range(7))))
        self.m1, self.vector = self.tree.root().entries.to_pylist()
        assert self.vector["record_count"] == 7

    def gone(self, row: Row, by: int = 3) -> Row:
        return {**row, "status": int(Status.DELETED), "snapshot_id": by}

    def difference(self, *names: int) -> Row:
        """A vector of m1 that hides only what snapshot 3 removes."""
        positions = Hand._blob(*names)
        return {
            **self.vector,
            "status": int(Status.ADDED),
            "snapshot_id": 3,
            "sequence_number": 3,
            "file_sequence_number": 3,
            "dv_inline_content": positions,
            "record_count": len(names),
        }

    @staticmethod
    def _blob(*positions: int) -> bytes:
        tree = Tree(properties={**TO_LEAVES, **KEPT})
        tree.commit(added=rows(*(data_file(f"D{n}") for n in range(10))))
        tree.commit(removed=planned_files(*(f"D{n}" for n in positions)))
        (row,) = tree.root().rows(ContentType.MANIFEST_DV).to_pylist()
        return bytes(row["dv_inline_content"])

    def leaf(self, *files: tuple[int, Status], status: Status = Status.ADDED) -> Row:
        """Write m2 of these files; its row in the root."""
        old = {"snapshot_id": 1, "sequence_number": 1, "file_sequence_number": 1}
        numbers = {Status.ADDED: {}, Status.EXISTING: old, Status.DELETED: {**old, "snapshot_id": 3}}
        inside = [{**data_file(f"D{n}"), "status": int(s), "first_row_id": 10 * n, **numbers[s]} for n, s in files]
        data = encode_leaf(
            entries(inside, {column_key(1): pa.int64()}),
            self.tree.store.context,
            content=ContentType.DATA_MANIFEST,
            spec_id=0,
        )
        location = f"{LOCATION}/metadata/m2.parquet"
        self.tree.io.write_new(location, data)
        count = {s: sum(each is s for _, each in files) for s in Status}
        counts = {f"{n}_files_count": count[s] for n, s in self._kinds()}
        counts |= {f"{n}_rows_count": 10 * count[s] for n, s in self._kinds()}
        return {
            **self.m1,
            "location": location,
            "file_size_in_bytes": len(data),
            "status": int(status),
            "snapshot_id": 3,
            "sequence_number": 3,
            "file_sequence_number": 3,
            "record_count": len(files),
            **counts,
        }

    def _kinds(self) -> list[tuple[str, Status]]:
        return [("added", Status.ADDED), ("existing", Status.EXISTING), ("deleted", Status.DELETED)]

    def commit(self, *listed: Row, **summary: int) -> None:
        """Snapshot 3 with these rows."""
        location = f"{LOCATION}/metadata/root-3.parquet"
        table = entries(list(listed), {column_key(1): pa.int64()})
        data = encode_root(table, self.tree.store.context, snapshot_id=3, parent_id=2, sequence_number=3)
        self.tree.io.write_new(location, data)
        counts = {key.replace("_", "-"): str(value) for key, value in summary.items()}
        snapshot = Snapshot(
            snapshot_id=3, sequence_number=3, timestamp_ms=3, root=location, first_row_id=100, summary=counts
        )
        self.tree.snapshots.append(snapshot)

    def changes(self) -> list[str]:
        """What snapshot 3 changed; roots of other snapshots are not read, and brute force finds the same."""
        metadata = linked(self.tree)
        self.tree.io.reset()
        found = snapshot_changes(self.tree.fresh_store(), metadata, metadata.current_snapshot).to_pylist()
        assert {short(call.location) for call in self.tree.io.calls if "root" in call.location} == {"root-3"}
        check(self.tree)
        assert {row["snapshot_id"] for row in found} <= {3}
        return sorted(("+" if row["status"] == Status.ADDED else "-") + str(short(row["location"])) for row in found)


REST = ["-D7", "-D8", "-D9"]


@pytest.mark.parametrize("by", [3, 1])  # the deleting snapshot, as it should be, or the one that added the row
def test_56_scenario_1_option_1_a_leaf_removed_with_its_vector_removed_the_files_that_were_left(by: int) -> None:
    hand = Hand()
    hand.commit(hand.gone(hand.m1, by), hand.gone(hand.vector, by), deleted_data_files=3)
    assert hand.changes() == REST


def test_56_scenario_1_option_2_a_leaf_removed_with_a_new_vector_removed_what_the_vector_says() -> None:
    hand = Hand()
    hand.commit(hand.gone(hand.m1), hand.difference(7, 8, 9), deleted_data_files=3)
    assert hand.changes() == REST


def test_56_scenario_1_option_2_with_the_former_vector_beside_it() -> None:
    hand = Hand()
    hand.commit(hand.gone(hand.m1), hand.gone(hand.vector), hand.difference(7, 8, 9), deleted_data_files=3)
    assert hand.changes() == REST


def test_56_scenario_1_option_2_the_next_commit_leaves_out_leaf_and_vector() -> None:
    hand = Hand()
    hand.commit(hand.gone(hand.m1), hand.difference(7, 8, 9))
    hand.tree.commit(added=rows(data_file("E1")))
    assert [line.split(" ")[0] for line in hand.tree.describe()] == ["DATA_MANIFEST"]
    check(hand.tree)


@pytest.mark.parametrize("status", [Status.ADDED, Status.EXISTING])  # as the scene has it, and as it is written here
def test_56_scenario_2_a_leaf_written_again_changed_nothing(status: Status) -> None:
    hand = Hand()
    hand.commit(hand.leaf(*((n, Status.EXISTING) for n in (7, 8, 9)), status=status))
    assert hand.changes() == []


def test_56_scenario_2_with_the_old_leaf_listed_as_removed() -> None:
    hand = Hand()
    hand.commit(hand.gone(hand.m1), hand.gone(hand.vector), hand.leaf(*((n, Status.EXISTING) for n in (7, 8, 9))))
    assert hand.changes() == []


def test_56_scenario_3_a_leaf_written_again_with_changes_tells_them_and_the_old_leaf_adds_nothing() -> None:
    hand = Hand()
    new = [(n, Status.ADDED) for n in range(20, 25)]
    second = hand.leaf((7, Status.EXISTING), (8, Status.DELETED), (9, Status.EXISTING), *new)
    hand.commit(hand.gone(hand.m1), hand.gone(hand.vector), second, added_data_files=5, deleted_data_files=1)
    assert hand.changes() == ["+D20", "+D21", "+D22", "+D23", "+D24", "-D8"]


def test_56_rows_that_moved_from_a_removed_leaf_to_the_root_changed_nothing() -> None:
    hand = Hand()
    moved = [
        {
            **data_file(f"D{n}"),
            "status": int(Status.EXISTING),
            "snapshot_id": 1,
            "sequence_number": 1,
            "file_sequence_number": 1,
            "first_row_id": 10 * n,
        }
        for n in (7, 9)
    ]
    hand.commit(hand.gone(hand.m1), hand.gone(hand.vector), *moved, deleted_data_files=1)
    assert hand.changes() == ["-D8"]


def test_56_files_that_a_smaller_vector_shows_again_were_added() -> None:
    hand = Hand()
    fewer = {**hand.difference(0, 1, 7), "record_count": 3}
    hand.commit({**hand.m1, "status": 0}, hand.gone(hand.vector), fewer, deleted_data_files=1)
    assert hand.changes() == ["+D2", "+D3", "+D4", "+D5", "+D6", "-D7"]


def test_56_files_of_a_leaf_whose_vector_was_taken_away_were_added() -> None:
    hand = Hand()
    hand.commit({**hand.m1, "status": 0}, hand.gone(hand.vector))
    assert hand.changes() == [f"+D{n}" for n in range(7)]


def test_56_a_file_that_came_and_went_in_one_snapshot_changed_nothing() -> None:
    hand = Hand()
    new = hand.leaf((20, Status.ADDED), (21, Status.ADDED))
    hidden = {**hand.difference(0), "referenced_file": new["location"]}
    hand.commit({**hand.m1, "status": 0}, {**hand.vector, "status": 0}, new, hidden, added_data_files=1)
    assert hand.changes() == ["+D21"]


def without_old_vector(hand: Hand, **summary: int) -> None:
    both = {**hand.difference(*range(8)), "record_count": 8}
    hand.commit({**hand.m1, "status": 0}, both, **summary)


@pytest.mark.parametrize("summary", [{}, {"deleted_data_files": 1}])
def test_56_a_writer_that_did_not_keep_the_former_vector_is_found_out_by_its_summary(summary: dict[str, int]) -> None:
    hand = Hand()
    without_old_vector(hand, **summary)
    metadata = linked(hand.tree)
    found = snapshot_changes(hand.tree.fresh_store(), metadata, metadata.current_snapshot).to_pylist()
    assert [(short(row["location"]), row["status"], row["ordinal"], row["manifest"]) for row in found] == [
        ("D7", Status.DELETED, 7, hand.m1["location"])
    ]
    check(hand.tree)


def test_56_without_the_parent_the_root_is_all_there_is() -> None:
    hand = Hand()
    without_old_vector(hand)
    metadata = linked(hand.tree)
    expired = replace(metadata, snapshots=metadata.snapshots.without({2}))
    found = snapshot_changes(hand.tree.fresh_store(), expired, expired.current_snapshot)
    assert found.num_rows == 8


SCENES: list[Callable[[Hand], list[Row]]] = [
    lambda hand: [hand.gone(hand.m1), hand.gone(hand.vector)],
    lambda hand: [hand.gone(hand.m1), hand.difference(7, 8, 9)],
    lambda hand: [hand.leaf(*((n, Status.EXISTING) for n in (7, 8, 9)))],
]


@pytest.mark.parametrize("scene", range(len(SCENES)))
def test_56_such_roots_can_be_scanned_and_committed_to(scene: int) -> None:
    hand = Hand()
    hand.commit(*SCENES[scene](hand))
    left = ["D7", "D8", "D9"] if scene == 2 else []
    root = read_root(hand.tree.fresh_store(), hand.tree.head)
    assert [leaf.location for leaf in root.leaves(ContentType.DATA_MANIFEST)] == (
        [f"{LOCATION}/metadata/m2.parquet"] if scene == 2 else []
    )
    hand.tree.commit(added=rows(data_file("E1")), removed=planned_files(*left[:1]))
    check(hand.tree)

"""The changes between two snapshots: kinds of changes, ranges, folding, updates and errors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.errors import InputError, NoSuchSnapshot
from icefloe.table.snapshot_changes import Changes
from icefloe.table.table import Table
from support.people import COPY, EACH_MODE, MERGE, new_table, people
from support.tables import new_catalog

Found = list[tuple[object, ...]]


def changes_in(changes: Changes, *columns: str) -> Found:
    """The type and some columns of each change, in the order in which they come."""
    names = ("_change_type", *columns)
    return [tuple(row[name] for name in names) for row in changes.to_arrow().to_pylist()]


def head(table: Table) -> int:
    found = table.metadata.current_snapshot_id
    assert found is not None
    return found


@pytest.mark.parametrize("mode", EACH_MODE)
def test_an_update_is_one_pair_and_other_rows_of_its_file_are_no_change(mode: tuple[int, str], tmp_path: Path) -> None:
    table = new_table(tmp_path, *mode)
    table.append(people(1, 2, 3))
    start = head(table)
    table.update({"amount": "amount + 1"}, where="id = 2")
    table.delete("id = 3")
    assert changes_in(table.changes(start), "id", "amount") == [("delete", 2, 1), ("insert", 2, 2), ("delete", 3, 1)]
    paired = table.changes(start, images=True, keys=["id"])
    assert changes_in(paired, "id", "amount") == [("update_before", 2, 1), ("update_after", 2, 2), ("delete", 3, 1)]
    assert paired.count() == 3


@pytest.mark.parametrize("mode", EACH_MODE)
def test_net_changes_are_the_first_row_before_and_the_last_row_after(mode: tuple[int, str], tmp_path: Path) -> None:
    table = new_table(tmp_path, *mode)
    table.append(people(1, 2))
    start = head(table)
    table.update({"amount": "amount + 1"}, where="id = 1")
    table.append(people(7))
    table.update({"amount": "amount + 1"}, where="id = 1")
    table.delete("id in (2, 7)")
    table.append(people(2))
    net = table.changes(start, net=True, images=True, keys=["id"])
    assert changes_in(net, "id", "amount") == [("update_before", 1, 1), ("update_after", 1, 3)]
    assert changes_in(table.changes(start, net=True), "id", "amount") == [("delete", 1, 1), ("insert", 1, 3)]


@pytest.mark.parametrize("version", [3, 4])
def test_updates_are_paired_by_row_id_even_if_the_new_row_equals_another_old_one(version: int, tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="n int", format_version=version)
    table.append(pa.table({"n": pa.array([1, 2], pa.int32())}))
    start = head(table)
    table.update({"n": "n + 1"})
    expected = [("update_before", 1), ("update_after", 2), ("update_before", 2), ("update_after", 3)]
    assert changes_in(table.changes(start, images=True), "n") == expected
    assert changes_in(table.changes(start), "n") == [("delete", 1), ("insert", 3)]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_equality_delete_deletes_the_rows_that_were_live_before_it(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version, MERGE)
    table.append(people(1, 2, 3))
    table.delete("id = 1")
    start = head(table)
    table.upsert(people(1, 2, amount=9), on=["id"], deletes="equality")
    expected = [("delete", 2, 1), ("insert", 1, 9), ("insert", 2, 9)]
    assert changes_in(table.changes(start), "id", "amount") == expected


def test_a_row_that_begins_to_match_a_filter_is_an_insert(tmp_path: Path) -> None:
    table = new_table(tmp_path, 4)
    table.append(people(1, 2))
    start = head(table)
    table.update({"amount": "5"}, where="id = 1")
    table.update({"amount": "6"}, where="id = 1")
    found = table.changes(start, where="amount > 4", images=True, columns=["amount"])
    assert changes_in(found, "amount") == [("insert", 5), ("update_before", 5), ("update_after", 6)]
    assert found.to_arrow().column_names[0] == "amount"


def test_the_rows_have_the_columns_of_the_last_snapshot(tmp_path: Path) -> None:
    table = new_table(tmp_path, 3)
    table.append(people(1))
    start = head(table)
    table.delete("id = 1")
    with table.update_schema() as edit:
        edit.rename_column("city", "town")
        edit.add_column("note", "string", default="-")
    assert changes_in(table.changes(start), "town", "note") == [("delete", "Oslo", "-")]
    assert table.changes(start, until=head(table)).to_arrow().schema.names[1] == "town"


def test_since_and_until_are_ids_names_and_times(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    table.append(people(1))
    table.tag("v1")
    table.append(people(2), branch="main")
    table.branch("audit", snapshot=table.snapshots[0].snapshot_id)
    table.append(people(3), branch="audit")
    assert changes_in(table.changes("v1"), "id") == [("insert", 2)]
    assert changes_in(table.changes("v1", "audit"), "id") == [("insert", 3)]
    assert changes_in(table.changes(until="v1"), "id") == [("insert", 1)]
    long_ago, soon = datetime(2001, 1, 1, tzinfo=UTC), datetime.now(UTC) + timedelta(days=1)
    assert changes_in(table.changes(long_ago, soon), "id") == [("insert", 1), ("insert", 2)]
    assert changes_in(table.changes(soon), "id") == []
    with pytest.raises(NoSuchSnapshot, match="no branch or tag 'v9'"):
        table.changes("v9")
    with pytest.raises(InputError, match="no time zone"):
        table.changes(datetime(2026, 1, 1))
    with pytest.raises(InputError, match="since=True"):
        table.changes(True)


def test_since_must_be_an_ancestor_of_until(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    table.append(people(1))
    first = head(table)
    table.append(people(2))
    second = head(table)
    with pytest.raises(NoSuchSnapshot, match=f"{second} .* is not an ancestor of snapshot {first}"):
        table.changes(second, first)
    table.rollback(snapshot=first)
    table.append(people(3))
    with pytest.raises(NoSuchSnapshot, match=f"snapshot {second} is not an ancestor"):
        table.file_changes(second)
    assert changes_in(table.changes(first), "id") == [("insert", 3)]


def test_images_without_a_way_to_pair_rows_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    table.append(people(1))
    with pytest.raises(InputError, match=r"images=True .* give keys=\[\.\.\.\]"):
        table.changes(images=True)
    with pytest.raises(InputError, match="keys=\\[\\]"):
        table.changes(images=True, keys=[])
    with pytest.raises(InputError, match="nothing"):
        table.changes(images=True, keys=["nothing"])
    with table.update_schema() as edit:
        edit.set_identifiers("id")
    start = head(table)
    table.update({"amount": "2"})
    assert changes_in(table.changes(start, images=True), "amount") == [("update_before", 1), ("update_after", 2)]


def test_rows_with_a_null_key_are_not_paired(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    table.append(people(1, city=None))
    start = head(table)
    table.update({"amount": "2"})
    assert changes_in(table.changes(start, images=True, keys=["city"]), "amount") == [("delete", 1), ("insert", 2)]


def test_a_column_of_a_table_with_the_name_of_a_change_column_is_named(tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="_change_type string")
    with pytest.raises(InputError, match="'_change_type'"):
        table.changes()
    with pytest.raises(InputError, match="_pos"):
        new_table(tmp_path, 2).changes(where="_pos = 1")


def test_an_empty_table_has_no_changes(tmp_path: Path) -> None:
    table = new_table(tmp_path, 4)
    assert table.changes().to_arrow().num_rows == 0
    assert table.changes(net=True).to_arrow().column_names[-1] == "_commit_snapshot_id"
    assert table.file_changes().as_dict()["snapshots"] == 0
    with pytest.raises(InputError, match="needs a session"):
        table.changes().to_spark()


def test_only_touched_files_are_read(tmp_path: Path) -> None:
    table = new_table(tmp_path, 4, MERGE)
    for number in range(5):
        table.append(people(number, number + 10))
    start = head(table)
    table.delete("id = 13")
    plan = table.changes(start).plan()
    assert plan.files == 1
    assert repr(plan).startswith("changes of 1 snapshot: 1 data files (")
    assert plan.bytes == table.scan("id = 13").plan().tasks["file_size_in_bytes"][0].as_py()
    assert repr(table.changes(start, net=True)) == (
        f"Changes(db.people from snapshot {start} to snapshot {head(table)}, 1 commits that may change rows, net)"
    )


# -- files


def test_a_version_4_root_alone_shows_the_files_that_changed(tmp_path: Path) -> None:
    table = new_table(tmp_path, 4, MERGE)
    table.append(people(1, 2, 3))
    start = head(table)
    table.append(people(4))
    table.delete("id = 1")
    table.delete("id = 2")
    files = table.file_changes(start)
    assert (files.manifests.roots, files.manifests.leaves, files.files_opened) == (3, 0, 3)
    assert files.data_added["operation"].to_pylist() == ["append"]
    assert files.deletes_added["content"].to_pylist() == ["deletion vector", "deletion vector"]
    assert files.deletes_removed["is_replaced"].to_pylist() == [True]
    assert files.deletes_removed["snapshot_id"].to_pylist() == [head(table)]
    net = table.file_changes(start, net=True)
    assert (net.deletes_added.num_rows, net.deletes_removed.num_rows) == (1, 0)
    assert repr(net).startswith("file changes of 3 snapshots: data files +1 -0, deletes +1 -0; 3 roots and 0 leaf")


@pytest.mark.parametrize("mode", EACH_MODE)
def test_file_changes_list_the_files_of_every_snapshot(mode: tuple[int, str], tmp_path: Path) -> None:
    table = new_table(tmp_path, *mode)
    table.append(people(1, 2, 3))
    start = head(table)
    table.delete("id = 1")
    table.delete("id = 2")
    files = table.file_changes(start)
    removed, added = (2, 2) if mode[1] == COPY else (0, 0)
    assert (files.data_removed.num_rows, files.data_added.num_rows) == (removed, added)
    assert files.deletes_added.num_rows == (0 if mode[1] == COPY else 2)
    net = table.file_changes(start, net=True)
    assert net.data_added["location"].to_pylist() == (
        table.scan().plan().tasks["location"].to_pylist() if mode[1] == COPY else []
    )
    assert files.data_added.num_rows == 0 or "snapshot_sequence_number" in files.data_added.column_names

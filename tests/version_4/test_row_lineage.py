"""Row ids and the sequence numbers of last changes: given by commits, read by scans, kept by rows that move.

What version 4 says of row lineage is that of version 3, so most tests run in both.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.codecs.manifest.manifests import encode_root
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.engines.arrow.engine import ArrowEngine
from icefloe.errors import InputError
from icefloe.io.memory import MemoryFileIO
from icefloe.model.entries import ContentType, put
from icefloe.model.partition.spec import UNPARTITIONED
from icefloe.model.schema.metadata_columns import LAST_UPDATED, ROW_ID
from icefloe.model.text.ddl import parse_ddl
from icefloe.table.catalog import catalog
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.counting_io import CountingFileIO
from icefloe.tree.root import read_live_leaf, read_root
from support.engine_work import planned_for_engine
from support.entry_tables import LOCATION, NAME, Scripted, World
from support.metadata_tree import Tree, data_file, planned_files, short
from support.metadata_tree import rows as entry_rows
from support.tables import new_catalog

BOTH = pytest.mark.parametrize("version", [3, 4])
LINEAGE = ("_row_id", "_last_updated_sequence_number")
LEAVES = {"commit.root.max-data-files": "0"}  # every new file goes to a leaf


def new_table(version: int = 4, *, partition_by: tuple[str, ...] = ()) -> Table:
    return catalog("lineage", uri="memory://").create_table(
        f"db.t{uuid.uuid4().hex}",
        schema="id bigint, note string",
        partition_by=list(partition_by),
        format_version=version,
    )


def notes(*ids: int | None, note: str = "old") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "note": pa.array([note] * len(ids), pa.string())})


def lineage(scan) -> dict[int, tuple[int | None, int | None]]:
    """By id: the row id, and the sequence number of the last change."""
    found = scan(columns=["id", *LINEAGE]).to_arrow()
    assert found.num_rows == len(set(found["id"].to_pylist()))
    return {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in found.to_pylist()}


def row_ids(table: Table) -> dict[int, int | None]:
    return {key: row_id for key, (row_id, _) in lineage(table.scan).items()}


def first_ids(table: Table) -> list[tuple[int, int]]:
    """The first row id and the number of new ids of every snapshot, in the order of their commits."""
    made = sorted(table.snapshots, key=lambda snapshot: snapshot.sequence_number)
    return [(snapshot.first_row_id, snapshot.added_rows) for snapshot in made]


def check_counter(table: Table) -> None:
    """Each snapshot begins where the one before it ended, and the table goes on where the last one did."""
    following = 0
    for first, added in first_ids(table):
        assert first == following
        following = first + added
    assert table.metadata.next_row_id == following


def stored_columns(table: Table) -> list[list[str]]:
    """The columns of each data file."""
    files, _ = pointer_of(table).io.arrow_path(table.location)
    locations = table.scan().plan().tasks["location"].to_pylist()
    paths = [pointer_of(table).io.arrow_path(location)[1] for location in locations]
    return [pq.read_schema(files.open_input_file(path)).names for path in paths]


# 60, what belongs to rows


def test_60_an_upgrade_and_the_first_commits_after_it_leave_the_lineage_of_a_v3_table_alone() -> None:
    table = new_table(3)
    for start in (0, 10, 20, 30):
        table.append(notes(*range(start, start + 5)))
    table.delete("id = 11")
    table.upsert(notes(2, 21, 99, note="new"), on=["id"])
    before = lineage(table.scan)
    assert before[2] == (2, 6)
    assert before[21] == (11, 6)
    table.upgrade(4)
    assert lineage(table.scan) == before
    table.append(notes(1000))
    after = lineage(table.scan)
    assert after.pop(1000)[1] == 7
    assert after == before
    gone = table.scan("id = 30", columns=["_file"]).to_arrow()["_file"].to_pylist()
    table.remove_files(gone)
    kept = {key: value for key, value in before.items() if not 30 <= key < 35}
    after = lineage(table.scan)
    after.pop(1000)
    assert after == kept
    table.rewrite_manifests().execute()
    after = lineage(table.scan)
    after.pop(1000)
    assert after == kept
    check_counter(table)


@pytest.mark.parametrize("source", [1, 2])
@pytest.mark.parametrize("target", [3, 4])
def test_60_a_table_without_row_ids_gets_them_with_the_first_commit_after_its_upgrade(source, target) -> None:
    table = new_table(source)
    table.append(notes(1, 2, 3))
    table.append(notes(4, 5))
    table.upgrade(target)
    assert lineage(table.scan) == dict.fromkeys(range(1, 6), (None, None))
    old = table.metadata.current_snapshot
    table.append(notes(6))
    found = lineage(table.scan)
    assert sorted(row_id for row_id, _ in found.values()) == list(range(6))
    numbers = {1: [0] * 5, 2: [1, 1, 1, 2, 2]}[source]
    assert [found[key][1] for key in range(1, 6)] == numbers
    assert table.metadata.next_row_id == 6
    assert (table.metadata.current_snapshot.first_row_id, table.metadata.current_snapshot.added_rows) == (0, 6)
    assert lineage(table.at(snapshot=old.snapshot_id).scan) == dict.fromkeys(range(1, 6), (None, None))
    table.delete("id = 1")
    table.append(notes(7))
    later = lineage(table.scan)
    assert later == {**{key: value for key, value in found.items() if key != 1}, 7: (6, later[7][1])}


# 64


@BOTH
@pytest.mark.parametrize("properties", [{}, LEAVES, {"commit.root.max-data-files": "2"}], ids=["root", "leaf", "flush"])
def test_64_snapshots_take_their_row_ids_from_the_counter_of_the_table(version, properties) -> None:
    table = new_table(version)
    table.set_properties(properties)
    for start in (0, 10, 20):
        table.append(notes(*range(start, start + 3)))
    table.delete("id = 11")
    table.upsert(notes(0, 100, note="new"), on=["id"])
    table.remove_files(table.scan("id = 20", columns=["_file"]).to_arrow()["_file"].to_pylist())
    before = len(table.snapshots)
    table.rewrite_manifests().execute()
    rewritten = [(11, 0)] * (len(table.snapshots) - before)  # none if there was nothing to rewrite
    table.append(notes(30, 31))
    check_counter(table)
    assert first_ids(table) == [(0, 3), (3, 3), (6, 3), (9, 0), (9, 2), (11, 0), *rewritten, (11, 2)]
    assert row_ids(table) == {0: 0, 1: 1, 2: 2, 10: 3, 12: 5, 100: 10, 30: 11, 31: 12}


def test_64_null_first_row_ids_are_assigned_in_the_order_of_root_rows() -> None:
    """Data files advance the counter by their rows, manifests by their added and existing rows."""
    tree = Tree()
    tree.properties = LEAVES
    tree.commit(added=entry_rows(data_file("A", rows=4), data_file("B", rows=6)))
    tree.properties = {}
    tree.commit(added=entry_rows(data_file("C", rows=7), data_file("D", rows=1)))
    root = tree.root().entries
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "DATA C ADDED", "DATA D ADDED"]
    unassigned = put(root.take([1, 0, 2]), "first_row_id", pa.nulls(3, pa.int64()))
    location = f"{LOCATION}/metadata/root-9.parquet"
    data = encode_root(unassigned, tree.store.context, snapshot_id=9, parent_id=None, sequence_number=9)
    tree.io.write_new(location, data)
    snapshot = replace(tree.head, snapshot_id=9, sequence_number=9, root=location, first_row_id=1000)
    found = read_root(tree.fresh_store(), snapshot).entries
    assert found["content_type"].to_pylist() == [ContentType.DATA, ContentType.DATA_MANIFEST, ContentType.DATA]
    assert found["first_row_id"].to_pylist() == [1000, 1007, 1017]


@BOTH
def test_64_branches_take_row_ids_from_one_counter(version) -> None:
    table = new_table(version)
    table.append(notes(1, 2))
    table.branch("audit")
    table.append(notes(3, 4, 5), branch="audit")
    table.append(notes(6))
    table.append(notes(7), branch="audit")
    check_counter(table)
    assert row_ids(table) == {1: 0, 2: 1, 6: 5}
    audit = lineage(table.at(branch="audit").scan)
    assert {key: row_id for key, (row_id, _) in audit.items()} == {1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 7: 6}
    table.upsert(notes(2, note="new"), on=["id"], branch="audit")
    assert lineage(table.at(branch="audit").scan)[2] == (1, 5)
    assert lineage(table.scan)[2] == (1, 1)


@BOTH
def test_64_a_staged_append_that_is_published_later_takes_ids_anew(version) -> None:
    table = new_table(version)
    table.append(notes(1))
    staged = table.append(notes(2, 3), wap_id="night").snapshot_id
    table.append(notes(4))
    table.cherry_pick(staged)
    check_counter(table)
    assert row_ids(table) == {1: 0, 4: 3, 2: 4, 3: 5}
    assert {key: row_id for key, (row_id, _) in lineage(table.at(snapshot=staged).scan).items()} == {1: 0, 2: 1, 3: 2}


@BOTH
def test_64_the_appends_of_a_transaction_take_row_ids_one_after_the_other(version) -> None:
    table = new_table(version)
    table.append(notes(1))
    with table.transaction() as tx:
        tx.append(notes(2, 3))
        tx.append(notes(4))
        tx.delete("id = 3")
        tx.append(notes(5))
    check_counter(table)
    assert first_ids(table) == [(0, 1), (1, 4)]
    assert row_ids(table) == {1: 0, 2: 1, 4: 3, 5: 4}


@BOTH
def test_64_files_of_one_append_share_its_ids_in_the_order_of_their_leaf(version) -> None:
    table = new_table(version, partition_by=("id",))
    table.set_properties({"commit.root.max-data-files": "1"})
    table.append(notes(1, 2, 3, 1, 2, 1))
    tasks = table.scan().plan().tasks.sort_by("ordinal")
    assert tasks["manifest"].null_count == 0
    counts = tasks["record_count"].to_pylist()
    assert sorted(counts) == [1, 2, 3]
    assert tasks["first_row_id"].to_pylist() == [0, *np.cumsum(counts)[:-1].tolist()]
    found = table.scan(columns=["_row_id"]).to_arrow()["_row_id"].to_pylist()
    assert sorted(found) == list(range(6))
    assert table.metadata.next_row_id == 6


@BOTH
@pytest.mark.parametrize("properties", [{}, LEAVES], ids=["root", "leaf"])
def test_64_an_append_that_is_tried_again_takes_ids_behind_those_of_the_commit_that_came_first(
    version, properties
) -> None:
    world = world_of(version, properties)
    world.table().append(notes(1, 2))
    world.catalog.between = [lambda: world.table().append(notes(10, 11, 12))]
    assert world.table().append(notes(3)).attempts == 2
    check_counter(world.table())
    assert row_ids(world.table()) == {1: 0, 2: 1, 10: 2, 11: 3, 12: 4, 3: 5}


@BOTH
def test_64_ids_that_a_transaction_has_not_committed_are_written_into_no_file(version) -> None:
    """The first attempt numbers the rows of the append from 2, the second from 5: the upsert must not hold on to 2."""
    world = world_of(version, {})
    table = world.table()
    table.append(notes(1, 2))
    tx = table.transaction()
    tx.append(notes(3, 4))
    tx.upsert(notes(2, 3, note="new"), on=["id"])
    tx.upsert(notes(2, 4, note="newer"), on=["id"])
    world.catalog.between = [lambda: world.table().append(notes(10, 11, 12))]
    assert tx.commit().attempts == 2
    check_counter(world.table())
    found = row_ids(world.table())
    assert (found[1], found[2]) == (0, 1)
    assert {key: found[key] for key in (10, 11, 12)} == {10: 2, 11: 3, 12: 4}
    assert len(set(found.values())) == len(found) == 7


def world_of(version: int, properties: dict[str, str]) -> World:
    made, io = Scripted(), CountingFileIO(MemoryFileIO())
    metadata = new_metadata(
        location=LOCATION,
        schema=parse_ddl("id bigint, note string"),
        spec=UNPARTITIONED,
        properties=properties,
        format_version=version,
    )
    made.inner.create_namespace("db")
    create_table(made.inner, NAME, io, metadata)
    return World(made, io)


# 65


def test_65_rows_behind_a_file_that_a_manifest_vector_removes_keep_their_row_ids() -> None:
    tree = Tree()
    tree.properties = LEAVES
    tree.commit(added=entry_rows(*(data_file(name, rows=n) for name, n in (("D1", 3), ("D2", 5), ("D3", 2)))))
    tree.commit(removed=planned_files("D1"))
    assert tree.describe() == ["DATA_MANIFEST M1 EXISTING", "MANIFEST_DV M1 [0] ADDED"]
    root = tree.root()
    (leaf,) = root.leaves(ContentType.DATA_MANIFEST)
    left = read_live_leaf(tree.fresh_store(), root, leaf)
    assert [short(location) for location in left["location"].to_pylist()] == ["D2", "D3"]
    assert left["first_row_id"].to_pylist() == [3, 8]
    assert tree.next_row_id == 10


@BOTH
@pytest.mark.parametrize("properties", [{}, LEAVES], ids=["root", "leaf"])
def test_65_rows_of_the_other_files_keep_their_row_ids_when_files_leave(version, properties) -> None:
    table = new_table(version, partition_by=("note",))
    table.set_properties(properties)
    table.append(pa.concat_tables([notes(1, 2, note="a"), notes(3, 4, 5, note="b"), notes(6, note="c")]))
    before = lineage(table.scan)
    assert sorted(row_id for row_id, _ in before.values()) == list(range(6))
    for note, gone in (("a", (1, 2)), ("b", (3, 4, 5))):
        table.delete(f"note = '{note}'")
        before = {key: value for key, value in before.items() if key not in gone}
        assert lineage(table.scan) == before
    assert table.metadata.next_row_id == 6


# Reading


def test_metadata_columns_come_in_any_order_between_those_of_the_table() -> None:
    table = new_table()
    table.append(notes(1, 2))
    (location,) = table.scan().plan().tasks["location"].to_pylist()
    found = table.scan(columns=["_pos", "note", "_row_id", "_file", "id"]).to_arrow()
    assert found.to_pylist() == [
        {"_pos": 0, "note": "old", "_row_id": 0, "_file": location, "id": 1},
        {"_pos": 1, "note": "old", "_row_id": 1, "_file": location, "id": 2},
    ]
    assert [found.schema.field(name).nullable for name in ("_pos", "_file", "_row_id")] == [False, False, True]
    assert found.schema.field("_row_id").metadata[b"PARQUET:field_id"] == b"2147483540"
    assert table.scan(columns=["_row_id"]).to_arrow()["_row_id"].to_pylist() == [0, 1]
    assert table.scan().to_arrow().column_names == ["id", "note"]


@BOTH
def test_positions_count_rows_that_filters_vectors_and_row_groups_leave_out(version, tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table(
        "db.t",
        schema="id bigint, note string",
        format_version=version,
        properties={"write.parquet.row-group-size-bytes": "8000"},
    )
    table.append(notes(-1))
    table.append(notes(*range(10_000)))
    path = table.scan("id = 0").plan().tasks["location"][0].as_py().removeprefix("file://")
    assert pq.ParquetFile(path).num_row_groups > 5
    table.delete("id between 0 and 2 or id = 9500")
    assert row_ids(table) == {-1: 0, **{n: n + 1 for n in range(3, 10_000) if n != 9500}}
    found = table.scan("id >= 9499 and id < 9503 or id = 5", columns=["id", "_row_id", "_pos"]).to_arrow()
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        *((5, 6, 5), (9499, 9500, 9499), (9501, 9502, 9501), (9502, 9503, 9502))
    ]


def test_metadata_columns_that_a_table_cannot_tell_are_refused() -> None:
    table = new_table(2)
    table.append(notes(1))
    for name in LINEAGE:
        with pytest.raises(InputError, match="needs row lineage, which tables have from format version 3"):
            table.scan(columns=[name]).to_arrow()
    assert table.scan(columns=["_pos"]).to_arrow()["_pos"].to_pylist() == [0]
    with pytest.raises(InputError, match="no column '_partition': the table is not partitioned"):
        table.scan(columns=["_partition"]).plan()
    with pytest.raises(InputError, match="'_pos' is selected twice"):
        table.scan(columns=["_pos", "id", "_pos"]).plan()
    with pytest.raises(InputError, match="no column 'nothing'"):
        table.scan(columns=["nothing"]).plan()


@pytest.mark.parametrize(
    ("where", "ids"),
    [("_row_id = 1", [2]), ("id = 1 or _pos > 1", [1, 3]), ("not (_last_updated_sequence_number is null)", [1, 2, 3])],
)
def test_a_scan_is_filtered_by_metadata_columns(where, ids) -> None:
    table = new_table()
    table.append(notes(1, 2, 3))
    assert table.scan(where).to_arrow()["id"].to_pylist() == ids


# Writing


@BOTH
@pytest.mark.parametrize("partition_by", [(), ("bucket(3, id)",)], ids=["plain", "partitioned"])
def test_an_upserted_row_keeps_its_id_and_is_as_new_as_its_commit(version, partition_by) -> None:
    table = new_table(version, partition_by=partition_by)
    table.append(notes(*range(20)))
    before = lineage(table.scan)
    table.upsert(notes(3, 7, 40, note="new"), on=["id"])
    first = lineage(table.scan)
    assert {key: first[key] for key in range(20)} == {**before, 3: (before[3][0], 2), 7: (before[7][0], 2)}
    assert 20 <= first[40][0] < 23
    table.upsert(notes(40, 3, 41, note="newer"), on=["id"])
    second = lineage(table.scan)
    assert (second[3], second[7], second[40]) == ((before[3][0], 3), first[7], (first[40][0], 3))
    assert len({row_id for row_id, _ in second.values()}) == 22
    check_counter(table)


def test_a_row_that_replaces_several_goes_on_as_the_oldest_of_them() -> None:
    table = new_table()
    table.append(notes(5, 1))
    table.append(notes(1, 2))
    table.upsert(notes(1, note="one"), on=["id"])
    assert lineage(table.scan) == {5: (0, 1), 2: (3, 2), 1: (1, 3)}


def test_the_ids_of_an_upsert_follow_its_rows_whatever_their_order() -> None:
    table = new_table()
    table.append(notes(*range(100)))
    shuffled = [int(n) for n in np.random.default_rng(1).permutation(100)]
    table.upsert(notes(*shuffled, note="new"), on=["id"])
    assert row_ids(table) == {n: n for n in range(100)}
    assert table.scan(columns=["id"]).to_arrow()["id"].to_pylist() == shuffled


@BOTH
def test_files_hold_the_columns_of_lineage_only_where_there_is_something_to_keep(version) -> None:
    table = new_table(version)
    table.append(notes(1, 2))
    table.upsert(notes(8, 9), on=["id"])
    assert stored_columns(table) == [["id", "note"]] * 2
    table.upsert(notes(2, 10), on=["id"])
    assert stored_columns(table)[-1] == ["id", "note", "_row_id"]
    names = table.scan().plan().tasks.column_names
    assert not any(str(field.id) in name for name in names for field in (ROW_ID, LAST_UPDATED))


def test_null_keys_replace_nothing_and_get_new_ids() -> None:
    table = new_table()
    table.append(notes(None, 1))
    table.upsert(notes(None, 1, note="new"), on=["id"])
    found = table.scan(columns=["id", "note", "_row_id"]).to_arrow().to_pylist()
    assert sorted((row["note"], row["_row_id"]) for row in found) == [("new", 1), ("new", 2), ("old", 0)]


@pytest.mark.parametrize("version", [1, 2])
def test_an_upsert_of_rows_without_ids_gives_them_new_ones(version) -> None:
    table = new_table(version)
    table.append(notes(1, 2))
    table.upsert(notes(2, note="new"), on=["id"])
    table.upgrade(4)
    table.upsert(notes(1, note="new"), on=["id"])
    assert all("_row_id" not in names for names in stored_columns(table))
    assert len(set(row_ids(table).values())) == 2


@BOTH
def test_rows_that_are_written_again_keep_their_ids_and_numbers(version) -> None:
    table = new_table(version)
    table.append(notes(1, 2, 3))
    table.upsert(notes(2, 4, note="new"), on=["id"])
    before = lineage(table.scan)
    plan = table.scan().plan()
    io, tasks = pointer_of(table).io, plan.tasks.sort_by("first_row_id")
    first, second = tasks["location"].to_pylist()
    gone = {first: BitMap64([0]), second: BitMap64()}  # its second row had been replaced
    entries = ArrowEngine().write_survivors(planned_for_engine(io, table.metadata, plan), gone)
    assert entries["record_count"].to_pylist() == [3]
    written = pq.read_table(io.arrow_path(entries["location"][0].as_py())[1], filesystem=io.arrow_path(first)[0])
    assert [written.schema.field(name).metadata for name in LINEAGE] == [
        {b"PARQUET:field_id": b"2147483540"},
        {b"PARQUET:field_id": b"2147483539"},
    ]
    found = {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in written.to_pylist()}
    assert found == {key: before[key] for key in (3, 2, 4)}


def test_lineage_cannot_be_given_with_the_rows() -> None:
    table = new_table()
    forged = notes(1).append_column("_row_id", pa.array([77], pa.int64()))
    with pytest.raises(InputError, match="the table has no column _row_id"):
        table.append(forged)
    with pytest.raises(InputError, match="the table has no column _row_id"):
        table.upsert(forged, on=["id"])


@pytest.mark.slow
@given(
    version=st.sampled_from([3, 4]),
    properties=st.sampled_from([{}, LEAVES, {"commit.root.max-data-files": "1"}]),
    steps=st.lists(
        st.tuples(st.sampled_from(["append", "upsert", "delete", "rewrite"]), st.sets(st.integers(0, 8), min_size=1)),
        max_size=8,
    ),
)
def test_a_row_has_one_id_for_life_and_the_number_of_its_last_change(version, properties, steps) -> None:
    """Against a dictionary: keys are appended while absent, and their ids are those they were first seen with."""
    table = new_table(version)
    table.set_properties(properties)
    expected: dict[int, tuple[int, int]] = {}
    seen: set[int] = set()
    for kind, keys in steps:
        before = set(expected)
        if kind == "append" and len(keys - before) > 0:
            table.append(notes(*sorted(keys - before)))
        elif kind == "upsert":
            table.upsert(notes(*sorted(keys), note=str(len(seen))), on=["id"])
        elif kind == "delete":
            table.delete(f"id in ({', '.join(map(str, keys))})")
        elif kind == "rewrite" and len(before) > 0:
            table.rewrite_manifests().execute()
        found = lineage(table.scan)
        number = table.metadata.last_sequence_number
        changed = keys if kind == "upsert" else set()
        kept = {} if kind != "delete" else dict.fromkeys(keys)
        expected = {key: (row_id, number if key in changed else n) for key, (row_id, n) in expected.items()}
        expected = {key: value for key, value in expected.items() if key not in kept}
        for key in set(found) - set(expected):
            assert found[key][1] == number
            assert found[key][0] not in seen
            expected[key] = found[key]
        assert found == expected
        seen |= {row_id for row_id, _ in found.values()}
        check_counter(table)

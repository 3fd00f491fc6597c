"""Deletes that spell the location of a data file in another way than the table: they apply all the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyroaring import BitMap64

from icefloe.commit import stage
from icefloe.commit.loop import commit
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.deletes.position_files import write_position_deletes
from icefloe.deletes.vectors import write_vectors
from icefloe.errors import ConflictError, FormatError
from icefloe.model.entries import put
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from icefloe.tree.file_changes import FileChanges
from support.tables import new_catalog

pytestmark = [pytest.mark.slow, pytest.mark.broken_tables]  # vectors that no V4 writer should write

ROWS = pa.table({"id": pa.array(range(6), pa.int64())})
IN_LEAVES = {"commit.root.max-data-files": "0", "commit.root.max-dvs": "0"}
SPELLINGS = {
    "plain path": lambda table, path: path,
    "file:": lambda table, path: f"file:{path}",
    "local host": lambda table, path: f"file://localhost{path}",
    "empty segment": lambda table, path: f"file://{path.replace('/data/', '//data/')}",
    "relative": lambda table, path: path.removeprefix(f"{table}/"),
}
UNDECIDED = {
    "dots": lambda table, path: f"file://{table}/x/../{path.removeprefix(f'{table}/')}",
    "another scheme": lambda table, path: f"hdfs://node{path}",
    "another folder": lambda table, path: f"file:///moved/from/{path.removeprefix(f'{table}/')}",
}
spellings = pytest.mark.parametrize("spelling", SPELLINGS)
undecided = pytest.mark.parametrize("spelling", UNDECIDED)
in_leaves = pytest.mark.parametrize("in_leaves", [False, True], ids=["small", "in leaves"])


def new_table(folder: Path, version: int, *, in_leaves: bool = False, **settings: str) -> Table:
    """A table of one data file with the ids 0 to 5."""
    properties = {**(IN_LEAVES if in_leaves else {}), **settings}
    table = new_catalog(folder).create_table("db.t", schema="id bigint", format_version=version, properties=properties)
    table.append(ROWS)
    return table


def spelled(table: Table, location: str, spelling: str) -> str:
    folder, path = (text.removeprefix("file://") for text in (table.location, location))
    return {**SPELLINGS, **UNDECIDED}[spelling](folder, path)


def file_of(table: Table) -> str:
    (location,) = table.scan().plan().tasks["location"].to_pylist()
    return str(location)


def vector_of(table: Table, *positions: int, name: str = "v") -> pa.Table:
    """A new vector of the table's data file, as an entry to commit."""
    tasks, place = table.scan().plan().tasks, f"{table.location}/data/{name}.puffin"
    return write_vectors(pointer_of(table).io, tasks, {}, {file_of(table): BitMap64(positions)}, location=place)


def delete_by_vector(table: Table, spelling: str, *positions: int) -> None:
    """Delete rows as a program does that spells the location in its own way."""
    vector = vector_of(table, *positions)
    named = put(vector, "referenced_file", spelled(table, file_of(table), spelling))
    commit(pointer_of(table), RowDelta(changes=FileChanges(added=named), read=table.metadata.current_snapshot))


def delete_by_position_file(table: Table, spelling: str, *positions: int, names_file: bool = False) -> None:
    tasks = table.scan().plan().tasks
    name = spelled(table, file_of(table), spelling)
    entries = write_position_deletes(
        pointer_of(table).io,
        put(tasks, "location", name),
        {name: BitMap64(positions)},
        data_location=f"{table.location}/data",
        properties={},
    )
    if not names_file:  # the bounds of its column of paths are all that tells
        entries = put(entries, "referenced_file", pa.nulls(entries.num_rows, pa.string()))
    commit(pointer_of(table), RowDelta(changes=FileChanges(added=entries), read=table.metadata.current_snapshot))


def reload(table: Table, folder: Path) -> Table:
    return new_catalog(folder).load_table("db.t")


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


@spellings
@in_leaves
@pytest.mark.parametrize("version", [3, 4])
def test_a_vector_applies_however_it_spells_its_data_file(tmp_path, version, in_leaves, spelling):
    """The deleted rows came back."""
    table = new_table(tmp_path, version, in_leaves=in_leaves)
    delete_by_vector(table, spelling, 1, 4)
    table = reload(table, tmp_path)
    assert ids(table) == [0, 2, 3, 5]
    assert [finding for finding in check_table(table) if finding.rule != "locations"] == []


@spellings
@in_leaves
@pytest.mark.parametrize("version", [3, 4])
def test_rows_that_such_a_vector_deleted_stay_deleted_by_later_changes(tmp_path, version, in_leaves, spelling):
    """A new vector holds the positions of the old one, which leaves."""
    table = new_table(tmp_path, version, in_leaves=in_leaves)
    delete_by_vector(table, spelling, 1)
    table = reload(table, tmp_path)
    table.delete("id = 2")
    assert ids(table) == [0, 3, 4, 5]
    table.remove_files([file_of(table)])
    assert ids(reload(table, tmp_path)) == []
    assert [finding for finding in check_table(table) if finding.rule != "locations"] == []


@spellings
@pytest.mark.parametrize("version", [3, 4])
def test_two_vectors_of_one_data_file_are_seen_in_two_spellings(tmp_path, version, spelling):
    table = new_table(tmp_path, version)
    vectors = [vector_of(table, 1), vector_of(table, 2, name="w")]
    name = spelled(table, file_of(table), spelling)
    both = pa.concat_tables([vectors[0], put(vectors[1], "referenced_file", name)])
    commit(pointer_of(table), RowDelta(changes=FileChanges(added=both), read=table.metadata.current_snapshot))
    with pytest.raises(FormatError, match=r"two live deletion vectors|deletion vector of the same data file"):
        ids(reload(table, tmp_path))


@spellings
@pytest.mark.parametrize("version", [3, 4])
def test_a_vector_that_came_meanwhile_in_another_spelling_is_a_conflict(tmp_path, version, spelling):
    """Two vectors of one file must not both land."""
    table = new_table(tmp_path, version)
    late = RowDelta(changes=FileChanges(added=vector_of(table, 5, name="late")), read=table.metadata.current_snapshot)
    delete_by_vector(table, spelling, 1)
    with pytest.raises(ConflictError, match="deletes rows of a file in which this operation deletes rows"):
        commit(pointer_of(table), late)


@undecided
@pytest.mark.parametrize("version", [3, 4])
def test_a_vector_that_may_name_a_live_file_is_refused(tmp_path, version, spelling):
    table = new_table(tmp_path, version)
    delete_by_vector(table, spelling, 1)
    table = reload(table, tmp_path)
    with pytest.raises(FormatError, match=r"v\.puffin: it deletes rows of .*may be another spelling of the data file"):
        ids(table)


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("spelling", [None, *SPELLINGS])
def test_a_vector_of_a_file_that_was_removed_is_read_as_before(tmp_path, version, spelling):
    """Other programs leave such vectors behind; they delete nothing."""
    table = new_table(tmp_path, version)
    gone, vector = file_of(table), vector_of(table, 1)
    name = gone if spelling is None else spelled(table, gone, spelling)
    table.remove_files([gone])
    table.append(ROWS)
    commit(
        pointer_of(table),
        RowDelta(changes=FileChanges(added=put(vector, "referenced_file", name)), read=table.metadata.current_snapshot),
    )
    assert ids(reload(table, tmp_path)) == list(range(6))


@pytest.mark.parametrize("version", [3, 4])
def test_a_removed_file_of_the_same_name_in_another_partition_is_another_file(tmp_path, version):
    """Spark's writer gives the files of one task the same name in all partitions."""
    table = new_table(tmp_path, version)
    kept = file_of(table)
    folder, _, name = kept.rpartition("/")
    vector = put(vector_of(table, 1), "referenced_file", f"{folder}/city=Oslo/{name}")
    commit(pointer_of(table), RowDelta(changes=FileChanges(added=vector), read=table.metadata.current_snapshot))
    assert ids(reload(table, tmp_path)) == list(range(6))


@spellings
@pytest.mark.parametrize("names_file", [False, True])
def test_a_position_delete_file_applies_however_it_spells_its_data_file(tmp_path, spelling, names_file):
    """The deleted rows came back."""
    table = new_table(tmp_path, 2)
    delete_by_position_file(table, spelling, 1, 4, names_file=names_file)
    table = reload(table, tmp_path)
    assert ids(table) == [0, 2, 3, 5]
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.delete("id = 2")
    assert ids(reload(table, tmp_path)) == [0, 3, 5]


def test_a_position_delete_file_of_several_spellings_applies(tmp_path):
    """The bounds of its paths lie on both sides of the location that the table has."""
    table = new_table(tmp_path, 2)
    location = file_of(table)
    names = [spelled(table, location, spelling) for spelling in SPELLINGS]
    tasks = table.scan().plan().tasks
    tasks = put(tasks.take(pa.array([0] * len(names))), "location", pa.array(names))
    positions = {name: BitMap64([number]) for number, name in enumerate(names)}
    entries = write_position_deletes(
        pointer_of(table).io, tasks, positions, data_location=f"{table.location}/data", properties={}
    )
    commit(pointer_of(table), RowDelta(changes=FileChanges(added=entries), read=table.metadata.current_snapshot))
    assert ids(reload(table, tmp_path)) == [5]


@undecided
def test_a_position_delete_file_that_may_name_a_live_file_is_refused(tmp_path, spelling):
    table = new_table(tmp_path, 2)
    delete_by_position_file(table, "plain path", 0)
    names = [spelled(table, file_of(table), each) for each in ("plain path", spelling)]
    tasks = put(table.scan().plan().tasks.take(pa.array([0, 0])), "location", pa.array(names))
    positions = {name: BitMap64([1]) for name in names}
    entries = write_position_deletes(
        pointer_of(table).io, tasks, positions, data_location=f"{table.location}/data", properties={}
    )
    commit(pointer_of(table), RowDelta(changes=FileChanges(added=entries), read=table.metadata.current_snapshot))
    with pytest.raises(FormatError, match=r"position delete file .*may be another spelling of the data file"):
        ids(reload(table, tmp_path))


@spellings
def test_a_delete_leaf_belongs_to_its_data_leaf_in_any_spelling(tmp_path, spelling, monkeypatch):
    """Its row in the root names the data leaf; the whole table was refused."""
    table = new_table(tmp_path, 4, in_leaves=True)
    table.append(pa.table({"id": pa.array([10, 11], pa.int64())}))

    def respell(rows: pa.Table) -> pa.Table:
        names = [None if n is None else spelled(table, n, spelling) for n in rows["referenced_file"].to_pylist()]
        is_leaf = pc.equal(rows["content_type"], 4)
        return put(rows, "referenced_file", pc.if_else(is_leaf, pa.array(names, pa.string()), rows["referenced_file"]))

    counts = respell_roots(monkeypatch, respell)
    table.delete("id = 1")
    assert counts == [1]
    table = reload(table, tmp_path)
    assert ids(table) == [0, 2, 3, 4, 5, 10, 11]
    assert sorted(table.scan("id < 5").to_arrow()["id"].to_pylist()) == [0, 2, 3, 4]


def respell_roots(monkeypatch, change) -> list[int]:
    """Write the next roots with other rows; how many delete leaves each of them has that belong to a data leaf."""
    counts: list[int] = []
    encode = stage.encode_root

    def encoded(rows: pa.Table, *args, **options) -> bytes:
        changed = change(rows)
        counts.append(pc.sum(pc.and_(pc.equal(rows["content_type"], 4), pc.is_valid(rows["referenced_file"]))).as_py())
        return encode(changed, *args, **options)

    monkeypatch.setattr(stage, "encode_root", encoded)
    return counts

"""Damaged and wrong files under a table: every way to read them ends in a typed error that names table, snapshot, file.

What the specification lets readers pass over, such as a delete for a file that is gone, is passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyroaring import BitMap64

from icefloe.commit.loop import commit
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.deletes.equality_writer import write_equality_deletes
from icefloe.deletes.position_files import write_position_deletes
from icefloe.deletes.vectors import write_vectors
from icefloe.errors import CorruptFile, FormatError, IcefloeError, NoSuchFile
from icefloe.model.entries import put
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.tree.file_changes import FileChanges
from support.tables import VERSIONS, new_catalog

pytestmark = [pytest.mark.slow, pytest.mark.broken_tables]

FORMATS = ("parquet", "orc", "avro")
FIELD_ID = "PARQUET:field_id"
ROWS = pa.table({"id": pa.array(range(100), pa.int64()), "note": [f"note {i}" for i in range(100)]})


def table_of(folder: Path, version: int = 2, file_format: str = "parquet", **properties: str) -> Table:
    """A table of 100 rows in one file."""
    table = new_catalog(folder).create_table(
        "db.t",
        schema="id bigint not null, note string",
        format_version=version,
        properties={"write.format.default": file_format, **properties},
    )
    table.append(ROWS)
    return table


def files(table: Table) -> list[Path]:
    return [local(location) for location in table.scan().plan().tasks["location"].to_pylist()]


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


READS: dict[str, Callable[[Table], object]] = {
    "all rows": lambda table: table.scan().to_arrow(),
    "some rows": lambda table: table.scan("id > 50 and note is not null", columns=["id"]).to_arrow(),
    "a stream": lambda table: list(table.scan().to_arrow_batch_reader()),
    "a count": lambda table: table.scan("note > 'note 3'").count(),
    "the past": lambda table: table.at(snapshot=table.snapshots[-1].snapshot_id).scan().to_arrow(),
    "a delete": lambda table: table.delete("note = 'note 3'"),
    "an upsert": lambda table: table.upsert(ROWS.slice(3, 1), on=["id"]),
    "an update": lambda table: table.update({"note": "'new'"}, where="note = 'note 3'"),
    "a merge": lambda table: (
        table.merge(ROWS.slice(3, 1), on="t.id = s.id").when_matched_update({"note": "s.note"}).execute()
    ),
    "an overwrite": lambda table: table.overwrite(ROWS.slice(3, 1), where="note = 'note 3'"),
}


def check_refused(
    table: Table, file: Path, kind: type[IcefloeError], says: str = "", reads: tuple[str, ...] = ()
) -> None:
    """Every way to read ends in an error of this kind that names table, snapshot and file, and changes nothing."""
    before = table.metadata
    for name in reads if len(reads) > 0 else READS:
        with pytest.raises(kind) as refusal:
            READS[name](new_catalog(local(table.location).parents[2]).load_table("db.t"))
        message, context = str(refusal.value), refusal.value.context
        assert f"table {table.location}, snapshot {before.current_snapshot_id}: " in message, name
        assert message.count("snapshot ") == 1, name
        assert (file.name in message, says in message) == (True, True), (name, message)
        assert context["table"] == table.location, name
        assert context["snapshot_id"] == before.current_snapshot_id, name
        assert str(context["location"]).endswith(file.name), name
    assert table.metadata == before


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("left", [0, 3, 0.5, -1], ids=["empty", "three bytes", "half", "all but a byte"])
def test_a_data_file_that_was_cut_short(file_format, left, tmp_path):
    table = table_of(tmp_path, file_format=file_format)
    (file,) = files(table)
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * left) if isinstance(left, float) else left])
    check_refused(table, file, CorruptFile)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_data_file_of_something_else(version, tmp_path):
    table = table_of(tmp_path, version)
    (file,) = files(table)
    file.write_bytes(b"no data file at all " * 100)
    check_refused(table, file, CorruptFile)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_data_file_that_is_gone(version, file_format, tmp_path):
    table = table_of(tmp_path, version, file_format)
    (file,) = files(table)
    file.unlink()
    check_refused(table, file, NoSuchFile)


def rewritten(file: Path, rows: pa.Table, ids: tuple[int, ...]) -> None:
    """The file again with other rows, by whatever ids."""
    fields = [field.with_metadata({FIELD_ID: str(id_)}) for field, id_ in zip(rows.schema, ids, strict=True)]
    pq.write_table(rows.cast(pa.schema(fields)), file)


def test_a_data_file_without_the_ids_of_required_columns(tmp_path):
    table = table_of(tmp_path)
    (file,) = files(table)
    rewritten(file, ROWS, (11, 12))
    check_refused(table, file, FormatError, "lacks the required column 'id'", ("all rows", "some rows", "an upsert"))


def test_a_data_file_without_any_ids_whose_columns_do_not_fit(tmp_path):
    """Its first column has the id 1."""
    table = table_of(tmp_path)
    (file,) = files(table)
    pq.write_table(ROWS.select(["note", "id"]), file)
    check_refused(table, file, FormatError, "column 'id' is string in the file", ("all rows", "some rows", "an upsert"))


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (pa.array([f"{i}" for i in range(100)]), "column 'id' is string in the file"),
        (pa.array([float(i) for i in range(100)]), "column 'id' is double in the file"),
        (pa.array([[i] for i in range(100)]), "column 'id' is list"),
        (pa.array([{"x": i} for i in range(100)]), "column 'id' is struct"),
    ],
    ids=["text", "double", "list", "struct"],
)
def test_a_data_file_with_another_type(column, says, tmp_path):
    table = table_of(tmp_path)
    (file,) = files(table)
    rewritten(file, ROWS.set_column(0, "id", column), (1, 2))
    check_refused(table, file, FormatError, says, ("all rows", "some rows", "a stream", "an upsert"))


def test_ids_of_two_columns_changed_places(tmp_path):
    table = table_of(tmp_path)
    (file,) = files(table)
    rewritten(file, ROWS, (2, 1))
    check_refused(table, file, FormatError, "column 'id' is string in the file", ("all rows", "some rows", "an upsert"))


def test_a_null_where_a_value_is_required(tmp_path):
    table = table_of(tmp_path)
    (file,) = files(table)
    rewritten(file, ROWS.set_column(0, "id", pa.array([None, *range(99)], pa.int64())), (1, 2))
    check_refused(table, file, FormatError, "required column 'id' has 1 nulls", ("all rows", "a stream", "the past"))


def test_an_orc_file_with_another_type(tmp_path):
    table = table_of(tmp_path, file_format="orc")
    table.set_properties(
        {"schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["note"]}]'}
    )
    (file,) = files(table)
    orc.write_table(ROWS.set_column(0, "id", pa.array(["x"] * 100)), file)
    check_refused(table, file, FormatError, "column 'id' is string in the file", ("all rows", "an upsert"))


def committed(table: Table, added: pa.Table) -> Path:
    """Deletes put into the table as they are; the file that they are in."""
    commit(pointer_of(table), RowDelta(changes=FileChanges(added=added), read=table.metadata.current_snapshot))
    return local(added["location"][0].as_py())


def with_vector(table: Table, *positions: int) -> Path:
    tasks = table.scan().plan().tasks
    (name,) = tasks["location"].to_pylist()
    location = f"{table.location}/data/made-deletes.puffin"
    added = write_vectors(pointer_of(table).io, tasks, {}, {name: BitMap64(positions)}, location=location)
    return committed(table, added)


def with_positions(table: Table, positions: dict[str, list[int]]) -> Path:
    """A position delete file; names that are not in the table are written all the same."""
    tasks = table.scan().plan().tasks
    (known,) = tasks["location"].to_pylist()
    renamed = pa.concat_tables([put(tasks, "location", name) for name in positions])
    added = write_position_deletes(
        pointer_of(table).io,
        renamed,
        {name: BitMap64(at) for name, at in positions.items()},
        data_location=table.metadata.data_location,
        properties={"write.delete.granularity": "partition"},
    )
    assert added.num_rows == 1
    commit(
        pointer_of(table),
        RowDelta(
            changes=FileChanges(added=put(added, "referenced_file", None), referenced=(known,)),
            read=table.metadata.current_snapshot,
        ),
    )
    return local(added["location"][0].as_py())


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("damage", ["gone", "cut", "flipped"])
def test_a_deletion_vector_that_is_damaged(version, damage, tmp_path):
    table = table_of(tmp_path, version)
    vector = with_vector(table, 3, 50)
    data = vector.read_bytes()
    if damage == "gone":
        vector.unlink()
    else:
        vector.write_bytes(data[:20] if damage == "cut" else data[:12] + bytes([data[12] ^ 0xFF]) + data[13:])
    check_refused(table, vector, NoSuchFile if damage == "gone" else FormatError)


@pytest.mark.parametrize("damage", ["gone", "cut", "another file"])
def test_a_position_delete_file_that_is_damaged(damage, tmp_path):
    table = table_of(tmp_path)
    (file,) = files(table)
    deletes = with_positions(table, {f"file://{file}": [3]})
    if damage == "gone":
        deletes.unlink()
    elif damage == "cut":
        deletes.write_bytes(deletes.read_bytes()[:-7])
    else:
        rewritten(deletes, ROWS, (1, 2))
    check_refused(table, deletes, {"gone": NoSuchFile, "cut": CorruptFile}.get(damage, FormatError))


def test_a_delete_for_a_missing_file_is_passed_over(tmp_path):
    table = table_of(tmp_path)
    (file,) = files(table)
    with_positions(table, {f"file://{file}": [3], f"file://{file}.gone": [4, 1_000_000]})
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [i for i in range(100) if i != 3]
    assert table.scan().count() == 99
    assert table.delete("id = 5").rows_deleted == 1
    assert table.scan().count() == 98


@pytest.mark.parametrize("damage", ["gone", "cut", "another type"])
def test_an_equality_delete_file_that_is_damaged(damage, tmp_path):
    table = table_of(tmp_path)
    column = table.schema.field("id")
    rows = pa.table({"id": pa.array([3, 4], pa.int64())})
    added = write_equality_deletes(pointer_of(table).io, rows, (column,), metadata=table.metadata)
    deletes = committed(table, added)
    assert table.scan().count() == 98
    if damage == "gone":
        deletes.unlink()
    elif damage == "cut":
        deletes.write_bytes(deletes.read_bytes()[:-7])
    else:
        rewritten(deletes, pa.table({"id": ["3", "4"]}), (1,))
    reads = tuple(name for name in READS if name != "some rows")  # ids above 50 are out of the reach of this one
    check_refused(table, deletes, {"gone": NoSuchFile, "cut": CorruptFile}.get(damage, FormatError), reads=reads)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_root_or_manifest_list_that_is_damaged(version, damage, tmp_path):
    table = table_of(tmp_path, version)
    root = local(table.metadata.current_snapshot.root_location)
    if damage == "gone":
        root.unlink()
    else:
        root.write_bytes(root.read_bytes()[:-9])
    check_refused(table, root, NoSuchFile if damage == "gone" else FormatError)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_manifest_that_is_damaged(version, damage, tmp_path):
    table = table_of(tmp_path, version)
    manifest = local(table.scan().plan().tasks["manifest"][0].as_py())
    if damage == "gone":
        manifest.unlink()
    else:
        manifest.write_bytes(manifest.read_bytes()[:-9])
    check_refused(table, manifest, NoSuchFile if damage == "gone" else FormatError)


def test_one_bad_file_among_many_does_not_hide_rows_of_others_that_a_filter_asks_for(tmp_path):
    table = table_of(tmp_path)
    (bad,) = files(table)
    table.append(pa.table({"id": pa.array([1000], pa.int64()), "note": ["good"]}))
    bad.write_bytes(b"")
    assert table.scan("id = 1000").to_arrow().to_pylist() == [{"id": 1000, "note": "good"}]
    with pytest.raises(CorruptFile, match=bad.name):
        table.scan().to_arrow()

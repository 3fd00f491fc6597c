"""What the proposal allows and our writer never writes: it is read, carried over, and nothing else follows from it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from partitioned import TO_LEAVES, new_table, tuples

from icefloe.commit.operations.append import Append
from icefloe.errors import FormatError, InputError
from icefloe.table.table import Table
from support import entry_tables
from support.tables import new_catalog
from version_4.scenes import DATA, MANIFEST_DV, Row
from version_4.test_refusals import VECTOR, Edit, full, put, read_all, with_root, write_manifest

LATER = "2999-01-01T00:00:00+00:00"


def reopened(folder: Path) -> Table:
    return new_catalog(folder).load_table("db.t")


# -- inline vectors with a location


@pytest.mark.parametrize(
    "location",
    ["metadata/no-such-file.puffin", "s3://elsewhere/x.puffin", pytest.param("", marks=pytest.mark.broken_tables)],
)
def test_an_inline_vector_with_a_location_is_read_by_its_content(tmp_path: Path, location: str) -> None:
    stage = full(tmp_path)
    before = stage.table.scan().to_arrow()["id"].to_pylist()
    edit = put(VECTOR, location=location, file_size_in_bytes=100)
    read_all(stage, with_root(stage, tmp_path, edit))
    write_manifest(stage.root_path(), stage.root_path(), edit)
    assert reopened(tmp_path).scan().to_arrow()["id"].to_pylist() == before


def decorated(folder: Path) -> tuple[Table, Path]:
    """A table whose inline vector names a file of the table folder that nothing else names."""
    stage = full(folder)
    file = stage.folder / "data" / "named.puffin"
    file.write_bytes(b"not a vector")
    edit = put(VECTOR, location="data/named.puffin", file_size_in_bytes=12)
    write_manifest(stage.root_path(), stage.root_path(), edit)
    return reopened(folder), file


def root_of(table: Table) -> list[Row]:
    found: list[Row] = pq.ParquetFile(table.snapshots[-1].root_location.removeprefix("file://")).read().to_pylist()
    return found


def test_the_location_of_an_inline_vector_is_carried_over(tmp_path: Path) -> None:
    table, _ = decorated(tmp_path)
    table.append(pa.table({"id": [99]}))
    (vector,) = (row for row in root_of(table) if row["content_type"] == MANIFEST_DV)
    assert (vector["location"], vector["file_size_in_bytes"]) == ("data/named.puffin", 12)
    assert vector["deletion_vector"]["inline_content"] is not None
    assert [finding for finding in table.verify().findings if "named.puffin" in finding.message] == []


def test_the_file_that_an_inline_vector_names_is_neither_freed_nor_an_orphan(tmp_path: Path) -> None:
    table, file = decorated(tmp_path)
    orphans = table.remove_orphans(older_than=LATER, allow_recent=True, max_share=1.0).files["location"].to_pylist()
    assert orphans == []
    table.append(pa.table({"id": [99]}))
    table.rewrite_manifests().execute()  # no root after it names the file
    table.append(pa.table({"id": [98]}))
    table.expire(older_than=LATER, retain_last=1).execute()
    assert len(table.snapshots) == 1
    assert file.exists()


def test_a_purge_leaves_the_file_that_an_inline_vector_names(tmp_path: Path) -> None:
    table, file = decorated(tmp_path)
    root = Path(table.snapshots[-1].root_location.removeprefix("file://"))
    new_catalog(tmp_path).drop_table("db.t", purge=True)
    assert (root.exists(), file.exists()) == (False, True)


# -- null partition values


def nulled(owner: str, **counts: object) -> Edit:
    """The data file of the partition null with these statistics of a column only."""

    def edit(rows: list[Row]) -> None:
        for row in rows:
            if row["content_type"] == DATA and row["content_stats"][owner]["lower_bound"] is None:
                unknown = dict.fromkeys(row["content_stats"][owner])
                row["content_stats"][owner] = {**unknown, **counts}

    return edit


def null_partition(folder: Path, **measures: object) -> Table:
    """A table of two rows in the partition null and one in 1.5, read again after the first file was edited."""
    table = new_table(folder, "id bigint, x double", ["x"])
    table.append(pa.table({"id": pa.array([1, 2], pa.int64()), "x": pa.array([None, None], pa.float64())}))
    table.append(pa.table({"id": pa.array([3], pa.int64()), "x": [1.5]}))
    path = Path(table.snapshots[-1].root_location.removeprefix("file://"))
    write_manifest(path, path, nulled("x", **measures))
    return reopened(folder)


CONTRADICTIONS = [
    {"value_count": 2, "null_value_count": 0},
    {"value_count": 2, "null_value_count": 1},
    {"null_value_count": 0},
    {"upper_bound": 7.0},
]


@pytest.mark.parametrize("counts", [{}, {"value_count": 2}, {"null_value_count": 2}], ids=str)
def test_null_bounds_without_counts_are_the_partition_value_null(tmp_path: Path, counts: dict[str, object]) -> None:
    table = null_partition(tmp_path, **counts)
    assert tuples(table) == [(None,), (1.5,)]
    assert table.scan("x is null").count() == 2
    assert table.scan("x = 1.0").plan().files == 0
    table.set_properties(TO_LEAVES)
    table.append(pa.table({"id": pa.array([4], pa.int64()), "x": [2.5]}))
    assert tuples(reopened(tmp_path)) == [(None,), (1.5,), (2.5,)]


def test_null_bounds_of_an_expression_are_the_partition_value_null(tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, x int", ["bucket(4, x)"])
    table.append(pa.table({"id": pa.array([1, 2], pa.int64()), "x": pa.array([None, 7], pa.int32())}))
    path = Path(table.snapshots[-1].root_location.removeprefix("file://"))

    def edit(rows: list[Row]) -> None:
        for row in rows:
            own = row["content_stats"]["x_bucket"]
            if own["lower_bound"] is None:
                row["content_stats"]["x_bucket"] = dict.fromkeys(own)

    before = tuples(table)
    write_manifest(path, path, edit)
    assert None in {value for (value,) in before}
    assert tuples(reopened(tmp_path)) == before


def test_a_count_of_nan_without_other_counts_is_the_partition_value_nan(tmp_path: Path) -> None:
    table = null_partition(tmp_path, nan_value_count=2)
    assert repr(tuples(table)) == "[(nan,), (1.5,)]"


@pytest.mark.broken_tables
@pytest.mark.parametrize("counts", CONTRADICTIONS, ids=str)
def test_null_bounds_whose_counts_contradict_null_are_refused(tmp_path: Path, counts: dict[str, object]) -> None:
    table = null_partition(tmp_path, **counts)
    with pytest.raises(FormatError, match="row 0 has no value of partition field 'x' in content_stats"):
        table.scan().to_arrow()


@pytest.mark.broken_tables
@pytest.mark.parametrize("kept", ["null_value_count", "lower_bound"])
def test_a_null_partition_value_of_a_column_with_values_is_refused(tmp_path: Path, kept: str) -> None:
    """It was read as null: a filter on the column skipped the file, and equality deletes did not reach it."""
    table = new_table(tmp_path, "id bigint, x int", ["bucket(4, x)"])
    table.append(pa.table({"id": pa.array([1, 2], pa.int64()), "x": pa.array([None, 7], pa.int32())}))
    path = Path(table.snapshots[-1].root_location.removeprefix("file://"))

    def edit(rows: list[Row]) -> None:
        for row in rows:
            own = row["content_stats"]
            own["x_bucket"] = dict.fromkeys(own["x_bucket"])
            own["x"] = {name: value if name in ("value_count", kept) else None for name, value in own["x"].items()}

    write_manifest(path, path, edit)
    table = reopened(tmp_path)
    for where in (None, "x = 7", "id = 2"):  # the statistics of the column are read or not
        with pytest.raises(FormatError, match=r"no value of partition field 'x_bucket' .* has values"):
            table.scan(where).plan()
    assert [finding.rule for finding in table.verify().findings] == ["readable"]


@pytest.mark.broken_tables
def test_a_manifest_without_any_statistics_of_a_partition_field_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, x int", ["bucket(4, x)"])
    table.append(pa.table({"id": pa.array([1], pa.int64()), "x": pa.array([None], pa.int32())}))
    path = Path(table.snapshots[-1].root_location.removeprefix("file://"))
    file = pq.ParquetFile(path)
    rows = file.read()
    struct = rows["content_stats"].combine_chunks()
    kept = [i for i, field in enumerate(struct.type) if field.name != "x_bucket"]
    others = pa.StructArray.from_arrays([struct.field(i) for i in kept], fields=[struct.type.field(i) for i in kept])
    index = rows.schema.get_field_index("content_stats")
    rows = rows.set_column(
        index, pa.field("content_stats", others.type, metadata=rows.schema.field(index).metadata), others
    )
    known = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
    with pq.ParquetWriter(path, rows.schema, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(known)
    with pytest.raises(FormatError, match="row 0 has no value of partition field 'x_bucket'"):
        reopened(tmp_path).scan().to_arrow()


# -- split offsets


@pytest.mark.broken_tables
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_split_offsets_that_do_not_ascend_are_refused_in_v4_and_sorted_in_older_manifests(version: int) -> None:
    world = entry_tables.new_world(version)
    rows = entry_tables.rows(entry_tables.data("a") | {"split_offsets": [900, 4, 4]})
    if version == 4:
        with pytest.raises(InputError, match=r"split_offsets of .*a.* do not ascend: \[900, 4, 4\]"):
            world.commit(Append(added=rows))
        return
    world.commit(Append(added=rows))
    world.table().upgrade(4)
    world.table().rewrite_manifests().execute()
    assert world.entries()["split_offsets"].to_pylist() == [[4, 4, 900]]

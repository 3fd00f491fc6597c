"""Content statistics of V4: tightness of bounds, average sizes, boxes of shapes, and virtual columns."""

from __future__ import annotations

import datetime as dt
import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from partitioned import TO_LEAVES, new_table, tree

from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.errors import InputError
from icefloe.model.corners import coordinates
from icefloe.model.entries import MANIFESTS, ContentType
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.tree.root import read_root
from support.conformance import nonconformities
from support.engine_work import write_entries
from support.metadata_documents import metadata_json
from support.tables import new_catalog

FORMATS = pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
OLDER = pytest.mark.parametrize("version", [1, 2, 3])


def manifest_files(table: Table) -> list[pq.ParquetFile]:
    """The root of the current snapshot and its V4 leaves, as plain Parquet files."""
    base = pointer_of(table).load()
    root = read_root(base.store, base.metadata.current_snapshot)
    leaves = [leaf.location for leaf in root.leaves(*MANIFESTS) if leaf.location.endswith(".parquet")]
    places = [base.metadata.current_snapshot.root, *leaves]
    return [pq.ParquetFile(place.removeprefix("file://")) for place in places]


def stored(file: pq.ParquetFile, name: str) -> list[dict[str, Any]]:
    """The statistics of a column in the rows of a manifest that have some."""
    rows = file.read()["content_stats"].to_pylist()
    return [row[name] for row in rows if row is not None and row[name] is not None]


def member_ids(file: pq.ParquetFile, *path: str) -> dict[str, int]:
    """The field ids below a path of the schema, by name."""
    field = file.schema_arrow.field("content_stats")
    for name in path:
        field = field.type.field(name)
    return {member.name: int(member.metadata[b"PARQUET:field_id"]) for member in field.type}


def reopened(folder: Path) -> Table:
    return new_catalog(folder).load_table("db.t")


# -- tight bounds


@FORMATS
def test_bounds_are_tight_unless_they_were_cut(tmp_path: Path, file_format: str) -> None:
    table = new_table(tmp_path, "id bigint, name string, raw binary", [], **{"write.format.default": file_format})
    table.append(pa.table({"id": [1, 5], "name": ["a", "b" * 16], "raw": [b"x", b"y"]}))
    table.append(pa.table({"id": [1, 5], "name": ["a", "b" * 17], "raw": [b"x", b"y" * 20]}))
    (root,) = manifest_files(table)
    assert [row["tight_bounds"] for row in stored(root, "id")] == [True, True]
    assert [row["tight_bounds"] for row in stored(root, "name")] == [True, False]
    assert [row["tight_bounds"] for row in stored(root, "raw")] == [True, False]
    assert member_ids(root, "id")["tight_bounds"] == 10_000 + 200 * 1 + 3


def test_a_zero_of_a_floating_point_column_is_not_claimed_to_be_tight(tmp_path: Path) -> None:
    table = new_table(tmp_path, "x double", [])
    for low in (0.0, -1.0):
        table.append(pa.table({"x": [low, 2.5, float("nan"), None]}))
    (root,) = manifest_files(table)
    assert [row["tight_bounds"] for row in stored(root, "x")] == [None, True]


def test_a_column_without_values_or_without_bounds_says_nothing_of_tightness(tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, name string", [], **{"write.metadata.metrics.column.id": "counts"})
    table.append(pa.table({"id": [1], "name": pa.array([None], pa.string())}))
    (root,) = manifest_files(table)
    for name in ("id", "name"):
        assert "tight_bounds" not in member_ids(root, name)


def test_a_partition_value_is_tight_though_the_bounds_of_its_column_were_cut(tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, city string", ["city"])
    table.append(pa.table({"id": [1], "city": ["c" * 40]}))
    (root,) = manifest_files(table)
    (row,) = stored(root, "city")
    assert (row["lower_bound"], row["upper_bound"], row["tight_bounds"]) == ("c" * 40, "c" * 40, True)


def test_bounds_of_a_leaf_are_never_claimed_to_be_tight(tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint", [], **TO_LEAVES)
    table.append(pa.table({"id": [1, 5]}))
    root, leaf = manifest_files(table)
    assert stored(leaf, "id")[0]["tight_bounds"] is True
    assert "tight_bounds" not in member_ids(root, "id")


def test_deleted_rows_leave_the_statistics_of_their_file_as_they_are(tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint", [])
    table.append(pa.table({"id": [1, 3, 5]}))
    before = stored(manifest_files(table)[0], "id")
    table.delete("id = 5")
    assert stored(manifest_files(table)[0], "id") == before


# -- average sizes


@FORMATS
def test_the_average_size_is_that_of_uncompressed_values_without_nulls(tmp_path: Path, file_format: str) -> None:
    table = new_table(tmp_path, "id bigint, name string, raw binary", [], **{"write.format.default": file_format})
    names = pa.array(["é" * 5, "a" * 20, None] * 1000)  # ten and twenty bytes
    table.append(pa.table({"id": range(3000), "name": names, "raw": [b"abc"] * 3000}))
    (root,) = manifest_files(table)
    assert [row["avg_value_size_in_bytes"] for row in stored(root, "name")] == [15]
    assert [row["avg_value_size_in_bytes"] for row in stored(root, "raw")] == [3]
    assert member_ids(root, "name")["avg_value_size_in_bytes"] == 10_000 + 200 * 2 + 7
    assert "avg_value_size_in_bytes" not in member_ids(root, "id")


def test_the_average_size_of_a_leaf_is_weighted_by_the_values_of_its_files(tmp_path: Path) -> None:
    table = new_table(tmp_path, "name string", [])
    table.append(pa.table({"name": ["a" * 4] * 3}))
    table.append(pa.table({"name": pa.array(["a" * 12, None])}))
    table.append(pa.table({"name": pa.array([None, None], pa.string())}))
    table.set_properties(TO_LEAVES)
    table.append(pa.table({"name": ["b"]}))
    root, *_ = manifest_files(table)
    assert [row["avg_value_size_in_bytes"] for row in stored(root, "name")] == [6, 1]


@OLDER
@pytest.mark.parametrize("settings", [{}, TO_LEAVES], ids=["root", "leaf"])
def test_column_sizes_survive_an_upgrade_and_a_rewrite_as_average_sizes(
    tmp_path: Path, version: int, settings: dict[str, str]
) -> None:
    table = new_table(tmp_path, "id bigint, name string", [], version=version)
    table.append(pa.table({"id": range(1000), "name": [f"name {n:04}" if n % 2 else None for n in range(1000)]}))
    (before,) = table.inspect.files().to_pylist()
    old_size = dict(before["column_sizes"])[2]
    table.upgrade(4)
    table.set_properties(settings)
    table.append(pa.table({"id": [1], "name": ["x"]}))
    carried = {row["file_path"]: dict(row["column_sizes"]) for row in table.inspect.files().to_pylist()}
    assert carried[before["file_path"]] == dict(before["column_sizes"])  # the manifest is still the old one
    table.rewrite_manifests().execute()
    table = reopened(tmp_path)
    (row,) = (row for row in table.inspect.files().to_pylist() if row["file_path"] == before["file_path"])
    sizes = dict(row["column_sizes"])
    average = round(old_size / 500)
    assert average > 0
    assert sizes == {1: 8 * 1000, 2: average * 500}
    assert row["readable_metrics"]["name"]["column_size"] == average * 500
    assert row["readable_metrics"]["id"]["column_size"] == 8 * 1000
    files = tree(table).filter(pa.array([n == 1000 for n in tree(table)["record_count"].to_pylist()]))
    assert files["avg_value_size_in_bytes:2"].to_pylist() == [average]


def test_average_sizes_stay_as_they_are_through_commits_flushes_and_rewrites(tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, name string", [])
    table.append(pa.table({"id": [1, 2, 3], "name": ["a", "bb", "cccc"]}))
    for step in (
        lambda: table.append(pa.table({"id": [4], "name": ["d"]})),
        lambda: table.set_properties(TO_LEAVES),
        lambda: table.append(pa.table({"id": [5], "name": ["e"]})),
        lambda: table.rewrite_manifests().execute(),
    ):
        step()
        first = tree(reopened(tmp_path)).slice(0, 1).to_pylist()[0]
        assert (first["avg_value_size_in_bytes:2"], first["tight_bounds:2"], first["tight_bounds:1"]) == (2, True, True)


# -- boxes of shapes


def point(x: float, y: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


def big_endian_point(x: float, y: float) -> bytes:
    return struct.pack(">BIdd", 0, 1, x, y)


def line(*places: tuple[float, float]) -> bytes:
    return struct.pack("<BII", 1, 2, len(places)) + b"".join(struct.pack("<dd", *place) for place in places)


def shapes(*values: bytes | None) -> pa.Table:
    return pa.table({"id": pa.array(range(len(values)), pa.int64()), "place": pa.array(values, pa.binary())})


def corners(table: Table) -> list[list[float]]:
    """The boxes of the live files of a table, without z and m."""
    rows = tree(table)
    both = [coordinates(rows[f"{end}_bound:2"].combine_chunks())[:, :2] for end in ("lower", "upper")]
    return [[*low, *high] for low, high in zip(*(ends.tolist() for ends in both), strict=True)]


@pytest.mark.parametrize("type_", ["geometry", "geography"])
@FORMATS
def test_boxes_of_points_are_stored_as_structs_of_coordinates(tmp_path: Path, type_: str, file_format: str) -> None:
    table = new_table(tmp_path, f"id bigint, place {type_}", [], **{"write.format.default": file_format})
    table.append(shapes(point(-3.5, 2.0), big_endian_point(7.25, -1.0), None))
    (root,) = manifest_files(table)
    (row,) = stored(root, "place")
    assert row["lower_bound"] == {"x": -3.5, "y": -1.0, "z": None, "m": None}
    assert row["upper_bound"] == {"x": 7.25, "y": 2.0, "z": None, "m": None}
    assert (row["value_count"], row["null_value_count"], row["avg_value_size_in_bytes"]) == (3, 1, 21)
    base = 10_000 + 200 * 2
    assert member_ids(root, "place", "lower_bound") == {"x": base + 10, "y": base + 11, "z": base + 12, "m": base + 13}
    assert member_ids(root, "place", "upper_bound") == {"x": base + 14, "y": base + 15, "z": base + 16, "m": base + 17}
    assert "tight_bounds" not in member_ids(root, "place")
    bound = root.schema_arrow.field("content_stats").type.field("place").type.field("lower_bound")
    assert [axis.nullable for axis in bound.type] == [False, False, True, True]
    assert corners(reopened(tmp_path)) == [[-3.5, -1.0, 7.25, 2.0]]


def test_a_line_of_a_geometry_has_a_box_and_one_of_a_geography_has_none(tmp_path: Path) -> None:
    """A great circle may leave the box around its ends."""
    bounded: dict[str, bool] = {}
    for type_ in ("geometry", "geography"):
        table = new_table(tmp_path / type_, f"id bigint, place {type_}", [])
        table.append(shapes(line((0, 50), (90, 50)), point(1, 1)))
        (row,) = stored(manifest_files(table)[0], "place")
        bounded[type_] = row.get("lower_bound") is not None
    assert bounded == {"geometry": True, "geography": False}


def test_a_leaf_has_the_box_around_the_boxes_of_its_files(tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, place geometry", [])
    for x, y in ((5.0, -20.0), (-7.0, 300.0), (6.0, 1.0)):
        table.append(shapes(point(x, y)))
    table.append(shapes(None))
    table.set_properties(TO_LEAVES)
    table.append(shapes(point(1000.0, 1000.0)))
    root, *_ = manifest_files(table)
    old = stored(root, "place")[0]
    assert [old["lower_bound"][axis] for axis in "xy"] == [-7.0, -20.0]
    assert [old["upper_bound"][axis] for axis in "xy"] == [6.0, 300.0]


def test_files_and_leaves_outside_a_box_are_skipped(tmp_path: Path) -> None:
    for settings in ({}, TO_LEAVES):
        table = new_table(tmp_path / str(len(settings)), "id bigint, place geometry", [], **settings)
        for x, y in ((10.0, 60.0), (12.0, 42.0), (-70.0, 41.0)):
            table.append(shapes(point(x, y)))
        table.append(shapes(None))
        plan = table.scan().near("place", x_min=5, y_min=55, x_max=15, y_max=65).plan()
        skipped = (plan.files_skipped, plan.manifests_skipped)
        assert plan.files == 2  # the file without shapes has no box, so nothing is known of it
        assert skipped == ((0, 2) if len(settings) > 0 else (2, 0))
        both = table.scan("id = 7").near("place", x_min=-180, y_min=-90, x_max=180, y_max=90).plan()
        assert both.files == 0
        text = table.scan().near("place", x_min=5, y_min=55, x_max=15, y_max=65).explain()
        assert "outside the box x 5 to 15, y 55 to 65 of place" in text


def test_a_box_of_a_geography_may_reach_around_the_antimeridian(tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, place geography", [])
    for x in (-179.0, 0.0, 179.0):
        table.append(shapes(point(x, 0.0)))
    assert table.scan().near("place", x_min=170, y_min=-1, x_max=-170, y_max=1).plan().files == 2
    assert table.scan().near("place", x_min=-10, y_min=-1, x_max=10, y_max=1).plan().files == 1


@pytest.mark.parametrize(
    ("column", "box", "message"),
    [
        ("id", (0, 0, 1, 1), "has no bounding boxes; name a geometry or geography column"),
        ("place", (2, 0, 1, 1), "x_min 2 is greater than x_max 1, which only a box of a geography"),
        ("place", (0, 2, 1, 1), "is no box"),
        ("place", (0, float("nan"), 1, 1), "is no box"),
        ("nowhere", (0, 0, 1, 1), "nowhere"),
    ],
)
def test_what_is_no_box_is_refused(tmp_path: Path, column: str, box: tuple[float, ...], message: str) -> None:
    table = new_table(tmp_path, "id bigint, place geometry", [])
    with pytest.raises(InputError, match=message):
        table.scan().near(column, **dict(zip(("x_min", "y_min", "x_max", "y_max"), box, strict=True)))


def test_boxes_of_a_version_3_table_survive_the_upgrade(tmp_path: Path) -> None:
    table = new_table(tmp_path, "id bigint, place geometry", [], version=3)
    table.append(shapes(point(1.0, 2.0), point(3.0, -4.0)))
    before = corners(table)
    table.upgrade(4)
    table.append(shapes(point(9.0, 9.0)))
    table.rewrite_manifests().execute()
    assert before == [[1.0, -4.0, 3.0, 2.0]]
    assert sorted(corners(reopened(tmp_path))) == [[1.0, -4.0, 3.0, 2.0], [9.0, 9.0, 9.0, 9.0]]
    assert table.scan().near("place", x_min=8, y_min=8, x_max=10, y_max=10).plan().files == 1


def edit_place(path: Path, corner: bytes) -> None:
    """Write a root again with the bounds of its column ``place`` as bytes."""
    file = pq.ParquetFile(path)
    rows = file.read()
    stats = rows["content_stats"].combine_chunks()
    columns = {field.name: stats.field(field.name) for field in stats.type}
    place = columns["place"]
    members = {member.name: place.field(member.name) for member in place.type}
    members |= {name: pa.array([corner] * len(place), pa.binary()) for name in members if name.endswith("_bound")}
    columns["place"] = labelled(members, place.type)
    whole = labelled(columns, stats.type)
    at = rows.schema.get_field_index("content_stats")
    rows = rows.set_column(at, pa.field("content_stats", whole.type, metadata=rows.schema.field(at).metadata), whole)
    known = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
    with pq.ParquetWriter(path, rows.schema, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(known)


def labelled(columns: dict[str, pa.Array], type_: pa.StructType) -> pa.Array:
    """A struct of columns with the ids of a type."""
    fields = [pa.field(name, column.type, metadata=type_.field(name).metadata) for name, column in columns.items()]
    return pa.StructArray.from_arrays(list(columns.values()), fields=fields)


def test_boxes_that_were_stored_as_bytes_are_still_read(tmp_path: Path) -> None:
    """Earlier versions of this library stored the bytes of version 3 in V4 manifests."""
    table = new_table(tmp_path, "id bigint, place geometry", [])
    table.append(shapes(point(1.0, 2.0)))
    edit_place(Path(table.snapshots[-1].root_location.removeprefix("file://")), struct.pack("<dd", 1.0, 2.0))
    again = reopened(tmp_path)
    assert corners(again) == [[1.0, 2.0, 1.0, 2.0]]
    again.append(shapes(point(5.0, 5.0)))
    assert isinstance(stored(manifest_files(again)[0], "place")[0]["lower_bound"], dict)
    assert nonconformities(again, rows=True) == []


# -- virtual columns

AT = dt.datetime(2025, 6, 20, 12, 30)


def with_expressions(folder: Path, schema: str, *expressions: dict[str, Any]) -> Table:
    """A table whose metadata has expressions that partition nothing."""
    table = new_table(folder, schema, [])
    path = Path(table.metadata_location.removeprefix("file://"))
    document = metadata_json(path)
    path.write_text(json.dumps({**document, "expressions": list(expressions)}))
    return reopened(folder)


DAY = {"expr-id": 30, "expr": {"source-id": 2, "transform": "day", "name": "at_day"}}
BUCKET = {"expr-id": 31, "expr": {"source-id": 1, "transform": "bucket[16]", "name": "id_bucket"}}
LOWER = {"expr-id": 32, "expr": {"source-id": 3, "transform": "lower", "name": "lower_city"}}


def test_an_expression_that_partitions_nothing_has_statistics_under_its_id(tmp_path: Path) -> None:
    table = with_expressions(tmp_path, "id bigint, at timestamp_ntz, city string", DAY, BUCKET, LOWER)
    table.append(
        pa.table(
            {
                "id": [34, 34, 34],
                "at": pa.array([AT, AT + dt.timedelta(days=3), None], pa.timestamp("us")),
                "city": ["A", "B", None],
            }
        )
    )
    table.append(pa.table({"id": [1, 2], "at": pa.array([AT, AT], pa.timestamp("us")), "city": ["A", "B"]}))
    (root,) = manifest_files(table)
    first, second = stored(root, "at_day")
    days = [dt.date(2025, 6, 20), dt.date(2025, 6, 23)]
    assert [first["lower_bound"], first["upper_bound"]] == days
    assert (first["value_count"], first["null_value_count"], first["tight_bounds"]) == (3, 1, True)
    assert (second["lower_bound"], second["upper_bound"]) == (days[0], days[0])
    assert member_ids(root, "at_day")["lower_bound"] == 10_000 + 200 * 30 + 1
    one_value, several = stored(root, "id_bucket")
    assert (one_value["lower_bound"], one_value["upper_bound"], one_value["value_count"]) == (3, 3, 3)
    assert (several["lower_bound"], several["upper_bound"], several["value_count"]) == (None, None, 2)
    names = [field.name for field in root.schema_arrow.field("content_stats").type]
    assert "lower_city" not in names  # which this library cannot compute
    rows = reopened(tmp_path).scan("at >= '2025-06-22'").to_arrow()
    assert rows.num_rows == 1


def test_statistics_of_an_expression_are_aggregated_on_the_row_of_a_leaf(tmp_path: Path) -> None:
    table = with_expressions(tmp_path, "id bigint, at timestamp_ntz", DAY)
    for days in (5, 1, 9):
        table.append(pa.table({"id": [1], "at": pa.array([AT + dt.timedelta(days=days)], pa.timestamp("us"))}))
    table.set_properties(TO_LEAVES)
    table.append(pa.table({"id": [1], "at": pa.array([AT], pa.timestamp("us"))}))
    root, *_ = manifest_files(table)
    old = stored(root, "at_day")[0]
    assert (old["lower_bound"], old["upper_bound"]) == (dt.date(2025, 6, 21), dt.date(2025, 6, 29))
    assert (old["value_count"], old["null_value_count"]) == (3, 0)


def test_statistics_of_an_unknown_expression_are_carried_over(tmp_path: Path) -> None:
    """Another program knows the transform; its statistics survive commits, flushes and rewrites."""
    table = with_expressions(tmp_path, "id bigint, at timestamp_ntz, city string", LOWER)
    base = pointer_of(table).load()
    rows = pa.table({"id": [1], "at": pa.array([AT], pa.timestamp("us")), "city": ["A"]})
    entry = write_entries(base.store.io, rows, base.metadata)
    for name, value in (("lower_bound:32", "a"), ("upper_bound:32", "a"), ("value_count:32", 1)):
        entry = entry.append_column(name, pa.array([value]))
    commit(pointer_of(table), Append(added=entry))
    table = reopened(tmp_path)
    table.append(rows)
    table.set_properties(TO_LEAVES)
    table.append(rows)
    table.rewrite_manifests().execute()
    table = reopened(tmp_path)
    values = tree(table)["lower_bound:32"].to_pylist()
    assert values == ["a", None, None]
    kinds = {row["content_type"] for row in manifest_files(table)[0].read().to_pylist()}
    assert kinds == {int(ContentType.DATA_MANIFEST)}
    assert table.scan("city = 'A'").count() == 3

"""Partition values without partition tuples: derived from statistics, whatever the transform (statements 49 to 53)."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from partitioned import PLACES, TO_LEAVES, bucket, new_table, tree, tuples

from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.property_updates import SetProperties
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.model.entries import MANIFESTS, ContentType, column_key, entries, partition_key
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import read_root
from support.engine_work import write_entries
from support.metadata_documents import metadata_json
from support.tables import new_catalog

NOON = dt.datetime(2025, 6, 20, 12, 30)
LONG_TEXT = "".join(chr(0x61 + i % 26) for i in range(999)) + "é"


def manifests(table: Table) -> list[pq.ParquetFile]:
    """The root and the leaves of the current snapshot as plain Parquet files."""
    base = pointer_of(table).load()
    root = read_root(base.store, base.metadata.current_snapshot)
    places = [base.metadata.current_snapshot.root, *(leaf.location for leaf in root.leaves(*MANIFESTS))]
    return [pq.ParquetFile(place.removeprefix("file://")) for place in places]


def ids_of(field: pa.Field) -> dict[int, pa.Field]:
    """All fields below a field by their ids, itself included."""
    found = {int(field.metadata[b"PARQUET:field_id"]): field}
    if pa.types.is_struct(field.type):
        for member in field.type:
            found |= ids_of(member)
    return found


def field_ids(file: pq.ParquetFile) -> dict[int, pa.Field]:
    return {i: field for top in file.schema_arrow for i, field in ids_of(top).items()}


def stats(file: pq.ParquetFile, owner: int) -> list[dict[str, object] | None]:
    """What stands in a file under the statistics id of a column or an expression, row by row."""
    rows = file.read()["content_stats"].to_pylist()
    names = [f.name for f in file.schema_arrow.field("content_stats").type if 10_000 + 200 * owner in ids_of(f)]
    (name,) = names
    return [None if row is None else row[name] for row in rows]


def one_column(type_: str, value: object) -> pa.Table:
    if type_ == "uuid":
        return pa.table({"id": pa.array([1], pa.int64()), "x": pa.array([value], pa.binary(16))})
    arrow = {
        "float": pa.float32(),
        "int": pa.int32(),
        "date": pa.date32(),
        "binary": pa.binary(),
        "timestamp_ntz": pa.timestamp("us"),
    }.get(type_)
    column = pa.array([value], arrow) if arrow is not None or value is not None else pa.array([None], pa.string())
    return pa.table({"id": pa.array([1], pa.int64()), "x": column})


CASES = [
    ("string", "x", "Oslo", "Oslo"),
    ("string", "x", "", ""),
    ("string", "x", None, None),
    ("int", "x", -7, -7),
    ("int", "x", None, None),
    ("boolean", "x", False, False),
    ("float", "x", 1.5, 1.5),
    ("float", "x", math.nan, math.nan),
    ("double", "x", math.nan, math.nan),
    ("double", "x", -0.5, -0.5),
    ("double", "x", math.inf, math.inf),
    ("decimal(9, 2)", "x", Decimal("14.20"), Decimal("14.20")),
    ("date", "x", dt.date(1969, 12, 31), dt.date(1969, 12, 31)),
    ("timestamp_ntz", "x", NOON, NOON),
    ("binary", "x", b"\x00\xff", b"\x00\xff"),
    ("uuid", "x", bytes(range(16)), bytes(range(16))),
    ("bigint", "bucket(16, x)", 34, 3),  # the hash of 34 is 2017239379
    ("string", "bucket(100, x)", "iceberg", 1210000089 % 100),
    ("string", "bucket(100, x)", None, None),
    ("int", "truncate(10, x)", -1, -10),
    ("string", "truncate(3, x)", "iceberg", "ice"),
    ("string", "truncate(3, x)", None, None),
    ("date", "year(x)", dt.date(1969, 12, 31), -1),
    ("timestamp_ntz", "month(x)", NOON, 12 * 55 + 5),
    ("timestamp_ntz", "day(x)", NOON, dt.date(2025, 6, 20)),
    ("timestamp_ntz", "day(x)", None, None),
    ("timestamp_ntz", "hour(x)", dt.datetime(1970, 1, 1, 5, 59), 5),
    ("timestamp_ntz", "hour(x)", dt.datetime(1969, 12, 31, 23, 59), -1),
]


@PLACES
@pytest.mark.parametrize(("type_", "transform", "value", "expected"), CASES, ids=[f"{c[1]}-{c[2]}"[:40] for c in CASES])
def test_49_the_tuple_from_statistics_is_the_one_that_was_written(
    tmp_path, settings, type_, transform, value, expected
):
    table = new_table(tmp_path, f"id bigint, x {type_}", [transform], **settings)
    table.append(one_column(type_, value))
    ((found,),) = tuples(table)
    if isinstance(expected, float):
        assert np.float64(found).tobytes() == np.float64(expected).tobytes()
    else:
        assert found == expected
    for file in manifests(table):
        assert 102 not in field_ids(file)
        assert "partition" not in file.schema_arrow.names


@PLACES
def test_49_a_tuple_of_several_values_is_put_together_field_by_field(tmp_path, settings):
    table = new_table(
        tmp_path,
        "id bigint, city string, at timestamp_ntz, share double",
        ["city", "day(at)", "share", "bucket(16, id)"],
    )
    table.set_properties(settings)
    given = [("Oslo", NOON, 0.5), (None, NOON, math.nan), ("Oslo", None, None), ("Rome", NOON, 0.5)]
    for city, at, share in given:
        columns = {"id": [34], "city": pa.array([city], pa.string()), "at": pa.array([at], pa.timestamp("us"))}
        table.append(pa.table({**columns, "share": pa.array([share], pa.float64())}))
    day = dt.date(2025, 6, 20)
    expected = [("Oslo", day, 0.5, 3), (None, day, math.nan, 3), ("Oslo", None, None, 3), ("Rome", day, 0.5, 3)]
    assert repr(tuples(table)) == repr(expected)


@PLACES
@pytest.mark.parametrize("removed", ["city", "id_bucket"])
def test_49_a_removed_field_of_version_1_is_void_and_has_no_value(tmp_path, settings, removed):
    """Version 1 keeps the field under its id; files from before still have their values."""
    table = new_table(tmp_path, "id bigint, city string", ["city", "bucket(16, id)"], version=1)
    rows = pa.table({"id": [34], "city": ["Oslo"]})
    table.append(rows)
    with table.update_partitioning() as change:
        change.remove(removed)
    table.append(rows)
    table.upgrade(4)
    table.set_properties(settings)
    table.append(rows)
    later = (None, 3) if removed == "city" else ("Oslo", None)
    assert sorted(tuples(table), key=repr) == sorted([("Oslo", 3), later, later], key=repr)
    table.rewrite_manifests().execute()
    assert sorted(tuples(table), key=repr) == sorted([("Oslo", 3), later, later], key=repr)
    assert table.scan("city = 'Oslo'").count() == 3
    spec = metadata_json(table.metadata_location)["partition-specs"][-1]
    assert [("expr-id" in field) for field in spec["fields"]] == [name != removed for name in ("city", "id_bucket")]


def test_49_a_void_field_that_is_partitioned_by_again_says_nothing_of_the_files_between(tmp_path):
    """Their value is not null but unknown, so a filter on the column must not skip them."""
    table = new_table(tmp_path, "id bigint, city string", ["city"], version=1)
    rows = pa.table({"id": [1], "city": ["Oslo"]})
    with table.update_partitioning() as change:
        change.remove("city")
    table.append(rows)
    table.upgrade(2)
    for step in ("remove", "add"):
        with table.update_partitioning() as change:
            getattr(change, step)("city")
    table.append(rows)
    assert new_catalog(tmp_path).load_table("db.t").scan("city = 'Oslo'").count() == 2
    table = new_catalog(tmp_path).load_table("db.t")  # which knows of the manifests what their list tells
    table.upgrade(4)
    table.append(rows)
    assert new_catalog(tmp_path).load_table("db.t").scan("city = 'Oslo'").count() == 3


@PLACES
@pytest.mark.parametrize("mode", ["none", "truncate(16)"])
def test_50_a_text_of_1000_characters_is_stored_whole_whatever_the_metrics_mode(tmp_path, settings, mode):
    table = new_table(tmp_path, "id bigint, city string", ["city"])
    table.set_properties({"write.metadata.metrics.default": mode, **settings})
    base = pointer_of(table).load()
    rows = write_entries(base.store.io, pa.table({"id": [1, 2], "city": [LONG_TEXT, LONG_TEXT]}), base.metadata)
    city = column_key(2)
    bounds = [name for name in rows.column_names if name.endswith(f"_bound:{city}")]
    if mode == "none":
        rows = rows.drop_columns([name for name in rows.column_names if name.endswith(f":{city}")])
    else:
        assert all(len(rows[name][0].as_py()) == 16 for name in bounds)  # what the writer measured is cut
    commit(pointer_of(table), Append(added=rows))
    assert len(LONG_TEXT) == 1000
    assert tuples(table) == [(LONG_TEXT,)]
    assert all(row["lower_bound"] == row["upper_bound"] == LONG_TEXT for row in stats(manifests(table)[-1], 2))
    assert table.scan(f"city = '{LONG_TEXT}'").count() == 2
    assert table.scan(f"city = '{LONG_TEXT[:-1]}z'").plan().files == 0


def test_51_derived_values_stand_under_the_id_of_their_expression(tmp_path):
    table = new_table(tmp_path, "id bigint, city string", ["bucket(16, id)"], **TO_LEAVES)
    table.append(pa.table({"id": [34], "city": ["a"]}))
    (expression,) = table.metadata.expressions
    assert (expression.expr_id, expression.source_ids, expression.transform) == (3, (1,), "bucket[16]")
    root, leaf = manifests(table)
    base = 10_000 + 200 * 3
    for file in (root, leaf):
        assert field_ids(file)[base].name == "id_bucket"
        assert field_ids(file)[base + 1].type == pa.int32()
    (of_manifest,), (of_file,) = stats(root, 3), stats(leaf, 3)
    assert (of_manifest["lower_bound"], of_manifest["upper_bound"]) == (3, 3)
    assert (of_file["lower_bound"], of_file.get("upper_bound")) == (3, None)
    assert (of_file["value_count"], of_file["null_value_count"]) == (1, 0)


@pytest.mark.broken_tables
def test_51_a_filter_on_the_column_skips_leaves_of_other_buckets(tmp_path):
    """The bounds of the column itself overlap, so nothing but the bucket can tell them apart."""
    table = new_table(tmp_path, "id bigint", ["bucket(16, id)"], **TO_LEAVES)
    buckets: dict[int, list[int]] = {}
    for number in range(400):
        buckets.setdefault(bucket(number), []).append(number)
    one, other = buckets[3], buckets[5]
    for numbers in (one, other):
        table.append(pa.table({"id": pa.array(numbers, pa.int64())}))
    wanted = next(n for n in one if other[0] < n < other[-1])
    plan = table.scan(f"id = {wanted}").plan()
    assert (plan.files, plan.manifests_read, plan.manifests_skipped) == (1, 1, 1)
    skipped = [leaf for leaf in leaves(table) if leaf not in plan.tasks["manifest"].to_pylist()]
    for leaf in skipped:
        Path(leaf.removeprefix("file://")).unlink()  # so a plan that opened it would fail
    assert new_catalog(tmp_path).load_table("db.t").scan(f"id = {wanted}").count() == 1


def leaves(table: Table) -> list[str]:
    base = pointer_of(table).load()
    return [leaf.location for leaf in read_root(base.store, base.metadata.current_snapshot).leaves(*MANIFESTS)]


# -- equality deletes

COMMIT_DAY, DAY_AFTER = dt.date(2025, 6, 20), dt.date(2025, 6, 21)
TYPES = {partition_key(1000): pa.string(), partition_key(1001): pa.date32()}


def events(folder: Path) -> Table:
    return new_table(folder, "id bigint, event_type string, event_ts timestamp_ntz", ["event_type", "day(event_ts)"])


def placed(table: Table, name: str, spec_id: int, event: str | None = None, day: dt.date | None = None, **kind: object):
    """The entry of a file of ten rows in a partition."""
    row: dict[str, object] = {
        "content_type": int(ContentType.DATA),
        "location": f"{table.location}/data/{name}.parquet",
        "file_format": "parquet",
        "partition_spec_id": spec_id,
        "record_count": 10,
        "file_size_in_bytes": 100,
        **kind,
    }
    if spec_id == 0:
        for key, value in (("p1000", event), ("p1001", day)):
            nulls = 10 if value is None else 0
            row |= {f"lower_bound:{key}": value, f"upper_bound:{key}": value}
            row |= {f"value_count:{key}": 10, f"null_value_count:{key}": nulls}
    return row


EQUALITY = {"content_type": int(ContentType.EQUALITY_DELETES), "equality_ids": [1]}


def deleted_from(table: Table) -> dict[str, list[str]]:
    """The equality delete files of each data file, by short names."""
    plan = table.scan().plan()
    names = [location.rsplit("/")[-1].removesuffix(".parquet") for location in plan.deletes["location"].to_pylist()]
    listed = plan.tasks["deletes"].to_pylist()
    files = [location.rsplit("/")[-1].removesuffix(".parquet") for location in plan.tasks["location"].to_pylist()]
    return {file: [names[i] for i in found or ()] for file, found in zip(files, listed, strict=True)}


@PLACES
def test_52_an_equality_delete_applies_to_the_tuple_that_its_statistics_tell(tmp_path, settings):
    table = events(tmp_path)
    with table.update_partitioning() as change:
        change.remove("event_type")
        change.remove("event_ts_day")
    commit(pointer_of(table), SetProperties(updates=settings))
    data = [
        placed(table, "same", 0, "commit", COMMIT_DAY),
        placed(table, "later", 0, "commit", DAY_AFTER),
        placed(table, "other", 0, "push", COMMIT_DAY),
        placed(table, "nulls", 0, None, None),
        placed(table, "whole", 1),
    ]
    commit(pointer_of(table), Append(added=entries(data, TYPES)))
    deletes = [
        placed(table, "e1", 0, "commit", COMMIT_DAY, **EQUALITY),
        placed(table, "e2", 0, None, None, **EQUALITY),
    ]
    head = table.metadata.current_snapshot
    commit(pointer_of(table), RowDelta(changes=FileChanges(added=entries(deletes, TYPES)), read=head))
    assert deleted_from(table) == {"same": ["e1"], "later": [], "other": [], "nulls": ["e2"], "whole": []}

    head = table.metadata.current_snapshot
    commit(
        pointer_of(table), RowDelta(changes=FileChanges(added=entries([placed(table, "e3", 1, **EQUALITY)])), read=head)
    )
    assert deleted_from(table) == {
        "same": ["e1", "e3"], "later": ["e3"], "other": ["e3"], "nulls": ["e2", "e3"], "whole": ["e3"],
    }  # fmt: skip


@PLACES
def test_52_an_equality_delete_of_one_spec_never_applies_to_files_of_another(tmp_path, settings):
    """The second spec has the same fields in another order and so, field by field, the same values."""
    table = events(tmp_path)
    table.set_properties(settings)
    with table.update_partitioning() as change:
        change.remove("event_type")
        change.remove("event_ts_day")
    with table.update_partitioning() as change:
        change.add("day(event_ts)")
        change.add("event_type")
    files = [placed(table, f"d{spec}", 0, "commit", COMMIT_DAY) | {"partition_spec_id": spec} for spec in (0, 2)]
    commit(pointer_of(table), Append(added=entries(files, TYPES)))
    delete = placed(table, "e", 0, "commit", COMMIT_DAY, **EQUALITY)
    commit(
        pointer_of(table),
        RowDelta(changes=FileChanges(added=entries([delete], TYPES)), read=table.metadata.current_snapshot),
    )
    assert deleted_from(table) == {"d0": ["e"], "d2": []}


# -- columns that are gone


@PLACES
@pytest.mark.parametrize("transform", ["city", "truncate(2, city)", "bucket(4, city)"])
def test_53_tuples_of_old_files_outlive_the_column_they_came_from(tmp_path, settings, transform):
    table = new_table(tmp_path, "id bigint, city string", [transform])
    table.set_properties(settings)
    for number, city in enumerate(("Oslo", "Rome", None)):
        table.append(pa.table({"id": [number], "city": pa.array([city], pa.string())}))
    before = tuples(table)
    assert before[2] == (None,)
    with table.update_partitioning() as change:
        change.remove(table.spec.fields[0].name)
    with table.update_schema() as change:
        change.drop_column("city")
    assert tuples(table) == before
    table.append(pa.table({"id": [7]}))
    assert tuples(table) == [*before, ()]
    table.set_properties(TO_LEAVES)
    table.append(pa.table({"id": [8]}))  # which moves the rows of the root to leaves
    table.rewrite_manifests().execute()
    assert sorted(tuples(table), key=repr) == sorted([*before, (), ()], key=repr)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 7, 8]


def forgetful(table: Table) -> Table:
    """The table after another program let all schemas but the current one expire."""
    path = Path(table.metadata_location.removeprefix("file://"))
    document = metadata_json(path)
    document["schemas"] = [s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"]]
    for snapshot in document["snapshots"]:
        snapshot["schema-id"] = document["current-schema-id"]
    path.write_text(json.dumps(document))
    return new_catalog(path.parents[4]).load_table("db.t")


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("transform", ["city", "truncate(2, city)", "bucket(4, city)"])
def test_53_a_column_that_no_schema_has_any_more_stops_no_commit(tmp_path, version, transform):
    table = new_table(tmp_path, "id bigint, city string", [transform], version=version)
    for number, city in enumerate(("Oslo", "Rome", None)):
        table.append(pa.table({"id": [number], "city": pa.array([city], pa.string())}))
    before = tuples(table)
    with table.update_partitioning() as change:
        change.remove(table.spec.fields[0].name)
    with table.update_schema() as change:
        change.drop_column("city")
    table = forgetful(table)
    table.append(pa.table({"id": [7]}))
    table.remove_files([table.scan().plan().tasks["location"].to_pylist()[-1]])
    table.rewrite_manifests().execute()
    if version < 4:
        table.upgrade(4)
    table.set_properties(TO_LEAVES)
    table.append(pa.table({"id": [8]}))
    table.rewrite_manifests().execute()
    left = sorted(table.scan().to_arrow()["id"].to_pylist())
    assert len(left) == 4
    found = [value for value, spec in zip(raw_values(table), spec_ids(table), strict=True) if spec == 0]
    assert sorted(found, key=repr) == sorted((before[number][0] for number in left if number < 3), key=repr)


def raw_values(table: Table) -> list[object]:
    """The stored values of partition field 1000, whatever the table knows of it."""
    return tree(table)["lower_bound:p1000"].to_pylist()


def spec_ids(table: Table) -> list[int]:
    return tree(table)["partition_spec_id"].to_pylist()


@PLACES
@pytest.mark.parametrize("field", ["city", "truncate(2, city)"])
def test_rows_are_deleted_where_every_partition_value_is_null(
    tmp_path: Path, field: str, settings: dict[str, str]
) -> None:
    table = new_table(tmp_path, "id bigint, city string", [field], **settings)
    table.append(pa.table({"id": [1, 2], "city": pa.array([None, None], pa.string())}))
    again = new_catalog(tmp_path).load_table("db.t")
    assert again.delete("id = 1").rows_deleted == 1
    assert again.scan().to_arrow().to_pylist() == [{"id": 2, "city": None}]

"""Tables of version 1 whose specs give one partition field id to several values, as old writers of Java made them.

Such a table lost rows: a filter on the column of one spec was asked of the partition values of another. Where the types
of the values differed, it could not be read at all.
"""

from __future__ import annotations

import datetime as dt
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

from e2e.test_evolved_tables import path_of, put, stored
from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from support.engine_work import write_entries
from support.tables import VERSIONS, new_catalog, sorted_rows

pytestmark = pytest.mark.slow
SCHEMA = "a int, b string, n int, ts timestamp_ntz"
IDS = {"a": 1, "b": 2, "n": 3, "ts": 4}
# how the first spec partitions, and the fields of the second: column, transform, id and name
LAYOUTS: dict[str, tuple[list[str], list[tuple[str, str, int, str]]]] = {
    "one type": (["a"], [("n", "identity", 1000, "n")]),
    "two types": (["a"], [("b", "identity", 1000, "b")]),
    "one column": (["day(ts)"], [("ts", "hour", 1000, "ts_hour")]),
    "other order": (["a", "b"], [("b", "identity", 1000, "b"), ("a", "identity", 1001, "a")]),
    "buckets": (["bucket(4, a)"], [("b", "bucket[4]", 1000, "b_bucket")]),
    "one name": (["truncate(2, a)"], [("b", "truncate[1]", 1000, "a_trunc")]),
}
FILTERS = {
    "a = 1": lambda r: r["a"] == 1,
    "b = 'x'": lambda r: r["b"] == "x",
    "n = 5": lambda r: r["n"] == 5,
    "a > 2": lambda r: r["a"] is not None and r["a"] > 2,
    "b >= 'y'": lambda r: r["b"] is not None and r["b"] >= "y",
    "b is null": lambda r: r["b"] is None,
    "not (a = 1)": lambda r: r["a"] is not None and r["a"] != 1,
    "a = 1 and b = 'x'": lambda r: r["a"] == 1 and r["b"] == "x",
    "a in (1, 2) or n = 6": lambda r: r["a"] in (1, 2) or r["n"] == 6,
    "ts >= '2024-01-02 03:00:00'": lambda r: r["ts"] >= dt.datetime(2024, 1, 2, 3),
}


def rows(shift: int) -> pa.Table:
    numbers = range(8)
    moments = [dt.datetime(2024, 1, 1 + i % 3, i % 5 + shift) for i in numbers]
    return pa.table(
        {
            "a": pa.array([None if i % 5 == 4 else i % 4 + shift for i in numbers], pa.int32()),
            "b": [None if i % 7 == 6 else "xyz"[i % 3] for i in numbers],
            "n": pa.array([i % 4 + 4 for i in numbers], pa.int32()),
            "ts": pa.array(moments, pa.timestamp("us")),
        }
    )


def reused(folder: Path, layout: str, *, has_ids: bool = True) -> Table:
    """A table of version 1 with files of both specs."""
    first, second = LAYOUTS[layout]
    table = new_catalog(folder).create_table("db.t", schema=SCHEMA, partition_by=first, format_version=1)
    table.append(rows(0))
    fields = [
        {"source-id": IDS[column], "transform": transform, "field-id": id_, "name": name}
        for column, transform, id_, name in second
    ]

    def change(document: dict[str, Any]) -> dict[str, Any]:
        specs = [*document["partition-specs"], {"spec-id": 1, "fields": fields}]
        if not has_ids:
            del document["last-partition-id"]
            specs = [{**s, "fields": [without_id(field) for field in s["fields"]]} for s in specs]
        return {**document, "partition-specs": specs, "partition-spec": specs[1]["fields"], "default-spec-id": 1}

    put(table, change)
    table = new_catalog(folder).load_table("db.t")
    table.append(rows(1))
    return table


def without_id(field: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in field.items() if key != "field-id"}


def check(table: Table) -> None:
    """Every filter finds what it should, and other programs read the same rows."""
    whole = table.scan().to_arrow()
    anew = new_catalog(path_of(table.location).parents[2]).load_table("db.t")
    for where, holds in FILTERS.items():
        expected = pa.Table.from_pylist([row for row in whole.to_pylist() if holds(row)], whole.schema)
        assert sorted_rows(anew.scan(where).to_arrow()) == sorted_rows(expected), where
    assert check_table(anew) == []
    if table.format_version < 3:
        theirs = StaticTable.from_metadata(table.metadata_location)
        assert sorted_rows(theirs.scan().to_arrow()) == sorted_rows(whole)


@pytest.mark.parametrize(
    ("layout", "has_ids"),
    [*((layout, True) for layout in LAYOUTS), ("two types", False), ("other order", False)],
)
def test_no_row_is_lost_for_a_filter_on_the_column_of_either_spec(tmp_path, layout, has_ids):
    table = reused(tmp_path, layout, has_ids=has_ids)

    check(table)
    assert table.scan().to_arrow().num_rows == 16
    for where in ("b = 'y'", "a = 1"):
        left = table.scan().to_arrow().num_rows - table.scan(where).to_arrow().num_rows
        table.delete(where)
        assert table.scan().to_arrow().num_rows == left
    table.overwrite_partitions(rows(1).slice(0, 3))
    check(table)


@pytest.mark.parametrize(
    ("version", "layout"), [(2, "two types"), (3, "one column"), *((4, layout) for layout in LAYOUTS)]
)
def test_such_a_table_lives_on_in_every_later_version(tmp_path, layout, version):
    table = reused(tmp_path, layout)

    table.upgrade(version)
    table.append(rows(2))
    table.delete("b = 'z' and a = 2")
    table.update({"n": "n + 1"}, where="a = 3")
    check(table)
    table.rewrite_manifests().execute()
    check(table)
    assert [f["field-id"] for s in stored(table)["partition-specs"] for f in s["fields"]].count(1000) == 2
    assert table.scan("a = 0").plan().files_skipped > 0


def test_files_are_skipped_by_the_values_of_either_spec(tmp_path):
    table = reused(tmp_path, "two types")
    files = table.scan().plan().tasks.num_rows

    by_first = table.scan("a = 0").plan()
    by_second = table.scan("b = 'x'").plan()

    assert by_first.tasks.num_rows == 1
    assert by_first.manifests_skipped == 1
    assert by_second.tasks.num_rows < files


def test_the_partition_column_tells_the_values_of_both_specs(tmp_path):
    table = reused(tmp_path, "two types")

    found = table.scan(columns=["a", "b", "_spec_id", "_partition"]).to_arrow().to_pylist()

    assert len(found) == 16
    for row in found:
        expected = {"a": row["a"], "b": None} if row["_spec_id"] == 0 else {"a": None, "b": row["b"]}
        assert row["_partition"] == expected


def test_files_on_disk_have_the_ids_that_the_table_had_before(tmp_path):
    """Other programs find partition values by the id that the spec of a manifest gives them."""
    table = reused(tmp_path, "two types")
    table.append(rows(3))

    document = stored(table)
    assert [[f["field-id"] for f in s["fields"]] for s in document["partition-specs"]] == [[1000], [1000]]
    assert [f["field-id"] for f in document["partition-spec"]] == [1000]
    assert document["last-partition-id"] == 1000
    for path in Path(path_of(table.location), "metadata").glob("*-m*.avro"):
        reader = fastavro.reader(io.BytesIO(path.read_bytes()))
        assert [f["field-id"] for f in json.loads(reader.metadata["partition-spec"])] == [1000]
        assert '"field-id": 1000' in json.dumps(reader.writer_schema)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_value_can_be_added_and_removed_again_though_its_id_is_taken(tmp_path, version):
    table = reused(tmp_path, "two types")
    if version > 1:
        table.upgrade(version)

    with table.update_partitioning() as update:
        update.add("a")
    table.append(rows(2))
    assert [f["field-id"] for f in stored(table)["partition-specs"][-1]["fields"]] == [1000, 1001]
    with table.update_partitioning() as update:
        update.remove("b")
    table.append(rows(3))
    check(table)


def test_a_table_that_takes_the_place_of_one_never_gives_an_id_to_two_fields(tmp_path):
    table = reused(tmp_path, "two types")
    table.upgrade(2)

    table = new_catalog(tmp_path).replace_table("db.t", SCHEMA, partition_by=["a", "b"])
    table.append(rows(2))

    assert [f["field-id"] for f in stored(table)["partition-specs"][-1]["fields"]] == [1000, 1001]
    check(table)


def test_an_append_lands_after_another_program_used_its_partition_id_again(tmp_path):
    """Values that were written before the id meant two things are still those of the spec they were written with."""
    table = new_catalog(tmp_path).create_table("db.t", schema=SCHEMA, partition_by=["a"], format_version=1)
    table.append(rows(0))
    added = write_entries(pointer_of(table).io, rows(1), table.metadata)
    field = {"source-id": IDS["b"], "transform": "identity", "field-id": 1000, "name": "b"}

    put(table, lambda d: {**d, "partition-specs": [*d["partition-specs"], {"spec-id": 1, "fields": [field]}]})
    commit(pointer_of(table), Append(added=added))

    assert table.scan().to_arrow().num_rows == 16
    check(table)

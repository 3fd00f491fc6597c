"""Expressions in table metadata: their ids, what shares them, and specs that name nothing else (statement 54)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from partitioned import TO_LEAVES, bucket, new_table, tuples

from icefloe.model.partition.transform_names import IDENTITY
from icefloe.table.table import Table
from support.metadata_documents import metadata_json
from support.tables import new_catalog


def document(table: Table) -> dict:
    return metadata_json(table.metadata_location)


@pytest.mark.parametrize("version", [2, 4])
def test_54_expression_ids_are_above_all_columns_and_unique_and_never_used_again(tmp_path, version):
    table = new_table(tmp_path, "id bigint, city string, at timestamp_ntz", ["city", "day(at)"], version=version)
    if version < 4:
        table.upgrade(4)
    assert document(table)["last-column-id"] == 4
    with table.update_partitioning() as change:
        change.add("bucket(16, id)")
    with table.update_schema() as change:
        change.add_column("later", "int")
    with table.update_partitioning() as change:
        change.remove("day(at)")
        change.add("hour(at)")
    with table.update_partitioning() as change:
        change.add("truncate(3, city)")
    found = document(table)
    assert [(e["expr-id"], e["expr"]["transform"], e["partition-field-id"]) for e in found["expressions"]] == [
        (4, "day", 1001),
        (5, "bucket[16]", 1002),
        (7, "hour", 1003),
        (8, "truncate[3]", 1004),
    ]
    assert table.schema.field("later").id == 6
    assert found["last-column-id"] == 8
    assert [[field["expr-id"] for field in spec["fields"]] for spec in found["partition-specs"]] == [
        [2, 4],
        [2, 4, 5],
        [2, 5, 7],
        [2, 5, 7, 8],
    ]
    assert all(
        set(field) >= {"source-id", "field-id", "name", "transform"} for field in found["partition-specs"][0]["fields"]
    )


def test_54_fields_that_compute_the_same_value_share_an_expression(tmp_path):
    """Version 1 gives a field that comes back another id; in V4 both read the same statistics."""
    table = new_table(tmp_path, "id bigint", ["bucket(16, id)"], version=1)
    table.append(pa.table({"id": [34]}))
    for step in ("remove", "add"):
        with table.update_partitioning() as change:
            getattr(change, step)("bucket(16, id)")
    table.append(pa.table({"id": [35]}))
    table.upgrade(4)
    table.append(pa.table({"id": [36]}))
    found = document(table)
    assert [(e["expr-id"], e["partition-field-id"]) for e in found["expressions"]] == [(2, 1000)]
    ids = [[field.get("expr-id") for field in spec["fields"]] for spec in found["partition-specs"]]
    assert ids == [[2], [None], [None, 2]]
    table.set_properties(TO_LEAVES)
    table.append(pa.table({"id": [37]}))
    table.rewrite_manifests().execute()
    expected = [(bucket(34),), (None, bucket(35)), (None, bucket(36)), (None, bucket(37))]
    assert sorted(tuples(table), key=repr) == sorted(expected, key=repr)
    assert table.scan("id = 36").plan().files == 1


def test_54_an_expression_that_partitions_nothing_stays_and_is_used_when_it_fits(tmp_path):
    table = new_table(tmp_path, "id bigint, city string", [])
    path = Path(table.metadata_location.removeprefix("file://"))
    virtual = [
        {"expr-id": 30, "expr": {"source-id": 2, "transform": "lower", "name": "lower_city", "note": "x"}},
        {"expr-id": 31, "expr": {"source-ids": [1], "transform": "bucket[8]", "name": "b"}, "more": [1]},
    ]
    path.write_text(json.dumps({**metadata_json(path), "expressions": virtual}))  # last-column-id is still 2
    table = new_catalog(tmp_path).load_table("db.t")
    with table.update_schema() as change:
        change.add_column("later", "int")
    assert table.schema.field("later").id == 32
    table.append(pa.table({"id": [1], "city": ["a"], "later": pa.array([1], pa.int32())}))
    assert document(table)["expressions"] == [
        virtual[0],
        {**virtual[1], "expr": {"source-id": 1, "transform": "bucket[8]", "name": "b"}},
    ]
    with table.update_partitioning() as change:
        change.add("bucket(8, id)")
        change.add("bucket(9, id)", name="nine")
    found = document(table)["expressions"]
    assert [(e["expr-id"], e.get("partition-field-id")) for e in found] == [(30, None), (31, 1000), (33, 1001)]
    assert (found[0]["expr"]["note"], found[1]["more"]) == ("x", [1])


def test_54_a_spec_of_bare_expression_ids_is_read(tmp_path):
    table = new_table(tmp_path, "id bigint, city string", ["city", "bucket(16, id)"])
    table.append(pa.table({"id": [34], "city": ["Oslo"]}))
    path = Path(table.metadata_location.removeprefix("file://"))
    bare = metadata_json(path)
    before = bare["partition-specs"]
    bare["partition-specs"] = [{"spec-id": 0, "fields": [{"expr-id": f["expr-id"]} for f in before[0]["fields"]]}]
    path.write_text(json.dumps(bare))
    again = new_catalog(tmp_path).load_table("db.t")
    assert again.spec == table.spec
    assert [field.transform for field in again.spec.fields] == [IDENTITY, "bucket[16]"]
    again.append(pa.table({"id": [34], "city": ["Rome"]}))
    assert sorted(tuples(again)) == [("Oslo", 3), ("Rome", 3)]
    assert document(again)["partition-specs"] == before


@pytest.mark.broken_tables
def test_54_an_expression_with_the_id_of_a_column_is_refused(tmp_path):
    table = new_table(tmp_path, "id bigint, city string", ["bucket(16, id)"])
    path = Path(table.metadata_location.removeprefix("file://"))
    broken = metadata_json(path)
    broken["expressions"][0]["expr-id"] = 2
    path.write_text(json.dumps(broken))
    with pytest.raises(Exception, match=r"expressions\[0\]\.expr-id: 2 is also the id of a column"):
        new_catalog(tmp_path).load_table("db.t")

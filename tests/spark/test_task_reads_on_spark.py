"""Files that Spark's Parquet reader cannot read: tasks read them, with the rows that this process reads."""

from __future__ import annotations

import datetime as dt
import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import QueryExecutionException

from icefloe.deletes.equality_writer import write_equality_deletes
from icefloe.engines.spark.read import file_index, scan, source
from icefloe.model.arrow.conform import arrow_schema
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from spark.test_equality_deletes_on_spark import commit_deletes, delete_equal, same_on_both, spark_rows
from support.people import COPY, MERGE, check, ids_of, lineage_of, new_table, people, rows_of
from support.tables import append_without, new_catalog, sorted_rows

pytestmark = pytest.mark.spark

EVERY_TYPE = (
    "id int not null, flag boolean, big bigint, x double, y float, price decimal(9, 2), day date, at timestamp,"
    " local timestamp_ntz, text string, bytes binary, items array<int>, tags map<string, string>,"
    " who struct<name: string, ages: array<int>>"
)


def written_as(table: Table, file_format: str) -> Table:
    table.set_properties({"write.format.default": file_format})
    return table


@pytest.mark.parametrize(("version", "mode"), [(4, MERGE), (2, MERGE), (3, COPY)])
def test_rows_of_mixed_formats_are_read_and_changed(spark, tmp_path, version, mode):
    table = new_table(tmp_path, version, mode, partition_by=("city",))
    table.append(people(*range(5)))
    written_as(table, "orc").append(people(*range(5, 10), city="Rome", amount=None))
    written_as(table, "avro").append(people(*range(10, 15), city=None))
    table.delete("id in (1, 6, 11)")
    table.upsert(people(2, 7, amount=4), on=["id", "city"], deletes="equality")
    assert table.delete("id in (3, 8, 13)", spark=spark).rows_deleted == 3
    frame = spark.createDataFrame(
        [(9, "Bern", 7), (12, "Bern", 7), (4, "Bern", 7)], "id bigint, city string, amount int"
    )
    assert table.upsert(frame, on=["id"]).rows_deleted == 3
    assert ids_of(table) == [0, 2, 4, 5, 7, 7, 9, 10, 12, 14]
    assert same_on_both(spark, table) == rows_of(table)
    assert "on Spark: " in table.scan().explain()
    where = "amount = 4 or city is null"
    assert spark_rows(spark, table, where) == sorted_rows(table.scan(where).to_arrow())
    if version > 2:
        ids = table.scan(columns=["id", "city", "_row_id", "_last_updated_sequence_number"])
        assert spark_rows_of(spark, ids) == sorted_rows(ids.to_arrow())
        assert len(lineage_of(table)) == 9
    check(table)


def spark_rows_of(spark, scan) -> list[tuple[object, ...]]:
    return sorted_rows(scan.to_spark(spark).toArrow())


def test_only_the_columns_of_the_scan_are_read_and_columns_keep_their_types(spark, tmp_path):
    table = new_catalog(tmp_path).create_table("db.t", schema=EVERY_TYPE, format_version=2)
    rows = {
        "id": [1, 2],
        "flag": [True, None],
        "big": [2**60, None],
        "x": [1.5, float("-inf")],
        "y": [0.5, None],
        "price": [decimal.Decimal("1.25"), None],
        "day": [dt.date(2020, 2, 29), None],
        "at": [dt.datetime(2020, 2, 29, 1, 2, 3, 4, tzinfo=dt.UTC), None],
        "local": [dt.datetime(1969, 2, 28, 1, 2, 3, 4), None],
        "text": ["Zoë", ""],
        "bytes": [b"\x00\xff", None],
        "items": [[1, None], None],
        "tags": [[("a", "b")], []],
        "who": [{"name": "Ada", "ages": [36]}, None],
    }
    for file_format in ("avro", "orc", "parquet"):
        written_as(table, file_format).append(pa.table(rows, arrow_schema(table.schema)))
    frame = table.scan().to_spark(spark)
    native = spark.createDataFrame([], frame.schema)
    assert frame.schema["id"].nullable is False
    assert [field.dataType for field in frame.schema] == [field.dataType for field in native.schema]
    got = frame.where("id = 1").drop("tags").distinct()
    assert got.count() == 1
    assert same_on_both(spark, table)[0][0] == 1
    nested = table.scan("id = 1 and x > 1", columns=["who.ages", "text", "_pos"])
    assert spark_rows_of(spark, nested) == sorted_rows(nested.to_arrow())


def test_parquet_files_without_ids_are_read_by_the_name_mapping(spark, tmp_path):
    table = new_table(tmp_path, 2, MERGE)
    table.append(people(1, 2))
    path = tmp_path / "foreign.parquet"
    pq.write_table(people(3, 4, 5).select(["amount", "id", "city"]), path, store_schema=False)
    table.add_files(str(path))
    with table.update_schema() as change:
        change.rename_column("amount", "sum")
    assert same_on_both(spark, table) == [(n, "Oslo", 1) for n in range(1, 6)]
    assert table.delete("id in (2, 4) and sum = 1", spark=spark).rows_deleted == 2
    assert same_on_both(spark, table) == [(n, "Oslo", 1) for n in (1, 3, 5)]
    plan = table.scan().to_spark(spark)._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" in plan
    assert "FileScan parquet" in plan


def test_files_that_lack_an_identity_column_are_read_in_any_mix_of_specs(spark, tmp_path):
    table = new_table(tmp_path, 2)
    table.append(people(1, city="Oslo"))
    with table.update_partitioning() as change:
        change.add("city")
    append_without(table, people(2, 3, city="Rome"), "city")
    table.append(people(4, city="Bern"))
    assert [row[:2] for row in same_on_both(spark, table)] == [(1, "Oslo"), (2, "Rome"), (3, "Rome"), (4, "Bern")]
    assert table.delete("city = 'Rome' and id = 2", spark=spark).rows_deleted == 1
    assert ids_of(table) == [1, 3, 4]


def test_equality_deletes_that_a_join_cannot_apply(spark, tmp_path):
    """Delete columns inside structs, dropped ones, and delete files that are not Parquet."""
    schema = "id bigint, name string, who struct<city: string>"
    table = new_catalog(tmp_path).create_table("db.t", schema=schema, format_version=2)
    who = [{"city": "Oslo"}, {"city": None}, None, {"city": "Rome"}, None]
    table.append(pa.table({"id": range(5), "name": ["a", "b", "c", None, "e"], "who": who}, arrow_schema(table.schema)))
    delete_equal(table, {"name": ["a"]})
    assert [row[0] for row in same_on_both(spark, table)] == [1, 2, 3, 4]
    with table.update_schema() as change:
        change.drop_column("name")
    assert [row[0] for row in same_on_both(spark, table)] == [1, 2, 3, 4]
    city = table.schema.by_name["who.city"]
    rows = pa.table({"who": pa.array([{"city": "Oslo"}, {"city": "Rome"}])})
    commit_deletes(table, write_equality_deletes(pointer_of(table).io, rows, (city,), metadata=table.metadata))
    table.append(pa.table({"id": [5], "who": [{"city": "Rome"}]}, arrow_schema(table.schema)))
    assert [row[0] for row in same_on_both(spark, table)] == [1, 2, 4, 5]
    table.set_properties({"write.delete.format.default": "orc"})
    delete_equal(table, {"id": [5]})
    assert [row[0] for row in same_on_both(spark, table)] == [1, 2, 4]
    assert table.delete("id in (1, 3)", spark=spark).rows_deleted == 1
    assert [row[0] for row in same_on_both(spark, table)] == [2, 4]


def test_a_large_table_whose_properties_do_not_show_its_formats_is_an_error(spark, tmp_path, monkeypatch):
    table = new_table(tmp_path, 2)
    written_as(table, "orc").append(people(1, 2))
    written_as(table, "parquet").append(people(3))
    monkeypatch.setattr(scan, "INSPECTED_FILES_MAX", 1)
    with pytest.raises(QueryExecutionException, match=r"\.orc.*to_spark\(spark, inspect_files=True\)"):
        table.scan().to_spark(spark).collect()
    assert sorted(row.id for row in table.scan().to_spark(spark, inspect_files=True).collect()) == [1, 2, 3]


def test_tasks_read_files_whose_bitmaps_would_be_too_large_for_the_driver(spark, tmp_path, monkeypatch):
    table = new_table(tmp_path, 3, MERGE)
    for start in (0, 100, 200):
        table.append(people(*range(start, start + 100)))
    table.append(people(300))
    table.delete("id in (0, 7, 99, 100, 150, 299)")
    monkeypatch.setattr(source, "BITMAP_BYTES_MAX", 30)  # 100 rows take 12 bytes
    frame = table.scan().to_spark(spark)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "MapInArrow" in plan
    assert "FileScan parquet" in plan
    assert sorted(row.id for row in frame.collect()) == [n for n in range(301) if n not in (0, 7, 99, 100, 150, 299)]


def test_long_lists_of_files_are_passed_in_a_file(spark, tmp_path, monkeypatch):
    table = new_table(tmp_path, 3, MERGE)
    for number in range(3):
        table.append(people(number, number + 10))
    table.delete("id = 11")
    monkeypatch.setattr(file_index, "BYTES_MAX", 0)
    frame = table.scan().to_spark(spark)
    assert sorted(row.id for row in frame.where("id > 0").collect()) == [1, 2, 10, 12]
    assert len(frame.inputFiles()) == 3
    assert sorted(row.id for row in frame.where("amount is null").collect()) == []

"""Metadata columns on Spark: the same values as in this process, also in filters."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from e2e import test_filters_on_metadata_columns as on_arrow
from icefloe.errors import InputError, UnsupportedError
from icefloe.table.table import Table
from support.on_spark import ids_of_all, on_spark
from support.tables import new_catalog, rows_of_day, sorted_rows, table_of_two_specs

pytestmark = pytest.mark.spark
COLUMNS = ["id", "_file", "_pos", "_partition", "_spec_id", "_row_id", "_last_updated_sequence_number"]
CONDITIONS = (
    "_file = '{file}'",
    "_file != '{file}' and id < 12",
    "_pos = 2",
    "_pos >= 4 and day = 2",
    "_spec_id = 0",
    "_partition.day = 1",
    "_partition.tens is null",
    "_partition.tens = 20 or id = 4",
    "_row_id in (0, 8)",
    "not (_row_id > 8) and s.b >= '2'",
    "_last_updated_sequence_number = 4",
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return table_of_two_specs(tmp_path)


def test_all_metadata_columns_have_the_values_of_this_process(spark: SparkSession, table: Table) -> None:
    scan = table.scan(columns=COLUMNS)
    theirs = scan.to_spark(spark).toArrow()
    assert theirs.column_names == COLUMNS
    assert sorted_rows(theirs) == sorted_rows(scan.to_arrow())
    part = table.scan(columns=["_partition.tens", "id"])
    assert sorted_rows(part.to_spark(spark).toArrow()) == sorted_rows(part.to_arrow())


def test_filters_of_scans_and_of_frames_select_the_same_rows(spark: SparkSession, table: Table) -> None:
    [file] = table.scan("id = 1", columns=["_file"]).to_arrow()["_file"].to_pylist()
    conditions = [condition.format(file=file) for condition in CONDITIONS]
    expected = [sorted(table.scan(condition).to_arrow()["id"].to_pylist()) for condition in conditions]
    assert ids_of_all([table.scan(condition).to_spark(spark) for condition in conditions]) == expected
    whole = table.scan(columns=[*COLUMNS, "s", "day"]).to_spark(spark)
    assert ids_of_all([whole.where(condition) for condition in conditions]) == expected
    assert table.scan("_row_id = 5").to_spark(spark).columns == ["id", "s", "day"]
    narrow = table.scan("_partition.tens = 20 and (s.a = 20 or _pos = 9)", columns=["_partition.day", "s.b"])
    assert narrow.to_spark(spark).toArrow().to_pylist() == narrow.to_arrow().to_pylist()


def test_files_that_tasks_read_have_metadata_columns_too(spark: SparkSession, tmp_path: Path) -> None:
    made = new_catalog(tmp_path).create_table(
        "db.avro",
        schema="id bigint, s struct<a: int, b: string>, day int",
        partition_by=["day"],
        format_version=3,
        properties={"write.format.default": "avro"},
    )
    made.append(rows_of_day(0, 6, day=1))
    made.append(rows_of_day(10, 16, day=2))
    scan = made.scan("_partition.day = 2 and (_row_id > 8 or id = 10)", columns=["_partition", "_pos", "s.a"])
    assert sorted_rows(scan.to_spark(spark).toArrow()) == sorted_rows(scan.to_arrow())
    assert scan.count() == 4


def test_a_condition_on_the_partition_prunes_files(spark: SparkSession, table: Table) -> None:
    day_two = table.scan("day = 2", columns=["_file"]).to_arrow()["_file"].to_pylist()
    for location in table.scan().plan().tasks["location"].to_pylist():
        if location not in day_two:
            Path(location.removeprefix("file://")).unlink()
    frame = table.scan(columns=["id", "_partition"]).to_spark(spark)
    assert frame.where("_partition.day = 2").count() == 9
    assert table.scan("_partition.day = 2", columns=["id"]).to_spark(spark).count() == 9


def test_rows_are_changed_by_metadata_columns(spark: SparkSession, table: Table) -> None:
    [location] = table.scan("id = 1", columns=["_file"]).to_arrow()["_file"].to_pylist()
    result = table.update({"day": "7"}, where=f"_file = '{location}' and _pos < 3 and abs(id) > 0", spark=spark)
    assert (result.rows_added, result.files_read) == (2, 1)
    # The first row has the id 0. The row 12 has the id 8, though it was rewritten.
    assert table.delete("pmod(_row_id, 8) = 0 and _spec_id + id < 14", spark=spark).rows_deleted == 2
    assert table.delete("_partition.tens = 20 and _pos >= 2", spark=spark).rows_deleted == 1
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 4, 5, 10, 11, 13, 14, 15, 20, 21]
    assert sorted(table.scan("day = 7").to_arrow()["id"].to_pylist()) == [1, 2]
    with pytest.raises(InputError, match="_deleted"):
        table.delete("_deleted", spark=spark)


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_the_same_rows_are_changed_by_metadata_columns_on_both_engines(
    spark: SparkSession, table: Table, mode: str
) -> None:
    on_arrow.test_rows_are_changed_by_metadata_columns(lambda changed: on_spark(changed, spark), table, mode)


def test_partition_values_of_all_types_are_read(spark: SparkSession, tmp_path: Path) -> None:
    values = {
        "b": ("boolean", True), "i": ("int", -5), "l": ("bigint", 1 << 40), "m": ("decimal(9, 2)", Decimal("1.50")),
        "y": ("date", dt.date(1900, 1, 1)), "p": ("timestamp_ntz", dt.datetime(1969, 12, 31, 1, 2, 3, 4)),
        "q": ("timestamp", dt.datetime(1969, 12, 31, tzinfo=dt.UTC)), "s": ("string", "ü"), "u": ("uuid", bytes(16)),
        "z": ("binary", b"\0\xff"), "x": ("fixed(2)", b"\1\2"),
    }  # fmt: skip
    schema = ", ".join(f"{name} {type_}" for name, (type_, _) in values.items())
    made = new_catalog(tmp_path).create_table("db.p", schema=f"id bigint, {schema}", partition_by=list(values))
    row = {"id": 1, **{name: value for name, (_, value) in values.items()}}
    made.append(pa.Table.from_pylist([row, dict.fromkeys(row)], made.scan().to_arrow().schema))
    scan = made.scan(columns=["id", "_partition"])
    theirs = {row["id"]: row["_partition"] for row in scan.to_spark(spark).toArrow().to_pylist()}
    ours = {row["id"]: row["_partition"] for row in scan.to_arrow().to_pylist()}
    ours[1]["u"] = bytes(16) if not isinstance(ours[1]["u"], bytes) else ours[1]["u"]
    assert theirs == ours


def test_a_partition_value_that_spark_cannot_read_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    made = new_catalog(tmp_path).create_table("db.p", schema="id bigint, t time", partition_by=["t"])
    with pytest.raises(UnsupportedError, match=r"'_partition\.t' is a time, which is not read on Spark; leave it out"):
        made.scan(columns=["_partition"]).to_spark(spark)
    with pytest.raises(UnsupportedError, match="'_deleted' is not read on Spark yet; there are: _file, _pos"):
        made.scan(columns=["_deleted"]).to_spark(spark)

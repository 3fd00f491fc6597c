from __future__ import annotations

import datetime as dt
import decimal
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.read.read import dataframe
from icefloe.engines.spark.write.task_files import write_by_tasks, write_folder
from icefloe.engines.spark.write.write import write
from icefloe.errors import InputError
from icefloe.formats.write.write_files import write_files
from icefloe.io.file_io import FileIO
from icefloe.io.local import LocalFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Struct,
)
from spark.fakes import Files, metadata_of

pytestmark = pytest.mark.spark

IO = LocalFileIO()
SIMPLE = Schema(fields=(Field(1, "id", LONG, True), Field(2, "note", STRING)))
MOMENTS = Schema(
    fields=(Field(1, "id", LONG), Field(2, "tz", TIMESTAMPTZ), Field(3, "ntz", TIMESTAMP), Field(4, "d", DATE))
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def read_back(entries: pa.Table, schema: Schema) -> list[dict[str, object]]:
    tables = [pq.ParquetFile(location).read() for location in entries["location"].to_pylist()]
    return [row for table in tables for row in table.cast(pa.schema(arrow_schema(schema))).to_pylist()]


def tuples(entries: pa.Table, *keys: str) -> list[tuple[object, ...]]:
    columns = [entries[f"lower_bound:{key}"].to_pylist() for key in keys]
    return list(zip(*columns, strict=True))


def files_under(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*") if path.is_file())


def test_rows_and_statistics_of_an_unpartitioned_write(spark: SparkSession, table: Path) -> None:
    frame = spark.range(100).select("id", F.concat(F.lit("n"), "id").alias("note")).repartition(3)
    entries = write(frame, metadata=metadata_of(table, SIMPLE), io=IO)
    assert entries.num_rows == 3
    assert sorted(row["id"] for row in read_back(entries, SIMPLE)) == list(range(100))
    assert sum(entries["record_count"].to_pylist()) == 100
    assert min(entries["lower_bound:1"].to_pylist()) == 0
    assert max(entries["upper_bound:1"].to_pylist()) == 99
    assert entries["null_value_count:2"].to_pylist() == [0, 0, 0]
    assert entries["status"].to_pylist() == [1, 1, 1]
    assert entries["sequence_number"].null_count == 3
    assert all(location.startswith(f"{table}/data/") for location in entries["location"].to_pylist())
    assert [os.path.getsize(name) for name in entries["location"].to_pylist()] == entries[
        "file_size_in_bytes"
    ].to_pylist()


def test_only_data_files_are_left_behind(spark: SparkSession, table: Path) -> None:
    entries = write(spark.range(10), metadata=metadata_of(table, SIMPLE), io=IO)
    assert files_under(table) == sorted(entries["location"].to_pylist())


def test_an_empty_frame_writes_nothing(spark: SparkSession, table: Path) -> None:
    entries = write(spark.range(0), metadata=metadata_of(table, SIMPLE), io=IO)
    assert entries.num_rows == 0
    assert files_under(table) == []


def test_files_have_ids_types_and_codec_of_the_format(spark: SparkSession, table: Path) -> None:
    inner = Struct((Field(12, "x", INT, True), Field(13, "y", STRING)))
    schema = Schema(
        fields=(
            Field(1, "b", BOOLEAN), Field(2, "i", INT, True), Field(3, "f", FLOAT), Field(4, "g", DOUBLE),
            Field(5, "d", DATE), Field(6, "ts", TIMESTAMPTZ), Field(7, "ntz", TIMESTAMP), Field(8, "p", Decimal(9, 2)),
            Field(9, "q", Decimal(38, 10)), Field(10, "bin", BINARY), Field(11, "s", inner),
        )
    )  # fmt: skip
    sql = """SELECT true b, 1 i, 1.5f f, 2.5d g, DATE '1969-12-31' d, TIMESTAMP '1900-01-01 00:00:00Z' ts,
        TIMESTAMP_NTZ '2020-01-01 00:00:00.123456' ntz, 1.25BD p, 3.5BD q, X'00FF' bin,
        named_struct('y', 'v', 'x', 7) s"""
    entries = write(spark.sql(sql), metadata=metadata_of(table, schema), io=IO)
    (location,) = entries["location"].to_pylist()
    footer = pq.ParquetFile(location)
    assert [f.type for f in footer.schema_arrow][:10] == [f.type for f in arrow_schema(schema)][:10]
    assert not footer.schema_arrow.field("i").nullable
    assert _ids(footer.schema_arrow) == {name: field.id for name, field in schema.by_name.items()}
    assert footer.metadata.row_group(0).column(0).compression == "ZSTD"
    assert footer.metadata.schema.column(5).physical_type == "INT64"
    assert footer.metadata.schema.column(7).physical_type == "INT32"
    (row,) = footer.read().to_pylist()
    assert row["ts"] == dt.datetime(1900, 1, 1, tzinfo=dt.UTC)
    assert row["s"] == {"x": 7, "y": "v"}
    assert row["q"] == decimal.Decimal("3.5")


def _ids(fields: pa.Schema | pa.StructType, prefix: str = "") -> dict[str, int]:
    found = {}
    for field in fields:
        found[prefix + field.name] = int(field.metadata[b"PARQUET:field_id"])
        if pa.types.is_struct(field.type):
            found |= _ids(field.type, f"{prefix}{field.name}.")
    return found


def test_days_are_utc_in_any_session_time_zone(tokyo: SparkSession, table: Path) -> None:
    moments = ["1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "1969-12-31 00:00:00", "1900-01-01 12:00:00"]
    values = ", ".join(f"({i}, TIMESTAMP '{m}Z', TIMESTAMP_NTZ '{m}', DATE '{m[:10]}')" for i, m in enumerate(moments))
    frame = tokyo.sql(f"SELECT * FROM VALUES {values}, (9, NULL, NULL, NULL) AS t(id, tz, ntz, d)")
    days = [dt.date.fromisoformat(m[:10]) for m in moments]
    for column in ("tz", "ntz", "d"):
        entries = write(frame, metadata=metadata_of(table, MOMENTS, f"day({column})"), io=IO)
        got = {}
        for location, (day,) in zip(entries["location"].to_pylist(), tuples(entries, "p1000"), strict=True):
            got |= dict.fromkeys(pq.ParquetFile(location).read()["id"].to_pylist(), day)
        assert got == {**dict(enumerate(days)), 9: None}
        assert len(set(tuples(entries, "p1000"))) == entries.num_rows == 4


def test_source_columns_stay_in_partitioned_files(spark: SparkSession, table: Path) -> None:
    schema = Schema(fields=(Field(1, "id", LONG), Field(2, "region", STRING)))
    frame = spark.range(30).select("id", F.concat(F.lit("r"), F.col("id") % 3).alias("region"))
    entries = write(frame.repartition(5), metadata=metadata_of(table, schema, "region"), io=IO)
    assert entries.num_rows == 3
    rows = read_back(entries, schema)
    assert sorted((row["id"], row["region"]) for row in rows) == [(i, f"r{i % 3}") for i in range(30)]


def test_text_partitions_come_back_exactly(spark: SparkSession, table: Path) -> None:
    schema = Schema(fields=(Field(1, "s", STRING),))
    values = [
        None,
        "",
        "EU",
        "null",
        "__HIVE_DEFAULT_PARTITION__",
        "a/b=c%20d",
        "~x",
        "é",
        "日本",
        " ",
        "..",
        "x" * 300,
    ]
    values += ["line\nbreak", "quote'\"", "a:b?c*d#e\\", "%", "s\ttab", "{x}[y]^", "NaN"]
    frame = spark.createDataFrame([(v,) for v in values], "s string")
    entries = write(frame, metadata=metadata_of(table, schema, "s"), io=IO)
    got = [value for (value,) in tuples(entries, "p1000")]
    assert sorted(map(repr, got)) == sorted(map(repr, values))
    for location, value in zip(entries["location"].to_pylist(), got, strict=True):
        assert pq.ParquetFile(location).read()["s"].to_pylist() == [value]
    nulls = dict(zip(map(repr, got), entries["null_value_count:p1000"].to_pylist(), strict=True))
    assert nulls[repr(None)] == 1
    assert nulls[repr("")] == 0


def test_partitions_of_other_types_come_back_exactly(tokyo: SparkSession, table: Path) -> None:
    schema = Schema(
        fields=(
            Field(1, "i", INT), Field(2, "b", BOOLEAN), Field(3, "ts", TIMESTAMPTZ), Field(4, "ntz", TIMESTAMP),
            Field(5, "p", Decimal(10, 3)), Field(6, "bin", BINARY), Field(7, "d", DATE), Field(8, "g", DOUBLE),
        )
    )  # fmt: skip
    rows = tokyo.sql("""SELECT * FROM VALUES
        (-5, true, TIMESTAMP '1969-07-20 20:17:40.000001Z', TIMESTAMP_NTZ '0099-01-01 00:00:00.5', -1.250BD,
         X'', DATE '0001-01-01', -0.0D),
        (-5, true, TIMESTAMP '1969-07-20 20:17:40.000001Z', TIMESTAMP_NTZ '0099-01-01 00:00:00.5', -1.250BD,
         X'', DATE '0001-01-01', 0.0D),
        (NULL, NULL, NULL, NULL, NULL, NULL, NULL, double('NaN')) AS t(i, b, ts, ntz, p, bin, d, g)""")
    entries = write(rows, metadata=metadata_of(table, schema, *(f.name for f in schema.fields)), io=IO)
    assert entries["record_count"].to_pylist() in ([1, 2], [2, 1])
    got = dict(
        zip(entries["record_count"].to_pylist(), tuples(entries, *(f"p{1000 + i}" for i in range(8))), strict=True)
    )
    assert got[2] == (
        -5, True, dt.datetime(1969, 7, 20, 20, 17, 40, 1, tzinfo=dt.UTC), dt.datetime(99, 1, 1, 0, 0, 0, 500_000),
        decimal.Decimal("-1.250"), b"", dt.date(1, 1, 1), 0.0,
    )  # fmt: skip
    assert got[1] == (None,) * 8
    nans = dict(zip(entries["record_count"].to_pylist(), entries["nan_value_count:p1007"].to_pylist(), strict=True))
    assert nans == {1: 1, 2: 0}
    assert not any(math.isnan(v) for v in entries["lower_bound:p1007"].to_pylist() if v is not None)


def test_buckets_are_those_of_the_format(spark: SparkSession, table: Path) -> None:
    frame = spark.createDataFrame([(34, "iceberg"), (34, "iceberg"), (None, None)], "id long, note string")
    schema = Schema(fields=(Field(1, "id", LONG), Field(2, "note", STRING)))
    entries = write(frame, metadata=metadata_of(table, schema, "bucket[1000](id)", "bucket[1000](note)"), io=IO)
    # The hashes are the examples of the specification: 2017239379 and 1210000089.
    assert sorted(tuples(entries, "p1000", "p1001"), key=str) == [(379, 89), (None, None)]


def test_files_stay_near_the_number_of_partitions(spark: SparkSession, table: Path) -> None:
    frame = spark.range(1000).repartition(8).select("id", F.lit(None).cast("string").alias("note"))
    entries = write(frame, metadata=metadata_of(table, SIMPLE, "bucket[5](id)"), io=IO)
    assert entries.num_rows == 5
    assert sorted(tuples(entries, "p1000")) == [(i,) for i in range(5)]


def test_lists_and_maps_are_written_with_all_ids(spark: SparkSession, table: Path) -> None:
    tags = List(4, STRING)
    scores = Map(5, STRING, 6, Struct((Field(7, "v", INT),)))
    schema = Schema(fields=(Field(1, "id", LONG, True), Field(2, "tags", tags), Field(3, "scores", scores)))
    frame = spark.sql("SELECT id, array('a', 'b') tags, map('k', named_struct('v', int(id))) scores FROM range(4)")
    entries = write(frame.repartition(2), metadata=metadata_of(table, schema, "id"), io=IO)
    assert sorted(tuples(entries, "p1000")) == [(0,), (1,), (2,), (3,)]
    location = entries["location"].to_pylist()[0]
    assert "field_id=4" in str(pq.ParquetFile(location).schema)
    assert "field_id=6" in str(pq.ParquetFile(location).schema)
    rows = sorted(read_back(entries, schema), key=lambda row: str(row["id"]))
    assert rows[2] == {"id": 2, "tags": ["a", "b"], "scores": [("k", {"v": 2})]}
    assert files_under(table) == sorted(entries["location"].to_pylist())


def test_a_column_with_a_dot_in_its_name_is_written_by_tasks(spark: SparkSession, table: Path) -> None:
    schema = Schema(fields=(Field(1, "a.b", LONG), Field(2, "c`d", List(3, LONG))))
    frame = spark.sql("SELECT id AS `a.b`, array(id) AS `c``d` FROM range(2)")
    entries = write(frame, metadata=metadata_of(table, schema), io=IO)
    assert sorted(row["a.b"] for row in read_back(entries, schema)) == [0, 1]


def test_fixed_bytes_have_the_type_of_the_format(spark: SparkSession, table: Path) -> None:
    schema = Schema(fields=(Field(1, "u", UUID), Field(2, "f", Fixed(2))))
    frame = spark.sql("SELECT X'000102030405060708090A0B0C0D0E0F' u, X'AABB' f")
    entries = write(frame, metadata=metadata_of(table, schema), io=IO)
    stored = pq.ParquetFile(entries["location"].to_pylist()[0]).schema
    assert [stored.column(i).physical_type for i in range(2)] == ["FIXED_LEN_BYTE_ARRAY"] * 2
    files = Files(table)
    files.rows = entries.select(["location", "file_format", "file_size_in_bytes", "record_count"]).to_pylist()
    (row,) = dataframe(spark, files.source(schema)).collect()
    assert tuple(row) == (bytes(range(16)), b"\xaa\xbb")


def test_a_fault_in_a_task_is_an_input_error_and_leaves_no_files(spark: SparkSession, table: Path) -> None:
    schema = Schema(fields=(Field(1, "l", List(2, INT, True)),))
    frame = spark.sql("SELECT IF(id < 9, array(1), array(int(NULL))) l FROM range(10)")
    with pytest.raises(InputError, match=r"l\.element"):
        write(frame, metadata=metadata_of(table, schema), io=IO)
    assert files_under(table) == []


def refused(frame: DataFrame, schema: Schema, table: Path, match: str) -> None:
    with pytest.raises(InputError, match=match):
        write(frame, metadata=metadata_of(table, schema), io=IO)
    assert files_under(table) == []
    assert list(table.glob("data/*")) == []


def test_a_null_in_a_required_column_is_refused_by_name(spark: SparkSession, table: Path) -> None:
    frame = spark.sql("SELECT IF(id = 7, NULL, id) id FROM range(10)")
    refused(frame, SIMPLE, table, r"^column 'id' is required and has a null$")


def test_a_null_in_a_required_field_of_a_struct_is_refused(spark: SparkSession, table: Path) -> None:
    schema = Schema(fields=(Field(1, "s", Struct((Field(2, "x", LONG, True),))),))
    fine = spark.sql("SELECT IF(id = 7, NULL, named_struct('x', id)) s FROM range(10)")
    assert sum(write(fine, metadata=metadata_of(table, schema), io=IO)["record_count"].to_pylist()) == 10
    bad = spark.sql("SELECT named_struct('x', IF(id = 7, NULL, id)) s FROM range(10)")
    with pytest.raises(InputError, match=r"column 's\.x' is required and has a null"):
        write(bad, metadata=metadata_of(table, schema), io=IO)


def test_columns_that_do_not_match_are_refused_by_name(spark: SparkSession, table: Path) -> None:
    refused(spark.sql("SELECT 1L id, 2 extra"), SIMPLE, table, "no column extra; it has: id, note")
    refused(spark.sql("SELECT 'a' note"), SIMPLE, table, "required column id is missing")
    refused(spark.sql("SELECT 1L id, 2L ID"), SIMPLE, table, "two columns are named 'id'")
    refused(
        spark.sql("SELECT '1' id"),
        SIMPLE,
        table,
        r"column 'id' is long \(bigint in Spark\), the DataFrame has string; cast it first, for example with"
        r" CAST\(id AS bigint\)$",
    )
    refused(
        spark.sql("SELECT 1L id, 5 note"),
        SIMPLE,
        table,
        "column 'note' is string, the DataFrame has int; cast it first",
    )


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_that_do_not_fit_are_refused(spark: SparkSession, table: Path, ansi: str) -> None:
    schema = Schema(fields=(Field(1, "i", INT), Field(2, "p", Decimal(5, 1)), Field(3, "f", FLOAT)))
    former = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        refused(spark.sql("SELECT 3000000000 i"), schema, table, "column 'i' is int; the bigint value 3000000000")
        refused(spark.sql("SELECT 1.25BD p"), schema, table, r"column 'p' is decimal\(5, 1\).*1\.25")
        refused(spark.sql("SELECT 0.1D f"), schema, table, r"column 'f' is float.*0\.1 does not fit")
    finally:
        spark.conf.set("spark.sql.ansi.enabled", former)


def test_values_that_fit_are_cast(spark: SparkSession, table: Path) -> None:
    schema = Schema(
        fields=(Field(1, "i", INT), Field(2, "p", Decimal(5, 1)), Field(3, "f", FLOAT), Field(4, "n", STRING))
    )
    frame = spark.sql("SELECT 5L I, 7 p, double('NaN') f, NULL n UNION ALL SELECT NULL, 8, 0.5D, NULL")
    rows = read_back(write(frame, metadata=metadata_of(table, schema), io=IO), schema)
    assert {(row["i"], row["p"], row["n"]) for row in rows} == {
        (5, decimal.Decimal("7.0"), None),
        (None, decimal.Decimal("8.0"), None),
    }


def test_types_are_refused_in_the_words_of_the_format_and_of_spark(spark: SparkSession, table: Path) -> None:
    """Both sides of the message said timestamp."""
    schema = Schema(fields=(Field(1, "tz", TIMESTAMPTZ), Field(2, "ntz", TIMESTAMP), Field(3, "l", List(4, TIMESTAMP))))
    zone = r", which takes the time zone of the session$"
    without = r"column 'tz' is timestamptz \(timestamp in Spark\), the DataFrame has timestamp_ntz; cast it first, for"
    refused(spark.sql("SELECT TIMESTAMP_NTZ '2020-01-01 00:00:00' tz"), schema, table, f"{without}.*{zone}")
    within = r"column 'ntz' is timestamp \(timestamp_ntz in Spark\), the DataFrame has timestamp; cast it first, for"
    refused(spark.sql("SELECT TIMESTAMP '2020-01-01 00:00:00' ntz"), schema, table, f"{within}.*{zone}")
    refused(spark.sql("SELECT DATE '2020-01-01' tz"), schema, table, rf"has date; .* CAST\(tz AS timestamp\){zone}")
    inside = r"column 'l\.element' is timestamp \(timestamp_ntz in Spark\), the DataFrame has timestamp; cast"
    refused(spark.sql("SELECT array(TIMESTAMP '2020-01-01 00:00:00') l"), schema, table, inside)
    refused(
        spark.sql("SELECT 1 l"), schema, table, r"'l' is list<timestamp> .*the DataFrame has int; convert it to array"
    )


def test_writing_leaves_the_session_of_the_user_as_it_was(spark: SparkSession, table: Path) -> None:
    before = {row.key: row.value for row in spark.sql("SET").collect()}
    write(spark.range(5), metadata=metadata_of(table, SIMPLE, "bucket[2](id)"), io=IO)
    assert {row.key: row.value for row in spark.sql("SET").collect()} == before
    active = SparkSession.getActiveSession()
    assert active is not None
    assert active._jsparkSession.equals(spark._jsparkSession)


def test_the_codec_of_the_table_is_used(spark: SparkSession, table: Path) -> None:
    properties = {"write.parquet.compression-codec": "gzip"}
    entries = write(spark.range(5), metadata=metadata_of(table, SIMPLE, properties=properties), io=IO)
    footer = pq.ParquetFile(entries["location"].to_pylist()[0]).metadata
    assert footer.row_group(0).column(0).compression == "GZIP"
    unknown = metadata_of(table, SIMPLE, properties={"write.parquet.compression-codec": "brotli"})
    with pytest.raises(InputError, match="brotli"):
        write(spark.range(5), metadata=unknown, io=IO)


def test_a_table_location_with_special_characters_is_written(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "a b%20c#d{e}"
    for location in (str(table), f"file://{table}"):
        entries = write(spark.range(5), metadata=metadata_of(location, SIMPLE, "id"), io=IO)
        assert entries.num_rows == 5
        assert all(IO.exists(name) and name.startswith(location) for name in entries["location"].to_pylist())


def test_files_of_attempts_whose_entries_were_not_returned_are_removed(spark: SparkSession, table: Path) -> None:
    metadata = metadata_of(table, SIMPLE)
    rows = spark.range(6).selectExpr("id", "string(id) AS note").repartition(2)

    def two_attempts(folder: str, *, fails: bool) -> Callable[[FileIO, Iterator[pa.RecordBatch]], pa.Table]:
        def work(io: FileIO, batches: Iterator[pa.RecordBatch]) -> pa.Table:
            own, place = list(batches), {"schema": SIMPLE, "spec": metadata.spec, "data_location": folder}
            write_files(io, own, properties={}, **place)  # an attempt whose result Spark ignores
            entries = write_files(io, own, properties={}, **place)
            if fails:
                raise InputError("column 'id' is wrong")
            return entries

        return work

    with write_folder(spark, metadata, IO) as folder:
        entries = write_by_tasks(rows, folder, IO, two_attempts(folder, fails=False))
    assert files_under(table) == sorted(entries["location"].to_pylist())
    assert sorted(row["id"] for row in read_back(entries, SIMPLE)) == list(range(6))
    with pytest.raises(InputError, match="'id' is wrong"), write_folder(spark, metadata, IO) as folder:
        write_by_tasks(rows, folder, IO, two_attempts(folder, fails=True))
    assert files_under(table) == sorted(entries["location"].to_pylist())

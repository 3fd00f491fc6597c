from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.engine import SparkEngine
from icefloe.engines.work import TableFiles
from icefloe.errors import InputError
from icefloe.io.local import LocalFileIO
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, LONG, STRING, TIMESTAMPTZ, Field, Struct
from spark.fakes import Files, metadata_of
from support.engine_work import planned_for_engine

pytestmark = pytest.mark.spark

ID = Schema(fields=(Field(1, "id", LONG), Field(2, "note", STRING)))


def three_files(files: Files) -> list[str]:
    return [
        files.add(f"f{i}.parquet", {"id": list(range(10 * i, 10 * i + 10)), "note": ["old"] * 10}, ID) for i in range(3)
    ]


@dataclass(frozen=True)
class Done:
    """What a commit would be made of."""

    deleted: dict[str, BitMap64]
    entries: pa.Table


def run(frame: DataFrame, files: Files, folder: Path, on: tuple[str, ...] = ("id",), schema: Schema = ID) -> Done:
    engine, io, metadata = SparkEngine(frame.sparkSession), LocalFileIO(), metadata_of(folder / "new", schema)
    table = TableFiles(io=io, metadata=metadata)
    with engine.upsert_source(table, frame, on) as source:
        matches = engine.find_keys(planned_for_engine(io, metadata, files.plan(source.filter), files), source)
        return Done(deleted=dict(matches.positions), entries=engine.write(table, matches.rows))


def written(entries: pa.Table) -> list[tuple[object, object]]:
    tables = [pq.ParquetFile(name).read() for name in entries["location"].to_pylist()]
    return sorted(
        ((row["id"], row["note"]) for table in tables for row in table.to_pylist()),
        key=lambda row: (row[0] is None, row),
    )


def test_matched_rows_are_deleted_by_position_and_all_rows_written(
    spark: SparkSession, files: Files, tmp_path: Path
) -> None:
    first, second, third = three_files(files)
    os.remove(third)
    frame = spark.createDataFrame([(3, "a"), (12, "b"), (15, "c"), (-1, "d")], "id long, note string")
    result = run(frame, files, tmp_path)
    assert result.deleted == {first: BitMap64([3]), second: BitMap64([2, 5])}
    assert written(result.entries) == [(-1, "d"), (3, "a"), (12, "b"), (15, "c")]


def test_rows_without_a_match_are_only_added(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    three_files(files)
    result = run(spark.createDataFrame([(100, "b")], "id long, note string"), files, tmp_path)
    assert result.deleted == {}
    assert written(result.entries) == [(100, "b")]


def test_deleted_rows_do_not_match(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    first, *_ = three_files(files)
    files.delete(first, [3])
    result = run(spark.createDataFrame([(3, "a"), (4, "b")], "id long, note string"), files, tmp_path)
    assert result.deleted == {first: BitMap64([4])}


def test_null_keys_match_nothing_and_are_added(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    files.add("nulls.parquet", {"id": [None, 1], "note": ["old", "old"]}, ID)
    frame = spark.createDataFrame([(None, "a"), (None, "b")], "id long, note string")
    result = run(frame, files, tmp_path)
    assert result.deleted == {}
    assert written(result.entries) == [(None, "a"), (None, "b")]


def test_an_empty_frame_changes_nothing(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    three_files(files)
    result = run(spark.createDataFrame([], "id long, note string"), files, tmp_path)
    assert (result.entries.num_rows, result.deleted) == (0, {})
    assert files.returned == [[]]


def test_a_key_that_occurs_twice_is_refused_with_an_example(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    three_files(files)
    frame = spark.createDataFrame([(1, "a"), (7, "b"), (7, "c")], "id long, note string")
    with pytest.raises(InputError, match=r'2 rows have the key \{"id":7\}'):
        run(frame, files, tmp_path)
    assert not (tmp_path / "new").exists()


def test_keys_may_be_several_columns(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    location = files.add("f.parquet", {"id": [1, 1, 2], "note": ["a", "b", "a"]}, ID)
    frame = spark.createDataFrame([(1, "b"), (2, "b")], "id long, note string")
    result = run(frame, files, tmp_path, on=("id", "note"))
    assert result.deleted == {location: BitMap64([1])}


def test_keys_that_are_not_there_are_refused(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    three_files(files)
    frame = spark.createDataFrame([(1, "a")], "id long, note string")
    with pytest.raises(InputError, match="no column 'key'"):
        run(frame, files, tmp_path, on=("key",))
    with pytest.raises(InputError, match="name one or more"):
        run(frame, files, tmp_path, on=())
    with pytest.raises(InputError, match="lacks the key column id"):
        run(frame.select("note"), files, tmp_path)


def test_a_nested_key_is_refused(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    schema = Schema(fields=(Field(1, "s", Struct((Field(2, "x", LONG),))),))
    frame = spark.sql("SELECT named_struct('x', 1L) s")
    with pytest.raises(InputError, match="nested"):
        run(frame, files, tmp_path, on=("s",), schema=schema)


def test_the_frame_is_evaluated_once(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    three_files(files)
    seen = spark.sparkContext.accumulator(0)
    count = F.udf(lambda _: seen.add(1) or "new", "string")
    frame = spark.range(0, 20, 5).select("id", count("id").alias("note"))
    result = run(frame, files, tmp_path)
    assert [len(rows) for rows in result.deleted.values()] == [2, 2]
    assert seen.value == 4
    assert spark.sparkContext._jsc.sc().getPersistentRDDs().size() == 0


def test_moments_as_keys_prune_and_match(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    schema = Schema(fields=(Field(1, "ts", TIMESTAMPTZ), Field(2, "v", DOUBLE)))
    days = [dt.datetime(2024, 11, day, 5, tzinfo=dt.UTC) for day in (1, 2, 3, 4)]
    locations = [files.add(f"{i}.parquet", {"ts": [day], "v": [0.0]}, schema) for i, day in enumerate(days)]
    os.remove(locations[3])
    former = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.sql("SELECT TIMESTAMP '2024-11-03 01:00:00-04:00' ts, 1.0D v")
        result = run(frame, files, tmp_path, on=("ts",), schema=schema)
    finally:
        spark.conf.set("spark.sql.session.timeZone", former)
    assert result.deleted == {locations[2]: BitMap64([0])}
    assert files.returned[-1] == [locations[2]]

"""Tables in an S3 store on Spark: the properties of the catalog alone say how the store is reached."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icefloe
from icefloe.engines.spark.storage import task_storage
from icefloe.engines.spark.write.task_files import close_folder, while_open
from icefloe.engines.spark.write.write import write
from icefloe.errors import IcefloeError, InputError, UnsupportedError
from icefloe.formats.write.write_files import write_files
from icefloe.io.file_io import FileIO
from icefloe.io.local import LocalFileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.io.object_store import ObjectStoreFileIO
from icefloe.io.select import file_io
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, Field
from icefloe.table.catalog import Catalog
from spark.fakes import metadata_of
from spark.s3_changes import Layout, changed_table, check_objects, check_rows, plan_of
from support.people import COPY, MERGE
from support.servers.s3 import S3Server

pytestmark = pytest.mark.spark

ROWS = "SELECT id, array(id, id + 1) AS next FROM range(20)"
SECRET = "not-to-be-shown"


@pytest.fixture(autouse=True)
def no_environment() -> None:
    """Nothing but the catalog's properties must lead to the server."""
    names = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    assert [name for name in names if name in os.environ] == []


@pytest.fixture
def warehouse(s3: S3Server) -> str:
    return f"s3://{s3.new_bucket()}/wh"


@pytest.fixture
def lake(s3: S3Server, warehouse: str, tmp_path: Path) -> Catalog:
    properties = {**s3.properties, "s3.secret-access-key": SECRET}
    return icefloe.catalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=warehouse, properties=properties)


@pytest.mark.parametrize("partition_by", [[], ["bucket(3, id)"]])
def test_tasks_open_the_store_with_the_properties_of_the_catalog(
    spark: SparkSession, lake: Catalog, partition_by: list[str]
) -> None:
    table = lake.create_table("db.t", schema="id bigint, next array<bigint>", partition_by=partition_by)
    table.append(spark.sql(ROWS))
    table.append(spark.sql("SELECT 20L AS id, array(21L) AS next"))
    read = lake.load_table("db.t").scan().to_arrow().sort_by("id")
    assert read["id"].to_pylist() == list(range(21))
    assert read["next"].to_pylist()[19:] == [[19, 20], [21]]


def test_a_schema_without_lists_is_written_to_the_store_as_well(spark: SparkSession, lake: Catalog) -> None:
    table = lake.create_table("db.t", schema="id bigint")
    table.append(spark.range(5))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4]


def test_a_failed_write_to_the_store_reports_its_own_error_and_leaves_no_files(
    spark: SparkSession, lake: Catalog, s3: S3Server, warehouse: str
) -> None:
    table = lake.create_table("db.t", schema="id bigint, next array<bigint NOT NULL>")
    bad = spark.sql("SELECT id, IF(id < 19, array(id), array(bigint(NULL))) AS next FROM range(20)")
    with pytest.raises(InputError, match=r"next\.element"):
        table.append(bad)
    assert [file.location for file in file_io(warehouse, s3.properties).list(f"{warehouse}/db/t/data")] == []


def test_no_plan_shows_the_keys_of_the_store(spark: SparkSession, lake: Catalog) -> None:
    table = lake.create_table("db.t", schema="id bigint, next array<bigint>")
    table.append(spark.sql(ROWS))
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    plans = [executions.apply(number).physicalPlanDescription() for number in range(executions.size())]
    assert any("MapInArrow" in plan for plan in plans)
    assert not any(SECRET in plan for plan in plans)


@pytest.mark.parametrize(
    "layout",
    [
        Layout(version=4, mode=MERGE, partition_by=("city",)),
        Layout(version=2, mode=COPY, partition_by=("bucket(2, id)",)),
        Layout(version=2, mode=MERGE),
        Layout(version=3, mode=MERGE, file_format="orc"),
    ],
    ids=str,
)
def test_a_spark_without_a_file_system_for_the_store_makes_all_changes(
    spark: SparkSession, lake: Catalog, s3: S3Server, layout: Layout
) -> None:
    table = changed_table(spark, lake, "db.t", layout)
    assert SECRET not in plan_of(check_rows(spark, table))
    check_objects(table, s3)


def test_a_spark_without_a_file_system_for_the_store_reads_and_deletes_by_tasks(
    spark: SparkSession, lake: Catalog
) -> None:
    """It was refused, because Spark's own reader needs hadoop-aws."""
    table = lake.create_table("db.t", schema="id bigint", format_version=4)
    table.append(spark.range(3))
    assert table.delete("id = 1", spark=spark).rows_deleted == 1
    frame = table.scan().to_spark(spark)
    assert sorted(row.id for row in frame.collect()) == [0, 2]
    assert "MapInArrow" in plan_of(frame)
    assert "without a file system for s3://" in table.scan().explain()


def test_an_attempt_that_finishes_after_the_write_has_ended_deletes_its_objects(s3: S3Server, warehouse: str) -> None:
    """Spark does not wait for the slower of two attempts of a task: its objects appeared after the others were kept."""
    io, folder, schema = file_io(warehouse, s3.properties), f"{warehouse}/t", Schema(fields=(Field(1, "id", LONG),))
    batch = pa.record_batch({"id": pa.array([1, 2], pa.int64())})

    def writer(io: FileIO, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        return write_files(io, batches, schema=schema, data_location=folder)

    work = while_open(folder, writer)
    io.write_new(f"{folder}/_open", b"")
    kept = set(work(io, iter([batch]))["location"].to_pylist())
    work(io, iter([batch]))  # of an attempt that failed later, before the write ended
    close_folder(io, folder, kept)
    with pytest.raises(IcefloeError, match="had ended"):
        work(io, iter([batch]))
    assert {file.location for file in io.list(folder)} == kept


def test_the_text_of_storage_for_tasks_shows_no_keys() -> None:
    storage = task_storage(ObjectStoreFileIO("s3", {"s3.secret-access-key": SECRET}))
    assert SECRET not in f"{storage} {storage!r} {storage.open()!r}"


def test_storage_that_cannot_be_pickled_is_refused_by_name() -> None:
    class Locked(LocalFileIO):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    with pytest.raises(UnsupportedError, match="Locked cannot be pickled"):
        task_storage(Locked())


def test_files_in_memory_cannot_be_written_by_tasks(spark: SparkSession) -> None:
    """Each task wrote to a memory of its own, and the entries named files that nobody could read."""
    metadata = metadata_of("memory://wh/t", Schema(fields=(Field(1, "id", LONG),)))
    with pytest.raises(UnsupportedError, match="memory"):
        write(spark.range(3), metadata=metadata, io=MemoryFileIO())

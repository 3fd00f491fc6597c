"""Writes a DataFrame to data files of a table and returns their entries for a commit.

Spark's own Parquet writer and commit protocol do this wherever the result is a valid data file; they handle failed
attempts and speculation. Tasks write with Arrow if Spark cannot set all field ids (elements of lists and maps) or lacks
a type (UUID, fixed), and if the storage has no renames. All files of a write are in one folder. They are durable before
their entries are returned, and are deleted if the write fails (spec: Writer requirements).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructType

from icefloe.engines.spark.failures import marking, translated
from icefloe.engines.spark.read.read import hadoop_path
from icefloe.engines.spark.session import WRITE_SETTINGS, child_session, in_session, spark_internals
from icefloe.engines.spark.storage import TaskStorage, task_storage
from icefloe.engines.spark.task_python import arrow_stream, map_in_arrow
from icefloe.engines.spark.write.conform import conformed
from icefloe.engines.spark.write.distribution import Distribution, distributed, distribution_of
from icefloe.engines.spark.write.file_sizes import concurrent_writers, rows_per_file
from icefloe.engines.spark.write.parquet_settings import parquet_settings
from icefloe.engines.spark.write.partition import partition_folders
from icefloe.engines.spark.write.sort import sort_keys, sorted_in_tasks
from icefloe.errors import IcefloeError, InputError
from icefloe.formats.parquet.stats import PARQUET
from icefloe.formats.write.entries import WrittenFile, entries_of
from icefloe.formats.write.metrics import metrics_modes
from icefloe.formats.write.partition_values import PartitionColumn, partition_fields, split
from icefloe.formats.write.sort_rows import ordered_ids, usable
from icefloe.formats.write.split_by_partition import write_files
from icefloe.io.file_io import FileInfo, FileIO
from icefloe.model.entries import concat
from icefloe.model.metadata.properties import FILE_FORMAT, PARQUET_COMPRESSION
from icefloe.model.metadata.snapshots import Snapshots
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import SortOrder
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import UUID, Field, Fixed, List, Map

logger = logging.getLogger(__name__)

_CODECS = {"zstd": "zstd", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4_raw", "uncompressed": "uncompressed"}
_RENAMING_SCHEMES = ("file:", "hdfs:", "viewfs:", "/")
_JOB_OPTIONS = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",  # the usual one leaves a checksum beside each file
    "fs.file.impl.disable.cache": "true",
}
_READERS = 16
_MANY_FILES = 256  # whose footers are read by tasks
_FILES_PER_TASK = 64
_ENTRIES = StructType().add("entries", BinaryType())  # what tasks return


def write(
    frame: DataFrame,
    *,
    metadata: TableMetadata,
    io: FileIO,
    lineage: tuple[Field, ...] = (),
    distribution: Distribution | None = None,
) -> pa.Table:
    """Write all rows to new, durable files of the table's current schema and spec; returns their entries.

    ``lineage`` are the columns of row lineage that the rows have beside those of the table. ``distribution`` replaces
    that of the table.
    """
    spark = frame.sparkSession
    spark_internals(spark)
    order = usable(metadata.sort_order, metadata.schema)
    mode = distribution_of(metadata, order, distribution)
    child = child_session(
        spark, {**WRITE_SETTINGS, **_codec(metadata.properties), **_file_settings(spark, metadata, order)}
    )
    rows = conformed(in_session(frame, child), Schema(fields=(*metadata.schema.fields, *lineage)))
    folder = f"{metadata.data_location}/{uuid.uuid4()}"
    try:
        with translated():
            if _is_native(metadata):
                return _write_natively(rows, folder, metadata, io, mode)
            return _write_in_tasks(rows, folder, metadata, io, lineage, mode)
    except BaseException:
        _remove(spark, io, folder)
        raise


def _codec(properties: Mapping[str, str]) -> dict[str, str]:
    asked = PARQUET_COMPRESSION.of(properties).lower()
    if asked not in _CODECS:
        name, known = PARQUET_COMPRESSION.name, ", ".join(_CODECS)
        raise InputError(f"property {name}: Spark writes {known}, not {asked!r}", property=name)
    return {"spark.sql.parquet.compression.codec": _CODECS[asked]}


def _is_native(metadata: TableMetadata) -> bool:
    """Whether Spark's own writer and committer write valid data files for this table and its storage."""
    if not metadata.data_location.startswith(_RENAMING_SCHEMES) or FILE_FORMAT.of(metadata.properties) != PARQUET:
        return False
    return not any(
        isinstance(field.type, (List, Map, Fixed)) or field.type == UUID for field in metadata.schema.by_id.values()
    )


def _file_settings(spark: SparkSession, metadata: TableMetadata, order: SortOrder) -> dict[str, str]:
    """How many rows a file has, and how many files a task has open.

    Rows in a sort order need one file at a time: Spark sorts those of further partitions again, by partition alone.
    """
    writers = 0 if order.is_sorted else concurrent_writers(spark)
    return {
        "spark.sql.files.maxRecordsPerFile": str(rows_per_file(metadata)),
        "spark.sql.maxConcurrentOutputFileWriters": str(writers),
    }


def _with_folders(rows: DataFrame, metadata: TableMetadata) -> tuple[DataFrame, list[str]]:
    """Rows with the names of their partition folders as columns, and the names of these columns."""
    folders = partition_folders(rows.sparkSession, metadata.schema, metadata.spec)
    if len(folders) == 0:
        return rows, []
    return rows.withColumns({folder.name: folder.text for folder in folders}), [folder.name for folder in folders]


def _write_natively(
    rows: DataFrame, folder: str, metadata: TableMetadata, io: FileIO, mode: Distribution | None
) -> pa.Table:
    grouped, names = _with_folders(rows, metadata)
    order = usable(metadata.sort_order, metadata.schema)
    keys = sort_keys(rows.sparkSession, order, metadata.schema)
    ready = sorted_in_tasks(distributed(grouped, mode, names, keys, metadata), names, keys)
    options = {**_JOB_OPTIONS, **parquet_settings(metadata.schema, metadata.properties)}
    writer = ready.write.mode("errorifexists").options(**options)
    (writer.partitionBy(*names) if len(names) > 0 else writer).parquet(hadoop_path(folder))
    listed = sorted(io.list(folder), key=lambda info: info.location)
    measure = _entries_by_tasks if len(listed) > _MANY_FILES else _entries_of_files
    entries = measure(rows.sparkSession, listed, metadata, io)
    kept = set(entries["location"].to_pylist())
    io.delete([info.location for info in listed if info.location not in kept])  # files without rows
    io.sync(list(kept))
    return entries


def _entries_of_files(
    spark: SparkSession | None, files: Sequence[FileInfo], metadata: TableMetadata, io: FileIO
) -> pa.Table:
    """The entries of new files that have rows, from their footers."""
    columns = partition_fields(metadata.schema, metadata.spec)
    with ThreadPoolExecutor(_READERS) as pool:
        measured = list(pool.map(lambda info: _measured(io, info, columns), files))
    order = usable(metadata.sort_order, metadata.schema)
    return entries_of(
        [file for file in measured if file.footer.num_rows > 0],
        schema=metadata.schema,
        spec=metadata.spec,
        modes=metrics_modes(metadata.schema, metadata.properties, ordered_ids(order)),
        sort_order_id=order.order_id if order.is_sorted else None,
    )


def _entries_by_tasks(spark: SparkSession, files: Sequence[FileInfo], metadata: TableMetadata, io: FileIO) -> pa.Table:
    """The same, read by tasks: the driver only concatenates the entries."""
    storage, table = task_storage(io), _without_history(metadata)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        infos = [FileInfo(**row, modified_ms=0) for batch in batches for row in batch.to_pylist()]
        with marking():
            entries = _entries_of_files(None, infos, table, storage.open())
        if entries.num_rows > 0:
            yield pa.record_batch({"entries": pa.array([arrow_stream(entries)], pa.binary())})

    listed = pa.table({"location": [info.location for info in files], "size": [info.size for info in files]})
    frame = spark.createDataFrame(listed).repartition(-(-len(files) // _FILES_PER_TASK))
    return _collected(map_in_arrow(frame, run, _ENTRIES)).sort_by("location")


def _without_history(metadata: TableMetadata) -> TableMetadata:
    """The table as tasks need it: its schema, partitions, sort order and properties."""
    return replace(metadata, snapshots=Snapshots(), refs={}, current_snapshot_id=None)


def _collected(parts: DataFrame) -> pa.Table:
    """The entries that tasks return, together."""
    return concat([pa.ipc.open_stream(part.as_buffer()).read_all() for part in parts.toArrow()["entries"]])


def _measured(io: FileIO, info: FileInfo, columns: tuple[PartitionColumn, ...]) -> WrittenFile:
    """A file's footer, and its partition tuple from its first row: all its rows have the same."""
    storage, path = io.arrow_path(info.location)
    with storage.open_input_file(path) as source, pq.ParquetFile(source, buffer_size=64 * 1024) as file:
        partition: tuple[object, ...] = ()
        if len(columns) > 0 and file.metadata.num_rows > 0:
            names = sorted({".".join(column.path) for column in columns})
            first = next(file.iter_batches(batch_size=1, columns=names, use_threads=False))
            (group,) = split(first, columns)
            partition = group.partition
        return WrittenFile(location=info.location, size=info.size, footer=file.metadata, partition=partition)


def _write_in_tasks(
    rows: DataFrame,
    folder: str,
    metadata: TableMetadata,
    io: FileIO,
    lineage: tuple[Field, ...],
    mode: Distribution | None,
) -> pa.Table:
    grouped, names = _with_folders(rows, metadata)
    keys = sort_keys(rows.sparkSession, usable(metadata.sort_order, metadata.schema), metadata.schema)
    task = _task(metadata, task_storage(io), folder, lineage)
    entries = _collected(map_in_arrow(distributed(grouped, mode, names, keys, metadata).drop(*names), task, _ENTRIES))
    kept = set(entries["location"].to_pylist())
    io.delete([info.location for info in io.list(folder) if info.location not in kept])  # of failed attempts
    return entries


def _task(
    metadata: TableMetadata, storage: TaskStorage, folder: str, lineage: tuple[Field, ...]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that tasks run: writes their rows to files and returns the entries as an Arrow stream."""
    schema, spec, order, properties = metadata.schema, metadata.spec, metadata.sort_order, dict(metadata.properties)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with marking():
            entries = write_files(
                storage.open(),
                batches,
                schema=schema,
                spec=spec,
                sort_order=order,
                data_location=folder,
                properties=properties,
                lineage=lineage,
            )
        if entries.num_rows > 0:
            yield pa.record_batch({"entries": pa.array([arrow_stream(entries)], pa.binary())})

    return run


def _remove(spark: SparkSession, io: FileIO, folder: str) -> None:
    """Delete the files of a failed write, and their folder if the storage has folders."""
    if folder.startswith(_RENAMING_SCHEMES):
        path: Any = spark._jvm.org.apache.hadoop.fs.Path(hadoop_path(folder))
        path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).delete(path, True)
        return
    try:
        io.delete([info.location for info in io.list(folder)])
    except IcefloeError as error:  # the error to report is that of the write
        logger.warning("left files behind in %s: %s", folder, error)

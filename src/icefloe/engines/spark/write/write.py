"""Writes a DataFrame to data files of a table and returns their entries for a commit.

Spark's own Parquet writer and commit protocol do this wherever the result is a valid data file; they handle failed
attempts and speculation. Tasks write with Arrow if Spark cannot set all field ids (elements of lists and maps) or lacks
a type (UUID, fixed), and if the storage has no renames. All files of a write are in one folder. They are durable before
their entries are returned, and are deleted if the write fails (spec: Writer requirements).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession

from icefloe.engines.spark.session import WRITE_SETTINGS, child_session, in_session, local_frame, spark_internals
from icefloe.engines.spark.storage import hadoop_path
from icefloe.engines.spark.write.conform import conformed
from icefloe.engines.spark.write.distribution import (
    Distribution,
    concurrent_writers,
    distributed,
    distribution_of,
    hash_settings,
    rows_per_file,
)
from icefloe.engines.spark.write.sort import sort_keys, sorted_in_tasks
from icefloe.engines.spark.write.task_files import (
    RENAMING_SCHEMES,
    entries_by_tasks,
    without_history,
    write_by_tasks,
    write_folder,
)
from icefloe.engines.spark.write.transform_columns import partition_folders
from icefloe.errors import InputError, UnsupportedError
from icefloe.formats.parquet.stats import PARQUET
from icefloe.formats.parquet.writer import parquet_options
from icefloe.formats.write.entries import WrittenFile, entries_of
from icefloe.formats.write.layout import layout
from icefloe.formats.write.metrics import metrics_modes
from icefloe.formats.write.partition_values import PartitionColumn, partition_fields, split
from icefloe.formats.write.sort_rows import ordered_ids, usable
from icefloe.formats.write.write_files import write_files
from icefloe.io.file_io import FileInfo, FileIO
from icefloe.model.metadata.properties import (
    FANOUT,
    FILE_FORMAT,
    PARQUET_BLOOM_MAX_BYTES,
    PARQUET_COMPRESSION,
    PARQUET_COMPRESSION_LEVEL,
    PARQUET_DICT_SIZE,
    PARQUET_PAGE_ROWS,
    PARQUET_PAGE_SIZE,
)
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import UUID, Field, Fixed, List, Map
from icefloe.transforms import transform_of

_CODECS = {"zstd": "zstd", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4_raw", "uncompressed": "uncompressed"}
_JOB_OPTIONS = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",  # the usual one leaves a checksum beside each file
    "fs.file.impl.disable.cache": "true",
}
_READERS = 16
MANY_FILES = 256  # whose footers are read by tasks
FILES_PER_TASK = 64
_ZLIB_LEVELS = [
    "NO_COMPRESSION",
    "BEST_SPEED",
    "TWO",
    "THREE",
    "FOUR",
    "FIVE",
    "SIX",
    "SEVEN",
    "EIGHT",
    "BEST_COMPRESSION",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """How rows are distributed over tasks, and the keys by which each task sorts them."""

    mode: Distribution | None
    keys: tuple[Column, ...] = ()


def write(
    frame: DataFrame,
    *,
    metadata: TableMetadata,
    io: FileIO,
    lineage: tuple[Field, ...] = (),
    is_rewrite: bool = False,
    arrangement: Arrangement | None = None,
) -> pa.Table:
    """Write all rows to new, durable files of the table's current schema and spec; returns their entries.

    ``lineage`` are the columns of row lineage that the rows have beside those of the table. With ``is_rewrite`` the
    rows replace rows of the table and are not brought into a total order. Compaction chooses an ``arrangement``.
    """
    _check_partitioning(metadata)
    spark = frame.sparkSession
    spark_internals(spark)
    order = usable(metadata.sort_order, metadata.schema)
    if arrangement is None:
        mode = distribution_of(metadata, order, is_rewrite=is_rewrite)
        arrangement = Arrangement(mode=mode, keys=sort_keys(spark, order, metadata.schema))
    settings = _file_settings(spark, metadata, is_sorted=len(arrangement.keys) > 0)
    if arrangement.mode is Distribution.HASH:
        settings |= hash_settings(spark)
    child = child_session(spark, {**WRITE_SETTINGS, **_codec(metadata.properties), **settings})
    rows = conformed(in_session(frame, child), Schema(fields=(*metadata.schema.fields, *lineage)))
    with write_folder(spark, metadata, io) as folder:
        if _is_native(metadata):
            return _write_natively(rows, folder, metadata, io, arrangement)
        return _write_in_tasks(rows, folder, metadata, io, lineage, arrangement)


def _check_partitioning(metadata: TableMetadata) -> None:
    """UnsupportedError for partitions that Spark's writer does not compute."""
    for field in metadata.spec.fields:
        if transform_of(field).takes_several_columns:
            raise UnsupportedError(
                f"table {metadata.location}: Spark does not write partition field {field.name!r}, a bucket of several"
                " columns; write the rows with Arrow: table.append(frame.toArrow())",
                field=field.name,
            )


def _codec(properties: Mapping[str, str]) -> dict[str, str]:
    asked = PARQUET_COMPRESSION.of(properties).lower()
    if asked not in _CODECS:
        name, known = PARQUET_COMPRESSION.name, ", ".join(_CODECS)
        raise InputError(f"property {name}: Spark writes {known}, not {asked!r}", property=name)
    return {"spark.sql.parquet.compression.codec": _CODECS[asked]}


def _is_native(metadata: TableMetadata) -> bool:
    """Whether Spark's own writer and committer write valid data files for this table and its storage."""
    if not metadata.data_location.startswith(RENAMING_SCHEMES) or FILE_FORMAT.of(metadata.properties) != PARQUET:
        return False
    return not any(
        isinstance(field.type, (List, Map, Fixed)) or field.type == UUID for field in metadata.schema.by_id.values()
    )


def _file_settings(spark: SparkSession, metadata: TableMetadata, *, is_sorted: bool) -> dict[str, str]:
    """How many rows a file has, and how many files a task has open.

    Rows in a sort order need one file at a time: Spark sorts those of further partitions again, by partition alone.
    """
    writers = 0 if is_sorted else concurrent_writers(spark, FANOUT.of(metadata.properties))
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
    rows: DataFrame, folder: str, metadata: TableMetadata, io: FileIO, arrangement: Arrangement
) -> pa.Table:
    grouped, names = _with_folders(rows, metadata)
    keys = arrangement.keys
    ready = sorted_in_tasks(distributed(grouped, arrangement.mode, names, keys, metadata), names, keys)
    options = {**_JOB_OPTIONS, **parquet_settings(metadata.schema, metadata.properties)}
    writer = ready.write.mode("errorifexists").options(**options)
    (writer.partitionBy(*names) if len(names) > 0 else writer).parquet(hadoop_path(folder))
    listed = sorted(io.list(folder), key=lambda info: info.location)
    if len(listed) > MANY_FILES:
        entries = _entries_of_many_files(rows.sparkSession, listed, metadata, io)
    else:
        entries = _entries_of_files(listed, metadata, io)
    kept = set(entries["location"].to_pylist())
    io.delete([info.location for info in listed if info.location not in kept])  # files without rows
    io.sync(list(kept))
    return entries


def _entries_of_files(files: Sequence[FileInfo], metadata: TableMetadata, io: FileIO) -> pa.Table:
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


def _entries_of_many_files(
    spark: SparkSession, files: Sequence[FileInfo], metadata: TableMetadata, io: FileIO
) -> pa.Table:
    """The same, read by tasks: the driver only concatenates the entries."""
    table = without_history(metadata)

    def measure(io: FileIO, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        infos = [FileInfo(**row, modified_ms=0) for batch in batches for row in batch.to_pylist()]
        return _entries_of_files(infos, table, io)

    listed = pa.table({"location": [info.location for info in files], "size": [info.size for info in files]})
    frame = local_frame(spark, listed).repartition(-(-len(files) // FILES_PER_TASK))
    return entries_by_tasks(frame, io, measure).sort_by("location")


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
    arrangement: Arrangement,
) -> pa.Table:
    grouped, names = _with_folders(rows, metadata)
    ready = distributed(grouped, arrangement.mode, names, arrangement.keys, metadata)
    if not usable(metadata.sort_order, metadata.schema).is_sorted:  # else the tasks sort the rows that they write
        ready = sorted_in_tasks(ready, names, arrangement.keys)
    work = partial(
        write_files,
        schema=metadata.schema,
        spec=metadata.spec,
        sort_order=metadata.sort_order,
        data_location=folder,
        properties=dict(metadata.properties),
        lineage=lineage,
    )
    return write_by_tasks(ready.drop(*names), folder, io, work)


def parquet_settings(schema: Schema, properties: Mapping[str, str]) -> dict[str, str]:
    """The options of a write. The values of properties are checked as they are for files that Arrow writes."""
    options = parquet_options(layout(schema, properties))
    settings = {
        "parquet.block.size": str(options.row_group_bytes),
        "parquet.page.size": str(PARQUET_PAGE_SIZE.of(properties)),
        "parquet.page.row.count.limit": str(PARQUET_PAGE_ROWS.of(properties)),
        "parquet.dictionary.page.size": str(PARQUET_DICT_SIZE.of(properties)),
        "parquet.page.write-checksum.enabled": "true",
        **_level(properties),
    }
    for path, rate in options.blooms.items():
        settings[f"parquet.bloom.filter.enabled#{path}"] = "true"
        settings[f"parquet.bloom.filter.fpp#{path}"] = str(rate)
    if len(options.blooms) > 0:
        settings["parquet.bloom.filter.max.bytes"] = str(PARQUET_BLOOM_MAX_BYTES.of(properties))
        settings["parquet.bloom.filter.adaptive.enabled"] = "true"  # as large as the values of a row group need
    return settings


def _level(properties: Mapping[str, str]) -> dict[str, str]:
    codec, level = PARQUET_COMPRESSION.of(properties), PARQUET_COMPRESSION_LEVEL.of(properties)
    if level == "" or codec not in ("zstd", "gzip"):
        return {}
    if codec == "zstd":
        return {"parquet.compression.codec.zstd.level": level}
    return {"zlib.compress.level": _ZLIB_LEVELS[int(level)]}

"""Files that tasks write into one folder: tasks return their entries, and files of other attempts are deleted.

Spark runs a task again if an attempt fails, and with speculation it runs two attempts at once. The driver gets the
entries of one attempt of each task. All files of a write are in one folder, so the files of the other attempts are
those of which no entry was returned. Spark does not wait for the Python process of an attempt that it gives up, so this
may write files after the driver has looked for them. A marker file therefore exists in the folder as long as the write:
an attempt that does not find it after writing its files deletes them.

Java omits the offsets of texts, lists and maps inside a column that has no values of them. The Arrow format allows it,
but ``nbytes`` of such a column reads these offsets: it returns any number, or the process crashes. ``with_offsets``
adds them.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StructType

from icefloe.engines.spark.failures import marking, translated
from icefloe.engines.spark.storage import hadoop_path, task_storage
from icefloe.engines.spark.task_python import arrow_stream, map_in_arrow
from icefloe.errors import IcefloeError
from icefloe.io.file_io import FileIO
from icefloe.model.entries import concat
from icefloe.model.metadata.snapshots import Snapshots
from icefloe.model.metadata.table_metadata import TableMetadata

logger = logging.getLogger(__name__)

TaskWork = Callable[[FileIO, Iterator[pa.RecordBatch]], pa.Table]  # the rows of a task to entries

RENAMING_SCHEMES = ("file:", "hdfs:", "viewfs:", "/")  # of storage with folders, whose files can be renamed
_ENTRIES = StructType().add("entries", BinaryType())  # what tasks return


@contextmanager
def write_folder(spark: SparkSession, metadata: TableMetadata, io: FileIO) -> Iterator[str]:
    """A new folder for the data files of one write, which is deleted if the write fails.

    An icefloe error that tasks or expressions carry through Spark is raised as itself.
    """
    folder = f"{metadata.data_location}/{uuid.uuid4()}"
    try:
        with translated():
            yield folder
    except BaseException:
        _remove(spark, io, folder)
        raise


def write_by_tasks(rows: DataFrame, folder: str, io: FileIO, work: TaskWork) -> pa.Table:
    """The entries of the files that ``work`` writes into the folder; files of other attempts are deleted."""
    io.write_new(_marker(folder), b"")
    entries = entries_by_tasks(rows, io, while_open(folder, work))
    close_folder(io, folder, set(entries["location"].to_pylist()))
    return entries


def while_open(folder: str, work: TaskWork) -> TaskWork:
    """The same work, which deletes its files and fails if the write to the folder has ended meanwhile."""

    def checked(io: FileIO, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        entries = work(io, batches)
        if entries.num_rows > 0 and not io.exists(_marker(folder)):
            io.delete(entries["location"].to_pylist())
            raise IcefloeError(f"the write to {folder} had ended before this attempt of a task")
        return entries

    return checked


def close_folder(io: FileIO, folder: str, kept: set[str]) -> None:
    """End a write: files other than those kept are deleted, and attempts delete those that they write later."""
    io.delete([_marker(folder)])  # first, so that any other file is either listed here or deleted by its attempt
    io.delete([info.location for info in io.list(folder) if info.location not in kept])


def _marker(folder: str) -> str:
    return f"{folder}/_open"


def entries_by_tasks(rows: DataFrame, io: FileIO, work: TaskWork) -> pa.Table:
    """The entries that ``work`` returns in every task, together."""
    storage = task_storage(io)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with marking():
            entries = work(storage.open(), with_offsets(batches))
        if entries.num_rows > 0:
            yield pa.record_batch({"entries": pa.array([arrow_stream(entries)], pa.binary())})

    parts = map_in_arrow(rows, run, _ENTRIES).toArrow()["entries"]
    return concat([pa.ipc.open_stream(part.as_buffer()).read_all() for part in parts])


def without_history(metadata: TableMetadata) -> TableMetadata:
    """The table as tasks need it: its schema, partitions, sort order and properties."""
    return replace(metadata, current_snapshot_id=None, snapshots=Snapshots(), snapshot_log=(), metadata_log=(), refs={})


def _remove(spark: SparkSession, io: FileIO, folder: str) -> None:
    """Delete the files of a failed write, and their folder if the storage has folders."""
    try:
        close_folder(io, folder, set())
    except IcefloeError as error:  # the error to report is that of the write
        logger.warning("left files behind in %s: %s", folder, error)
    if folder.startswith(RENAMING_SCHEMES):
        path: Any = spark._jvm.org.apache.hadoop.fs.Path(hadoop_path(folder))
        path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).delete(path, True)


def with_offsets(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches; columns whose lists or maps have no values are copied, which writes their offsets."""
    for batch in batches:
        if any(_lacks_values(column) for column in batch.columns):
            rows = pa.array(np.arange(batch.num_rows))
            columns = [column.take(rows) if _lacks_values(column) else column for column in batch.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)
        else:
            yield batch


def _lacks_values(array: pa.Array) -> bool:
    """Whether an array has lists or maps without any value, at any depth."""
    match array:
        case pa.StructArray():
            parts = [array.field(place) for place in range(array.type.num_fields)]
            return any(_lacks_values(part) for part in parts)
        case pa.MapArray():
            parts = [array.keys, array.items]
        case pa.ListArray() | pa.LargeListArray():
            parts = [array.values]
        case _:
            return False
    return any(len(part) == 0 or _lacks_values(part) for part in parts)

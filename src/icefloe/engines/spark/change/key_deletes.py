"""Equality deletes of an upsert on Spark: tasks write the keys of the source (spec: Equality Delete Files).

All files of one write are in one folder, so that those of failed and repeated tasks can be found and deleted.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, StructType

from icefloe.deletes.equality_writer import write_equality_deletes
from icefloe.engines.engine import UpsertSource
from icefloe.engines.spark.failures import marking, translated
from icefloe.engines.spark.storage import TaskStorage, task_storage
from icefloe.engines.spark.task_python import arrow_stream, map_in_arrow
from icefloe.engines.spark.write.conform import quoted
from icefloe.engines.work import TableFiles
from icefloe.model.entries import concat, empty
from icefloe.model.metadata.properties import DATA_PATH
from icefloe.model.metadata.snapshots import Snapshots
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.types import Field

_ENTRIES = StructType().add("entries", BinaryType())  # what tasks return


def write_key_deletes(table: TableFiles, source: UpsertSource) -> pa.Table:
    """Write the keys of the source without nulls to equality delete files; returns their entries."""
    metadata, columns = table.metadata, table.metadata.schema.select(source.on).fields
    names = [F.col(quoted(name)) for name in source.on]
    keys = source.rows.where(reduce(and_, [name.isNotNull() for name in names])).select(*names)
    folder = f"{metadata.data_location}/{uuid.uuid4()}"
    task = _task(_for_tasks(metadata, folder), columns, task_storage(table.io))
    try:
        with translated():
            parts = map_in_arrow(keys.hint("rebalance"), task, _ENTRIES).toArrow()["entries"]
        entries = [pa.ipc.open_stream(part.as_buffer()).read_all() for part in parts]
        kept = {location for part in entries for location in part["location"].to_pylist()}
    except BaseException:
        table.io.delete([info.location for info in table.io.list(folder)])
        raise
    table.io.delete([info.location for info in table.io.list(folder) if info.location not in kept])
    return concat(entries) if len(entries) > 0 else empty()


def _for_tasks(metadata: TableMetadata, folder: str) -> TableMetadata:
    """The table without its history, with ``folder`` for new files."""
    return replace(
        metadata,
        properties={**metadata.properties, DATA_PATH.name: folder},
        current_snapshot_id=None,
        snapshots=Snapshots(),
        snapshot_log=(),
        metadata_log=(),
        refs={},
    )


def _task(
    metadata: TableMetadata, columns: tuple[Field, ...], storage: TaskStorage
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that tasks run: writes their keys to files and returns the entries as an Arrow stream."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keys = list(batches)
        if sum(batch.num_rows for batch in keys) == 0:
            return
        with marking():
            rows = pa.Table.from_batches(keys)
            entries = write_equality_deletes(storage.open(), rows, columns, metadata=metadata)
        yield pa.record_batch({"entries": pa.array([arrow_stream(entries)], pa.binary())})

    return run

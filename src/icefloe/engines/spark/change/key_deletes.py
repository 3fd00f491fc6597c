"""Equality deletes of an upsert on Spark: tasks write the keys of the source (spec: Equality Delete Files)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from icefloe.deletes.equality_writer import write_equality_deletes
from icefloe.engines.engine import UpsertSource
from icefloe.engines.spark.write.conform import quoted
from icefloe.engines.spark.write.task_files import TaskWork, without_history, write_by_tasks, write_folder
from icefloe.engines.work import TableFiles
from icefloe.io.file_io import FileIO
from icefloe.model.entries import empty
from icefloe.model.metadata.properties import DATA_PATH
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.types import Field


def write_key_deletes(table: TableFiles, source: UpsertSource) -> pa.Table:
    """Write the keys of the source without nulls to equality delete files; returns their entries."""
    metadata, columns = table.metadata, table.metadata.schema.select(source.on).fields
    names = [F.col(quoted(name)) for name in source.on]
    keys = source.rows.where(reduce(and_, [name.isNotNull() for name in names])).select(*names)
    with write_folder(keys.sparkSession, metadata, table.io) as folder:
        properties = {**metadata.properties, DATA_PATH.name: folder}
        work = _key_writer(replace(without_history(metadata), properties=properties), columns)
        return write_by_tasks(keys.hint("rebalance"), folder, table.io, work)


def _key_writer(metadata: TableMetadata, columns: tuple[Field, ...]) -> TaskWork:
    """The function that writes the keys of a task to files at the data location of ``metadata``."""

    def write(io: FileIO, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        keys = [batch for batch in batches if batch.num_rows > 0]
        if len(keys) == 0:
            return empty()
        return write_equality_deletes(io, pa.Table.from_batches(keys), columns, metadata=metadata)

    return write

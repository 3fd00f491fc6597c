"""Whole rows read to be written again, with what is final of their lineage (spec: Reserved Field IDs).

A row that only moves to another file keeps its id and the sequence number of its last change. Inside of a commit that
is under way both may still change, so those that it gave itself are left out and given anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.engines.arrow.read.parallel_streams import in_order
from icefloe.engines.arrow.read.read import FileTask, file_tasks, read_task, reading_threads
from icefloe.engines.engine import Horizon
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.formats.read.row_mask import FileDrops
from icefloe.formats.write.split_by_partition import write_files
from icefloe.io.file_io import FileIO
from icefloe.model.arrow.conform import conform
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.metadata_columns import LAST_UPDATED, ROW_ID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.scan.tasks import Plan


def choose_files(plan: Plan, locations: Iterable[str]) -> Plan:
    """The plan for these of its files."""
    wanted = pa.array(list(locations), pa.string())
    return plan.with_tasks(plan.tasks.filter(pc.is_in(plan.tasks["location"], value_set=wanted)))


def moved(plan: Plan, rows: Callable[[FileTask], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """What ``rows`` makes of every file of a plan, several at the same time, in the order of the plan."""
    parts = (part for task in file_tasks(plan) for part in task.parts())
    return in_order((partial(rows, part) for part in parts), threads=reading_threads())


def moving_rows(
    io: FileIO,
    task: FileTask,
    lost: FileDrops,
    schema: Schema,
    *,
    row_positions: bool = False,
    horizon: Horizon | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a file that it has not lost, whole; ``schema`` has the columns to return, those of lineage too."""
    batches = read_task(io, task, schema=schema, filter=ALWAYS_TRUE, drops=lost, row_positions=row_positions)
    return batches if horizon is None else (_final(batch, horizon) for batch in batches)


def _final(rows: pa.RecordBatch, horizon: Horizon) -> pa.RecordBatch:
    """The rows without the ids and sequence numbers that are not final."""
    for field, last in ((ROW_ID, horizon.next_row_id - 1), (LAST_UPDATED, horizon.last_sequence_number)):
        index = rows.schema.get_field_index(field.name)
        if index >= 0:
            column = rows.column(index)
            kept = pc.if_else(pc.less_equal(column, last), column, pa.scalar(None, column.type))
            rows = rows.set_column(index, rows.schema.field(index), kept)
    return rows


def write_moved(
    io: FileIO, rows: Iterable[pa.RecordBatch], metadata: TableMetadata, lineage: tuple[Field, ...]
) -> pa.Table:
    """Write rows to new data files of the table; their entries. They have the columns of lineage behind the table's."""
    schema = Schema(fields=(*metadata.schema.fields, *lineage))
    return write_files(
        io,
        _writable(rows, schema),
        schema=metadata.schema,
        spec=metadata.spec,
        sort_order=metadata.sort_order,
        data_location=metadata.data_location,
        properties=metadata.properties,
        lineage=lineage,
    )


def _writable(batches: Iterable[pa.RecordBatch], schema: Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        # Also where the schema is right: below a null struct, a writer accepts only what conform makes of it.
        yield from conform(pa.Table.from_batches([batch]), schema).to_batches()

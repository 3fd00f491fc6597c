"""The answer of planning: which files to read, as Arrow columns (spec: Scan Planning)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from icefloe.expr.nodes import Expr
from icefloe.model.partitioning import PartitionSpec
from icefloe.model.schema import Schema

TASK = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("file_format", pa.string()),
        pa.field("file_size_in_bytes", pa.int64()),
        pa.field("record_count", pa.int64()),
        pa.field("partition_spec_id", pa.int32()),
        pa.field("sequence_number", pa.int64()),
        pa.field("first_row_id", pa.int64()),
        pa.field("match", pa.int8()),  # expr.stats_eval: SOME rows may match the filter, or ALL do
        pa.field("dv_location", pa.string()),  # the Puffin file of the deletion vector, if the file has one
        pa.field("dv_offset", pa.int64()),
        pa.field("dv_size_in_bytes", pa.int64()),
        pa.field("dv_cardinality", pa.int64()),
        pa.field("manifest", pa.string()),  # the leaf that lists the file; null when the root does
        pa.field("ordinal", pa.int64()),  # and the row in it
        pa.field("dv_manifest", pa.string()),  # the same of the deletion vector
        pa.field("dv_ordinal", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Files that may hold rows of a scan, one task per file: what ``table.scan(...).plan()`` answers.

    ``tasks`` has the columns of ``TASK`` and, behind them, the statistics columns of the entries that were kept.
    """

    tasks: pa.Table
    schema: Schema  # the columns to return, with their current names
    table_schema: Schema  # all columns, for filters on columns that are not returned
    filter: Expr  # bound to table_schema
    specs: tuple[PartitionSpec, ...] = ()  # what the partition values of tasks mean
    files_skipped: int = 0
    manifests_read: int = 0
    manifests_skipped: int = 0

    @property
    def files(self) -> int:
        """How many files are to be read."""
        return int(self.tasks.num_rows)

    def with_tasks(self, tasks: pa.Table) -> Plan:
        """The same plan for other files."""
        return replace(self, tasks=tasks)

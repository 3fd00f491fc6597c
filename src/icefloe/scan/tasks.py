"""The result of planning: the files to read, as Arrow columns (spec: Scan Planning)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from icefloe.codecs.json.name_mapping import decode_mapping
from icefloe.deletes.delete_index import DELETE_NUMBERS
from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.expr.filter.nodes import Bound, Expr
from icefloe.formats.read.row_counts import with_row_counts
from icefloe.io.file_io import FileIO
from icefloe.model.entries import empty
from icefloe.model.metadata.error_context import NOWHERE, Origin
from icefloe.model.metadata.properties import SPLIT_LOOKBACK, SPLIT_OPEN_FILE_COST, SPLIT_TARGET_SIZE
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY, NameMapping, assumed_mapping
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.scan.splits import split_tasks

TASK = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("file_format", pa.string()),
        pa.field("file_size_in_bytes", pa.int64()),
        pa.field("record_count", pa.int64()),  # null where it is unknown (see Plan.counted)
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
        pa.field("split_offsets", pa.list_(pa.int64())),
        DELETE_NUMBERS,  # delete files that apply, as rows of Plan.deletes in the order to apply them
        pa.field("residual", pa.int32()),  # the remaining filter of its rows, as an index of Plan.residuals
    ]
)
MANIFEST = pa.field("manifest", pa.string())


def _no_deletes() -> pa.Table:
    return empty().append_column(MANIFEST, pa.nulls(0, pa.string()))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataFilter:
    """A condition on metadata columns that readers evaluate on rows, and the columns that it tests."""

    filter: Bound
    columns: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The files that may contain rows of a scan, one task per file; the result of ``table.scan(...).plan()``.

    ``tasks`` has the columns of ``TASK``, followed by the partition values of the files, or with ``statistics=True`` by
    all their statistics.
    """

    tasks: pa.Table
    schema: Schema  # the columns to return, with their current names
    table_schema: Schema  # all columns, for filters on columns that are not returned
    filter: Expr  # bound to table_schema
    metadata_filter: MetadataFilter | None = None  # a condition that rows must satisfy besides ``filter``
    residuals: tuple[Bound, ...] = ()  # what remains of the filter in each partition; tasks refer to them
    deletes: pa.Table = field(default_factory=_no_deletes)  # position and equality delete files that apply to any task
    specs: tuple[PartitionSpec, ...] = ()  # what the partition values of tasks mean
    properties: Mapping[str, str] = field(default_factory=dict)  # of the table
    fields: Mapping[int, Field] = field(default_factory=dict)  # all fields, past ones included, as last defined
    origin: Origin = NOWHERE  # what is read, for errors
    files_skipped: int = 0
    manifests_read: int = 0
    manifests_skipped: int = 0
    trace: pa.Table | None = None  # why each manifest and file was kept or skipped, if requested

    @property
    def files(self) -> int:
        """How many files are to be read."""
        return int(self.tasks.num_rows)

    @property
    def mapping(self) -> NameMapping | None:
        """The name mapping of the table, for files without field ids; none if the table has none."""
        text = self.properties.get(NAME_MAPPING_PROPERTY)
        with self.origin.named():
            return None if text is None else decode_mapping(text)

    @property
    def file_mapping(self) -> NameMapping:
        """What data files without ids are read by: the table's mapping, or as Apache Iceberg reads them without one."""
        stated = self.mapping
        return assumed_mapping(self.table_schema) if stated is None else stated

    def with_tasks(self, tasks: pa.Table) -> Plan:
        """The same plan for other files."""
        return replace(self, tasks=tasks)

    def counted(self, io: FileIO) -> Plan:
        """The same plan with the number of rows of every file; files whose entries do not say it are opened."""
        with self.origin.named():
            return self.with_tasks(with_row_counts(io, self.tasks))

    def deleted_rows(self, io: FileIO) -> DeletedRows:
        """The deleted rows of the files; deletes are read on first use."""
        return DeletedRows(io, self.tasks, self.deletes, fields=self.fields, mapping=self.mapping, origin=self.origin)

    def splits(
        self, *, target_size: int | None = None, lookback: int | None = None, open_file_cost: int | None = None
    ) -> pa.Table:
        """Ranges of files in groups of about the same size, for parallel readers.

        The columns are ``task`` (the row of ``tasks``), ``start`` and ``length`` in bytes, and ``group``. Defaults are
        the table's properties ``read.split.*``.
        """
        return split_tasks(
            self.tasks,
            self.deletes,
            target_size=SPLIT_TARGET_SIZE.of(self.properties) if target_size is None else target_size,
            lookback=SPLIT_LOOKBACK.of(self.properties) if lookback is None else lookback,
            open_file_cost=SPLIT_OPEN_FILE_COST.of(self.properties) if open_file_cost is None else open_file_cost,
        )

"""The answer of planning: which files to read, as Arrow columns (spec: Scan Planning)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from icefloe.codecs.json.name_mapping import decode_mapping
from icefloe.deletes.delete_index import LISTED
from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.expr.filter.nodes import Bound, Expr
from icefloe.formats.read.row_counts import with_row_counts
from icefloe.io.file_io import FileIO
from icefloe.model.entries import empty
from icefloe.model.metadata.error_context import NOWHERE, Origin
from icefloe.model.metadata.properties import SPLIT_LOOKBACK, SPLIT_OPEN_FILE_COST, SPLIT_TARGET_SIZE
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY, NameMapping
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
        LISTED,  # delete files that apply, as rows of Plan.deletes in the order to apply them
        pa.field("residual", pa.int32()),  # what rows must still be tested for, as an index of Plan.residuals
    ]
)
MANIFEST = pa.field("manifest", pa.string())


def _no_deletes() -> pa.Table:
    return empty().append_column(MANIFEST, pa.nulls(0, pa.string()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Files that may hold rows of a scan, one task per file: what ``table.scan(...).plan()`` answers.

    ``tasks`` has the columns of ``TASK`` and, behind them, the partition values of the entries that were kept; with
    ``statistics=True`` all that the manifests say of them.
    """

    tasks: pa.Table
    schema: Schema  # the columns to return, with their current names
    table_schema: Schema  # all columns, for filters on columns that are not returned
    filter: Expr  # bound to table_schema
    residuals: tuple[Bound, ...] = ()  # what is left of the filter in some partition; tasks name theirs
    deletes: pa.Table = field(default_factory=_no_deletes)  # position and equality delete files that apply to any task
    specs: tuple[PartitionSpec, ...] = ()  # what the partition values of tasks mean
    properties: Mapping[str, str] = field(default_factory=dict)  # of the table
    fields: Mapping[int, Field] = field(default_factory=dict)  # every field the table ever had, as it was last
    origin: Origin = NOWHERE  # what is read, for errors
    files_skipped: int = 0
    manifests_read: int = 0
    manifests_skipped: int = 0
    trace: pa.Table | None = None  # why each manifest and file was kept or skipped, if that was asked for

    @property
    def files(self) -> int:
        """How many files are to be read."""
        return int(self.tasks.num_rows)

    @property
    def mapping(self) -> NameMapping | None:
        """The ids that the table gives to the columns of files without any, by name; none if it gives none."""
        text = self.properties.get(NAME_MAPPING_PROPERTY)
        with self.origin.named():
            return None if text is None else decode_mapping(text)

    def with_tasks(self, tasks: pa.Table) -> Plan:
        """The same plan for other files."""
        return replace(self, tasks=tasks)

    def counted(self, io: FileIO) -> Plan:
        """The same plan with the number of rows of every file; files whose entries do not say it are opened."""
        with self.origin.named():
            return self.with_tasks(with_row_counts(io, self.tasks))

    def deleted_rows(self, io: FileIO) -> DeletedRows:
        """What the files have lost to deletes; read when it is asked for."""
        return DeletedRows(io, self.tasks, self.deletes, fields=self.fields, mapping=self.mapping, origin=self.origin)

    def splits(
        self, *, target_size: int | None = None, lookback: int | None = None, open_file_cost: int | None = None
    ) -> pa.Table:
        """Ranges of files in groups of about one size, for readers that work side by side.

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

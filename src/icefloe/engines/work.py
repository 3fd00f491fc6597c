"""What an operation passes to an engine, as values: the table, its planned files, scans, conditions and change data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.commit.base import Base
from icefloe.commit.phases import PhaseTimer
from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.errors import InputError
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr, conjunction
from icefloe.expr.prune.boxes import Box
from icefloe.expr.value.expressions import Value
from icefloe.io.file_io import FileIO
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.metadata_columns import LINEAGE
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.scan.changes.pairing import UpdatePairs
from icefloe.scan.changes.plan import ChangePlan
from icefloe.scan.changes.planner import plan_changes
from icefloe.scan.changes.snapshot_range import SnapshotRange
from icefloe.scan.metadata_filter import (
    matching_files,
    row_filter,
    split_filter,
    tested_metadata_columns,
    with_skipped_files,
)
from icefloe.scan.plan import plan_scan, read_schema, selected
from icefloe.scan.prune import DataRows, Pruner
from icefloe.scan.tasks import Plan

Positions: TypeAlias = Mapping[str, BitMap64]  # row positions by data file location
IS_DELETE = "_icefloe_is_delete"  # the column of the latest changes that says whether a change is a delete


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalLineage:
    """Which row ids and sequence numbers are final (spec: Reserved Field IDs).

    Operations of a transaction assign ids and numbers that change if its commit is retried. A rewritten row does not
    store such an id or number, so it gets new ones.
    """

    next_row_id: int  # row ids below it are final
    last_sequence_number: int  # sequence numbers up to it are final

    @classmethod
    def of(cls, metadata: TableMetadata) -> FinalLineage:
        """The lineage of a table as it was loaded."""
        return cls(next_row_id=metadata.next_row_id, last_sequence_number=metadata.last_sequence_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFiles:
    """A table and its storage, for writing new files."""

    io: FileIO
    metadata: TableMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFiles:
    """Planned files of a table, with their deleted rows, for finding rows and for rewriting files."""

    table: TableFiles
    plan: Plan
    deleted_rows: DeletedRows
    final_lineage: FinalLineage
    timer: PhaseTimer = field(default_factory=PhaseTimer)

    @classmethod
    def of(cls, io: FileIO, metadata: TableMetadata, plan: Plan) -> PlannedFiles:
        """The files of a plan for a table as it was loaded."""
        lineage = FinalLineage.of(metadata)
        table = TableFiles(io=io, metadata=metadata)
        return cls(table=table, plan=plan, deleted_rows=plan.deleted_rows(io), final_lineage=lineage)

    @property
    def io(self) -> FileIO:
        """The storage of the files."""
        return self.table.io

    @property
    def metadata(self) -> TableMetadata:
        """The table that rewritten rows are written to."""
        return self.table.metadata

    @property
    def rows(self) -> int:
        """The number of rows of the files, deleted ones included."""
        return int(pc.sum(self.plan.tasks["record_count"], min_count=0).as_py())

    @property
    def lineage(self) -> tuple[Field, ...]:
        """The lineage columns that rewritten rows keep: none if no file has row ids."""
        return LINEAGE if self.plan.tasks["first_row_id"].null_count < self.plan.files else ()

    @property
    def is_all_final(self) -> bool:
        """Whether all row ids and sequence numbers of the files are final."""
        return self.final_lineage == FinalLineage.of(self.metadata)

    def only(self, locations: Iterable[str]) -> PlannedFiles:
        """These of the planned files."""
        chosen = pc.is_in(self.plan.tasks["location"], value_set=pa.array(list(locations), pa.string()))
        return self.with_tasks(self.plan.tasks.filter(chosen))

    def with_tasks(self, tasks: pa.Table) -> PlannedFiles:
        """Some of the planned files, by their tasks."""
        return replace(self, plan=self.plan.with_tasks(tasks))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLayout:
    """How compaction writes the rows of planned files: to about how many files, and in which order.

    The target size, the partition spec and the sort order of new files are those of the table in ``PlannedFiles``. With
    ``is_ordered`` the order holds across the files, not only in each of them. ``z_columns`` are sorted by instead.
    """

    files: int = 1
    is_ordered: bool = False
    z_columns: tuple[Field, ...] = ()
    is_one_partition: bool = True  # whether all rows have the same partition in the spec of new files


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRequest:
    """A scan of one snapshot: the rows that match ``filter``, with ``columns`` or all of them.

    Files whose shapes are all outside one of the ``boxes`` are skipped.

    ``schema`` are the columns of the table, by default those of the schema that reading this snapshot uses. With
    ``inspect_files`` an engine does not rely on what summaries and properties say about the files. With
    ``truncates_nanoseconds`` an engine without timestamps of nanoseconds returns microseconds. ``pushed`` is
    a filter that the reader of the rows applies: it only lets an engine skip files. ``observer`` gets each plan of
    the files, and the further filter that it was made with. If ``files`` are given, no others are read.
    """

    base: Base
    snapshot: Snapshot | None
    filter: Expr = ALWAYS_TRUE
    boxes: tuple[Box, ...] = ()
    columns: tuple[str, ...] | None = None
    schema: Schema | None = None
    inspect_files: bool = False
    truncates_nanoseconds: bool = False
    pushed: Expr = ALWAYS_TRUE
    observer: Callable[[Expr, Plan], None] | None = None
    files: pa.ChunkedArray | None = None

    @property
    def io(self) -> FileIO:
        """The storage of the files."""
        return self.base.store.io

    @property
    def table_schema(self) -> Schema:
        """The columns of the table."""
        if self.schema is not None:
            return self.schema
        metadata = self.base.metadata
        return metadata.schema if self.snapshot is None else read_schema(metadata, self.snapshot)

    def plan(
        self,
        more: Expr = ALWAYS_TRUE,
        *,
        bounded: tuple[int, ...] = (),
        trace: bool = False,
        data_rows: DataRows = Pruner.data_rows,
    ) -> Plan:
        """The files to read; ``more`` is another filter, such as one that Spark pushes down.

        The plan has the statistics of the columns ``bounded``. With ``trace`` it also lists why each manifest and file
        was kept or skipped. ``data_rows`` reads and prunes the data manifests.
        """
        on_table, on_metadata = split_filter(conjunction([self.filter, more]), self.table_schema)
        plan = plan_scan(
            self.base.store,
            self.base.metadata,
            self.snapshot,
            filter=on_table,
            boxes=self.boxes,
            columns=self.columns,
            schema=self.schema,
            bounded=bounded,
            trace=trace,
            table=self.base.name,
            data_rows=data_rows,
        )
        plan = plan if on_metadata == ALWAYS_TRUE else self._with_metadata_filter(plan, on_metadata)
        if self.files is not None:
            plan = plan.with_tasks(plan.tasks.filter(pc.is_in(plan.tasks["location"], value_set=self.files)))
        if self.observer is not None:
            self.observer(more, plan)
        return plan

    def filter_schema(self, filter_: Expr) -> Schema:
        """The columns of the table, and the metadata columns that a filter tests."""
        schema = self.table_schema
        names = tested_metadata_columns(filter_, schema)
        more = selected(self.base.store, self.base.metadata, schema, names, self.base.name).fields
        return Schema(fields=(*schema.fields, *more), schema_id=schema.schema_id)

    def _with_metadata_filter(self, plan: Plan, filter_: Expr) -> Plan:
        """The files of a plan that a filter on metadata columns selects."""
        schema = self.filter_schema(filter_)
        matches, remaining = matching_files(plan.tasks, bind(filter_, schema), schema)
        skipped = plan.tasks["location"].filter(pc.invert(matches))
        return replace(
            plan,
            tasks=plan.tasks.filter(matches),
            metadata_filter=row_filter(remaining, schema),
            files_skipped=plan.files_skipped + len(skipped),
            trace=None if plan.trace is None else with_skipped_files(plan.trace, skipped, filter_),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A row is chosen if ``filter`` and ``sql`` are both true for it, and not false or null.

    ``filter`` prunes files and finds conflicting commits; it may test metadata columns, such as ``_file``. ``sql`` is
    the Spark SQL of the user, which only Spark evaluates; none if the filter alone is the condition.
    ``metadata_columns`` are those that ``sql`` tests.
    """

    filter: Expr
    sql: str | None = None
    metadata_columns: tuple[Field, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether the filter alone is the condition, so that statistics can prove that all rows of a file match."""
        return self.sql is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """The changes of the rows that match ``filter``, with ``columns`` or all of them.

    With ``net`` the changes of all snapshots are folded into one. ``pairs`` says how the rows before and after an
    update are paired; without it an update is a deleted and an inserted row.
    """

    base: Base
    between: SnapshotRange
    filter: Expr = ALWAYS_TRUE
    columns: tuple[str, ...] | None = None
    net: bool = False
    pairs: UpdatePairs | None = None

    @property
    def io(self) -> FileIO:
        """The storage of the files."""
        return self.base.store.io

    def plan(self) -> ChangePlan:
        """The files to read, by snapshot."""
        return plan_changes(
            self.base.store,
            self.base.metadata,
            self.between,
            filter=self.filter,
            columns=self.columns,
            table=self.base.name,
        )


def repeated_key(key: object) -> InputError:
    """The error for a key that several deleted or several inserted rows have, so that it identifies no row."""
    return InputError(
        f"changes: images=True pairs rows by their key, but several changed rows have the key {key}; give keys= that"
        " identify a row",
        key=key,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeKeys:
    """The columns of changes that identify a row and order the changes of a row, and the condition of a delete."""

    keys: tuple[str, ...]
    sequence_by: str
    delete_when: Value | None = None

    def check(self, columns: Sequence[str]) -> None:
        """InputError if the changes lack a column."""
        for name in (*self.keys, self.sequence_by):
            if name not in columns:
                raise InputError(f"apply_changes: the changes have no column {name!r}", field=name)


def ambiguous_change(key: object, sequence_by: str, sequence: object) -> InputError:
    """The error for two different last changes of one key."""
    return InputError(
        f"apply_changes: the key {key} has different changes with {sequence_by} = {sequence}; keep one of them", key=key
    )

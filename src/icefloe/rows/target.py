"""The branch of a table that an operation on rows works on, as it was loaded, and the settings of the write."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

import pyarrow as pa

from icefloe.commit.base import Base
from icefloe.commit.conflicts import Isolation
from icefloe.commit.draft import draft_of, head_of
from icefloe.commit.loop import begin, discard
from icefloe.commit.operations.metadata_update import MetadataUpdate
from icefloe.commit.operations.snapshot_operation import file_locations
from icefloe.commit.phases import Phase, PhaseTimer
from icefloe.engines.work import FinalLineage, PlannedFiles, ScanRequest, TableFiles
from icefloe.env import Env
from icefloe.errors import InputError, NoSuchSnapshot
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.io.file_io import FileIO
from icefloe.model.metadata.snapshots import MAIN, Ref, Snapshot, SummaryKey, ref_problem, summary_number
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.metadata_columns import DELETED
from icefloe.scan.metadata_filter import tested_metadata_columns
from icefloe.scan.tasks import Plan


def branch_of(branch: str | None, metadata: TableMetadata, *, create: bool = False) -> str:
    """The name of a branch of a table, main by default; with ``create`` of one that may be made.

    NoSuchSnapshot if the table has no such branch, InputError if no branch can have the name.
    """
    name = MAIN if branch is None else branch
    problem = ref_problem(name, Ref(snapshot_id=0))
    if problem is not None:
        raise InputError(f"branch {name!r}: {problem}", ref=name)
    if name != MAIN and name not in metadata.refs and not create:
        known = [MAIN, *(known for known, ref in metadata.refs.items() if ref.type == "branch" and known != MAIN)]
        raise NoSuchSnapshot(
            f"table {metadata.location} has no branch {name!r}; it has: {', '.join(known)}",
            ref=name,
            next_step=f"Create it first with t.branch({name!r}), or write with create_branch=True.",
        )
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictsSince:
    """Conflicts that an overwrite looks for: with the commits after a snapshot, or after none, by an isolation level.

    ``snapshot`` conflicts with rows that were deleted from what is overwritten, ``serializable`` with added rows too.
    """

    snapshot_id: int | None
    isolation: Isolation


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSettings:
    """Properties of the table for one write, the partition spec of its files, keys for the summary, and its conflicts.

    None of them is stored in the table.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    spec_id: int | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    conflicts: ConflictsSince | None = None

    def applied(self, metadata: TableMetadata) -> TableMetadata:
        """The table for those that write files."""
        changed = replace(metadata, properties={**metadata.properties, **self.properties})
        return changed if self.spec_id is None else replace(changed, default_spec_id=self.spec_id)


AS_TABLE = WriteSettings()  # as the table says


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A branch to change, and the settings of the write. ``final`` is its final row lineage, by default all of it."""

    base: Base
    env: Env
    branch: str = MAIN
    final: FinalLineage | None = None
    timer: PhaseTimer = field(default_factory=PhaseTimer)
    settings: WriteSettings = AS_TABLE

    @property
    def io(self) -> FileIO:
        """The storage of the table."""
        return self.base.store.io

    @property
    def metadata(self) -> TableMetadata:
        """The table as it was loaded."""
        return self.base.metadata

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the table, and those of the write."""
        return {**self.base.metadata.properties, **self.settings.properties}

    @property
    def head(self) -> Snapshot | None:
        """The newest snapshot of the branch."""
        return head_of(self.base.metadata, self.branch)

    @property
    def table(self) -> TableFiles:
        """The table, for writing new files."""
        return TableFiles(io=self.io, metadata=self.settings.applied(self.metadata))

    def after(self, change: MetadataUpdate | None) -> Target:
        """The branch after a change of the table that is committed together with the operation, if there is one."""
        if change is None:
            return self
        draft = change.apply(draft_of(self.base), begin(self.base, self.env))
        return replace(self, base=replace(self.base, metadata=draft.metadata, store=draft.store))

    def planned(self, where: Expr = ALWAYS_TRUE, known: Plan | None = None) -> PlannedFiles:
        """The planned files, with their deleted rows; they are those of ``known`` if this is a plan of the same."""
        with self.timer.of(Phase.PLAN):
            if known is not None and self._is_plan(known, where):
                plan = known.counted(self.io)
            else:
                plan = self.plan(where)
        self.timer.files_read = plan.files
        self.timer.files_skipped = max(0, self._data_files - plan.files)
        final = FinalLineage.of(self.metadata) if self.final is None else self.final
        deleted_rows = plan.deleted_rows(self.io)
        return PlannedFiles(
            table=self.table, plan=plan, deleted_rows=deleted_rows, final_lineage=final, timer=self.timer
        )

    def _is_plan(self, known: Plan, where: Expr) -> bool:
        schema, head = self.metadata.schema, self.head
        snapshot_id = None if head is None else head.snapshot_id
        return (known.origin.snapshot_id, known.table_schema) == (snapshot_id, schema) and (
            known.filter == bind(where, schema)
        )

    @property
    def _data_files(self) -> int:
        """The number of data files of the branch by its summary, as planning skips many without counting them."""
        return summary_number(self.head, SummaryKey.TOTAL_DATA_FILES) or 0

    def plan(self, where: Expr = ALWAYS_TRUE) -> Plan:
        """The files that may contain matching rows, planned with the current schema, as rows will be written.

        The number of rows of every file is known, because a file is removed with its last row. A filter may test
        metadata columns, except ``_deleted``: deleted rows are not changed.
        """
        schema = self.metadata.schema
        if DELETED.name in tested_metadata_columns(where, schema):
            raise InputError(f"rows are not changed by {DELETED.name!r}: only rows that are not deleted are changed")
        return ScanRequest(base=self.base, snapshot=self.head, filter=where, schema=schema).plan().counted(self.io)


class Scratch(AbstractContextManager["Scratch"]):
    """The files written for an operation; they are deleted if preparing it fails."""

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self._written: list[str] = []

    def keep(self, entries: pa.Table) -> pa.Table:
        """Register the files of these entries; returns the entries."""
        self._written.extend(file_locations(entries))
        return entries

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            discard(self._io, self._written)

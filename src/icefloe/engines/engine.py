"""The protocol by which operations reach rows: an engine reads, finds and writes rows, and never commits.

It writes files and returns their manifest entries, or returns the positions of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyroaring import BitMap64

from icefloe.codecs.puffin.theta_sketch import ThetaSketch
from icefloe.engines.file_sets import FileSets
from icefloe.engines.merge_plan import MergePlan
from icefloe.engines.work import (
    ChangeKeys,
    ChangeRequest,
    Condition,
    NewLayout,
    PlannedFiles,
    Positions,
    ScanRequest,
    TableFiles,
)
from icefloe.env import Env
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.value.expressions import Value
from icefloe.formats.importing.folder import ImportedFolder
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertSource:
    """The checked source of an upsert, with ``filter``, which every row with one of its keys satisfies.

    ``prepared`` is for the engine alone.
    """

    rows: Any
    on: tuple[str, ...]
    filter: Expr
    prepared: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertMatches:
    """The rows that an upsert replaces, by position, and the rows to write.

    These are the rows of the source. With ``lineage`` they also have these columns, with the ids of the replaced rows.
    """

    positions: Positions
    rows: Any
    lineage: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedRows:
    """The rows that an update replaces, by position, and the entries of the files with the new rows."""

    positions: Positions
    entries: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSource:
    """The source of a merge, with ``filter``, which every row of the table satisfies that the merge may change.

    ``prepared`` is for the engine alone.
    """

    plan: MergePlan
    filter: Expr
    prepared: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeMatches:
    """The rows that a merge updates or deletes, by position; ``prepared`` is for the engine alone."""

    positions: Positions
    prepared: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRows:
    """The data files with the updated and inserted rows of a merge, by their entries, and row counts."""

    entries: pa.Table
    rows_inserted: int
    rows_updated: int
    rows_deleted: int


class Engine(Protocol):
    """Reads, finds and writes the rows of a table."""

    @property
    def summary(self) -> Mapping[str, str]:
        """Keys for the summaries of snapshots that say who wrote them."""
        ...

    @property
    def file_sets(self) -> FileSets:
        """What maintenance does with whole sets of files."""
        ...

    def row_schema(self, rows: Any, schema: Schema) -> tuple[Any, pa.Schema]:
        """Rows to write, opened, and their schema; a stream can be opened only once.

        Columns that the engine matches with columns of the table ``schema`` have their names.
        """
        ...

    def read(self, scan: ScanRequest) -> Any:
        """The rows of a scan: a RecordBatchReader from Arrow, a DataFrame from Spark."""
        ...

    def read_folder(self, folder: ImportedFolder, schema: Schema) -> Any:
        """The rows of data files that belong to no table, with the columns of ``schema``, which are found by name."""
        ...

    def count(self, scan: ScanRequest) -> int:
        """The number of rows of a scan."""
        ...

    def distinct_sketches(
        self, scan: ScanRequest, columns: Mapping[tuple[str, ...], Field], progress: Progress
    ) -> Mapping[int, ThetaSketch]:
        """A sketch of the distinct values of each column of a scan, by field id; columns are named by their paths.

        All engines compute the same sketch of the same values.
        """
        ...

    def frame(self, rows: pa.Table) -> Any:
        """Rows of this process: the table itself for Arrow, a DataFrame for Spark."""
        ...

    def read_changes(self, request: ChangeRequest) -> Any:
        """The rows that changed between two snapshots: a RecordBatchReader from Arrow, a DataFrame from Spark."""
        ...

    def write(self, table: TableFiles, rows: Any, *, lineage: tuple[Field, ...] = ()) -> pa.Table:
        """Write rows to new data files; returns their entries. The rows have the columns ``lineage`` as well."""
        ...

    def condition(self, where: str | Expr | None, schema: Schema) -> Condition:
        """The condition of a text, or of a filter, on rows of a table; without one, every row is chosen.

        InputError if the engine does not understand the text.
        """
        ...

    def find_rows(self, files: PlannedFiles, condition: Condition) -> dict[str, BitMap64]:
        """The positions of live rows for which the condition is true, by file; files without any are left out.

        The plan has the filter of the condition.
        """
        ...

    def upsert_source(self, table: TableFiles, rows: Any, on: tuple[str, ...]) -> AbstractContextManager[UpsertSource]:
        """Check the source of an upsert and keep it for the duration; InputError if a key occurs twice."""
        ...

    def find_keys(self, files: PlannedFiles, source: UpsertSource) -> UpsertMatches:
        """The live rows with a key of the source, and the source with the row ids of these rows, if they are final."""
        ...

    def write_key_deletes(self, table: TableFiles, source: UpsertSource) -> pa.Table:
        """Write equality delete files for the keys of a source; returns their entries. Keys with a null are omitted."""
        ...

    def update_rows(
        self, files: PlannedFiles, condition: Condition, values: Mapping[str, Value], *, copy_others: bool
    ) -> UpdatedRows:
        """Write the live rows for which the condition is true to new files, with new values by column.

        With ``copy_others`` the other live rows of their files are written too, unchanged. Rows keep their ids.
        """
        ...

    def write_survivors(self, files: PlannedFiles, positions: Positions) -> pa.Table:
        """Write the live rows of the files in ``positions`` to new files, without those positions; returns the entries.

        Rows keep their ids and the sequence numbers of their last change, as far as these are final.
        """
        ...

    def rewrite(self, files: PlannedFiles, layout: NewLayout) -> pa.Table:
        """Write all live rows of planned files to new files, for compaction; returns the entries.

        Rows keep their ids and the sequence numbers of their last change, as far as these are final.
        """
        ...

    def value(self, text: str | Value, env: Env) -> Value:
        """A value that this engine computes; InputError or UnsupportedError if it is none."""
        ...

    def source_columns(self, rows: Any, schema: Schema) -> tuple[Any, tuple[str, ...]]:
        """The source of a merge into a table, opened, and the names of its columns; a stream is opened only once."""
        ...

    def latest_changes(self, rows: Any, by: ChangeKeys) -> Any:
        """One row per key, that with the greatest sequence, with the boolean column ``changes.IS_DELETE``.

        InputError, now or when the rows are read, if a key or sequence is null, or a key has two different last rows.
        """
        ...

    def merge_source(self, table: TableFiles, rows: Any, plan: MergePlan) -> AbstractContextManager[MergeSource]:
        """Check the source of a merge and keep it for the duration."""
        ...

    def find_merged(self, files: PlannedFiles, source: MergeSource) -> MergeMatches:
        """Decide which clause of a merge applies to each row of the planned files and of the source.

        InputError if several rows of the source match one row of the table.
        """
        ...

    def write_merged(self, files: PlannedFiles, source: MergeSource, matches: MergeMatches) -> MergedRows:
        """Write the updated and the inserted rows of a merge to new data files."""
        ...

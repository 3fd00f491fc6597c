"""The engine that works in this process on Arrow, without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from icefloe.codecs.puffin.theta_sketch import ThetaSketch
from icefloe.commit.phases import Phase
from icefloe.deletes.equality_writer import write_equality_deletes
from icefloe.engines.arrow.change.delete import find_rows, write_survivors
from icefloe.engines.arrow.change.latest import latest_changes
from icefloe.engines.arrow.change.merge import find_merged, write_merged
from icefloe.engines.arrow.change.merge_source import IndexedSource
from icefloe.engines.arrow.change.update import write_updated
from icefloe.engines.arrow.change.upsert import find_keys, indexed_source
from icefloe.engines.arrow.read.changes import read_changes
from icefloe.engines.arrow.read.distinct_values import distinct_sketches
from icefloe.engines.arrow.read.file_sets import ArrowFileSets
from icefloe.engines.arrow.read.plan_reader import count_plan, read_plan
from icefloe.engines.arrow.write import rewrite_rows, write_rows
from icefloe.engines.engine import MergedRows, MergeMatches, MergeSource, UpdatedRows, UpsertMatches, UpsertSource
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
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.expr.value.expressions import Value, parse_value
from icefloe.formats.importing.folder import ImportedFolder, folder_rows
from icefloe.model.arrow.conform import as_table, conform
from icefloe.model.entries import empty
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.progress import Progress


class ArrowEngine:
    """Rows as Arrow tables and streams; sources are read whole."""

    @property
    def summary(self) -> Mapping[str, str]:
        """Nothing is added to summaries."""
        return {}

    @property
    def file_sets(self) -> ArrowFileSets:
        """Sets of files as columns in memory."""
        return ArrowFileSets()

    def row_schema(self, rows: Any, schema: Schema) -> tuple[pa.Table | pa.RecordBatchReader, pa.Schema]:
        """Rows as a table or stream, and their schema."""
        if isinstance(rows, (pa.Table, pa.RecordBatch)) or not hasattr(rows, "__arrow_c_stream__"):
            opened = as_table(rows)
        else:
            opened = pa.RecordBatchReader.from_stream(rows)
        return opened, opened.schema

    def read(self, scan: ScanRequest) -> pa.RecordBatchReader:
        """The rows as a stream of batches."""
        return read_plan(scan.io, scan.plan())

    def read_folder(self, folder: ImportedFolder, schema: Schema) -> pa.RecordBatchReader:
        """The rows as a stream, file by file."""
        return folder_rows(folder, schema)

    def count(self, scan: ScanRequest) -> int:
        """The number of rows; files of which the metadata states it are not read."""
        return count_plan(scan.io, scan.plan())

    def distinct_sketches(
        self, scan: ScanRequest, columns: Mapping[tuple[str, ...], Field], progress: Progress
    ) -> dict[int, ThetaSketch]:
        """A sketch of each column; values are hashed by the threads that read the files."""
        return distinct_sketches(scan, columns, progress)

    def frame(self, rows: pa.Table) -> pa.Table:
        """The rows as they are."""
        return rows

    def read_changes(self, request: ChangeRequest) -> pa.RecordBatchReader:
        """The changed rows as a stream of batches, snapshot by snapshot."""
        return read_changes(request)

    def write(self, table: TableFiles, rows: Any, *, lineage: tuple[Field, ...] = ()) -> pa.Table:
        """Write rows to new data files; returns their entries."""
        return write_rows(table, rows, lineage=lineage)

    def condition(self, where: str | Expr | None, schema: Schema) -> Condition:
        """A condition that is a filter."""
        return Condition(filter=parse_filter(where))

    def find_rows(self, files: PlannedFiles, condition: Condition) -> dict[str, BitMap64]:
        """The positions of live rows that match the plan's filter, by file: it is the whole condition."""
        return find_rows(files)

    @contextmanager
    def upsert_source(self, table: TableFiles, rows: Any, on: tuple[str, ...]) -> Iterator[UpsertSource]:
        """The source as one table, with an index of its keys."""
        schema = table.metadata.schema
        schema.select(on)
        yield indexed_source(conform(as_table(rows), schema), on)

    def find_keys(self, files: PlannedFiles, source: UpsertSource) -> UpsertMatches:
        """The live rows with a key of the source."""
        return find_keys(files, source)

    def write_key_deletes(self, table: TableFiles, source: UpsertSource) -> pa.Table:
        """Write the keys of the source to equality delete files; returns their entries."""
        keys = source.rows.select(list(source.on)).drop_null()
        if keys.num_rows == 0:
            return empty()
        metadata = table.metadata
        return write_equality_deletes(table.io, keys, metadata.schema.select(source.on).fields, metadata=metadata)

    def update_rows(
        self, files: PlannedFiles, condition: Condition, values: Mapping[str, Value], *, copy_others: bool
    ) -> UpdatedRows:
        """Write updated rows to new files, alone or with the other rows of their files."""
        with files.timer.of(Phase.MATCH):
            positions = find_rows(files)
        entries = empty()
        if len(positions) > 0:
            with files.timer.of(Phase.WRITE):
                entries = write_updated(files, positions, values, copy_others=copy_others)
        return UpdatedRows(positions=positions, entries=entries)

    def write_survivors(self, files: PlannedFiles, positions: Positions) -> pa.Table:
        """Write the rows that files keep to new files; returns the entries."""
        return write_survivors(files, positions)

    def rewrite(self, files: PlannedFiles, layout: NewLayout) -> pa.Table:
        """Write all live rows to new files; returns the entries."""
        return rewrite_rows(files, layout)

    def value(self, text: str | Value, env: Env) -> Value:
        """A value that is computed on Arrow columns."""
        return parse_value(text, env=env)

    def source_columns(self, rows: Any, schema: Schema) -> tuple[pa.Table, tuple[str, ...]]:
        """The source as one table, and the names of its columns."""
        source = as_table(rows)
        return source, tuple(source.column_names)

    def latest_changes(self, rows: Any, by: ChangeKeys) -> pa.Table:
        """The last change of each key."""
        return latest_changes(rows, by)

    @contextmanager
    def merge_source(self, table: TableFiles, rows: Any, plan: MergePlan) -> Iterator[MergeSource]:
        """The source with an index of its keys."""
        indexed = IndexedSource(plan, rows)
        yield MergeSource(plan=plan, filter=indexed.filter, prepared=indexed)

    def find_merged(self, files: PlannedFiles, source: MergeSource) -> MergeMatches:
        """Decide which clause applies to each row."""
        return find_merged(files, source.prepared)

    def write_merged(self, files: PlannedFiles, source: MergeSource, matches: MergeMatches) -> MergedRows:
        """Write the updated and the inserted rows to new data files."""
        return write_merged(files, source.prepared, matches)

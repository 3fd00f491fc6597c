"""A merge on Arrow: decides which rows of the table are updated or deleted, and writes the new rows.

The table is read once for the columns that decide. It is read a second time, for the updated rows alone, if new values
are computed from columns of the table. An updated row keeps its id (spec: Row-level Deletes).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.deletes.bitmaps import add_positions, bitmap_of
from icefloe.engines.arrow.change.key_index import Ints
from icefloe.engines.arrow.change.merge_source import IndexedSource
from icefloe.engines.arrow.read.row_positions import Chunk, rows_at, rows_with_positions
from icefloe.engines.arrow.write import write_batches
from icefloe.engines.engine import MergedRows, MergeMatches
from icefloe.engines.merge_plan import TARGET, Action, Clause, When, columns_read
from icefloe.engines.work import PlannedFiles
from icefloe.errors import InputError
from icefloe.expr.value.expressions import Value, evaluate_value
from icefloe.model.arrow.conform import arrow_type, conform
from icefloe.model.entries import empty
from icefloe.model.schema.metadata_columns import POS, ROW_ID
from icefloe.model.schema.schema import Schema

MAX_PAIRS = 100_000_000  # pairs of rows that are compared if no equality joins the sides
PAIRS_AT_ONCE = 1 << 20
ROWS_AT_ONCE = 1 << 17
_NO_SOURCE_ROW = -1

_Decided: TypeAlias = tuple[Ints, Ints, Ints]  # rows of a chunk, their clauses, their rows of the source


@dataclass(frozen=True, slots=True, kw_only=True)
class Updates:
    """Updated rows of one file: their positions in order, and the clause, source row and row id of each."""

    positions: Ints
    clauses: Ints
    source_rows: Ints
    row_ids: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRows:
    """The rows that a merge writes: updated rows by file, and rows of the source to insert by clause."""

    updates: Mapping[str, Updates]
    inserts: tuple[tuple[Clause, Ints], ...]
    rows_deleted: int  # besides updated rows

    @property
    def rows_updated(self) -> int:
        """How many rows are updated."""
        return sum(len(of_file.positions) for of_file in self.updates.values())

    @property
    def rows_inserted(self) -> int:
        """How many rows are inserted."""
        return sum(len(rows) for _, rows in self.inserts)


def find_merged(files: PlannedFiles, source: IndexedSource) -> MergeMatches:
    """Decide about every row of the planned files and of the source; only final row ids are kept."""
    if len(source.plan.keys) == 0:
        _check_pairs(files, source)
    finder = _Finder(source, files.final_lineage.next_row_id)
    columns = source.plan.deciding_columns
    fields = tuple(field for field in source.plan.schema.fields if field.name in columns)
    schema = Schema(fields=(*fields, POS, ROW_ID))
    with closing(rows_with_positions(files, schema, min_rows=source.index.batch_rows)) as chunks:
        for chunk in chunks:
            finder.decide(chunk)
    return finder.matches()


def _check_pairs(files: PlannedFiles, source: IndexedSource) -> None:
    rows = pc.sum(files.plan.tasks["record_count"], min_count=0).as_py()
    if rows * source.rows > MAX_PAIRS:
        raise InputError(
            f"merge: no equality joins the table and the source, so {rows} x {source.rows} pairs of rows would be"
            " compared; add an equality such as t.id = s.id"
        )


class _Finder:
    """Decides chunk by chunk which clause applies to each row."""

    def __init__(self, source: IndexedSource, next_row_id: int) -> None:
        self._source = source
        self._next_row_id = next_row_id
        self._matched = source.plan.clauses_for(When.MATCHED)
        self._not_matched = source.plan.clauses_for(When.NOT_MATCHED_BY_SOURCE)
        self._has_match = np.zeros(source.rows, np.bool_)  # rows of the source
        self._positions: dict[str, BitMap64] = {}
        self._updates: dict[str, list[Updates]] = {}
        self._is_update = np.array([clause.action is Action.UPDATE for clause in source.plan.clauses], np.bool_)
        self._deleted = 0

    def decide(self, chunk: Chunk) -> None:
        """Decide about the rows of a chunk, a part of them at a time to bound the number of pairs."""
        index, rows = self._source.index, chunk.rows.num_rows
        key_numbers = index.key_numbers(self._source.keys_of(chunk.rows), rows)
        pairs_before = np.concatenate([[0], np.cumsum(index.row_counts(key_numbers))])
        start = 0
        while start < rows:
            limit = pairs_before[start] + PAIRS_AT_ONCE
            stop = max(start + 1, int(np.searchsorted(pairs_before[1:], limit, side="right")))
            self._decide_part(chunk, key_numbers[start:stop], start)
            start = stop

    def _decide_part(self, chunk: Chunk, key_numbers: Ints, start: int) -> None:
        rows, source_rows = self._source.index.pairs(key_numbers)
        rows += start
        condition = self._source.plan.condition
        if condition is not None:
            is_match = _is_true(condition, self._columns(condition, chunk, rows, source_rows), len(rows))
            rows, source_rows = rows[is_match], source_rows[is_match]
        self._has_match[source_rows] = True
        if len(self._matched) > 0:
            self._check_single_match(rows, source_rows)
        decided = self._apply(self._matched, chunk, rows, source_rows)
        if len(self._not_matched) > 0:
            is_unmatched = np.ones(len(key_numbers), np.bool_)
            is_unmatched[rows - start] = False
            unmatched = np.flatnonzero(is_unmatched) + start
            no_source = np.full(len(unmatched), _NO_SOURCE_ROW, np.int64)
            decided = [*decided, *self._apply(self._not_matched, chunk, unmatched, no_source)]
        self._record(chunk, decided)

    def _apply(
        self, clauses: Iterable[tuple[int, Clause]], chunk: Chunk, rows: Ints, source_rows: Ints
    ) -> list[_Decided]:
        """For each clause the rows that it applies to: those whose first true condition is the clause's."""
        decided = []
        for index, clause in clauses:
            applies = np.ones(len(rows), np.bool_)
            if clause.condition is not None:
                columns = self._columns(clause.condition, chunk, rows, source_rows)
                applies = _is_true(clause.condition, columns, len(rows))
            chosen = rows[applies]
            decided.append((chosen, np.full(len(chosen), index, np.int64), source_rows[applies]))
            rows, source_rows = rows[~applies], source_rows[~applies]
        return decided

    def _record(self, chunk: Chunk, decided: list[_Decided]) -> None:
        if len(decided) == 0:
            return
        rows, clauses, source_rows = (np.concatenate(part) for part in zip(*decided, strict=True))
        order = np.argsort(rows, kind="stable")
        rows, clauses, source_rows = rows[order], clauses[order], source_rows[order]
        row_ids = chunk.rows.column(ROW_ID.name).take(pa.array(rows)).fill_null(self._next_row_id).to_numpy()
        positions, is_update = chunk.positions[rows], self._is_update[clauses]
        self._deleted += int((~is_update).sum())
        for file, part in chunk.by_file(rows):
            add_positions(self._positions, file, bitmap_of(positions[part]))
            updated = np.flatnonzero(is_update[part]) + part.start
            if len(updated) > 0:
                self._updates.setdefault(file, []).append(
                    Updates(
                        positions=positions[updated],
                        clauses=clauses[updated],
                        source_rows=source_rows[updated],
                        row_ids=row_ids[updated],
                    )
                )

    def _check_single_match(self, rows: Ints, source_rows: Ints) -> None:
        again = np.flatnonzero(rows[1:] == rows[:-1])
        if len(again) > 0:
            first, second = (
                {name: column[int(row)].as_py() for name, column in self._source.columns.items()}
                for row in source_rows[again[0] : again[0] + 2]
            )
            raise InputError(
                f"merge: two rows of the source match the same row of the table: {first} and {second}; keep one of them"
            )

    def _columns(self, value: Value, chunk: Chunk, rows: Ints, source_rows: Ints) -> dict[str, Any]:
        target = {name: chunk.rows.column(name) for name in columns_read(value, TARGET)}
        return {**_target_columns(target, rows), **self._source.columns_at(value, source_rows)}

    def matches(self) -> MergeMatches:
        """All decisions, those about rows of the source without a match included."""
        updates = {file: _in_order(parts) for file, parts in self._updates.items()}
        new = NewRows(updates=updates, inserts=tuple(self._inserts()), rows_deleted=self._deleted)
        return MergeMatches(positions=self._positions, prepared=new)

    def _inserts(self) -> Iterator[tuple[Clause, Ints]]:
        rows = np.flatnonzero(~self._has_match)
        for _, clause in self._source.plan.clauses_for(When.NOT_MATCHED):
            applies = np.ones(len(rows), np.bool_)
            if clause.condition is not None:
                applies = _is_true(clause.condition, self._source.columns_at(clause.condition, rows), len(rows))
            yield clause, rows[applies]
            rows = rows[~applies]


def _in_order(parts: list[Updates]) -> Updates:
    order = np.argsort(np.concatenate([part.positions for part in parts]), kind="stable")

    def joined(name: str) -> Ints:
        column: Ints = np.concatenate([getattr(part, name) for part in parts])[order]
        return column

    return Updates(
        positions=joined("positions"),
        clauses=joined("clauses"),
        source_rows=joined("source_rows"),
        row_ids=joined("row_ids"),
    )


def _is_true(value: Value, columns: Mapping[str, Any], rows: int) -> Any:
    """For which rows a condition is true, and not false or null."""
    result = evaluate_value(value, columns, rows)
    if not (pa.types.is_boolean(result.type) or pa.types.is_null(result.type)):
        raise InputError(f"merge: {value.text!r} is not a condition, its type is {result.type}", value=value.text)
    return pc.fill_null(result.cast(pa.bool_()), False).to_numpy(zero_copy_only=False)


def _target_columns(columns: Mapping[str, pa.Array], rows: Ints) -> dict[str, pa.Array]:
    numbers = pa.array(rows)
    return {f"{TARGET}.{name}": column.take(numbers) for name, column in columns.items()}


def write_merged(files: PlannedFiles, source: IndexedSource, matches: MergeMatches) -> MergedRows:
    """Write the updated and the inserted rows to new data files."""
    new: NewRows = matches.prepared
    return MergedRows(
        entries=_write(files, source, new),
        rows_inserted=new.rows_inserted,
        rows_updated=new.rows_updated,
        rows_deleted=new.rows_deleted,
    )


def _write(files: PlannedFiles, source: IndexedSource, new: NewRows) -> pa.Table:
    if new.rows_updated + new.rows_inserted == 0:
        return empty()
    next_row_id = files.final_lineage.next_row_id
    keeps_ids = any(bool((updates.row_ids < next_row_id).any()) for updates in new.updates.values())
    lineage = (ROW_ID,) if keeps_ids else ()
    writer = _RowWriter(source, Schema(fields=(*files.metadata.schema.fields, *lineage)), next_row_id)
    batches = (batch for table in writer.tables(files, new) for batch in table.to_batches())
    return write_batches(files.table, batches, lineage=lineage)


class _RowWriter:
    """Computes the rows that a merge writes, with the columns of ``schema``; the last one may be the row id."""

    def __init__(self, source: IndexedSource, schema: Schema, next_row_id: int) -> None:
        self._source = source
        self._schema = schema
        self._next_row_id = next_row_id

    def tables(self, files: PlannedFiles, new: NewRows) -> Iterator[pa.Table]:
        """The updated rows, then the inserted ones, a part at a time."""
        if len(self._source.plan.updating_columns) > 0:
            yield from self._updated_from_table(files, new)
        else:
            for updates in new.updates.values():
                for first in range(0, len(updates.positions), ROWS_AT_ONCE):
                    yield from self._updated(updates, np.arange(len(updates.positions))[first : first + ROWS_AT_ONCE])
        for clause, rows in new.inserts:
            for first in range(0, len(rows), ROWS_AT_ONCE):
                part = rows[first : first + ROWS_AT_ONCE]
                yield self._rows(clause, {}, part, np.full(len(part), self._next_row_id, np.int64))

    def _updated_from_table(self, files: PlannedFiles, new: NewRows) -> Iterator[pa.Table]:
        columns = self._source.plan.updating_columns
        fields = tuple(field for field in self._source.plan.schema.fields if field.name in columns)
        positions = {file: bitmap_of(updates.positions) for file, updates in new.updates.items()}
        schema = Schema(fields=(*fields, POS))
        with closing(rows_at(files.only(positions), positions, schema, min_rows=ROWS_AT_ONCE)) as chunks:
            for chunk in chunks:
                start = 0
                for file, end in zip(chunk.files, chunk.ends.tolist(), strict=True):
                    updates, rows = new.updates[file], chunk.rows.slice(start, end - start)
                    numbers = np.searchsorted(updates.positions, chunk.positions[start:end])
                    yield from self._updated(updates, numbers, rows)
                    start = end

    def _updated(self, updates: Updates, numbers: Ints, rows: pa.RecordBatch | None = None) -> Iterator[pa.Table]:
        """Some of the updated rows of a file, by number; ``rows`` has the old columns that their values need."""
        clauses = updates.clauses[numbers]
        for index in np.unique(clauses).tolist():
            of_clause = np.flatnonzero(clauses == index)
            chosen = numbers[of_clause]
            old = {} if rows is None else {name: rows.column(name) for name in rows.schema.names if name != POS.name}
            columns = _target_columns(old, of_clause)
            clause = self._source.plan.clauses[index]
            yield self._rows(clause, columns, updates.source_rows[chosen], updates.row_ids[chosen])

    def _rows(self, clause: Clause, old: Mapping[str, pa.Array], source_rows: Ints, row_ids: Ints) -> pa.Table:
        """The rows that a clause writes, checked against the schema."""
        columns: dict[str, Any] = {}
        fields = {field.name: field for field in self._schema.fields}
        for name, value in (clause.assignments or {}).items():
            read = {**old, **self._source.columns_at(value, source_rows)}
            columns[name] = evaluate_value(value, read, len(source_rows), wanted=arrow_type(fields[name].type))
        if ROW_ID.name in fields:
            columns[ROW_ID.name] = pa.array(row_ids, mask=row_ids >= self._next_row_id)
        return conform(pa.table(columns), self._schema)

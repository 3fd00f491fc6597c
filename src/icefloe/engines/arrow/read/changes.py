"""Reads the rows that changed between two snapshots (spec: Row-level Deletes, Scan Planning).

Deletes are compared as positions: of a data file that stays, only rows whose state changed are read. If a snapshot has
rewritten files whose rows have ids, the rows that were only copied are found by their lineage, without their values.
Changes are read snapshot by snapshot. A snapshot that only adds or only deletes rows is read as a stream; the changed
rows of another one, and those of a folded range, are held in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.deletes.bitmaps import add_positions, all_positions, bitmap_of, within
from icefloe.deletes.deleted_rows import DeletedRows, all_except
from icefloe.engines.arrow.read.change_folding import IS_INSERT, Ints, fold, unfolded, without_copies
from icefloe.engines.arrow.read.plan_reader import read_in_parallel, whole_files
from icefloe.engines.work import ChangeRequest
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.formats.read.file_read import FileRead
from icefloe.formats.read.reader import read_file
from icefloe.io.file_io import FileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.metadata_columns import LAST_UPDATED, POS, ROW_ID
from icefloe.model.schema.schema import Schema, merged_fields
from icefloe.model.schema.types import Field
from icefloe.scan.changes.plan import CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT, ChangePlan, ChangeStep
from icefloe.scan.tasks import Plan

Positions: TypeAlias = Mapping[str, BitMap64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Selection:
    """Rows of planned files: the live ones without ``excluded``, or only those at the positions ``chosen``."""

    plan: Plan
    is_insert: bool
    chosen: Positions | None = None
    excluded: Positions | None = None


def read_changes(request: ChangeRequest) -> pa.RecordBatchReader:
    """The changed rows as a stream of batches."""
    return _Reader(request).reader()


class _Reader:
    """Reads the steps of one request."""

    def __init__(self, request: ChangeRequest) -> None:
        self._request = request
        self._io = request.io
        self._plan: ChangePlan = request.plan()
        by_row_id = request.pairs is not None and len(request.pairs.keys) == 0
        self._identity: tuple[Field, ...] = (ROW_ID,) if by_row_id else ()
        self._compared = [field.name for field in self._plan.table_schema.fields]
        columns = list(arrow_schema(self._plan.schema))
        columns.append(pa.field(CHANGE_TYPE, pa.string(), nullable=False))
        columns.append(pa.field(CHANGE_ORDINAL, pa.int32(), nullable=False))
        columns.append(pa.field(COMMIT_SNAPSHOT, pa.int64(), nullable=False))
        self._result = pa.schema(columns)

    def reader(self) -> pa.RecordBatchReader:
        """The changes of all steps."""
        tables = self._folded() if self._request.net else (part for step in self._plan.steps for part in self._of(step))
        batches = (batch for table in tables for batch in self._selected(table).to_batches() if batch.num_rows > 0)
        return pa.RecordBatchReader.from_batches(self._result, batches)

    def _selected(self, rows: pa.Table) -> pa.Table:
        """The columns to return."""
        return rows.select(self._result.names).cast(self._result)

    def _folded(self) -> Iterator[pa.Table]:
        """The changes of all steps, folded into one."""
        steps = [rows for step in self._plan.steps if (rows := self._changed_rows(step)) is not None]
        if len(steps) > 0:
            yield fold(pa.concat_tables(steps).combine_chunks(), self._compared, self._request.pairs)

    def _changed_rows(self, step: ChangeStep) -> pa.Table | None:
        """The deleted and inserted rows of one step, without copies; none if there are none."""
        parts = list(self._rows(step, self._whole()))
        if len(parts) == 0:
            return None
        identity = [*self._compared, *(field.name for field in self._identity)]
        return without_copies(pa.concat_tables(parts).combine_chunks(), identity)

    def _of(self, step: ChangeStep) -> Iterator[pa.Table]:
        """The changes of one step."""
        if not (step.may_insert and step.may_delete):
            yield from map(unfolded, self._rows(step, self._plan.schema))
            return
        parts = list(self._rows(step, self._whole()))
        if len(parts) > 0:
            yield fold(pa.concat_tables(parts).combine_chunks(), self._compared, self._request.pairs)

    def _whole(self) -> Schema:
        """All columns of the table, by which rows are compared, and the others that are returned."""
        return Schema(fields=merged_fields(self._plan.table_schema.fields, self._plan.schema.fields, self._identity))

    def _rows(self, step: ChangeStep, schema: Schema) -> Iterator[pa.Table]:
        """The deleted rows of a step, then the inserted ones; rows that were copied may be among both."""
        for selection in self._selections(step):
            for batch in _read(self._io, selection, schema):
                yield _with_step(pa.Table.from_batches([batch]), step, is_insert=selection.is_insert)

    def _selections(self, step: ChangeStep) -> Iterator[_Selection]:
        copied_from, copied_to = _copied(self._io, step)
        deleted, restored = _changed_positions(self._io, step)
        yield _Selection(plan=step.removed, is_insert=False, excluded=copied_from)
        yield _Selection(plan=step.before, is_insert=False, chosen=deleted)
        yield _Selection(plan=step.added, is_insert=True, excluded=copied_to)
        yield _Selection(plan=step.after, is_insert=True, chosen=restored)


def _with_step(rows: pa.Table, step: ChangeStep, *, is_insert: bool) -> pa.Table:
    """The rows with the step that changed them."""
    count = rows.num_rows
    rows = rows.append_column(IS_INSERT, pa.repeat(is_insert, count))
    rows = rows.append_column(CHANGE_ORDINAL, pa.repeat(pa.scalar(step.ordinal, pa.int32()), count))
    return rows.append_column(COMMIT_SNAPSHOT, pa.repeat(pa.scalar(step.snapshot.snapshot_id, pa.int64()), count))


def _read(io: FileIO, selection: _Selection, schema: Schema) -> Iterator[pa.RecordBatch]:
    """The selected rows of planned files that match the filter, in the order of the plan."""
    plan, chosen, excluded = replace(selection.plan, schema=schema), selection.chosen, selection.excluded
    if chosen is not None:
        has_rows = pc.is_in(plan.tasks["location"], value_set=pa.array(list(chosen), pa.string()))
        plan = plan.with_tasks(plan.tasks.filter(has_rows))
    deleted = plan.deleted_rows(io)

    def rows(part: FileRead) -> Iterator[pa.RecordBatch]:
        if chosen is not None:
            deletes = all_except(chosen[part.location], part.row_count)
        else:
            deletes = deleted.of(part.location).also(None if excluded is None else excluded.get(part.location))
        return read_file(io, replace(part, deletes=deletes))

    return read_in_parallel(plan, rows)


def _changed_positions(io: FileIO, step: ChangeStep) -> tuple[Positions, Positions]:
    """The positions of rows that a step deleted in files that stay, and of rows that it restored, by file."""
    deleted: dict[str, BitMap64] = {}
    restored: dict[str, BitMap64] = {}
    before, after = step.before.deleted_rows(io), step.after.deleted_rows(io)
    for file in whole_files(replace(step.before, schema=Schema(fields=(POS,)))):
        old, new = _deleted_positions(io, file, before), _deleted_positions(io, file, after)
        for found, positions in ((deleted, new - old), (restored, old - new)):
            if len(positions) > 0:
                found[file.location] = positions
    return deleted, restored


def _deleted_positions(io: FileIO, file: FileRead, deleted_rows: DeletedRows) -> BitMap64:
    """The positions of the deleted rows of one file; for equality deletes the compared columns are read."""
    deletes = deleted_rows.of(file.location)
    if len(deletes.tests) == 0:
        return BitMap64() if deletes.positions is None else within(deletes.positions, file.row_count)
    live = BitMap64()
    for batch in read_file(io, replace(file, filter=ALWAYS_TRUE, deletes=deletes)):
        live |= bitmap_of(np.asarray(batch.column(POS.name), np.int64))
    return all_positions(file.row_count) - live


def _copied(io: FileIO, step: ChangeStep) -> tuple[Positions | None, Positions | None]:
    """The positions of rows that a step only moved to another file, by old file and by new file.

    Such a row has the same id and was last updated by the same commit.
    """
    if not (_has_row_ids(step.removed) and _has_row_ids(step.added)):
        return None, None
    old, new = _LineageRows(io, step.removed), _LineageRows(io, step.added)
    _, old_rows, new_rows = np.intersect1d(old.ids, new.ids, return_indices=True)
    is_same = old.updated[old_rows] == new.updated[new_rows]
    return old.positions(old_rows[is_same]), new.positions(new_rows[is_same])


def _has_row_ids(plan: Plan) -> bool:
    return int(plan.tasks["first_row_id"].null_count) < plan.files


class _LineageRows:
    """The ids and last updates of the live rows of planned files that have ids."""

    def __init__(self, io: FileIO, plan: Plan) -> None:
        plan = plan.with_tasks(plan.tasks.filter(pc.is_valid(plan.tasks["first_row_id"])))
        schema = Schema(fields=(ROW_ID, LAST_UPDATED, POS))
        deleted = plan.deleted_rows(io)

        def batches(part: FileRead) -> Iterator[tuple[str, pa.RecordBatch]]:
            live = replace(part, filter=ALWAYS_TRUE, deletes=deleted.of(part.location))
            return ((part.location, batch) for batch in read_file(io, live))

        found = list(read_in_parallel(replace(plan, schema=schema), batches))
        self._files = [location for location, _ in found]
        rows = pa.Table.from_batches([batch for _, batch in found], arrow_schema(schema))
        self._owners: Ints = np.repeat(np.arange(len(found)), [batch.num_rows for _, batch in found])
        self.ids, self.updated, self._positions = (
            np.asarray(pc.fill_null(rows[field.name], -1), np.int64) for field in schema.fields
        )

    def positions(self, rows: Ints) -> Positions:
        """The positions of some of the rows, by file."""
        rows = np.sort(rows)
        owners = self._owners[rows]
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        positions: dict[str, BitMap64] = {}
        for part in np.split(rows, starts[1:]) if len(rows) > 0 else ():
            add_positions(positions, self._files[int(self._owners[part[0]])], bitmap_of(self._positions[part]))
        return positions

"""Reads row groups of one file: deleted rows are removed first, then the filter is evaluated (spec: Scan Planning).

In columnar formats, the columns that decide which rows are returned are read first. Other columns are read only where
rows remain, so a selective filter costs little more than its own columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.expr.filter.batch_filter import evaluate_rows
from icefloe.expr.filter.nodes import Bound
from icefloe.formats.parquet.field_ids import field_id
from icefloe.formats.read.align import Aligner
from icefloe.formats.read.batches import cut_like, filtered, in_parts
from icefloe.formats.read.data_file import BATCH_BYTES, RowRange, StoredFile
from icefloe.formats.read.file_read import FileRead, RowTest
from icefloe.formats.read.inherited_columns import Completer
from icefloe.formats.read.row_group_pruning import MOST_RANGES, joined_ranges
from icefloe.model.schema.schema import Schema, merged_fields
from icefloe.model.schema.types import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """A condition that returned rows satisfy, and the columns that it reads."""

    schema: Schema
    passes: Callable[[pa.RecordBatch], pa.BooleanArray]  # true where a row, with the columns of the table, is kept


# The columns of batches and the number of tests: batches with the same key have the same stored schema.
_LayoutKey: TypeAlias = tuple[Literal["all", "tested", "joined"], int]


class RowGroupReader:
    """Reads row groups of one file, one after the other; ``tested`` has the columns of the filter."""

    def __init__(self, file: StoredFile, read: FileRead, filter: Bound, tested: Schema) -> None:
        self._file = file
        self._read = read
        self._complete = Completer(read.schema, read.location, read.lineage)
        self._deleted = _DeletedPositions(read.deletes.positions)
        self._not_deleted = [_not_deleted(test) for test in read.deletes.tests]
        self._filter = _Test(schema=tested, passes=lambda rows: evaluate_rows(filter, rows))
        self._layouts: dict[_LayoutKey, _BatchLayout] = {}

    def rows(self, rows: RowRange, *, all_match: bool) -> Iterator[pa.RecordBatch]:
        """The rows of a range that are not deleted and match the filter; with ``all_match`` it is not evaluated.

        If the ``_deleted`` column is requested, deleted rows are returned too.
        """
        filters = [] if all_match else [self._filter]
        if self._complete.has_deleted_column:
            return self._with_deleted_rows(rows, filters)
        if self._deleted.count(rows.start, rows.rows) == rows.rows:
            return iter(())
        tests = [*self._not_deleted, *filters]
        output = self._complete.stored
        tested = merged_fields(*(test.schema.fields for test in tests))
        tested_ids = {field.id for field in tested}
        others = tuple(field for field in output.fields if field.id in self._file.ids and field.id not in tested_ids)
        if len(tests) == 0 or len(others) == 0 or not self._file.is_columnar:
            return self._in_one_step(rows, merged_fields(output.fields, tested), tests)
        both = tuple(field for field in output.fields if field.id in tested_ids)
        return self._in_two_steps(rows, merged_fields(both, tested), others, tests)

    def _in_one_step(self, rows: RowRange, fields: tuple[Field, ...], tests: list[_Test]) -> Iterator[pa.RecordBatch]:
        position = rows.start
        for batch in self._batches(rows, fields):
            layout = self._layout(("all", len(tests)), batch, tests)
            keep = layout.passing(batch, self._deleted.not_deleted(position, batch.num_rows))
            if keep is None:
                yield self._complete(layout.output(layout.returned(batch)), position)
            elif keep.true_count > 0:
                yield self._complete(layout.output(filtered(layout.returned(batch), keep)), position, keep)
            position += batch.num_rows

    def _with_deleted_rows(self, rows: RowRange, tests: list[_Test]) -> Iterator[pa.RecordBatch]:
        """The rows that pass the tests, deleted or not, with the column that says which are deleted."""
        position, of_deletes = rows.start, len(self._not_deleted)
        both = [*self._not_deleted, *tests]
        fields = merged_fields(self._complete.stored.fields, *(test.schema.fields for test in both))
        for batch in self._batches(rows, fields):
            layout = self._layout(("all", len(both)), batch, both)
            live = layout.passing(batch, self._deleted.not_deleted(position, batch.num_rows), slice(of_deletes))
            deleted = pa.repeat(False, batch.num_rows) if live is None else pc.invert(live)
            keep = layout.passing(batch, None, slice(of_deletes, None))
            returned = layout.returned(batch)
            if keep is not None:
                returned, deleted = filtered(returned, keep), deleted.filter(keep)
            if returned.num_rows > 0:
                yield self._complete(layout.output(returned), position, keep, deleted)
            position += batch.num_rows

    def _in_two_steps(
        self, rows: RowRange, tested: tuple[Field, ...], others: tuple[Field, ...], tests: list[_Test]
    ) -> Iterator[pa.RecordBatch]:
        """The tested columns are read first; of the others only ranges in which rows pass the tests."""
        masks, passed, position = [], [], rows.start
        for batch in self._batches(rows, tested):
            layout = self._layout(("tested", len(tests)), batch, tests)
            keep = layout.passing(batch, self._deleted.not_deleted(position, batch.num_rows))
            keep = pa.repeat(True, batch.num_rows) if keep is None else keep
            masks.append(keep)
            passed.append(filtered(layout.returned(batch), keep))
            position += batch.num_rows
        for some, some_masks, some_passed in self._ranges_to_read(rows, others, masks, passed):
            yield from self._beside(some, others, some_masks, some_passed, ("joined", len(tests)))

    def _ranges_to_read(
        self, rows: RowRange, others: tuple[Field, ...], masks: list[pa.BooleanArray], passed: list[pa.RecordBatch]
    ) -> Iterator[tuple[RowRange, list[pa.BooleanArray], list[pa.RecordBatch]]]:
        """The ranges of other columns to read, with their masks and passed rows; all rows unless few of them passed."""
        count = sum(mask.true_count for mask in masks)
        if count == 0:
            return
        ranges = [[rows]] if 2 * count > rows.rows else list(_ranges_by_mask(rows, masks))
        covered = sum(some.rows for of_mask in ranges for some in of_mask)
        if 2 * covered > rows.rows or not self._file.reads_pages(rows, others):
            yield rows, masks, passed
            return
        start = rows.start
        for of_mask, mask, batch in zip(ranges, masks, passed, strict=True):
            done = 0
            for some in of_mask:
                keep = mask.slice(some.start - start, some.rows)
                yield some, [keep], [batch.slice(done, keep.true_count)]
                done += keep.true_count
            start += len(mask)

    def _beside(
        self,
        rows: RowRange,
        others: tuple[Field, ...],
        masks: list[pa.BooleanArray],
        passed: list[pa.RecordBatch],
        key: _LayoutKey,
    ) -> Iterator[pa.RecordBatch]:
        """The rows that the masks keep: their other columns, which are read, and the columns of ``passed``."""
        position, done = rows.start, 0
        for index, at, batch in self._batches_like(rows, others, masks):
            keep, done = masks[index].slice(at, batch.num_rows), 0 if at == 0 else done
            count = keep.true_count
            if count > 0:
                kept = batch if count == len(keep) else filtered(batch, keep)
                kept = _joined(kept, passed[index].slice(done, count))
                yield self._complete(self._layout(key, kept, []).output(kept), position, keep)
            position, done = position + batch.num_rows, done + count

    def _batches_like(
        self, rows: RowRange, fields: tuple[Field, ...], masks: list[pa.BooleanArray]
    ) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        """Batches cut where the masks end: the index of the mask, the position in it, and the rows."""
        batches = self._file.read(rows, fields, self._read.batch_rows)
        for index, at, batch in cut_like(batches, [len(mask) for mask in masks]):
            for part in in_parts(batch, BATCH_BYTES, masks[index].slice(at, batch.num_rows).true_count):
                yield index, at, part
                at += part.num_rows

    def _batches(self, rows: RowRange, fields: tuple[Field, ...]) -> Iterator[pa.RecordBatch]:
        for batch in self._file.read(rows, fields, self._read.batch_rows):
            yield from in_parts(batch, BATCH_BYTES)

    def _layout(self, key: _LayoutKey, batch: pa.RecordBatch, tests: list[_Test]) -> _BatchLayout:
        if key not in self._layouts:
            self._layouts[key] = _BatchLayout(batch.schema, self._read, self._complete.stored, tests)
        return self._layouts[key]


class _BatchLayout:
    """Tests batches of one stored schema, and converts them to the columns of ``output``."""

    def __init__(self, stored: pa.Schema, read: FileRead, output: Schema, tests: list[_Test]) -> None:
        ids = {field.id for field in output.fields}
        self._indices = [index for index, field in enumerate(stored) if field_id(field) in ids]
        self._has_more = len(self._indices) < len(stored)
        self._read = read
        self._stored = stored
        self._output = output
        self._tests = [(self._aligner(stored, test.schema), test.passes) for test in tests]

    @cached_property
    def output(self) -> Aligner:
        """Converts returned columns to those of the table."""
        return self._aligner(pa.schema([self._stored.field(index) for index in self._indices]), self._output)

    def _aligner(self, stored: pa.Schema, schema: Schema) -> Aligner:
        return Aligner(stored, schema, self._read.location, self._read.constants, self._read.table)

    def returned(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of a batch to return, as they are stored."""
        return batch.select(self._indices) if self._has_more else batch

    def passing(
        self, batch: pa.RecordBatch, keep: pa.BooleanArray | None, tests: slice = slice(None)
    ) -> pa.BooleanArray | None:
        """True for the rows of ``keep`` that pass the tests, all by default; none if all rows of the batch do."""
        for align, passes in self._tests[tests]:
            if keep is not None and keep.true_count == 0:
                break
            passed = passes(align(batch))
            keep = passed if keep is None else pc.and_(keep, passed)
        return None if keep is not None and keep.true_count == len(keep) else keep


class _DeletedPositions:
    """The deleted positions of one file, sorted, to be looked up by range."""

    def __init__(self, deleted: BitMap64 | None) -> None:
        self._positions = np.zeros(0, np.uint64) if deleted is None else np.asarray(deleted.to_array())

    def _bounds(self, start: int, rows: int) -> tuple[int, int]:
        first, last = np.searchsorted(self._positions, np.array([start, start + rows], np.uint64)).tolist()
        return first, last

    def count(self, start: int, rows: int) -> int:
        """How many of ``rows`` rows from ``start`` on are deleted."""
        first, last = self._bounds(start, rows)
        return last - first

    def not_deleted(self, start: int, rows: int) -> pa.BooleanArray | None:
        """True for those of ``rows`` rows from ``start`` on that are not deleted; none if no row is deleted."""
        first, last = self._bounds(start, rows)
        if first == last:
            return None
        keep = np.ones(rows, np.bool_)
        keep[self._positions[first:last].astype(np.int64) - start] = False
        return pa.array(keep)


def _ranges_by_mask(rows: RowRange, masks: list[pa.BooleanArray]) -> Iterator[list[RowRange]]:
    """For each mask, the ranges that cover the rows it keeps; one range of all its rows if those cover most of it."""
    start = rows.start
    for mask in masks:
        whole = RowRange(group=rows.group, start=start, rows=len(mask))
        yield [some for some, _ in joined_ranges(whole, ((some, False) for some in ranges_of(mask, whole)))]
        start += len(mask)


def ranges_of(mask: pa.BooleanArray, rows: RowRange) -> list[RowRange]:
    """The ranges that cover the rows a mask keeps; rows close to each other are in one range.

    >>> mask = pa.array([n in (1, 2, 40) for n in range(64)])
    >>> [(some.start, some.rows) for some in ranges_of(mask, RowRange(group=0, start=100, rows=64))]
    [(101, 2), (140, 1)]
    """
    kept = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
    if len(kept) == 0:
        return []
    ends = np.flatnonzero(np.diff(kept) > rows.rows // MOST_RANGES)
    firsts, lasts = kept[np.append(0, ends + 1)].tolist(), kept[np.append(ends, len(kept) - 1)].tolist()
    return [
        RowRange(group=rows.group, start=rows.start + first, rows=last + 1 - first)
        for first, last in zip(firsts, lasts, strict=True)
    ]


def _not_deleted(test: RowTest) -> _Test:
    """A test of deleted rows as one of rows to keep; the file may lack a required column that the table has dropped."""
    optional = Schema(fields=tuple(replace(field, required=False) for field in test.schema.fields))
    return _Test(schema=optional, passes=lambda rows: pa.array(~test(rows)))


def _joined(batch: pa.RecordBatch, more: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of both, which have the same number of rows."""
    if more.num_columns == 0:
        return batch
    return pa.RecordBatch.from_arrays([*batch.columns, *more.columns], schema=pa.schema([*batch.schema, *more.schema]))

"""Rows of the pieces of one file: deleted rows go first, then the filter is asked (spec: Scan Planning).

Where columns can be read apart, those that decide are read first. A piece in which no row is left is then not read any
further, so that a selective filter costs little more than its own columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expr.filter.batch_filter import evaluate_rows
from icefloe.expr.filter.nodes import Bound
from icefloe.formats.parquet.field_ids import field_id
from icefloe.formats.read.align import Aligner
from icefloe.formats.read.batch_size import cut_like, in_parts
from icefloe.formats.read.data_file import BATCH_BYTES, Piece, StoredFile
from icefloe.formats.read.inherited_columns import Completer
from icefloe.formats.read.row_group_pruning import RUNS, joined
from icefloe.formats.read.row_mask import DeletedPositions, FileDrops, RowTest, filtered
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, List, Map, Struct, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One file, what to return of it, and which rows."""

    file: StoredFile
    location: str
    complete: Completer
    table: Schema  # all columns that the table has
    tested: Schema  # the columns that the filter needs
    filter: Bound
    drops: FileDrops
    constants: Mapping[int, pa.Scalar]  # what tests see, and rows have, in place of columns that are not there
    batch_rows: int
    by_column: bool  # whether a column can be read without the others


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """Something that rows must pass, and the columns that it looks at."""

    schema: Schema
    passes: Callable[[pa.RecordBatch], pa.BooleanArray]  # true where a row, as the table sees it, stays


class PieceReader:
    """Reads pieces of one file, one after the other."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._deleted = DeletedPositions(reading.drops.positions)
        self._drops = [_drop(test) for test in reading.drops.tests]
        self._filter = _Test(schema=reading.tested, passes=lambda rows: evaluate_rows(reading.filter, rows))
        self._shapes: dict[str, _Shape] = {}

    def rows(self, piece: Piece, *, every: bool) -> Iterator[pa.RecordBatch]:
        """The rows of a piece that are not deleted and match the filter; ``every`` says that all are known to match.

        If the ``_deleted`` column is requested, deleted rows are returned too.
        """
        if self._reading.complete.has_deleted_column:
            return self._flagged(piece, [] if every else [self._filter])
        if self._deleted.count(piece.start, piece.rows) == piece.rows:
            return iter(())
        tests = self._drops if every else [*self._drops, self._filter]
        output = self._reading.complete.stored
        early = merged(*(test.schema.fields for test in tests))
        decided = {field.id for field in early}
        stored = self._reading.file.ids
        late = tuple(field for field in output.fields if field.id in stored and field.id not in decided)
        if len(tests) == 0 or len(late) == 0 or not self._reading.by_column:
            return self._at_once(piece, merged(output.fields, early), tests)
        both = tuple(field for field in output.fields if field.id in decided)
        return self._in_two_steps(piece, merged(both, early), late, tests)

    def _at_once(self, piece: Piece, fields: tuple[Field, ...], tests: list[_Test]) -> Iterator[pa.RecordBatch]:
        position = piece.start
        for batch in self._read(piece, fields):
            shape = self._shape(f"all for {len(tests)}", batch, tests)
            keep = shape.kept(batch, self._deleted.kept(position, batch.num_rows))
            if keep is None:
                yield self._reading.complete(shape.output(shape.returned(batch)), position)
            elif keep.true_count > 0:
                rows = shape.output(filtered(shape.returned(batch), keep))
                yield self._reading.complete(rows, position, keep)
            position += batch.num_rows

    def _flagged(self, piece: Piece, tests: list[_Test]) -> Iterator[pa.RecordBatch]:
        """The rows that pass the tests, with a flag that says which are deleted."""
        position, both = piece.start, [*self._drops, *tests]
        fields = merged(self._reading.complete.stored.fields, *(test.schema.fields for test in both))
        for batch in self._read(piece, fields):
            live = self._shape("live", batch, self._drops)
            alive = live.kept(batch, self._deleted.kept(position, batch.num_rows))
            deleted = pa.repeat(False, batch.num_rows) if alive is None else pc.invert(alive)
            keep = self._shape(f"flagged for {len(tests)}", batch, tests).kept(batch, None)
            rows = live.returned(batch)
            if keep is not None:
                rows, deleted = filtered(rows, keep), deleted.filter(keep)
            if rows.num_rows > 0:
                yield self._reading.complete(live.output(rows), position, keep, deleted)
            position += batch.num_rows

    def _in_two_steps(
        self, piece: Piece, early: tuple[Field, ...], late: tuple[Field, ...], tests: list[_Test]
    ) -> Iterator[pa.RecordBatch]:
        masks, decided, position = [], [], piece.start
        for batch in self._read(piece, early):
            shape = self._shape(f"early for {len(tests)}", batch, tests)
            keep = shape.kept(batch, self._deleted.kept(position, batch.num_rows))
            keep = pa.repeat(True, batch.num_rows) if keep is None else keep
            masks.append(keep)
            decided.append(filtered(shape.returned(batch), keep))
            position += batch.num_rows
        for part, kept, rows in self._left(piece, late, masks, decided):
            yield from self._late(part, late, kept, rows, f"both for {len(tests)}")

    def _left(
        self, piece: Piece, late: tuple[Field, ...], masks: list[pa.BooleanArray], decided: list[pa.RecordBatch]
    ) -> Iterator[tuple[Piece, list[pa.BooleanArray], list[pa.RecordBatch]]]:
        """What is to be read beside the rows that are left: all of the piece, or runs of it if those are few."""
        count = sum(mask.true_count for mask in masks)
        if count == 0:
            return
        runs = [[piece]] if 2 * count > piece.rows else list(_runs(piece, masks))
        covered = sum(part.rows for parts in runs for part in parts)
        if 2 * covered > piece.rows or not self._reading.file.divides(piece, late):
            yield piece, masks, decided
            return
        start = piece.start
        for parts, mask, rows in zip(runs, masks, decided, strict=True):
            done = 0
            for part in parts:
                kept = mask.slice(part.start - start, part.rows)
                yield part, [kept], [rows.slice(done, kept.true_count)]
                done += kept.true_count
            start += len(mask)

    def _late(
        self,
        piece: Piece,
        fields: tuple[Field, ...],
        masks: list[pa.BooleanArray],
        decided: list[pa.RecordBatch],
        kind: str,
    ) -> Iterator[pa.RecordBatch]:
        """Rows that the masks keep: the columns that were not needed to decide, beside those that were."""
        position, done = piece.start, 0
        for place, at, part in self._read_late(piece, fields, masks):
            keep, done = masks[place].slice(at, part.num_rows), 0 if at == 0 else done
            count = keep.true_count
            if count > 0:
                rows = _beside(part if count == len(keep) else filtered(part, keep), decided[place].slice(done, count))
                yield self._reading.complete(self._shape(kind, rows, []).output(rows), position, keep)
            position, done = position + part.num_rows, done + count

    def _read_late(
        self, piece: Piece, fields: tuple[Field, ...], masks: list[pa.BooleanArray]
    ) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        """The rows beside those of the masks: which mask, where in it, and the rows."""
        batches = self._reading.file.read(piece, fields, self._reading.batch_rows)
        for place, at, batch in cut_like(batches, [len(mask) for mask in masks]):
            for part in in_parts(batch, BATCH_BYTES, masks[place].slice(at, batch.num_rows).true_count):
                yield place, at, part
                at += part.num_rows

    def _read(self, piece: Piece, fields: tuple[Field, ...]) -> Iterator[pa.RecordBatch]:
        for batch in self._reading.file.read(piece, fields, self._reading.batch_rows):
            yield from in_parts(batch, BATCH_BYTES)

    def _shape(self, kind: str, batch: pa.RecordBatch, tests: list[_Test]) -> _Shape:
        """What is known of batches that are read for the same reason and so have the same schema."""
        if kind not in self._shapes:
            self._shapes[kind] = _Shape(batch.schema, self._reading, tests)
        return self._shapes[kind]


class _Shape:
    """How batches of one stored schema are tested and returned."""

    def __init__(self, stored: pa.Schema, reading: Reading, tests: list[_Test]) -> None:
        output = {field.id for field in reading.complete.stored.fields}
        self._places = [place for place, field in enumerate(stored) if field_id(field) in output]
        self._has_more = len(self._places) < len(stored)
        self._reading = reading
        self._stored = stored
        self._tests = [(self._aligner(stored, test.schema), test.passes) for test in tests]

    @cached_property
    def output(self) -> Aligner:
        """What makes returned columns those of the table."""
        stored = pa.schema([self._stored.field(place) for place in self._places])
        return self._aligner(stored, self._reading.complete.stored)

    def _aligner(self, stored: pa.Schema, schema: Schema) -> Aligner:
        reading = self._reading
        return Aligner(stored, schema, reading.location, reading.constants, reading.table)

    def returned(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of a batch that are to be returned, as they are stored."""
        return batch.select(self._places) if self._has_more else batch

    def kept(self, batch: pa.RecordBatch, keep: pa.BooleanArray | None) -> pa.BooleanArray | None:
        """True for the rows of ``keep`` that pass all tests; none if no row of the batch is lost."""
        for align, passes in self._tests:
            if keep is not None and keep.true_count == 0:
                break
            passed = passes(align(batch))
            keep = passed if keep is None else pc.and_(keep, passed)
        return None if keep is not None and keep.true_count == len(keep) else keep


def _runs(piece: Piece, masks: list[pa.BooleanArray]) -> Iterator[list[Piece]]:
    """For each mask, the runs that cover the rows it keeps; one run of all its rows if those cover most of it."""
    start = piece.start
    for mask in masks:
        whole = Piece(index=piece.index, start=start, rows=len(mask))
        yield [part for part, _ in joined(whole, ((part, False) for part in runs_of(mask, whole)))]
        start += len(mask)


def runs_of(mask: pa.BooleanArray, piece: Piece) -> list[Piece]:
    """The runs of a piece that cover the rows a mask keeps; rows near to each other are in one run.

    >>> mask = pa.array([n in (1, 2, 40) for n in range(64)])
    >>> [(part.start, part.rows) for part in runs_of(mask, Piece(index=0, start=100, rows=64))]
    [(101, 2), (140, 1)]
    """
    rows = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
    if len(rows) == 0:
        return []
    ends = np.flatnonzero(np.diff(rows) > piece.rows // RUNS)
    firsts, lasts = rows[np.append(0, ends + 1)], rows[np.append(ends, len(rows) - 1)]
    runs = zip(firsts.tolist(), lasts.tolist(), strict=True)
    return [Piece(index=piece.index, start=piece.start + first, rows=last + 1 - first) for first, last in runs]


def _drop(test: RowTest) -> _Test:
    """Deletes by value as a test that rows must pass; the file may lack a column that was dropped since."""
    relaxed = Schema(fields=tuple(replace(field, required=False) for field in test.schema.fields))
    return _Test(schema=relaxed, passes=lambda rows: pa.array(~test(rows)))


def _beside(batch: pa.RecordBatch, more: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of both, which have the same number of rows."""
    if more.num_columns == 0:
        return batch
    return pa.RecordBatch.from_arrays([*batch.columns, *more.columns], schema=pa.schema([*batch.schema, *more.schema]))


def merged(*several: tuple[Field, ...]) -> tuple[Field, ...]:
    """The columns of several schemas together, each id once; structs have the fields of all.

    Returns fields, not a schema: different columns of older and newer schemas can have the same name.
    """
    by_id: dict[int, Field] = {}
    for field in (field for fields in several for field in fields):
        known = by_id.get(field.id)
        by_id[field.id] = field if known is None else replace(known, type=_merged_type(known.type, field.type))
    return tuple(by_id.values())


def _merged_type(one: Type, other: Type) -> Type:
    match one, other:
        case Struct(fields), Struct(more):
            return Struct(merged(fields, more))
        case List(), List():
            return replace(one, element=_merged_type(one.element, other.element))
        case Map(), Map():
            key, value = _merged_type(one.key, other.key), _merged_type(one.value, other.value)
            return replace(one, key=key, value=value)
        case _:
            return one

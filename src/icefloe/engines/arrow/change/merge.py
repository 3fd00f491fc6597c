"""A merge in this process: which rows of the table it updates or deletes, and the rows it writes.

The table is read once for what decides, and once more for the rows that change, if the new ones are made of more than
the source. A row that is updated keeps its id (spec: Row-level Deletes).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.deletes.bitmaps import bitmap_of
from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.engines.arrow.change.key_index import Ints
from icefloe.engines.arrow.change.merge_source import MergeSource
from icefloe.engines.arrow.read.row_positions import Chunk, located_rows, rows_at
from icefloe.engines.arrow.write.moved_rows import choose_files
from icefloe.engines.merge import SOURCE, TARGET, Action, Clause, When, columns_read
from icefloe.errors import InputError
from icefloe.expr.value.expressions import Value, evaluate_value
from icefloe.formats.write.split_by_partition import write_files
from icefloe.io.file_io import FileIO
from icefloe.model.arrow.conform import arrow_type, conform
from icefloe.model.entries import empty
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.metadata_columns import POS, ROW_ID
from icefloe.model.schema.schema import Schema
from icefloe.scan.tasks import Plan

MAX_PAIRS = 100_000_000  # that are compared one by one where no equality joins the sides
_PAIRS_AT_ONCE = 1 << 20
_ROWS_AT_ONCE = 1 << 17
_NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Updates:
    """Rows of one file to be written anew: their positions in order, the clause and source row of each, and its id."""

    positions: Ints
    clauses: Ints
    sources: Ints
    ids: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge comes to: rows of the table that leave, those that come back in another form, and new ones."""

    positions: Mapping[str, BitMap64]
    updates: Mapping[str, Updates]
    inserts: tuple[tuple[Clause, Ints], ...]  # with the rows of the source
    updated: int
    deleted: int

    @property
    def inserted(self) -> int:
        """How many rows are new."""
        return sum(len(rows) for _, rows in self.inserts)


def find_merged(
    io: FileIO, plan: Plan, drops: DeletedRows, source: MergeSource, *, settled: int | None = None
) -> Merged:
    """Decide about every row of the planned files and of the source; only row ids below ``settled`` are kept."""
    if not source.is_keyed:
        _check_size(plan, source)
    finder = _Finder(source, 0 if settled is None else settled)
    fields = tuple(field for field in source.schema.fields if field.name in source.read)
    read = Schema(fields=(*fields, POS, ROW_ID))
    with closing(located_rows(io, plan, drops, read, at_least=source.index.batch_rows)) as chunks:
        for chunk in chunks:
            finder.take(chunk)
    return finder.merged()


def _check_size(plan: Plan, source: MergeSource) -> None:
    rows = pc.sum(plan.tasks["record_count"], min_count=0).as_py()
    if rows * source.rows > MAX_PAIRS:
        raise InputError(
            f"merge: no equality joins the table and the source, so {rows} x {source.rows} pairs of rows would be"
            " compared; add an equality such as t.id = s.id"
        )


class _Finder:
    """Decides chunk by chunk; keeps what was decided."""

    def __init__(self, source: MergeSource, settled: int) -> None:
        self._source = source
        self._settled = settled
        self._matched = source.of(When.MATCHED)
        self._alone = source.of(When.NOT_MATCHED_BY_SOURCE)
        self._seen = np.zeros(source.rows, np.bool_)
        self._positions: dict[str, BitMap64] = {}
        self._updates: dict[str, list[Updates]] = {}
        self._is_update = np.array([clause.action is Action.UPDATE for clause in source.clauses], np.bool_)
        self._deleted = 0

    def take(self, chunk: Chunk) -> None:
        """Decide about the rows of a chunk."""
        index, rows = self._source.index, chunk.rows.num_rows
        groups = index.key_numbers(self._source.keys_of(chunk.rows), rows)
        ends = np.cumsum(index.row_counts(groups))
        start = 0
        while start < rows:
            done = ends[start - 1] if start > 0 else 0
            stop = max(start + 1, int(np.searchsorted(ends, done + _PAIRS_AT_ONCE, side="right")))
            self._part(chunk, groups[start:stop], start)
            start = stop

    def _part(self, chunk: Chunk, groups: Ints, start: int) -> None:
        places, sources = self._source.index.pairs(groups)
        places += start
        if self._source.rest is not None:
            joined = _true(self._source.rest, self._columns(self._source.rest, chunk, places, sources), len(places))
            places, sources = places[joined], sources[joined]
        self._seen[sources] = True
        if len(self._matched) > 0:
            self._check_single(places, sources)
        found = self._decide(self._matched, chunk, places, sources)
        if len(self._alone) > 0:
            others = np.ones(len(groups), np.bool_)
            others[places - start] = False
            alone = np.flatnonzero(others) + start
            found = [*found, *self._decide(self._alone, chunk, alone, np.full(len(alone), _NONE, np.int64))]
        self._keep(chunk, found)

    def _decide(
        self, clauses: Iterable[tuple[int, Clause]], chunk: Chunk, places: Ints, sources: Ints
    ) -> list[tuple[Ints, Ints, Ints]]:
        """Rows of the table with their clause, the first whose condition is true, and their row of the source."""
        decided = []
        for number, clause in clauses:
            chosen = np.ones(len(places), np.bool_)
            if clause.condition is not None:
                columns = self._columns(clause.condition, chunk, places, sources)
                chosen = _true(clause.condition, columns, len(places))
            taken = places[chosen]
            decided.append((taken, np.full(len(taken), number, np.int64), sources[chosen]))
            places, sources = places[~chosen], sources[~chosen]
        return decided

    def _keep(self, chunk: Chunk, decided: list[tuple[Ints, Ints, Ints]]) -> None:
        if len(decided) == 0:
            return
        places, clauses, sources = (np.concatenate(part) for part in zip(*decided, strict=True))
        order = np.argsort(places, kind="stable")
        places, clauses, sources = places[order], clauses[order], sources[order]
        ids = chunk.rows.column(ROW_ID.name).take(pa.array(places)).fill_null(self._settled).to_numpy()
        at, update = chunk.positions[places], self._is_update[clauses]
        self._deleted += int((~update).sum())
        for file, part in chunk.by_file(places):
            gone = bitmap_of(at[part])
            self._positions[file] = self._positions[file] | gone if file in self._positions else gone
            some = np.flatnonzero(update[part]) + part.start
            if len(some) > 0:
                new = Updates(positions=at[some], clauses=clauses[some], sources=sources[some], ids=ids[some])
                self._updates.setdefault(file, []).append(new)

    def _check_single(self, places: Ints, sources: Ints) -> None:
        again = np.flatnonzero(places[1:] == places[:-1])
        if len(again) > 0:
            first, second = (
                {name: column[int(row)].as_py() for name, column in self._source.columns.items()}
                for row in sources[again[0] : again[0] + 2]
            )
            raise InputError(
                f"merge: two rows of the source match the same row of the table: {first} and {second}; keep one of them"
            )

    def _columns(self, value: Value, chunk: Chunk, places: Ints, sources: Ints) -> dict[str, Any]:
        theirs = {name: chunk.rows.column(name) for name in columns_read(value, TARGET)}
        return {**_taken(TARGET, theirs, places), **source_columns(self._source, value, sources)}

    def merged(self) -> Merged:
        """All that was decided, about the rows of the source that matched nothing too."""
        updates = {file: _joined(parts) for file, parts in self._updates.items()}
        return Merged(
            positions=self._positions,
            updates=updates,
            inserts=tuple(self._inserts()),
            updated=sum(len(each.positions) for each in updates.values()),
            deleted=self._deleted,
        )

    def _inserts(self) -> Iterator[tuple[Clause, Ints]]:
        rows = np.flatnonzero(~self._seen)
        for _, clause in self._source.of(When.NOT_MATCHED):
            chosen = np.ones(len(rows), np.bool_)
            if clause.condition is not None:
                columns = source_columns(self._source, clause.condition, rows)
                chosen = _true(clause.condition, columns, len(rows))
            yield clause, rows[chosen]
            rows = rows[~chosen]


def _joined(parts: list[Updates]) -> Updates:
    order = np.argsort(np.concatenate([part.positions for part in parts]), kind="stable")

    def column(name: str) -> Ints:
        joined: Ints = np.concatenate([getattr(part, name) for part in parts])[order]
        return joined

    return Updates(
        positions=column("positions"), clauses=column("clauses"), sources=column("sources"), ids=column("ids")
    )


def _true(value: Value, columns: Mapping[str, Any], rows: int) -> Any:
    """Where a condition is true; where it is null, it is not."""
    found = evaluate_value(value, columns, rows)
    if not (pa.types.is_boolean(found.type) or pa.types.is_null(found.type)):
        raise InputError(f"merge: {value.text!r} is no condition, but {found.type}", value=value.text)
    return pc.fill_null(found.cast(pa.bool_()), False).to_numpy(zero_copy_only=False)


def _taken(side: str, columns: Mapping[str, pa.Array], places: Ints) -> dict[str, pa.Array]:
    numbers = pa.array(places)
    return {f"{side}.{name}": column.take(numbers) for name, column in columns.items()}


def source_columns(source: MergeSource, value: Value, rows: Ints) -> dict[str, pa.Array]:
    """The columns of the source that a value reads, at some of its rows."""
    return _taken(SOURCE, {name: source.columns[name] for name in columns_read(value, SOURCE)}, rows)


def write_merged(
    io: FileIO, plan: Plan, source: MergeSource, merged: Merged, metadata: TableMetadata, *, settled: int | None = None
) -> pa.Table:
    """Write the updated rows and the new ones to new data files; their entries."""
    if merged.updated + merged.inserted == 0:
        return empty()
    last = 0 if settled is None else settled
    keeps_ids = any(bool((each.ids < last).any()) for each in merged.updates.values())
    lineage = (ROW_ID,) if keeps_ids else ()
    schema = Schema(fields=(*metadata.schema.fields, *lineage))
    writer = _Writer(source, schema, last)
    rows = (batch for table in writer.tables(io, plan, merged) for batch in table.to_batches())
    return write_files(
        io,
        rows,
        schema=metadata.schema,
        spec=metadata.spec,
        sort_order=metadata.sort_order,
        data_location=metadata.data_location,
        properties=metadata.properties,
        lineage=lineage,
    )


class _Writer:
    """Makes the rows that a merge writes, with the columns of ``schema``, which may have the row id behind."""

    def __init__(self, source: MergeSource, schema: Schema, settled: int) -> None:
        self._source = source
        self._schema = schema
        self._settled = settled

    def tables(self, io: FileIO, plan: Plan, merged: Merged) -> Iterator[pa.Table]:
        """The updated rows, then the new ones, part by part."""
        if len(self._source.rewritten) > 0:
            yield from self._read_again(io, plan, merged)
        else:
            for updates in merged.updates.values():
                for first in range(0, len(updates.positions), _ROWS_AT_ONCE):
                    yield from self._updated(updates, np.arange(len(updates.positions))[first : first + _ROWS_AT_ONCE])
        for clause, rows in merged.inserts:
            for first in range(0, len(rows), _ROWS_AT_ONCE):
                some = rows[first : first + _ROWS_AT_ONCE]
                yield self._made(clause, {}, some, np.full(len(some), self._settled, np.int64))

    def _read_again(self, io: FileIO, plan: Plan, merged: Merged) -> Iterator[pa.Table]:
        fields = tuple(field for field in self._source.schema.fields if field.name in self._source.rewritten)
        read = Schema(fields=(*fields, POS))
        wanted = {file: bitmap_of(updates.positions) for file, updates in merged.updates.items()}
        with closing(rows_at(io, choose_files(plan, wanted), wanted, read, at_least=_ROWS_AT_ONCE)) as chunks:
            for chunk in chunks:
                start = 0
                for file, end in zip(chunk.files, chunk.ends.tolist(), strict=True):
                    updates, rows = merged.updates[file], chunk.rows.slice(start, end - start)
                    numbers = np.searchsorted(updates.positions, chunk.positions[start:end])
                    yield from self._updated(updates, numbers, rows)
                    start = end

    def _updated(self, updates: Updates, numbers: Ints, rows: pa.RecordBatch | None = None) -> Iterator[pa.Table]:
        """Some of the updates of a file, given what must be known of the rows that they replace."""
        clauses = updates.clauses[numbers]
        for number in np.unique(clauses).tolist():
            places = np.flatnonzero(clauses == number)
            chosen = numbers[places]
            old = {} if rows is None else {name: rows.column(name) for name in rows.schema.names if name != POS.name}
            columns = _taken(TARGET, old, places)
            yield self._made(self._source.clauses[number], columns, updates.sources[chosen], updates.ids[chosen])

    def _made(self, clause: Clause, old: Mapping[str, pa.Array], sources: Ints, ids: Ints) -> pa.Table:
        """New rows as a clause says, checked against the schema."""
        made: dict[str, Any] = {}
        fields = {field.name: field for field in self._schema.fields}
        for name, value in (clause.assignments or {}).items():
            columns = {**old, **source_columns(self._source, value, sources)}
            made[name] = evaluate_value(value, columns, len(sources), wanted=arrow_type(fields[name].type))
        if ROW_ID.name in fields:
            made[ROW_ID.name] = pa.array(ids, mask=ids >= self._settled)
        return conform(pa.table(made), self._schema)

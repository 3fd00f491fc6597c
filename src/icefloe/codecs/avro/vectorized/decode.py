"""Avro records into Arrow columns, many records at once (spec: Appendix A, Avro).

Records have no index: where one ends is known only after reading it.

``decode_together`` guesses where records start. The first text of a record, the path of a file, begins like that of its
neighbours, so its occurrences in the buffer show where records probably start. From all of these positions numpy reads
to the end of the record and on to the first text of the next one. If that chain leads from the first byte of the buffer
to the last, and has as many records as the blocks say, then the result is that of reading in order.

``decode_side_by_side`` needs many blocks, whose starts are known. It scans all blocks side by side, one record of each
block per step, to find where every record begins. Then all records are read together, column by column.

Otherwise ``UnsupportedError`` makes the caller read in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from icefloe.codecs.avro.projection import ColumnTree, Shape
from icefloe.codecs.avro.vectorized.columns import ByKey
from icefloe.codecs.avro.vectorized.lanes import Longs, Source
from icefloe.codecs.avro.vectorized.readers import Reader, Record, Text, reader_of
from icefloe.errors import UnsupportedError

FEWEST_RECORDS = 48  # with fewer, reading in order is faster
_PREFIX_BYTES = 16
_ROUNDS = 12
_MOST_ALIKE, _FEW = 4, 1000  # places like the first text of a record, for each record and in any case
_LENGTH_BYTES = 3  # of the length of a path, at most


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of the records, or of a record inside them, and what is wanted of it."""

    path: tuple[str, ...]
    reader: Reader
    wanted: Any  # None: it is skipped


def decode_together(blocks: Sequence[bytes], counts: Longs, schema: Any, shape: Shape) -> ColumnTree:
    """The wanted fields of all records of some blocks; ``counts`` are the numbers of records in the blocks."""
    record = reader_of(schema)
    if not isinstance(record, Record):
        raise UnsupportedError("not a record")
    fields = _flat(record, shape, ())
    first = next((i for i, field in enumerate(fields) if field.reader == Text(True)), None)
    if first is None:
        raise UnsupportedError("no text to recognise records by")
    source, ends = Source.of(blocks)
    head, tail = fields[:first], fields[first:]
    chain = _Chain(source, [field.reader for field in head], [field.reader for field in tail], int(counts.sum()))
    texts = chain.guess()
    if len(texts) != chain.count:
        texts = chain.search(texts)
    columns, stops = _read(source, tail, texts)
    if not chain.holds(texts, stops):
        texts = chain.search(texts)
        columns, stops = _read(source, tail, texts)
    if not np.array_equal(stops[np.cumsum(counts) - 1], ends):
        raise UnsupportedError("records do not end where their blocks do")
    columns |= _read(source, head, np.concatenate([[0], stops[:-1]]))[0]
    return _arrow(source, columns, shape, ())


def _flat(record: Record, shape: Shape | None, path: tuple[str, ...]) -> list[_Field]:
    """The fields of a record in order; nested records are flattened into their fields."""
    fields: list[_Field] = []
    for name, reader in record.fields:
        wanted = None if shape is None else shape.get(name)
        here = (*path, name)
        if isinstance(reader, Record):
            fields += _flat(reader, wanted if isinstance(wanted, Mapping) else None, here)
        elif isinstance(wanted, Mapping):
            raise UnsupportedError("a record where there may be none")
        else:
            fields.append(_Field(here, reader, wanted))
    return fields


def _read(source: Source, fields: list[_Field], at: Longs) -> tuple[dict[tuple[str, ...], Any], Longs]:
    columns: dict[tuple[str, ...], Any] = {}
    for field in fields:
        if field.wanted is None:
            at = field.reader.skip(source, at)
        else:
            columns[field.path], at = field.reader.read(source, at, field.wanted)
    return columns, at


def _arrow(source: Source, columns: Mapping[tuple[str, ...], Any], shape: Shape, path: tuple[str, ...]) -> ColumnTree:
    arrays: ColumnTree = {}
    for name, wanted in shape.items():
        here = (*path, name)
        if isinstance(wanted, Mapping):
            arrays[name] = _arrow(source, columns, wanted, here)
            continue
        column = columns[here]
        if isinstance(column, ByKey):
            arrays[name] = {key: values.arrow(source, wanted.value) for key, values in column.columns.items()}
        else:
            arrays[name] = column.arrow(source, wanted)
    return arrays


@dataclass(frozen=True, slots=True)
class _Chain:
    """The search for the first texts of records: ``head`` is what comes before it, ``tail`` begins with it."""

    source: Source
    head: list[Reader]
    tail: list[Reader]
    count: int

    def guess(self) -> Longs:
        """Where the first texts of records probably are."""
        return self._alike(self._first)

    @property
    def _first(self) -> int:
        return int(self._skip(self.head, np.zeros(1, np.int64))[0])

    def holds(self, texts: Longs, stops: Longs) -> bool:
        """Whether records that begin with these texts and end at these stops are all there are, in this order."""
        following = self._skip(self.head, stops[:-1])
        return bool(texts[0] == self._first and np.array_equal(following, texts[1:]) and stops[-1] == self.source.end)

    def search(self, guess: Longs) -> Longs:
        """The first texts of all records, from a guess that has others too or lacks some."""
        texts = ends = following = np.empty(0, np.int64)
        new = guess
        for _ in range(_ROUNDS):
            new_ends = self._skip(self.tail, new)
            texts, ends = np.concatenate([texts, new]), np.concatenate([ends, new_ends])
            following = np.concatenate([following, self._skip(self.head, new_ends)])
            order = np.argsort(texts)
            texts, ends, following = texts[order], ends[order], following[order]
            chain, missing = self._follow(texts, ends, following)
            if missing is None:
                return texts[chain]
            new = np.setdiff1d(self._alike(missing), texts)
        raise UnsupportedError("the first texts of records are too different")

    def _skip(self, readers: list[Reader], at: Longs) -> Longs:
        for reader in readers:
            at = reader.skip(self.source, at)
        return at

    def _alike(self, text: int) -> Longs:
        """Positions of possible texts with the same prefix as the text at a position, including that position."""
        source = self.source
        start, length, _ = (int(values[0]) for values in source.slices(np.array([text], np.int64)))
        if length <= 0 or start + length > source.end:
            raise UnsupportedError("no text where one should be")
        prefix = source.padded[start : start + min(length, _PREFIX_BYTES)]
        if source.padded.count(prefix) > _MOST_ALIKE * self.count + _FEW:
            raise UnsupportedError("too many places look like records")
        between = np.fromiter(map(len, source.padded.split(prefix)), np.int64)[:-1]
        candidates = np.cumsum(between + len(prefix)) - len(prefix) - 1
        candidates = candidates[candidates >= 0]
        for _ in range(_LENGTH_BYTES - 1):
            candidates = np.where((candidates > 0) & (source.data[candidates - 1] >= 0x80), candidates - 1, candidates)
        return np.unique(np.append(candidates, text))

    def _follow(self, texts: Longs, ends: Longs, following: Longs) -> tuple[Longs, int | None]:
        """The texts of the records in order, or the position of one that is not known yet."""
        index = np.minimum(np.searchsorted(texts, following), len(texts) - 1)
        known = (texts[index] == following).tolist()
        after, last = index.tolist(), (ends == self.source.end).tolist()
        here = int(np.searchsorted(texts, self._first))
        chain = [here]
        while not last[here]:
            if not known[here]:
                return np.array(chain), int(following[here])
            here = after[here]
            chain.append(here)
            if len(chain) > self.count:
                raise UnsupportedError("more records than the blocks say")
        if len(chain) != self.count:
            raise UnsupportedError("fewer records than the blocks say")
        return np.array(chain), None


def decode_side_by_side(blocks: Sequence[bytes], counts: Longs, plain: Any, wanted: pa.StructType) -> pa.StructArray:
    """The wanted fields of all records of some blocks; ``counts`` are the numbers of records in the blocks."""
    reader = reader_of(plain)
    source, ends = Source.of(blocks)
    starts = _starts(source, reader, counts, ends)
    rows, stops = reader.read(source, starts, wanted)
    if not (np.array_equal(stops[:-1], starts[1:]) and stops[-1] == ends[-1]):
        raise UnsupportedError("records are not as long as they say")
    return rows.arrow(source, wanted)


def _starts(source: Source, reader: Reader, counts: Longs, ends: Longs) -> Longs:
    """Where each record begins."""
    order = np.argsort(-counts, kind="stable")  # blocks with many records first: unfinished blocks stay in front
    first, many = (np.cumsum(counts) - counts)[order], counts[order]
    at = np.concatenate(([0], ends[:-1]))[order]
    going = np.searchsorted(-many, -np.arange(int(many[0])), side="left")  # blocks that still have a record, per step
    starts = np.empty(int(counts.sum()), np.int64)
    for step, blocks in enumerate(going.tolist()):
        here = at[:blocks]
        starts[first[:blocks] + step] = here
        at[:blocks] = reader.skip(source, here)
    if not np.array_equal(at, ends[order]):
        raise UnsupportedError("records do not end where their blocks do")
    return starts

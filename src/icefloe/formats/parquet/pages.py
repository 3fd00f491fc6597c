"""Some rows of a row group, by the pages that hold them (spec: Appendix A, Parquet).

A file can say where the pages of its columns are and what each holds. Arrow decodes whole column chunks, so the pages
that are wanted are put into a file of their own, in memory, which it then decodes (see ``codecs.parquet.pages``). What
a file says that cannot be true is not used: its row groups are then read whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from icefloe.codecs.parquet.pages import (
    MAGIC,
    Copied,
    PageBounds,
    PageHeader,
    Pages,
    ParquetTail,
    Range,
    decode_page_bounds,
    decode_pages,
    read_page_header,
)
from icefloe.errors import CorruptFile

Reopen: TypeAlias = Callable[[pa.BufferReader], Any]  # a file of copied pages, read like the one they are from

_LONGEST_FOOTER = 512 * 1024  # one twice as long takes a tenth of a second to walk
NEAR = 64 * 1024  # bytes between two reads that are rather read than skipped
_MANY = 16 * 1024 * 1024  # bytes, of which Arrow's threads decode columns sooner than one of them does
_THREADS = 8  # of a file far away


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """Rows of a row group that begin and end with pages of all of some columns."""

    first: int
    end: int


class PageReader:
    """The pages of an open Parquet file; ``far`` says that it is on remote storage, where every read is a request."""

    def __init__(self, source: Any, footer: Any, reopen: Reopen, *, far: bool) -> None:
        self._source = source
        self._footer = footer
        self._reopen = reopen
        self._far = far
        self._pages: dict[tuple[int, int], Pages | None] = {}

    @cached_property
    def _tail(self) -> ParquetTail | None:
        """The footer once more, as far as Arrow does not tell of it; none if it is too long, or not understood."""
        length = self._footer.serialized_size
        if length > _LONGEST_FOOTER:
            return None
        place = self._size - length - len(MAGIC) - 4
        with suppress(CorruptFile):
            return ParquetTail(self._read((place, place + length)))
        return None

    @cached_property
    def _size(self) -> int:
        return int(self._source.size())

    def knows(self, group: int, leaves: Sequence[int]) -> bool:
        """Whether it is known for these columns of a row group where their pages are."""
        self._load(group, leaves)
        return all(self._pages[group, leaf] is not None for leaf in leaves)

    def pages(self, group: int, leaf: int) -> Pages | None:
        """Where the pages of a column are, if that is known."""
        self._load(group, [leaf])
        return self._pages[group, leaf]

    def bounds(self, group: int, leaves: Sequence[int]) -> Mapping[int, PageBounds]:
        """The bounds of the pages of columns, for the columns that have them."""
        self._load(group, leaves)
        places, bounds_by_leaf = {}, {}
        for leaf in leaves:
            with suppress(CorruptFile):
                place = None if self._tail is None else self._tail.bounds_at(group, leaf)
                if place is not None and self._has(place):
                    places[leaf] = place
        for leaf, data in zip(places, self._fetch(list(places.values())), strict=True):
            pages = self._pages[group, leaf]
            with suppress(CorruptFile):
                if pages is not None and (bounds := decode_page_bounds(data, pages=len(pages.firsts))) is not None:
                    bounds_by_leaf[leaf] = bounds
        return bounds_by_leaf

    def _load(self, group: int, leaves: Sequence[int]) -> None:
        """Read where the pages of columns are, all that are not known yet at once."""
        missing = [leaf for leaf in leaves if (group, leaf) not in self._pages]
        self._pages |= {(group, leaf): None for leaf in missing}
        stored = self._footer.row_group(group)
        if len(missing) == 0 or not all(stored.column(leaf).has_offset_index for leaf in missing):
            return
        places, within, tail = {}, {}, self._tail
        for leaf in missing:
            with suppress(CorruptFile):
                place = None if tail is None else tail.pages_at(group, leaf)
                if tail is not None and place is not None and self._has(place, tail.stored(group, leaf)):
                    places[leaf] = place
                    within[leaf] = tail.stored(group, leaf)
        for leaf, data in zip(places, self._fetch(list(places.values())), strict=True):
            with suppress(CorruptFile):
                self._pages[group, leaf] = decode_pages(data, rows=stored.num_rows, within=within[leaf])

    def _has(self, *places: Range) -> bool:
        """Whether all of them are inside of the file."""
        return all(0 <= begin < end <= self._size for begin, end in places)

    def read(self, group: int, leaves: list[int], first: int, rows: int, *, threads: bool) -> pa.Table:
        """Read ``rows`` rows of a row group from row ``first`` on, of columns whose pages are known, in order."""
        tail = self._tail
        if tail is None:
            raise CorruptFile(f"the pages of row group {group} are not known")
        spans: dict[_Span, list[int]] = {}
        for together in self._columns(leaves):
            span = self._span(group, together, first, first + rows - 1)
            spans.setdefault(span, []).extend(together)
        copy = self._copy(tail, group, spans)
        file, threads = self._reopen(pa.BufferReader(copy)), threads and len(copy) > _MANY
        columns: list[tuple[int, pa.Field, pa.ChunkedArray]] = []
        ranks = {leaf: rank for rank, leaf in enumerate(leaves)}
        for place, (span, inside) in enumerate(spans.items()):
            names = [self._footer.schema.column(leaf).path for leaf in inside]
            table = file.read_row_group(place, columns=names, use_threads=threads)
            if table.num_rows != span.end - span.first:
                raise CorruptFile(f"pages of row group {group} have {table.num_rows} rows, not {span.end - span.first}")
            part = table.slice(first - span.first, rows)
            places = [min(ranks[leaf] for leaf in siblings) for siblings in self._columns(inside)]
            columns.extend(zip(places, part.schema, part.columns, strict=True))
        columns.sort(key=lambda column: column[0])
        schema = pa.schema([field for _, field, _ in columns])
        return pa.Table.from_arrays([values for *_, values in columns], schema=schema).combine_chunks()

    def _columns(self, leaves: list[int]) -> list[list[int]]:
        """Primitive columns, grouped by their top-level column."""
        by_column: dict[str, list[int]] = {}
        for leaf in sorted(leaves):
            by_column.setdefault(self._footer.schema.column(leaf).path.partition(".")[0], []).append(leaf)
        return list(by_column.values())

    def _span(self, group: int, leaves: list[int], first: int, last: int) -> _Span:
        """The fewest rows around some that are whole pages of all of the columns; all rows of the row group are."""
        total = self._footer.row_group(group).num_rows
        index = [pages for leaf in leaves if (pages := self.pages(group, leaf)) is not None]
        while True:
            ends = set()
            for pages in index:
                begin, end = pages.covering(first, last)
                after = int(pages.firsts[end + 1]) if end + 1 < len(pages.firsts) else total
                ends.add((int(pages.firsts[begin]), after))
            span = _Span(first=min(begin for begin, _ in ends), end=max(end for _, end in ends))
            if len(ends) == 1:
                return span
            first, last = span.first, span.end - 1

    def _copy(self, tail: ParquetTail, group: int, spans: Mapping[_Span, list[int]]) -> bytes:
        """A file with the pages of these columns, a row group for each span."""
        wanted = [(span, leaf) for span, leaves in spans.items() for leaf in leaves]
        pages = self._fetch([self._place(group, leaf, span) for span, leaf in wanted])
        headers = [self._headers(group, leaf, span, data) for (span, leaf), data in zip(wanted, pages, strict=True)]
        # A dictionary that the writer abandoned for too many distinct values may be far larger than the pages wanted.
        used = [any(header.by_dictionary for header in page_headers) for page_headers in headers]
        places = [self._dictionary(tail, group, leaf) for _, leaf in wanted]
        dictionaries = self._fetch([place if use else (0, 0) for place, use in zip(places, used, strict=True)])
        out, at = [MAGIC], len(MAGIC)
        copied: dict[_Span, dict[int, Copied]] = {span: {} for span in spans}
        for (span, leaf), dictionary, data, page_headers in zip(wanted, dictionaries, pages, headers, strict=True):
            size, values = len(dictionary) + len(data), sum(header.values for header in page_headers)
            copied[span][leaf] = Copied(start=at, dictionary=len(dictionary), size=size, values=values)
            out += [dictionary, data]
            at += size
        parts = [(span.end - span.first, columns) for span, columns in copied.items()]
        return b"".join([*out, tail.footer_of(group, parts)])

    def _place(self, group: int, leaf: int, span: _Span) -> Range:
        """Where the pages of a column are."""
        pages = self._known(group, leaf)
        begin, end = pages.covering(span.first, span.end - 1)
        return int(pages.offsets[begin]), int(pages.offsets[end] + pages.sizes[end])

    def _dictionary(self, tail: ParquetTail, group: int, leaf: int) -> Range:
        return tail.dictionary(group, leaf, int(self._known(group, leaf).offsets[0]))

    def _headers(self, group: int, leaf: int, span: _Span, data: bytes) -> list[PageHeader]:
        """The headers of the pages of a column, checked: outside of lists and maps every row has one value."""
        pages = self._known(group, leaf)
        begin, end = pages.covering(span.first, span.end - 1)
        starts = (pages.offsets[begin : end + 1] - pages.offsets[begin]).tolist()
        headers = [read_page_header(data, start) for start in starts]
        values, rows = sum(header.values for header in headers), span.end - span.first
        column = self._footer.schema.column(leaf)
        if values != rows and column.max_repetition_level == 0:
            raise CorruptFile(
                f"pages of column {column.path!r} of row group {group} have {values} values, and by the index of pages"
                f" {rows} rows",
                field=column.path,
            )
        return headers

    def _known(self, group: int, leaf: int) -> Pages:
        pages = self.pages(group, leaf)
        if pages is None:
            raise CorruptFile(f"the pages of column {leaf} of row group {group} are not known")
        return pages

    def _fetch(self, places: list[Range]) -> list[bytes]:
        """Bytes of the file; ranges that are near to each other are read together."""
        runs: list[Range] = []
        for begin, end in sorted(place for place in places if place[0] < place[1]):
            if len(runs) > 0 and begin <= runs[-1][1] + NEAR:
                runs[-1] = (runs[-1][0], max(runs[-1][1], end))
            else:
                runs.append((begin, end))
        if self._far and len(runs) > 1:
            with ThreadPoolExecutor(min(_THREADS, len(runs)), thread_name_prefix="icefloe-pages") as pool:
                data = list(pool.map(self._read, runs))
        else:
            data = [self._read(run) for run in runs]
        starts = [begin for begin, _ in runs]
        return [_cut(place, starts, data) for place in places]

    def _read(self, place: Range) -> bytes:
        begin, end = place
        return bytes(self._source.read_at(end - begin, begin))


def _cut(place: Range, starts: list[int], data: list[bytes]) -> bytes:
    """The bytes of a range, from reads that began at ``starts``."""
    begin, end = place
    if begin >= end:
        return b""
    run = bisect_right(starts, begin) - 1
    return data[run][begin - starts[run] : end - starts[run]]

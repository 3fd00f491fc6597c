"""Reads pages of a row group, and statistics of the row ranges between them (spec: Appendix A, Parquet).

A page index has the locations and bounds of the pages of columns. Arrow decodes whole column chunks, so the wanted
pages are copied to a file in memory, which Arrow then decodes (see ``codecs.parquet.pages``). A damaged index is not
used: row groups are then read whole. Pages of different columns end at different rows; a row range is
inside one page of every requested column.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
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
from icefloe.formats.column_stats import NOTHING, Known, Raw, bound_decoder, statistics_of
from icefloe.formats.parquet.field_ids import Leaf
from icefloe.formats.read.data_file import PageRanges, RowRange
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, Geography, Geometry

Reopen: TypeAlias = Callable[[pa.BufferReader], Any]  # opens a file of copied pages with the same settings

_LONGEST_FOOTER = 512 * 1024  # parsing one twice as long takes a tenth of a second
NEAR = 64 * 1024  # bytes: two reads with at most so many bytes between them become one
_THREADS_PAY = 16 * 1024 * 1024  # bytes from which on Arrow decodes columns faster with threads
_THREADS = 8  # of requests to remote storage
_HEADER_BYTES = 256  # more than most page headers have; those with long bounds are read again
_MOST_RANGES = 10_000  # of rows in a row group
_PLAIN = {"BOOLEAN": "<?", "INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}
_FIXED = "FIXED_LEN_BYTE_ARRAY"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """Rows of a row group that consist of whole pages of all of some columns."""

    first: int
    end: int


class PageReader:
    """The pages of an open Parquet file; it is ``far`` on remote storage, where every read is a request."""

    def __init__(self, source: Any, footer: Any, reopen: Reopen, *, far: bool) -> None:
        self._source = source
        self._footer = footer
        self._reopen = reopen
        self._far = far
        self._pages: dict[tuple[int, int], Pages | None] = {}

    @cached_property
    def _tail(self) -> ParquetTail | None:
        """The fields of the footer that Arrow does not expose; none if it is too long, or cannot be parsed."""
        length = self._footer.serialized_size
        if length > _LONGEST_FOOTER:
            return None
        start = self._size - length - len(MAGIC) - 4
        with suppress(CorruptFile):
            return ParquetTail(self._read((start, start + length)))
        return None

    @cached_property
    def _size(self) -> int:
        return int(self._source.size())

    def knows(self, group: int, leaves: Sequence[int]) -> bool:
        """Whether the locations of the pages of these columns of a row group are known."""
        self._load(group, leaves)
        return all(self._pages[group, leaf] is not None for leaf in leaves)

    def pages(self, group: int, leaf: int) -> Pages | None:
        """The locations of the pages of a column; none if they are unknown."""
        self._load(group, [leaf])
        return self._pages[group, leaf]

    def bounds(self, group: int, leaves: Sequence[int]) -> Mapping[int, PageBounds]:
        """The bounds of the pages of columns, for the columns that have them."""
        self._load(group, leaves)
        ranges, bounds_by_leaf, tail = {}, {}, self._tail
        if tail is None:
            return {}
        for leaf in leaves:
            with suppress(CorruptFile):
                range_ = tail.bounds_at(group, leaf)
                if range_ is not None and self._is_inside(range_):
                    ranges[leaf] = range_
        for leaf, data in zip(ranges, self._fetch(list(ranges.values())), strict=True):
            pages = self._pages[group, leaf]
            with suppress(CorruptFile):
                if pages is not None and (bounds := decode_page_bounds(data, pages=len(pages.firsts))) is not None:
                    bounds_by_leaf[leaf] = bounds
        return bounds_by_leaf

    def _load(self, group: int, leaves: Sequence[int]) -> None:
        """Read the locations of the pages of columns, those that are not loaded yet, together."""
        missing = [leaf for leaf in leaves if (group, leaf) not in self._pages]
        self._pages |= {(group, leaf): None for leaf in missing}
        stored = self._footer.row_group(group)
        if len(missing) == 0 or not all(stored.column(leaf).has_offset_index for leaf in missing):
            return
        ranges, within, tail = {}, {}, self._tail
        if tail is None:
            return
        for leaf in missing:
            with suppress(CorruptFile):
                range_ = tail.pages_at(group, leaf)
                if range_ is not None and self._is_inside(range_, tail.stored(group, leaf)):
                    ranges[leaf] = range_
                    within[leaf] = tail.stored(group, leaf)
        for leaf, data in zip(ranges, self._fetch(list(ranges.values())), strict=True):
            with suppress(CorruptFile):
                self._pages[group, leaf] = decode_pages(data, rows=stored.num_rows, within=within[leaf])

    def _is_inside(self, *ranges: Range) -> bool:
        """Whether all of these byte ranges are inside the file."""
        return all(0 <= begin < end <= self._size for begin, end in ranges)

    def read(self, group: int, leaves: list[int], first: int, rows: int, *, use_threads: bool) -> pa.Table:
        """Read ``rows`` rows of a row group from row ``first`` on, of columns whose pages are known, in order."""
        tail = self._tail
        if tail is None:
            raise CorruptFile(f"the pages of row group {group} are not known")
        spans: dict[_Span, list[int]] = {}
        for together in self._columns(leaves):
            span = self._span(group, together, first, first + rows - 1)
            spans.setdefault(span, []).extend(together)
        copy = self._copy(tail, group, spans)
        file, use_threads = self._reopen(pa.BufferReader(copy)), use_threads and len(copy) > _THREADS_PAY
        columns: list[tuple[int, pa.Field, pa.ChunkedArray]] = []
        ranks = {leaf: rank for rank, leaf in enumerate(leaves)}
        for number, (span, inside) in enumerate(spans.items()):
            names = [self._footer.schema.column(leaf).path for leaf in inside]
            table = file.read_row_group(number, columns=names, use_threads=use_threads)
            if table.num_rows != span.end - span.first:
                raise CorruptFile(f"pages of row group {group} have {table.num_rows} rows, not {span.end - span.first}")
            part = table.slice(first - span.first, rows)
            first_ranks = [min(ranks[leaf] for leaf in siblings) for siblings in self._columns(inside)]
            columns.extend(zip(first_ranks, part.schema, part.columns, strict=True))
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
        pages = self._fetch([self._range(group, leaf, span) for span, leaf in wanted])
        headers = [self._headers(group, leaf, span, data) for (span, leaf), data in zip(wanted, pages, strict=True)]
        # A dictionary that the writer abandoned for too many distinct values may be far larger than the pages wanted.
        used = [any(header.by_dictionary for header in page_headers) for page_headers in headers]
        ranges = [self._dictionary(tail, group, leaf) for _, leaf in wanted]
        dictionaries = self._fetch([range_ if use else (0, 0) for range_, use in zip(ranges, used, strict=True)])
        out, at = [MAGIC], len(MAGIC)
        copied: dict[_Span, dict[int, Copied]] = {span: {} for span in spans}
        for (span, leaf), dictionary, data, page_headers in zip(wanted, dictionaries, pages, headers, strict=True):
            size, values = len(dictionary) + len(data), sum(header.values for header in page_headers)
            copied[span][leaf] = Copied(start=at, dictionary=len(dictionary), size=size, values=values)
            out += [dictionary, data]
            at += size
        parts = [(span.end - span.first, columns) for span, columns in copied.items()]
        return b"".join([*out, tail.footer_of(group, parts)])

    def _range(self, group: int, leaf: int, span: _Span) -> Range:
        """The byte range of the pages of a column."""
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

    def _fetch(self, ranges: list[Range]) -> list[bytes]:
        """Bytes of the file; ranges that are near to each other are read together."""
        runs: list[Range] = []
        for begin, end in sorted(range_ for range_ in ranges if range_[0] < range_[1]):
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
        return [_cut(range_, starts, data) for range_ in ranges]

    def _read(self, range_: Range) -> bytes:
        begin, end = range_
        return bytes(self._source.read_at(end - begin, begin))


def _cut(range_: Range, starts: list[int], data: list[bytes]) -> bytes:
    """The bytes of a range, from reads that began at ``starts``."""
    begin, end = range_
    if begin >= end:
        return b""
    run = bisect_right(starts, begin) - 1
    return data[run][begin - starts[run] : end - starts[run]]


def page_ranges(
    reader: PageReader, footer: Any, group: RowRange, schema: Schema, leaves: Mapping[int, Leaf]
) -> PageRanges | None:
    """The row ranges between page boundaries of the schema's columns in a row group, with their statistics.

    None if no column has page statistics, if there is only one range, or if there are too many.
    """
    columns = _measured_columns(reader, footer, group.group, leaves)
    if len(columns) == 0:
        return None
    starts = np.unique(np.concatenate([column.pages.firsts for column in columns.values()]))
    if not 1 < len(starts) <= _MOST_RANGES:
        return None
    rows = np.diff(np.append(starts, group.rows)).tolist()
    ranges = tuple(
        RowRange(group=group.group, start=group.start + start, rows=count)
        for start, count in zip(starts.tolist(), rows, strict=True)
    )
    pages = {id_: (np.searchsorted(column.pages.firsts, starts, side="right") - 1) for id_, column in columns.items()}
    units = [
        _PageRange(rows=count, pages={id_: int(at[index]) for id_, at in pages.items()}, columns=columns)
        for index, count in enumerate(rows)
    ]
    statistics = {"record_count": pa.array(rows, pa.int64()), **statistics_of(units, schema, None)}
    return PageRanges(ranges=ranges, statistics=pa.table(statistics))


@dataclass(frozen=True, slots=True, kw_only=True)
class _PageColumn:
    """The pages of one column of a row group."""

    leaf: Leaf
    physical: str
    length: int  # of every value, for types of fixed length
    pages: Pages
    bounds: PageBounds


def _measured_columns(
    reader: PageReader, footer: Any, group: int, leaves: Mapping[int, Leaf]
) -> dict[int, _PageColumn]:
    """The columns whose pages have known locations and bounds, by field id."""
    measured = {id_: leaf for id_, leaf in leaves.items() if _is_measured(footer.row_group(group).column(leaf.index))}
    bounds_by_leaf = reader.bounds(group, [leaf.index for leaf in measured.values()])
    columns = {}
    for id_, leaf in measured.items():
        pages = reader.pages(group, leaf.index)
        if pages is not None and leaf.index in bounds_by_leaf:
            stored = footer.schema.column(leaf.index)
            columns[id_] = _PageColumn(
                leaf=leaf,
                physical=stored.physical_type,
                length=stored.length,
                pages=pages,
                bounds=bounds_by_leaf[leaf.index],
            )
    return columns


def _is_measured(chunk: Any) -> bool:
    """Whether Arrow trusts the order of a column's bounds; if not, it reports no bounds for the row group."""
    return bool(chunk.has_column_index and chunk.statistics is not None and chunk.statistics.has_min_max)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PageRange:
    """One range of rows, and the page of each column that contains it."""

    rows: int
    pages: Mapping[int, int]
    columns: Mapping[int, _PageColumn]

    def known(self, column: Field, type_: pa.DataType) -> Known:
        """The statistics of the page with these rows; the null count is unknown if only some of its rows are null."""
        measured = self.columns.get(column.id)
        if measured is None:
            return NOTHING
        page, index = self.pages[column.id], measured.bounds
        if index.null_pages[page]:
            return Known(values=self.rows, nulls=self.rows)
        nulls = 0 if index.null_counts is not None and index.null_counts[page] == 0 else None
        if isinstance(column.type, (Geometry, Geography)):
            return Known(values=self.rows, nulls=nulls)
        lower = _plain(measured, index.lowers[page], type_)
        upper = _plain(measured, index.uppers[page], type_)
        return Known(values=self.rows, nulls=nulls, lower=lower, upper=upper)


def _plain(column: _PageColumn, data: bytes, type_: pa.DataType) -> Raw | None:
    """A bound, which is stored like a value; none if it has another length, or is NaN."""
    decode = bound_decoder(column.leaf.type, type_)
    if decode is None:
        return None
    if column.physical == "BYTE_ARRAY" or (column.physical == _FIXED and len(data) == column.length):
        return decode(data)
    form = _PLAIN.get(column.physical)
    if form is None or len(data) != struct.calcsize(form):
        return None
    (value,) = struct.unpack(form, data)
    return None if value != value else decode(value)


class Checksums:
    """Asks a reader to compare checksums with the stored pages; the reader reports whether the file has any."""

    def __init__(self) -> None:
        self.present = False


def has_checksums(source: Any, footer: Any) -> bool:
    """Whether the pages of an open file have checksums; true for a file without pages.

    A page header may have a CRC-32 of the stored page, which Arrow compares on request. The footer does not record
    whether pages have one. Writers add them to all pages or to none, so the first page is looked at.
    """
    chunks = (
        footer.row_group(group).column(column)
        for group in range(footer.num_row_groups)
        for column in range(footer.num_columns)
    )
    chunk = next((chunk for chunk in chunks if chunk.num_values > 0), None)
    if chunk is None:
        return True
    length = _HEADER_BYTES
    while True:
        data = source.read_at(length, chunk.data_page_offset)
        try:
            return read_page_header(data).has_checksum
        except CorruptFile:
            if len(data) < length or length > chunk.total_compressed_size:
                return False  # some writers state the offset of the dictionary; damage is found when the page is read
            length *= 16

"""Reads page indexes from Parquet footers, and writes footers for files of copied pages (spec: Appendix A, Parquet).

Arrow does not read page indexes, and decodes whole column chunks. To decode only some pages, they are copied unchanged
into a new file, whose footer is that of the old file with other offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from icefloe.codecs.parquet.pages.thrift import BINARY, INT, LIST, LONG, STRUCT, Message, number, sequence, struct
from icefloe.errors import CorruptFile

MAGIC = b"PAR1"
Ints: TypeAlias = npt.NDArray[np.int64]
Range: TypeAlias = tuple[int, int]  # first byte and end

# Numbers of the fields of Parquet's own messages, as far as they are used here.
_SCHEMA, _ROWS, _GROUPS, _ENCRYPTION = 2, 3, 4, 8  # of FileMetaData
_COLUMNS, _BYTES, _GROUP_ROWS = 1, 2, 3  # of RowGroup
_PATH, _PLACE, _CHUNK, _PAGES_AT, _PAGES_LENGTH, _BOUNDS_AT, _BOUNDS_LENGTH, _CRYPTO = range(1, 9)  # of ColumnChunk
_TYPE, _ENCODINGS, _NAMES, _CODEC, _VALUES, _PLAIN_SIZE, _SIZE, _DATA_AT, _DICTIONARY_AT = (
    *range(1, 8),
    9,
    11,
)  # of ColumnMetaData
_OFFSET, _LENGTH, _FIRST_ROW = 1, 2, 3  # of PageLocation
_NULL_PAGES, _LOWERS, _UPPERS, _NULL_COUNTS = 1, 2, 3, 5  # of ColumnIndex
_PAGE_HEADERS = {5: 2, 8: 4}  # of PageHeader: that of a data page, or of one of version 2, and where its encoding is
_CHECKSUM = 4  # of PageHeader
_BY_DICTIONARY = frozenset({2, 8})  # encodings

# The entry of an absent column: every field that readers require, and no data.
_NO_CHUNK = struct(
    (_PLACE, LONG, number(0)),
    (
        _CHUNK,
        STRUCT,
        struct(
            (_TYPE, INT, number(0)),
            (_ENCODINGS, LIST, sequence(INT, [])),
            (_NAMES, LIST, sequence(BINARY, [])),
            (_CODEC, INT, number(0)),
            *((id_, LONG, number(0)) for id_ in (_VALUES, _PLAIN_SIZE, _SIZE)),
            (_DATA_AT, LONG, number(len(MAGIC))),
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The offsets and sizes of the data pages of a column chunk, and the first row of each page in its row group."""

    offsets: Ints
    sizes: Ints
    firsts: Ints

    def covering(self, first: int, last: int) -> tuple[int, int]:
        """The first and the last page that contain any of these rows."""
        pages = np.searchsorted(self.firsts, np.array([first, last]), side="right") - 1
        return int(pages[0]), int(pages[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class PageBounds:
    """For each page of a column chunk: whether it has only nulls, and the bounds of its values as they are encoded."""

    null_pages: Sequence[bool]
    lowers: Sequence[bytes]
    uppers: Sequence[bytes]
    null_counts: Sequence[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageHeader:
    """A data page: how many values it has, nulls included, and whether they are numbers of values in a dictionary."""

    values: int
    by_dictionary: bool
    has_checksum: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A column chunk in a file of copied pages: its byte range, its dictionary, and its number of values."""

    start: int
    dictionary: int
    size: int
    values: int


class ParquetTail:
    """The footer of a Parquet file."""

    def __init__(self, footer: bytes) -> None:
        self._file = Message(footer)
        if _ENCRYPTION in self._file:
            raise CorruptFile("the footer of the Parquet file is encrypted")
        self._groups = self._file.messages(_GROUPS)
        self._chunks: dict[int, list[Message]] = {}
        self._described: dict[tuple[int, int], Message] = {}

    def _description(self, group: int, leaf: int) -> Message:
        """The metadata of a column chunk."""
        if (group, leaf) not in self._described:
            self._described[group, leaf] = self._chunk(group, leaf).message(_CHUNK)
        return self._described[group, leaf]

    def _chunk(self, group: int, leaf: int) -> Message:
        if group not in self._chunks:
            self._chunks[group] = self._groups[group].messages(_COLUMNS) if group < len(self._groups) else []
        chunks = self._chunks[group]
        if leaf >= len(chunks):
            raise CorruptFile(f"the footer of the Parquet file has no column {leaf} in row group {group}")
        return chunks[leaf]

    def pages_at(self, group: int, leaf: int) -> Range | None:
        """The byte range of the offset index of a column chunk, which lists its pages."""
        return _place(self._chunk(group, leaf), _PAGES_AT, _PAGES_LENGTH)

    def bounds_at(self, group: int, leaf: int) -> Range | None:
        """The byte range of the column index of a column chunk, which has the bounds of its pages."""
        return _place(self._chunk(group, leaf), _BOUNDS_AT, _BOUNDS_LENGTH)

    def dictionary(self, group: int, leaf: int, first_page: int) -> Range:
        """The byte range of the dictionary of a column chunk; empty if it has none."""
        chunk = self._description(group, leaf)
        at = chunk.number(_DICTIONARY_AT) if _DICTIONARY_AT in chunk else 0
        return (at, first_page) if 0 < at < first_page else (first_page, first_page)

    def stored(self, group: int, leaf: int) -> Range:
        """The byte range of a column chunk."""
        chunk = self._description(group, leaf)
        begin = chunk.number(_DATA_AT)
        if _DICTIONARY_AT in chunk and 0 < chunk.number(_DICTIONARY_AT) < begin:
            begin = chunk.number(_DICTIONARY_AT)
        return begin, begin + chunk.number(_SIZE)

    def footer_of(self, group: int, parts: Sequence[tuple[int, Mapping[int, Copied]]]) -> bytes:
        """The footer of a file made of some pages of a row group. Each part (row count, columns) becomes a row group.

        Parts are needed because the columns of a row group must have equal row counts, and pages of columns do not.
        """
        width = len(self._chunks[group])
        groups = []
        for rows, copied in parts:
            chunks = [self._copied(group, leaf, copied[leaf]) if leaf in copied else _NO_CHUNK for leaf in range(width)]
            size = sum(chunk.size for chunk in copied.values())
            fields = (
                (_COLUMNS, LIST, sequence(STRUCT, chunks)),
                (_BYTES, LONG, number(size)),
                (_GROUP_ROWS, LONG, number(rows)),
            )
            groups.append(struct(*fields))
        footer = struct(
            *self._file.copied(1, _SCHEMA),
            (_ROWS, LONG, number(sum(rows for rows, _ in parts))),
            (_GROUPS, LIST, sequence(STRUCT, groups)),
            *self._file.copied(5, 6, 7),  # properties, writer and column orders: readers depend on them
        )
        return footer + len(footer).to_bytes(4, "little") + MAGIC

    def _copied(self, group: int, leaf: int, copied: Copied) -> bytes:
        chunk = self._description(group, leaf)
        dictionary = [(_DICTIONARY_AT, LONG, number(copied.start))] if copied.dictionary > 0 else []
        meta = struct(
            *chunk.copied(_TYPE, _ENCODINGS, _NAMES, _CODEC),
            (_VALUES, LONG, number(copied.values)),
            (_PLAIN_SIZE, LONG, number(copied.size)),
            (_SIZE, LONG, number(copied.size)),
            (_DATA_AT, LONG, number(copied.start + copied.dictionary)),
            *dictionary,
        )
        return struct((_PLACE, LONG, number(0)), (_CHUNK, STRUCT, meta))


def _place(chunk: Message, at: int, length: int) -> Range | None:
    """A byte range of this file; None if it is not recorded, in another file, or encrypted."""
    if at not in chunk or length not in chunk or _PATH in chunk or _CRYPTO in chunk:
        return None
    return chunk.number(at), chunk.number(at) + chunk.number(length)


def decode_pages(data: bytes, *, rows: int, within: Range) -> Pages | None:
    """The pages of a column chunk with ``rows`` rows; None if they are not consecutive ``within`` the chunk."""
    records = Message(data).records(1, _OFFSET, _LENGTH, _FIRST_ROW)
    if len(records) == 0 or any(not 0 <= value < 2**62 for record in records for value in record):
        return None
    offsets, sizes, firsts = np.array(records, np.int64).T
    is_sound = (
        firsts[0] == 0
        and firsts[-1] < rows
        and bool(np.all(np.diff(firsts) > 0))
        and bool(np.all(offsets[:-1] + sizes[:-1] <= offsets[1:]))
        and bool(np.all(sizes > 0))
        and offsets[0] >= within[0]
        and offsets[-1] + sizes[-1] <= within[1]
    )
    return Pages(offsets=offsets, sizes=sizes, firsts=firsts) if is_sound else None


def decode_page_bounds(data: bytes, *, pages: int) -> PageBounds | None:
    """The bounds of the pages of a column chunk; None if the index is for another number of pages."""
    index = Message(data)
    nulls = index.flags(_NULL_PAGES)
    lowers, uppers = index.texts(_LOWERS), index.texts(_UPPERS)
    counts = index.numbers(_NULL_COUNTS) if _NULL_COUNTS in index else None
    if not len(nulls) == len(lowers) == len(uppers) == pages or (counts is not None and len(counts) != pages):
        return None
    return PageBounds(null_pages=nulls, lowers=lowers, uppers=uppers, null_counts=counts)


def read_page_header(data: bytes, start: int = 0) -> PageHeader:
    """The header of the data page that begins at ``start``."""
    header = Message(data, start)
    for id_, encoding in _PAGE_HEADERS.items():
        if id_ in header:
            page = header.message(id_)
            return PageHeader(
                values=page.number(1),
                by_dictionary=page.number(encoding) in _BY_DICTIONARY,
                has_checksum=_CHECKSUM in header,
            )
    raise CorruptFile("a page of the Parquet file is no data page")

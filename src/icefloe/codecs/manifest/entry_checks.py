"""What rows of a V4 manifest must satisfy, checked on writing and on reading (V4 proposal).

These are the rules for one row; what the rows of a root must satisfy together is checked where roots are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.puffin.deletion_vector import MIN_BLOB_BYTES
from icefloe.errors import FormatError, IcefloeError
from icefloe.model.entries import MANIFEST_COUNTS, Columns, ContentType, Status

_NUMBERS = ("sequence_number", "file_sequence_number", "record_count", "file_size_in_bytes")
_OF_FILES = ("content_type", "status", "location", *_NUMBERS)
_NOT_OF_FILES = (
    *("dv_offset", "dv_size_in_bytes", "dv_inline_content", "referenced_file", "equality_ids"),
    *(field.name for field in MANIFEST_COUNTS),
)

Flags = npt.NDArray[np.bool_]

DATA, DV, EQ = (int(t) for t in (ContentType.DATA, ContentType.POSITION_DELETES, ContentType.EQUALITY_DELETES))
DATA_MANIFEST, DELETE_MANIFEST = int(ContentType.DATA_MANIFEST), int(ContentType.DELETE_MANIFEST)
MANIFEST_DV = int(ContentType.MANIFEST_DV)

ALLOWED: Mapping[str, tuple[int, ...]] = {
    "root": tuple(int(t) for t in ContentType),
    "data": (DATA,),
    "delete": (DV, EQ),
    "deletes": (DV, EQ),
}


_FORMATS = pa.array(["avro", "parquet", "orc", "puffin"])
_DATA_FORMATS = _FORMATS.slice(0, 3)
_LAST_OF_MANIFESTS, _PUFFIN = 1, 3  # places in the list above
_SHOWN_OFFSETS = 8


def check_entries(
    columns: Columns,
    *,
    content: str,
    where: str,
    error: Callable[..., IcefloeError],
    stats: pa.Array | None = None,
) -> None:
    """Raise ``error`` for the first rule that a row breaks, naming the row; ``stats`` is content_stats as stored."""
    if len(columns["content_type"]) == 0:
        return
    _check_offsets(columns, where, error)
    if _are_plain_files(columns, content):
        return
    for broken, rule in _Rows(columns, stats).problems(content):
        if broken.any():
            refuse_row(int(np.argmax(broken)), rule, where=where, error=error)


def refuse_row(row: int, rule: str, *, where: str, error: Callable[..., IcefloeError] = FormatError) -> NoReturn:
    """Raise the error of a row that breaks a rule."""
    raise error(f"{where}: row {row}: {rule}", location=where, row=row)


def unsorted_lists(lists: pa.Array) -> npt.NDArray[np.bool_]:
    """Which lists of numbers have an element that is less than the one before it."""
    unsorted: npt.NDArray[np.bool_] = np.zeros(len(lists), dtype=np.bool_)
    longest = pc.max(pc.list_value_length(lists)).as_py()
    if longest is not None and longest > 1:
        owners = np.asarray(pc.list_parent_indices(lists))
        falls = (np.diff(np.asarray(pc.fill_null(lists.flatten(), 0))) < 0) & (np.diff(owners) == 0)
        unsorted[owners[1:][falls]] = True
    return unsorted


def sorted_lists(lists: pa.Array) -> pa.Array:
    """Lists of numbers with the elements of each in ascending order."""
    if not unsorted_lists(lists).any():
        return lists
    values, owners = np.asarray(lists.flatten()), np.asarray(pc.list_parent_indices(lists))
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0))
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))
    ordered = pa.array(values[np.lexsort((values, owners))], lists.type.value_type)
    return pa.ListArray.from_arrays(offsets, ordered, type=lists.type, mask=lists.is_null())


def _check_offsets(columns: Columns, where: str, error: Callable[..., IcefloeError]) -> None:
    """Raise for the first row whose split offsets do not ascend."""
    unsorted = unsorted_lists(columns["split_offsets"])
    if unsorted.any():
        row = int(np.argmax(unsorted))
        file, offsets = columns["location"][row].as_py(), columns["split_offsets"][row].as_py()
        shown = offsets[:_SHOWN_OFFSETS]
        rule = f"split_offsets of {file} do not ascend: {shown}. The writer of the entry must sort them"
        refuse_row(row, rule, where=where, error=error)


def _are_plain_files(columns: Columns, content: str) -> bool:
    """Whether all rows are data files that break no rule: the fast path for most manifests, by a few counts."""
    length = len(columns["content_type"])
    return (
        DATA in ALLOWED[content]
        and all(columns[name].null_count == 0 for name in _OF_FILES)
        and all(columns[name].null_count == length for name in _NOT_OF_FILES)
        and _within(columns["content_type"], DATA, DATA)
        and pc.all(pc.is_in(columns["file_format"], value_set=_DATA_FORMATS)).as_py() is True
        and _within(columns["status"], min(Status), max(Status))
        and _within(columns["record_count"], 0)
        and _within(columns["file_size_in_bytes"], 0)
    )


def _within(column: pa.Array, least: int, greatest: int | None = None) -> bool:
    values = np.asarray(column)
    return bool(values.min() >= least and (greatest is None or values.max() <= greatest))


class _Rows:
    """The columns that the rules look at, as flags per row."""

    def __init__(self, columns: Columns, stats: pa.Array | None) -> None:
        self._columns = columns
        self._stats = stats
        self._length = len(columns["content_type"])
        self._none: Flags = np.zeros(self._length, dtype=np.bool_)
        self._all: Flags = np.ones(self._length, dtype=np.bool_)
        types = columns["content_type"].to_numpy(zero_copy_only=False)
        self._types: dict[int, Flags] = {int(t): types == int(t) for t in ContentType}
        self.status = columns["status"].to_numpy(zero_copy_only=False)

    def has(self, name: str) -> Flags:
        """Which rows have a value in this column."""
        column = self._columns[name]
        if column.null_count == self._length:
            return self._none
        if column.null_count == 0:
            return self._all
        valid: Flags = np.asarray(column.is_valid())
        return valid

    def numbers(self, name: str) -> npt.NDArray[np.int64]:
        """The values of a column, 0 where it is null."""
        column = self._columns[name]
        values: npt.NDArray[np.int64] = np.asarray(column.fill_null(0) if column.null_count > 0 else column)
        return values

    def is_type(self, *types: int) -> Flags:
        """Which rows are of these content types."""
        flags = self._types[types[0]]
        for other in types[1:]:
            flags = flags | self._types[other]
        return flags

    def problems(self, content: str) -> Iterator[tuple[Flags, str]]:
        """Rules as the rows that break them, and what to say."""
        allowed = self.is_type(*ALLOWED[content])
        yield ~allowed, f"its content type is not allowed in a manifest of content {content!r}"
        added = self.status == int(Status.ADDED)
        known = added | (self.status == int(Status.EXISTING)) | (self.status == int(Status.DELETED))
        yield ~known, "its status is not 0 (EXISTING), 1 (ADDED) or 2 (DELETED)"
        numbered = self.has("sequence_number") & self.has("file_sequence_number")
        yield ~added & ~numbered, "only an ADDED entry may leave its sequence numbers to be inherited"
        yield self.numbers("record_count") < 0, "record_count is negative"
        yield from self._files()
        yield from self._formats()
        yield from self._vectors()
        yield from self._manifests()

    def _files(self) -> Iterator[tuple[Flags, str]]:
        inline = self.is_type(MANIFEST_DV) & self.has("dv_inline_content")
        located = self.has("location")
        yield ~located & ~inline, "location is null, which only an inline manifest deletion vector may have"
        yield located & ~self.has("file_size_in_bytes"), "file_size_in_bytes is null"
        yield self.has("file_size_in_bytes") & ~located, "file_size_in_bytes is set, but there is no file"
        yield self.numbers("file_size_in_bytes") < 0, "file_size_in_bytes is negative"
        yield (
            self.is_type(EQ) != self.has("equality_ids"),
            "equality_ids belong to equality deletes, always",
        )
        yield self.has("sort_order_id") & ~self.is_type(DATA), "sort_order_id is for data files only"
        yield (
            self.has("split_offsets") & ~self.is_type(DATA, EQ),
            "split_offsets are for data files and equality deletes",
        )
        lineage = self.is_type(DATA, DATA_MANIFEST)
        yield self.has("first_row_id") & ~lineage, "first_row_id is for data files and data manifests only"

    def _formats(self) -> Iterator[tuple[Flags, str]]:
        place = pc.index_in(self._columns["file_format"], value_set=_FORMATS)
        yield ~np.asarray(place.is_valid()), "file_format is not avro, orc, parquet or puffin"
        codes = np.asarray(place)
        vector = self.is_type(DV, MANIFEST_DV)
        yield vector & (codes != _PUFFIN), "file_format of a deletion vector is not puffin"
        yield ~vector & (codes == _PUFFIN), "file_format is puffin, which is for deletion vectors"
        manifest = self.is_type(DATA_MANIFEST, DELETE_MANIFEST)
        yield manifest & (codes > _LAST_OF_MANIFESTS), "file_format of a manifest is not avro or parquet"

    def _vectors(self) -> Iterator[tuple[Flags, str]]:
        """Rules about deletion vectors of files and of manifests."""
        offset, size = self.has("dv_offset"), self.has("dv_size_in_bytes")
        inline = self.has("dv_inline_content")
        wanted = self.is_type(DV, MANIFEST_DV)
        yield offset != size, "a deletion vector needs both offset and size_in_bytes"
        yield (offset | inline) & ~wanted, "only deletion vectors may have deletion_vector set"
        yield wanted & (offset == inline), "a deletion vector is either inline or at an offset of a Puffin file"
        yield self.is_type(DV) & inline, "the deletion vector of a data file cannot be inline"
        yield offset & (self.numbers("dv_offset") < 0), "deletion_vector.offset is negative"
        yield size & (self.numbers("dv_size_in_bytes") < MIN_BLOB_BYTES), "deletion_vector.size_in_bytes is too small"
        referring = self.has("referenced_file")
        yield wanted & ~referring, "a deletion vector must name the file it belongs to in referenced_file"
        yield referring & ~(wanted | self.is_type(DELETE_MANIFEST)), "referenced_file must be null"

    def _manifests(self) -> Iterator[tuple[Flags, str]]:
        manifest = self.is_type(DATA_MANIFEST, DELETE_MANIFEST)
        for field in MANIFEST_COUNTS:
            yield manifest != self.has(field.name), f"{field.name} is for manifests, which must have it"
        differs = self.numbers("sequence_number") != self.numbers("file_sequence_number")
        yield manifest & differs, "the two sequence numbers of a manifest differ"
        if self._stats is not None and self._types[MANIFEST_DV].any():
            measured: Flags = np.asarray(self._stats.is_valid())
            yield measured & self.is_type(MANIFEST_DV), "a manifest deletion vector must not have content_stats"

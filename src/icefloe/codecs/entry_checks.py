"""What rows of a V4 manifest must satisfy, checked on writing and on reading (V4 proposal)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.codecs.deletion_vector import MIN_BLOB_BYTES
from icefloe.errors import IcefloeError
from icefloe.model.entries import MANIFEST_COUNTS, ContentType, Status

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


def check_entries(
    columns: Mapping[str, pa.Array], *, content: str, where: str, error: Callable[..., IcefloeError]
) -> None:
    """Raise ``error`` for the first rule that a row breaks, naming the row."""
    if len(columns["content_type"]) == 0:
        return
    for broken, rule in _Rows(columns).problems(content):
        if broken.any():
            row = int(np.argmax(broken))
            raise error(f"{where}: row {row}: {rule}", location=where, row=row)


class _Rows:
    """The columns that the rules look at, as flags per row."""

    def __init__(self, columns: Mapping[str, pa.Array]) -> None:
        self._columns = columns
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
        found: npt.NDArray[np.int64] = np.asarray(column.fill_null(0) if column.null_count > 0 else column)
        return found

    def is_type(self, *types: int) -> Flags:
        """Which rows are of these content types."""
        found = self._types[types[0]]
        for other in types[1:]:
            found = found | self._types[other]
        return found

    def problems(self, content: str) -> Iterator[tuple[Flags, str]]:
        """Rules as the rows that break them, and what to say."""
        allowed = self.is_type(*ALLOWED[content])
        yield ~allowed, f"its content type is not allowed in a manifest of content {content!r}"
        added = self.status == int(Status.ADDED)
        known = added | (self.status == int(Status.EXISTING)) | (self.status == int(Status.DELETED))
        yield ~known, "its status is not 0, 1 or 2"
        numbered = self.has("sequence_number") & self.has("file_sequence_number")
        yield ~added & ~numbered, "only an ADDED entry may leave its sequence numbers to be inherited"
        yield self.numbers("record_count") < 0, "record_count is negative"
        yield from self._files()
        yield from self._vectors()
        yield from self._manifests()

    def _files(self) -> Iterator[tuple[Flags, str]]:
        inline = self.is_type(MANIFEST_DV) & self.has("dv_inline_content")
        located = self.has("location")
        yield ~located & ~inline, "location is null, which only an inline manifest deletion vector may have"
        yield located & inline, "an inline manifest deletion vector must not have a location"
        yield located & ~self.has("file_size_in_bytes"), "file_size_in_bytes is null"
        yield self.numbers("file_size_in_bytes") < 0, "file_size_in_bytes is negative"
        yield (
            self.is_type(EQ) != self.has("equality_ids"),
            "equality_ids belong to equality deletes, always",
        )
        lineage = self.is_type(DATA, DATA_MANIFEST)
        yield self.has("first_row_id") & ~lineage, "first_row_id is for data files and data manifests only"

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

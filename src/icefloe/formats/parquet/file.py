"""A Parquet data file as a reader sees it: row groups, their statistics, columns by id (spec: Appendix A, Parquet)."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from icefloe.errors import CorruptFile, LimitError
from icefloe.formats.parquet.checksums import Checksums, has_checksums
from icefloe.formats.parquet.field_ids import StoredColumns, at_location, labelled
from icefloe.formats.parquet.int96 import UNIT, zoned
from icefloe.formats.parquet.page_stats import page_runs
from icefloe.formats.parquet.pages import PageReader
from icefloe.formats.parquet.stats import group_stats
from icefloe.formats.read.align import without_columns
from icefloe.formats.read.data_file import BATCH_BYTES, Piece, Runs, StoredFile
from icefloe.formats.read.relabel import relabel
from icefloe.formats.read.storage_errors import reading
from icefloe.io.file_io import FileIO
from icefloe.limits import DEFAULT
from icefloe.model.arrow.name_mapped import has_ids
from icefloe.model.schema.name_mapping import NameMapping, by_position
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field

LEAST_ROWS = 1024  # however large a guess says that they are
NESTED_ROWS = 128 * 1024  # of texts inside other columns, of which Arrow decodes no more than 2 GB together
NESTED_VALUES = 1024 * 1024
_AS_THEY_ARE = frozenset({"PLAIN", "RLE", "BIT_PACKED"})  # of texts; of levels the other two
FEW_BYTES = 256 * 1024  # are decoded sooner than shared out to threads
MANY_BYTES = 4 * 1024 * 1024  # take longer to decode than to find the pages in them
_MANY_COLUMNS = 512  # of which none is so large that it should be looked for
_TEXTS = frozenset({"UTF8", "NONE"})
_TAIL, _MAGIC = struct.Struct("<I4s"), b"PAR1"  # the length of the footer
_PLAIN_BYTES = 4  # at least, of a text that is stored as it is: its length comes first


class ParquetFile:
    """An open Parquet file; its pieces are its row groups."""

    def __init__(
        self,
        file: Any,
        pages: PageReader,
        mapping: NameMapping | None,
        location: str,
        *,
        old: frozenset[int],
        alone: bool,
    ) -> None:
        self._file = file
        self._pages = pages
        self._alone = alone
        self._location = location
        stored = file.schema_arrow
        own_ids = has_ids(stored)
        if mapping is not None and mapping.assumed and not own_ids:
            with at_location(location):
                mapping = by_position(mapping, stored.names)
        self._schema = labelled(stored, mapping, location)
        self._label = None if own_ids else partial(labelled, mapping=mapping, location=location)
        self._old = old
        self._columns = StoredColumns(self._schema)

    @property
    def ids(self) -> Collection[int]:
        """The ids of the columns."""
        return self._columns.ids

    @cached_property
    def _dictionaries(self) -> frozenset[str]:
        """The names of columns that come back as dictionaries."""
        return frozenset(field.name for field in self._schema if pa.types.is_dictionary(field.type))

    @property
    def schema(self) -> pa.Schema:
        """The columns with their ids."""
        return self._schema

    def schema_for(self, wanted: tuple[Field, ...]) -> pa.Schema:
        """The columns as they are read for these fields: where a file does not tell of a time zone, with theirs."""
        return zoned(self._schema, wanted, self._old, self._location)

    @property
    def footer(self) -> Any:
        """What the file says of itself."""
        return self._file.metadata

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The row groups."""
        footer, pieces, start = self._file.metadata, [], 0
        for index in range(footer.num_row_groups):
            rows = footer.row_group(index).num_rows
            pieces.append(Piece(index=index, start=start, rows=rows))
            start += rows
        return tuple(pieces)

    def statistics(self, schema: Schema) -> pa.Table | None:
        """The statistics of the columns in the footer, one row for each row group."""
        return group_stats(self._file.metadata, schema, self._columns.measured(schema.fields))

    def runs(self, piece: Piece, schema: Schema) -> Runs | None:
        """The runs of rows that the pages of these columns tell apart."""
        large = self._file.metadata.row_group(piece.index).total_byte_size >= MANY_BYTES
        if not large or not self._is_divisible:
            return None
        return page_runs(self._pages, self._file.metadata, piece, schema, self._columns.measured(schema.fields))

    def divides(self, piece: Piece, wanted: tuple[Field, ...]) -> bool:
        """Whether the columns are large, and it is known where their pages are."""
        leaves = self._columns.leaves(wanted)
        if len(leaves) == 0 or not self._is_divisible or self._bytes(piece, leaves) < MANY_BYTES:
            return False
        return self._pages.knows(piece.index, leaves)

    @cached_property
    def _is_divisible(self) -> bool:
        """Whether paths identify columns: a name with a dot looks like the path of a nested column."""
        return not any("." in field.name for field in self._schema)

    def read(self, piece: Piece, wanted: tuple[Field, ...], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a row group, or some of them; of nested columns only the fields that are wanted."""
        leaves = self._columns.leaves(wanted)
        if self._is_labelled:
            leaves = self._slow_first(leaves)
        if len(leaves) == 0:
            for start in range(0, piece.rows, batch_rows):
                yield without_columns(min(batch_rows, piece.rows - start))
            return
        label, read = None, 0
        for batch in self._batches(piece, leaves, batch_rows):
            read += batch.num_rows
            if not self._is_labelled:
                label = self._labels(batch.schema, wanted, leaves) if label is None else label
                batch = relabel(batch, label)
            yield batch
        if read != piece.rows:
            message = f"{self._location}: row group {piece.index} has {read} rows, its footer says {piece.rows}"
            raise CorruptFile(message, location=self._location)

    def _batches(self, piece: Piece, leaves: list[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        whole = self.pieces[piece.index]
        size = self._bytes(whole, leaves)
        at_once = min(batch_rows, self._rows_at_once(whole, leaves, size))
        threads, first = self._alone and size > FEW_BYTES, piece.start - whole.start
        if piece.rows < whole.rows and self._is_divisible and self._pages.knows(piece.index, leaves):
            for at in range(first, first + piece.rows, at_once):
                rows = min(at_once, first + piece.rows - at)
                yield from self._pages.read(piece.index, leaves, at, rows, threads=threads).to_batches()
            return
        batches = self._file.iter_batches(
            batch_size=at_once, row_groups=[piece.index], columns=self._paths(leaves), use_threads=threads
        )
        yield from batches if piece.rows == whole.rows else _between(batches, first, first + piece.rows)

    def _paths(self, leaves: list[int]) -> list[str] | None:
        """The names by which Arrow knows primitive columns; none stands for all of them, in the order of the file."""
        stored = self._file.metadata.schema
        return None if leaves == list(range(len(stored))) else [stored.column(index).path for index in leaves]

    @property
    def _is_labelled(self) -> bool:
        """Whether batches come back with their ids and time zones."""
        return self._label is None and len(self._old) == 0

    def _slow_first(self, leaves: list[int]) -> list[int]:
        """Primitive columns, those that take long first, so that no thread is left with one at the end.

        The order is the same for all row groups. Leaves of one column stay together.
        """
        if not 1 < len(leaves) <= _MANY_COLUMNS or self._file.metadata.num_row_groups == 0:
            return leaves
        group, sizes = self._file.metadata.row_group(0), Counter[str]()
        columns = {leaf: self._file.metadata.schema.column(leaf).path.partition(".")[0] for leaf in leaves}
        for leaf, column in columns.items():
            sizes[column] += group.column(leaf).total_uncompressed_size
        return sorted(leaves, key=lambda leaf: (-sizes[columns[leaf]], leaf))

    def _bytes(self, piece: Piece, leaves: list[int]) -> int:
        """What columns of a row group take before they are decoded."""
        group = self._file.metadata.row_group(piece.index)
        return sum(int(group.column(index).total_uncompressed_size) for index in leaves)

    def _rows_at_once(self, piece: Piece, leaves: list[int], size: int) -> int:
        """How many rows of stored ``size`` to decode together, so that they take about so many bytes as batches have.

        Repeating texts are far larger when decoded. By how much is not said; lengths of bounds give an idea of it.
        """
        most, footer = max(1, BATCH_BYTES * piece.rows // max(1, size)), self._file.metadata
        if piece.rows <= LEAST_ROWS:
            return most
        group, decoded = footer.row_group(piece.index), size
        for index in leaves:
            chunk, column = group.column(index), footer.schema.column(index)
            is_text = column.physical_type == "BYTE_ARRAY" and column.path not in self._dictionaries
            if not is_text or _AS_THEY_ARE.issuperset(chunk.encodings):
                continue
            decoded += max(0, chunk.num_values * _bound_length(chunk.statistics) - chunk.total_uncompressed_size)
            if column.path != column.name:
                values = NESTED_VALUES * piece.rows // max(1, chunk.num_values)
                most = max(1, min(most, NESTED_ROWS, values))
        return min(most, max(LEAST_ROWS, BATCH_BYTES * piece.rows // max(1, decoded)))

    def _labels(self, schema: pa.Schema, wanted: tuple[Field, ...], leaves: list[int]) -> pa.Schema:
        """The schema of a batch of some primitive columns with ids, and with the time zones that are wanted."""
        schema = schema if self._label is None else self._label(schema)
        old = frozenset(place for place, leaf in enumerate(leaves) if leaf in self._old)
        return schema if len(old) == 0 else zoned(schema, wanted, old, self._location)


def _between(batches: Iterable[pa.RecordBatch], first: int, end: int) -> Iterator[pa.RecordBatch]:
    """The rows from one place among those of all batches to another."""
    start = 0
    for batch in batches:
        part = batch.slice(max(0, first - start), max(0, end - max(start, first)))
        if part.num_rows > 0:
            yield part
        start += batch.num_rows


def _bound_length(statistics: Any | None) -> int:
    """How long the bounds of texts are, on the average; 0 if there are none."""
    if statistics is None or not statistics.has_min_max:
        return 0
    bounds = [raw for raw in (statistics.min_raw, statistics.max_raw) if isinstance(raw, bytes)]
    return sum(map(len, bounds)) // max(1, len(bounds))


def open_parquet(
    io: FileIO,
    location: str,
    mapping: NameMapping | None = None,
    *,
    repeating: tuple[str, ...] = (),
    alone: bool = True,
    checksums: Checksums | None = None,
) -> AbstractContextManager[StoredFile]:
    """An open Parquet file; ``mapping`` gives ids to the columns of a file that has none.

    With ``checksums`` every page that is read is compared with its checksum, which takes 10 to 30 % longer.

    If the file is read ``alone``, columns are decoded by one thread per processor. Where every processor already reads
    a file of its own, more threads would only wait for each other.

    Top-level text columns are returned as dictionaries if they are stored so, and always if they are in ``repeating``:
    filtering and concatenating dictionaries takes half the time.
    """
    return _open(io, location, mapping, repeating, alone, checksums)


@contextmanager
def _open(
    io: FileIO,
    location: str,
    mapping: NameMapping | None,
    repeating: tuple[str, ...],
    alone: bool,
    checksums: Checksums | None,
) -> Iterator[StoredFile]:
    """The open file; errors of Arrow while it is read are raised as errors of this library."""
    files, path = io.arrow_path(location)
    with reading(location):
        # On remote storage every read is a request, so the columns of a row group are fetched together.
        far = not isinstance(files, fs.LocalFileSystem)
        source = files.open_input_file(path)
        _check_footer_size(source, location)
        settings = {"coerce_int96_timestamp_unit": UNIT, "page_checksum_verification": checksums is not None}
        plain = pq.ParquetFile(source, pre_buffer=far, **settings)
        footer = plain.metadata
        if checksums is not None:
            checksums.present = has_checksums(source, footer)
        texts, old = _special(footer)
        known = [name for name, place in texts.items() if name in repeating or _is_by_dictionary(footer, place)]
        opened = partial(pq.ParquetFile, read_dictionary=known, **settings)
        with plain if len(known) == 0 else opened(source, metadata=footer, pre_buffer=far) as file:
            pages = PageReader(source, footer, opened, far=far)
            yield ParquetFile(file, pages, mapping, location, old=old, alone=alone)


def _check_footer_size(source: Any, location: str) -> None:
    """LimitError if the file has a very large footer; Arrow would read it whole."""
    size = source.size()
    if size >= _TAIL.size:
        (length, magic) = _TAIL.unpack(source.read_at(_TAIL.size, size - _TAIL.size))
        if magic == _MAGIC and DEFAULT.manifest_bytes < length <= size:
            raise LimitError(
                f"{location}: a footer of {length} bytes, limit {DEFAULT.manifest_bytes}", location=location
            )


def _special(footer: Any) -> tuple[dict[str, int], frozenset[int]]:
    """The top-level columns of texts or bytes with their places, and the places of timestamps of the oldest kind."""
    texts, old, schema = {}, set(), footer.schema
    for place in range(footer.num_columns):
        column = schema.column(place)
        kind = column.physical_type
        if kind == "INT96":
            old.add(place)
        elif kind == "BYTE_ARRAY" and column.path == column.name and column.converted_type in _TEXTS:
            texts[column.path] = place
    return texts, frozenset(old)


def _is_by_dictionary(footer: Any, place: int) -> bool:
    """Whether a column mostly holds dictionary indices rather than plain values, which take at least four bytes each.

    A footer lists the encodings of a chunk, and dictionaries themselves are stored plain: it does not say which pages
    have which encoding.
    """
    chunks = [footer.row_group(group).column(place) for group in range(footer.num_row_groups)]
    size = sum(chunk.total_uncompressed_size for chunk in chunks)
    values = sum(chunk.num_values for chunk in chunks)
    return size < _PLAIN_BYTES * values and all(chunk.has_dictionary_page for chunk in chunks)

"""Reads Parquet data files: row groups, their statistics, columns by id (spec: Appendix A, Parquet)."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from icefloe.errors import CorruptFile, LimitError
from icefloe.formats.parquet.field_ids import INT96_UNIT, at_location, labelled, with_time_zones
from icefloe.formats.parquet.pages import Checksums, PageReader, has_checksums, page_ranges
from icefloe.formats.parquet.stats import group_stats
from icefloe.formats.read.batches import relabel, without_columns
from icefloe.formats.read.data_file import BATCH_BYTES, PageRanges, RowRange, StoredFile
from icefloe.formats.read.storage_errors import reading
from icefloe.io.file_io import FileIO
from icefloe.limits import DEFAULT
from icefloe.model.arrow.name_mapped import has_ids
from icefloe.model.schema.name_mapping import NameMapping, by_position
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field

LEAST_ROWS = 1024  # of a batch, whatever the estimated size of a row is
NESTED_ROWS = 128 * 1024  # of nested texts, of which Arrow decodes at most 2 GB together
NESTED_VALUES = 1024 * 1024
_UNENCODED = frozenset({"PLAIN", "RLE", "BIT_PACKED"})  # of texts, and of their levels
FEW_BYTES = 256 * 1024  # that are decoded faster without threads
MANY_BYTES = 4 * 1024 * 1024  # from which on reading the page index pays off
_MANY_COLUMNS = 512  # from which on columns are not sorted by size
_TEXTS = frozenset({"UTF8", "NONE"})
_TAIL, _MAGIC = struct.Struct("<I4s"), b"PAR1"  # the length of the footer
_PLAIN_BYTES = 4  # at least, of a text with plain encoding: its length is stored first


class ParquetFile(StoredFile):
    """An open Parquet file."""

    def __init__(
        self,
        file: Any,
        pages: PageReader,
        mapping: NameMapping | None,
        location: str,
        *,
        old: frozenset[int],
        use_threads: bool,
    ) -> None:
        self._file = file
        self._pages = pages
        self._use_threads = use_threads
        self._location = location
        stored = file.schema_arrow
        own_ids = has_ids(stored)
        if mapping is not None and mapping.assumed and not own_ids:
            with at_location(location):
                mapping = by_position(mapping, stored.names)
        super().__init__(labelled(stored, mapping, location))
        self._label = None if own_ids else partial(labelled, mapping=mapping, location=location)
        self._old = old

    @cached_property
    def _dictionaries(self) -> frozenset[str]:
        """The names of columns that come back as dictionaries."""
        return frozenset(field.name for field in self.schema if pa.types.is_dictionary(field.type))

    def schema_for(self, wanted: tuple[Field, ...]) -> pa.Schema:
        """The columns as they are read for these fields; timestamps of 96 bits get the time zones of the fields."""
        return with_time_zones(self.schema, wanted, self._old, self._location)

    @property
    def footer(self) -> Any:
        """The footer as Arrow decodes it."""
        return self._file.metadata

    @cached_property
    def row_groups(self) -> tuple[RowRange, ...]:
        """The rows of each row group."""
        footer, groups, start = self._file.metadata, [], 0
        for index in range(footer.num_row_groups):
            rows = footer.row_group(index).num_rows
            groups.append(RowRange(group=index, start=start, rows=rows))
            start += rows
        return tuple(groups)

    def statistics(self, schema: Schema) -> pa.Table | None:
        """The statistics of the columns in the footer, one row for each row group."""
        return group_stats(self._file.metadata, schema, self.columns.measured(schema.fields))

    def page_ranges(self, group: RowRange, schema: Schema) -> PageRanges | None:
        """The row ranges between the page boundaries of these columns, for a large row group."""
        large = self._file.metadata.row_group(group.group).total_byte_size >= MANY_BYTES
        if not large or not self._has_plain_names:
            return None
        return page_ranges(self._pages, self._file.metadata, group, schema, self.columns.measured(schema.fields))

    def reads_pages(self, group: RowRange, wanted: tuple[Field, ...]) -> bool:
        """Whether the columns are large, and the locations of their pages are known."""
        leaves = self.columns.leaves(wanted)
        if len(leaves) == 0 or not self._has_plain_names or self._bytes(group, leaves) < MANY_BYTES:
            return False
        return self._pages.knows(group.group, leaves)

    @cached_property
    def _has_plain_names(self) -> bool:
        """Whether paths identify columns: no name of a column contains a dot."""
        return not any("." in field.name for field in self.schema)

    def read(self, rows: RowRange, wanted: tuple[Field, ...], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of a row group, or some of them; of nested columns only the fields that are wanted."""
        leaves = self.columns.leaves(wanted)
        if self._is_labelled:
            leaves = self._slow_first(leaves)
        if len(leaves) == 0:
            for start in range(0, rows.rows, batch_rows):
                yield without_columns(min(batch_rows, rows.rows - start))
            return
        label, read = None, 0
        for batch in self._batches(rows, leaves, batch_rows):
            read += batch.num_rows
            if not self._is_labelled:
                label = self._labels(batch.schema, wanted, leaves) if label is None else label
                batch = relabel(batch, label)
            yield batch
        if read != rows.rows:
            message = f"{self._location}: row group {rows.group} has {read} rows, its footer says {rows.rows}"
            raise CorruptFile(message, location=self._location)

    def _batches(self, rows: RowRange, leaves: list[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        group = self.row_groups[rows.group]
        size = self._bytes(group, leaves)
        at_once = min(batch_rows, self._rows_at_once(group, leaves, size))
        use_threads = self._use_threads and size > FEW_BYTES
        first, end = rows.start - group.start, rows.end - group.start
        if rows.rows < group.rows and self._has_plain_names and self._pages.knows(rows.group, leaves):
            for at in range(first, end, at_once):
                count = min(at_once, end - at)
                yield from self._pages.read(rows.group, leaves, at, count, use_threads=use_threads).to_batches()
            return
        batches = self._file.iter_batches(
            batch_size=at_once, row_groups=[rows.group], columns=self._paths(leaves), use_threads=use_threads
        )
        yield from batches if rows.rows == group.rows else _between(batches, first, end)

    def _paths(self, leaves: list[int]) -> list[str] | None:
        """The paths of primitive columns, for Arrow; none for all columns, in the order of the file."""
        stored = self._file.metadata.schema
        return None if leaves == list(range(len(stored))) else [stored.column(index).path for index in leaves]

    @property
    def _is_labelled(self) -> bool:
        """Whether batches come back with their ids and time zones."""
        return self._label is None and len(self._old) == 0

    def _slow_first(self, leaves: list[int]) -> list[int]:
        """Primitive columns, the largest first, so that threads finish at about the same time.

        The order is the same for all row groups. Leaves of one column stay together.
        """
        if not 1 < len(leaves) <= _MANY_COLUMNS or self._file.metadata.num_row_groups == 0:
            return leaves
        group, sizes = self._file.metadata.row_group(0), Counter[str]()
        columns = {leaf: self._file.metadata.schema.column(leaf).path.partition(".")[0] for leaf in leaves}
        for leaf, column in columns.items():
            sizes[column] += group.column(leaf).total_uncompressed_size
        return sorted(leaves, key=lambda leaf: (-sizes[columns[leaf]], leaf))

    def _bytes(self, group: RowRange, leaves: list[int]) -> int:
        """The uncompressed size of columns of a row group, before they are decoded."""
        stored = self._file.metadata.row_group(group.group)
        return sum(int(stored.column(index).total_uncompressed_size) for index in leaves)

    def _rows_at_once(self, group: RowRange, leaves: list[int], size: int) -> int:
        """How many rows of stored ``size`` to decode together for batches of about ``BATCH_BYTES``.

        Repeating texts are far larger when decoded. The decoded size is estimated from the lengths of bounds.
        """
        most, footer = max(1, BATCH_BYTES * group.rows // max(1, size)), self._file.metadata
        if group.rows <= LEAST_ROWS:
            return most
        stored, decoded = footer.row_group(group.group), size
        for index in leaves:
            chunk, column = stored.column(index), footer.schema.column(index)
            is_text = column.physical_type == "BYTE_ARRAY" and column.path not in self._dictionaries
            if not is_text or _UNENCODED.issuperset(chunk.encodings):
                continue
            decoded += max(0, chunk.num_values * _bound_length(chunk.statistics) - chunk.total_uncompressed_size)
            if column.path != column.name:
                values = NESTED_VALUES * group.rows // max(1, chunk.num_values)
                most = max(1, min(most, NESTED_ROWS, values))
        return min(most, max(LEAST_ROWS, BATCH_BYTES * group.rows // max(1, decoded)))

    def _labels(self, schema: pa.Schema, wanted: tuple[Field, ...], leaves: list[int]) -> pa.Schema:
        """The schema of a batch of some primitive columns with ids, and with the time zones that are wanted."""
        schema = schema if self._label is None else self._label(schema)
        old = frozenset(index for index, leaf in enumerate(leaves) if leaf in self._old)
        return schema if len(old) == 0 else with_time_zones(schema, wanted, old, self._location)


def _between(batches: Iterable[pa.RecordBatch], first: int, end: int) -> Iterator[pa.RecordBatch]:
    """The rows from ``first`` to ``end``, counted over all batches."""
    start = 0
    for batch in batches:
        part = batch.slice(max(0, first - start), max(0, end - max(start, first)))
        if part.num_rows > 0:
            yield part
        start += batch.num_rows


def _bound_length(statistics: Any | None) -> int:
    """The average length of the bounds of texts; 0 if there are none."""
    if statistics is None or not statistics.has_min_max:
        return 0
    bounds = [raw for raw in (statistics.min_raw, statistics.max_raw) if isinstance(raw, bytes)]
    return sum(map(len, bounds)) // max(1, len(bounds))


@contextmanager
def open_parquet(
    io: FileIO,
    location: str,
    mapping: NameMapping | None = None,
    *,
    repeating: tuple[str, ...] = (),
    use_threads: bool = True,
    checksums: Checksums | None = None,
) -> Iterator[StoredFile]:
    """An open Parquet file; ``mapping`` gives ids to the columns of a file that has none.

    With ``checksums`` every page that is read is compared with its checksum, which takes 10 to 30 % longer.

    With ``use_threads`` columns are decoded by one thread per processor. If every processor already reads a file of its
    own, more threads would only wait for each other.

    Top-level text columns are returned as dictionaries if they are stored so, and always if they are in ``repeating``:
    filtering and concatenating dictionaries takes half the time. Errors of Arrow while the file is read are raised as
    errors of this library.
    """
    files, path = io.arrow_path(location)
    with reading(location):
        # On remote storage every read is a request, so the columns of a row group are fetched together.
        far = not isinstance(files, fs.LocalFileSystem)
        source = files.open_input_file(path)
        _check_footer_size(source, location)
        settings = {"coerce_int96_timestamp_unit": INT96_UNIT, "page_checksum_verification": checksums is not None}
        plain = pq.ParquetFile(source, pre_buffer=far, **settings)
        footer = plain.metadata
        if checksums is not None:
            checksums.present = has_checksums(source, footer)
        texts, old = _special(footer)
        known = [name for name, index in texts.items() if name in repeating or _is_by_dictionary(footer, index)]
        opened = partial(pq.ParquetFile, read_dictionary=known, **settings)
        with plain if len(known) == 0 else opened(source, metadata=footer, pre_buffer=far) as file:
            pages = PageReader(source, footer, opened, far=far)
            yield ParquetFile(file, pages, mapping, location, old=old, use_threads=use_threads)


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
    """The indices of top-level columns of texts or bytes by name, and those of timestamps of 96 bits."""
    texts, old, schema = {}, set(), footer.schema
    for index in range(footer.num_columns):
        column = schema.column(index)
        kind = column.physical_type
        if kind == "INT96":
            old.add(index)
        elif kind == "BYTE_ARRAY" and column.path == column.name and column.converted_type in _TEXTS:
            texts[column.path] = index
    return texts, frozenset(old)


def _is_by_dictionary(footer: Any, index: int) -> bool:
    """Whether a column mostly holds dictionary indices rather than plain values, which take at least four bytes each.

    A footer lists the encodings of a chunk, and dictionaries themselves are stored plain: it does not say which pages
    have which encoding.
    """
    chunks = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
    size = sum(chunk.total_uncompressed_size for chunk in chunks)
    values = sum(chunk.num_values for chunk in chunks)
    return size < _PLAIN_BYTES * values and all(chunk.has_dictionary_page for chunk in chunks)

"""Reads rows of a data file of any format with the columns of a table (spec: Column Projection; Scan Planning).

Columns are matched by field id, so they may have been renamed, moved, added or promoted. The position of a row is its
position in the file, whichever row groups are skipped and whichever rows are deleted or filtered out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError, UnsupportedError
from icefloe.expr.filter.filter_columns import filter_columns
from icefloe.expr.filter.nodes import ALWAYS_FALSE, Bound, Expr, Not, Predicate, leaves
from icefloe.formats.avro.file import open_avro
from icefloe.formats.orc.file import open_orc
from icefloe.formats.parquet.field_ids import struct_ids
from icefloe.formats.parquet.file import open_parquet
from icefloe.formats.parquet.pages import Checksums
from icefloe.formats.read.data_file import StoredFile
from icefloe.formats.read.file_read import FileRead
from icefloe.formats.read.row_group_pruning import selected_rows
from icefloe.formats.read.row_group_reader import RowGroupReader
from icefloe.io.file_io import FileIO
from icefloe.model.entries import put
from icefloe.model.schema.name_mapping import NameMapping

_COUNTING_THREADS = 8
_NO_IDS = NameMapping()  # rows are counted in files without field ids too


class _Open(Protocol):
    """Opens a file of one format; with ``use_threads`` columns are decoded on all processors, if the format can."""

    def __call__(
        self, io: FileIO, location: str, mapping: NameMapping | None, *, use_threads: bool
    ) -> AbstractContextManager[StoredFile]: ...


_OPENERS: Mapping[str, _Open] = {"parquet": open_parquet, "orc": open_orc, "avro": open_avro}


def open_file(
    io: FileIO,
    location: str,
    file_format: str | None,
    mapping: NameMapping | None = None,
    *,
    use_threads: bool = True,
    checksums: Checksums | None = None,
) -> AbstractContextManager[StoredFile]:
    """An open data file; a file of an unnamed format is read as Parquet.

    With ``checksums`` the pages of Parquet files are compared with their checksums.
    """
    opener = _OPENERS.get("parquet" if file_format is None else file_format.lower())
    if opener is None:
        raise UnsupportedError(
            f"{location}: data files of format {file_format} are not handled; there are: {', '.join(_OPENERS)}",
            format=file_format,
            location=location,
        )
    if checksums is not None and opener is open_parquet:
        return open_parquet(io, location, mapping, use_threads=use_threads, checksums=checksums)
    return opener(io, location, mapping, use_threads=use_threads)


def read_file(io: FileIO, read: FileRead, *, checksums: Checksums | None = None) -> Iterator[pa.RecordBatch]:
    """The requested rows of a file, batch by batch, in the order of the file."""
    with read.origin.named():
        yield from _rows(io, read, checksums)


def _rows(io: FileIO, read: FileRead, checksums: Checksums | None) -> Iterator[pa.RecordBatch]:
    if read.filter == ALWAYS_FALSE:
        return
    filter_, mapping = _bound(read.filter), read.mapping
    tested = filter_columns(filter_, read.table)
    if mapping is not None and mapping.assumed and len(read.constants) > 0:
        # Files often lack partition columns, so another column may be at the position of one.
        kept = tuple(field for field in mapping.fields if field.field_id not in read.constants)
        mapping = replace(mapping, fields=kept)
    with open_file(
        io, read.location, read.file_format, mapping, use_threads=read.use_threads, checksums=checksums
    ) as file:
        reader = RowGroupReader(file, read, filter_, tested)
        for rows, all_match in selected_rows(file, filter_, tested, read.part):
            yield from reader.rows(rows, all_match=all_match)


def _bound(filter: Expr) -> Bound:
    unbound = [leaf.term for leaf in leaves(filter) if isinstance(leaf, Predicate)]
    if len(unbound) > 0 or isinstance(filter, (Predicate, Not)):
        raise InputError(f"bind the filter to the table's schema before reading: {filter}")
    return filter


def stored_columns(io: FileIO, location: str, mapping: NameMapping | None = None) -> frozenset[int]:
    """The ids of the columns in a Parquet file, those inside structs included; only its schema is read."""
    with open_file(io, location, "parquet", mapping) as file:
        return struct_ids(file.schema)


def row_count(io: FileIO, location: str, file_format: str | None) -> int:
    """The number of rows of a file; of Parquet and ORC only the footer is read, of Avro the sizes of its blocks."""
    with open_file(io, location, file_format, _NO_IDS, use_threads=False) as file:
        return sum(group.rows for group in file.row_groups)


def with_row_counts(io: FileIO, files: pa.Table) -> pa.Table:
    """Entries or tasks with the row count of every file; files whose ``record_count`` is null are opened.

    Old imports of Avro files stored -1 in their entries, which is read as null.
    """
    if files["record_count"].null_count == 0:
        return files
    rows = np.flatnonzero(np.asarray(pc.is_null(files["record_count"])))
    unknown = files.select(["location", "file_format"]).take(pa.array(rows))
    with ThreadPoolExecutor(_COUNTING_THREADS, thread_name_prefix="icefloe-count") as pool:
        row_counts = pool.map(
            lambda location, kind: row_count(io, location, kind), *(column.to_pylist() for column in unknown.columns)
        )
        counts = np.asarray(pc.fill_null(files["record_count"], 0)).copy()
        counts[rows] = list(row_counts)
    return put(files, "record_count", pa.array(counts, pa.int64()))

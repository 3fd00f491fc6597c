"""Reads and writes position delete files (spec: Position Delete Files).

A delete file may name many data files, of which a scan reads few. Row groups without wanted paths are skipped, and of
the others only positions of wanted files are kept. The optional column with deleted rows is not read. New files are
sorted by path and position, and their entries have exact path bounds.
"""

from __future__ import annotations

import uuid
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.deletes.bitmaps import add_positions, bitmap_of
from icefloe.deletes.delete_writer import DeleteWriter
from icefloe.deletes.partition_keys import Ints, scopes
from icefloe.deletes.vectors import with_partitions
from icefloe.env import SYSTEM
from icefloe.errors import FormatError, InputError
from icefloe.formats.parquet.field_ids import field_id
from icefloe.formats.parquet.file import open_parquet
from icefloe.formats.parquet.pages import Checksums
from icefloe.formats.parquet.stats import PARQUET
from icefloe.formats.read.align import Aligner
from icefloe.formats.read.data_file import RowRange, StoredFile
from icefloe.formats.read.promotion import readable, storage
from icefloe.formats.read.reader import open_file
from icefloe.formats.write.entries import entries_of
from icefloe.formats.write.metrics import FULL
from icefloe.io.file_io import FileIO
from icefloe.model.arrow.conform import arrow_schema, arrow_type
from icefloe.model.entries import BOUNDS, ContentType, Measure, column_key, put, stat
from icefloe.model.location_columns import index_of, spelled_alike, undecided
from icefloe.model.metadata.properties import DELETE_GRANULARITY
from icefloe.model.partition.spec import UNPARTITIONED
from icefloe.model.schema.metadata_columns import DELETE_FILE_PATH, DELETE_POS
from icefloe.model.schema.name_mapping import MappedField, NameMapping
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field

POSITION_DELETES = Schema(fields=(DELETE_FILE_PATH, DELETE_POS))

_ROWS = 1024 * 1024
# The columns of a file without field ids are found by the names in the spec.
_MAPPING = NameMapping(fields=tuple(MappedField(names=(f.name,), field_id=f.id) for f in POSITION_DELETES.fields))


def read_positions(
    io: FileIO,
    location: str,
    file_format: str | None,
    wanted: Iterable[str],
    table_location: str | None = None,
    checksums: Checksums | None = None,
) -> dict[str, BitMap64]:
    """The positions that a delete file deletes in the wanted data files; files without any are left out.

    It may spell a location in another way than the table. FormatError if it is not certain whether it names a file.
    """
    names = pa.array(sorted(set(wanted)), pa.string())
    by_file: dict[int, BitMap64] = {}
    with _opened(io, location, file_format, checksums) as file:
        for group in _row_groups(file, names):
            for batch in file.read(group, POSITION_DELETES.fields, _ROWS):
                _collect(by_file, batch, names, location, table_location)
    return {names[number].as_py(): positions for number, positions in by_file.items()}


def read_position_rows(io: FileIO, location: str, file_format: str | None, row: Field) -> Iterator[pa.RecordBatch]:
    """All rows of a delete file in order: file path, position and the deleted row, null if the file does not store it.

    ``row`` is the column of deleted rows with the columns of the table.
    """
    schema = Schema(fields=(*POSITION_DELETES.fields, row))
    with _opened(io, location, file_format) as file:
        align: Aligner | None = None
        for group in file.row_groups:
            for batch in file.read(group, schema.fields, _ROWS):
                for field in POSITION_DELETES.fields:
                    _column(batch, field, location)
                align = Aligner(batch.schema, schema, location, {}) if align is None else align
                yield align(batch)


def _opened(
    io: FileIO, location: str, file_format: str | None, checksums: Checksums | None = None
) -> AbstractContextManager[StoredFile]:
    if file_format is None or file_format.lower() == PARQUET:
        return open_parquet(io, location, _MAPPING, repeating=(DELETE_FILE_PATH.name,), checksums=checksums)
    return open_file(io, location, file_format, _MAPPING)


def _row_groups(file: StoredFile, names: pa.Array) -> Iterator[RowRange]:
    """The row groups that may name one of the wanted files; all if they spell locations in another way."""
    statistics, texts = file.statistics(Schema(fields=(DELETE_FILE_PATH,))), names.to_pylist()
    if statistics is not None and not spelled_alike(names, *_bounds(statistics)):
        statistics = None
    for row, group in enumerate(file.row_groups):
        if group.rows > 0 and (statistics is None or _may_name(statistics, row, texts)):
            yield group


def _may_name(statistics: pa.Table, row: int, names: list[str]) -> bool:
    lower, upper = (_bound(statistics, measure, row) for measure in BOUNDS)
    first = 0 if lower is None else bisect_left(names, lower)
    return first < len(names) and (upper is None or names[first] <= upper)


def _bound(statistics: pa.Table, measure: Measure, row: int) -> str | None:
    name = stat(measure, column_key(DELETE_FILE_PATH.id))
    bound: str | None = statistics[name][row].as_py() if name in statistics.column_names else None
    return bound


def _bounds(statistics: pa.Table) -> list[pa.ChunkedArray]:
    names = [stat(measure, column_key(DELETE_FILE_PATH.id)) for measure in BOUNDS]
    return [statistics[name] for name in names if name in statistics.column_names]


def _collect(
    by_file: dict[int, BitMap64], batch: pa.RecordBatch, names: pa.Array, location: str, table_location: str | None
) -> None:
    """Add the positions of a batch to ``by_file``, by the index of the data file in ``names``."""
    paths, positions = (_column(batch, field, location) for field in POSITION_DELETES.fields)
    if batch.num_rows == 0:
        return
    rows = _file_numbers(paths, names, location, table_location)
    values: Ints = positions.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    if values.min() < 0:
        raise FormatError(f"{location}: row position {values.min()} is negative", location=location)
    if (rows[1:] < rows[:-1]).any():
        order = np.argsort(rows, kind="stable")
        rows, values = rows[order], values[order]
    starts = np.flatnonzero(np.diff(rows, prepend=-2))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=False):
        number = int(rows[start])
        if number >= 0:
            add_positions(by_file, number, bitmap_of(values[start:end]))


def _file_numbers(paths: Any, names: pa.Array, location: str, table_location: str | None) -> Ints:
    """For each row the index of its data file in ``names``; -1 if it is not there."""
    encoded = paths if pa.types.is_dictionary(paths.type) else paths.dictionary_encode()
    listed = encoded.dictionary.cast(pa.string())
    index = index_of(listed, names, table_location)
    if (pair := undecided(listed.filter(index.is_null()), names, table_location)) is not None:
        raise FormatError(
            f"position delete file {location}: it deletes rows of {pair[0]}, which may be another spelling of the data"
            f" file {pair[1]}; rewrite the delete file with the location that the table has",
            location=location,
        )
    numbers: Ints = pc.fill_null(index, -1).to_numpy().astype(np.int64)[encoded.indices.to_numpy()]
    return numbers


def _column(batch: pa.RecordBatch, field: Field, location: str) -> Any:
    """A column by its field id; it must have the right type and no nulls."""
    for index, stored in enumerate(batch.schema):
        if field_id(stored) == field.id:
            column = batch.column(index)
            break
    else:
        raise FormatError(f"{location}: a position delete file lacks column {field.name!r}", location=location)
    if not readable(column.type, arrow_type(field.type)):
        message = f"{location}: column {field.name!r} is {storage(column.type)}, not {field.type}"
        raise FormatError(message, location=location, field=field.name)
    if column.null_count > 0:
        raise FormatError(f"{location}: column {field.name!r} has nulls", location=location, field=field.name)
    return column


def write_position_deletes(
    io: FileIO,
    tasks: pa.Table,
    deleted: Mapping[str, BitMap64],
    *,
    data_location: str,
    properties: Mapping[str, str],
    new_uuid: Callable[[], uuid.UUID] = SYSTEM.new_uuid,
) -> pa.Table:
    """Write the deleted positions of data files to new delete files, durable on return; the entries to commit.

    ``tasks`` are the planned files; the entries get their partition values. The table property
    ``write.delete.granularity`` determines whether there is one delete file per partition or per data file.
    """
    files = DeleteWriter(io, POSITION_DELETES, data_location=data_location, properties=properties, run=str(new_uuid()))
    sources: list[int] = []  # for each delete file, a task with its partition
    named: list[str | None] = []  # and the data file, if it is only one
    with files:
        for rows in _groups(tasks, deleted, DELETE_GRANULARITY.of(properties)):
            paths = tasks["location"].take(pa.array(rows)).to_pylist()
            written = len(files.written)
            for path in sorted(paths):
                for batch in _batches(path, deleted[path]):
                    files.add(batch)
            files.end()
            sources += [rows[0]] * (len(files.written) - written)
            named += [paths[0] if len(paths) == 1 else None] * (len(files.written) - written)
        modes = dict.fromkeys(POSITION_DELETES.by_id, FULL)
        entries = entries_of(
            files.finish(),
            schema=POSITION_DELETES,
            spec=UNPARTITIONED,
            modes=modes,
            content=ContentType.POSITION_DELETES,
        )
        entries = put(entries, "referenced_file", pa.array(named, pa.string()))
        return with_partitions(entries, tasks, pa.array(sources, pa.int64()))


def _groups(tasks: pa.Table, deleted: Mapping[str, BitMap64], granularity: str) -> list[list[int]]:
    """The rows of tasks with deleted positions, grouped by the delete file to write."""
    changed = pa.array([file for file, positions in deleted.items() if len(positions) > 0], pa.string())
    rows = np.flatnonzero(pc.is_in(tasks["location"], value_set=changed).to_numpy())
    if len(rows) < len(changed):
        raise InputError(f"rows are deleted in {len(changed) - len(rows)} files that are not planned")
    if granularity == "file":
        return [[row] for row in rows.tolist()]
    if granularity != "partition":
        raise InputError(
            f"property {DELETE_GRANULARITY.name}: expected partition or file, got {granularity!r}",
            property=DELETE_GRANULARITY.name,
        )
    groups: dict[int, list[int]] = {}
    for row, code in zip(rows.tolist(), scopes(tasks.take(pa.array(rows))).tolist(), strict=True):
        groups.setdefault(code, []).append(row)
    return list(groups.values())


def _batches(path: str, positions: BitMap64) -> Iterator[pa.RecordBatch]:
    numbers = np.asarray(positions.to_array()).astype(np.int64)
    for start in range(0, len(numbers), _ROWS):
        some = pa.array(numbers[start : start + _ROWS])
        yield pa.RecordBatch.from_arrays([pa.repeat(path, len(some)), some], schema=arrow_schema(POSITION_DELETES))

"""Data files at paths, and folders of them that become tables: columns, partition columns of paths, rows.

The columns are those of all files together, by name. A folder of Hive, such as ``region=eu/part-0.parquet``, has its
partition columns in the paths; their types are found from all values (spec: Column Projection; Partitioning).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from functools import partial

import pyarrow as pa

from icefloe.errors import InputError, NoSuchFile
from icefloe.formats.importing.foreign_file import format_of
from icefloe.formats.importing.stated_partitions import constant_of, hive_values, value_of
from icefloe.formats.read.file_read import FileRead
from icefloe.formats.read.reader import open_file, read_file
from icefloe.formats.write.partition_values import partition_fields
from icefloe.io.file_io import FileIO
from icefloe.io.local import file_location
from icefloe.io.storage_locations import plain_location
from icefloe.model.arrow.arrow_types import arrow_schema
from icefloe.model.arrow.name_mapped import has_ids
from icefloe.model.locations import FILE, spellings
from icefloe.model.schema.name_mapping import NameMapping, mapping_of
from icefloe.model.schema.schema import Schema
from icefloe.model.text.partition_text import partition_spec

THREADS = 8  # footers are small, so most of the time is spent waiting
_DELTA_LOG = "_delta_log"
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")


def data_files(io: FileIO, paths: list[str]) -> list[str]:
    """The files of these paths, and the data files in folders; InputError if a file is given twice."""
    locations: list[str] = []
    paths_by_location: dict[str, str] = {}
    for path in paths:
        for location in _files(io, path):
            if location in paths_by_location:
                first = paths_by_location[location]
                raise InputError(f"{location} is given twice: by {first!r} and {path!r}", location=location)
            paths_by_location.update(dict.fromkeys(spellings(location), path))
            locations.append(location)
    return locations


def _files(io: FileIO, path: str) -> list[str]:
    location = _usual(file_location(path))
    if not path.endswith("/") and io.exists(location):
        return [location]
    inside = sorted(info.location for info in io.list(location))
    if len(inside) == 0:
        raise NoSuchFile(f"there is no file at {location}, and none below it", location=location)
    return [file for file in inside if not _is_hidden(file[len(location) :])]


def _usual(location: str) -> str:
    """A file location as listings state it: with one slash between names, and without a host."""
    parsed = plain_location(location)
    if parsed.scheme != FILE or parsed.authority != "":
        return location
    path = "/" + "/".join(parsed.segments)
    return location if location == f"file:{path}" else f"file://{path}"


def _is_hidden(path: str) -> bool:
    """Whether the name of a file says that it is not a data file, such as Spark's ``_SUCCESS`` and ``.x.crc``."""
    return any(part.startswith((".", "_")) and "=" not in part for part in path.split("/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFolder:
    """The data files of a folder, and what they have in common."""

    io: FileIO
    location: str
    files: tuple[str, ...]
    file_format: str  # of all files
    schema: pa.Schema  # partition columns of paths are last
    partition_columns: tuple[str, ...]  # those that the files lack
    stated: Mapping[str, Mapping[str, object]] | None = None  # partition values by file; none: the paths state them
    kept_rows: Mapping[str, pa.Array] = field(default_factory=dict)  # by file: a mask without its deleted rows
    properties: Mapping[str, str] = field(default_factory=dict)  # of the imported table

    def partition_of(self, file: str) -> Mapping[str, object]:
        """The partition values of a file by column name."""
        return hive_values(file) if self.stated is None else self.stated[file]


def look_into(io: FileIO, folder: str) -> ImportedFolder:
    """Read the footers of all data files in a folder; InputError if they do not make one table."""
    if next(iter(io.list(f"{folder.rstrip('/')}/{_DELTA_LOG}")), None) is not None:
        raise InputError(
            f"{folder} is a Delta table: not all files in it have live rows; import it with format='delta'",
            location=folder,
        )
    files = tuple(data_files(io, [folder]))
    formats = {format_of(io, file) for file in files}
    if len(formats) != 1:
        raise InputError(
            f"{folder} has data files of several formats, {', '.join(sorted(formats))}; import one folder for each",
            location=folder,
        )
    file_format = formats.pop()
    with ThreadPoolExecutor(THREADS, thread_name_prefix="icefloe-import") as pool:
        schemas = list(pool.map(partial(_schema, io, file_format), files))
    columns = _unified(files, schemas, folder)
    in_paths = _path_columns(files, folder)
    fields = [field for field in columns if field.name not in in_paths.names]
    return ImportedFolder(
        io=io,
        location=folder,
        files=files,
        file_format=file_format,
        schema=pa.schema([*fields, *in_paths]),
        partition_columns=tuple(in_paths.names),
    )


def folder_rows(folder: ImportedFolder, schema: Schema) -> pa.RecordBatchReader:
    """The rows of all files as a stream, with the columns of a table; paths supply their partition columns."""
    return pa.RecordBatchReader.from_batches(arrow_schema(schema), _batches(folder, schema))


def _batches(folder: ImportedFolder, schema: Schema) -> Iterator[pa.RecordBatch]:
    columns = partition_fields(schema, partition_spec(folder.partition_columns, schema))
    for file in folder.files:
        values = folder.partition_of(file)
        constants = {
            column.field.source_id: constant_of(value_of(values[column.path[0]], column), column) for column in columns
        }
        read = FileRead(
            location=file,
            file_format=folder.file_format,
            schema=schema,
            constants=constants,
            mapping=mapping_of(schema),
        )
        rows = read_file(folder.io, read)
        yield from _kept(rows, folder.kept_rows[file]) if file in folder.kept_rows else rows


def _kept(batches: Iterable[pa.RecordBatch], mask: pa.Array) -> Iterator[pa.RecordBatch]:
    """The rows that a mask keeps; rows after its end are kept."""
    done = 0
    for batch in batches:
        mine = mask.slice(done, batch.num_rows)
        rest = pa.repeat(True, batch.num_rows - len(mine))
        done += batch.num_rows
        yield batch.filter(pa.concat_arrays([mine, rest]))


def _schema(io: FileIO, file_format: str, location: str) -> pa.Schema:
    with open_file(io, location, file_format, NameMapping()) as file:
        if has_ids(file.schema):
            raise InputError(
                f"{location} has field ids, so it was written for an Iceberg table; register that table by its metadata"
                " file with register_table, or add the file to a table of the same columns with add_files",
                location=location,
            )
        return pa.schema([field.remove_metadata() for field in file.schema])


def _unified(files: Sequence[str], schemas: Sequence[pa.Schema], folder: str) -> pa.Schema:
    """The columns of all files, with the wider of two types."""
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        first = schemas[0]
        other = next((file for file, schema in zip(files, schemas, strict=True) if not schema.equals(first)), files[0])
        raise InputError(
            f"the files in {folder} have columns of different types: {error}; compare {files[0]} and {other}, and give"
            " schema=",
            location=other,
        ) from error


def _path_columns(files: Sequence[str], folder: str) -> pa.Schema:
    """The partition columns of the paths below the folder; InputError if files have different ones."""
    outside = hive_values(f"{folder.rstrip('/')}/x")
    values = [{name: text for name, text in hive_values(file).items() if name not in outside} for file in files]
    names = list(values[0])
    for file, stated in zip(files, values, strict=True):
        if list(stated) != names:
            raise InputError(
                f"{file} is in a folder of {', '.join(stated) or 'no partition'}, {files[0]} in one of"
                f" {', '.join(names) or 'no partition'}; the folders of all files must have the same names",
                location=file,
            )
    return pa.schema([pa.field(name, path_type(stated[name] for stated in values)) for name in names])


def path_type(texts: Iterable[str | None]) -> pa.DataType:
    """The type of a partition column in paths: whole numbers, dates, or else text. Leading zeros make it text.

    >>> path_type(["1", "22", None]), path_type(["2026-11-15"]), path_type(["01"])
    (DataType(int64), DataType(date32[day]), DataType(string))
    """
    stated = {text for text in texts if text is not None}
    if len(stated) > 0 and all(_WHOLE.fullmatch(text) is not None for text in stated):
        return pa.int64()
    return pa.date32() if len(stated) > 0 and all(_is_date(text) for text in stated) else pa.string()


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False

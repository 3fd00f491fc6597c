"""Reads equality delete files (spec: Equality Delete Files).

Delete columns are found by field id, in delete files and in data files, and compared in their current type. Their
position inside structs comes from the delete file, as the table may have dropped the columns or the structs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from icefloe.deletes.equality_index import EqualityIndex
from icefloe.deletes.partition_keys import Mask
from icefloe.errors import FormatError, UnsupportedError
from icefloe.formats.parquet.field_ids import field_id, struct_ids
from icefloe.formats.parquet.pages import Checksums
from icefloe.formats.read.align import Aligner
from icefloe.formats.read.promotion import storage
from icefloe.formats.read.reader import open_file
from icefloe.io.file_io import FileIO
from icefloe.model.arrow.conform import arrow_schema, schema_from_arrow
from icefloe.model.metadata.version_rules import LATEST_FORMAT_VERSION
from icefloe.model.schema.name_mapping import NameMapping
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, Struct, is_primitive

_THREADS = 8
_ROWS = 128 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """An equality delete file; it deletes rows with a lower sequence number."""

    location: str
    file_format: str | None
    sequence_number: int


@dataclass(frozen=True, slots=True)
class EqualityTest:
    """Finds the rows of one data file that equal a delete row with a higher sequence number."""

    index: EqualityIndex
    sequence_number: int  # of the data file

    @property
    def schema(self) -> Schema:
        """The delete columns, inside their structs."""
        return self.index.schema

    def __call__(self, rows: pa.RecordBatch) -> Mask:
        """Which rows are deleted."""
        return self.index.matches(rows, self.sequence_number)


def read_index(
    io: FileIO,
    files: Iterable[DeleteFile],
    ids: Iterable[int],
    *,
    fields: Mapping[int, Field],
    mapping: NameMapping | None = None,
    checksums: Checksums | None = None,
) -> EqualityIndex:
    """An index of the rows of delete files, at least one, that all compare the columns ``ids``."""
    listed, wanted = list(files), frozenset(ids)
    with open_file(io, listed[0].location, listed[0].file_format, mapping) as stored:
        schema = delete_schema(stored.schema, wanted, fields, listed[0].location)
    with ThreadPoolExecutor(min(_THREADS, len(listed)), thread_name_prefix="icefloe-deletes") as pool:
        tables = list(pool.map(lambda file: _read(io, file, schema, wanted, mapping, checksums), listed))
    ages = np.repeat([file.sequence_number for file in listed], [table.num_rows for table in tables]).astype(np.int64)
    return EqualityIndex(schema, pa.concat_tables(tables), ages)


def _read(
    io: FileIO,
    file: DeleteFile,
    schema: Schema,
    ids: frozenset[int],
    mapping: NameMapping | None,
    checksums: Checksums | None,
) -> pa.Table:
    """The delete columns of one file."""
    batches = []
    with open_file(io, file.location, file.file_format, mapping, checksums=checksums) as stored:
        _check_present(ids, struct_ids(stored.schema), file.location)
        align: Aligner | None = None
        for group in stored.row_groups:
            for batch in stored.read(group, schema.fields, _ROWS):
                align = align or Aligner(batch.schema, schema, file.location, {})
                batches.append(align(batch))
    return pa.Table.from_batches(batches, arrow_schema(schema))


def delete_schema(stored: pa.Schema, ids: frozenset[int], fields: Mapping[int, Field], location: str) -> Schema:
    """The columns that a delete file compares, with their current types and inside their structs."""
    _check_present(ids, struct_ids(stored), location)
    return Schema(fields=_Finder(ids, fields, location).fields(list(stored)))


def _check_present(ids: frozenset[int], present: frozenset[int], location: str) -> None:
    missing = sorted(ids - present)
    if len(ids) == 0:
        raise FormatError(f"equality delete file {location} names no delete columns", location=location)
    if len(missing) > 0:
        raise FormatError(f"equality delete file {location} lacks its delete column {missing[0]}", location=location)


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds delete columns among the columns of one file."""

    ids: frozenset[int]
    known: Mapping[int, Field]
    location: str

    def fields(self, stored: list[pa.Field]) -> tuple[Field, ...]:
        """The delete columns among some fields of the file, and the structs that contain delete columns."""
        chosen: list[Field] = []
        for field in stored:
            id_, plain = field_id(field), storage(field.type)
            if id_ is None:
                continue
            if id_ in self.ids:
                chosen.append(self._compared(field, id_))
            elif isinstance(plain, pa.StructType):
                inner = self.fields([plain.field(i) for i in range(plain.num_fields)])
                if len(inner) > 0:
                    known = self.known.get(id_, Field(id_, field.name, Struct(inner)))
                    chosen.append(replace(known, type=Struct(inner), required=False))
        return _with_distinct_names(chosen)

    def _compared(self, field: pa.Field, id_: int) -> Field:
        known = self.known.get(id_)
        if known is None:  # unused schemas may have been removed from the table
            known = schema_from_arrow(pa.schema([field]), format_version=LATEST_FORMAT_VERSION).fields[0]
        if not is_primitive(known.type):
            raise UnsupportedError(
                f"equality delete file {self.location}: column {known.name!r} is a {known.type}, and only columns of"
                " primitive types are compared; compact the table with the program that wrote the file",
                location=self.location,
                field=known.name,
            )
        return replace(known, id=id_, required=False)


def _with_distinct_names(fields: list[Field]) -> tuple[Field, ...]:
    """The fields with distinct names: a column may have the name of one that was dropped."""
    names = [field.name for field in fields]
    return tuple(f if names.count(f.name) == 1 else replace(f, name=f"{f.name}#{f.id}") for f in fields)

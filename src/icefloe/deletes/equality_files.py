"""Equality delete files as a scan sees them: rows deleted by their values (spec: Equality Delete Files).

Delete columns are found by id, in the delete file as in data files, and compared in the type that they have now. The
delete file itself tells where they lie, for the table may have dropped them since, or a struct around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from icefloe.deletes.equality_index import EqualityIndex
from icefloe.deletes.equality_pruning import Mask
from icefloe.errors import FormatError, UnsupportedError
from icefloe.formats.parquet.field_ids import field_id, struct_ids
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
    """An equality delete file: where it is, and the sequence number that says how old rows it deletes."""

    location: str
    file_format: str | None
    sequence_number: int


@dataclass(frozen=True, slots=True)
class EqualityTest:
    """Drops the rows of one data file that equal a newer delete row."""

    index: EqualityIndex
    sequence_number: int  # of the data file

    @property
    def schema(self) -> Schema:
        """The delete columns, inside the structs that they lie in."""
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
) -> EqualityIndex:
    """The rows of delete files that compare the columns ``ids``, ready to be asked; there is at least one file."""
    found, wanted = list(files), frozenset(ids)
    with open_file(io, found[0].location, found[0].file_format, mapping) as stored:
        schema = delete_schema(stored.schema, wanted, fields, found[0].location)
    with ThreadPoolExecutor(min(_THREADS, len(found)), thread_name_prefix="icefloe-deletes") as pool:
        tables = list(pool.map(lambda file: _read(io, file, schema, wanted, mapping), found))
    ages = np.repeat([file.sequence_number for file in found], [table.num_rows for table in tables]).astype(np.int64)
    return EqualityIndex(schema, pa.concat_tables(tables), ages)


def _read(io: FileIO, file: DeleteFile, schema: Schema, ids: frozenset[int], mapping: NameMapping | None) -> pa.Table:
    """The delete columns of one file."""
    batches = []
    with open_file(io, file.location, file.file_format, mapping) as stored:
        _check_present(ids, struct_ids(stored.schema), file.location)
        align: Aligner | None = None
        for piece in stored.pieces:
            for batch in stored.read(piece, schema.fields, _ROWS):
                align = align or Aligner(batch.schema, schema, file.location, {})
                batches.append(align(batch))
    return pa.Table.from_batches(batches, arrow_schema(schema))


def delete_schema(stored: pa.Schema, ids: frozenset[int], fields: Mapping[int, Field], location: str) -> Schema:
    """The columns that a delete file compares, of the types they have now and inside the structs around them."""
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
    """Looks for delete columns among the columns of one file."""

    ids: frozenset[int]
    known: Mapping[int, Field]
    location: str

    def fields(self, stored: list[pa.Field]) -> tuple[Field, ...]:
        """The delete columns among some fields of the file, and the structs that hold others."""
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
        return _told_apart(chosen)

    def _compared(self, field: pa.Field, id_: int) -> Field:
        known = self.known.get(id_)
        if known is None:  # schemas that are no longer needed may have been removed from the table
            known = schema_from_arrow(pa.schema([field]), format_version=LATEST_FORMAT_VERSION).fields[0]
        if not is_primitive(known.type):
            raise UnsupportedError(
                f"equality delete file {self.location}: column {known.name!r} is a {known.type}, and only columns of"
                " primitive types are compared; compact the table with the program that wrote the file",
                location=self.location,
                field=known.name,
            )
        return replace(known, id=id_, required=False)


def _told_apart(fields: list[Field]) -> tuple[Field, ...]:
    """The fields under names that differ: a column may have the name of another that was dropped."""
    names = [field.name for field in fields]
    return tuple(f if names.count(f.name) == 1 else replace(f, name=f"{f.name}#{f.id}") for f in fields)

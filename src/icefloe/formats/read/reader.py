"""Rows of a data file as a table sees them now, whatever the file's format (spec: Column Projection; Scan Planning).

Columns are matched by field id through renames, moves, additions and promotions. Physics comes first: a row's position
is where it lies in the file, whatever pieces are skipped and whatever rows a delete or a filter drops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

import pyarrow as pa

from icefloe.errors import InputError, UnsupportedError
from icefloe.expr.filter.filter_columns import filter_columns
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Bound, Expr, Not, Predicate, leaves
from icefloe.formats.avro.file import open_avro
from icefloe.formats.orc.file import open_orc
from icefloe.formats.parquet.checksums import Checksums
from icefloe.formats.parquet.field_ids import struct_ids
from icefloe.formats.parquet.file import open_parquet
from icefloe.formats.read.data_file import StoredFile
from icefloe.formats.read.inherited_columns import NO_LINEAGE, Completer, Lineage
from icefloe.formats.read.row_group_pruning import WHOLE, Share, chosen
from icefloe.formats.read.row_group_reader import PieceReader, Reading
from icefloe.formats.read.row_mask import NO_DROPS, FileDrops
from icefloe.io.file_io import FileIO
from icefloe.model.schema.metadata_columns import POS
from icefloe.model.schema.name_mapping import NameMapping
from icefloe.model.schema.schema import Schema

BATCH_ROWS = 1024 * 1024


class _Open(Protocol):
    """How a file is opened; one that is read ``alone`` may use all processors, if its format can."""

    def __call__(
        self, io: FileIO, location: str, mapping: NameMapping | None, *, alone: bool
    ) -> AbstractContextManager[StoredFile]: ...


_OPENERS: Mapping[str, _Open] = {"parquet": open_parquet, "orc": open_orc, "avro": open_avro}
BY_COLUMN = frozenset({"parquet", "orc"})  # formats of which a column can be read without the others


def open_file(
    io: FileIO,
    location: str,
    file_format: str | None,
    mapping: NameMapping | None = None,
    *,
    alone: bool = True,
    checksums: Checksums | None = None,
) -> AbstractContextManager[StoredFile]:
    """An open data file of any format that is handled; a file of an unnamed format is taken for Parquet.

    Only Parquet has ``checksums``.
    """
    opener = _OPENERS.get("parquet" if file_format is None else file_format.lower())
    if opener is None:
        raise UnsupportedError(
            f"{location}: data files of format {file_format} are not handled; there are: {', '.join(_OPENERS)}",
            format=file_format,
            location=location,
        )
    if checksums is not None and opener is open_parquet:
        return open_parquet(io, location, mapping, alone=alone, checksums=checksums)
    return opener(io, location, mapping, alone=alone)


def read_file(
    io: FileIO,
    location: str,
    *,
    file_format: str | None = "parquet",
    schema: Schema,
    filter: Expr = ALWAYS_TRUE,
    table_schema: Schema | None = None,
    drops: FileDrops = NO_DROPS,
    constants: Mapping[int, pa.Scalar] = MappingProxyType({}),
    lineage: Lineage = NO_LINEAGE,
    mapping: NameMapping | None = None,
    row_positions: bool = False,
    share: Share = WHOLE,
    alone: bool = True,
    batch_rows: int = BATCH_ROWS,
    checksums: Checksums | None = None,
) -> Iterator[pa.RecordBatch]:
    """The columns of ``schema`` for rows that are not dropped and match a filter, batch by batch, in file order.

    ``filter`` is bound to ``table_schema`` (by default ``schema``) and may test columns that are not returned.
    ``constants`` has values by column id for columns that the file lacks, such as those of its partition. ``schema``
    may have metadata columns; ``lineage`` is what rows inherit then, and with ``_deleted`` dropped rows come back too.
    ``mapping`` gives ids to the columns of a file without any. With ``row_positions`` a last column ``_pos`` holds each
    row's position in the file. ``share`` says which part of the file to read, ``alone`` whether it may take
    all processors. With ``checksums`` the pages are compared with theirs.
    """
    if filter == ALWAYS_FALSE:
        return
    bound, whole = _bound(filter), schema if table_schema is None else table_schema
    wanted = Schema(fields=(*schema.fields, POS)) if row_positions else schema
    if mapping is not None and mapping.assumed and len(constants) > 0:
        # Files often lack partition columns, so another column may lie at the position of one.
        mapping = replace(mapping, fields=tuple(field for field in mapping.fields if field.field_id not in constants))
    with open_file(io, location, file_format, mapping, alone=alone, checksums=checksums) as file:
        reading = Reading(
            file=file,
            location=location,
            complete=Completer(wanted, location, lineage),
            table=whole,
            tested=filter_columns(bound, whole),
            filter=bound,
            drops=drops,
            constants=constants,
            batch_rows=batch_rows,
            by_column=file_format is None or file_format.lower() in BY_COLUMN,
        )
        pieces = PieceReader(reading)
        for piece, every in chosen(file, bound, reading.tested, share):
            yield from pieces.rows(piece, every=every)


def stored_columns(
    io: FileIO, location: str, file_format: str | None = "parquet", mapping: NameMapping | None = None
) -> frozenset[int]:
    """The ids of the columns that a file holds, those inside structs included; only its schema is read."""
    with open_file(io, location, file_format, mapping) as file:
        return struct_ids(file.schema)


def _bound(filter: Expr) -> Bound:
    unbound = [leaf.term for leaf in leaves(filter) if isinstance(leaf, Predicate)]
    if len(unbound) > 0 or isinstance(filter, (Predicate, Not)):
        raise InputError(f"bind the filter to the table's schema before reading: {filter}")
    return filter

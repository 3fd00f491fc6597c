"""What a reader asks of a data file, whatever its format (spec: Column Projection; Scan Planning).

A file is a row of pieces, each readable by itself: the row groups of Parquet, the stripes of ORC, runs of blocks of
Avro. A piece knows the position of its first row, so rows have their positions whichever pieces are read. Where a file
knows its pages, some rows of a piece can be read without the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import pyarrow as pa

from icefloe.formats.parquet.field_ids import StoredColumns
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field

BATCH_BYTES = 64 * 1024 * 1024  # about, of the rows that are decoded together


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a file that can be read by itself: its number, the position of its first row, and how many it has."""

    index: int
    start: int
    rows: int

    @property
    def end(self) -> int:
        """The position behind its last row."""
        return self.start + self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Parts of a piece, which are pieces with the same index, and a row of statistics for each."""

    pieces: tuple[Piece, ...]
    statistics: pa.Table


class StoredFile(Protocol):
    """An open data file."""

    @property
    def schema(self) -> pa.Schema:
        """The columns with their ids (``PARQUET:field_id``) at every depth: the file's own, or those of a mapping."""
        ...

    @property
    def ids(self) -> Collection[int]:
        """The ids of the columns, but not of fields inside of them."""
        ...

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All pieces, in the order of their rows."""
        ...

    def statistics(self, schema: Schema) -> pa.Table | None:
        """The statistics of the columns of ``schema``, one row for each piece; none if the format has none."""
        ...

    def runs(self, piece: Piece, schema: Schema) -> Runs | None:
        """The parts of a piece that the file tells apart by the columns of ``schema``; none if it does not."""
        ...

    def divides(self, piece: Piece, wanted: tuple[Field, ...]) -> bool:
        """Whether some rows of a piece are read sooner than all of them, by a piece of its number with just those."""
        ...

    def read(self, piece: Piece, wanted: tuple[Field, ...], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """All rows of a piece in order, in batches that all have the same schema.

        At least the columns with the ids of ``wanted`` come back, as they are stored and labelled like ``schema``;
        fields inside a column that ``wanted`` does not have may be left out. A batch without columns still has its
        number of rows.
        """
        ...


class WholePieces:
    """What files have in common whose pieces are read whole: columns with ids, and no parts of pieces."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    @property
    def schema(self) -> pa.Schema:
        """The columns with their ids."""
        return self._schema

    @cached_property
    def ids(self) -> Collection[int]:
        """The ids of the columns."""
        return StoredColumns(self._schema).ids

    def runs(self, piece: Piece, schema: Schema) -> Runs | None:
        """None: no statistics of parts of a piece are used."""
        return None

    def divides(self, piece: Piece, wanted: tuple[Field, ...]) -> bool:
        """No: a piece is read whole."""
        return False

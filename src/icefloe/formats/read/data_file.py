"""An open data file of any format (spec: Column Projection; Scan Planning).

A file consists of row groups that can be read by themselves: the row groups of Parquet, the stripes of ORC, runs of
blocks of Avro. The position of the first row of each is known, so rows have their positions whichever row groups are
read. If a file has a page index, ranges of rows inside a row group can be read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from icefloe.formats.parquet.field_ids import StoredColumns
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field

BATCH_BYTES = 64 * 1024 * 1024  # about, of the rows that are decoded together


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRange:
    """Rows of one row group: the number of the group, the position of the first row in the file, how many rows."""

    group: int
    start: int
    rows: int

    @property
    def end(self) -> int:
        """The position after the last row."""
        return self.start + self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRanges:
    """Ranges of rows of one row group, and a row of statistics for each."""

    ranges: tuple[RowRange, ...]
    statistics: pa.Table


class StoredFile(ABC):
    """An open data file.

    ``schema`` has its columns with their ids (``PARQUET:field_id``) at every depth: its own ids, or those of a mapping.
    """

    is_columnar = True  # whether a column can be read without the others

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    @cached_property
    def columns(self) -> StoredColumns:
        """The columns by id."""
        return StoredColumns(self.schema)

    @property
    def ids(self) -> Collection[int]:
        """The ids of the columns, but not of fields inside of them."""
        return self.columns.ids

    @property
    @abstractmethod
    def row_groups(self) -> tuple[RowRange, ...]:
        """The rows of each row group."""

    @abstractmethod
    def statistics(self, schema: Schema) -> pa.Table | None:
        """The statistics of the columns of ``schema``, one row for each row group; none if the format has none."""

    def page_ranges(self, group: RowRange, schema: Schema) -> PageRanges | None:
        """The row ranges of a row group that have statistics of columns of ``schema``; none if there are none."""
        return None

    def reads_pages(self, group: RowRange, wanted: tuple[Field, ...]) -> bool:
        """Whether reading some rows of a row group takes less time than reading all of them."""
        return False

    @abstractmethod
    def read(self, rows: RowRange, wanted: tuple[Field, ...], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """All rows of a range in order, in batches that all have the same schema.

        At least the columns with the ids of ``wanted`` are returned, as they are stored and labelled like ``schema``;
        fields inside a column that ``wanted`` does not have may be left out. A batch without columns still has its
        number of rows.
        """

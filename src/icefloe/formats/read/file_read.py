"""What to read of one data file, as a value (spec: Column Projection; Scan Planning; Row-level Deletes)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.formats.read.inherited_columns import NO_LINEAGE, Lineage
from icefloe.model.metadata.error_context import NOWHERE, Origin
from icefloe.model.schema.name_mapping import NameMapping
from icefloe.model.schema.schema import Schema

Mask: TypeAlias = npt.NDArray[np.bool_]
T = TypeVar("T")

BATCH_ROWS = 1024 * 1024


class RowTest(Protocol):
    """Finds rows that are deleted by their values, such as by equality deletes; files and threads may share it."""

    @property
    def schema(self) -> Schema:
        """The columns that the test reads; they may be nested, and the table may have dropped them."""
        ...

    def __call__(self, rows: pa.RecordBatch) -> Mask:
        """True where a row is deleted; ``rows`` has exactly the columns of ``schema``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDeletes:
    """The deleted rows of one data file: row positions, and tests of row values."""

    positions: BitMap64 | None = None
    tests: tuple[RowTest, ...] = ()

    def also(self, positions: BitMap64 | None) -> FileDeletes:
        """These deletes and further positions."""
        if positions is None:
            return self
        return replace(self, positions=positions if self.positions is None else self.positions | positions)


NO_DELETES = FileDeletes()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """One of ``count`` parts of a file with about equally many row groups; parts can be read in parallel."""

    index: int
    count: int

    def of(self, items: Sequence[T]) -> Sequence[T]:
        """The items, such as row groups, that belong to this part.

        >>> [FilePart(index=i, count=2).of("abcde") for i in range(2)]
        ['ab', 'cde']
        """
        return items[len(items) * self.index // self.count : len(items) * (self.index + 1) // self.count]


WHOLE_FILE = FilePart(index=0, count=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """One data file, and which rows and columns of it to read.

    ``schema`` has the columns to return; metadata columns may be among them. With ``_deleted`` deleted rows are
    returned too. ``filter`` is bound to ``table_schema`` and may test columns that are not returned.
    """

    location: str
    file_format: str | None = "parquet"
    schema: Schema
    table_schema: Schema | None = None  # all columns of the table; by default those of ``schema``
    filter: Expr = ALWAYS_TRUE
    deletes: FileDeletes = NO_DELETES
    constants: Mapping[int, pa.Scalar] = field(default_factory=dict)  # by column id: values of columns it may lack
    lineage: Lineage = NO_LINEAGE  # what its rows inherit from its entry
    mapping: NameMapping | None = None  # the ids of columns, for a file without ids
    record_count: int | None = None  # as the entry states it
    part: FilePart = WHOLE_FILE
    use_threads: bool = True  # decode columns on all processors; off where other files are read at the same time
    batch_rows: int = BATCH_ROWS
    origin: Origin = NOWHERE  # the table and snapshot, for errors

    @property
    def table(self) -> Schema:
        """All columns of the table."""
        return self.schema if self.table_schema is None else self.table_schema

    @property
    def row_count(self) -> int:
        """The number of rows of the file; InputError if its entry does not state it (see ``Plan.counted``)."""
        if self.record_count is None:
            raise InputError(f"{self.location}: the number of rows is unknown; count the rows of the plan first")
        return self.record_count

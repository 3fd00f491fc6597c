"""Columns that rows inherit from their file: location, position, partition, lineage (spec: Reserved Field IDs).

The row id of a row that was moved or updated is stored in its file; the id of any other row is the first row id of its
file plus its position. In the same way, the sequence number of the last change is stored, or is that of the file.
Positions are counted before any row is removed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.formats.read.batches import repeated
from icefloe.model.arrow.conform import arrow_schema, arrow_type
from icefloe.model.schema.metadata_columns import DELETED, FILE, LINEAGE, PARTITION_ID, POS, ROW_ID, SPEC_ID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """What rows inherit from the entry of their file; without a first row id they have no row ids."""

    first_row_id: int | None = None
    sequence_number: int | None = None
    spec_id: int | None = None
    partition: pa.StructScalar | None = None


NO_LINEAGE = Lineage()
_PHYSICAL = frozenset({FILE.id, POS.id, DELETED.id, SPEC_ID.id, PARTITION_ID})  # never stored
_INHERITED = _PHYSICAL.union(field.id for field in LINEAGE)


class Completer:
    """Adds inherited columns to batches of one file; ``stored`` are the columns that the file itself may have."""

    def __init__(self, schema: Schema, location: str, lineage: Lineage) -> None:
        self.stored = schema
        self._fields = schema.fields
        self._location = location
        self._lineage = lineage
        self._has_work = any(field.id in _INHERITED for field in schema.fields)
        self.has_deleted_column = any(field.id == DELETED.id for field in schema.fields)
        if self._has_work:
            self.stored = Schema(fields=tuple(field for field in schema.fields if field.id not in _PHYSICAL))
            self._target = arrow_schema(schema)

    def __call__(
        self,
        rows: pa.RecordBatch,
        position: int,
        keep: pa.BooleanArray | None = None,
        deleted: pa.BooleanArray | None = None,
    ) -> pa.RecordBatch:
        """Complete a batch that has the columns of ``stored`` and whose first row is at ``position`` in the file.

        With ``keep``, a mask over rows from ``position`` on, the batch has only the rows where it is true. ``deleted``
        says which rows of the batch are deleted; without it none are.
        """
        if not self._has_work:
            return rows
        length = rows.num_rows if keep is None else len(keep)
        positions = pa.array(np.arange(position, position + length, dtype=np.int64))
        positions = positions if keep is None else positions.filter(keep)
        stored = iter(rows.columns)
        columns = [
            self._physical(field, positions, deleted)
            if field.id in _PHYSICAL
            else self._stored(field, next(stored), positions)
            for field in self._fields
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._target)

    def _physical(self, field: Field, positions: pa.Array, deleted: pa.BooleanArray | None) -> pa.Array:
        rows = len(positions)
        if field.id == POS.id:
            return positions
        if field.id == FILE.id:
            return pa.repeat(self._location, rows)
        if field.id == DELETED.id:
            return pa.repeat(False, rows) if deleted is None else deleted
        if field.id == SPEC_ID.id:
            return pa.repeat(pa.scalar(self._lineage.spec_id, pa.int32()), rows)
        partition = self._lineage.partition
        return repeated(pa.scalar(None if partition is None else partition.as_py(), arrow_type(field.type)), rows)

    def _stored(self, field: Field, stored: pa.Array, positions: pa.Array) -> pa.Array:
        if field.id not in _INHERITED:
            return stored
        first, sequence_number = self._lineage.first_row_id, self._lineage.sequence_number
        if first is None:
            return pa.nulls(len(positions), pa.int64())
        if field.id == ROW_ID.id:
            return pc.coalesce(stored, pc.add(positions, first))
        return stored if sequence_number is None else pc.fill_null(stored, sequence_number)

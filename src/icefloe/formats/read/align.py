"""Batches of a file turned into batches of a table's current schema (spec: Column Projection, Schema Evolution).

Most columns are passed on untouched: the table's names, ids and flags are put on at the end without copying a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icefloe.formats.read.conversions import Conversions, Convert, Fill
from icefloe.formats.read.relabel import relabel
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import UNKNOWN


class Aligner:
    """Turns batches of one file, all with the schema ``stored``, into batches of ``schema``.

    ``constants`` are values by column id, for columns that the file lacks. ``table`` has all fields of structs of which
    ``schema`` has some.
    """

    def __init__(
        self,
        stored: pa.Schema,
        schema: Schema,
        location: str,
        constants: Mapping[int, pa.Scalar],
        table: Schema | None = None,
    ) -> None:
        self._target = arrow_schema(schema)
        self._steps = list(_steps(stored, schema, Conversions(location, constants, table)))
        as_stored = all(step.convert is None and step.at == place for place, step in enumerate(self._steps))
        self._is_same = as_stored and stored.equals(self._target, check_metadata=True)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch as the table sees it."""
        if self._is_same:
            return batch
        if len(self._steps) == 0:
            return without_columns(batch.num_rows)
        columns = [step.column(batch) for step in self._steps]
        return relabel(pa.RecordBatch.from_arrays(columns, names=self._target.names), self._target)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """Where a column comes from: a place in the file's batches and what to do there, or a value for all rows."""

    at: int = -1
    convert: Convert | None = None
    fill: Fill | None = None

    def column(self, batch: pa.RecordBatch) -> pa.Array:
        if self.fill is not None:
            return self.fill(batch.num_rows)
        column = batch.column(self.at)
        return column if self.convert is None else self.convert(column)


def _steps(stored: pa.Schema, schema: Schema, conversions: Conversions) -> list[_Step]:
    positions = conversions.positions(list(stored))
    steps = []
    for field in schema.fields:
        at = positions.get(field.id)
        if at is None or field.type == UNKNOWN:
            steps.append(_Step(fill=conversions.lacking(field, field.name)))
        else:
            steps.append(_Step(at=at, convert=conversions.field(stored.field(at), field, field.name)))
    return steps


def without_columns(rows: int) -> pa.RecordBatch:
    """A batch that has a length and nothing else."""
    return pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])).take(pa.array(np.zeros(rows, np.int64))))

"""Identity-partition columns on Spark, which some data files do not contain (spec: Column Projection, Partitioning).

A column that a file lacks has the value of the file's partition. If all partition specs in use have the column as an
identity partition, Spark reads it as a constant of the file, from metadata alone. Otherwise files that do not contain
the column, which their footers show, are read by tasks.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.engines.spark.read.footers import NO_FOOTERS, Footers
from icefloe.errors import FormatError, UnsupportedError
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    Decimal,
    Field,
)
from icefloe.scan.partition_values import identity_columns, identity_values, specs_by_field
from icefloe.scan.routes import Mask, is_parquet

_CONSTANT_TYPES = frozenset({BOOLEAN, INT, LONG, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMPTZ})


class IdentityColumns:
    """The identity partitions of a table for one DataFrame.

    ``spec_ids`` are those of all files that its scans may read.
    """

    def __init__(
        self, schema: Schema, specs: tuple[PartitionSpec, ...], spec_ids: pa.ChunkedArray, footers: Footers
    ) -> None:
        self._schema = schema
        self._specs = specs
        self._spec_ids = spec_ids
        self._footers = footers
        candidates = [id_ for id_ in identity_columns(specs) if id_ in schema.by_id]
        everywhere = _in_every_spec(specs, spec_ids) if len(candidates) > 0 else frozenset()
        self.constants = tuple(f for f in schema.fields if f.id in everywhere and _is_constant_type(f))
        known = {field.id for field in self.constants}
        self._doubtful = [id_ for id_ in candidates if id_ not in known]

    def with_schema(self, schema: Schema) -> IdentityColumns:
        """The same for other columns of the table; footers that were read are shared."""
        return IdentityColumns(schema, self._specs, self._spec_ids, self._footers)

    def values(self, tasks: pa.Table) -> list[pa.Array]:
        """The value of every constant in each file."""
        return [self._values(tasks, field) for field in self.constants]

    @property
    def is_certain(self) -> bool:
        """Whether no file can lack a column whose value is in its partition alone and not a constant."""
        return len(self._doubtful) == 0

    def lacking(self, tasks: pa.Table) -> Mask:
        """Which files lack a column that is not constant and that only their partition has."""
        lacking = np.zeros(tasks.num_rows, np.bool_)
        for column_id in self._doubtful:
            lacking |= self._lacking(tasks, column_id)
        return lacking

    def check(self, tasks: pa.Table) -> None:
        """UnsupportedError if a file lacks a column that is not constant and that only its partition has."""
        for column_id in self._doubtful:
            rows = np.flatnonzero(self._lacking(tasks, column_id))
            if len(rows) > 0:
                raise _only_in_partition(tasks["location"][int(rows[0])].as_py(), self._schema.names[column_id])

    def _lacking(self, tasks: pa.Table, column_id: int) -> Mask:
        specs = [spec for ids in specs_by_field(self._specs, column_id).values() for spec in ids]
        own = np.asarray(pc.is_in(tasks["partition_spec_id"], value_set=pa.array(specs, pa.int32())))
        own = own & is_parquet(tasks)  # tasks read other files, whatever these lack
        lacking: Mask = np.zeros(tasks.num_rows, np.bool_)
        stored = self._footers.of(tasks["location"].filter(pa.array(own)).to_pylist())
        lacking[own] = [column_id not in columns for columns in stored]
        return lacking

    def _values(self, tasks: pa.Table, field: Field) -> pa.Array:
        partition_values = identity_values(tasks, self._specs, field)
        bad = partition_values.values.is_null() if field.required else pc.invert(partition_values.known)
        row = pc.index(pc.and_(bad, pc.fill_null(pc.greater(tasks["record_count"], 0), True)), True).as_py()
        if row >= 0:
            location = tasks["location"][row].as_py()
            message = f"{location}: the file is partitioned by {field.name!r} but its entry has no value of it"
            raise FormatError(message, location=location, field=field.name)
        return partition_values.values


def _in_every_spec(specs: tuple[PartitionSpec, ...], spec_ids: pa.ChunkedArray) -> frozenset[int]:
    """The columns that all specs in use have as identity partitions."""
    used = set(pc.unique(spec_ids).to_pylist())
    columns = [frozenset(identity_columns([spec])) for spec in specs if spec.spec_id in used]
    return columns[0].intersection(*columns) if len(columns) > 0 else frozenset()


def _is_constant_type(field: Field) -> bool:
    return field.type in _CONSTANT_TYPES or isinstance(field.type, Decimal)


def _only_in_partition(location: str, name: str) -> UnsupportedError:
    return UnsupportedError(
        f"{location}: the file lacks the column {name!r}, whose value is in its partition alone, and this DataFrame was"
        " made for files that have it; make it with to_spark(spark, inspect_files=True)",
        location=location,
        field=name,
    )


NO_IDENTITY = IdentityColumns(Schema(fields=()), (), pa.chunked_array([], pa.int32()), NO_FOOTERS)

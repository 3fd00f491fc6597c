"""Columns whose values stand in the partition tuples of files (spec: Column Projection, Partitioning).

A file that was taken over from elsewhere may lack a column by which it is partitioned; the column's value is then that
of the partition, the same for all rows. Here are those values, for all files of a plan at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import IDENTITY
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import partition_key, stat
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.types import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityValues:
    """A column's value in each file, where it is ``known``; a value that is known may be null."""

    values: pa.Array
    known: pa.Array


def identity_columns(specs: Iterable[PartitionSpec]) -> tuple[int, ...]:
    """The ids of the columns that any of the specs partitions by as they are."""
    fields = (field for spec in specs for field in spec.fields if field.transform == IDENTITY)
    return tuple(dict.fromkeys(field.source_id for field in fields))


def specs_by_field(specs: Iterable[PartitionSpec], column_id: int) -> Mapping[int, list[int]]:
    """The specs that partition by a column as it is, by the partition field that holds its values."""
    found: dict[int, list[int]] = {}
    for spec in specs:
        for field in spec.fields:
            if field.transform == IDENTITY and field.source_id == column_id:
                found.setdefault(field.field_id, []).append(spec.spec_id)
    return found


def identity_values(tasks: pa.Table, specs: Iterable[PartitionSpec], column: Field) -> IdentityValues:
    """The partition values of files that are partitioned by a column as it is."""
    type_ = arrow_type(column.type)
    values, known = pa.nulls(tasks.num_rows, type_), pa.repeat(False, tasks.num_rows)
    for field_id, spec_ids in specs_by_field(specs, column.id).items():
        own = pc.is_in(_column(tasks, "partition_spec_id", pa.int32()), value_set=pa.array(spec_ids, pa.int32()))
        value, told = partition_value(tasks, partition_key(field_id), type_)
        told = pc.and_(own, told)
        values, known = pc.if_else(told, value, values), pc.or_(known, told)
    return IdentityValues(values=values, known=known)


def partition_value(tasks: pa.Table, key: str, type_: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """A partition field's values, and where there are any: null and NaN are told by counts."""
    value = _column(tasks, stat("lower_bound", key), type_)
    is_null, is_nan = (_positive(tasks, stat(measure, key)) for measure in ("null_value_count", "nan_value_count"))
    if pa.types.is_floating(type_):
        value = pc.if_else(pc.and_(is_nan, value.is_null()), pa.scalar(float("nan"), type_), value)
    return value, pc.or_(value.is_valid(), is_null)


def _positive(tasks: pa.Table, name: str) -> pa.Array:
    return pc.fill_null(pc.greater(_column(tasks, name, pa.int64()), 0), False)


def _column(tasks: pa.Table, name: str, type_: pa.DataType) -> pa.Array:
    if name not in tasks.column_names:
        return pa.nulls(tasks.num_rows, type_)
    column = tasks[name].combine_chunks()
    return column if column.type == type_ else column.cast(type_)

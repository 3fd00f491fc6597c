"""The partition values of planned files (spec: Column Projection, Reserved Field IDs).

``partition_tuples`` has them as one struct type for all specs. ``identity_values`` has the values of columns that data
files do not contain: a file of another program may lack a column by which it is partitioned, and the partition tuple
then has the column's value for all rows of the file. Both are computed for all files of a plan at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.columns import one_array
from icefloe.model.entries import Measure, StatKey, partition_key, stat
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.partition.transform_names import IDENTITY
from icefloe.model.schema.types import Field, Struct


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityValues:
    """The value of a column in each file, and whether it is ``known``; a known value may be null."""

    values: pa.Array
    known: pa.Array


def identity_columns(specs: Iterable[PartitionSpec]) -> tuple[int, ...]:
    """The ids of the columns that any of the specs partitions by identity."""
    fields = (field for spec in specs for field in spec.fields if field.transform == IDENTITY)
    return tuple(dict.fromkeys(field.source_id for field in fields))


def specs_by_field(specs: Iterable[PartitionSpec], column_id: int) -> Mapping[int, list[int]]:
    """The specs that partition by the identity of a column, by partition field id."""
    specs_of: dict[int, list[int]] = {}
    for spec in specs:
        for field in spec.fields:
            if field.transform == IDENTITY and field.source_id == column_id:
                specs_of.setdefault(field.field_id, []).append(spec.spec_id)
    return specs_of


def identity_values(tasks: pa.Table, specs: Iterable[PartitionSpec], column: Field) -> IdentityValues:
    """The values of a column in the partition tuples of files."""
    type_ = arrow_type(column.type)
    values, known = pa.nulls(tasks.num_rows, type_), pa.repeat(False, tasks.num_rows)
    for field_id, spec_ids in specs_by_field(specs, column.id).items():
        in_spec = pc.is_in(_column(tasks, "partition_spec_id", pa.int32()), value_set=pa.array(spec_ids, pa.int32()))
        value, has_value = partition_value(tasks, partition_key(field_id), type_)
        has_value = pc.and_(in_spec, has_value)
        values, known = pc.if_else(has_value, value, values), pc.or_(known, has_value)
    return IdentityValues(values=values, known=known)


def partition_struct(context: ManifestContext) -> Struct:
    """The partition fields of all specs; if two have the same name, the older one gets its id as a suffix."""
    fields: dict[str, Field] = {}
    for id_, part in sorted(context.partition_fields.items(), reverse=True):
        name = part.name if part.name not in fields else f"{part.name}_{id_}"
        fields[name] = Field(id_, name, context.partition_types[id_])
    return Struct(tuple(sorted(fields.values(), key=lambda field: field.id)))


def partition_tuples(tasks: pa.Table, type_: Struct) -> pa.StructArray:
    """The tuple of each file; fields that are not in its spec are null."""
    values = []
    for field in type_.fields:
        value, has_value = partition_value(tasks, partition_key(field.id), arrow_type(field.type))
        values.append(pc.if_else(has_value, value, None))
    return pa.StructArray.from_arrays(values, fields=list(arrow_type(type_)))


def partition_value(tasks: pa.Table, key: StatKey, type_: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """The values of a partition field, and which files have one; counts indicate null and NaN."""
    value = _column(tasks, stat(Measure.LOWER, key), type_)
    is_null, is_nan = (_positive(tasks, stat(measure, key)) for measure in (Measure.NULLS, Measure.NANS))
    if pa.types.is_floating(type_):
        value = pc.if_else(pc.and_(is_nan, value.is_null()), pa.scalar(float("nan"), type_), value)
    return value, pc.or_(value.is_valid(), is_null)


def _positive(tasks: pa.Table, name: str) -> pa.Array:
    return pc.fill_null(pc.greater(_column(tasks, name, pa.int64()), 0), False)


def _column(tasks: pa.Table, name: str, type_: pa.DataType) -> pa.Array:
    if name not in tasks.column_names:
        return pa.nulls(tasks.num_rows, type_)
    column = one_array(tasks[name])
    return column if column.type == type_ else column.cast(type_)

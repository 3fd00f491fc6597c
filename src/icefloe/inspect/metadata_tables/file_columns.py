"""The columns of a file in ``files``, ``entries`` and their relatives (spec: Manifests).

The statistics columns of entries become one map from column ids for each measure, and also the struct
``readable_metrics``, which has the values of each column of the table in its own type.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.field_ids import MEASURE_MAPS
from icefloe.codecs.manifest.v3_entries import maps_of
from icefloe.codecs.manifest.value_sizes import column_sizes
from icefloe.commit.base import Base
from icefloe.inspect.metadata_tables.table_shape import optional, required
from icefloe.model.arrow.conform import arrow_field, arrow_type
from icefloe.model.entries import BOUNDS, COUNTS, UNKNOWN_COUNT, Measure, column_key, columns_of, known_measures, stat
from icefloe.model.metadata.version_rules import DATA_FILE_FIELDS, written
from icefloe.model.schema.types import Field, Struct, is_primitive
from icefloe.scan.partition_values import partition_struct, partition_tuples

READABLE_METRICS = "readable_metrics"

_COUNTS = (Measure.COLUMN_SIZE, *COUNTS)


def partition_type(base: Base) -> Struct:
    """The partition fields of all specs whose columns the table still has."""
    context = base.store.context
    known = base.metadata.schema.by_id
    fields = partition_struct(context).fields
    return Struct(tuple(field for field in fields if context.partition_fields[field.id].source_id in known))


def partition_fields(base: Base) -> list[pa.Field]:
    """The column ``partition``; none if no spec of the table has a field."""
    type_ = partition_type(base)
    return [] if len(type_.fields) == 0 else [required("partition", arrow_type(type_))]


def file_fields(base: Base) -> list[pa.Field]:
    """The columns that describe a file, without ``readable_metrics``."""
    return [
        optional("content", pa.int32()),
        required("file_path", pa.string()),
        required("file_format", pa.string()),
        optional("spec_id", pa.int32()),
        *partition_fields(base),
        required("record_count", pa.int64()),
        required("file_size_in_bytes", pa.int64()),
        *(optional(shape.name, _map_type(shape.value_type)) for shape in MEASURE_MAPS),
        optional("key_metadata", pa.binary()),
        optional("split_offsets", pa.list_(required("element", pa.int64()))),
        optional("equality_ids", pa.list_(required("element", pa.int32()))),
        optional("sort_order_id", pa.int32()),
        optional("first_row_id", pa.int64()),
        optional("referenced_data_file", pa.string()),
        optional("content_offset", pa.int64()),
        optional("content_size_in_bytes", pa.int64()),
    ]


def _map_type(value: pa.DataType) -> pa.DataType:
    return pa.map_(pa.int32(), required("value", value))


def file_arrays(base: Base, rows: pa.Table) -> list[pa.Array]:
    """The columns of ``file_fields`` for entries in one chunk."""
    columns = _measures(base, rows)
    maps = maps_of(columns, rows.num_rows, base.store.context)
    counts = columns["record_count"].fill_null(UNKNOWN_COUNT)
    arrays = {
        "content": columns["content_type"],
        "file_path": columns["location"],
        "file_format": pc.utf8_upper(columns["file_format"]),
        "spec_id": columns["partition_spec_id"],
        "record_count": counts,
        **{shape.name: _as_map(pairs, _map_type(shape.value_type)) for shape, pairs in maps.items()},
        "referenced_data_file": columns["referenced_file"],
        "content_offset": columns["dv_offset"],
        "content_size_in_bytes": columns["dv_size_in_bytes"],
    }
    fields = file_fields(base)
    if any(field.name == "partition" for field in fields):
        arrays["partition"] = partition_tuples(rows, partition_type(base))
    found = (arrays.get(field.name, columns.get(field.name)) for field in fields)
    return [_typed(array, field.type) for array, field in zip(found, fields, strict=True)]


def _measures(base: Base, rows: pa.Table) -> Mapping[str, pa.Array]:
    """The columns of entries; where a version records no column sizes, with the sizes of the values of columns."""
    columns, context = columns_of(rows), base.store.context
    if written(DATA_FILE_FIELDS, "column_sizes", context.format_version):
        return columns
    types = {column_key(id_): type_ for id_ in context.measured() if (type_ := context.column_type(id_)) is not None}
    sizes = {
        stat(Measure.COLUMN_SIZE, key): column_sizes(known_measures(columns, key), type_)
        for key, type_ in types.items()
    }
    return {**columns, **{name: size for name, size in sizes.items() if size is not None}}


def _typed(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The array in a type that differs at most in the names and flags of inner fields."""
    if not pa.types.is_list(type_):
        return array
    offsets, values = array.offsets, array.values
    return pa.ListArray.from_arrays(offsets, values, type=type_, mask=array.is_null())


def _as_map(pairs: pa.ListArray, type_: pa.DataType) -> pa.MapArray:
    keys, values = pairs.values.flatten()
    return pa.MapArray.from_arrays(pairs.offsets, keys, values, type=type_, mask=pairs.is_null())


def metrics_field(base: Base) -> pa.Field:
    """The column ``readable_metrics``: a struct for each primitive field of the schema, in order of full names."""
    fields = [optional(name, _column_metrics(field)) for name, field in _measured(base).items()]
    return optional(READABLE_METRICS, pa.struct(fields))


def _measured(base: Base) -> Mapping[str, Field]:
    by_name = base.metadata.schema.by_name
    return {name: by_name[name] for name in sorted(by_name) if is_primitive(by_name[name].type)}


def _column_metrics(field: Field) -> pa.DataType:
    bound = arrow_field(field)
    counts = [optional(name, pa.int64()) for name in _COUNTS]
    return pa.struct([*counts, *(pa.field(name, bound.type, metadata=bound.metadata) for name in BOUNDS)])


def metrics_array(base: Base, rows: pa.Table) -> pa.Array:
    """The column ``readable_metrics`` for entries in one chunk."""
    columns, length = _measures(base, rows), rows.num_rows
    structs = [_metrics_of(columns, field, length) for field in _measured(base).values()]
    return pa.StructArray.from_arrays(structs, fields=list(metrics_field(base).type))


def _metrics_of(columns: Mapping[str, pa.Array], field: Field, length: int) -> pa.Array:
    type_ = _column_metrics(field)
    arrays = []
    for member in type_:
        column = columns.get(stat(Measure(member.name), column_key(field.id)))
        arrays.append(pa.nulls(length, member.type) if column is None else column.cast(member.type))
    return pa.StructArray.from_arrays(arrays, fields=list(type_))

"""User data cast to the columns and types of a table (spec: Schemas and Data Types).

Columns are matched by name, every cast is checked, and errors name the column: no value is changed silently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.model.arrow.arrow_types import VARIANT_PARTS, arrow_field, arrow_schema, arrow_type, nulls, struct_array
from icefloe.model.arrow.field_metadata import FIELD_ID, unnamed_index
from icefloe.model.arrow.plain_layouts import plain
from icefloe.model.arrow.schema_from_arrow import is_list, schema_from_arrow
from icefloe.model.schema import types as iceberg
from icefloe.model.schema.json_values import value_from_json
from icefloe.model.schema.schema import Schema, derived, repeated

__all__ = [
    "FIELD_ID",
    "arrow_field",
    "arrow_schema",
    "arrow_type",
    "as_table",
    "conform",
    "nulls",
    "schema_from_arrow",
]


_TIMESTAMPS = (iceberg.TIMESTAMP, iceberg.TIMESTAMP_NS, iceberg.TIMESTAMPTZ, iceberg.TIMESTAMPTZ_NS)


def as_table(data: object) -> pa.Table:
    """Data of any library that speaks Arrow, as an Arrow table.

    >>> as_table(pa.record_batch({"id": [1, 2]})).num_rows
    2
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    kind = f"{type(data).__module__}.{type(data).__qualname__}"
    raise InputError(
        f"cannot read rows from {kind}: give an Arrow table, a pandas or polars frame, or anything with "
        "__arrow_c_stream__ (for Python rows: pyarrow.Table.from_pylist(rows))",
        type=kind,
    )


def conform(table: pa.Table, schema: Schema) -> pa.Table:
    """The same rows with exactly the columns and types of a table's schema; InputError for values that do not fit.

    Columns are matched by name and casts are checked. An absent column gets its write default, or null if it has none
    and is optional (spec: Default values). The index of a pandas frame is no column unless it has a name.

    >>> from icefloe.model.schema.types import LONG
    >>> conform(pa.table({"id": pa.array([1], pa.int8())}), Schema(fields=(iceberg.Field(1, "id", LONG),)))["id"].type
    DataType(int64)
    """
    pandas_index = unnamed_index(table.schema).difference(field.name for field in schema.fields)
    table = table if len(pandas_index) == 0 else table.drop_columns(sorted(pandas_index))
    _check_names(table.column_names, schema.fields, "")
    target = arrow_schema(schema)
    fits = derived(schema, "plain", _is_plain) and table.schema.equals(target)
    indices = {name: index for index, name in enumerate(table.column_names)}
    columns = table.columns if fits else [_column(table, indices.get(field.name), field) for field in schema.fields]
    return pa.Table.from_arrays(columns, schema=target)


def _is_plain(schema: Schema) -> bool:
    """Whether values of the right types need no checks: no column is required or nested."""
    return all(iceberg.is_primitive(field.type) and not field.required for field in schema.fields)


def _check_names(names: list[str], fields: tuple[iceberg.Field, ...], prefix: str) -> None:
    duplicates = repeated(names)
    if len(duplicates) > 0:
        raise InputError(f"two columns are named {prefix}{duplicates[0]!r}", field=prefix + duplicates[0])
    known, present = {field.name for field in fields}, frozenset(names)
    extra = [prefix + name for name in names if name not in known]
    if len(extra) > 0:
        raise InputError(
            f"the table has no column {', '.join(extra)}; it has: {', '.join(prefix + f.name for f in fields)}",
            field=extra[0],
        )
    missing = [prefix + f.name for f in fields if f.required and f.write_default is None and f.name not in present]
    if len(missing) > 0:
        raise InputError(f"required column {', '.join(missing)} is missing and has no default", field=missing[0])


def _column(table: pa.Table, index: int | None, field: iceberg.Field) -> pa.ChunkedArray:
    if index is None:
        return pa.chunked_array([_default_values(field, table.num_rows, field.name)])
    column = table.column(index)
    return pa.chunked_array([_fit(plain(chunk), field, field.name) for chunk in column.chunks], arrow_type(field.type))


def _default_values(field: iceberg.Field, length: int, name: str) -> pa.Array:
    """The values of a column that the rows do not have: its write default, or null."""
    if field.write_default is None:
        return nulls(field.type, length)
    where = f"column {name!r}: write-default"
    value = value_from_json(field.write_default, field.type, where, defaults="write")
    return pa.array([value], arrow_type(field.type)).take(pa.array(np.zeros(length, np.int64)))


def _fit(array: pa.Array, field: iceberg.Field, name: str) -> pa.Array:
    """Plain values cast to the type of a field; ``name`` is its full name, for errors."""
    if field.required and array.null_count > 0:
        raise InputError(f"column {name!r} is required and has {array.null_count} nulls", field=name)
    if pa.types.is_null(array.type):
        return nulls(field.type, len(array))
    match field.type:
        case iceberg.Struct(fields) if pa.types.is_struct(array.type):
            return _fit_struct(array, fields, name)
        case iceberg.List() if is_list(array.type):
            return _fit_list(array, field.type, name)
        case iceberg.Map() if pa.types.is_map(array.type):
            return _fit_map(array, field.type, name)
        case iceberg.Variant() if pa.types.is_struct(array.type):
            return _fit_variant(array, name)
        case type_ if iceberg.is_primitive(type_) and _same_kind(array.type, type_):
            return _cast(array, type_, name)
    hint = _time_zone_hint(array.type, field.type)
    raise InputError(f"column {name!r} is {field.type}; Arrow {array.type} is another kind of type{hint}", field=name)


def _time_zone_hint(given: pa.DataType, type_: iceberg.Type) -> str:
    """Advice for an error: timestamps with a zone for a column without one, or the reverse."""
    if not pa.types.is_timestamp(given) or type_ not in _TIMESTAMPS:
        return ""
    if given.tz is None:
        return ". The values have no time zone: say which one it is, such as pyarrow.compute.assume_timezone(x, 'UTC')"
    return ". The column has no time zone: convert the values, such as with pyarrow.compute.local_timestamp(x)"


def _fit_struct(array: pa.StructArray, fields: tuple[iceberg.Field, ...], name: str) -> pa.StructArray:
    positions = {child.name: position for position, child in enumerate(array.type)}
    _check_names([child.name for child in array.type], fields, f"{name}.")
    values = array.flatten()  # null wherever the struct is null: values below a null struct are ignored
    fitted = []
    for field in fields:
        full = f"{name}.{field.name}"
        if (position := positions.get(field.name)) is None:
            fitted.append(_default_values(field, len(array), full))
            continue
        null_count = values[position].null_count - array.null_count
        if field.required and null_count > 0:
            raise InputError(f"column {full!r} is required and has {null_count} nulls", field=full)
        fitted.append(_fit(values[position], replace(field, required=False), full))
    return struct_array(fitted, [arrow_field(field) for field in fields], array.is_null())


def _fit_variant(array: pa.StructArray, name: str) -> pa.StructArray:
    """Variants in their stored form: a struct of exactly two byte strings, neither null unless the variant is."""
    parts_by_name = {child.name: values for child, values in zip(array.type, array.flatten(), strict=True)}
    if sorted(parts_by_name) != [part.name for part in VARIANT_PARTS] or not all(
        _is_bytes(v.type) for v in parts_by_name.values()
    ):
        raise InputError(
            f"column {name!r} is a variant: a struct of binary 'metadata' and 'value', not {array.type}", field=name
        )
    parts = [parts_by_name[part.name].cast(part.type) for part in VARIANT_PARTS]
    if any(part.null_count > array.null_count for part in parts):
        raise InputError(f"column {name!r} is a variant; its metadata or value is null", field=name)
    return struct_array(parts, list(VARIANT_PARTS), array.is_null())


def _fit_list(array: pa.Array, type_: iceberg.List, name: str) -> pa.Array:
    element = iceberg.children(type_)[0]
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    array = _without_unused_values(array)
    values = _fit(array.values, element, f"{name}.element")
    return pa.Array.from_buffers(arrow_type(type_), len(array), array.buffers()[:2], array.null_count, 0, [values])


def _fit_map(array: pa.MapArray, type_: iceberg.Map, name: str) -> pa.Array:
    key, value = iceberg.children(type_)
    array = _without_unused_values(array)
    keys = _fit(array.keys, key, f"{name}.key")
    values = _fit(array.items, value, f"{name}.value")
    entries = pa.StructArray.from_arrays([keys, values], fields=[arrow_field(key), arrow_field(value)])
    return pa.Array.from_buffers(arrow_type(type_), len(array), array.buffers()[:2], array.null_count, 0, [entries])


def _without_unused_values(array: pa.Array) -> pa.Array:
    """A list or map array without the values of rows outside its slice and of null rows."""
    values = array.keys if pa.types.is_map(array.type) else array.values
    if len(array) > 0 and array.offset == 0 and array.null_count == 0:
        first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
        if (first, last) == (0, len(values)):
            return array
    return array.take(pa.array(np.arange(len(array))))


def _same_kind(source_type: pa.DataType, type_: iceberg.PrimitiveType) -> bool:
    kinds = pa.types
    match type_:
        case iceberg.Decimal():
            return bool(kinds.is_decimal(source_type) or kinds.is_integer(source_type))
        case iceberg.Fixed() | iceberg.Geometry() | iceberg.Geography():
            return _is_bytes(source_type)
        case iceberg.Primitive():
            return bool(_KINDS[type_](source_type))


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_floating(type_) or pa.types.is_integer(type_))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _is_bytes(type_: pa.DataType) -> bool:
    kinds = pa.types
    varying = kinds.is_binary(type_) or kinds.is_large_binary(type_) or kinds.is_binary_view(type_)
    return bool(varying or kinds.is_fixed_size_binary(type_))


def _is_local(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) and type_.tz is None)


def _is_instant(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) and type_.tz is not None)


_KINDS: dict[iceberg.Primitive, Callable[[pa.DataType], bool]] = {
    iceberg.BOOLEAN: pa.types.is_boolean,
    iceberg.INT: pa.types.is_integer,
    iceberg.LONG: pa.types.is_integer,
    iceberg.FLOAT: _is_number,
    iceberg.DOUBLE: _is_number,
    iceberg.DATE: pa.types.is_date,
    iceberg.TIME: pa.types.is_time,
    iceberg.TIMESTAMP: _is_local,
    iceberg.TIMESTAMPTZ: _is_instant,
    iceberg.TIMESTAMP_NS: _is_local,
    iceberg.TIMESTAMPTZ_NS: _is_instant,
    iceberg.STRING: _is_text,
    iceberg.UUID: _is_bytes,
    iceberg.BINARY: _is_bytes,
    iceberg.UNKNOWN: pa.types.is_null,
}


def _cast(array: pa.Array, type_: iceberg.Type, name: str) -> pa.Array:
    """A checked cast within one kind of type: InputError if it would change a value."""
    target = arrow_type(type_)
    if array.type == target:
        return array
    try:
        if isinstance(type_, iceberg.Decimal) and pa.types.is_integer(array.type):
            array = array.cast(pa.decimal256(76, type_.scale))
        if pa.types.is_fixed_size_binary(target) and not pa.types.is_fixed_size_binary(array.type):
            array = array.cast(pa.binary())
        cast = array.cast(target)
    except MemoryError:
        raise
    except pa.ArrowException as error:
        raise InputError(f"column {name!r} is {type_}; {array.type} values do not fit: {error}", field=name) from error
    if type_ == iceberg.FLOAT and array.type == pa.float64() and not cast.cast(pa.float64()).equals(array):
        _check_exact(array, cast, name)
    return cast


def _check_exact(array: pa.Array, cast: pa.Array, name: str) -> None:
    back = cast.cast(pa.float64())
    changed = pc.and_not(pc.not_equal(array, back), pc.is_nan(array))
    if pc.any(changed).as_py() is True:
        value = array.filter(changed)[0].as_py()
        raise InputError(f"column {name!r} is float; the double {value!r} would be rounded; cast it first", field=name)

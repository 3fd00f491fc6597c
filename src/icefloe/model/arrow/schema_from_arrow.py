"""Arrow schemas as schemas of the format (spec: Schemas and Data Types).

Several Arrow types may map to one type of the format: ``string``, ``large_string`` and a dictionary of strings are all
``string``. A type that the format cannot store is an error that names the column.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from icefloe.errors import InputError, UnsupportedError
from icefloe.limits import DEFAULT
from icefloe.model.arrow.field_metadata import FIELD_ID, marked_defaults, marked_doc, marked_id, marked_type
from icefloe.model.metadata.version_rules import DEFAULT_FORMAT_VERSION
from icefloe.model.schema import types as iceberg
from icefloe.model.schema.schema import Schema, fresh_ids

__all__ = ["FIELD_ID", "fields_from_arrow", "is_list", "schema_from_arrow"]

_SIMPLE: dict[pa.DataType, iceberg.Primitive] = {
    pa.bool_(): iceberg.BOOLEAN,
    pa.int8(): iceberg.INT,
    pa.int16(): iceberg.INT,
    pa.int32(): iceberg.INT,
    pa.uint8(): iceberg.INT,
    pa.uint16(): iceberg.INT,
    pa.int64(): iceberg.LONG,
    pa.uint32(): iceberg.LONG,
    pa.float16(): iceberg.FLOAT,
    pa.float32(): iceberg.FLOAT,
    pa.float64(): iceberg.DOUBLE,
    pa.date32(): iceberg.DATE,
    pa.time32("s"): iceberg.TIME,
    pa.time32("ms"): iceberg.TIME,
    pa.time64("us"): iceberg.TIME,
    pa.string(): iceberg.STRING,
    pa.large_string(): iceberg.STRING,
    pa.string_view(): iceberg.STRING,
    pa.binary(): iceberg.BINARY,
    pa.large_binary(): iceberg.BINARY,
    pa.binary_view(): iceberg.BINARY,
    pa.null(): iceberg.UNKNOWN,
}


def schema_from_arrow(schema: pa.Schema, *, format_version: int = DEFAULT_FORMAT_VERSION) -> Schema:
    """The columns of an Arrow schema; ids are kept if every field has one and newly assigned otherwise.

    Types that need format version 3, such as timestamps in nanoseconds, are allowed if ``format_version`` has them.

    >>> schema_from_arrow(pa.schema({"id": pa.int64(), "name": pa.large_string()})).field("name").type
    Primitive(name='string', since=1)
    >>> str(schema_from_arrow(pa.schema({"at": pa.timestamp("ns")}), format_version=3).field("at").type)
    'timestamp_ns'
    """
    columns, numbered = fields_from_arrow(schema, format_version=format_version)
    return Schema(fields=columns if numbered else fresh_ids(columns))


def fields_from_arrow(
    schema: pa.Schema, *, format_version: int = DEFAULT_FORMAT_VERSION
) -> tuple[tuple[iceberg.Field, ...], bool]:
    """The columns of an Arrow schema, and whether every field had an id; those without have 0."""
    reader = _Reader(format_version, [])
    columns = tuple(reader.field(field, field.name, 0) for field in schema)
    return columns, None not in reader.ids


@dataclass(frozen=True, slots=True)
class _Reader:
    """Converts the fields of one Arrow schema; collects their ids in ``ids``, None for a field without one."""

    format_version: int
    ids: list[int | None]

    def field(self, field: pa.Field, name: str, depth: int) -> iceberg.Field:
        id_ = marked_id(field)
        self.ids.append(id_)
        type_ = marked_type(field, name)
        read = self._type(field.type, name, depth) if type_ is None else self._allowed(type_, field.type, name)
        initial, write = marked_defaults(field, name)
        return iceberg.Field(
            *(0 if id_ is None else id_, field.name, read, not field.nullable),
            doc=marked_doc(field),
            initial_default=initial,
            write_default=write,
        )

    def _type(self, type_: pa.DataType, name: str, depth: int) -> iceberg.Type:
        if depth > DEFAULT.type_depth:
            raise InputError(f"column {name!r}: types are nested deeper than {DEFAULT.type_depth}", field=name)
        if isinstance(type_, pa.BaseExtensionType):
            return self._type(type_.storage_type, name, depth)
        if pa.types.is_dictionary(type_):
            return self._type(type_.value_type, name, depth)
        if pa.types.is_struct(type_):
            return iceberg.Struct(tuple(self.field(child, f"{name}.{child.name}", depth + 1) for child in type_.fields))
        if is_list(type_):
            element = self.field(type_.value_field, f"{name}.element", depth + 1)
            return iceberg.List(element.id, element.type, element.required)
        if pa.types.is_map(type_):
            key = self.field(type_.key_field, f"{name}.key", depth + 1)
            value = self.field(type_.item_field, f"{name}.value", depth + 1)
            return iceberg.Map(key.id, key.type, value.id, value.type, value.required)
        return self._allowed(_leaf(type_, name), type_, name)

    def _allowed(self, type_: iceberg.Type, source_type: pa.DataType, name: str) -> iceberg.Type:
        if iceberg.since(type_) <= self.format_version:
            return type_
        cast = " or cast it to microseconds first" if type_ in (iceberg.TIMESTAMP_NS, iceberg.TIMESTAMPTZ_NS) else ""
        raise UnsupportedError(
            f"column {name!r}: Arrow {source_type} is the type {type_} of format version {iceberg.since(type_)}; "
            f"ask for format_version={iceberg.since(type_)}{cast}",
            field=name,
        )


def is_list(type_: pa.DataType) -> bool:
    """Whether an Arrow type is a list; list views are not, as Arrow cannot cast them safely."""
    kinds = pa.types
    return bool(kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_fixed_size_list(type_))


def _leaf(type_: pa.DataType, name: str) -> iceberg.Type:
    if (simple := _SIMPLE.get(type_)) is not None:
        return simple
    if pa.types.is_fixed_size_binary(type_):
        return iceberg.Fixed(type_.byte_width)
    most = iceberg.MAX_DECIMAL_PRECISION
    if pa.types.is_decimal(type_) and type_.precision <= most and 0 <= type_.scale <= type_.precision:
        return iceberg.Decimal(type_.precision, type_.scale)
    if pa.types.is_timestamp(type_):
        if type_.unit == "ns":
            return iceberg.TIMESTAMP_NS if type_.tz is None else iceberg.TIMESTAMPTZ_NS
        return iceberg.TIMESTAMP if type_.tz is None else iceberg.TIMESTAMPTZ
    hint = "; cast it to microseconds first" if getattr(type_, "unit", None) == "ns" else ""
    raise UnsupportedError(f"column {name!r}: Arrow type {type_} has no counterpart in the format{hint}", field=name)

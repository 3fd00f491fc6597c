"""Assigns ids from a name mapping to the columns of a file that was written without ids (spec: Column Projection).

The ids are stored under the metadata key of Parquet files, ``PARQUET:field_id``, so that readers treat such a file like
any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from icefloe.errors import FormatError, LimitError
from icefloe.limits import DEFAULT
from icefloe.model.arrow.schema_from_arrow import FIELD_ID, is_list
from icefloe.model.schema.name_mapping import MappedField, NameMapping


def has_ids(schema: pa.Schema) -> bool:
    """Whether any field of a file, at any depth, has an id.

    >>> has_ids(pa.schema({"id": pa.int64()}))
    False
    """
    return any(field.metadata is not None and FIELD_ID in field.metadata for _, field in _fields(schema))


def apply_mapping(mapping: NameMapping, schema: pa.Schema) -> pa.Schema:
    """The schema of a file with the ids that a mapping has for its names; other columns get no id.

    The schema of a file with any id of its own is returned unchanged: a mapping is only for files without ids.
    Elements, keys and values are looked up by their role, not by their names in the file.

    >>> mapping = NameMapping(fields=(MappedField(names=("id", "record_id"), field_id=1),))
    >>> apply_mapping(mapping, pa.schema({"record_id": pa.int64(), "other": pa.int64()})).field("record_id").metadata
    {b'PARQUET:field_id': b'1'}
    """
    if has_ids(schema):
        return schema
    mapped = pa.schema([_field(field, mapping.by_name.get(field.name), 0) for field in schema], schema.metadata)
    _check_ids(mapped)
    return mapped


def _field(field: pa.Field, mapped: MappedField | None, depth: int) -> pa.Field:
    if mapped is None:
        return field
    if depth > DEFAULT.type_depth:
        raise LimitError(f"column {field.name!r}: types are nested deeper than {DEFAULT.type_depth}", field=field.name)
    field = field.with_type(_type(field.type, mapped, depth + 1))
    if mapped.field_id is None:
        return field
    return field.with_metadata({**(field.metadata or {}), FIELD_ID: str(mapped.field_id).encode()})


def _type(type_: pa.DataType, mapped: MappedField, depth: int) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([_field(child, mapped.by_name.get(child.name), depth) for child in type_])
    if pa.types.is_map(type_):
        key = _field(type_.key_field, _role(mapped, "key", type_.key_field), depth)
        value = _field(type_.item_field, _role(mapped, "value", type_.item_field), depth)
        return pa.map_(key, value, keys_sorted=type_.keys_sorted)
    if is_list(type_):
        element = _field(type_.value_field, _role(mapped, "element", type_.value_field), depth)
        if pa.types.is_fixed_size_list(type_):
            return pa.list_(element, type_.list_size)
        return pa.large_list(element) if pa.types.is_large_list(type_) else pa.list_(element)
    return type_


def _role(mapped: MappedField, role: str, field: pa.Field) -> MappedField | None:
    """The mapping of an element, a key or a value: by its name in the spec, else by its name in the file."""
    return mapped.by_name.get(role, mapped.by_name.get(field.name))


def _check_ids(schema: pa.Schema) -> None:
    names: dict[bytes, str] = {}
    for name, field in _fields(schema):
        field_id = None if field.metadata is None else field.metadata.get(FIELD_ID)
        if field_id is None:
            continue
        if field_id in names:
            both = f"{names[field_id]!r} and {name!r}"
            raise FormatError(f"name mapping: columns {both} of a file both map to id {int(field_id)}", field=name)
        names[field_id] = name


def _fields(fields: Iterable[pa.Field]) -> Iterator[tuple[str, pa.Field]]:
    """Every field at every depth with its full name in the file."""
    for field in fields:
        pending = [(field.name, field)]
        for name, nested in pending:  # grows during the loop
            yield name, nested
            pending.extend((f"{name}.{child.name}", child) for child in _inside(nested.type))


def _inside(type_: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(type_):
        return list(type_)
    if pa.types.is_map(type_):
        return [type_.key_field, type_.item_field]
    return [type_.value_field] if is_list(type_) else []

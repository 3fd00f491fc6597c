"""Columns of a Parquet file by field id, at every depth (spec: Column Projection).

A file's columns are found by id, never by name or position. The element of a list and the key and value of a map are
found by structure, because there is only one of each and some writers give them no id. A file that has no ids at all
needs a name mapping, which is not handled yet and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from icefloe.errors import FormatError, UnsupportedError
from icefloe.formats.promotion import readable, storage
from icefloe.model.arrow import FIELD_ID, arrow_type
from icefloe.model.types import Decimal, Field, Fixed, List, Map, Primitive, Struct, Type

_LISTS = (pa.ListType, pa.LargeListType, pa.FixedSizeListType, pa.ListViewType, pa.LargeListViewType)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A primitive column of a file: its index among the file's Parquet columns and its Arrow type."""

    index: int
    type: pa.DataType


def field_id(field: pa.Field) -> int | None:
    """The id that a file gives to a field; none if it gives none."""
    text = (field.metadata or {}).get(FIELD_ID)
    return None if text is None or not text.isdigit() else int(text)


def require_ids(schema: pa.Schema, location: str) -> None:
    """Refuse a file in which no column has an id."""
    if len(schema) > 0 and all(field_id(field) is None for field in schema):
        raise UnsupportedError(
            f"{location}: no column has a field id, and reading by name mapping is not handled yet; "
            "write the file with field ids, or rewrite it through this table",
            location=location,
        )


def _children(type_: pa.DataType) -> list[pa.Field]:
    plain = storage(type_)
    if isinstance(plain, pa.StructType):
        return [plain.field(i) for i in range(plain.num_fields)]
    if isinstance(plain, pa.MapType):
        return [plain.key_field, plain.item_field]
    return [plain.value_field] if isinstance(plain, _LISTS) else []


def _width(type_: pa.DataType) -> int:
    """How many Parquet columns a field of this type has."""
    children = _children(type_)
    return sum(_width(child.type) for child in children) if len(children) > 0 else 1


def struct_ids(schema: pa.Schema) -> frozenset[int]:
    """The ids of columns and of fields inside structs, at any depth."""
    found, pending = set(), list(schema)
    while len(pending) > 0:
        field = pending.pop()
        found.add(field_id(field))
        if isinstance(plain := storage(field.type), pa.StructType):
            pending.extend(_children(plain))
    return frozenset(id_ for id_ in found if id_ is not None)


def measured_leaves(schema: pa.Schema) -> Mapping[int, Leaf]:
    """The primitive columns that are not inside a list or a map, by field id."""
    return dict(_measured(list(schema), 0))


def _measured(fields: list[pa.Field], start: int) -> Iterator[tuple[int, Leaf]]:
    for field in fields:
        plain, id_ = storage(field.type), field_id(field)
        if isinstance(plain, pa.StructType):
            yield from _measured(_children(plain), start)
        elif len(_children(plain)) == 0 and id_ is not None:
            yield id_, Leaf(index=start, type=plain)
        start += _width(field.type)


def projected_leaves(schema: pa.Schema, wanted: tuple[Field, ...]) -> list[int]:
    """The Parquet columns to read for these fields; a struct none of whose fields exist gives up its first one."""
    return _struct_leaves(list(schema), wanted, 0)


def _struct_leaves(fields: list[pa.Field], wanted: tuple[Field, ...], start: int) -> list[int]:
    by_id: dict[int | None, Field] = {field.id: field for field in wanted}
    found: list[int] = []
    for field in fields:
        target = by_id.get(field_id(field))
        if target is not None:
            found.extend(_type_leaves(field.type, target.type, start))
        start += _width(field.type)
    return found


def _type_leaves(type_: pa.DataType, target: Type, start: int) -> list[int]:
    children = _children(type_)
    match target:
        case Struct(fields) if isinstance(storage(type_), pa.StructType):
            # Some column inside must be read to know which structs are null.
            return _struct_leaves(children, fields, start) or [start]
        case List(element=element) if isinstance(storage(type_), _LISTS):
            return _type_leaves(children[0].type, element, start)
        case Map(key=key, value=value) if isinstance(storage(type_), pa.MapType):
            keys = _type_leaves(children[0].type, key, start)
            return keys + _type_leaves(children[1].type, value, start + _width(children[0].type))
        case _:
            return list(range(start, start + _width(type_)))


def renamed_schema(
    schema: pa.Schema, wanted: tuple[Field, ...], location: str, given: frozenset[int] = frozenset()
) -> pa.Schema:
    """A file's schema with the table's names at every depth and nothing required; the order stays the file's.

    Fields whose ids are in ``given`` have a value without the file.
    """
    return pa.schema(_Renaming(location, given).fields(list(schema), wanted, ""))


def is_given(field: Field, given: frozenset[int]) -> bool:
    """Whether a field has a value where the file lacks it: its own, or one inside it and all that it requires."""
    if field.id in given or not isinstance(field.type, Struct):
        return field.id in given
    inside = [(child.required, is_given(child, given)) for child in field.type.fields]
    return any(has_value for _, has_value in inside) and all(has_value for required, has_value in inside if required)


@dataclass(frozen=True, slots=True)
class _Renaming:
    """Other labels for the fields of one file."""

    location: str
    given: frozenset[int]

    def fields(self, fields: list[pa.Field], wanted: tuple[Field, ...], prefix: str) -> list[pa.Field]:
        """The fields with their names in the table; those that it does not have get a name that no column can have."""
        self._require_present(fields, wanted, prefix)
        by_id: dict[int | None, Field] = {field.id: field for field in wanted}
        renamed = []
        for position, field in enumerate(fields):
            target = by_id.get(field_id(field))
            if target is None:
                renamed.append(pa.field(f"\x01{position}", field.type))
            else:
                renamed.append(pa.field(target.name, self._type(field.type, target.type, prefix + target.name)))
        return renamed

    def _type(self, type_: pa.DataType, target: Type, name: str) -> pa.DataType:
        """A file's type with the field names of the table and nothing required: the same bytes, other labels."""
        plain = type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
        match target:
            case Struct(fields) if isinstance(plain, pa.StructType):
                return pa.struct(self.fields(_children(plain), fields, f"{name}."))
            case List(element=element) if isinstance(plain, (pa.ListType, pa.LargeListType)):
                make = pa.list_ if isinstance(plain, pa.ListType) else pa.large_list
                return make(pa.field("element", self._type(plain.value_type, element, f"{name}.element")))
            case Map(key=key, value=value) if isinstance(plain, pa.MapType):
                keys = pa.field("key", self._type(plain.key_type, key, f"{name}.key"), nullable=False)
                return pa.map_(keys, pa.field("value", self._type(plain.item_type, value, f"{name}.value")))
            case Primitive() | Decimal() | Fixed() if readable(plain, arrow_type(target)):
                return plain
        message = f"{self.location}: column {name!r} is {type_} in the file, which cannot be read as {target}"
        raise FormatError(message, location=self.location, field=name)

    def _require_present(self, fields: list[pa.Field], wanted: tuple[Field, ...], prefix: str) -> None:
        """Refuse a file that lacks a required field: there is no value to read in its place."""
        present = {field_id(field) for field in fields}
        for field in wanted:
            if field.required and field.id not in present and not is_given(field, self.given):
                name = prefix + field.name
                message = f"{self.location}: the file lacks the required column {name!r} (field id {field.id})"
                raise FormatError(message, location=self.location, field=name)

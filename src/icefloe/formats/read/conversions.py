"""How a column of a file becomes a column of the table, at every depth (spec: Column Projection, Schema Evolution).

Fields are matched by id. What is stored as the table has it is passed on without being touched; what was promoted is
cast; structs are put together again where their fields moved, came or went. A field that the file lacks has the
constant that is given for it, such as a partition value, or its initial default, or is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import FormatError, UnsupportedError
from icefloe.formats.parquet.field_ids import LISTS, field_id, inner_fields
from icefloe.formats.read.promotion import readable, storage
from icefloe.model.arrow.arrow_types import VARIANT_PARTS
from icefloe.model.arrow.conform import arrow_type, nulls
from icefloe.model.schema.json_values import value_from_json
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import UNKNOWN, Field, List, Map, Struct, Type, Variant, children, is_primitive

Convert: TypeAlias = Callable[[pa.Array], pa.Array]
Fill: TypeAlias = Callable[[int], pa.Array]  # as many values as there are rows


class Conversions:
    """What to do with the columns of one file; ``constants`` has values by id, for fields that the file lacks.

    Where only some fields of a struct are read, ``table`` has all of them: whether the file lacks a struct as a whole,
    or rows have one around a constant, does not depend on the fields that are read.
    """

    def __init__(self, location: str, constants: Mapping[int, pa.Scalar], table: Schema | None = None) -> None:
        self._location = location
        self._constants = constants
        self._table = table

    def positions(self, fields: list[pa.Field]) -> Mapping[int, int]:
        """Where the fields of a file or of a struct in it are, by id."""
        positions: dict[int, int] = {}
        for position, field in enumerate(fields):
            id_ = field_id(field)
            if id_ is not None and id_ in positions:
                both = f"{fields[positions[id_]].name!r} and {field.name!r}"
                raise self._refused(f"the columns {both} both have the field id {id_}", field.name)
            if id_ is not None:
                positions[id_] = position
        return positions

    def field(self, stored: pa.Field, target: Field, name: str) -> Convert | None:
        """What to do with the values of a column or of an element; none if they are right as they are."""
        convert = self._type(stored.type, target.type, name)
        if not (target.required and stored.nullable):
            return convert
        return partial(self._checked, name, convert)

    def lacking(self, field: Field, name: str) -> Fill:
        """The values of a field that the file does not have."""
        if field.id in self._constants:
            value = self._constants[field.id]
            if value.is_valid:
                type_ = arrow_type(field.type)
                return _repeated(pa.repeat(value if value.type == type_ else value.cast(type_), 1))
        elif isinstance(field.type, Struct) and self._has_constant(self._whole(field)):
            return partial(
                _struct_of, [(inner.name, self.lacking(inner, _in(name, inner))) for inner in field.type.fields]
            )
        elif field.initial_default is not None:
            where = f"column {name!r}: initial-default"
            value = value_from_json(field.initial_default, field.type, where, defaults="initial")
            return _repeated(pa.array([value], arrow_type(field.type)))
        if field.required:
            raise self._refused(f"the file lacks the required column {name!r} (field id {field.id})", name)
        return _repeated(nulls(field.type, 1))

    def _whole(self, field: Field) -> Field:
        """The field with all fields that the table has inside it; a field that the table has dropped is unchanged."""
        return field if self._table is None else self._table.by_id.get(field.id, field)

    def _has_constant(self, field: Field) -> bool:
        """Whether a field has a constant, or is a struct with one inside whose other required fields have values."""
        if field.id in self._constants or not isinstance(field.type, Struct):
            return field.id in self._constants and self._constants[field.id].is_valid
        needed = [inner for inner in field.type.fields if inner.required and inner.initial_default is None]
        return any(map(self._has_constant, field.type.fields)) and all(map(self._has_constant, needed))

    def _checked(self, name: str, convert: Convert | None, array: pa.Array) -> pa.Array:
        if array.null_count > 0:
            raise self._has_nulls(name, array.null_count)
        return array if convert is None else convert(array)

    def _type(self, stored: pa.DataType, target: Type, name: str) -> Convert | None:
        plain = storage(stored)
        match target:
            case Struct(fields) if isinstance(plain, pa.StructType):
                return _unwrapped(stored, self._struct(inner_fields(plain), fields, name))
            case List() if isinstance(plain, LISTS):
                return _unwrapped(stored, self._list(plain, target, name))
            case Map() if isinstance(plain, pa.MapType):
                return _unwrapped(stored, self._map(plain, target, name))
            case Variant() if isinstance(plain, pa.StructType):
                return _unwrapped(stored, self._variant(plain, name))
        if is_primitive(target) and readable(plain, wanted := arrow_type(target)):
            same = plain == wanted and not pa.types.is_dictionary(stored)
            return None if same else _unwrapped(stored, lambda array: array.cast(wanted))
        raise self._refused(f"column {name!r} is {stored} in the file, which cannot be read as {target}", name)

    def _struct(self, stored: list[pa.Field], fields: tuple[Field, ...], name: str) -> Convert | None:
        positions = self.positions(stored)
        parts: list[_Part] = []
        for field in fields:
            at, full = positions.get(field.id), _in(name, field)
            if at is None or field.type == UNKNOWN:
                parts.append(_Part(field.name, fill=self.lacking(field, full)))
                continue
            checked = field.required and stored[at].nullable
            convert = self._type(stored[at].type, field.type, full)
            parts.append(
                _Part(field.name, at=at, convert=convert, checked=partial(self._present, full) if checked else None)
            )
        if len(stored) == len(fields) and all(part.is_same(place) for place, part in enumerate(parts)):
            return None
        return partial(_rebuilt, parts)

    def _present(self, name: str, array: pa.Array, struct: pa.StructArray) -> None:
        """Refuse nulls of a required field in structs that are not null."""
        if array.null_count == 0:
            return
        lost = pc.sum(pc.and_(array.is_null(), struct.is_valid())).as_py()
        if lost > 0:
            raise self._has_nulls(name, lost)

    def _list(self, stored: pa.DataType, target: List, name: str) -> Convert | None:
        element = children(target)[0]
        convert = self.field(stored.value_field, element, f"{name}.element")
        if isinstance(stored, pa.ListType):
            return None if convert is None else partial(_list_of, convert)
        plain = pa.list_(stored.value_field)
        return lambda array: _list_of(convert, array.cast(plain))

    def _map(self, stored: pa.MapType, target: Map, name: str) -> Convert | None:
        key, value = children(target)
        keys = self.field(stored.key_field, key, f"{name}.key")
        values = self.field(stored.item_field, value, f"{name}.value")
        return None if keys is None and values is None else partial(_map_of, keys, values)

    def _variant(self, stored: pa.StructType, name: str) -> Convert | None:
        """A variant of two byte strings; one whose parts are stored in columns of their own is not put together."""
        places = {field.name: place for place, field in enumerate(inner_fields(stored))}
        if sorted(places) != sorted(part.name for part in VARIANT_PARTS):
            raise UnsupportedError(
                f"{self._location}: column {name!r} is a variant stored in columns of its own ({stored}), which is not"
                " handled; leave the column out",
                location=self._location,
                field=name,
            )
        parts = []
        for part in VARIANT_PARTS:
            type_ = stored.field(places[part.name]).type
            if not readable(type_, part.type):
                raise self._refused(f"column {name!r} is a variant whose {part.name} is {type_}, not binary", name)
            convert = None if type_ == part.type else _unwrapped(type_, lambda array: array.cast(pa.binary()))
            parts.append(_Part(part.name, at=places[part.name], convert=convert))
        return None if all(part.is_same(place) for place, part in enumerate(parts)) else partial(_rebuilt, parts)

    def _has_nulls(self, name: str, count: int) -> FormatError:
        return self._refused(f"required column {name!r} has {count} nulls in the file", name)

    def _refused(self, problem: str, name: str) -> FormatError:
        return FormatError(f"{self._location}: {problem}", location=self._location, field=name)


class _Part:
    """One field of a struct: read from a position in the file's struct, or filled in."""

    __slots__ = ("at", "checked", "convert", "fill", "name")

    def __init__(
        self,
        name: str,
        *,
        at: int = -1,
        convert: Convert | None = None,
        checked: Callable[[pa.Array, pa.StructArray], None] | None = None,
        fill: Fill | None = None,
    ) -> None:
        self.name, self.at, self.convert, self.checked, self.fill = name, at, convert, checked, fill

    def is_same(self, place: int) -> bool:
        """Whether the field is right as it is and where it is."""
        return self.at == place and self.convert is None and self.checked is None

    def of(self, struct: pa.StructArray) -> pa.Array:
        """The values for each row of the struct."""
        if self.fill is not None:
            return self.fill(len(struct))
        array = struct.field(self.at)
        if self.checked is not None:
            self.checked(array, struct)
        return array if self.convert is None else self.convert(array)


def _in(name: str, field: Field) -> str:
    return f"{name}.{field.name}"


def _unwrapped(stored: pa.DataType, convert: Convert | None) -> Convert | None:
    """The conversion of an extension type; without one the labels that are put on at the end are all it takes."""
    if convert is None or not isinstance(stored, pa.BaseExtensionType):
        return convert
    return lambda array: convert(array.storage)


def _rebuilt(parts: list[_Part], struct: pa.StructArray) -> pa.StructArray:
    """A struct of other fields that is null where the file's is."""
    values = [part.of(struct) for part in parts]
    type_ = pa.struct([pa.field(part.name, array.type) for part, array in zip(parts, values, strict=True)])
    valid = None
    if struct.null_count > 0:
        valid = struct.buffers()[0] if struct.offset == 0 else struct.is_valid().buffers()[1]
    return pa.Array.from_buffers(type_, len(struct), [valid], struct.null_count, 0, values)


def _list_of(convert: Convert | None, array: pa.ListArray) -> pa.ListArray:
    values = array.values if convert is None else convert(array.values)
    type_ = pa.list_(pa.field("element", values.type))
    return pa.Array.from_buffers(type_, len(array), array.buffers()[:2], array.null_count, array.offset, [values])


def _map_of(keys: Convert | None, values: Convert | None, array: pa.MapArray) -> pa.MapArray:
    new_keys = array.keys if keys is None else keys(array.keys)
    new_values = array.items if values is None else values(array.items)
    fields = [pa.field("key", new_keys.type, nullable=False), pa.field("value", new_values.type)]
    entries = pa.StructArray.from_arrays([new_keys, new_values], fields=fields)
    return pa.Array.from_buffers(
        pa.map_(*fields), len(array), array.buffers()[:2], array.null_count, array.offset, [entries]
    )


def _struct_of(parts: list[tuple[str, Fill]], rows: int) -> pa.StructArray:
    """Structs that are all there."""
    values = [fill(rows) for _, fill in parts]
    type_ = pa.struct([pa.field(name, array.type) for (name, _), array in zip(parts, values, strict=True)])
    return pa.Array.from_buffers(type_, rows, [None], 0, 0, values)


def _repeated(one: pa.Array) -> Fill:
    """The same value for every row; what was made for one batch serves the next."""
    made = one

    def fill(rows: int) -> pa.Array:
        nonlocal made
        if len(made) < rows:
            plain = not pa.types.is_nested(one.type)
            made = pa.repeat(one[0], rows) if plain else one.take(pa.array(np.zeros(rows, np.int64)))
        return made if len(made) == rows else made.slice(0, rows)

    return fill

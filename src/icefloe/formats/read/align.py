"""Converts batches of a file to the columns of a table's current schema (spec: Column Projection, Schema Evolution).

Fields are matched by id, at every depth. Most columns are passed on without copying a value: names, ids and flags are
set at the end. Promoted columns are cast, and structs are rebuilt if their fields were moved, added or dropped. A field
that the file lacks gets its constant, such as a partition value, or its initial default, or is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import FormatError, UnsupportedError
from icefloe.formats.parquet.field_ids import LISTS, field_id, inner_fields
from icefloe.formats.read.batches import relabel, without_columns
from icefloe.formats.read.promotion import readable, storage
from icefloe.model.arrow.arrow_types import VARIANT_PARTS
from icefloe.model.arrow.conform import arrow_schema, arrow_type, nulls
from icefloe.model.schema.json_values import value_from_json
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import UNKNOWN, Field, List, Map, Struct, Type, Variant, children, is_primitive

Convert: TypeAlias = Callable[[pa.Array], pa.Array]
Fill: TypeAlias = Callable[[int], pa.Array]  # as many values as there are rows


class Aligner:
    """Converts batches of one file, all with the schema ``stored``, to batches of ``schema``.

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
        self._columns = _Conversions(location, constants, table).columns(stored, schema)
        self._is_same = _are_same(self._columns, len(stored)) and stored.equals(self._target, check_metadata=True)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the columns of the table."""
        if self._is_same:
            return batch
        if len(self._columns) == 0:
            return without_columns(batch.num_rows)
        columns = [column.values(batch.column, batch.num_rows) for column in self._columns]
        return relabel(pa.RecordBatch.from_arrays(columns, names=self._target.names), self._target)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A column, or a field of a struct: stored at an index of the file's batches or structs, or filled in."""

    name: str
    index: int = -1
    convert: Convert | None = None
    check: Callable[[pa.Array, pa.StructArray], None] | None = None
    fill: Fill | None = None

    def values(self, stored: Callable[[int], pa.Array], rows: int) -> pa.Array:
        if self.fill is not None:
            return self.fill(rows)
        array = stored(self.index)
        return array if self.convert is None else self.convert(array)


def _are_same(columns: list[_Column], stored: int) -> bool:
    """Whether columns are the ``stored`` ones, in their order and without any conversion."""
    return len(columns) == stored and all(
        column.index == index and column.convert is None and column.check is None
        for index, column in enumerate(columns)
    )


class _Conversions:
    """Finds the conversions of the columns of one file; ``constants`` has values by id, for fields that it lacks.

    If only some fields of a struct are read, ``table`` has all of them: whether the file lacks the whole struct, or
    rows have one around a constant, does not depend on the fields that are read.
    """

    def __init__(self, location: str, constants: Mapping[int, pa.Scalar], table: Schema | None = None) -> None:
        self._location = location
        self._constants = constants
        self._table = table

    def columns(self, stored: pa.Schema, schema: Schema) -> list[_Column]:
        """The columns of ``schema``, from a file with the columns ``stored``."""
        positions = self._positions(list(stored))
        columns = []
        for field in schema.fields:
            index = positions.get(field.id)
            if index is None or field.type == UNKNOWN:
                columns.append(_Column(name=field.name, fill=self._missing(field, field.name)))
            else:
                convert = self._field(stored.field(index), field, field.name)
                columns.append(_Column(name=field.name, index=index, convert=convert))
        return columns

    def _positions(self, fields: list[pa.Field]) -> Mapping[int, int]:
        """The indices of the fields of a file, or of a struct in it, by id."""
        positions: dict[int, int] = {}
        for position, field in enumerate(fields):
            id_ = field_id(field)
            if id_ is not None and id_ in positions:
                both = f"{fields[positions[id_]].name!r} and {field.name!r}"
                raise self._refused(f"the columns {both} both have the field id {id_}", field.name)
            if id_ is not None:
                positions[id_] = position
        return positions

    def _field(self, stored: pa.Field, target: Field, name: str) -> Convert | None:
        """The conversion of the values of a column or an element; none if they need none."""
        convert = self._type(stored.type, target.type, name)
        if not (target.required and stored.nullable):
            return convert
        return partial(self._checked, name, convert)

    def _missing(self, field: Field, name: str) -> Fill:
        """The values of a field that the file lacks."""
        if field.id in self._constants:
            value = self._constants[field.id]
            if value.is_valid:
                type_ = arrow_type(field.type)
                return _repeated(pa.repeat(value if value.type == type_ else value.cast(type_), 1))
        elif isinstance(field.type, Struct) and self._has_constant(self._whole(field)):
            return partial(
                _struct_of, [(inner.name, self._missing(inner, _in(name, inner))) for inner in field.type.fields]
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
        positions = self._positions(stored)
        columns: list[_Column] = []
        for field in fields:
            index, full = positions.get(field.id), _in(name, field)
            if index is None or field.type == UNKNOWN:
                columns.append(_Column(name=field.name, fill=self._missing(field, full)))
                continue
            convert = self._type(stored[index].type, field.type, full)
            check = partial(self._check_present, full) if field.required and stored[index].nullable else None
            columns.append(_Column(name=field.name, index=index, convert=convert, check=check))
        return None if _are_same(columns, len(stored)) else partial(_rebuilt, columns)

    def _check_present(self, name: str, array: pa.Array, struct: pa.StructArray) -> None:
        """Refuse nulls of a required field in structs that are not null."""
        if array.null_count == 0:
            return
        missing = pc.sum(pc.and_(array.is_null(), struct.is_valid())).as_py()
        if missing > 0:
            raise self._has_nulls(name, missing)

    def _list(self, stored: pa.DataType, target: List, name: str) -> Convert | None:
        element = children(target)[0]
        convert = self._field(stored.value_field, element, f"{name}.element")
        if isinstance(stored, pa.ListType):
            return None if convert is None else partial(_list_of, convert)
        plain = pa.list_(stored.value_field)
        return lambda array: _list_of(convert, array.cast(plain))

    def _map(self, stored: pa.MapType, target: Map, name: str) -> Convert | None:
        key, value = children(target)
        keys = self._field(stored.key_field, key, f"{name}.key")
        values = self._field(stored.item_field, value, f"{name}.value")
        return None if keys is None and values is None else partial(_map_of, keys, values)

    def _variant(self, stored: pa.StructType, name: str) -> Convert | None:
        """A variant of two byte strings; a shredded variant is refused."""
        indices = {field.name: index for index, field in enumerate(inner_fields(stored))}
        if sorted(indices) != sorted(part.name for part in VARIANT_PARTS):
            raise UnsupportedError(
                f"{self._location}: column {name!r} is a variant stored in columns of its own ({stored}), which is not"
                " handled; leave the column out",
                location=self._location,
                field=name,
            )
        columns = []
        for part in VARIANT_PARTS:
            type_ = stored.field(indices[part.name]).type
            if not readable(type_, part.type):
                raise self._refused(f"column {name!r} is a variant whose {part.name} is {type_}, not binary", name)
            convert = None if type_ == part.type else _unwrapped(type_, lambda array: array.cast(pa.binary()))
            columns.append(_Column(name=part.name, index=indices[part.name], convert=convert))
        return None if _are_same(columns, stored.num_fields) else partial(_rebuilt, columns)

    def _has_nulls(self, name: str, count: int) -> FormatError:
        return self._refused(f"required column {name!r} has {count} nulls in the file", name)

    def _refused(self, problem: str, name: str) -> FormatError:
        return FormatError(f"{self._location}: {problem}", location=self._location, field=name)


def _in(name: str, field: Field) -> str:
    return f"{name}.{field.name}"


def _unwrapped(stored: pa.DataType, convert: Convert | None) -> Convert | None:
    """The conversion of the storage of an extension type; without a conversion, relabelling is enough."""
    if convert is None or not isinstance(stored, pa.BaseExtensionType):
        return convert
    return lambda array: convert(array.storage)


def _rebuilt(columns: list[_Column], struct: pa.StructArray) -> pa.StructArray:
    """A struct with other fields that is null where the file's struct is."""
    for column in columns:
        if column.check is not None:
            column.check(struct.field(column.index), struct)
    values = [column.values(struct.field, len(struct)) for column in columns]
    type_ = pa.struct([pa.field(column.name, array.type) for column, array in zip(columns, values, strict=True)])
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
    """Structs without nulls."""
    values = [fill(rows) for _, fill in parts]
    type_ = pa.struct([pa.field(name, array.type) for (name, _), array in zip(parts, values, strict=True)])
    return pa.Array.from_buffers(type_, rows, [None], 0, 0, values)


def _repeated(one: pa.Array) -> Fill:
    """The same value for every row; the array of one batch is used again for the next."""
    repeated = one

    def fill(rows: int) -> pa.Array:
        nonlocal repeated
        if len(repeated) < rows:
            is_nested = pa.types.is_nested(one.type)
            repeated = one.take(pa.array(np.zeros(rows, np.int64))) if is_nested else pa.repeat(one[0], rows)
        return repeated if len(repeated) == rows else repeated.slice(0, rows)

    return fill

"""What the tests of evolution share: a schema of every shape, random steps, and rows read by id without any help."""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Mapping
from typing import Any

import pytest

from icefloe.errors import InputError
from icefloe.model.evolution.evolve import evolve
from icefloe.model.evolution.protected_columns import Protected
from icefloe.model.evolution.steps import (
    AddColumn,
    After,
    Before,
    DropColumn,
    First,
    MakeOptional,
    MoveColumn,
    Position,
    PromoteColumn,
    RenameColumn,
    SchemaChange,
    SetDefault,
    SetDoc,
    SetIdentifiers,
)
from icefloe.model.partition.sort_order import SortField, SortOrder
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.json_values import value_from_json
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    UNKNOWN,
    Decimal,
    Field,
    List,
    Map,
    Struct,
    Type,
    children,
    is_primitive,
)

ADDRESS = Struct((Field(11, "street", STRING), Field(12, "zip", INT, True)))
KEY = Struct((Field(31, "k", INT, True),))
SCHEMA = Schema(
    fields=(
        Field(1, "id", INT, True),
        Field(2, "address", ADDRESS, True),
        Field(3, "tags", List(20, Struct((Field(21, "label", STRING), Field(22, "weight", FLOAT))), True)),
        Field(4, "prices", Map(30, KEY, 32, Struct((Field(33, "net", Decimal(9, 2)),)), True)),
        Field(5, "sizes", List(40, INT, True)),
        Field(6, "ratio", DOUBLE, True),
        Field(7, "note", STRING, doc="free text"),
    ),
    schema_id=3,
    identifier_field_ids=(1,),
)
LAST = 50
LIVE = frozenset({12, 6})  # the columns that PROTECTED keeps from being dropped
PROTECTED = Protected(
    specs=(
        PartitionSpec(
            spec_id=1, fields=(PartitionField(source_id=12, field_id=1000, name="part", transform="bucket[4]"),)
        ),
    ),
    orders=(SortOrder(order_id=1, fields=(SortField(source_id=6),)),),
    historic=(PartitionSpec(fields=(PartitionField(source_id=7, field_id=1001, name="note", transform="identity"),)),),
)

# Random steps

NAMES = ("a", "b", "B", "c", "d", "id", "zip", "note", "new.name", "tags", "part", "_file", "")
WIDER: Mapping[Type, tuple[Type, ...]] = {
    INT: (LONG,),
    FLOAT: (DOUBLE,),
    DATE: (TIMESTAMP, TIMESTAMP_NS),
    Decimal(9, 2): (Decimal(12, 2), Decimal(38, 2)),
    UNKNOWN: (INT, DATE, ADDRESS, List(1, FLOAT)),
}
LEAVES = (INT, LONG, FLOAT, DOUBLE, DATE, STRING, BOOLEAN, Decimal(9, 2), UNKNOWN)
POINT = Struct((Field(1, "x", INT, True, None, 3, 3), Field(2, "y", DATE), Field(3, "a", FLOAT, True, None, 0.1, 0.5)))
NESTED = (ADDRESS, POINT, List(1, KEY), List(1, DATE), Map(1, STRING, 2, POINT), Struct((Field(1, "u", UNKNOWN),)))


def random_step(rng: random.Random, schema: Schema) -> SchemaChange:
    """A step about columns that are there, or mostly; half of such steps are legal."""
    column = rng.choice([*schema.by_name, "gone"])
    match rng.randrange(12):
        case 0 | 1 | 2 | 3:
            return _random_add(rng, schema)
        case 4:
            return DropColumn(column=column)
        case 5:
            return RenameColumn(column=column, name=rng.choice(NAMES))
        case 6:
            return MoveColumn(column=column, position=_random_position(rng, schema))
        case 7 | 8:
            type_ = schema.by_name[column].type if column in schema.by_name else INT
            wider = WIDER.get(type_, ()) if is_primitive(type_) else ()
            return PromoteColumn(column=column, type=rng.choice(wider if len(wider) > 0 else LEAVES))
        case 9:
            return MakeOptional(column=column)
        case 10:
            if column in schema.by_name and rng.random() < 0.5:
                return SetDefault(column=column, default=_random_default(rng, schema.by_name[column].type))
            return SetDoc(column=column, doc=rng.choice([None, "words"]))
        case _:
            chosen = rng.sample(list(schema.by_name), rng.randrange(3))
            return SetIdentifiers(columns=tuple(chosen))


def _random_add(rng: random.Random, schema: Schema) -> AddColumn:
    structs = [name for name, field in schema.by_name.items() if not is_primitive(field.type)]
    type_ = rng.choice(LEAVES if rng.random() < 0.7 else NESTED)
    return AddColumn(
        name=rng.choice(NAMES),
        type=type_,
        parent=rng.choice(structs) if rng.random() < 0.5 and len(structs) > 0 else None,
        required=rng.random() < 0.4,
        default=_random_default(rng, type_) if rng.random() < 0.6 else None,
        position=None if rng.random() < 0.7 else _random_position(rng, schema),
    )


def _random_position(rng: random.Random, schema: Schema) -> Position:
    column = rng.choice(list(schema.by_name))
    return rng.choice([First(), Before(column), After(column)])


def _random_default(rng: random.Random, type_: Type) -> Any:
    if isinstance(type_, Struct):
        return rng.choice([None, {}])
    return None if not is_primitive(type_) or type_ == UNKNOWN else random_value(rng, type_, required=True)


# Rows: a struct is a dictionary by field id, a map a list of pairs


def random_row(rng: random.Random, schema: Schema) -> dict[int, Any]:
    """A row that a writer of the schema may have written."""
    return {field.id: random_value(rng, field.type, required=field.required) for field in schema.fields}


def random_value(rng: random.Random, type_: Type, *, required: bool) -> Any:
    """A value of a type, null at times where it may be."""
    if type_ == UNKNOWN or (not required and rng.random() < 0.2):
        return None
    match type_:
        case Struct(fields):
            return {field.id: random_value(rng, field.type, required=field.required) for field in fields}
        case List():
            return [random_value(rng, type_.element, required=type_.element_required) for _ in range(rng.randrange(3))]
        case Map():
            keys = [random_value(rng, type_.key, required=True) for _ in range(rng.randrange(2))]
            return [(key, random_value(rng, type_.value, required=type_.value_required)) for key in keys]
        case Decimal(_, scale):
            return decimal.Decimal(rng.randrange(-(10**6), 10**6)).scaleb(-scale)
    number = rng.randrange(-50_000, 50_000)
    return {
        INT: number,
        LONG: number * 2**20,
        FLOAT: number / 8,
        DOUBLE: number / 3,
        DATE: datetime.date(1970, 1, 1) + datetime.timedelta(number),
        TIMESTAMP: datetime.datetime(1970, 1, 1) + datetime.timedelta(number, 1, 1),
        TIMESTAMP_NS: number,
        STRING: str(number),
        BOOLEAN: number > 0,
    }[type_]


def read_by_id(row: dict[int, Any], written: Schema, wanted: Schema) -> dict[int, Any]:
    """A row written with one schema as another one reads it: by ids alone, with defaults for what is not there."""
    return _read_struct(row, written.fields, wanted.fields)


def _read_struct(row: dict[int, Any], written: tuple[Field, ...], wanted: tuple[Field, ...]) -> dict[int, Any]:
    known = {field.id: field for field in written}
    return {
        field.id: _read(row[field.id], known[field.id].type, field.type) if field.id in known else _default(field)
        for field in wanted
    }


def _read(value: Any, written: Type, wanted: Type) -> Any:
    if value is None or written == wanted:
        return value
    match written, wanted:
        case Struct(old), Struct(new):
            return _read_struct(value, old, new)
        case List(), List():
            return [_read(element, written.element, wanted.element) for element in value]
        case Map(), Map():
            return [(_read(k, written.key, wanted.key), _read(v, written.value, wanted.value)) for k, v in value]
    if written == DATE:
        midnight = datetime.datetime.combine(value, datetime.time.min)
        days = (value - datetime.date(1970, 1, 1)).days
        return midnight if wanted == TIMESTAMP else days * 86_400 * 10**9
    return value


def _default(field: Field) -> Any:
    if field.initial_default is None:
        return None
    if isinstance(field.type, Struct):
        return {child.id: _default(child) for child in field.type.fields}
    return value_from_json(field.initial_default, field.type)


def null_where_required(values: dict[int, Any], fields: tuple[Field, ...]) -> list[str]:
    """The names of required fields that hold null, at every depth."""
    found = []
    for field in fields:
        value = values[field.id]
        if value is None:
            found += [field.name] if field.required else []
        elif isinstance(field.type, Struct):
            found += null_where_required(value, field.type.fields)
        elif isinstance(field.type, List) and isinstance(field.type.element, Struct):
            found += [name for inner in value if inner is not None for name in _nulls(inner, field.type.element)]
        elif isinstance(field.type, Map) and isinstance(field.type.value, Struct):
            found += [name for _, inner in value if inner is not None for name in _nulls(inner, field.type.value)]
    return found


def _nulls(values: dict[int, Any], type_: Struct) -> list[str]:
    return null_where_required(values, type_.fields)


def changed(*steps: object, **options: object) -> Schema:
    """The schema after steps."""
    return evolve(SCHEMA, steps, **{"last_column_id": LAST, **options}).schema


def refusal(*steps: object, **options: object) -> InputError:
    """The error that refuses steps."""
    with pytest.raises(InputError) as caught:
        changed(*steps, **options)
    return caught.value


def names(schema: Schema, parent: str | None = None) -> list[str]:
    """The names of the columns, or of the fields of a struct."""
    return [f.name for f in (schema.fields if parent is None else children(schema.field(parent).type))]

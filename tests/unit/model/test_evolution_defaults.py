"""Default values under schema evolution, and the types and promotions that came with format version 3."""

from __future__ import annotations

import datetime
import decimal
import uuid

import pytest

from icefloe.errors import InputError
from icefloe.model.evolution.change_rules import promotes, promotion_problem
from icefloe.model.evolution.evolve import evolve
from icefloe.model.evolution.protected_columns import Protected
from icefloe.model.evolution.steps import (
    AddColumn,
    DropColumn,
    MakeOptional,
    PromoteColumn,
    RenameColumn,
    SchemaChange,
    SetDefault,
)
from icefloe.model.partition.sort_order import SortField, SortOrder
from icefloe.model.partition.spec import Expression, PartitionField, PartitionSpec
from icefloe.model.schema.defaults import default_json, promoted_default
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Struct,
    Type,
)
from unit.model.evolving import LAST, SCHEMA

NOON = datetime.datetime(2026, 1, 31, 12)
POINT = Struct((Field(1, "x", INT, True, None, 1, 1), Field(2, "y", INT)))


def changed(*steps: SchemaChange, schema: Schema = SCHEMA, version: int = 3, **options: object) -> Schema:
    return evolve(schema, steps, last_column_id=LAST, format_version=version, **options).schema


def refusal(*steps: SchemaChange, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        changed(*steps, **options)
    assert "field" in caught.value.context
    return str(caught.value)


# Which values are defaults


GOOD = [
    (BOOLEAN, False, False),
    (INT, -(2**31), -(2**31)),
    (LONG, 2**63 - 1, 2**63 - 1),
    (FLOAT, 1, 1.0),
    (DOUBLE, 0.5, 0.5),
    (Decimal(4, 2), "-12.50", "-12.50"),
    (Decimal(4, 2), decimal.Decimal("1.5"), "1.50"),
    (Decimal(3, 0), "120", "120"),
    (DATE, "2026-01-31", "2026-01-31"),
    (DATE, NOON.date(), "2026-01-31"),
    (TIME, "10:00:00.000001", "10:00:00.000001"),
    (TIME, datetime.time(10), "10:00:00.000000"),
    (TIMESTAMP, "2026-01-31T10:00:00.123456", "2026-01-31T10:00:00.123456"),
    (TIMESTAMP, NOON, "2026-01-31T12:00:00.000000"),
    (TIMESTAMPTZ, "2026-01-31T10:00:00+00:00", "2026-01-31T10:00:00.000000+00:00"),
    (TIMESTAMPTZ, NOON.replace(tzinfo=datetime.UTC), "2026-01-31T12:00:00.000000+00:00"),
    (TIMESTAMP_NS, "2026-01-31T10:00:00.123456789", "2026-01-31T10:00:00.123456789"),
    (TIMESTAMPTZ_NS, 1, "1970-01-01T00:00:00.000000001+00:00"),
    (STRING, "", ""),
    (UUID, "f79c3e09-677c-4bbd-a479-3f349cb785e7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    (UUID, uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (Fixed(2), "00ff", "00ff"),
    (Fixed(2), b"\x00\xff", "00ff"),
    (BINARY, "", ""),
    (BINARY, b"\xab", "ab"),
    (POINT, {}, {}),
    (VARIANT, None, None),
    (List(1, INT), None, None),
]
BAD = [
    (BOOLEAN, 0),
    (INT, 2**31),
    (INT, True),
    (INT, 1.0),
    (INT, "1"),
    (LONG, 2**63),
    (DOUBLE, "1"),
    (DOUBLE, float("nan")),
    (FLOAT, 1e39),
    (Decimal(4, 2), "1.5"),
    (Decimal(4, 2), "123.45"),
    (Decimal(4, 2), 1.25),
    (DATE, "2026-02-30"),
    (DATE, NOON),
    (TIME, "25:00:00"),
    (TIMESTAMP, "2026-01-31T10:00:00+00:00"),
    (TIMESTAMP, NOON.replace(tzinfo=datetime.UTC)),
    (TIMESTAMPTZ, "2026-01-31T10:00:00"),
    (TIMESTAMPTZ, "2026-01-31T10:00:00+02:00"),
    (TIMESTAMP_NS, 2**63),
    (STRING, 5),
    (STRING, b"x"),
    (UUID, "f79c"),
    (Fixed(2), "00"),
    (BINARY, "0g"),
    (POINT, {"x": 1}),
    (POINT, []),
    (List(1, INT), []),
    (Map(1, INT, 2, INT), {}),
    (UNKNOWN, 1),
    (VARIANT, {}),
    (Geometry(), b""),
    (Geography(), "00"),
]


@pytest.mark.parametrize(("type_", "value", "stored"), GOOD, ids=str)
def test_a_default_is_stored_in_its_json_form(type_, value, stored):
    assert default_json(value, type_) == stored
    assert type(default_json(value, type_)) is type(stored)


@pytest.mark.parametrize(("type_", "value"), BAD, ids=str)
def test_another_value_is_no_default(type_, value):
    assert "'x' cannot be added: its default does not fit" in refusal(AddColumn(name="x", type=type_, default=value))


# Columns added with a default


def test_a_new_column_has_its_default_for_old_rows_and_for_writers():
    schema = changed(AddColumn(name="day", type=DATE, required=True, default=datetime.date(2026, 1, 31)))

    assert schema.field("day") == Field(51, "day", DATE, True, None, "2026-01-31", "2026-01-31")


def test_a_false_or_empty_default_is_a_default():
    steps = [AddColumn(name=f"c{i}", type=t, required=True, default=d) for i, (t, d) in enumerate(FALSY)]

    assert [field.initial_default for field in changed(*steps).fields[-len(FALSY) :]] == [d for _, d in FALSY]


FALSY = [(INT, 0), (BOOLEAN, False), (STRING, ""), (BINARY, ""), (DOUBLE, 0.0)]


def test_a_required_column_needs_a_default_even_where_defaults_exist():
    assert "give a default" in refusal(AddColumn(name="x", type=INT, required=True))
    assert "give a default" in refusal(AddColumn(name="x", type=INT, parent="tags", required=True))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    "step", [AddColumn(name="x", type=INT, default=1), SetDefault(column="note", default="x")], ids=repr
)
def test_versions_without_defaults_say_so(version, step):
    assert f"need format version 3 or later, this is {version}" in refusal(step, version=version)


def test_a_default_inside_a_new_struct_is_judged_and_stored_too():
    bad = Struct((Field(1, "a", INT, initial_default="one"),))
    good = List(1, Struct((Field(2, "a", DATE, True, None, NOON.date(), "2026-02-01"),)))

    assert "'s.a' cannot be added: defaults need" in refusal(AddColumn(name="s", type=bad), version=2)
    assert "'s.a' cannot be added: its default does not fit" in refusal(AddColumn(name="s", type=bad))
    stored = changed(AddColumn(name="s", type=good)).field("s.element.a")
    assert (stored.initial_default, stored.write_default) == ("2026-01-31", "2026-02-01")


def test_a_struct_is_added_as_required_with_the_defaults_of_its_fields():
    schema = changed(AddColumn(name="p", type=POINT, required=True, default={}))

    assert (schema.field("p").initial_default, schema.field("p").write_default) == ({}, {})
    assert schema.field("p.x").initial_default == 1


def test_an_empty_struct_default_needs_a_default_of_every_required_field():
    lacking = Struct((Field(1, "p", Struct((Field(2, "x", INT, True),)), True, None, {}, {}),))

    assert "'s.p' cannot be added: its default is {}, but s.p.x is required" in refusal(
        AddColumn(name="s", type=lacking, default={})
    )
    write_only = Struct((Field(1, "x", INT, True, None, 1, None),))
    assert "s.x is required and has no default" in refusal(AddColumn(name="s", type=write_only, default={}))
    assert changed(AddColumn(name="s", type=Struct((Field(1, "x", INT, True),)))).field("s.x").required


# Other defaults for writers


def test_the_write_default_changes_and_the_initial_one_stays():
    schema = changed(
        AddColumn(name="x", type=INT, required=True, default=1),
        SetDefault(column="x", default=2),
        SetDefault(column="address.street", default="unknown"),
    )

    assert schema.field("x") == Field(51, "x", INT, True, None, 1, 2)
    assert schema.field("address.street") == Field(11, "street", STRING, write_default="unknown")


def test_a_default_is_taken_away_from_an_optional_column_only():
    add = AddColumn(name="x", type=INT, required=True, default=1)

    assert "'x' cannot be without a default: it is required" in refusal(add, SetDefault(column="x", default=None))
    schema = changed(add, MakeOptional(column="x"), SetDefault(column="x", default=None))
    assert schema.field("x") == Field(51, "x", INT, False, None, 1, None)
    assert changed(SetDefault(column="id", default=None)) == SCHEMA


@pytest.mark.parametrize(
    ("column", "default", "reason"),
    [
        ("note", 1, "the default does not fit: 1 is no value of type string"),
        ("sizes", [], "has no default but null"),
        ("address", {}, "address.zip is required and has no default"),
        ("sizes.element", 1, "it is the element of 'sizes'"),
        ("prices.key.k", 1, "keys of map 'prices' cannot change"),
        ("gone", 1, "no column 'gone'"),
    ],
)
def test_an_illegal_default_is_refused(column, default, reason):
    assert reason in refusal(SetDefault(column=column, default=default))


def test_a_struct_gets_a_default_once_its_required_fields_have_one():
    schema = changed(SetDefault(column="address.zip", default=0), SetDefault(column="address", default={}))

    assert schema.field("address").write_default == {}


def test_a_column_with_another_default_is_not_dropped_by_the_same_change():
    steps = [SetDefault(column="note", default="x"), DropColumn(column="note")]

    assert "another step of this change" in refusal(*steps)


# Promotions


def test_only_the_promotions_of_the_version_are_promotions():
    types = [BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, STRING, BINARY, UUID, Fixed(4)]
    types += [TIMESTAMP_NS, TIMESTAMPTZ_NS, Decimal(9, 2), Decimal(10, 2), Decimal(10, 3), Geometry(), VARIANT]
    types += [POINT, List(1, INT), Map(1, INT, 2, INT)]
    always = {("int", "long"), ("float", "double"), ("decimal(9, 2)", "decimal(10, 2)")}
    later = {("date", "timestamp"), ("date", "timestamp_ns")}

    for version, expected in ((1, always), (2, always), (3, always | later), (4, always | later)):
        assert {(str(a), str(b)) for a in types for b in types if promotes(a, b, version)} == expected
        assert all(promotes(UNKNOWN, b, version) == (version >= 3) for b in types)
        assert not any(promotes(a, UNKNOWN, version) for a in types)
        for a in types:
            assert [promotion_problem(a, b, version) is None for b in types] == [
                a == b or promotes(a, b, version) for b in types
            ]


def dated(*fields: Field) -> Schema:
    return Schema(fields=(Field(1, "day", DATE, True, None, "2026-01-31", "2026-02-01"), *fields))


@pytest.mark.parametrize(
    ("type_", "initial", "write"),
    [
        (TIMESTAMP, "2026-01-31T00:00:00.000000", "2026-02-01T00:00:00.000000"),
        (TIMESTAMP_NS, "2026-01-31T00:00:00.000000000", "2026-02-01T00:00:00.000000000"),
    ],
)
def test_a_date_becomes_a_timestamp_and_its_defaults_midnights(type_, initial, write):
    promoted = changed(PromoteColumn(column="day", type=type_), schema=dated()).field("day")

    assert promoted == Field(1, "day", type_, True, None, initial, write)


@pytest.mark.parametrize("type_", [TIMESTAMPTZ, TIMESTAMPTZ_NS, LONG, STRING])
def test_a_date_becomes_no_other_type(type_):
    assert "date is not promoted to" in refusal(PromoteColumn(column="day", type=type_), schema=dated())


def test_a_promotion_of_a_later_version_names_it():
    step = PromoteColumn(column="day", type=TIMESTAMP)

    assert "from format version 3 on, and this is 2" in refusal(step, schema=dated(), version=2)


def test_a_default_that_the_wider_type_lacks_stops_the_promotion():
    ancient = Schema(fields=(Field(1, "day", DATE, False, None, "0900-01-01", None),))

    assert "its default does not fit" in refusal(PromoteColumn(column="day", type=TIMESTAMP_NS), schema=ancient)
    assert changed(PromoteColumn(column="day", type=TIMESTAMP), schema=ancient).field("day").type == TIMESTAMP


def test_a_promoted_default_is_the_same_value():
    assert promoted_default(0.1, FLOAT, DOUBLE) == 0.10000000149011612
    assert promoted_default(7, INT, LONG) == 7
    assert promoted_default("1.50", Decimal(3, 2), Decimal(9, 2)) == "1.50"
    assert promoted_default("1969-12-31", DATE, TIMESTAMP_NS) == "1969-12-31T00:00:00.000000000"
    assert promoted_default(None, DATE, TIMESTAMP) is None


@pytest.mark.parametrize("group", ["specs", "historic"])
@pytest.mark.parametrize(
    ("transform", "allowed"),
    [
        ("year", True),
        ("month", True),
        ("day", True),
        ("void", True),
        ("identity", False),
        ("bucket[8]", False),
        ("zorder", False),
    ],
)
def test_a_date_that_a_spec_partitions_by_is_promoted_if_no_partition_value_changes(group, transform, allowed):
    part = PartitionField(source_id=9, other_source_ids=(1,), field_id=1000, name="p", transform=transform)
    options = {"schema": dated(), "protected": Protected(**{group: (PartitionSpec(spec_id=4, fields=(part,)),)})}
    step = PromoteColumn(column="day", type=TIMESTAMP)

    if allowed:
        assert changed(step, **options).field("day").type == TIMESTAMP
    else:
        assert f"partition field 'p' of spec 4 ({transform}) would give other values" in refusal(step, **options)


def test_a_date_that_an_expression_hashes_is_not_promoted():
    bucket = Expression(expr_id=5, source_ids=(1,), transform="bucket[4]", name="b")
    step = PromoteColumn(column="day", type=TIMESTAMP)

    assert "expression 'b'" in refusal(step, schema=dated(), protected=Protected(expressions=(bucket,)))


def test_other_promotions_do_not_change_partition_values():
    part = PartitionField(source_id=12, field_id=1000, name="p", transform="bucket[8]")
    protected = Protected(specs=(PartitionSpec(fields=(part,)),))

    assert changed(PromoteColumn(column="address.zip", type=LONG), protected=protected).field("address.zip")


# Unknown and the other types of version 3


@pytest.mark.parametrize("type_", [TIMESTAMP_NS, TIMESTAMPTZ_NS, UNKNOWN, VARIANT, Geometry(), Geography()], ids=str)
@pytest.mark.parametrize("around", [lambda t: t, lambda t: Struct((Field(1, "f", List(2, t)),))], ids=["bare", "deep"])
def test_a_type_that_the_version_lacks_is_refused_with_the_version_that_has_it(type_, around):
    step = AddColumn(name="x", type=around(type_))

    assert f"type {type_} needs format version 3 or later, this is 2" in refusal(step, version=2)
    assert changed(step, version=3).field("x").type is not None


@pytest.mark.parametrize(
    "type_",
    [
        Struct((Field(1, "u", UNKNOWN, True),)),
        List(1, UNKNOWN, True),
        Map(1, UNKNOWN, 2, INT),
        Map(1, INT, 2, UNKNOWN, True),
    ],
    ids=str,
)
def test_unknown_values_must_be_optional(type_):
    assert "so it must be optional" in refusal(AddColumn(name="x", type=type_))
    assert "so it must be optional" in refusal(AddColumn(name="x", type=UNKNOWN, required=True))


UNCLEAR = Schema(fields=(Field(1, "u", UNKNOWN), Field(2, "l", List(3, UNKNOWN)), Field(4, "id", INT)))


@pytest.mark.parametrize("type_", [INT, Decimal(9, 2), TIMESTAMP_NS, VARIANT, Geometry()], ids=str)
def test_an_unknown_column_becomes_any_type(type_):
    schema = changed(
        PromoteColumn(column="u", type=type_), PromoteColumn(column="l.element", type=type_), schema=UNCLEAR
    )

    assert schema.fields[:2] == (Field(1, "u", type_), Field(2, "l", List(3, type_)))


def test_an_unknown_column_becomes_a_struct_whose_fields_get_new_ids():
    nested = Struct((Field(1, "a", INT, True), Field(1, "b", List(1, STRING))))

    evolved = evolve(
        UNCLEAR,
        [
            PromoteColumn(column="u", type=nested),
            RenameColumn(column="u.a", name="x"),
            AddColumn(name="c", type=INT, parent="u"),
        ],
        last_column_id=LAST,
        format_version=3,
    )

    assert evolved.schema.fields[0] == Field(
        1, "u", Struct((Field(51, "x", INT, True), Field(52, "b", List(53, STRING)), Field(54, "c", INT)))
    )
    assert evolved.last_column_id == 54


def test_an_unknown_column_does_not_become_what_the_format_lacks():
    assert "has no fields" in refusal(PromoteColumn(column="u", type=Struct(())), schema=UNCLEAR)
    clash = Schema(fields=(Field(1, "u", UNKNOWN), Field(2, "u.a", INT)))
    assert "two columns named 'u.a'" in refusal(
        PromoteColumn(column="u", type=Struct((Field(1, "a", INT),))), schema=clash
    )


@pytest.mark.parametrize(("type_", "allowed"), [(INT, True), (VARIANT, False), (Geometry(), False), (POINT, False)])
def test_an_unknown_column_that_is_partitioned_or_sorted_by_gets_a_type_that_can_be(type_, allowed):
    part = PartitionField(source_id=1, field_id=1000, name="p", transform="identity")
    for protected, reason in (
        (Protected(historic=(PartitionSpec(fields=(part,)),)), "cannot be partitioned by"),
        (Protected(orders=(SortOrder(order_id=1, fields=(SortField(source_id=1),)),)), "sort order 1 needs it"),
    ):
        step, options = PromoteColumn(column="u", type=type_), {"schema": UNCLEAR, "protected": protected}
        if allowed:
            assert changed(step, **options).field("u").type == type_
        else:
            assert reason in refusal(step, **options)


def nest(depth: int) -> Type:
    type_: Type = INT
    for _ in range(depth):
        type_ = List(1, type_)
    return type_


def test_types_that_are_nested_too_deeply_are_refused():
    assert "nested deeper than 100" in refusal(AddColumn(name="x", type=nest(101)))
    assert "nested deeper than 100" in refusal(AddColumn(name="x", type=nest(100), parent="tags"))
    assert "nested deeper than 100" in refusal(PromoteColumn(column="l.element", type=nest(100)), schema=UNCLEAR)
    assert "x" in changed(AddColumn(name="x", type=nest(100))).by_name

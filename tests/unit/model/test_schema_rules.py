"""Which schemas a table of a format version may have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icefloe.errors import InputError
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.schema_rules import check_schema, schema_problems
from icefloe.model.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    VARIANT,
    Decimal,
    Field,
    Fixed,
    Geography,
    Geometry,
    List,
    Map,
    Struct,
)

NEW = (TIMESTAMP_NS, TIMESTAMPTZ_NS, UNKNOWN, VARIANT, Geometry(), Geography("EPSG:1", "karney"))


def of(*fields: Field, identifiers: tuple[int, ...] = ()) -> Schema:
    return Schema(fields=fields, identifier_field_ids=identifiers)


@pytest.mark.parametrize("type_", NEW, ids=str)
def test_the_types_of_version_3_are_refused_before_it_at_every_depth(type_):
    inner = Struct((Field(3, "m", Map(4, STRING, 5, type_)),))
    for schema, name in ((of(Field(1, "c", type_)), "c"), (of(Field(1, "c", List(2, inner))), "c.element.m.value")):
        check_schema(schema, 3)
        check_schema(schema, 4)
        for version in (1, 2):
            with pytest.raises(InputError, match=f"column '{name}': type .* needs format version 3, and this is"):
                check_schema(schema, version)


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (Field(1, "", LONG), "needs a name"),
        (Field(1, "s", Struct((Field(2, "", LONG),))), "needs a name"),
        (Field(2147483448, "a", LONG), "reserved"),
        (Field(0, "a", LONG), "id 0"),
        (Field(1, "a", List(2147483447 + 1, LONG)), "reserved"),
        (Field(1, "_file", STRING), "metadata column"),
        (Field(1, "a", UNKNOWN, True), "cannot be required"),
        (Field(1, "a", List(2, UNKNOWN, True)), "cannot be required"),
        (Field(1, "a", UNKNOWN, write_default=1), "can only be null"),
        (Field(1, "a", VARIANT, write_default={}), "can only be null"),
        (Field(1, "a", Geometry(), initial_default="00"), "can only be null"),
        (Field(1, "a", Geography(), write_default=False), "can only be null"),
        (Field(1, "a", INT, initial_default=2**31, write_default=1), "initial default: expected an int"),
        (Field(1, "a", INT, initial_default=1, write_default="1"), "write default: expected an int"),
        (Field(1, "a", DATE, write_default="2026-02-30"), "write default"),
        (Field(1, "a", Decimal(9, 2), write_default="1.234"), "write default"),
        (Field(1, "a", Fixed(2), write_default="00"), "write default"),
        (Field(1, "a", List(2, INT), write_default=[1, "x"]), "write default"),
        (Field(1, "s", Struct((Field(2, "a", INT, write_default=True),))), "write default"),
        (Field(1, "a", INT, True, initial_default=1), "needs a write default"),
    ],
)
def test_a_column_that_breaks_a_rule_is_refused_with_the_reason(field, reason):
    with pytest.raises(InputError, match=reason):
        check_schema(of(field), 3)


def test_defaults_are_of_version_3():
    schema = of(Field(1, "s", Struct((Field(2, "a", INT, True, initial_default=0, write_default=0),))))

    check_schema(schema, 3)
    with pytest.raises(InputError, match=r"column 's\.a': defaults need format version 3, and this is 2"):
        check_schema(schema, 2)


def test_the_largest_id_and_reserved_names_inside_a_struct_are_fine():
    check_schema(of(Field(2147483447, "a", LONG), Field(1, "s", Struct((Field(2, "_file", STRING),)))), 1)


IDENTIFIED = of(
    Field(1, "id", LONG, True),
    Field(2, "s", Struct((Field(3, "x", STRING, True),)), True),
    identifiers=(1, 3),
)


def test_required_columns_and_those_in_required_structs_identify_rows():
    check_schema(IDENTIFIED, 1)


@pytest.mark.parametrize(
    ("field", "identifier", "reason"),
    [
        (Field(1, "a", LONG), 1, "'a': .*optional"),
        (Field(1, "a", FLOAT, True), 1, "float cannot identify"),
        (Field(1, "a", DOUBLE, True), 1, "double cannot identify"),
        (Field(1, "a", Struct(()), True), 1, "only primitive"),
        (Field(1, "a", VARIANT, True), 1, "only primitive"),
        (Field(1, "a", Struct((Field(2, "b", LONG, True),))), 2, r"'a\.b': .*inside 'a', which is optional"),
        (Field(1, "a", List(2, LONG, True), True), 2, r"'a\.element': .*inside the list 'a'"),
        (Field(1, "a", Map(2, LONG, 3, LONG, True), True), 2, r"'a\.key': .*inside the map 'a'"),
        (Field(1, "a", Struct((Field(2, "b", Struct((Field(3, "c", LONG, True),)), True),))), 3, "'a', which is opt"),
    ],
)
def test_what_cannot_identify_rows_is_refused_with_the_reason(field, identifier, reason):
    with pytest.raises(InputError, match=reason):
        check_schema(of(field, identifiers=(identifier,)), 3)


def test_all_problems_are_told_to_whoever_asks_for_them():
    broken = replace(IDENTIFIED, fields=(Field(1, "id", LONG), Field(3, "v", VARIANT)), identifier_field_ids=(1,))

    assert [name for name, _ in schema_problems(broken, 2)] == ["v", "id"]
    assert list(schema_problems(IDENTIFIED, 2)) == []

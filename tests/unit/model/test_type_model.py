"""Types: spelled and read back, which version has them, and any depth without recursion."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icefloe.errors import FormatError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.schema.schema import fresh_ids
from icefloe.model.schema.types import (
    LONG,
    NAMED,
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
    children,
    fold_type,
    format_type,
    is_primitive,
    parse_type,
    since,
    walk,
    with_children,
)
from unit.model.schemas import LEAVES, nest, schemas

DEEP = 20_000


@pytest.mark.parametrize("type_", LEAVES, ids=str)
def test_every_type_that_is_not_nested_is_spelled_and_read_back(type_):
    assert parse_type(format_type(type_)) == type_
    assert is_primitive(type_) is (type_ != VARIANT)
    assert children(type_) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("decimal( 9,2 )", Decimal(9, 2)),
        ("decimal(38,0)", Decimal(38, 0)),
        ("fixed[0]", Fixed(0)),
        ("geometry(OGC:CRS84)", Geometry()),
        ("geometry( srid:4326 )", Geometry("srid:4326")),
        ("geography(OGC:CRS84)", Geography()),
        ("geography(OGC:CRS84,spherical)", Geography()),
        ("geography(srid:4326, Vincenty)", Geography("srid:4326", "vincenty")),
    ],
)
def test_other_spellings_of_one_type_are_read(text, expected):
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", " long", "text", "LONG", "int32", "struct", "list<long>", "variant()", "unknown(1)"),
        *("decimal", "decimal()", "decimal(9)", "decimal(0,0)", "decimal(39,1)", "decimal(3,4)", "decimal(-1,0)"),
        *("decimal(999,0)", "decimal(9, 2", "fixed", "fixed()", "fixed(16)", "fixed[-1]", "fixed[x]"),
        *("fixed[9999999999]", "geometry( )", "geography( , karney)", "geography(OGC:CRS84, )"),
        *("geometry()", "geometry(a, b)", "geometry(a", "geography()", "geography(a, flat)", "geography(a, b, c)"),
        *("timestamp_ns(9)", "timestamptz_us"),
    ],
)  # fmt: skip
def test_a_misspelled_type_is_a_format_error(text):
    with pytest.raises(FormatError):
        parse_type(text)


WORDS = ["decimal", "fixed", "geometry", "geography", "int", "timestamp_ns", "(", ")", "[", "]", ",", " ", "9", "2"]


@given(
    st.text("abcdefgimnoprstuy_()[], :0123456789", max_size=20)
    | st.lists(st.sampled_from(WORDS), max_size=7).map("".join)
)
@example("decimal( 9,2 )")
def test_any_text_is_a_type_or_a_format_error(text):
    try:
        parsed = parse_type(text)
    except FormatError:
        return
    assert parse_type(format_type(parsed)) == parsed


def test_the_types_of_version_3_say_so_at_every_depth():
    newer = (TIMESTAMP_NS, TIMESTAMPTZ_NS, UNKNOWN, VARIANT, Geometry(), Geography())

    assert {type_ for type_ in LEAVES if since(type_) == 3 and str(type_) in NAMED} == {*newer[:4]}
    for type_ in newer:
        assert since(type_) == 3
        assert since(List(1, Struct((Field(2, "a", LONG), Field(3, "b", Map(4, STRING, 5, type_)))))) == 3
        assert since(Map(1, type_, 2, LONG)) == 3
    assert since(Struct((Field(1, "a", List(2, Decimal(9, 2))),))) == 1
    assert since(Struct(())) == 1


@given(schemas())
def test_fields_put_back_into_a_type_make_the_same_type(schema):
    for _, field in walk(schema.fields):
        assert with_children(field.type, children(field.type)) == field.type


@given(schemas())
def test_a_fold_sees_every_type_once_and_the_inner_ones_first(schema):
    seen = []
    fold_type(Struct(schema.fields), lambda type_, inner: seen.append(type_))

    assert len(seen) == 1 + len(schema.by_id)
    assert seen[-1] == Struct(schema.fields)
    assert sorted(map(str, seen[:-1])) == sorted(str(field.type) for field in schema.by_id.values())


def test_nested_types_are_shown_with_ids_and_names():
    inner = Struct((Field(3, "a", LONG), Field(4, "b", Map(5, STRING, 6, Geometry("EPSG:1")))))

    assert str(List(2, inner)) == "list<struct<3: a: long, 4: b: map<string, geometry(EPSG:1)>>>"
    assert str(Struct(())) == "struct<>"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("around", "shown"),
    [
        (lambda inner: List(1, inner), "list<"),
        (lambda inner: Map(1, STRING, 2, inner), "map<string, "),
        (lambda inner: Struct((Field(1, "a", inner),)), "struct<1: a: "),
    ],
    ids=["list", "map", "struct"],
)
def test_a_type_of_any_depth_needs_no_recursion(around, shown):
    deep = nest(TIMESTAMP_NS, DEEP, around)

    assert str(deep) == shown * DEEP + "timestamp_ns" + ">" * DEEP
    assert since(deep) == 3
    assert fold_type(deep, lambda _, inner: 1 + max(inner, default=0)) == DEEP + 1
    assert sum(1 for _ in walk((Field(1, "a", deep),))) >= DEEP
    assert max(field.id for field in fresh_ids((Field(1, "a", deep),))) == 1
    assert arrow_type(deep).num_fields >= 1


def test_walk_gives_full_names_parents_first():
    names = [name for name, _ in walk((Field(1, "a", nest(LONG, 3)), Field(2, "b", Map(3, STRING, 4, LONG))))]

    assert names == ["a", "a.element", "a.element.element", "a.element.element.element", "b", "b.key", "b.value"]

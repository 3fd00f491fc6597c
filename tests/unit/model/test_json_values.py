"""Single values as JSON values: strict in what is read, exact in what is written."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import math
import uuid
from decimal import Decimal as Dec
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import FormatError, InputError, LimitError, UnsupportedError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.schema.json_values import value_from_json, value_to_json
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

ID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
PERSON = Struct((Field(1, "id", INT, True), Field(2, "name", STRING)))

# JSON that is read otherwise than it is written.
READ_ONLY = [
    (DOUBLE, 1, 1.0),
    (FLOAT, 0.1, 0.10000000149011612),
    (TIME, "22:31:08", dt.time(22, 31, 8)),
    (TIME, "22:31:08.5", dt.time(22, 31, 8, 500000)),
    (TIMESTAMP, "2017-11-16T22:31:08.12", dt.datetime(2017, 11, 16, 22, 31, 8, 120000)),
    (TIMESTAMPTZ, "2017-11-16T22:31:08+00:00", dt.datetime(2017, 11, 16, 22, 31, 8, tzinfo=dt.UTC)),
    (TIMESTAMP_NS, "1969-12-31T23:59:59.9", -100_000_000),
    (UUID, str(ID).upper(), ID.bytes),
    (BINARY, "00FF", b"\x00\xff"),
    (Decimal(9, -20), "2.5E+21", Dec("25E+20")),
    (Decimal(9, 2), "-0.00", Dec("0.00")),
    (PERSON, {"1": 1}, {"id": 1, "name": None}),
    (PERSON, {"1": 1, "77": "dropped since"}, {"id": 1, "name": None}),
]


@pytest.mark.parametrize(("type_", "given_", "value"), READ_ONLY, ids=[f"{t}-{g}" for t, g, _ in READ_ONLY])
def test_other_writers_forms_of_a_value_are_read(type_, given_, value):
    assert value_from_json(given_, type_) == value


REFUSED: list[tuple[Type, Any]] = [
    (BOOLEAN, 1),
    (BOOLEAN, "true"),
    (INT, True),
    (INT, 1.0),
    (INT, "1"),
    (INT, 2**31),
    (INT, -(2**31) - 1),
    (LONG, 2**63),
    (LONG, 10**5000),
    (FLOAT, True),
    (FLOAT, "1.0"),
    (FLOAT, 1e39),
    (DOUBLE, math.nan),
    (DOUBLE, -math.inf),
    (DOUBLE, 10**400),
    (DOUBLE, "NaN"),
    (Decimal(9, 2), 14.2),
    (Decimal(9, 2), "14.2"),
    (Decimal(9, 2), "14.200"),
    (Decimal(9, 2), "14"),
    (Decimal(9, 2), "1420E-2"),
    (Decimal(9, 2), "12345678.90"),
    (Decimal(9, 2), "NaN"),
    (Decimal(9, 2), " 14.20"),
    (Decimal(9, 2), "٣.20"),
    (Decimal(9, 0), "14."),
    (Decimal(9, 0), "9" * 5000),
    (Decimal(9, -20), "2"),
    (Decimal(9, -20), "2E+19"),
    (Decimal(9, -20), "2E+999999999999"),
    (DATE, "2017-11-31"),
    (DATE, "2017-1-1"),
    (DATE, "20171116"),
    (DATE, "2017-11-16T00:00:00"),
    (DATE, "0000-01-01"),
    (DATE, 17486),
    (TIME, "22:31"),
    (TIME, "24:00:00"),
    (TIME, "22:31:08.1234567"),
    (TIME, "22:31:08Z"),
    (TIMESTAMP, "2017-11-16T22:31:08.123456+00:00"),
    (TIMESTAMP, "2017-11-16T22:31:08Z"),
    (TIMESTAMP, "2017-11-16 22:31:08"),
    (TIMESTAMP, "2017-11-16T22:31:08.123456789"),
    (TIMESTAMP, "2017-11-16T22:31:60"),
    (TIMESTAMPTZ, "2017-11-16T22:31:08.123456"),
    (TIMESTAMPTZ, "2017-11-16T14:31:08.123456-08:00"),
    (TIMESTAMPTZ, "2017-11-16T22:31:08.123456Z"),
    (TIMESTAMPTZ, "2017-11-16T22:31:08.123456-00:00"),
    (TIMESTAMP_NS, "2017-11-16T22:31:08.1234567891"),
    (TIMESTAMP_NS, "2500-01-01T00:00:00"),
    (TIMESTAMPTZ_NS, "2017-11-16T22:31:08.123456789"),
    (STRING, 1),
    (STRING, "\ud800"),
    (UUID, "f79c3e09677c4bbda4793f349cb785e7"),
    (UUID, "{f79c3e09-677c-4bbd-a479-3f349cb785e7}"),
    (Fixed(4), "000102"),
    (Fixed(4), "000102ff00"),
    (BINARY, "0"),
    (BINARY, "0g"),
    (BINARY, "00 01"),
    (UNKNOWN, 0),
    (List(1, INT), {"0": 1}),
    (List(1, INT, True), [None]),
    (Map(1, STRING, 2, INT), {"a": 1}),
    (Map(1, STRING, 2, INT), {"keys": ["a"], "values": []}),
    (Map(1, STRING, 2, INT), {"keys": [None], "values": [1]}),
    (Map(1, STRING, 2, INT), {"keys": "a", "values": [1]}),
    (Map(1, STRING, 2, INT, True), {"keys": ["a"], "values": [None]}),
    (PERSON, {"id": 1}),
    (PERSON, {"2": "bar"}),
    (PERSON, {"1": None}),
    (PERSON, [1, "bar"]),
]


@pytest.mark.parametrize(
    ("type_", "value"), REFUSED, ids=[f"{t}-{str(type(v))[8:-2]}-{n}" for n, (t, v) in enumerate(REFUSED)]
)
def test_json_that_is_no_value_of_the_type_is_a_format_error_with_its_path(type_, value):
    with pytest.raises(FormatError, match=r"^fields\[3\]\.initial-default.*: ") as caught:
        value_from_json(value, type_, "fields[3].initial-default")
    assert str(caught.value.context["field"]).startswith("fields[3].initial-default")
    assert len(str(caught.value)) < 250


def test_an_error_names_the_place_inside_a_nested_value():
    type_ = List(1, Map(2, STRING, 3, Struct((Field(4, "at", TIMESTAMPTZ),))))
    value = [{"keys": ["a", "b"], "values": [{"4": None}, {"4": "2017-11-16T22:31:08"}]}]

    with pytest.raises(FormatError) as caught:
        value_from_json(value, type_, "initial-default")
    assert str(caught.value) == (
        "initial-default[0].values[1].4: expected a timestamp in UTC such as "
        "2017-11-16T22:31:08.123456+00:00, got '2017-11-16T22:31:08'"
    )


def test_null_is_a_value_of_every_type():
    for type_ in (INT, PERSON, List(1, INT), VARIANT, UNKNOWN, Geometry()):
        assert value_from_json(None, type_) is None
        assert value_to_json(None, type_) is None


@pytest.mark.parametrize("type_", [VARIANT, Geometry(), Geography()], ids=str)
def test_types_whose_only_default_is_null_have_no_json_form(type_):
    with pytest.raises(UnsupportedError, match="write-default"):
        value_from_json("POINT (1 2)", type_, "write-default")
    with pytest.raises(UnsupportedError):
        value_to_json(b"\0", type_)


def test_a_field_that_the_object_lacks_has_its_own_default():
    added = Struct((Field(1, "a", INT), Field(2, "b", INT, True, None, 5, 6)))

    assert value_from_json({"1": 1}, added) == {"a": 1, "b": 5}
    assert value_from_json({"1": 1}, added, defaults="write") == {"a": 1, "b": 6}
    assert value_from_json({"1": 1, "2": 7}, added) == {"a": 1, "b": 7}


UNWRITABLE: list[tuple[Type, Any]] = [
    (BOOLEAN, 1),
    (INT, True),
    (INT, 2**31),
    (INT, 1.0),
    (LONG, 2**63),
    (FLOAT, 1e39),
    (FLOAT, "1"),
    (Decimal(4, 2), Dec("1.005")),
    (Decimal(4, 2), Dec(100)),
    (Decimal(4, 2), Dec("Infinity")),
    (Decimal(4, 2), Dec("sNaN")),
    (Decimal(4, 2), Dec("1e999999")),
    (Decimal(4, 2), Dec("1e-999999")),
    (Decimal(4, 2), 1.5),
    (Decimal(4, -2), Dec(150)),
    (DATE, dt.datetime(2017, 11, 16)),
    (TIME, dt.time(1, tzinfo=dt.UTC)),
    (TIMESTAMP, dt.datetime(2017, 11, 16, tzinfo=dt.UTC)),
    (TIMESTAMPTZ, dt.datetime(2017, 11, 16)),
    (TIMESTAMP_NS, dt.datetime(2017, 11, 16)),
    (TIMESTAMP_NS, 2**63),
    (STRING, b"x"),
    (STRING, "\udfff"),
    (UUID, b"short"),
    (UUID, str(ID)),
    (Fixed(2), b"abc"),
    (BINARY, "00"),
    (UNKNOWN, 0),
    (List(1, INT), "12"),
    (List(1, INT, True), [None]),
    (Map(1, STRING, 2, INT), [["a", 1, 2]]),
    (Map(1, STRING, 2, INT), [(None, 1)]),
    (PERSON, {"name": "bar"}),
    (PERSON, {"id": 1, "nmae": "bar"}),
    (PERSON, (1, "bar")),
]


@pytest.mark.parametrize(("type_", "value"), UNWRITABLE, ids=[f"{t}-{v!r}"[:40] for t, v in UNWRITABLE])
def test_a_value_of_another_type_is_an_input_error(type_, value):
    with pytest.raises(InputError, match="default"):
        value_to_json(value, type_, "default")


@pytest.mark.parametrize(("value", "name"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "Infinity")])
@pytest.mark.parametrize("type_", [FLOAT, DOUBLE], ids=str)
def test_numbers_that_json_lacks_are_refused_by_name(type_, value, name):
    with pytest.raises(InputError, match=f"JSON has no number {name}"):
        value_to_json(value, type_)


def test_a_moment_with_another_offset_is_written_in_utc():
    local = dt.datetime(2017, 11, 16, 14, 31, 8, tzinfo=dt.timezone(dt.timedelta(hours=-8)))

    assert value_to_json(local, TIMESTAMPTZ) == "2017-11-16T22:31:08.000000+00:00"


def test_a_map_may_be_given_as_a_dictionary_and_a_uuid_as_one():
    assert value_to_json({"a": 1}, Map(1, STRING, 2, INT)) == {"keys": ["a"], "values": [1]}
    assert value_to_json(ID, UUID) == str(ID)


def test_the_ends_of_nanoseconds_are_values():
    for value in (-(2**63), 2**63 - 1):
        assert value_from_json(value_to_json(value, TIMESTAMP_NS), TIMESTAMP_NS) == value
    with pytest.raises(FormatError, match="1677 to 2262"):
        value_from_json("2262-04-11T23:47:16.854775808", TIMESTAMP_NS)


def deep(levels: int) -> tuple[Type, Any]:
    type_: Type = INT
    value: Any = 1
    for level in range(levels):
        type_, value = List(level, type_), [value]
    return type_, value


@pytest.mark.parametrize("levels", [100, 5_000])
def test_values_nested_too_deeply_are_a_limit_error(levels):
    type_, value = deep(levels)

    with pytest.raises(LimitError, match="nested too deeply"):
        value_from_json(value, type_)
    with pytest.raises(LimitError, match="nested too deeply"):
        value_to_json(value, type_)


def test_a_deep_value_of_a_shallow_type_is_refused_without_being_walked():
    _, value = deep(50_000)

    with pytest.raises(FormatError, match="expected an int, got a list"):
        value_from_json(value, INT)


def test_values_of_the_deepest_type_that_is_allowed_are_read():
    type_, value = deep(99)

    assert value_to_json(value_from_json(value, type_), type_) == value


def decimals(precision: int, scale: int) -> st.SearchStrategy[Dec]:
    return st.integers(1 - 10**precision, 10**precision - 1).map(lambda n: Dec(f"{n}E{-scale}"))


LEAVES: list[tuple[Type, st.SearchStrategy[Any]]] = [
    (BOOLEAN, st.booleans()),
    (INT, st.integers(-(2**31), 2**31 - 1)),
    (LONG, st.integers(-(2**63), 2**63 - 1)),
    (FLOAT, st.floats(width=32, allow_nan=False, allow_infinity=False)),
    (DOUBLE, st.floats(allow_nan=False, allow_infinity=False)),
    (DATE, st.dates()),
    (TIME, st.times()),
    (TIMESTAMP, st.datetimes()),
    (TIMESTAMPTZ, st.datetimes(timezones=st.just(dt.UTC))),
    (TIMESTAMP_NS, st.integers(-(2**63), 2**63 - 1)),
    (TIMESTAMPTZ_NS, st.integers(-(2**63), 2**63 - 1)),
    (STRING, st.text(max_size=5)),
    (UUID, st.uuids().map(lambda u: u.bytes)),
    (Fixed(3), st.binary(min_size=3, max_size=3)),
    (BINARY, st.binary(max_size=3)),
    (Decimal(9, 2), decimals(9, 2)),
    (Decimal(38, 38), decimals(38, 38)),
    (Decimal(38, 0), decimals(38, 0)),
    (UNKNOWN, st.none()),
]


@st.composite
def typed_values(draw: st.DrawFn, depth: int = 3) -> tuple[Type, Any]:
    """A type of some depth and one of its values; ids need not differ, for only those of one struct matter."""
    kind = draw(st.sampled_from(["leaf", "struct", "list", "map"] if depth > 0 else ["leaf"]))
    if kind == "leaf":
        type_, values = draw(st.sampled_from(LEAVES))
        return type_, draw(values)
    inner = [draw(typed_values(depth - 1)) for _ in range(draw(st.integers(1, 3)))]
    if kind == "struct":
        fields = tuple(Field(i, f"f{i}", t) for i, (t, _) in enumerate(inner))
        return Struct(fields), {f"f{i}": draw(st.sampled_from([v, None])) for i, (_, v) in enumerate(inner)}
    type_, value = inner[0]
    if kind == "list":
        return List(9, type_), draw(st.lists(st.sampled_from([value, None]), max_size=3))
    return Map(8, STRING, 9, type_), [
        (key, value) for key in draw(st.lists(st.text(max_size=2), max_size=3, unique=True))
    ]


@given(typed_values())
def test_a_value_survives_json_text(typed):
    type_, value = typed

    text = json.dumps(value_to_json(value, type_), allow_nan=False)

    assert value_from_json(json.loads(text), type_) == value


@given(typed_values())
def test_what_is_read_is_what_arrow_takes(typed):
    type_, value = typed

    read = value_from_json(value_to_json(value, type_), type_)

    assert pa.array([read], arrow_type(type_)).validate(full=True) is None


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["1", "2", "keys", "values"]), inner),
    max_leaves=8,
)


@given(typed_values(), JUNK)
def test_any_json_is_a_value_or_a_format_error(typed, junk):
    type_, _ = typed

    with contextlib.suppress(FormatError):
        value = value_from_json(junk, type_)
        assert value_from_json(value_to_json(value, type_), type_) == value

"""Every rule and example of Appendix D: single values as bytes and as JSON."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal as Dec

import pyarrow as pa
import pytest

from icefloe.codecs.value.bounds import encode_bounds
from icefloe.errors import FormatError, InputError
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
    UUID,
    Decimal,
    Field,
    Fixed,
    List,
    Map,
    Struct,
)
from support.single_values import decode_value, encode_value

SOME_UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes
NAIVE = dt.datetime(2017, 11, 16, 22, 31, 8, 123456)
MOMENT = NAIVE.replace(tzinfo=dt.UTC)
MICROS = 1_510_871_468_123_456
PAIR = Struct((Field(1, "number", INT), Field(2, "text", STRING)))

BINARY_RULES = [
    ("0x00 for false", BOOLEAN, False, b"\x00"),
    ("non-zero byte for true", BOOLEAN, True, b"\x01"),
    ("4-byte little-endian int", INT, 34, b"\x22\0\0\0"),
    ("8-byte little-endian long", LONG, 34, b"\x22" + bytes(7)),
    ("4-byte little-endian float", FLOAT, 1.0, b"\0\0\x80\x3f"),
    ("8-byte little-endian double", DOUBLE, 1.0, bytes(6) + b"\xf0\x3f"),
    ("days from 1970-01-01", DATE, dt.date(2017, 11, 16), (17486).to_bytes(4, "little")),
    ("microseconds from midnight", TIME, dt.time(22, 31, 8, 123456), (81_068_123_456).to_bytes(8, "little")),
    ("microseconds from 1970-01-01", TIMESTAMP, NAIVE, MICROS.to_bytes(8, "little")),
    ("microseconds from 1970-01-01 UTC", TIMESTAMPTZ, MOMENT, MICROS.to_bytes(8, "little")),
    ("nanoseconds from 1970-01-01", TIMESTAMP_NS, MICROS * 1000 + 789, (MICROS * 1000 + 789).to_bytes(8, "little")),
    ("nanoseconds from 1970-01-01 UTC", TIMESTAMPTZ_NS, -1, b"\xff" * 8),
    ("UTF-8 bytes without length", STRING, "iceberg", b"iceberg"),
    ("16-byte big-endian uuid", UUID, SOME_UUID, bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7")),
    ("fixed binary value", Fixed(4), b"\0\1\2\xff", b"\0\1\2\xff"),
    ("binary value without length", BINARY, b"\0\1\2\xff", b"\0\1\2\xff"),
    ("unscaled big-endian two's complement", Decimal(9, 2), Dec("14.20"), b"\x05\x8c"),
    ("the minimum number of bytes", Decimal(38, 2), Dec("-1.28"), b"\x80"),
]


@pytest.mark.parametrize(
    ("type_", "value", "data"), [row[1:] for row in BINARY_RULES], ids=[r[0] for r in BINARY_RULES]
)
def test_a_value_has_the_bytes_of_the_table(type_, value, data):
    assert encode_value(value, type_) == data
    assert decode_value(data, type_) == value


def test_any_byte_but_zero_is_true():
    assert [decode_value(bytes([byte]), BOOLEAN) for byte in (0, 1, 2, 128, 255)] == [False, True, True, True, True]


@pytest.mark.parametrize("type_", [PAIR, List(3, INT), Map(4, STRING, 5, INT)], ids=["struct", "list", "map"])
def test_nested_types_have_no_bytes(type_):
    with pytest.raises(InputError):
        encode_bounds(pa.nulls(1, arrow_type(type_)), type_)
    with pytest.raises(FormatError):
        decode_value(b"", type_)


JSON_EXAMPLES = [
    (BOOLEAN, "true", True),
    (INT, "34", 34),
    (LONG, "34", 34),
    (FLOAT, "1.0", 1.0),
    (DOUBLE, "1.0", 1.0),
    (Decimal(9, 2), '"14.20"', Dec("14.20")),
    (Decimal(9, -20), '"2E+20"', Dec("2E+20")),
    (DATE, '"2017-11-16"', dt.date(2017, 11, 16)),
    (TIME, '"22:31:08.123456"', dt.time(22, 31, 8, 123456)),
    (TIMESTAMP, '"2017-11-16T22:31:08.123456"', NAIVE),
    (TIMESTAMPTZ, '"2017-11-16T22:31:08.123456+00:00"', MOMENT),
    (TIMESTAMP_NS, '"2017-11-16T22:31:08.123456789"', MICROS * 1000 + 789),
    (TIMESTAMPTZ_NS, '"2017-11-16T22:31:08.123456789+00:00"', MICROS * 1000 + 789),
    (STRING, '"iceberg"', "iceberg"),
    (UUID, '"f79c3e09-677c-4bbd-a479-3f349cb785e7"', SOME_UUID),
    (Fixed(4), '"000102ff"', b"\0\1\2\xff"),
    (BINARY, '"000102ff"', b"\0\1\2\xff"),
    (PAIR, '{"1": 1, "2": "bar"}', {"number": 1, "text": "bar"}),
    (List(3, INT), "[1, 2, 3]", [1, 2, 3]),
    (Map(4, STRING, 5, INT), '{"keys": ["a", "b"], "values": [1, 2]}', [("a", 1), ("b", 2)]),
]


@pytest.mark.parametrize(("type_", "text", "value"), JSON_EXAMPLES, ids=[f"{t}" for t, _, _ in JSON_EXAMPLES])
def test_a_value_has_the_json_of_the_table(type_, text, value):
    assert value_from_json(json.loads(text), type_) == value
    assert json.dumps(value_to_json(value, type_)) == text

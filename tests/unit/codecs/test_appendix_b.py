"""Every test value of Appendix B: what the bucket transform hashes, and the hashes of types it does not take yet."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal as Dec

import numpy as np
import pyarrow as pa
import pytest

from icefloe.errors import InputError
from icefloe.model.arrow.conform import arrow_type
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
    Fixed,
)
from icefloe.transforms import parse_transform
from icefloe.transforms.murmur3 import hash_binary, hash_integers
from support.single_values import encode_value

WEST = dt.timezone(dt.timedelta(hours=-8))
SOME_UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")

VALUES = [
    (INT, 34, 2017239379),
    (LONG, 34, 2017239379),
    (Decimal(9, 2), Dec("14.20"), -500754589),
    (DATE, dt.date(2017, 11, 16), -653330422),
    (TIME, dt.time(22, 31, 8), -662762989),
    (TIMESTAMP, dt.datetime(2017, 11, 16, 22, 31, 8), -2047944441),
    (TIMESTAMPTZ, dt.datetime(2017, 11, 16, 14, 31, 8, tzinfo=WEST), -2047944441),
    (TIMESTAMP_NS, 1_510_871_468_000_000_000, -2047944441),
    (TIMESTAMPTZ_NS, 1_510_871_468_000_000_001, -2047944441),
    (STRING, "iceberg", 1210000089),
    (UUID, SOME_UUID, 1488055340),
    (Fixed(4), b"\x00\x01\x02\x03", -188683207),
    (BINARY, b"\x00\x01\x02\x03", -188683207),
]


@pytest.mark.parametrize("buckets", [1, 2, 16, 1000, 2**31 - 1])
@pytest.mark.parametrize(("type_", "value", "hashed"), VALUES, ids=[str(t) for t, _, _ in VALUES])
def test_the_bucket_of_a_test_value_is_that_of_its_hash(type_, value, hashed, buckets):
    bucket = parse_transform(f"bucket[{buckets}]")
    stored = value.bytes if isinstance(value, uuid.UUID) else value

    assert bucket.value(value, type_) == (hashed & 0x7FFFFFFF) % buckets
    assert bucket.apply(pa.array([None, stored], arrow_type(type_)), type_).to_pylist()[1] == bucket.value(value, type_)


def test_a_uuid_is_hashed_as_the_bytes_of_the_specification():
    data = bytes.fromhex("F7 9C 3E 09 67 7C 4B BD A4 79 3F 34 9C B7 85 E7")

    assert encode_value(SOME_UUID.bytes, UUID) == data
    assert hash_binary(pa.array([data])).tolist() == [1488055340]


def test_the_hash_of_a_decimal_does_not_depend_on_its_scale():
    bucket = parse_transform("bucket[1000]")

    assert bucket.value(Dec(1420), Decimal(9, 0)) == bucket.value(Dec("14.20"), Decimal(9, 2))


def double_bits(value: float) -> int:
    """The bits of a double, with one NaN and one zero."""
    canonical = float("nan") if value != value else value + 0.0
    return int(np.array([canonical], np.float64).view(np.int64)[0])


NOT_YET = [
    (BOOLEAN, True, 1, 1392991556),
    (FLOAT, 1.0, double_bits(1.0), -142385009),
    (FLOAT, 0.0, double_bits(0.0), 1669671676),
    (FLOAT, -0.0, double_bits(-0.0), 1669671676),
    (DOUBLE, 1.0, double_bits(1.0), -142385009),
    (DOUBLE, 0.0, double_bits(0.0), 1669671676),
    (DOUBLE, -0.0, double_bits(-0.0), 1669671676),
]


@pytest.mark.parametrize(("type_", "value", "number", "hashed"), NOT_YET, ids=[f"{t}-{v}" for t, v, _, _ in NOT_YET])
def test_types_not_valid_for_bucketing_are_refused_though_their_hash_is_known(type_, value, number, hashed):
    assert hash_integers(np.array([number], np.int64)).tolist() == [hashed]
    with pytest.raises(InputError):
        parse_transform("bucket[16]").value(value, type_)


def test_every_nan_has_the_same_bits():
    other = np.array([0x7FF8000000000001], np.int64).view(np.float64)[0]

    assert double_bits(float(other)) == double_bits(float("nan")) == 0x7FF8000000000000

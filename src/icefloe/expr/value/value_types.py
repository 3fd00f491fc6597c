"""Types of SQL values on Arrow: the common type of several values, and casts that lose nothing silently.

The rules are Spark's with one exception: integers are computed as longs, so a sum fails only where it does not fit the
column it is written to. A constant takes the type of the value it is compared with: ``day > '2026-01-01'`` compares
dates.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expr.text.datetime_text import Nanos

BOOLEAN, INTEGER, DECIMAL, FLOAT = "boolean", "integer", "decimal", "floating-point number"
TEXT, BYTES, DATE, TIME, TIMESTAMP, NULL, OTHER = "text", "bytes", "date", "time", "timestamp", "null", "nested"
NUMBERS = frozenset({INTEGER, DECIMAL, FLOAT})
MAX_DIGITS = 38
WIDE_DIGITS = 76
WORKING_DIGITS = 37  # the product of two such decimals fits the 76 digits of Arrow's decimal256
_LEAST_SCALE = 6
_UUID_BYTES = 16
_HALF_UP = "half_towards_infinity"
_TESTS: tuple[tuple[str, Any], ...] = (
    (NULL, pa.types.is_null),
    (BOOLEAN, pa.types.is_boolean),
    (INTEGER, pa.types.is_integer),
    (DECIMAL, pa.types.is_decimal),
    (FLOAT, pa.types.is_floating),
    (TEXT, lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t)),
    (BYTES, lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_binary_view(t)),
    (BYTES, pa.types.is_fixed_size_binary),
    (DATE, pa.types.is_date),
    (TIME, pa.types.is_time),
    (TIMESTAMP, pa.types.is_timestamp),
)


def kind_of(type_: pa.DataType) -> str:
    """The kind of a type, as messages name it.

    >>> kind_of(pa.int8()), kind_of(pa.large_string())
    ('integer', 'text')
    """
    return next((kind for kind, test in _TESTS if test(type_)), OTHER)


def common_type(types: Sequence[pa.DataType], constant: Sequence[bool]) -> pa.DataType:
    """The type in which values of these types are compared or stored in one column; ValueError if there is none.

    ``constant`` says which of the values are constants.

    >>> common_type([pa.int32(), pa.decimal128(5, 2)], [False, False])
    Decimal128Type(decimal128(12, 2))
    """
    known = [(type_, fixed) for type_, fixed in zip(types, constant, strict=True) if not pa.types.is_null(type_)]
    if len(known) == 0:
        return pa.null()
    if any(not fixed and kind_of(type_) != TEXT for type_, fixed in known):
        known = [(type_, fixed) for type_, fixed in known if not (fixed and kind_of(type_) == TEXT)]
    distinct = list(dict.fromkeys(type_ for type_, _ in known))
    if len(distinct) == 1:
        return distinct[0]
    kinds = {kind_of(type_) for type_ in distinct}
    if kinds <= NUMBERS:
        return _common_number(known, kinds)
    if kinds == {TEXT}:
        return pa.large_string()
    if kinds == {BYTES}:
        return pa.large_binary() if any(pa.types.is_large_binary(type_) for type_ in distinct) else pa.binary()
    if kinds == {DATE}:
        return pa.date32()
    if kinds == {TIME}:
        return pa.time64("ns" if any(type_.unit == "ns" for type_ in distinct) else "us")
    if kinds <= {DATE, TIMESTAMP}:
        return _common_timestamp(distinct)
    raise ValueError(f"{distinct[0]} and {distinct[1]} have no common type; cast one of them")


def _common_number(known: list[tuple[pa.DataType, bool]], kinds: set[str]) -> pa.DataType:
    if FLOAT in kinds:
        columns = [type_ for type_, fixed in known if not fixed]
        is_single = len(columns) > 0 and all(type_ == pa.float32() for type_ in columns)
        return pa.float32() if is_single else pa.float64()  # a constant never widens a float column
    if kinds == {INTEGER}:
        return pa.int64()
    decimals = [as_decimal_type(type_) for type_, _ in known]
    scale = max(type_.scale for type_ in decimals)
    return decimal_type(max(type_.precision - type_.scale for type_ in decimals) + scale, scale)


def _common_timestamp(types: list[pa.DataType]) -> pa.DataType:
    timestamps = [type_ for type_ in types if pa.types.is_timestamp(type_)]
    zoned = [type_.tz is not None for type_ in timestamps]
    if any(zoned) and (not all(zoned) or len(timestamps) < len(types)):
        raise ValueError("a timestamp with a time zone and a date or timestamp without one do not compare; cast one")
    return pa.timestamp(
        "ns" if any(type_.unit == "ns" for type_ in timestamps) else "us", "UTC" if all(zoned) else None
    )


def decimal_type(digits: int, scale: int) -> pa.DataType:
    """A decimal type: decimal128 if the digits fit, else decimal256; ValueError if they fit neither."""
    if digits > WIDE_DIGITS:
        raise ValueError(f"decimals of {digits} digits exceed the limit of {WIDE_DIGITS}")
    return pa.decimal128(max(digits, 1), scale) if digits <= MAX_DIGITS else pa.decimal256(digits, scale)


def constant_scalar(value: object) -> Any:
    """The Arrow scalar of a constant as filters parse it."""
    match value:
        case bool() | str() | None | bytes():
            return pa.scalar(value)
        case int() if -(2**63) <= value < 2**63:
            return pa.scalar(value, pa.int64())
        case int():
            return pa.scalar(decimal.Decimal(value), decimal_type(len(str(abs(value))), 0))
        case float():
            return pa.scalar(value, pa.float64())
        case decimal.Decimal():
            return _decimal_scalar(value)
        case dt.datetime():
            return pa.scalar(value, pa.timestamp("us", None if value.tzinfo is None else "UTC"))
        case Nanos():
            return pa.scalar(value.count, pa.timestamp("ns", "UTC" if value.utc else None))
        case uuid.UUID():
            return pa.scalar(value.bytes, pa.binary(16))
        case _:
            return pa.scalar(value)  # dates and times


def _decimal_scalar(value: decimal.Decimal) -> Any:
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    return pa.scalar(value, decimal_type(max(len(digits) + max(0, int(exponent)), scale), scale))


def as_decimal_type(type_: pa.DataType) -> pa.DataType:
    """The decimal type that holds every number of an integer type; a decimal type is returned unchanged."""
    if pa.types.is_decimal(type_):
        return type_
    return pa.decimal128(10 if type_.bit_width <= 32 else 20 if type_ == pa.uint64() else 19, 0)


def convert(value: Any, type_: pa.DataType) -> Any:
    """An array or scalar in a type that ``common_type`` chose; ValueError if a text is no value of the type."""
    if value.type == type_:
        return value
    if kind_of(value.type) == TEXT and kind_of(type_) == BYTES:
        if type_ != pa.binary(_UUID_BYTES):
            raise ValueError("text and bytes do not compare; write bytes as X'00ff'")
        return pa.scalar(None if value.as_py() is None else uuid.UUID(value.as_py()).bytes, type_)
    if pa.types.is_decimal(type_) and kind_of(value.type) == INTEGER:
        value = pc.cast(value, as_decimal_type(value.type))
    if pa.types.is_floating(type_) and kind_of(value.type) in NUMBERS:
        return pc.cast(value, type_, safe=False)  # rounds to the nearest float
    return pc.cast(value, type_)


def cast_value(value: Any, type_: pa.DataType) -> Any:
    """The result of CAST; ValueError for types that cannot be cast and for values that do not fit.

    A cast to an integer truncates, a cast to a decimal rounds half away from zero.
    """
    source, target = kind_of(value.type), kind_of(type_)
    if value.type == type_ or source == NULL:
        return pc.cast(value, type_)
    if source == TEXT and target not in (TEXT, BYTES):
        value = pc.utf8_trim_whitespace(value)
    if target == INTEGER and source in (FLOAT, DECIMAL):
        return pc.cast(pc.trunc(_one_digit_wider(value)), type_)
    if target == INTEGER and source == TEXT:
        return pc.cast(value, type_)
    if target == DECIMAL:
        return _cast_decimal(value, source, type_)
    if target == TEXT and source == TIMESTAMP:
        return _timestamp_text(value, type_)
    if target == TEXT and source == DECIMAL and value.type.scale > 0:
        return _decimal_text(value, type_)
    if target == TEXT and source == BOOLEAN:
        return pc.if_else(value, pa.scalar("true", type_), pa.scalar("false", type_))
    if target == TEXT and source == FLOAT:
        return pc.cast(
            pc.replace_substring_regex(pc.cast(value, pa.string()), pattern=r"^(-?\d+)$", replacement=r"\1.0"), type_
        )
    if target == FLOAT and source == FLOAT:
        return pc.cast(value, type_, safe=False)
    if target == DATE and source == TIMESTAMP:
        return pc.cast(pc.floor_temporal(value, unit="day"), type_, safe=False)
    if (source, target) in _REFUSED_CASTS:
        raise ValueError(f"{value.type} cannot be cast to {type_}")
    return pc.cast(value, type_)


_REFUSED_CASTS = frozenset(
    {
        (INTEGER, TIMESTAMP),
        (INTEGER, DATE),
        (INTEGER, TIME),
        (DATE, INTEGER),
        (TIMESTAMP, INTEGER),
        (TIME, INTEGER),
        (TIMESTAMP, TIME),
    }
)


def _cast_decimal(value: Any, source: str, type_: pa.DataType) -> Any:
    if source == TEXT:
        value = pc.cast(value, pa.decimal256(WIDE_DIGITS, MAX_DIGITS))
    elif source == BOOLEAN:
        value = pc.cast(pc.cast(value, pa.int64()), pa.decimal128(19, 0))
    elif source == INTEGER:
        value = pc.cast(value, as_decimal_type(value.type))
    return round_decimal(value, type_) if pa.types.is_decimal(value.type) else pc.cast(value, type_)


def round_decimal(value: Any, type_: pa.DataType) -> Any:
    """Decimals in another type; digits beyond its scale are rounded half away from zero."""
    if value.type.scale > type_.scale:
        value = pc.round(_one_digit_wider(value), ndigits=type_.scale, round_mode=_HALF_UP)
    return pc.cast(value, type_)


def _one_digit_wider(value: Any) -> Any:
    """Decimals in a type with one digit more, which rounding up may need; other numbers unchanged."""
    if not pa.types.is_decimal(value.type):
        return value
    digits = min(value.type.precision + 1, WIDE_DIGITS)
    return pc.cast(value, pa.decimal256(digits, value.type.scale))


def _timestamp_text(value: Any, type_: pa.DataType) -> Any:
    """Timestamps as text, without trailing zeros in the fraction."""
    text = pc.cast(value, pa.string())
    text = pc.replace_substring_regex(text, pattern=r"\.(\d*?)0+(Z?)$", replacement=r".\1\2")
    return pc.cast(pc.replace_substring_regex(text, pattern=r"\.(Z?)$", replacement=r"\1"), type_)


def _decimal_text(value: Any, type_: pa.DataType) -> Any:
    """Decimals with a fraction as text with all their digits; Arrow would write small ones with an exponent."""
    if isinstance(value, pa.Scalar):
        return _decimal_text(pa.repeat(value, 1), type_)[0]
    precision, scale = value.type.precision, value.type.scale
    is_wide = pa.types.is_decimal256(value.type)
    unscaled = value.view(pa.decimal256(precision, 0) if is_wide else pa.decimal128(precision, 0))
    digits = pc.utf8_lpad(pc.utf8_ltrim(pc.cast(unscaled, pa.string()), characters="-"), scale + 1, padding="0")
    text = pc.replace_substring_regex(digits, pattern=rf"(\d{{{scale}}})$", replacement=r".\1")
    sign = pc.if_else(pc.less(unscaled, pa.scalar(0, unscaled.type)), "-", "")
    return pc.cast(pc.binary_join_element_wise(sign, text, ""), type_)


def working_decimal(value: Any) -> Any:
    """Numbers as decimals that Arrow can add, multiply and divide without exceeding its 76 digits."""
    if not pa.types.is_decimal(value.type):
        value = pc.cast(value, as_decimal_type(value.type))
    precision, scale = value.type.precision, value.type.scale
    return pc.cast(value, pa.decimal256(max(min(precision, WORKING_DIGITS), scale), scale))


def limited_decimal(value: Any) -> Any:
    """A result within 38 digits: integral digits are kept, then as many fractional digits as fit (Spark's rule)."""
    precision, scale = value.type.precision, value.type.scale
    if precision > MAX_DIGITS:
        scale = max(MAX_DIGITS - (precision - scale), min(scale, _LEAST_SCALE))
        precision = MAX_DIGITS
    return round_decimal(value, pa.decimal128(precision, scale))

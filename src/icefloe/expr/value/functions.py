"""Functions and operators of SQL values, computed with Arrow kernels.

Nulls follow SQL: an operation on null is null. NaN equals NaN and is larger than every other number, as in Spark and
in filters. A division by zero and an overflow are errors, never a null or a wrong number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expr.value.value_types import (
    BYTES,
    DATE,
    DECIMAL,
    FLOAT,
    INTEGER,
    MAX_DIGITS,
    NULL,
    NUMBERS,
    TEXT,
    TIMESTAMP,
    WIDE_DIGITS,
    cast_value,
    kind_of,
    limited_decimal,
    round_decimal,
    working_decimal,
)

_HALF_UP = "half_towards_infinity"
_LEAST_SCALE = 6


@dataclass(frozen=True, slots=True)
class Function:
    """Computes a function from its arguments, followed by the options of its call.

    ``common_type``: the arguments are converted to their common type first. ``common_float``: they are if one of them
    is a floating-point number. ``never_fails``: no value of the arguments is an error.
    """

    compute: Callable[..., Any]
    common_type: bool = False
    common_float: bool = False
    never_fails: bool = False


def _is_float(*values: Any) -> bool:
    return any(kind_of(value.type) == FLOAT for value in values)


def _has_nan(*values: Any) -> bool:
    return _is_float(*values) and any(pc.any(pc.is_nan(value)).as_py() is True for value in map(_array, values))


def _array(value: Any, rows: int = 1) -> Any:
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value


def _equal(left: Any, right: Any) -> Any:
    same = pc.equal(left, right)
    return pc.or_(same, pc.and_(pc.is_nan(left), pc.is_nan(right))) if _has_nan(left, right) else same


def _less(left: Any, right: Any) -> Any:
    if not _has_nan(left, right):
        return pc.less(left, right)
    return pc.or_(pc.less(left, right), pc.and_(pc.is_nan(right), pc.invert(pc.is_nan(left))))


def _same(left: Any, right: Any) -> Any:
    """Equality that treats null as a value like others."""
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(pc.fill_null(_equal(left, right), False), both)


def _comparison(compare: Callable[[Any, Any], Any]) -> Function:
    def compute(left: Any, right: Any) -> Any:
        if kind_of(left.type) == NULL:
            return pc.cast(left if isinstance(right, pa.Scalar) else pc.equal(left, right), pa.bool_())
        return compare(left, right)

    return Function(compute, common_type=True, never_fails=True)


def _in(value: Any, *items: Any) -> Any:
    """Membership; if the list holds a null, the result is true or null."""
    if kind_of(value.type) == NULL:
        return pc.cast(value, pa.bool_())
    if not all(isinstance(item, pa.Scalar) for item in items):
        result = _equal(value, items[0])
        for item in items[1:]:
            result = pc.or_kleene(result, _equal(value, item))
        return result
    if _is_float(value):
        value = pc.add(value, pa.scalar(0.0, value.type))  # -0.0 becomes 0.0
    known = [item.as_py() if not _is_float(value) else item.as_py() + 0.0 for item in items if item.is_valid]
    result = pc.is_in(value, value_set=pa.array(known, value.type))
    if len(known) < len(items):
        result = pc.if_else(result, result, pa.scalar(None, pa.bool_()))
    return pc.if_else(pc.is_valid(value), result, pa.scalar(None, pa.bool_()))


def _numbers(*values: Any) -> str:
    """The kind in which numbers are computed; ValueError for other values."""
    kinds = {kind_of(value.type) for value in values} - {NULL}
    if not kinds <= NUMBERS:
        other = next(str(value.type) for value in values if kind_of(value.type) not in NUMBERS)
        raise ValueError(f"{other} is not a number")
    return FLOAT if FLOAT in kinds else DECIMAL if DECIMAL in kinds else INTEGER


def _as_kind(value: Any, kind: str) -> Any:
    if kind == FLOAT:
        return value if kind_of(value.type) == FLOAT else pc.cast(value, pa.float64())
    if kind_of(value.type) == NULL:
        return pc.cast(value, pa.int64() if kind == INTEGER else pa.decimal128(1, 0))
    return pc.cast(value, pa.int64()) if kind == INTEGER else working_decimal(value)


def _arithmetic(compute: Callable[[Any, Any], Any]) -> Function:
    def computed(left: Any, right: Any) -> Any:
        kind = _numbers(left, right)
        left, right = (_as_kind(value, kind) for value in (left, right))
        if kind == DECIMAL:
            left, right = working_decimal(left), working_decimal(right)
        result = compute(left, right)
        return limited_decimal(result) if pa.types.is_decimal(result.type) else result

    return Function(computed, common_float=True)


def _divide(left: Any, right: Any) -> Any:
    _check_divisor(right)
    if kind_of(left.type) == INTEGER:
        left, right = pc.cast(left, pa.float64(), safe=False), pc.cast(right, pa.float64(), safe=False)
    if kind_of(left.type) != DECIMAL:
        return pc.divide(left, right)
    missing = max(0, _LEAST_SCALE - (left.type.scale + right.type.precision - right.type.scale + 1))
    # Arrow truncates a quotient: one digit more than the result has is rounded, unless no type has that many digits.
    extra = 1 if left.type.precision + right.type.precision + missing + 2 <= WIDE_DIGITS else 0
    digits = missing + extra
    quotient = pc.divide(pc.cast(left, pa.decimal256(left.type.precision + digits, left.type.scale + digits)), right)
    return round_decimal(quotient, pa.decimal256(quotient.type.precision - extra, quotient.type.scale - extra))


def _check_divisor(divisor: Any) -> None:
    zero = pa.scalar(0, divisor.type)
    if pc.any(_array(pc.equal(divisor, zero))).as_py() is True:
        raise ValueError("division by zero")


def _integer_divide(left: Any, right: Any) -> Any:
    _check_divisor(right)
    if kind_of(left.type) == INTEGER:
        return pc.divide_checked(left, right)
    return cast_value(pc.trunc(pc.divide(left, right)), pa.int64())


def _modulo(left: Any, right: Any) -> Any:
    """The remainder of a division, with the sign of the dividend."""
    _check_divisor(right)
    if kind_of(left.type) == DECIMAL:
        whole = working_decimal(pc.trunc(pc.divide(left, right)))
        taken = limited_decimal(pc.multiply(whole, right))
        return pc.subtract(left, pc.cast(taken, pa.decimal256(MAX_DIGITS, taken.type.scale)))
    rows = max(len(value) if not isinstance(value, pa.Scalar) else 1 for value in (left, right))
    first, second = (_array(value, rows) for value in (left, right))
    valid = pc.and_(pc.is_valid(first), pc.is_valid(second))
    filled = [np.asarray(pc.fill_null(value, pa.scalar(1).cast(value.type))) for value in (first, second)]
    result = pa.array(np.fmod(filled[0], filled[1]), mask=np.asarray(pc.invert(valid)))
    return result[0] if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar) else result


def _power(left: Any, right: Any) -> Any:
    _numbers(left, right)
    return pc.power(_double(left), _double(right))


def _double(value: Any) -> Any:
    return pc.cast(value, pa.float64(), safe=False)


def _unary(compute: Callable[[Any], Any]) -> Function:
    def computed(value: Any) -> Any:
        return compute(_as_kind(value, _numbers(value)) if kind_of(value.type) in (NULL, INTEGER) else value)

    return Function(computed)


def _to_integer(rounded: Callable[[Any], Any]) -> Function:
    """Rounding to integers: decimals stay decimals, other numbers become longs."""

    def computed(value: Any) -> Any:
        kind = _numbers(value)
        if kind == INTEGER:
            return _as_kind(value, kind)
        if kind == FLOAT:
            return pc.cast(rounded(value), pa.int64())
        digits, scale = value.type.precision + 1, value.type.scale
        return limited_decimal(pc.cast(rounded(pc.cast(value, pa.decimal256(digits, scale))), pa.decimal256(digits, 0)))

    return Function(computed)


def _round(value: Any, digits: int) -> Any:
    kind = _numbers(value)
    if kind == DECIMAL:
        type_ = value.type
        scale = max(0, min(type_.scale, digits))
        wide = pc.cast(value, pa.decimal256(min(76, type_.precision + 1), type_.scale))
        rounded = pc.round(wide, ndigits=digits, round_mode=_HALF_UP)
        return limited_decimal(round_decimal(rounded, pa.decimal256(wide.type.precision, scale)))
    return pc.round(_as_kind(value, kind), ndigits=digits, round_mode=_HALF_UP)


def _extreme(pick: Callable[..., Any], nan_wins: bool) -> Function:
    def computed(*values: Any) -> Any:
        result = pick(*values, skip_nulls=True)
        if not _has_nan(*values):
            return result
        nans = [pc.fill_null(pc.is_nan(value), not nan_wins) for value in values]
        is_nan = nans[0]
        for other in nans[1:]:
            is_nan = pc.or_(is_nan, other) if nan_wins else pc.and_(is_nan, other)
        return pc.if_else(pc.and_(is_nan, pc.is_valid(result)), pa.scalar(float("nan"), result.type), result)

    return Function(computed, common_type=True, never_fails=True)


def _text(value: Any) -> Any:
    """The text unchanged; ValueError for other values."""
    if kind_of(value.type) == NULL:
        return pc.cast(value, pa.string())
    if kind_of(value.type) != TEXT:
        raise ValueError(f"{value.type} is not text; cast it")
    return pc.cast(value, pa.string()) if pa.types.is_string_view(value.type) else value


def _on_text(compute: Callable[..., Any]) -> Function:
    return Function(lambda value, *options: compute(_text(value), *options))


def _length(value: Any) -> Any:
    result = pc.binary_length(value) if kind_of(value.type) == BYTES else pc.utf8_length(_text(value))
    return pc.cast(result, pa.int64())


def _substring(value: Any, start: int, length: int | None) -> Any:
    first = start - 1 if start > 0 else start
    if length is not None and length <= 0:
        return pc.utf8_slice_codeunits(value, start=0, stop=0)
    stop = None if length is None else first + length
    if stop is not None and first < 0 <= stop:
        stop = None
    return pc.utf8_slice_codeunits(value, start=first, stop=stop)


def _replace(value: Any, old: str, new: str) -> Any:
    return value if old == "" else pc.replace_substring(value, pattern=old, replacement=new)


def _concat(*values: Any) -> Any:
    texts = [cast_value(value, pa.string()) for value in values]
    return pc.binary_join_element_wise(*texts, "", null_handling="emit_null")


def _text_test(compute: Callable[..., Any]) -> Function:
    """A test of a text for a constant text, which is null for null."""

    def computed(value: Any, searched: str | None) -> Any:
        if searched is None:
            return pc.cast(pc.if_else(pc.is_valid(value), None, None), pa.bool_())
        return compute(_text(value), pattern=searched)

    return Function(computed)


def _date_or_timestamp(value: Any, *, needs_time: bool) -> Any:
    """The value unchanged; ValueError if it is no date or timestamp, or a date where the time of day is needed."""
    kind = kind_of(value.type)
    if kind == NULL:
        return pc.cast(value, pa.timestamp("us"))
    if kind != TIMESTAMP and (needs_time or kind != DATE):
        raise ValueError(f"{value.type} is not a {'timestamp' if needs_time else 'date or timestamp'}; cast it")
    return value


def _field_of_time(compute: Callable[[Any], Any], *, needs_time: bool = False) -> Function:
    return Function(lambda value: pc.cast(compute(_date_or_timestamp(value, needs_time=needs_time)), pa.int64()))


def _date_trunc(value: Any, unit: str) -> Any:
    needs_time = unit in ("hour", "minute", "second", "millisecond", "microsecond")
    return pc.floor_temporal(_date_or_timestamp(value, needs_time=needs_time), unit=unit)


def _like(value: Any, pattern: str, any_case: bool) -> Any:
    return pc.match_like(value, pattern, ignore_case=any_case)


def _not(value: Any) -> Any:
    return pc.invert(as_boolean(value))


def as_boolean(value: Any) -> Any:
    """A condition as booleans; ValueError for other values."""
    if kind_of(value.type) == NULL:
        return pc.cast(value, pa.bool_())
    if not pa.types.is_boolean(value.type):
        raise ValueError(f"{value.type} is not a condition")
    return value


FUNCTIONS: dict[str, Function] = {
    "=": _comparison(_equal),
    "!=": _comparison(lambda left, right: pc.invert(_equal(left, right))),
    "<": _comparison(_less),
    ">": _comparison(lambda left, right: _less(right, left)),
    "<=": _comparison(lambda left, right: pc.invert(_less(right, left))),
    ">=": _comparison(lambda left, right: pc.invert(_less(left, right))),
    "<=>": Function(_same, common_type=True, never_fails=True),
    "in": Function(_in, common_type=True, never_fails=True),
    "is null": Function(pc.is_null, never_fails=True),
    "is not null": Function(pc.is_valid, never_fails=True),
    "isnan": Function(lambda value: pc.fill_null(pc.is_nan(value), False), never_fails=True),
    "not": Function(_not, never_fails=True),
    "+": _arithmetic(pc.add_checked),
    "-": _arithmetic(pc.subtract_checked),
    "*": _arithmetic(pc.multiply_checked),
    "/": _arithmetic(_divide),
    "div": _arithmetic(_integer_divide),
    "mod": _arithmetic(_modulo),
    "power": Function(_power),
    "sqrt": Function(lambda value: pc.sqrt(_double(value))),
    "negative": _unary(pc.negate_checked),
    "abs": _unary(pc.abs_checked),
    "ceil": _to_integer(pc.ceil),
    "floor": _to_integer(pc.floor),
    "round": Function(_round),
    "greatest": _extreme(pc.max_element_wise, nan_wins=True),
    "least": _extreme(pc.min_element_wise, nan_wins=False),
    "cast": Function(cast_value),
    "upper": _on_text(pc.utf8_upper),
    "lower": _on_text(pc.utf8_lower),
    "trim": _on_text(pc.utf8_trim),
    "ltrim": _on_text(pc.utf8_ltrim),
    "rtrim": _on_text(pc.utf8_rtrim),
    "length": Function(_length),
    "substring": _on_text(_substring),
    "replace": _on_text(_replace),
    "like": _on_text(_like),
    "concat": Function(_concat),
    "startswith": _text_test(pc.starts_with),
    "endswith": _text_test(pc.ends_with),
    "contains": _text_test(pc.match_substring),
    "year": _field_of_time(pc.year),
    "quarter": _field_of_time(pc.quarter),
    "month": _field_of_time(pc.month),
    "day": _field_of_time(pc.day),
    "hour": _field_of_time(pc.hour, needs_time=True),
    "minute": _field_of_time(pc.minute, needs_time=True),
    "second": _field_of_time(pc.second, needs_time=True),
    "date_trunc": Function(_date_trunc),
}

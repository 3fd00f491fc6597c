"""The functions and operators of SQL values, on Arrow kernels.

Nulls follow SQL: an operation on null is null. NaN equals NaN and is larger than every other number, as in Spark and
in filters. A division by zero or an overflow is an error, never a null or a wrong number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expr.value.types import (
    BYTES,
    DATE,
    DECIMAL,
    FLOAT,
    MAX_DIGITS,
    MOMENT,
    NULL,
    NUMBERS,
    TEXT,
    WHOLE,
    cast_value,
    kind_of,
    round_decimal,
    settled_decimal,
    working_decimal,
)

_HALF_UP = "half_towards_infinity"
_LEAST_SCALE = 6


@dataclass(frozen=True, slots=True)
class Function:
    """How a function is computed: ``alike`` brings its arguments to one type first, ``sure`` means it cannot fail.

    ``numeric`` ones bring only floating-point numbers and what they meet to one type.
    """

    compute: Callable[..., Any]  # takes the arguments, then the options
    alike: bool = False
    sure: bool = False
    numeric: bool = False


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
    """Equality to which null is a value like others."""
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(pc.fill_null(_equal(left, right), False), both)


def _comparison(compare: Callable[[Any, Any], Any]) -> Function:
    def compute(left: Any, right: Any) -> Any:
        if kind_of(left.type) == NULL:
            return pc.cast(left if isinstance(right, pa.Scalar) else pc.equal(left, right), pa.bool_())
        return compare(left, right)

    return Function(compute, alike=True, sure=True)


def _in(value: Any, *items: Any) -> Any:
    """Membership; a null in the list leaves it open whether anything else is in it."""
    if kind_of(value.type) == NULL:
        return pc.cast(value, pa.bool_())
    if not all(isinstance(item, pa.Scalar) for item in items):
        found = _equal(value, items[0])
        for item in items[1:]:
            found = pc.or_kleene(found, _equal(value, item))
        return found
    if _is_float(value):
        value = pc.add(value, pa.scalar(0.0, value.type))  # -0.0 becomes 0.0
    known = [item.as_py() if not _is_float(value) else item.as_py() + 0.0 for item in items if item.is_valid]
    found = pc.is_in(value, value_set=pa.array(known, value.type))
    if len(known) < len(items):
        found = pc.if_else(found, found, pa.scalar(None, pa.bool_()))
    return pc.if_else(pc.is_valid(value), found, pa.scalar(None, pa.bool_()))


def _numbers(*values: Any) -> str:
    """The kind in which numbers are computed; ValueError if they are none."""
    kinds = {kind_of(value.type) for value in values} - {NULL}
    if not kinds <= NUMBERS:
        other = next(str(value.type) for value in values if kind_of(value.type) not in NUMBERS)
        raise ValueError(f"{other} is not a number")
    return FLOAT if FLOAT in kinds else DECIMAL if DECIMAL in kinds else WHOLE


def _as_kind(value: Any, kind: str) -> Any:
    if kind == FLOAT:
        return value if kind_of(value.type) == FLOAT else pc.cast(value, pa.float64())
    if kind_of(value.type) == NULL:
        return pc.cast(value, pa.int64() if kind == WHOLE else pa.decimal128(1, 0))
    return pc.cast(value, pa.int64()) if kind == WHOLE else working_decimal(value)


def _arithmetic(compute: Callable[[Any, Any], Any]) -> Function:
    def computed(left: Any, right: Any) -> Any:
        kind = _numbers(left, right)
        left, right = (_as_kind(value, kind) for value in (left, right))
        if kind == DECIMAL:
            left, right = working_decimal(left), working_decimal(right)
        found = compute(left, right)
        return settled_decimal(found) if pa.types.is_decimal(found.type) else found

    return Function(computed, numeric=True)


def _divide(left: Any, right: Any) -> Any:
    _check_divisor(right)
    if kind_of(left.type) == WHOLE:
        left, right = pc.cast(left, pa.float64(), safe=False), pc.cast(right, pa.float64(), safe=False)
    if kind_of(left.type) != DECIMAL:
        return pc.divide(left, right)
    lack = _LEAST_SCALE - (left.type.scale + right.type.precision - right.type.scale + 1)
    if lack > 0:
        left = pc.cast(left, pa.decimal256(left.type.precision + lack, left.type.scale + lack))
    return pc.divide(left, right)


def _check_divisor(divisor: Any) -> None:
    zero = pa.scalar(0, divisor.type)
    if pc.any(_array(pc.equal(divisor, zero))).as_py() is True:
        raise ValueError("division by zero")


def _whole_divide(left: Any, right: Any) -> Any:
    _check_divisor(right)
    if kind_of(left.type) == WHOLE:
        return pc.divide_checked(left, right)
    return cast_value(pc.trunc(pc.divide(left, right)), pa.int64())


def _modulo(left: Any, right: Any) -> Any:
    """The rest of a division, with the sign of the dividend."""
    _check_divisor(right)
    if kind_of(left.type) == DECIMAL:
        whole = working_decimal(pc.trunc(pc.divide(left, right)))
        taken = settled_decimal(pc.multiply(whole, right))
        return pc.subtract(left, pc.cast(taken, pa.decimal256(MAX_DIGITS, taken.type.scale)))
    rows = max(len(value) if not isinstance(value, pa.Scalar) else 1 for value in (left, right))
    first, second = (_array(value, rows) for value in (left, right))
    valid = pc.and_(pc.is_valid(first), pc.is_valid(second))
    filled = [np.asarray(pc.fill_null(value, pa.scalar(1).cast(value.type))) for value in (first, second)]
    found = pa.array(np.fmod(filled[0], filled[1]), mask=np.asarray(pc.invert(valid)))
    return found[0] if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar) else found


def _power(left: Any, right: Any) -> Any:
    _numbers(left, right)
    return pc.power(_double(left), _double(right))


def _double(value: Any) -> Any:
    return pc.cast(value, pa.float64(), safe=False)


def _unary(compute: Callable[[Any], Any]) -> Function:
    def computed(value: Any) -> Any:
        return compute(_as_kind(value, _numbers(value)) if kind_of(value.type) in (NULL, WHOLE) else value)

    return Function(computed)


def _whole(rounded: Callable[[Any], Any]) -> Function:
    """Rounding to whole numbers: decimals stay decimals, other numbers become longs."""

    def computed(value: Any) -> Any:
        kind = _numbers(value)
        if kind == WHOLE:
            return _as_kind(value, kind)
        if kind == FLOAT:
            return pc.cast(rounded(value), pa.int64())
        digits, scale = value.type.precision + 1, value.type.scale
        return settled_decimal(pc.cast(rounded(pc.cast(value, pa.decimal256(digits, scale))), pa.decimal256(digits, 0)))

    return Function(computed)


def _round(value: Any, digits: int) -> Any:
    kind = _numbers(value)
    if kind == DECIMAL:
        type_ = value.type
        scale = max(0, min(type_.scale, digits))
        wide = pc.cast(value, pa.decimal256(min(76, type_.precision + 1), type_.scale))
        rounded = pc.round(wide, ndigits=digits, round_mode=_HALF_UP)
        return settled_decimal(round_decimal(rounded, pa.decimal256(wide.type.precision, scale)))
    return pc.round(_as_kind(value, kind), ndigits=digits, round_mode=_HALF_UP)


def _extreme(pick: Callable[..., Any], nan_wins: bool) -> Function:
    def computed(*values: Any) -> Any:
        found = pick(*values, skip_nulls=True)
        if not _has_nan(*values):
            return found
        nans = [pc.fill_null(pc.is_nan(value), not nan_wins) for value in values]
        joined = nans[0]
        for each in nans[1:]:
            joined = pc.or_(joined, each) if nan_wins else pc.and_(joined, each)
        return pc.if_else(pc.and_(joined, pc.is_valid(found)), pa.scalar(float("nan"), found.type), found)

    return Function(computed, alike=True, sure=True)


def _text(value: Any) -> Any:
    """Text as it is; ValueError for other values."""
    if kind_of(value.type) == NULL:
        return pc.cast(value, pa.string())
    if kind_of(value.type) != TEXT:
        raise ValueError(f"{value.type} is not text; cast it")
    return pc.cast(value, pa.string()) if pa.types.is_string_view(value.type) else value


def _on_text(compute: Callable[..., Any]) -> Function:
    return Function(lambda value, *options: compute(_text(value), *options))


def _length(value: Any) -> Any:
    found = pc.binary_length(value) if kind_of(value.type) == BYTES else pc.utf8_length(_text(value))
    return pc.cast(found, pa.int64())


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


def _pair(compute: Callable[..., Any]) -> Function:
    """A test of a text against another, which is the same for every row."""

    def computed(value: Any, other: Any) -> Any:
        if not isinstance(other, pa.Scalar):
            raise ValueError("what a text is tested for must be a constant")
        if not other.is_valid:
            return pc.cast(pc.if_else(pc.is_valid(value), None, None), pa.bool_())
        return compute(_text(value), pattern=_text(other).as_py())

    return Function(computed)


def _moment(value: Any, clock: bool) -> Any:
    """A date or timestamp; ValueError for anything else, and for a date where a time of day is asked."""
    kind = kind_of(value.type)
    if kind == NULL:
        return pc.cast(value, pa.timestamp("us"))
    if kind != MOMENT and (clock or kind != DATE):
        raise ValueError(f"{value.type} is no {'timestamp' if clock else 'date or timestamp'}; cast it")
    return value


def _part(compute: Callable[[Any], Any], *, clock: bool = False) -> Function:
    return Function(lambda value: pc.cast(compute(_moment(value, clock)), pa.int64()))


def _date_trunc(value: Any, unit: str) -> Any:
    clock = unit in ("hour", "minute", "second", "millisecond", "microsecond")
    return pc.floor_temporal(_moment(value, clock), unit=unit)


def _like(value: Any, pattern: str, any_case: bool) -> Any:
    return pc.match_like(value, pattern, ignore_case=any_case)


def _not(value: Any) -> Any:
    return pc.invert(as_boolean(value))


def as_boolean(value: Any) -> Any:
    """A condition; ValueError if the value is none."""
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
    "<=>": Function(_same, alike=True, sure=True),
    "in": Function(_in, alike=True, sure=True),
    "is null": Function(pc.is_null, sure=True),
    "is not null": Function(pc.is_valid, sure=True),
    "isnan": Function(lambda value: pc.fill_null(pc.is_nan(value), False), sure=True),
    "not": Function(_not, sure=True),
    "+": _arithmetic(pc.add_checked),
    "-": _arithmetic(pc.subtract_checked),
    "*": _arithmetic(pc.multiply_checked),
    "/": _arithmetic(_divide),
    "div": _arithmetic(_whole_divide),
    "mod": _arithmetic(_modulo),
    "power": Function(_power),
    "sqrt": Function(lambda value: pc.sqrt(_double(value))),
    "negative": _unary(pc.negate_checked),
    "abs": _unary(pc.abs_checked),
    "ceil": _whole(pc.ceil),
    "floor": _whole(pc.floor),
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
    "startswith": _pair(pc.starts_with),
    "endswith": _pair(pc.ends_with),
    "contains": _pair(pc.match_substring),
    "year": _part(pc.year),
    "quarter": _part(pc.quarter),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "hour": _part(pc.hour, clock=True),
    "minute": _part(pc.minute, clock=True),
    "second": _part(pc.second, clock=True),
    "date_trunc": Function(_date_trunc),
}

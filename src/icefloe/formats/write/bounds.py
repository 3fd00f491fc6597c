"""Lower and upper bounds of files as Arrow values (spec: Manifests).

A footer holds bounds as numbers and bytes. They are compared in that form, which orders them as the format does
(UTF-8 bytes order like code points), then cut to the length of the metrics mode, then made into one Arrow array for
many files.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from icefloe.formats.read.promotion import readable, storage

Raw: TypeAlias = Any  # a bool, int, float or bytes: whatever orders as the column's values do

_MAX_CODE_POINT = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_EXACT = decimal.Context(prec=76)
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY_SECONDS = 86_400

Keep: TypeAlias = Callable[[Raw], Raw | None]


def decoder(file_type: pa.DataType, table_type: pa.DataType) -> Callable[[Raw], Raw] | None:
    """The function that converts a footer's bound to a comparable value of the table's type; none if there is none."""
    stored = storage(file_type)
    if not readable(stored, table_type) or pa.types.is_null(stored):
        return None
    if pa.types.is_unsigned_integer(stored) or pa.types.is_float16(stored):  # read as signed, or as two bytes
        return None
    if pa.types.is_decimal(stored):
        return _unscaled
    if pa.types.is_timestamp(table_type) or pa.types.is_time(table_type):
        per_second = _PER_SECOND[table_type.unit]
        if pa.types.is_date(stored):
            return _times(_DAY_SECONDS * per_second)
        return _times(per_second // _PER_SECOND[stored.unit])
    return _same


def _times(factor: int) -> Callable[[Raw], Raw]:
    return _same if factor == 1 else lambda raw: raw * factor


def _same(raw: Raw) -> Raw:
    return raw


def _unscaled(raw: Raw) -> int:
    return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)


def raw(scalar: pa.Scalar) -> Raw:
    """A value as the plain one that it is compared and stored by.

    >>> raw(pa.scalar("a")), raw(pa.scalar(7, pa.date32())), raw(pa.scalar(decimal.Decimal("1.50")))
    (b'a', 7, 150)
    """
    type_, kinds = scalar.type, pa.types
    if kinds.is_decimal(type_):
        return int(scalar.as_py().scaleb(type_.scale, _EXACT))
    if kinds.is_temporal(type_):
        return scalar.value
    value = scalar.as_py()
    return value.encode() if isinstance(value, str) else value


def kept(type_: pa.DataType, length: int | None) -> tuple[Keep, Keep]:
    """What metrics keep of a lower and of an upper bound: text and bytes are cut to a length, zeros get their sign."""
    if pa.types.is_string(type_):
        if length is None:
            return _text, _text
        return partial(truncate_text_down, length=length), partial(truncate_text_up, length=length)
    if pa.types.is_binary(type_) and length is not None:
        return partial(truncate_bytes_down, length=length), partial(truncate_bytes_up, length=length)
    return (_zero_down, _zero_up) if pa.types.is_floating(type_) else (_same, _same)


def is_whole(raw: Raw, kept: Raw) -> bool:
    """Whether nothing was cut off a bound."""
    return bool(raw == (kept.encode() if isinstance(kept, str) else kept))


def _zero_down(value: float) -> float:
    return -0.0 if value == 0.0 else value


def _zero_up(value: float) -> float:
    return 0.0 if value == 0.0 else value


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:  # a writer cut it inside a character
        return None


def truncate_text_down(raw: bytes, length: int = 16) -> str | None:
    """The first code points of a lower bound; none if it is not text.

    >>> truncate_text_down(b"abcdefghijklmnopqrst")
    'abcdefghijklmnop'
    """
    text = _text(raw)
    return None if text is None else text[:length]


def truncate_text_up(raw: bytes, length: int = 16) -> str | None:
    """A short text that no longer text with this beginning exceeds; none if there is no such text.

    >>> truncate_text_up(b"abcdefghijklmnopqrst")
    'abcdefghijklmnoq'
    """
    text = _text(raw)
    if text is None or len(text) <= length:
        return text
    for end in range(length, 0, -1):
        raised = ord(text[end - 1]) + 1
        if _SURROGATES[0] <= raised <= _SURROGATES[1]:
            raised = _SURROGATES[1] + 1
        if raised <= _MAX_CODE_POINT:
            return text[: end - 1] + chr(raised)
    return None


def truncate_bytes_down(raw: bytes, length: int = 16) -> bytes:
    """The first bytes of a lower bound."""
    return raw[:length]


def truncate_bytes_up(raw: bytes, length: int = 16) -> bytes | None:
    """Short bytes that no longer bytes with this beginning exceed; none if there are no such bytes.

    >>> truncate_bytes_up(bytes(15) + b"aaaa")[-2:]
    b'\\x00b'
    """
    if len(raw) <= length:
        return raw
    cut = raw[:length].rstrip(b"\xff")
    return None if len(cut) == 0 else cut[:-1] + bytes([cut[-1] + 1])


def to_array(values: list[Raw | None], type_: pa.DataType) -> pa.Array:
    """Comparable values as an array of the table's type."""
    kinds = pa.types
    if kinds.is_decimal(type_):
        exact = [None if v is None else decimal.Decimal(v).scaleb(-type_.scale, _EXACT) for v in values]
        return pa.array(exact, type_)
    if kinds.is_date(type_):
        return pa.array(values, pa.int32()).view(type_)
    if kinds.is_timestamp(type_) or kinds.is_time(type_):
        return pa.array([_int64(v) for v in values], pa.int64()).view(type_)
    return pa.array(values, type_)


def _int64(value: int | None) -> int | None:
    """A bound, or none if scaling it to microseconds took it out of range."""
    return value if value is None or -(2**63) <= value < 2**63 else None

"""Lower and upper bounds from Parquet footers as Arrow values (spec: Manifests).

A footer holds bounds as numbers and bytes. They are compared in that form, which orders them as the format does
(UTF-8 bytes order like code points), then cut to the length of the metrics mode, then made into one Arrow array for
many files.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

from icefloe.formats.promotion import readable, storage

Raw: TypeAlias = Any  # a bool, int, float or bytes: whatever orders as the column's values do

TRUNCATED_LENGTH = 16
_MAX_CODE_POINT = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_EXACT = decimal.Context(prec=76)
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def decoder(file_type: pa.DataType, table_type: pa.DataType) -> Callable[[Raw], Raw] | None:
    """How a footer's bound becomes a comparable value of the table's type; none if it cannot."""
    given = storage(file_type)
    if not readable(given, table_type):
        return None
    if pa.types.is_decimal(given):
        return _unscaled
    if pa.types.is_timestamp(given) or pa.types.is_time(given):
        factor = _MICROS[given.unit]
        return lambda raw: raw * factor
    return _same


def _same(raw: Raw) -> Raw:
    return raw


def _unscaled(raw: Raw) -> int:
    return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)


def cut(type_: pa.DataType) -> tuple[Callable[[Raw], Raw | None], Callable[[Raw], Raw | None]]:
    """What a column's metrics keep of a lower and of an upper bound: text and bytes are cut, zeros get their sign."""
    if pa.types.is_string(type_):
        return truncate_text_down, truncate_text_up
    if pa.types.is_binary(type_):
        return truncate_bytes_down, truncate_bytes_up
    return (_zero_down, _zero_up) if pa.types.is_floating(type_) else (_same, _same)


def uncut(type_: pa.DataType) -> tuple[Callable[[Raw], Raw | None], Callable[[Raw], Raw | None]]:
    """The same without cutting: bounds at full length."""
    if pa.types.is_string(type_):
        return _text, _text
    return (_zero_down, _zero_up) if pa.types.is_floating(type_) else (_same, _same)


def _zero_down(value: float) -> float:
    return -0.0 if value == 0.0 else value


def _zero_up(value: float) -> float:
    return 0.0 if value == 0.0 else value


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:  # a writer cut it inside a character
        return None


def truncate_text_down(raw: bytes) -> str | None:
    """The first code points of a lower bound; none if it is not text.

    >>> truncate_text_down(b"abcdefghijklmnopqrst")
    'abcdefghijklmnop'
    """
    text = _text(raw)
    return None if text is None else text[:TRUNCATED_LENGTH]


def truncate_text_up(raw: bytes) -> str | None:
    """A short text that no longer text with this beginning exceeds; none if there is no such text.

    >>> truncate_text_up(b"abcdefghijklmnopqrst")
    'abcdefghijklmnoq'
    """
    text = _text(raw)
    if text is None or len(text) <= TRUNCATED_LENGTH:
        return text
    for end in range(TRUNCATED_LENGTH, 0, -1):
        raised = ord(text[end - 1]) + 1
        if _SURROGATES[0] <= raised <= _SURROGATES[1]:
            raised = _SURROGATES[1] + 1
        if raised <= _MAX_CODE_POINT:
            return text[: end - 1] + chr(raised)
    return None


def truncate_bytes_down(raw: bytes) -> bytes:
    """The first bytes of a lower bound."""
    return raw[:TRUNCATED_LENGTH]


def truncate_bytes_up(raw: bytes) -> bytes | None:
    """Short bytes that no longer bytes with this beginning exceed; none if there are no such bytes.

    >>> truncate_bytes_up(bytes(15) + b"aaaa")[-2:]
    b'\\x00b'
    """
    if len(raw) <= TRUNCATED_LENGTH:
        return raw
    kept = raw[:TRUNCATED_LENGTH].rstrip(b"\xff")
    return None if len(kept) == 0 else kept[:-1] + bytes([kept[-1] + 1])


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

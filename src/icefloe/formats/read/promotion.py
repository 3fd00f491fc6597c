"""Which Arrow types of a file may be read as which types of a table (spec: Schema Evolution).

Arrow casts more types than the format allows, such as text to numbers, so this module decides what is cast.
"""

from __future__ import annotations

import pyarrow as pa

_UNITS = frozenset({"s", "ms", "us"})


def storage(type_: pa.DataType) -> pa.DataType:
    """The plain type behind an extension type or a dictionary."""
    if isinstance(type_, pa.BaseExtensionType):
        return storage(type_.storage_type)
    return storage(type_.value_type) if pa.types.is_dictionary(type_) else type_


def readable(file_type: pa.DataType, table_type: pa.DataType) -> bool:
    """Whether values of a file's primitive type can be read as the table's, without loss.

    >>> readable(pa.int32(), pa.int64()), readable(pa.int64(), pa.int32())
    (True, False)
    """
    stored, kinds = storage(file_type), pa.types
    if stored == table_type or kinds.is_null(stored):
        return True
    if kinds.is_signed_integer(table_type):
        return bool(kinds.is_integer(stored)) and stored.bit_width + _unsigned(stored) <= table_type.bit_width
    if kinds.is_floating(table_type):
        return bool(kinds.is_floating(stored)) and stored.bit_width <= table_type.bit_width
    if kinds.is_decimal(table_type):
        return bool(kinds.is_decimal(stored)) and _fits(stored, table_type)
    if kinds.is_timestamp(table_type):
        return _is_moment(stored, table_type)
    if kinds.is_time(table_type):
        return bool(kinds.is_time(stored)) and stored.unit in _UNITS
    if kinds.is_string(table_type):
        return _is_text(stored) or _is_bytes(stored)  # old writers left the UTF-8 annotation out
    return bool(kinds.is_binary(table_type)) and _is_bytes(stored)


def _unsigned(type_: pa.DataType) -> int:
    """The bit that a sign would take, for types without one."""
    return 1 if pa.types.is_unsigned_integer(type_) else 0


def _is_moment(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a type has timestamps no finer than those wanted; dates become midnight if there is no zone."""
    if pa.types.is_date(stored):
        return wanted.tz is None
    if not pa.types.is_timestamp(stored):
        return False
    return (stored.unit in _UNITS or stored.unit == wanted.unit) and (stored.tz is None) == (wanted.tz is None)


def _fits(stored: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(stored.scale == wanted.scale and stored.precision <= wanted.precision)


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_))

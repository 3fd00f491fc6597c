"""Single values as bytes: bounds and partition summaries of v1-v3 manifests (spec: Appendix D, Binary single-value).

``encode_value`` and ``decode_value`` handle one value. ``encode_bounds`` and ``decode_bounds`` handle a column of them
with numpy over the buffers, and agree with the former value by value.
"""

from __future__ import annotations

import struct
import uuid
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Inexact, InvalidOperation
from decimal import Decimal as PyDecimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import FormatError, InputError
from icefloe.model.arrow import arrow_type
from icefloe.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    MAX_DECIMAL_PRECISION,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Fixed,
    Primitive,
    Type,
    is_primitive,
)

Value = bool | int | float | str | bytes | date | time | datetime | PyDecimal | uuid.UUID

_EPOCH = datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
_DECIMAL_BYTES = 16
_EXACT = Context(prec=MAX_DECIMAL_PRECISION, traps=[InvalidOperation, Inexact])

_FORMATS: dict[Type, str] = {
    INT: "<i4",
    LONG: "<i8",
    FLOAT: "<f4",
    DOUBLE: "<f8",
    DATE: "<i4",
    TIME: "<i8",
    TIMESTAMP: "<i8",
    TIMESTAMPTZ: "<i8",
}
_STRUCTS = {
    "<i4": struct.Struct("<i"),
    "<i8": struct.Struct("<q"),
    "<f4": struct.Struct("<f"),
    "<f8": struct.Struct("<d"),
}
# Bounds written before a column was promoted keep the width of the former type (spec: Schema Evolution).
_NARROWER = {LONG: "<i4", DOUBLE: "<f4"}

Bytes = npt.NDArray[np.uint8]


def encode_value(value: Value, type_: Type) -> bytes:
    """The bytes of one value; dates, times and timestamps may also be given as the numbers that are stored.

    >>> encode_value(PyDecimal("14.20"), Decimal(9, 2)).hex()
    '058c'
    """
    try:
        return _encode(value, type_)
    except (TypeError, ValueError, AttributeError, ArithmeticError, struct.error) as error:
        raise InputError(f"{value!r} is no value of type {type_}: {error}", type=str(type_)) from error


def _encode(value: Any, type_: Type) -> bytes:
    match type_:
        case Decimal():
            return _minimal(_unscaled(value, type_))
        case Fixed(length):
            return _sized(bytes(value), length)
        case Primitive(name="boolean"):
            return b"\x01" if value else b"\x00"
        case Primitive(name="string"):
            return bytes(value.encode())
        case Primitive(name="binary"):
            return bytes(value)
        case Primitive(name="uuid"):
            return _sized(value.bytes if isinstance(value, uuid.UUID) else bytes(value), 16)
        case Primitive():
            return _STRUCTS[_FORMATS[type_]].pack(_number(value, type_))
    raise TypeError("nested types have no single-value form")


def _sized(data: bytes, length: int) -> bytes:
    if len(data) != length:
        raise ValueError(f"expected {length} bytes, got {len(data)}")
    return data


def _number(value: Any, type_: Primitive) -> Any:
    """The number that is stored for a value of a fixed-width type."""
    if type_ in (FLOAT, DOUBLE) or isinstance(value, int):
        return value
    if type_ == TIMESTAMP and value.tzinfo is not None:
        raise ValueError("a time zone does not belong here")
    if type_ == TIMESTAMPTZ and value.tzinfo is None:
        raise ValueError("a time zone is missing")
    if type_ in (TIMESTAMP, TIMESTAMPTZ):
        plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return (plain - _EPOCH) // timedelta(microseconds=1)
    if type_ == TIME:
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    if type_ == DATE:
        return value.toordinal() - _EPOCH_DAY
    raise TypeError("expected a whole number")


def _unscaled(value: Any, type_: Decimal) -> int:
    scaled = PyDecimal(value).scaleb(type_.scale, _EXACT)
    if scaled.adjusted() < type_.precision and scaled == scaled.to_integral_value():
        return int(scaled)
    raise ValueError("too many digits")


def _minimal(number: int) -> bytes:
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def decode_value(data: bytes, type_: Type, *, where: str = "single value") -> Value:
    """The value of some bytes, as the Python value that Arrow gives for the type (16 bytes for a uuid).

    >>> decode_value(bytes.fromhex("058c"), Decimal(9, 2))
    Decimal('14.20')
    """
    try:
        return _decode(data, type_)
    except (ValueError, TypeError, struct.error, OverflowError) as error:
        raise FormatError(f"{where}: {data[:32].hex()} is no {type_}: {error}", where=where, type=str(type_)) from error


def _decode(data: bytes, type_: Type) -> Value:
    match type_:
        case Decimal(_, scale):
            if not 1 <= len(data) <= _DECIMAL_BYTES:
                raise ValueError(f"expected 1 to {_DECIMAL_BYTES} bytes, got {len(data)}")
            return PyDecimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, _EXACT)
        case Fixed(length):
            return _sized(data, length)
        case Primitive(name="boolean"):
            return _sized(data, 1) != b"\x00"
        case Primitive(name="string"):
            return data.decode()
        case Primitive(name="binary"):
            return data
        case Primitive(name="uuid"):
            return _sized(data, 16)
        case Primitive():
            narrower = _NARROWER.get(type_)
            shape = _FORMATS[type_]
            if narrower is not None and len(data) == _STRUCTS[narrower].size:
                shape = narrower
            return _value(_STRUCTS[shape].unpack(data)[0], type_)
    raise TypeError("nested types have no single-value form")


def _value(number: Any, type_: Primitive) -> Value:
    match type_.name:
        case "date":
            return date.fromordinal(number + _EPOCH_DAY)
        case "time":
            if not 0 <= number < 86_400_000_000:
                raise ValueError("not a time of day")
            return (_EPOCH + timedelta(microseconds=number)).time()
        case "timestamp":
            return _EPOCH + timedelta(microseconds=number)
        case "timestamptz":
            return (_EPOCH + timedelta(microseconds=number)).replace(tzinfo=UTC)
        case _:
            return number  # type: ignore[no-any-return]  # struct gives int or float, as the format says


def decode_bounds(array: pa.Array, type_: Type, *, where: str = "bounds") -> pa.Array:
    """A column of binary bounds as values of the column's type; null stays null.

    Bounds of a ``fixed`` column may have been truncated; they are filled up with zeros and still are bounds.
    """
    array = _plain(array, pa.binary())
    target = arrow_type(type_)
    match type_:
        case Decimal():
            return _decode_decimals(array, target, where)
        case Fixed(length):
            return _decode_fixed(array, target, length, where)
        case Primitive(name="binary"):
            return array
        case Primitive(name="string"):
            try:
                return array.cast(target)
            except pa.ArrowInvalid as error:
                raise FormatError(f"{where}: a bound of a string column is not UTF-8", where=where) from error
        case Primitive(name="uuid"):
            _check_widths(array, (16,), type_, where)
            return array.cast(target)
        case Primitive(name="boolean"):
            _check_widths(array, (1,), type_, where)
            return _scatter(array, _dense(array) != 0, target)
        case Primitive():
            return _decode_numbers(array, type_, where)
    raise FormatError(f"{where}: type {type_} has no bounds", where=where)


def _plain(array: pa.Array | pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    return whole if whole.type == type_ else whole.cast(type_)


def _dense(array: pa.Array) -> Bytes:
    """The bytes of all values that are not null, one after another."""
    kept = array.drop_null()
    _, ends, data = kept.buffers()
    if len(kept) == 0 or data is None:
        return np.empty(0, np.uint8)
    offsets = np.frombuffer(ends, np.int32, len(kept) + 1, kept.offset * 4)
    return np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]


def _widths(array: pa.Array) -> npt.NDArray[np.int32]:
    """The lengths of all values that are not null."""
    return np.asarray(pc.binary_length(array.drop_null()).to_numpy(zero_copy_only=False), np.int32)


def _check_widths(array: pa.Array, allowed: tuple[int, ...], type_: Type, where: str) -> npt.NDArray[np.int32]:
    widths = _widths(array)
    wrong = widths[~np.isin(widths, allowed)]
    if len(wrong) > 0:
        raise FormatError(f"{where}: a bound of type {type_} has {wrong[0]} bytes", where=where, type=str(type_))
    return widths


def _scatter(array: pa.Array, values: npt.NDArray[Any], target: pa.DataType) -> pa.Array:
    """Values for the places of ``array`` that are not null, in Arrow's type."""
    if array.null_count == 0:
        return _typed(pa.array(values), target)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    full = np.zeros(len(array), values.dtype)
    full[valid] = values
    return _typed(pa.array(full, mask=~valid), target)


def _typed(array: pa.Array, target: pa.DataType) -> pa.Array:
    return array if array.type == target else array.view(target)


def _decode_numbers(array: pa.Array, type_: Primitive, where: str) -> pa.Array:
    shape = np.dtype(_FORMATS[type_])
    narrower = None if type_ not in _NARROWER else np.dtype(_NARROWER[type_])
    allowed = (shape.itemsize,) if narrower is None else (shape.itemsize, narrower.itemsize)
    widths = _check_widths(array, allowed, type_, where)
    dense = _dense(array)
    if narrower is None or not np.any(widths == narrower.itemsize):
        return _scatter(array, dense.view(shape), arrow_type(type_))
    values = np.empty(len(widths), shape)
    starts = np.cumsum(widths) - widths
    for stored in (shape, narrower):
        rows = widths == stored.itemsize
        values[rows] = _gather(dense, starts[rows], stored.itemsize).view(stored)[:, 0]
    return _scatter(array, values, arrow_type(type_))


def _gather(dense: Bytes, starts: npt.NDArray[Any], width: int) -> Bytes:
    return dense[starts[:, None] + np.arange(width)]


def _decode_decimals(array: pa.Array, target: pa.DataType, where: str) -> pa.Array:
    widths = _check_widths(array, tuple(range(1, _DECIMAL_BYTES + 1)), BINARY, where)
    dense = _dense(array)
    starts = np.cumsum(widths) - widths
    values = np.empty((len(widths), _DECIMAL_BYTES), np.uint8)
    for width in np.unique(widths):
        rows = widths == width
        stored = _gather(dense, starts[rows], int(width))
        values[rows, :width] = stored[:, ::-1]
        values[rows, width:] = np.where(stored[:, :1] >= 0x80, 0xFF, 0)
    return _with_nulls(array, values, target)


def _decode_fixed(array: pa.Array, target: pa.DataType, length: int, where: str) -> pa.Array:
    widths = _widths(array)
    if np.any(widths > length):
        raise FormatError(f"{where}: a bound of type fixed[{length}] has {widths.max()} bytes", where=where)
    values = np.zeros((len(widths), length), np.uint8)
    values[np.arange(length) < widths[:, None]] = _dense(array)
    return _with_nulls(array, values, target)


def _with_nulls(array: pa.Array, values: Bytes, target: pa.DataType) -> pa.Array:
    """Rows of bytes as fixed-width Arrow values at the places of ``array`` that are not null."""
    valid = array.is_valid()
    full = np.zeros((len(array), values.shape[1]), np.uint8)
    full[valid.to_numpy(zero_copy_only=False)] = values
    validity = None if array.null_count == 0 else _bitmap(valid)
    return pa.Array.from_buffers(target, len(array), [validity, pa.py_buffer(full)], array.null_count)


def _bitmap(flags: pa.Array) -> pa.Buffer:
    # The data of a boolean array without offset is laid out as a validity bitmap.
    return pa.concat_arrays([flags, flags.slice(0, 0)]).buffers()[1]


def encode_bounds(array: pa.Array, type_: Type) -> pa.Array:
    """A column of values as the bytes that manifests store; null stays null."""
    if not is_primitive(type_):
        raise InputError(f"type {type_} has no bounds", type=str(type_))
    array = _plain(array, arrow_type(type_))
    if type_ in (STRING, BINARY, UUID) or isinstance(type_, Fixed):
        return array.cast(pa.binary())
    if isinstance(type_, Decimal):
        return _encode_decimals(array)
    kept = array.drop_null()
    if type_ == BOOLEAN:
        values = kept.to_numpy(zero_copy_only=False).astype(np.uint8)
    else:
        physical = pa.int32() if type_ == DATE else pa.int64()
        numbers = kept if type_ in (INT, LONG, FLOAT, DOUBLE) else kept.view(physical)
        values = numbers.to_numpy(zero_copy_only=False).astype(_FORMATS[type_], copy=False)
    return _binary(array, values, np.full(len(kept), values.dtype.itemsize, np.int32))


def _encode_decimals(array: pa.Array) -> pa.Array:
    kept = array.drop_null()
    if len(kept) == 0:
        return pa.nulls(len(array), pa.binary())
    stored = np.frombuffer(kept.buffers()[1], np.uint8, len(kept) * _DECIMAL_BYTES, kept.offset * _DECIMAL_BYTES)
    rows = stored.reshape(-1, _DECIMAL_BYTES)[:, ::-1]
    negative = rows[:, 0] >= 0x80
    differs = rows != np.where(negative, 0xFF, 0)[:, None]
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), _DECIMAL_BYTES - 1)
    # One byte more when the first byte that counts would be read with the other sign.
    leading = np.take_along_axis(rows, first[:, None], axis=1)[:, 0] >= 0x80
    widths = (_DECIMAL_BYTES - first + (leading != negative)).astype(np.int32)
    return _binary(array, rows[np.arange(_DECIMAL_BYTES) >= _DECIMAL_BYTES - widths[:, None]], widths)


def _binary(array: pa.Array, values: npt.NDArray[Any], widths: npt.NDArray[np.int32]) -> pa.Array:
    """A binary column of values of these widths at the places of ``array`` that are not null."""
    valid = array.is_valid()
    lengths = np.zeros(len(array) + 1, np.int32)
    lengths[1:][valid.to_numpy(zero_copy_only=False)] = widths
    validity = None if array.null_count == 0 else _bitmap(valid)
    offsets, data = pa.py_buffer(np.cumsum(lengths, dtype=np.int32)), pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.binary(), len(array), [validity, offsets, data], array.null_count)

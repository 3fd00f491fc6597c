"""Columns of values as bytes and back: the bounds of v1-v3 manifests (spec: Binary single-value serialization).

numpy works on the buffers of the Arrow arrays, without a Python object per value. A value that was stored before its
column was promoted is read as the present type of the column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import CorruptFile, FormatError, InputError, LimitError
from icefloe.limits import MIB
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.columns import one_array
from icefloe.model.schema import types as iceberg

Bytes = npt.NDArray[np.uint8]

FORMATS: Mapping[iceberg.Type, str] = {  # in numpy's notation
    iceberg.INT: "<i4",
    iceberg.LONG: "<i8",
    iceberg.FLOAT: "<f4",
    iceberg.DOUBLE: "<f8",
    iceberg.DATE: "<i4",
    iceberg.TIME: "<i8",
    iceberg.TIMESTAMP: "<i8",
    iceberg.TIMESTAMPTZ: "<i8",
    iceberg.TIMESTAMP_NS: "<i8",
    iceberg.TIMESTAMPTZ_NS: "<i8",
}
UNITS_PER_DAY: Mapping[iceberg.Type, int] = {
    iceberg.TIMESTAMP: 86_400_000_000,
    iceberg.TIMESTAMP_NS: 86_400_000_000_000,
}
# Bounds written before a column was promoted keep the bytes of the former type (spec: Schema Evolution).
_FORMER: Mapping[iceberg.Type, iceberg.Primitive] = {
    iceberg.LONG: iceberg.INT,
    iceberg.DOUBLE: iceberg.FLOAT,
    iceberg.TIMESTAMP: iceberg.DATE,
    iceberg.TIMESTAMP_NS: iceberg.DATE,
}
_STORED_AS_BYTES = (iceberg.STRING, iceberg.BINARY, iceberg.UUID, iceberg.UNKNOWN)
_MAX_LONG = 2**63 - 1
_DECIMAL_BYTES = 16
MAX_FIXED_BYTES = 256 * MIB  # of one column: a few bytes of JSON can declare a type of a gigabyte


def decode_bounds(array: pa.Array, type_: iceberg.Type, *, where: str = "bounds") -> pa.Array:
    """A column of binary bounds as values of the column's type; null stays null.

    Bounds of a ``fixed`` column may have been truncated; they are filled up with zeros and still are bounds. Dates of
    a column that became a timestamp are read as timestamps, clamped to the range of the type.
    """
    array = _plain(array, pa.binary())
    if not iceberg.is_primitive(type_) or (type_ == iceberg.UNKNOWN and array.null_count < len(array)):
        raise FormatError(f"{where}: type {type_} has no bounds", where=where)
    target = arrow_type(type_)
    match type_:
        case iceberg.Geometry() | iceberg.Geography() | iceberg.Primitive(name="binary"):
            return array
        case iceberg.Decimal():
            return _decode_decimals(array, type_, where)
        case iceberg.Fixed(length):
            return _decode_fixed(array, target, length, where)
        case iceberg.Primitive(name="unknown"):
            return pa.nulls(len(array), target)
        case iceberg.Primitive(name="string"):
            try:
                return array.cast(target)
            except pa.ArrowInvalid as error:
                raise CorruptFile(f"{where}: a bound of a string column is not UTF-8", where=where) from error
        case iceberg.Primitive(name="uuid"):
            _check_widths(array, (16,), type_, where)
            return array.cast(target)
        case iceberg.Primitive(name="boolean"):
            _check_widths(array, (1,), type_, where)
            return _scatter(array, _dense(array) != 0, target)
        case iceberg.Primitive():
            return _decode_numbers(array, type_, where)


def known_bounds(array: pa.Array, type_: iceberg.Type, *, where: str = "bounds") -> pa.Array:
    """Like ``decode_bounds``, but null where the bytes are not a valid value of the type.

    Some writers cut texts within a character or store numbers in too many bytes. Such a bound is treated as unknown
    and does not make the file unreadable.
    """
    try:
        return decode_bounds(array, type_, where=where)
    except LimitError:
        raise
    except FormatError:
        encoded = pc.unique(array).drop_null().to_pylist()  # checked one by one, because few columns need this
        values = pa.array([stored for stored in encoded if _is_value(stored, type_)], pa.binary())
        return decode_bounds(pc.if_else(pc.is_in(array, value_set=values), array, None), type_, where=where)


def _is_value(stored: bytes, type_: iceberg.Type) -> bool:
    try:
        decode_bounds(pa.array([stored], pa.binary()), type_)
    except FormatError:
        return False
    return True


def _plain(array: pa.Array | pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    whole = one_array(array)
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


def _check_widths(array: pa.Array, allowed: tuple[int, ...], type_: iceberg.Type, where: str) -> npt.NDArray[np.int32]:
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


def _decode_numbers(array: pa.Array, type_: iceberg.Primitive, where: str) -> pa.Array:
    shape = np.dtype(FORMATS[type_])
    former = None if type_ not in _FORMER else np.dtype(FORMATS[_FORMER[type_]])
    allowed = (shape.itemsize,) if former is None else (shape.itemsize, former.itemsize)
    widths = _check_widths(array, allowed, type_, where)
    dense = _dense(array)
    if former is None or not np.any(widths == former.itemsize):
        return _scatter(array, dense.view(shape), arrow_type(type_))
    values = np.empty(len(widths), shape)
    starts = np.cumsum(widths) - widths
    old = widths == former.itemsize
    values[~old] = _gather(dense, starts[~old], shape.itemsize).view(shape)[:, 0]
    values[old] = promoted_numbers(_gather(dense, starts[old], former.itemsize).view(former)[:, 0], type_)
    return _scatter(array, values, arrow_type(type_))


def promoted_numbers(former: npt.NDArray[Any], type_: iceberg.Primitive) -> npt.NDArray[Any]:
    """Numbers as they were stored for the former type, as the type stores them."""
    if _FORMER[type_] != iceberg.DATE:
        return former
    units = UNITS_PER_DAY[type_]
    last = _MAX_LONG // units
    exact = np.clip(former, -last, last).astype(np.int64) * units
    return np.where(former > last, _MAX_LONG, np.where(former < -last, -_MAX_LONG - 1, exact))


def _gather(dense: Bytes, starts: npt.NDArray[Any], width: int) -> Bytes:
    return dense[starts[:, None] + np.arange(width)]


def _decode_decimals(array: pa.Array, type_: iceberg.Decimal, where: str) -> pa.Array:
    target = arrow_type(type_)
    widths = _check_widths(array, tuple(range(1, _DECIMAL_BYTES + 1)), type_, where)
    dense = _dense(array)
    starts = np.cumsum(widths) - widths
    values = np.empty((len(widths), _DECIMAL_BYTES), np.uint8)
    for width in np.unique(widths):
        rows = widths == width
        stored = _gather(dense, starts[rows], int(width))
        values[rows, :width] = stored[:, ::-1]
        values[rows, width:] = np.where(stored[:, :1] >= 0x80, 0xFF, 0)
    decoded = _with_nulls(array, values, target)
    try:
        decoded.validate(full=True)
    except pa.ArrowInvalid as error:
        raise FormatError(f"{where}: a bound has more digits than {target}: {error}", where=where) from error
    return decoded


def _decode_fixed(array: pa.Array, target: pa.DataType, length: int, where: str) -> pa.Array:
    check_fixed(iceberg.Fixed(length), len(array), where=where)
    widths = _widths(array)
    if np.any(widths > length):
        raise FormatError(f"{where}: a bound of type fixed[{length}] has {widths.max()} bytes", where=where)
    values = np.zeros((len(widths), length), np.uint8)
    values[np.arange(length) < widths[:, None]] = _dense(array)
    return _with_nulls(array, values, target)


def check_fixed(type_: iceberg.Type, rows: int, *, where: str) -> None:
    """Refuse a column of fixed-width values that would fill the memory, whether or not it has any values."""
    if isinstance(type_, iceberg.Fixed) and type_.length * rows > MAX_FIXED_BYTES:
        raise LimitError(f"{where}: {rows} values of type {type_} are more than {MAX_FIXED_BYTES} bytes", where=where)


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


def encode_bounds(array: pa.Array, type_: iceberg.Type) -> pa.Array:
    """A column of values as the bytes that manifests store; null stays null."""
    if not iceberg.is_primitive(type_):
        raise InputError(f"type {type_} has no bounds", type=str(type_))
    array = _plain(array, arrow_type(type_))
    if type_ in _STORED_AS_BYTES or isinstance(type_, (iceberg.Fixed, iceberg.Geometry, iceberg.Geography)):
        return array.cast(pa.binary())
    if isinstance(type_, iceberg.Decimal):
        return _encode_decimals(array)
    kept = array.drop_null()
    if type_ == iceberg.BOOLEAN:
        values = kept.to_numpy(zero_copy_only=False).astype(np.uint8)
    else:
        physical = pa.int32() if type_ == iceberg.DATE else pa.int64()
        numbers = kept if type_ in (iceberg.INT, iceberg.LONG, iceberg.FLOAT, iceberg.DOUBLE) else kept.view(physical)
        values = numbers.to_numpy(zero_copy_only=False).astype(FORMATS[type_], copy=False)
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


def without_nan(bounds: pa.Array) -> pa.Array:
    """Bounds with NaN, which is not one, as unknown."""
    if not pa.types.is_floating(bounds.type):
        return bounds
    nan = pc.is_nan(bounds)
    return pc.if_else(nan, None, bounds) if pc.any(nan).as_py() is True else bounds

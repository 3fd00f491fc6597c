"""Avro records from Arrow columns, without a Python object per record (Avro specification, Binary Encoding).

The encoding of a record is that of its fields in sequence, so every field becomes a column of bytes and a
record is those columns joined; the values buffer of the joined column is what an Avro block holds. Dates, times,
decimals and similar types are written as numbers and bytes (spec: Appendix A, Avro).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError

_VARINT_BYTES = 10
_DECIMAL_BYTES = 16
_NULL_BRANCH, _VALUE_BRANCH, _END = b"\x00", b"\x02", b"\x00"

Ints = npt.NDArray[np.int64]


def encode_records(rows: pa.Array, schema: Any, *, sized: bool = False) -> pa.Array:
    """One binary value per row: the row in the encoding of an Avro schema; optional types are ``["null", type]``.

    A field whose name Avro does not allow is matched by position. With ``sized``, arrays and maps say how many bytes
    their items take, so that readers can skip them.
    """
    if isinstance(schema, list):
        return _optional(rows, schema, sized)
    name = schema if isinstance(schema, str) else schema["type"]
    match name:
        case "null":
            return pa.repeat(pa.scalar(b"", pa.binary()), len(rows))
        case "int" | "long":
            return _longs(np.asarray(_filled(_numbers(rows), 0)).astype(np.int64, copy=False))
        case "string" | "bytes":
            return _sized(_filled(rows.cast(pa.binary()), b""))
        case "boolean":
            return _fixed_width(np.asarray(_filled(rows, False)).astype(np.uint8))
        case "float" | "double":
            return _fixed_width(np.asarray(_filled(rows, 0.0)))
        case "fixed":
            return _filled(_fixed(rows, schema["size"]), bytes(schema["size"]))
        case "array":
            return _lists(rows, schema["items"], sized)
        case "map":
            pair = [{"name": "key", "type": "string"}, {"name": "value", "type": schema["values"]}]
            return _lists(rows, {"type": "record", "fields": pair}, sized)
        case "record":
            fields = [(_child(rows, place, f["name"]), f["type"]) for place, f in enumerate(schema["fields"])]
            return _joined([encode_records(child, type_, sized=sized) for child, type_ in fields], len(rows))
    raise InputError(f"cannot write Avro type {name!r}", type=name)


def _child(rows: pa.StructArray, place: int, name: str) -> pa.Array:
    index = rows.type.get_field_index(name)
    return rows.field(place if index < 0 else index)


def _numbers(rows: pa.Array) -> pa.Array:
    """Dates and times as numbers."""
    if not pa.types.is_temporal(rows.type):
        return rows
    return rows.view(pa.int32() if rows.type.bit_width == 32 else pa.int64())


def _fixed(rows: pa.Array, size: int) -> pa.Array:
    if not pa.types.is_decimal(rows.type):
        return rows.cast(pa.binary())
    # Unscaled values as big-endian two's complement of a fixed number of bytes.
    stored = np.frombuffer(rows.buffers()[1], np.uint8, len(rows) * _DECIMAL_BYTES, rows.offset * _DECIMAL_BYTES)
    turned = stored.reshape(len(rows), _DECIMAL_BYTES)[:, ::-1][:, _DECIMAL_BYTES - size :]
    return _fixed_rows(np.ascontiguousarray(turned), size)


def encode_metadata(metadata: Mapping[str, bytes]) -> bytes:
    """A map of bytes, as the header of a file has it."""
    pairs = [number(len(metadata))]
    for key, value in metadata.items():
        text = key.encode()
        pairs += [number(len(text)), text, number(len(value)), value]
    return b"".join([*pairs, _END])


def number(value: int) -> bytes:
    """One number in zigzag form."""
    return bytes(_longs(np.array([value], np.int64))[0].as_py())


def _filled(array: pa.Array, value: object) -> pa.Array:
    """Any value for nulls: the union around them discards their encoding."""
    return array.fill_null(value) if array.null_count > 0 else array


def _joined(columns: list[pa.Array], length: int) -> pa.Array:
    if len(columns) == 0:
        return pa.repeat(pa.scalar(b"", pa.binary()), length)
    return columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, pa.scalar(b"", pa.binary()))


def _optional(rows: pa.Array, schema: list[Any], sized: bool) -> pa.Array:
    (inner,) = (option for option in schema if option != "null")
    if rows.null_count == len(rows):
        return pa.repeat(pa.scalar(_NULL_BRANCH, pa.binary()), len(rows))
    value = pa.repeat(pa.scalar(_VALUE_BRANCH, pa.binary()), len(rows))
    encoded = _joined([value, encode_records(rows, inner, sized=sized)], len(rows))
    if rows.null_count == 0:
        return encoded
    return pc.if_else(rows.is_valid(), encoded, pa.scalar(_NULL_BRANCH, pa.binary()))


def _longs(values: Ints) -> pa.Array:
    """Zigzag numbers of one to ten bytes, seven bits each, the least significant first."""
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    widths = np.ones(len(values), dtype=np.int64)
    for width in range(1, _VARINT_BYTES):
        longer = zigzag >= np.uint64(1 << 7 * width)
        if not longer.any():
            break
        widths += longer
    columns = np.arange(int(widths.max(initial=1)), dtype=np.uint64)
    septets = ((zigzag[:, None] >> (columns * np.uint64(7))) & np.uint64(0x7F)).astype(np.uint8)
    septets |= np.where(columns + np.uint64(1) < widths[:, None].view(np.uint64), 0x80, 0).astype(np.uint8)
    return _binary(septets[columns < widths[:, None].view(np.uint64)], _offsets(widths))


def _offsets(widths: Ints) -> npt.NDArray[np.int32]:
    return np.concatenate(([0], np.cumsum(widths))).astype(np.int32)


def _binary(values: npt.NDArray[Any], offsets: npt.NDArray[np.int32]) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _fixed_width(values: npt.NDArray[Any]) -> pa.Array:
    return _fixed_rows(np.ascontiguousarray(values).view(np.uint8), values.itemsize)


def _fixed_rows(raw: npt.NDArray[np.uint8], width: int) -> pa.Array:
    return _binary(raw, (np.arange(raw.size // width + 1) * width).astype(np.int32))


def _sized(values: pa.Array) -> pa.Array:
    """Bytes with their length as a prefix."""
    return _joined([_longs(np.asarray(pc.binary_length(values)).astype(np.int64)), values], len(values))


def _lists(rows: pa.Array, items: Any, sized: bool) -> pa.Array:
    """Items after their count and before the end marker; an empty list is the end marker alone."""
    rows = _as_lists(rows)
    lengths = np.asarray(_filled(pc.list_value_length(rows), 0)).astype(np.int64)
    encoded = encode_records(rows.flatten(), items, sized=sized)
    ends = np.frombuffer(encoded.buffers()[1], np.int32, len(encoded) + 1, encoded.offset * 4)
    places = pa.py_buffer(np.ascontiguousarray(ends[_offsets(lengths)]))
    together = pa.Array.from_buffers(pa.binary(), len(rows), [None, places, encoded.buffers()[2]])
    end = pa.repeat(pa.scalar(_END, pa.binary()), len(rows))
    head = [_longs(lengths)]
    if sized:
        cuts = ends[_offsets(lengths)].astype(np.int64)
        head = [_longs(-lengths), _longs(cuts[1:] - cuts[:-1])]
    full = _joined([*head, together, end], len(rows))
    return full if (lengths > 0).all() else pc.if_else(pa.array(lengths > 0), full, pa.scalar(_END, pa.binary()))


def _as_lists(rows: pa.Array) -> pa.Array:
    """A map as a list of pairs."""
    if not pa.types.is_map(rows.type):
        return rows
    pairs = pa.StructArray.from_arrays([rows.keys, rows.items], names=["key", "value"])
    buffers = rows.buffers()[:2]
    return pa.Array.from_buffers(pa.list_(pairs.type), len(rows), buffers, rows.null_count, rows.offset, [pairs])

"""Avro records from Arrow columns, without a Python object per record (Avro specification, Binary Encoding).

The encoding of a record is that of its fields behind each other, so every field becomes a column of bytes and a
record is those columns joined; the values buffer of the joined column is what an Avro block holds.
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
_NULL_BRANCH, _VALUE_BRANCH, _END = b"\x00", b"\x02", b"\x00"

Ints = npt.NDArray[np.int64]


def encode_records(rows: pa.Array, schema: Any) -> pa.Array:
    """One binary value per row: the row in the encoding of an Avro schema; optional types are ``["null", type]``."""
    if isinstance(schema, list):
        return _optional(rows, schema)
    name = schema if isinstance(schema, str) else schema["type"]
    match name:
        case "null":
            return pa.repeat(pa.scalar(b"", pa.binary()), len(rows))
        case "int" | "long":
            return _longs(np.asarray(_filled(rows, 0)).astype(np.int64, copy=False))
        case "string" | "bytes":
            return _sized(_filled(rows.cast(pa.binary()), b""))
        case "boolean":
            return _fixed_width(np.asarray(_filled(rows, False)).astype(np.uint8))
        case "float" | "double":
            return _fixed_width(np.asarray(_filled(rows, 0.0)))
        case "fixed":
            return _filled(rows.cast(pa.binary()), bytes(schema["size"]))
        case "array":
            return _lists(rows, schema["items"])
        case "record":
            return _joined([encode_records(rows.field(f["name"]), f["type"]) for f in schema["fields"]], len(rows))
    raise InputError(f"cannot write Avro type {name!r}", type=name)


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
    """Some value for nulls: their encoding is thrown away by the union around them."""
    return array.fill_null(value) if array.null_count > 0 else array


def _joined(columns: list[pa.Array], length: int) -> pa.Array:
    if len(columns) == 0:
        return pa.repeat(pa.scalar(b"", pa.binary()), length)
    return columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, pa.scalar(b"", pa.binary()))


def _optional(rows: pa.Array, schema: list[Any]) -> pa.Array:
    (inner,) = (option for option in schema if option != "null")
    if rows.null_count == len(rows):
        return pa.repeat(pa.scalar(_NULL_BRANCH, pa.binary()), len(rows))
    value = pa.repeat(pa.scalar(_VALUE_BRANCH, pa.binary()), len(rows))
    encoded = _joined([value, encode_records(rows, inner)], len(rows))
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
    raw = np.ascontiguousarray(values).view(np.uint8)
    return _binary(raw, (np.arange(len(values) + 1) * values.itemsize).astype(np.int32))


def _sized(values: pa.Array) -> pa.Array:
    """Bytes behind their length."""
    return _joined([_longs(np.asarray(pc.binary_length(values)).astype(np.int64)), values], len(values))


def _lists(rows: pa.Array, items: Any) -> pa.Array:
    """Items behind their number and before the end mark; an empty list is the end mark alone."""
    lengths = np.asarray(_filled(pc.list_value_length(rows), 0)).astype(np.int64)
    encoded = encode_records(rows.flatten(), items)
    ends = np.frombuffer(encoded.buffers()[1], np.int32, len(encoded) + 1, encoded.offset * 4)
    places = pa.py_buffer(np.ascontiguousarray(ends[_offsets(lengths)]))
    together = pa.Array.from_buffers(pa.binary(), len(rows), [None, places, encoded.buffers()[2]])
    end = pa.repeat(pa.scalar(_END, pa.binary()), len(rows))
    full = _joined([_longs(lengths), together, end], len(rows))
    return full if (lengths > 0).all() else pc.if_else(pa.array(lengths > 0), full, pa.scalar(_END, pa.binary()))

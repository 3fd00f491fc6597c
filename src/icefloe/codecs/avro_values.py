"""Arrow columns from and to what Avro records hold: raw partition values, and maps from column ids to measures."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.avro_schemas import MeasureMap, decimal_bytes, raw_type
from icefloe.codecs.single_value import decode_bounds, encode_bounds
from icefloe.model.arrow import arrow_type
from icefloe.model.types import Decimal, Type

_DECIMAL_BYTES = 16


def from_raw(raw: pa.Array, type_: Type, *, where: str) -> pa.Array:
    """Values of a type from numbers, text or bytes."""
    target = arrow_type(type_)
    if raw.type == target:
        return raw
    return decode_bounds(raw, type_, where=where) if pa.types.is_binary(raw.type) else raw.cast(target)


def to_raw(values: pa.Array, type_: Type) -> pa.Array:
    """Numbers, text or bytes as Avro stores values of a type."""
    raw = raw_type(type_)
    if values.type == raw:
        return values
    if isinstance(type_, Decimal):
        return _fixed_decimals(values, decimal_bytes(type_.precision))
    return encode_bounds(values, type_) if pa.types.is_binary(raw) else values.cast(raw)


def _fixed_decimals(values: pa.Array, size: int) -> pa.Array:
    """Unscaled values as big-endian two's complement of a fixed number of bytes."""
    wide = values.cast(pa.decimal128(38, values.type.scale))
    stored = np.frombuffer(wide.buffers()[1], np.uint8)[wide.offset * _DECIMAL_BYTES :]
    rows = stored[: len(wide) * _DECIMAL_BYTES].reshape(len(wide), _DECIMAL_BYTES)
    turned = np.ascontiguousarray(rows[:, ::-1][:, _DECIMAL_BYTES - size :])
    fixed = pa.Array.from_buffers(pa.binary(size), len(wide), [None, pa.py_buffer(turned)])
    return pc.if_else(values.is_valid(), fixed.cast(pa.binary()), None)


def split_map(pairs: pa.Array) -> dict[int, pa.Array]:
    """A column of lists of (key, value) as one column per key; of equal keys in a row the last counts."""
    rows = np.asarray(pc.list_parent_indices(pairs))
    flat = pairs.flatten()
    keys, values = np.asarray(flat.field(0)), flat.field(1)
    order = np.argsort(keys, kind="stable")
    found, starts = np.unique(keys[order], return_index=True)
    ends = np.append(starts[1:], len(keys))[: len(found)]
    columns: dict[int, pa.Array] = {}
    for key, start, end in zip(found.tolist(), starts, ends, strict=True):
        chosen = order[start:end]
        if len(chosen) == len(pairs) and np.array_equal(rows[chosen], np.arange(len(pairs))):
            columns[key] = values.take(pa.array(chosen))
            continue
        place = np.full(len(pairs), -1, dtype=np.int64)
        place[rows[chosen]] = chosen
        columns[key] = values.take(pa.array(place, mask=place < 0))
    return columns


def join_map(columns: Mapping[int, pa.Array], shape: MeasureMap, length: int) -> pa.Array:
    """One column per key as a column of lists of (key, value), in order of keys; null where a row has no value."""
    kept = {key: columns[key] for key in sorted(columns) if columns[key].null_count < length}
    type_ = shape.arrow
    if len(kept) == 0:
        return pa.nulls(length, type_)
    valid = np.column_stack([np.asarray(column.is_valid()) for column in kept.values()])
    by_row = np.arange(length * len(kept)).reshape(len(kept), length).T[valid]
    value_type = type_.value_type.field(1).type
    values = pa.concat_arrays([column.cast(value_type) for column in kept.values()]).take(pa.array(by_row))
    keys = pa.array(np.broadcast_to(np.array(list(kept), np.int32), valid.shape)[valid])
    per_row = valid.sum(axis=1)
    offsets = np.concatenate(([0], np.cumsum(per_row))).astype(np.int32)
    pairs = pa.StructArray.from_arrays([keys, values], fields=list(type_.value_type))
    return pa.ListArray.from_arrays(pa.array(offsets), pairs, type=type_, mask=pa.array(per_row == 0))

"""Arrow columns from and to what records of files hold: raw partition values, and maps from column ids to measures.

The statistics columns of an entry table are the maps of a data file, turned (spec: Manifests).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.avro_schemas import MEASURE_MAPS, MeasureMap, raw_type
from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.value_sizes import decimal_bytes
from icefloe.codecs.value.bounds import decode_bounds, encode_bounds, known_bounds, without_nan
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import BOUNDS, Measure, column_key, parse_stat, stat
from icefloe.model.schema.types import Decimal, Type

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


def statistics_of(
    maps: Mapping[MeasureMap, Mapping[int, pa.Array]], context: ManifestContext, *, where: str
) -> dict[str, pa.Array]:
    """The statistics columns of the columns that the table knows, from the measures by column id.

    A bound that does not decode is unknown. A partition value must: it says where a file belongs.
    """
    columns: dict[str, pa.Array] = {}
    for shape, measured in maps.items():
        for column_id, values in measured.items():
            type_ = context.column_type(column_id)
            if type_ is None:
                continue
            if shape.value == "bytes":
                at = f"{where}: {shape.name} of column {column_id}"
                values = without_nan(known_bounds(values, type_, where=at))
            columns[stat(shape.measure, column_key(column_id))] = values
    return columns


def maps_of(columns: Mapping[str, pa.Array], length: int, context: ManifestContext) -> dict[MeasureMap, pa.Array]:
    """The statistics of table columns as maps, each a column of (key, value) lists; partition fields are left out."""
    measured: dict[Measure, dict[int, pa.Array]] = {shape.measure: {} for shape in MEASURE_MAPS}
    for name, values in columns.items():
        column = parse_stat(name)
        if column is None or column.key.is_partition or column.measure not in measured:
            continue
        type_ = context.column_type(column.key.id)
        if type_ is not None:
            stored = encode_bounds(values, type_) if column.measure in BOUNDS else values
            measured[column.measure][column.key.id] = stored
    return {shape: join_map(measured[shape.measure], shape, length) for shape in MEASURE_MAPS}

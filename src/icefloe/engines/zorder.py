"""Z-order: one order for several columns, by the interleaved bits of their values.

Each value becomes 64 bits whose unsigned order is that of the values: numbers, dates and times as integers with the
sign bit inverted, floating-point numbers and decimals by the bits of a double, texts and bytes by their first 8 bytes.
Null is 0. The first bits of all columns come first, then the second ones, and so on. The result is 8 integers for each
row, the first of which has the interleaved first bytes of all columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.model.columns import one_array
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Decimal,
    Field,
    Type,
)
from icefloe.transforms.ordering import ordered
from icefloe.transforms.source_columns import column_at, column_path

Words = npt.NDArray[np.uint64]

BYTES = 8  # of a value
MAX_COLUMNS = 8
SIGN_BIT = 1 << 63
_WHOLE = (BOOLEAN, INT, LONG, DATE, TIME, TIMESTAMP, TIMESTAMPTZ)
_TEXTS = (STRING, BINARY)


def z_columns(names: Sequence[str], schema: Schema) -> tuple[Field, ...]:
    """The columns of a z-order; InputError if there are none, too many, or one has a type without an order of bits."""
    if not 1 <= len(names) <= MAX_COLUMNS:
        raise InputError(f"zorder_by: expected 1 to {MAX_COLUMNS} columns, got {len(names)}")
    fields = tuple(schema.field(name) for name in names)
    if len({field.id for field in fields}) < len(fields):
        raise InputError(f"zorder_by: a column is named twice: {', '.join(names)}")
    for name, field in zip(names, fields, strict=True):
        if len(column_path(schema, field.id)) == 0 or not (
            is_whole(field.type) or has_fraction(field.type) or is_text(field.type)
        ):
            raise InputError(
                f"zorder_by: column {name!r} of type {field.type} has no z-order; use numbers, texts, dates or times",
                field=name,
            )
    return fields


def is_whole(type_: Type) -> bool:
    """Whether values of a type are ordered as integers."""
    return type_ in _WHOLE


def has_fraction(type_: Type) -> bool:
    """Whether values of a type are ordered as doubles."""
    return type_ in (FLOAT, DOUBLE) or isinstance(type_, Decimal)


def is_text(type_: Type) -> bool:
    """Whether values of a type are ordered by their first bytes."""
    return type_ in _TEXTS


@cache
def spread(columns: int) -> tuple[int, ...]:
    """For each byte its bits, ``columns`` apart: the eighth bit of every result is the first bit of the byte."""
    return tuple(sum((byte >> bit & 1) << (bit * columns) for bit in range(8)) for byte in range(256))


def z_indices(rows: pa.Table, columns: Sequence[Field], schema: Schema) -> pa.Array:
    """The row numbers of a table in z-order; rows with equal bits stay in their order.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> schema = parse_ddl("x int, y int")
    >>> rows = pa.table({"x": pa.array([1, 1, 0, 0], pa.int32()), "y": pa.array([1, 0, 1, 0], pa.int32())})
    >>> z_indices(rows, schema.fields, schema).to_pylist()
    [3, 2, 1, 0]
    """
    words = [_words(column_at(rows, column_path(schema, field.id)), field.type) for field in columns]
    keys = interleaved(words)
    return pa.array(np.lexsort(keys[::-1]))


def interleaved(words: Sequence[Words]) -> list[Words]:
    """The 8 sort keys of rows, most significant first, from the 64 bits of each column."""
    table = np.array(spread(len(words)), np.uint64)
    keys = []
    for byte in range(BYTES):
        shift = np.uint64(8 * (BYTES - 1 - byte))
        key = np.zeros(len(words[0]), np.uint64)
        for position, word in enumerate(words):
            bits = table[((word >> shift) & np.uint64(255)).astype(np.int64)]
            key |= bits << np.uint64(len(words) - 1 - position)
        keys.append(key)
    return keys


def _words(values: pa.ChunkedArray, type_: Type) -> Words:
    """The 64 bits of each value; 0 for null."""
    array = one_array(values)
    if is_text(type_):
        return _prefixes(array)
    if has_fraction(type_):
        array = ordered(array.cast(pa.float64()))
    elif type_ == BOOLEAN:
        array = array.cast(pa.int8())
    elif not pa.types.is_integer(array.type):  # days and microseconds
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    numbers = np.asarray(pc.fill_null(array.cast(pa.int64()), 0)).view(np.uint64) ^ np.uint64(SIGN_BIT)
    return np.where(np.asarray(array.is_valid()), numbers, np.uint64(0))


def _prefixes(array: pa.Array) -> Words:
    """The first 8 bytes of each text, followed by zeros if it is shorter."""
    start = pc.binary_slice(pc.fill_null(array.cast(pa.large_binary()), b""), 0, BYTES).cast(pa.large_binary())
    _, offsets_buffer, data_buffer = start.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64, len(start) + 1, start.offset * 8)
    data = (
        np.zeros(1, np.uint8) if data_buffer is None or data_buffer.size == 0 else np.frombuffer(data_buffer, np.uint8)
    )
    positions = offsets[:-1, None] + np.arange(BYTES)
    taken = data[np.minimum(positions, len(data) - 1)]
    taken = np.where(positions < offsets[1:, None], taken, 0).astype(np.uint8)
    words: Words = np.ascontiguousarray(taken).view(">u8").reshape(-1).astype(np.uint64)
    return words

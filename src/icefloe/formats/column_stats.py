"""Statistics of columns of files and row groups, as the statistics columns of entries (spec: Manifests).

Footers have bounds as numbers and bytes. They are compared in that form, which has the order of the format: UTF-8 bytes
are ordered like code points. Then they are truncated to the length of the metrics mode, and the bounds of a column of
many files become one Arrow array. An unknown count or bound is null.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from icefloe.formats.read.promotion import readable, storage
from icefloe.formats.write.measure import Measures
from icefloe.formats.write.metrics import DEFAULT, Modes
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import Measure, column_key, stat
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import UNKNOWN, Field, Geography, Geometry, has_value_sizes

Raw: TypeAlias = Any  # a bool, int, float or bytes that has the order of the column's values
_Truncate: TypeAlias = Callable[[Raw], Raw | None]

_MAX_CODE_POINT = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_EXACT = decimal.Context(prec=76)
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY_SECONDS = 86_400
_MAX_INT = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The known statistics of a column of one file or row group.

    The bounds are ``exact`` if they are known to be values of the column.
    """

    values: int | None = None
    nulls: int | None = None
    nans: int | None = None
    lower: Raw | None = None
    upper: Raw | None = None
    exact: bool = False
    value_bytes: int | None = None  # of all values together, uncompressed


NOTHING = Known()


class Source(Protocol):
    """A file or a row group that has statistics of its columns."""

    def known(self, column: Field, type_: pa.DataType) -> Known:
        """The known statistics of a column of the table; ``type_`` is its Arrow type."""
        ...


@dataclass(frozen=True, slots=True)
class Measured:
    """The statistics that the writer of a file measured."""

    measures: Mapping[int, Measures]

    def known(self, column: Field, type_: pa.DataType) -> Known:
        """The measures of a column."""
        measures = self.measures.get(column.id)
        return NOTHING if measures is None else known_of(measures)


def known_of(measures: Measures) -> Known:
    """Measures with comparable bounds."""
    return Known(
        values=measures.values,
        nulls=measures.nulls,
        nans=measures.nans,
        lower=None if measures.lower is None else raw_value(measures.lower),
        upper=None if measures.upper is None else raw_value(measures.upper),
        exact=True,
        value_bytes=measures.value_bytes,
    )


def statistics_of(sources: Sequence[Source], schema: Schema, modes: Modes | None) -> dict[str, pa.Array]:
    """The statistics columns of all measured columns, one row for each source.

    Without modes all columns have them, with untruncated bounds, but not what only entries record: whether bounds are
    tight, and average sizes.
    """
    arrays: dict[str, pa.Array] = {}
    counts: dict[str, list[int | None]] = {}
    for id_, column in schema.measured.items():
        mode = None if modes is None else modes.get(id_, DEFAULT)
        if column.type == UNKNOWN or (mode is not None and not mode.counts):
            continue
        type_, key = arrow_type(column.type), column_key(id_)
        known = [source.known(column, type_) for source in sources]
        counts[stat(Measure.VALUES, key)] = [stats.values for stats in known]
        counts[stat(Measure.NULLS, key)] = [stats.nulls for stats in known]
        if pa.types.is_floating(type_):
            counts[stat(Measure.NANS, key)] = [stats.nans for stats in known]
        if mode is not None and has_value_sizes(column.type):
            sizes = pa.array([_average(stats) for stats in known], pa.int32())
            arrays |= {} if sizes.null_count == len(sizes) else {stat(Measure.AVERAGE_SIZE, key): sizes}
        if mode is not None and not mode.bounds:
            continue
        is_shape = isinstance(column.type, (Geometry, Geography))  # its bounds are corners, which are short
        down, up = _truncation(type_, None if mode is None or is_shape else mode.length)
        lower = [None if stats.lower is None else down(stats.lower) for stats in known]
        upper = [None if stats.upper is None else up(stats.upper) for stats in known]
        arrays[stat(Measure.LOWER, key)] = _bounds_array(lower, type_)
        arrays[stat(Measure.UPPER, key)] = _bounds_array(upper, type_)
        if mode is not None and not is_shape:
            tight = pa.array(list(map(_is_tight, known, lower, upper)), pa.bool_())
            arrays |= {} if tight.null_count == len(tight) else {stat(Measure.TIGHT, key): tight}
    # One array for all counts, as building many small arrays takes longer than filling them.
    together = pa.array([count for column_counts in counts.values() for count in column_counts], pa.int64())
    return arrays | {name: together.slice(i * len(sources), len(sources)) for i, name in enumerate(counts)}


def _average(stats: Known) -> int | None:
    """The average size of the values that are not null, in bytes; none if it is unknown or there are no values."""
    if stats.value_bytes is None or stats.values is None or stats.nulls is None or stats.values <= stats.nulls:
        return None
    return min(round(stats.value_bytes / (stats.values - stats.nulls)), _MAX_INT)


def _is_tight(stats: Known, lower: Raw | None, upper: Raw | None) -> bool | None:
    """Whether bounds are the least and the greatest value; none if that is unknown or there are no bounds.

    A floating-point zero is stored without its sign, so it is not known to be the value.
    """
    if lower is None or upper is None:
        return None
    if not (_is_untruncated(stats.lower, lower) and _is_untruncated(stats.upper, upper)):
        return False
    unsigned = any(isinstance(bound, float) and bound == 0.0 for bound in (lower, upper))
    return True if stats.exact and not unsigned else None


def bound_decoder(file_type: pa.DataType, table_type: pa.DataType) -> Callable[[Raw], Raw] | None:
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
            return _scaled_by(_DAY_SECONDS * per_second)
        return _scaled_by(per_second // _PER_SECOND[stored.unit])
    return _same


def _scaled_by(factor: int) -> Callable[[Raw], Raw]:
    return _same if factor == 1 else lambda raw: raw * factor


def _same(raw: Raw) -> Raw:
    return raw


def _unscaled(raw: Raw) -> int:
    return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)


def raw_value(scalar: pa.Scalar) -> Raw:
    """A value in the plain form in which bounds are compared.

    >>> raw_value(pa.scalar("a")), raw_value(pa.scalar(7, pa.date32())), raw_value(pa.scalar(decimal.Decimal("1.50")))
    (b'a', 7, 150)
    """
    type_, kinds = scalar.type, pa.types
    if kinds.is_decimal(type_):
        return int(scalar.as_py().scaleb(type_.scale, _EXACT))
    if kinds.is_temporal(type_):
        return scalar.value
    value = scalar.as_py()
    return value.encode() if isinstance(value, str) else value


def _truncation(type_: pa.DataType, length: int | None) -> tuple[_Truncate, _Truncate]:
    """Functions that truncate lower and upper bounds to a length, for text and bytes; zeros get a sign."""
    if pa.types.is_string(type_):
        if length is None:
            return _text, _text
        return partial(truncate_text_down, length=length), partial(truncate_text_up, length=length)
    if pa.types.is_binary(type_) and length is not None:
        return partial(truncate_bytes_down, length=length), partial(truncate_bytes_up, length=length)
    return (_zero_down, _zero_up) if pa.types.is_floating(type_) else (_same, _same)


def _is_untruncated(raw: Raw, kept: Raw) -> bool:
    """Whether a bound was not truncated."""
    return bool(raw == (kept.encode() if isinstance(kept, str) else kept))


def _zero_down(value: float) -> float:
    return -0.0 if value == 0.0 else value


def _zero_up(value: float) -> float:
    return 0.0 if value == 0.0 else value


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:  # truncated inside a character
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


def _bounds_array(values: list[Raw | None], type_: pa.DataType) -> pa.Array:
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

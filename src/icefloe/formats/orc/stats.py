"""Statistics of the stripes of an ORC file, by field id (spec: Appendix A, ORC).

The bounds of a file are taken only where they are sure: not of floating-point columns that may hold a NaN, and those of
timestamps with room, because writers disagree about how they round times before 1970.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from icefloe.codecs.orc.tail import OrcColumn, OrcStripe
from icefloe.formats.read.column_stats import NOTHING, Known, stat_columns
from icefloe.formats.read.promotion import readable
from icefloe.formats.write.bounds import Raw
from icefloe.model.arrow.conform import FIELD_ID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field

_ROOM_MS = 1_000
_PER_MS = {"us": 1_000, "ns": 1_000_000}
_EXACT = decimal.Context(prec=76)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcLeaf:
    """A primitive column: its number among all columns of the file, nested ones and those around them included."""

    number: int
    type: pa.DataType


def orc_leaves(schema: pa.Schema, key: bytes = FIELD_ID) -> Mapping[int, OrcLeaf]:
    """The primitive columns of a file that are not inside a list or a map, by the field id in their metadata."""
    return dict(_leaves(list(schema), 1, key))


def _leaves(fields: list[pa.Field], number: int, key: bytes) -> Iterator[tuple[int, OrcLeaf]]:
    for field in fields:
        id_ = (field.metadata or {}).get(key, b"")
        if isinstance(field.type, pa.StructType):
            yield from _leaves(list(field.type), number + 1, key)
        elif id_.isdigit() and field.type.num_fields == 0:
            yield int(id_), OrcLeaf(number=number, type=field.type)
        number += _width(field.type)


def _width(type_: pa.DataType) -> int:
    """How many columns a field of this type has in the file, itself included."""
    if isinstance(type_, pa.MapType):
        return 1 + _width(type_.key_type) + _width(type_.item_type)
    return 1 + sum(_width(type_.field(i).type) for i in range(type_.num_fields))


def stripe_stats(stripes: tuple[OrcStripe, ...], stored: pa.Schema, schema: Schema) -> pa.Table:
    """One row for each stripe: its record count and the statistics of the schema's columns."""
    leaves = orc_leaves(stored)
    counts = pa.array([stripe.rows for stripe in stripes], pa.int64())
    units = [_StripeUnit(stripe=stripe, leaves=leaves) for stripe in stripes]
    return pa.table({"record_count": counts, **stat_columns(units, schema, None)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _StripeUnit:
    """One stripe as a source of statistics."""

    stripe: OrcStripe
    leaves: Mapping[int, OrcLeaf]

    def known(self, column: Field, type_: pa.DataType) -> Known:
        """The statistics of a column in the stripe; none if absent or of another type."""
        leaf = self.leaves.get(column.id)
        if leaf is None or leaf.number >= len(self.stripe.columns):
            return NOTHING
        statistics = self.stripe.columns[leaf.number]
        lower, upper = _bounds(statistics, leaf.type, type_)
        return Known(
            values=self.stripe.rows,
            nulls=None if statistics.values is None else self.stripe.rows - statistics.values,
            nans=0 if statistics.no_nans else None,
            lower=lower,
            upper=upper,
        )


def _bounds(statistics: OrcColumn, file_type: pa.DataType, table_type: pa.DataType) -> tuple[Raw | None, Raw | None]:
    """The bounds as comparable values of the table's type; none if the file's type cannot be read as that."""
    if statistics.lower is None or statistics.upper is None or not readable(file_type, table_type):
        return None, None
    if pa.types.is_timestamp(table_type):
        if not pa.types.is_timestamp(file_type):  # a date column promoted to timestamp
            return None, None
        per_ms = _PER_MS[table_type.unit]
        ends = (statistics.lower - _ROOM_MS) * per_ms, (statistics.upper + _ROOM_MS + 1) * per_ms
    elif pa.types.is_decimal(table_type):
        ends = _unscaled(statistics.lower, table_type.scale), _unscaled(statistics.upper, table_type.scale)
    else:
        ends = statistics.lower, statistics.upper
    return ends if all(_is_value(end, table_type) for end in ends) else (None, None)


def _is_value(value: Raw | None, type_: pa.DataType) -> bool:
    """Whether a bound is valid for the type: a damaged file may contain anything."""
    kinds = pa.types
    if kinds.is_boolean(type_) or kinds.is_floating(type_):
        return isinstance(value, bool if kinds.is_boolean(type_) else float)
    if kinds.is_string(type_):
        return isinstance(value, bytes)
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    if kinds.is_decimal(type_):
        return bool(abs(value) < 10**type_.precision)
    whole = kinds.is_integer(type_) or kinds.is_temporal(type_)
    return bool(whole and -(2 ** (type_.bit_width - 1)) <= value < 2 ** (type_.bit_width - 1))


def _unscaled(text: Raw, scale: int) -> int | None:
    """A decimal written as text, as the integer that it is without its point; none if it has more digits."""
    try:
        scaled = decimal.Decimal(str(text, "ascii") if isinstance(text, bytes) else "NaN").scaleb(scale, _EXACT)
    except (decimal.DecimalException, UnicodeDecodeError):
        return None
    return int(scaled) if scaled.is_finite() and scaled == scaled.to_integral_value() else None

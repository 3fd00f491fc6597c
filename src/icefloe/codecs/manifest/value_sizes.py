"""Sizes of columns (v1-v3 manifests), and average sizes of their values (spec: Manifests; V4 proposal)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.value.bounds import FORMATS
from icefloe.model.columns import Column
from icefloe.model.entries import Measure
from icefloe.model.schema.types import BOOLEAN, UUID, Decimal, Fixed, Type, has_value_sizes

_MAX_INT = 2**31 - 1
_WIDTHS: Mapping[Type, int] = {  # of values, in bytes
    BOOLEAN: 1,
    UUID: 16,
    **{type_: np.dtype(stored).itemsize for type_, stored in FORMATS.items()},
}


def average_sizes(known: Mapping[Measure, Column]) -> Column | None:
    """The average size of a column's values in each row, as recorded, or else from the size of the column in the file.

    Manifests of versions 1 to 3 record only the latter. None if no row has either.
    """
    recorded, sizes = known.get(Measure.AVERAGE_SIZE), known.get(Measure.COLUMN_SIZE)
    if sizes is None or (recorded is not None and recorded.null_count == 0):
        return recorded
    if (values := value_counts(known)) is None:
        return recorded
    values = pc.if_else(pc.greater(values, 0), values, None).cast(pa.float64())
    average = pc.min_element_wise(pc.round(pc.divide(sizes.cast(pa.float64()), values)), _MAX_INT, skip_nulls=False)
    average = average.cast(pa.int32())
    return average if recorded is None else pc.coalesce(recorded, average)


def column_sizes(known: Mapping[Measure, pa.Array], type_: Type) -> pa.Array | None:
    """The size of a column in each row: as recorded, or else that of its values, uncompressed. None if unknown."""
    recorded, values = known.get(Measure.COLUMN_SIZE), value_counts(known)
    width = known.get(Measure.AVERAGE_SIZE) if has_value_sizes(type_) else _WIDTHS.get(type_)
    if isinstance(type_, (Fixed, Decimal)):
        width = type_.length if isinstance(type_, Fixed) else decimal_bytes(type_.precision)
    if values is None or width is None:
        return recorded
    sizes = pc.multiply(values, width.cast(pa.int64()) if isinstance(width, pa.Array) else width)
    return sizes if recorded is None else pc.coalesce(recorded, sizes)


def decimal_bytes(precision: int) -> int:
    """The fewest bytes that hold every unscaled value of a precision.

    >>> decimal_bytes(9), decimal_bytes(38)
    (4, 16)
    """
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8


def value_counts(known: Mapping[Measure, Column]) -> Column | None:
    """How many values that are not null a column has in each row; nulls that were not counted count as values."""
    values, nulls = known.get(Measure.VALUES), known.get(Measure.NULLS)
    if values is None or nulls is None:
        return values
    return pc.subtract(values, pc.fill_null(nulls, 0))

"""Converts bounds that were written before a column was promoted to its current type (spec: Schema Evolution).

Manifests keep bounds as they were written, and another commit may promote a column while a writer still has bounds of
the old type. After the conversion, all bounds of a column have one type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.value.bounds import UNITS_PER_DAY, promoted_numbers
from icefloe.errors import InputError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import BOUNDS, column_key, stat
from icefloe.model.schema.types import Primitive, Type

_BYTES: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)
_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_temporal,
    lambda type_: pa.types.is_integer(type_) or pa.types.is_date(type_),  # the result of day is either
    lambda type_: any(is_bytes(type_) for is_bytes in _BYTES),
)


def promoted(array: pa.Array, type_: Type) -> pa.Array:
    """Bounds as values of a promoted type; dates beyond its range become the first or last timestamp.

    Arrow's own error if the values cannot have that type; a text is never read as a number.
    """
    target = arrow_type(type_)
    if array.type == target:
        return array
    if array.null_count < len(array) and not any(is_kind(array.type) and is_kind(target) for is_kind in _KINDS):
        raise pa.ArrowTypeError(f"{array.type} cannot become {target}")
    if array.type != pa.date32() or not isinstance(type_, Primitive) or type_ not in UNITS_PER_DAY:
        return array.cast(target)
    days = np.asarray(pc.fill_null(array.cast(pa.int32()), 0))
    return pa.array(promoted_numbers(days, type_), mask=np.asarray(array.is_null())).view(target)


def in_terms_of(entries: pa.Table, context: ManifestContext) -> pa.Table:
    """Entries of files with their bounds promoted to the current types of the table's columns."""
    schema = entries.schema
    for name, (type_, target) in _bounded(context).items():
        index = schema.get_field_index(name)
        if index < 0 or schema.field(index).type == target:
            continue
        try:
            bounds = promoted(entries.column(index).combine_chunks(), type_)
        except MemoryError:
            raise
        except pa.ArrowException as error:
            stored_type = schema.field(index).type
            raise InputError(
                f"table {context.location}: {name} of new files is {stored_type}, which is no {type_}: {error}",
                statistics=name,
            ) from error
        entries = entries.set_column(index, name, bounds)
    return entries


@lru_cache(maxsize=64)
def _bounded(context: ManifestContext) -> dict[str, tuple[Type, pa.DataType]]:
    """The types of all bounds of columns that entries of a table may have, by their names.

    Partition values are left out: no promotion is allowed that makes them anything but a wider number.
    """
    types = {i: type_ for i in context.measured() if (type_ := context.column_type(i)) is not None}
    return {stat(end, column_key(i)): (type_, arrow_type(type_)) for i, type_ in types.items() for end in BOUNDS}

"""Converts user data to the layouts that Arrow computes with (spec: Schemas and Data Types).

Polars passes text as views, categories as dictionaries and repeated values as runs. Arrow has few kernels for these
layouts, and cannot select rows of a view. A dictionary or a run may also contain nulls that the null count of the array
does not include.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from icefloe.errors import InputError
from icefloe.limits import DEFAULT


def plain(array: pa.Array, depth: int = 0) -> pa.Array:
    """The same values without dictionaries, runs, views and extension types, at every depth.

    >>> str(plain(pa.array([["a"], None], pa.list_(pa.string_view()))).type)
    'list<item: large_string>'
    """
    if depth > DEFAULT.type_depth:
        raise InputError(f"Arrow types are nested deeper than {DEFAULT.type_depth}")
    kinds, type_ = pa.types, array.type
    if isinstance(type_, pa.BaseExtensionType):
        return plain(array.storage, depth + 1)
    if kinds.is_dictionary(type_):
        return plain(array.dictionary, depth + 1).take(array.indices)
    if kinds.is_run_end_encoded(type_):
        rows = np.arange(array.offset, array.offset + len(array))
        runs = np.searchsorted(array.run_ends.to_numpy(), rows, side="right")
        return plain(array.values, depth + 1).take(pa.array(runs))
    if kinds.is_string_view(type_):
        return array.cast(pa.large_string())
    if kinds.is_binary_view(type_):
        return array.cast(pa.large_binary())
    return _plain_inside(array, depth) if kinds.is_nested(type_) else array


def _plain_inside(array: pa.Array, depth: int) -> pa.Array:
    """A nested array around plain values: the array itself if they are plain already."""
    kinds, type_ = pa.types, array.type
    if kinds.is_struct(type_):
        inner = [array.field(position) for position in range(type_.num_fields)]
    elif kinds.is_map(type_):
        inner = [array.keys, array.items]
    elif kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_fixed_size_list(type_):
        inner = [array.values]
    else:  # list views and unions, which no column accepts
        return array
    values = [plain(child, depth + 1) for child in inner]
    return array if all(new is old for new, old in zip(values, inner, strict=True)) else _around(array, values)


def _around(array: pa.Array, values: list[pa.Array]) -> pa.Array:
    """A nested array as it is, but with other values inside."""
    kinds, type_ = pa.types, array.type
    if kinds.is_struct(type_):
        fields = [field.with_type(child.type) for field, child in zip(type_, values, strict=True)]
        return pa.StructArray.from_arrays(values, fields=fields, mask=array.is_null())
    if kinds.is_map(type_):
        key, item = (
            field.with_type(child.type)
            for field, child in zip((type_.key_field, type_.item_field), values, strict=True)
        )
        entries = pa.StructArray.from_arrays(values, fields=[key, item])
        return _rebuilt(array, pa.map_(key, item, type_.keys_sorted), 2, entries)
    element = type_.value_field.with_type(values[0].type)
    if kinds.is_fixed_size_list(type_):
        return _rebuilt(array, pa.list_(element, type_.list_size), 1, values[0])
    return _rebuilt(array, pa.large_list(element) if kinds.is_large_list(type_) else pa.list_(element), 2, values[0])


def _rebuilt(array: pa.Array, type_: pa.DataType, own: int, inside: Any) -> pa.Array:
    """An array of a type, built from another array's first buffers and child arrays."""
    return pa.Array.from_buffers(type_, len(array), array.buffers()[:own], array.null_count, array.offset, [inside])

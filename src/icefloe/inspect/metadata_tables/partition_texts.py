"""Partition values as texts, for the summaries in ``manifests`` (spec: Partition Transforms).

The texts are those of Apache Iceberg: ``2026-11`` for a month, ISO 8601 for times, Base64 for bytes.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.schema.types import UUID, Type
from icefloe.transforms.base import Transform


def partition_texts(values: pa.Array, transform: Transform, type_: Type) -> pa.Array:
    """The texts of partition values; null stays null.

    >>> from icefloe.model.schema.types import INT, TIMESTAMP
    >>> from icefloe.transforms import parse_transform
    >>> partition_texts(pa.array([682, None], pa.int32()), parse_transform("month"), INT).to_pylist()
    ['2026-11', None]
    >>> at = pa.array([1_500_000], pa.timestamp("us"))
    >>> partition_texts(at, parse_transform("identity"), TIMESTAMP).to_pylist()
    ['1970-01-01T00:00:01.5']
    """
    kind = values.type
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return _times(values)
    if pa.types.is_integer(kind):
        return _each(values, lambda value: str(transform.display(value)))
    if type_ == UUID:
        return _each(values, lambda value: str(uuid.UUID(bytes=value)))
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _each(values, lambda value: base64.b64encode(value).decode())
    if pa.types.is_floating(kind):
        return _each(values, repr)
    return values.cast(pa.string())


def _each(values: pa.Array, text: Callable[..., str]) -> pa.Array:
    """The text of each different value, in the rows that have the value."""
    encoded = values.dictionary_encode()
    texts = pa.array([text(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)


def _times(values: pa.Array) -> pa.Array:
    """Times without zeros at the end of the fraction; instants are in UTC."""
    is_instant = pa.types.is_timestamp(values.type) and values.type.tz is not None
    local = values.cast(pa.timestamp(values.type.unit)) if is_instant else values
    texts = pc.replace_substring_regex(local.cast(pa.string()), r"(\.\d*?)0+$", r"\1")
    texts = pc.replace_substring_regex(pc.replace_substring(texts, " ", "T"), r"\.$", "")
    return pc.binary_join_element_wise(texts, "+00:00", "") if is_instant else texts

"""Partition tuples: values of rows, statistics of entries, and names of folders (spec: Partitioning).

A tuple has one plain Python value for each partition field that is not void. Dates and times are days or microseconds
from 1970, because Python's types do not cover the range of the format.
"""

from __future__ import annotations

import base64
import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote_plus

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.columns import one_array
from icefloe.model.entries import Measure, partition_key, stat
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BINARY, UUID, Fixed, Type
from icefloe.transforms import Transform, transform_of
from icefloe.transforms.source_columns import column_at, column_path

Codes: TypeAlias = npt.NDArray[Any]

_MANY_CODES = 2**31
_PATH_LENGTH = 100  # of a name or value in a path: a segment is at most 255 bytes; the UUID makes names unique


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionColumn:
    """A partition field, and how its values are computed and stored."""

    field: PartitionField
    transform: Transform
    path: tuple[str, ...]  # from the top-level column to the source, which may be inside structs
    source: Type
    result: Type
    others: tuple[tuple[tuple[str, ...], Type], ...] = ()  # path and type of further source columns

    def values(self, rows: pa.RecordBatch | pa.Table) -> pa.Array:
        """The partition values of rows."""
        sources = ((self.path, self.source), *self.others)
        columns = [column_at(rows, path) for path, _ in sources]
        return self.transform.apply_to_columns(columns, [type_ for _, type_ in sources])


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The rows of one partition among the rows of a batch; ``rows`` is none when that is all of them."""

    partition: tuple[object, ...]
    rows: pa.Array | None


def partition_fields(schema: Schema, spec: PartitionSpec) -> tuple[PartitionColumn, ...]:
    """The fields of a spec that have values, with their transforms; InputError for an unknown transform."""
    columns = []
    for field in spec.fields:
        if field.is_void:
            continue
        transform, sources = transform_of(field), []
        for source_id in field.source_ids:
            source = schema.by_id.get(source_id)
            if source is None or not transform.is_known or not transform.accepts(source.type):
                what = "a dropped column" if source is None else f"column {schema.names[source.id]!r} ({source.type})"
                raise InputError(f"cannot write partition field {field.name!r}: {field.transform} of {what}")
            sources.append((column_path(schema, source_id), source.type))
        (path, type_), *others = sources
        columns.append(
            PartitionColumn(
                field=field,
                transform=transform,
                path=path,
                source=type_,
                result=transform.result_type(type_),
                others=tuple(others),
            )
        )
    return tuple(columns)


def split(
    batch: pa.RecordBatch | pa.Table, columns: Sequence[PartitionColumn], within: Codes | None = None
) -> list[Group]:
    """The rows of a batch by partition, within a partition in their original order or in that of ``within``."""
    codes: Codes = np.zeros(batch.num_rows, np.int64)
    values: list[tuple[Codes, list[object]]] = []
    for column in columns:
        array = column.values(batch)
        encoded = _plain(array).dictionary_encode(null_encoding="encode")
        own = np.asarray(encoded.indices.cast(pa.int64()))
        values.append((own, [_key(value) for value in encoded.dictionary.to_pylist()]))
        codes = _dense(codes.astype(np.int64) * len(encoded.dictionary) + own)
    order = np.argsort(codes if within is None else codes[within], kind="stable")
    order = order if within is None else within[order]
    starts = np.flatnonzero(np.diff(codes[order].astype(np.int64), prepend=-1)).tolist()
    ends = [*starts[1:], batch.num_rows][: len(starts)]
    groups = []
    for start, end in zip(starts, ends, strict=True):
        partition = tuple(known[own[order[start]]] for own, known in values)
        rows = None if len(starts) == 1 else pa.array(order[start:end])
        groups.append(Group(partition=partition, rows=rows))
    return groups


def _dense(codes: Codes) -> Codes:
    """Codes small enough to be combined with others, and in 16 bits if they fit, which numpy sorts fastest."""
    highest = int(codes.max(initial=0))
    if highest >= _MANY_CODES:
        _, codes = np.unique(codes, return_inverse=True)
        highest = len(codes)
    return codes.astype(np.uint16 if highest < 2**16 else np.int64, copy=False)


def _plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Dates and times as days and microseconds; Python's types do not cover their range."""
    whole = one_array(array)
    if pa.types.is_date(whole.type):
        return whole.view(pa.int32())
    return whole.view(pa.int64()) if pa.types.is_timestamp(whole.type) or pa.types.is_time(whole.type) else whole


def plain_values(array: pa.Array | pa.ChunkedArray) -> list[object]:
    """Partition values as tuples hold them.

    >>> import datetime
    >>> plain_values(pa.array([datetime.date(1970, 1, 3), None]))
    [2, None]
    """
    return [_key(value) for value in _plain(array).to_pylist()]


def _key(value: object) -> object:
    """The value such that equal partitions have equal keys: there is one NaN and one zero."""
    if isinstance(value, float):
        return math.nan if value != value else value + 0.0
    return value


def partition_columns(
    partitions: Sequence[tuple[object, ...]], counts: pa.Array, *, schema: Schema, spec: PartitionSpec
) -> dict[str, pa.Array]:
    """The statistics columns of partition values, one row for each file of ``counts`` rows."""
    arrays: dict[str, pa.Array] = {}
    zero = pa.scalar(0, pa.int64())
    for position, column in enumerate(partition_fields(schema, spec)):
        type_, key = arrow_type(column.result), partition_key(column.field.field_id)
        values = [partition[position] for partition in partitions]
        nans = pa.array([isinstance(value, float) and value != value for value in values])
        array = pc.if_else(nans, pa.scalar(None, type_), pa.array(values, type_))
        is_null = pa.array([value is None for value in values])
        arrays[stat(Measure.LOWER, key)] = array
        arrays[stat(Measure.UPPER, key)] = array
        arrays[stat(Measure.VALUES, key)] = counts
        arrays[stat(Measure.NULLS, key)] = pc.if_else(is_null, counts, zero)
        if pa.types.is_floating(type_):
            arrays[stat(Measure.NANS, key)] = pc.if_else(nans, counts, zero)
    return arrays


def folder(partition: tuple[object, ...], columns: Sequence[PartitionColumn]) -> str:
    """The folder of a partition relative to the data folder, as ``name=value/name=value``; empty for none.

    It is for people only: values are truncated to a length that every file system accepts.
    """
    return "/".join(
        f"{_quoted(column.field.name)}={_quoted(_text(value, column))}"
        for column, value in zip(columns, partition, strict=True)
    )


def _quoted(text: str) -> str:
    letters = [quote_plus(letter, safe="") for letter in text[:_PATH_LENGTH]]
    while sum(map(len, letters)) > _PATH_LENGTH:
        letters.pop()
    return "".join(letters)


def _text(value: object, column: PartitionColumn) -> str:
    type_ = column.result
    if value is None:
        return "null"
    displayed = column.transform.display(value)
    if isinstance(displayed, str):
        return displayed
    if isinstance(value, bytes) and type_ == UUID:
        return str(uuid.UUID(bytes=value))
    if isinstance(value, bytes) and (type_ == BINARY or isinstance(type_, Fixed)):
        return base64.b64encode(value[:_PATH_LENGTH]).decode()
    return str(pa.scalar(value, arrow_type(type_)).cast(pa.string()).as_py())

"""Converts the columns of v1-v3 manifests to entry tables and back, for every file format (spec: Manifests).

A partition tuple becomes the statistics of partition fields, and the maps of metrics become statistics columns. Nothing
is inherited here: rows are returned as they are stored.

The manifest list has the partition spec and the content of a manifest. The file metadata of the manifest itself may
lack both; it is used only where there is no list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.avro.schemas import avro_name
from icefloe.codecs.manifest.avro_schemas import raw_type
from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.entry_checks import sorted_lists
from icefloe.codecs.manifest.field_ids import ENTRY_FIELDS, FILE_FIELDS, MEASURE_MAPS, MeasureMap
from icefloe.codecs.manifest.partition_values import partition_stats
from icefloe.codecs.manifest.value_sizes import decimal_bytes
from icefloe.codecs.value.bounds import decode_bounds, encode_bounds, known_bounds, without_nan
from icefloe.errors import FormatError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import (
    BOUNDS,
    Columns,
    ContentType,
    Measure,
    Status,
    column_key,
    parse_stat,
    partition_key,
    stat,
    to_table,
)
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.types import Decimal, Type

DELETES = "deletes"
_FIRST_SPEC = 0
_DECIMAL_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a manifest as a whole; ``header_spec_id`` is the spec in its own file metadata."""

    format_version: int
    spec: PartitionSpec
    content: ContentType  # DATA_MANIFEST or DELETE_MANIFEST
    header_spec_id: int | None = None

    @property
    def lists_deletes(self) -> bool:
        """Whether the entries are delete files."""
        return self.content is ContentType.DELETE_MANIFEST


def facts_of(
    metadata: Mapping[str, str],
    context: ManifestContext,
    *,
    where: str,
    content: ContentType | None,
    spec_id: int | None,
) -> Facts:
    """The facts of a manifest; ``content`` and ``spec_id`` are those in its manifest list, none without a list."""
    own = metadata.get("content", "data")
    if own not in ("data", DELETES):
        raise FormatError(f"{where}: content is {own!r}, expected data or deletes", location=where)
    header_spec_id = _number(metadata, "partition-spec-id", where)
    chosen = header_spec_id if spec_id is None else spec_id
    chosen = _FIRST_SPEC if chosen is None else chosen
    spec = context.specs.get(chosen)
    if spec is None:
        raise FormatError(f"{where}: has partition spec {chosen}, which the table lacks", location=where)
    if content is None:
        content = ContentType.DELETE_MANIFEST if own == DELETES else ContentType.DATA_MANIFEST
    return Facts(
        format_version=stated_version(metadata, where=where),
        spec=spec,
        content=content,
        header_spec_id=header_spec_id,
    )


def stated_version(metadata: Mapping[str, str], *, where: str) -> int:
    """The format version in the file metadata of a manifest; 1 if there is none."""
    version = _number(metadata, "format-version", where)
    return 1 if version is None else version


def check_tuple(fields: Sequence[tuple[int | None, str]], facts: Facts, *, where: str) -> None:
    """Raises if the partition tuple does not match the listed spec and the manifest itself names another spec.

    ``fields`` are the ids and names of the tuple's fields in the file. Writers of version 1 counted field ids from 1000
    again in every spec, so names are compared too.
    """
    if facts.header_spec_id in (None, facts.spec.spec_id):
        return
    held = set(fields)
    fitting = {part: _ways_to_store(part) for part in facts.spec.fields}
    missing = [part for part, ways in fitting.items() if not part.is_void and held.isdisjoint(ways)]
    strange = held.difference(*fitting.values()) if len(fitting) > 0 else held
    if len(strange) > 0 or len(missing) > 0:
        stored = ", ".join(f"{name} ({id_})" for id_, name in fields)
        expected = ", ".join(f"{part.name} ({part.stored_id})" for part in facts.spec.fields)
        raise FormatError(
            f"{where}: the partition tuple has the fields [{stored}]. The manifest list says partition spec"
            f" {facts.spec.spec_id}, which has the fields [{expected}]; the manifest says {facts.header_spec_id}",
            location=where,
        )


def _ways_to_store(part: PartitionField) -> frozenset[tuple[int | None, str]]:
    """The ids and names that a partition field may have in a file: no id, or a name made safe for Avro."""
    return frozenset((id_, name) for id_ in (part.stored_id, None) for name in (part.name, avro_name(part.name)))


def _number(metadata: Mapping[str, str], key: str, where: str) -> int | None:
    text = metadata.get(key)
    if text is None:
        return None
    if not text.isdecimal() or len(text) > 9:
        raise FormatError(f"{where}: {key} is {text[:40]!r}, expected a number", location=where)
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRows:
    """The columns of a manifest as stored: plain fields by entry column, partition values by field id, measures."""

    length: int
    plain: Mapping[str, pa.Array]
    partition: Mapping[int, pa.Array]
    measures: Mapping[MeasureMap, Mapping[int, pa.Array]] = field(default_factory=dict)


def entry_table(stored: StoredRows, facts: Facts, context: ManifestContext, *, where: str) -> pa.Table:
    """The entry table of a manifest's rows, checked."""
    length = stored.length
    columns: dict[str, pa.Array] = {}
    for slot in (*ENTRY_FIELDS, *FILE_FIELDS):
        column = stored.plain.get(slot.entry)
        column = pa.nulls(length, slot.type) if column is None else column
        if slot.required and column.null_count > 0:
            raise FormatError(f"{where}: {slot.name} (field id {slot.id}) is missing or null", location=where)
        columns[slot.entry] = _without_empty(column) if pa.types.is_list(slot.type) else column
    counts = columns["record_count"]
    columns |= {
        "split_offsets": sorted_lists(columns["split_offsets"]),  # V4 requires what these versions only ask for
        "record_count": pc.if_else(pc.greater_equal(counts, 0), counts, None),  # negative if it is unknown
        "content_type": columns["content_type"].fill_null(int(ContentType.DATA)),
        "file_format": pc.utf8_lower(columns["file_format"]),
        "format_version": pa.repeat(pa.scalar(facts.format_version, pa.int32()), length),
        "partition_spec_id": pa.repeat(pa.scalar(facts.spec.spec_id, pa.int32()), length),
    }
    _check_rows(columns, facts, where)
    columns |= statistics_of(stored.measures, context, where=where)
    for part in facts.spec.fields:
        type_ = context.partition_types.get(part.field_id)
        if type_ is not None and not part.is_void:
            raw = stored.partition.get(part.field_id)
            if raw is None:
                raise FormatError(f"{where}: partition has no field {part.name!r} ({part.field_id})", location=where)
            value = from_raw(raw, type_, where=f"{where}: partition.{part.name}")
            # A file whose number of rows is unknown has a partition value all the same.
            rows = columns["record_count"].fill_null(1)
            columns |= partition_stats(partition_key(part.field_id), value, rows, type_)
    return to_table(columns, length)


def _without_empty(lists: pa.Array) -> pa.Array:
    """Lists with null for empty ones, which some writers store instead of null."""
    empty = pc.equal(pc.list_value_length(lists), 0)
    return pc.if_else(empty, pa.scalar(None, lists.type), lists) if pc.any(empty).as_py() is True else lists


def _check_rows(columns: Columns, facts: Facts, where: str) -> None:
    kind = pc.equal(columns["content_type"], int(ContentType.DATA))
    kind = pc.invert(kind) if facts.lists_deletes else kind
    known = pc.and_(pc.less_equal(columns["content_type"], 2), pc.greater_equal(columns["content_type"], 0))
    status = pc.is_in(columns["status"], value_set=pa.array([int(s) for s in Status], pa.int32()))
    if (row := pc.index(pc.and_(kind, known), False).as_py()) >= 0:
        content, listed = columns["content_type"][row], "deletes" if facts.lists_deletes else "data files"
        rule = f"content {content} does not belong in a manifest of {listed}"
        raise FormatError(f"{where}: row {row}: {rule}", location=where, row=row)
    if (row := pc.index(status, False).as_py()) >= 0:
        raise FormatError(f"{where}: row {row}: unknown status", location=where, row=row)


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

    A bound that cannot be decoded is unknown. A partition value that cannot be decoded is an error.
    """
    columns: dict[str, pa.Array] = {}
    for shape, measured in maps.items():
        for column_id, values in measured.items():
            type_ = context.column_type(column_id)
            if type_ is None:
                continue
            if shape.has_bounds:
                at = f"{where}: {shape.name} of column {column_id}"
                values = without_nan(known_bounds(values, type_, where=at))
            columns[stat(shape.measure, column_key(column_id))] = values
    return columns


def maps_of(columns: Columns, length: int, context: ManifestContext) -> dict[MeasureMap, pa.Array]:
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

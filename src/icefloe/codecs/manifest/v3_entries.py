"""Entry tables from the columns of a v1-v3 manifest, in whatever file format it is stored (spec: Manifests).

The partition tuple becomes the statistics of partition fields, the maps of metrics become statistics columns. Nothing
is inherited here: rows come out as they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.avro_schemas import MeasureMap
from icefloe.codecs.manifest.avro_values import from_raw, statistics_of
from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.entry_columns import partition_stats, to_table
from icefloe.codecs.manifest.v3_fields import ENTRY_FIELDS, FILE_FIELDS
from icefloe.errors import FormatError
from icefloe.model.entries import ContentType, Status, partition_key
from icefloe.model.partition.spec import PartitionSpec

DELETES = "deletes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the key-value metadata of a manifest says."""

    format_version: int
    spec: PartitionSpec
    deletes: bool


def facts_of(metadata: Mapping[str, str], context: ManifestContext, *, where: str, delete: bool | None) -> Facts:
    """The facts of a manifest; ``delete`` is the kind that its list calls it."""
    content = metadata.get("content", "data")
    if content not in ("data", DELETES):
        raise FormatError(f"{where}: content is {content!r}, expected data or deletes", location=where)
    if delete is not None and delete != (content == DELETES):
        raise FormatError(f"{where}: content is {content!r}, its manifest list says otherwise", location=where)
    spec = context.specs.get(_number(metadata, "partition-spec-id", 0, where))
    if spec is None:
        raise FormatError(f"{where}: names a partition spec that the table lacks", location=where)
    version = _number(metadata, "format-version", 1, where)
    return Facts(format_version=version, spec=spec, deletes=content == DELETES)


def _number(metadata: Mapping[str, str], key: str, default: int, where: str) -> int:
    text = metadata.get(key)
    if text is None:
        return default
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
    columns |= {
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
            columns |= partition_stats(partition_key(part.field_id), value, columns["record_count"], type_)
    return to_table(columns, length)


def _without_empty(lists: pa.Array) -> pa.Array:
    """Lists with null for an empty one, which some writers store where they have nothing to tell."""
    empty = pc.equal(pc.list_value_length(lists), 0)
    return pc.if_else(empty, pa.scalar(None, lists.type), lists) if pc.any(empty).as_py() is True else lists


def _check_rows(columns: Mapping[str, pa.Array], facts: Facts, where: str) -> None:
    kind = pc.equal(columns["content_type"], int(ContentType.DATA))
    kind = pc.invert(kind) if facts.deletes else kind
    known = pc.and_(pc.less_equal(columns["content_type"], 2), pc.greater_equal(columns["content_type"], 0))
    status = pc.is_in(columns["status"], value_set=pa.array([int(s) for s in Status], pa.int32()))
    for good, rule in ((pc.and_(kind, known), "content does not belong in this manifest"), (status, "unknown status")):
        if (row := pc.index(good, False).as_py()) >= 0:
            raise FormatError(f"{where}: row {row}: {rule}", location=where, row=row)

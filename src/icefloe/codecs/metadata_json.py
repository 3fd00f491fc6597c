"""Table metadata files: ``*.metadata.json``, plain or gzipped, of every format version (spec: Table Metadata Fields).

Decoding checks what every reader relies on and keeps the keys it does not know. Snapshots stay text until asked for.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

import msgspec

from icefloe.codecs.json_input import Int, Long, Record, decode_json, missing
from icefloe.codecs.schema_json import (
    ExpressionRecord,
    PartitionFieldRecord,
    PartitionSpecRecord,
    SchemaRecord,
    SortOrderRecord,
    expression_from_record,
    expression_to_json,
    schema_from_record,
    schema_to_json,
    sort_order_from_record,
    sort_order_to_json,
    spec_from_record,
    spec_to_json,
)
from icefloe.codecs.snapshot_json import LazySnapshots, encode_snapshots
from icefloe.errors import CorruptFile, FormatError, LimitError, UnsupportedError
from icefloe.limits import DEFAULT, Limits
from icefloe.model.locations import is_absolute, relativize, resolve
from icefloe.model.metadata import MetadataLogEntry, SnapshotLogEntry, TableMetadata
from icefloe.model.partitioning import FIRST_PARTITION_FIELD_ID, Expression, PartitionSpec
from icefloe.model.schema import Schema
from icefloe.model.snapshots import MAIN, Ref
from icefloe.model.sorting import UNSORTED, SortOrder
from icefloe.model.version_rules import VersionRules, rules

_GZIP = b"\x1f\x8b"
_NO_SNAPSHOT = -1  # how older writers say "no current snapshot"


class _RefRecord(Record, frozen=True):
    snapshot_id: Long
    type: Literal["branch", "tag"]
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None


class _Document(Record, frozen=True):
    """The keys of all versions; ``_REQUIRED`` says which a version must have."""

    format_version: Int
    table_uuid: str | None = None
    location: str | None = None
    last_sequence_number: Long | None = None
    last_updated_ms: Long | None = None
    last_column_id: Int | None = None
    schema: SchemaRecord | None = None
    schemas: list[SchemaRecord] | None = None
    current_schema_id: Int | None = None
    partition_spec: list[PartitionFieldRecord] | None = None
    partition_specs: list[PartitionSpecRecord] | None = None
    default_spec_id: Int | None = None
    last_partition_id: Int | None = None
    sort_orders: list[SortOrderRecord] | None = None
    default_sort_order_id: Int | None = None
    properties: dict[str, str] | None = None
    current_snapshot_id: Long | None = None
    snapshots: list[msgspec.Raw] | None = None
    snapshot_log: tuple[SnapshotLogEntry, ...] | None = None
    metadata_log: tuple[MetadataLogEntry, ...] | None = None
    refs: dict[str, _RefRecord] | None = None
    next_row_id: Long | None = None
    expressions: list[ExpressionRecord] | None = None


_KNOWN = frozenset(_Document.__struct_encode_fields__)
_ARRAYS = ("statistics", "partition-statistics")  # kept as they are, and always written
_KEYS: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_VERSION: msgspec.json.Decoder[int] = msgspec.json.Decoder(Int)
_DOCUMENT = msgspec.json.Decoder(_Document)
_ANY = msgspec.json.Decoder()

_SINCE_2 = (
    "table-uuid",
    "last-sequence-number",
    "schemas",
    "current-schema-id",
    "partition-specs",
    "default-spec-id",
    "last-partition-id",
    "sort-orders",
    "default-sort-order-id",
)
_ALWAYS = ("last-updated-ms", "last-column-id")
_REQUIRED = {
    1: ("location", *_ALWAYS),
    2: ("location", *_ALWAYS, *_SINCE_2),
    3: ("location", *_ALWAYS, *_SINCE_2, "next-row-id"),
    4: (*_ALWAYS, *_SINCE_2, "next-row-id"),  # without a location, the table is where its metadata is
}


def decode_metadata(data: bytes, *, where: str, limits: Limits = DEFAULT) -> TableMetadata:
    """The metadata in the bytes of a metadata file; ``where`` is its location.

    Raises FormatError naming the field, CorruptFile, LimitError, or UnsupportedError for a version to come.
    """
    try:
        return _decode(_inflated(data, limits), where, limits)
    except (FormatError, UnsupportedError) as error:
        if str(error).startswith(where):
            raise
        raise type(error)(f"{where}: {error}", **{**error.context, "location": where}) from error


def _inflated(data: bytes, limits: Limits) -> bytes:
    if data[:2] == _GZIP:
        data = _gunzip(data, limits.metadata_bytes)
    if len(data) > limits.metadata_bytes:
        raise LimitError(f"metadata is larger than {limits.metadata_bytes} bytes (Limits.metadata_bytes)")
    return data


def _gunzip(data: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    try:
        inflated = stream.decompress(data, limit + 1)
    except zlib.error as error:
        raise CorruptFile(f"damaged gzip: {error}") from error
    if len(inflated) <= limit and (not stream.eof or stream.unused_data != b""):
        raise CorruptFile("damaged gzip: it is cut short or has bytes behind its end")
    return inflated


def _decode(data: bytes, where: str, limits: Limits) -> TableMetadata:
    keys = decode_json(_KEYS, data)
    if "format-version" not in keys:
        raise missing("", "format-version")
    version = rules(decode_json(_VERSION, keys["format-version"], "format-version"))
    document = decode_json(_DOCUMENT, data)
    absent = [key for key in _REQUIRED[version.version] if getattr(document, key.replace("-", "_")) is None]
    if len(absent) > 0:
        raise missing("", *absent)
    location = _location(document, where)
    metadata = _metadata(document, location, version, where, limits)
    return _checked(replace(metadata, extra=_extra(keys)))


def _extra(keys: dict[str, msgspec.Raw]) -> dict[str, Any]:
    unknown = {key: decode_json(_ANY, raw, key) for key, raw in keys.items() if key not in _KNOWN}
    return {key: value for key, value in unknown.items() if key not in _ARRAYS or value != []}


def _location(document: _Document, where: str) -> str:
    if document.location is not None:
        return _without_slash(document.location)
    folder, _, _ = where.rpartition("/metadata/")
    if folder == "":
        raise missing("", "location")
    return folder


def _without_slash(location: str) -> str:
    while len(location) > 1 and location.endswith("/") and not location.endswith("://"):
        location = location[:-1]
    return location


def _metadata(d: _Document, location: str, version: VersionRules, where: str, limits: Limits) -> TableMetadata:
    expressions = tuple(_expressions(d))
    schemas = tuple(_schemas(d, limits))
    specs = tuple(_specs(d, expressions))
    current = None if d.current_snapshot_id == _NO_SNAPSHOT else d.current_snapshot_id
    first_unused = max((f.field_id for s in specs for f in s.fields), default=FIRST_PARTITION_FIELD_ID - 1)
    return TableMetadata(
        format_version=version.version,
        table_uuid=_or(d.table_uuid, ""),
        location=location,
        last_updated_ms=_or(d.last_updated_ms, 0),
        last_column_id=_or(d.last_column_id, 0),
        schemas=schemas,
        current_schema_id=_or(d.current_schema_id, schemas[0].schema_id),
        last_sequence_number=_or(d.last_sequence_number, 0),
        specs=specs,
        default_spec_id=_or(d.default_spec_id, specs[0].spec_id),
        last_partition_id=_or(d.last_partition_id, first_unused),
        sort_orders=tuple(_sort_orders(d)),
        default_sort_order_id=_or(d.default_sort_order_id, UNSORTED.order_id),
        properties=_or(d.properties, {}),
        current_snapshot_id=current,
        snapshots=LazySnapshots(stored=_or(d.snapshots, []), location=location, rules=version, where=where),
        snapshot_log=_or(d.snapshot_log, ()),
        metadata_log=_absolute(_or(d.metadata_log, ()), location, version),
        refs=_refs(d, current),
        next_row_id=_or(d.next_row_id, 0),
        expressions=expressions,
    )


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _expressions(d: _Document) -> Iterator[Expression]:
    for index, record in enumerate(_or(d.expressions, [])):
        yield expression_from_record(record, f"expressions[{index}]")


def _schemas(d: _Document, limits: Limits) -> Iterator[Schema]:
    if d.schemas is not None and len(d.schemas) > 0:
        for index, record in enumerate(d.schemas):
            yield schema_from_record(record, f"schemas[{index}]", limits)
    elif d.schema is not None:
        yield schema_from_record(d.schema, "schema", limits)
    else:
        raise missing("", "schemas")


def _specs(d: _Document, expressions: tuple[Expression, ...]) -> Iterator[PartitionSpec]:
    by_id = {e.expr_id: e for e in expressions}
    if d.partition_specs is not None and len(d.partition_specs) > 0:
        for index, record in enumerate(d.partition_specs):
            yield spec_from_record(record, f"partition-specs[{index}].fields", by_id)
    elif d.partition_spec is not None:
        yield spec_from_record(PartitionSpecRecord(spec_id=0, fields=d.partition_spec), "partition-spec", by_id)
    else:
        raise missing("", "partition-specs")


def _sort_orders(d: _Document) -> Iterator[SortOrder]:
    if d.sort_orders is None or len(d.sort_orders) == 0:
        yield UNSORTED
    else:
        for index, record in enumerate(d.sort_orders):
            yield sort_order_from_record(record, f"sort-orders[{index}]")


def _absolute(log: tuple[MetadataLogEntry, ...], location: str, version: VersionRules) -> tuple[MetadataLogEntry, ...]:
    if not version.relative_locations:
        return log
    return tuple(
        entry
        if is_absolute(entry.metadata_file)
        else MetadataLogEntry(timestamp_ms=entry.timestamp_ms, metadata_file=resolve(entry.metadata_file, location))
        for entry in log
    )


def _refs(d: _Document, current: int | None) -> dict[str, Ref]:
    refs = {
        name: Ref(
            snapshot_id=record.snapshot_id,
            type=record.type,
            min_snapshots_to_keep=record.min_snapshots_to_keep,
            max_snapshot_age_ms=record.max_snapshot_age_ms,
            max_ref_age_ms=record.max_ref_age_ms,
        )
        for name, record in _or(d.refs, {}).items()
    }
    # Tables older than refs have a main branch all the same.
    return refs if current is None or MAIN in refs else {**refs, MAIN: Ref(snapshot_id=current)}


def _checked(metadata: TableMetadata) -> TableMetadata:
    """The metadata, once everything that it calls current is there."""
    expected = (
        ("current-schema-id", metadata.current_schema_id, [s.schema_id for s in metadata.schemas]),
        ("default-spec-id", metadata.default_spec_id, [s.spec_id for s in metadata.specs]),
        ("default-sort-order-id", metadata.default_sort_order_id, [0, *(o.order_id for o in metadata.sort_orders)]),
    )
    for key, wanted, there in expected:
        if wanted not in there:
            raise FormatError(f"{key}: there is no {wanted}, only {', '.join(map(str, there))}", field=key)
    current = metadata.current_snapshot_id
    if current is not None and metadata.snapshots.find(current) is None:
        raise FormatError(f"current-snapshot-id: there is no snapshot {current}", field="current-snapshot-id")
    return metadata


def encode_metadata(metadata: TableMetadata) -> bytes:
    """The bytes of a metadata file; snapshots that were not touched are copied as text."""
    return msgspec.json.encode(_to_json(metadata))


def _to_json(m: TableMetadata) -> dict[str, Any]:
    version = m.rules
    document = {
        "format-version": m.format_version,
        "table-uuid": m.table_uuid,
        "location": m.location,
        "last-updated-ms": m.last_updated_ms,
        "last-column-id": m.last_column_id,
        "current-schema-id": m.current_schema_id,
        "schemas": [schema_to_json(schema) for schema in m.schemas],
        "default-spec-id": m.default_spec_id,
        "partition-specs": [
            spec_to_json(spec, expressions=m.expressions if version.expressions else None) for spec in m.specs
        ],
        "last-partition-id": m.last_partition_id,
        "default-sort-order-id": m.default_sort_order_id,
        "sort-orders": [sort_order_to_json(order) for order in m.sort_orders],
        "properties": dict(m.properties),
        "current-snapshot-id": m.current_snapshot_id,
        "refs": {name: _ref_record(ref) for name, ref in m.refs.items()},
        "snapshots": encode_snapshots(m.snapshots, m.location, version),
        **{key: [] for key in _ARRAYS},
        "snapshot-log": m.snapshot_log,
        "metadata-log": _stored_log(m),
    }
    return {**document, **_by_version(m), **_unknown(m.extra)}


def _by_version(m: TableMetadata) -> dict[str, Any]:
    """The keys that only some versions have, or have otherwise."""
    written: dict[str, Any] = {}
    if m.rules.row_lineage:
        written["next-row-id"] = m.next_row_id
    elif m.current_snapshot_id is None:
        written["current-snapshot-id"] = _NO_SNAPSHOT
    if m.rules.expressions:
        written["expressions"] = [expression_to_json(expression) for expression in m.expressions]
    if m.rules.sequence_numbers:
        written["last-sequence-number"] = m.last_sequence_number
    else:
        written["schema"] = schema_to_json(m.schema)
        written["partition-spec"] = spec_to_json(m.spec)["fields"]
    return written


def _unknown(extra: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in extra.items() if key not in _KNOWN}


def _ref_record(ref: Ref) -> _RefRecord:
    return _RefRecord(
        snapshot_id=ref.snapshot_id,
        type=ref.type,
        min_snapshots_to_keep=ref.min_snapshots_to_keep,
        max_snapshot_age_ms=ref.max_snapshot_age_ms,
        max_ref_age_ms=ref.max_ref_age_ms,
    )


def _stored_log(m: TableMetadata) -> list[MetadataLogEntry]:
    if not m.rules.relative_locations:
        return list(m.metadata_log)
    return [
        MetadataLogEntry(timestamp_ms=entry.timestamp_ms, metadata_file=relativize(entry.metadata_file, m.location))
        for entry in m.metadata_log
    ]

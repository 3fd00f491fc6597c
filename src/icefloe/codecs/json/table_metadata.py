"""Table metadata files: ``*.metadata.json``, plain or gzipped, of every format version (spec: Table Metadata Fields).

Decoding checks what every reader relies on, and keeps unknown keys at every level. Snapshots stay text until they are
accessed. Encoding writes the keys of the field table of the version, in its order.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from icefloe.codecs.json.gzip_members import GZIP, MemberCache, compressed, decompressed, encode_members
from icefloe.codecs.json.input import (
    Count,
    Extensible,
    Int,
    IntCount,
    Long,
    Reading,
    Record,
    Uuid,
    decode_extensible,
    decode_json,
    in_file,
    missing,
)
from icefloe.codecs.json.metadata_checks import check_metadata
from icefloe.codecs.json.partition_spec import (
    ExpressionRecord,
    PartitionFieldRecord,
    PartitionSpecRecord,
    SortOrderRecord,
    expression_from_record,
    expression_to_json,
    sort_order_from_record,
    sort_order_to_json,
    spec_from_fields,
    spec_from_record,
    spec_to_json,
)
from icefloe.codecs.json.record_shapes import ANY
from icefloe.codecs.json.relative_locations import TableLocations, table_location_of
from icefloe.codecs.json.schema import SchemaRecord, schema_from_record, schema_to_json
from icefloe.codecs.json.snapshots import (
    LazySnapshots,
    RefRecord,
    encode_snapshots,
    refs_from_records,
    refs_to_json,
    snapshot_positions,
)
from icefloe.codecs.json.statistics_files import (
    EncryptionKeyRecord,
    PartitionStatisticsRecord,
    StatisticsRecord,
    encryption_key_from_record,
    encryption_key_to_json,
    partition_statistics_from_record,
    partition_statistics_to_json,
    statistics_from_record,
    statistics_to_json,
)
from icefloe.errors import CorruptFile, FormatError, InputError, LimitError, UnsupportedError
from icefloe.limits import DEFAULT, Limits
from icefloe.model.metadata.properties import MIRROR_MANIFEST_LIST
from icefloe.model.metadata.table_metadata import MetadataLogEntry, SnapshotLogEntry, TableMetadata
from icefloe.model.metadata.version_rules import METADATA_FIELDS, VERSIONS, VersionRules, fields, required, rules
from icefloe.model.partition.sort_order import UNSORTED, SortOrder
from icefloe.model.partition.spec import FIRST_PARTITION_FIELD_ID, Expression, PartitionSpec, with_distinct_ids
from icefloe.model.partition.transform_names import IDENTITY
from icefloe.model.schema.schema import Schema

_NO_SNAPSHOT = -1  # how versions 1 and 2 say "no current snapshot"
_NULL = msgspec.Raw(b"null")
_GROWING = ("snapshots", "snapshot-log")  # lists that grow with each commit


class _Document(Extensible, frozen=True):
    """The keys of all versions; the field table says which a version must have."""

    format_version: Int
    table_uuid: Uuid | None = None
    location: str | None = None
    last_sequence_number: Count | None = None
    last_updated_ms: Long | None = None
    last_column_id: IntCount | None = None
    schema: SchemaRecord | None = None
    schemas: list[SchemaRecord] | None = None
    current_schema_id: Int | None = None
    partition_spec: list[PartitionFieldRecord] | None = None
    partition_specs: list[PartitionSpecRecord] | None = None
    default_spec_id: Int | None = None
    last_partition_id: Int | None = None
    properties: dict[str, str] | None = None
    current_snapshot_id: Long | None = None
    snapshots: list[msgspec.Raw] | None = None
    snapshot_log: tuple[SnapshotLogEntry, ...] | None = None
    metadata_log: tuple[MetadataLogEntry, ...] | None = None
    sort_orders: list[SortOrderRecord] | None = None
    default_sort_order_id: Int | None = None
    refs: dict[str, RefRecord] | None = None
    statistics: list[StatisticsRecord] | None = None
    partition_statistics: list[PartitionStatisticsRecord] | None = None
    next_row_id: Count | None = None
    encryption_keys: list[EncryptionKeyRecord] | None = None
    expressions: list[ExpressionRecord] | None = None


class _Version(Record, frozen=True):
    format_version: Int


_DOCUMENT = msgspec.json.Decoder(_Document)
_VERSION = msgspec.json.Decoder(_Version)
# The single schema and spec of version 1 are required only if their lists are absent.
_SINGLE = ("schema", "partition-spec")
_REQUIRED = {
    version: tuple(key for key in required(METADATA_FIELDS, version) if key not in _SINGLE) for version in VERSIONS
}


def decode_metadata(
    data: bytes, *, where: str, limits: Limits = DEFAULT, table_location: str | None = None
) -> TableMetadata:
    """The metadata in the bytes of a metadata file; ``where`` is its location.

    ``table_location`` is where the table is, if it is known not to be where the file says (only in V4). Raises
    FormatError naming the field, CorruptFile, LimitError, or UnsupportedError for a later version.
    """
    try:
        return _decode(inflated_metadata(data, limits), where, limits, table_location)
    except (FormatError, UnsupportedError) as error:
        raise in_file(error, where) from error


def inflated_metadata(data: bytes, limits: Limits) -> bytes:
    """The text, checked to be UTF-8, because parts that are not parsed are copied to new files."""
    limit = limits.inflated(len(data), limits.metadata_bytes) if data[:2] == GZIP else limits.metadata_bytes
    if data[:2] == GZIP:
        data = decompressed(data, limit)
    if len(data) > limit:
        raise LimitError(f"metadata is larger than {limit} bytes (Limits.metadata_bytes, Limits.inflation)")
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise CorruptFile(f"not JSON: byte {error.start} is not UTF-8") from error
    return data


def _decode(data: bytes, where: str, limits: Limits, at: str | None) -> TableMetadata:
    try:
        document, extras = decode_extensible(_DOCUMENT, data)
    except FormatError:
        rules(decode_json(_VERSION, data).format_version)  # a better error for a document of a later version
        raise
    version = rules(document.format_version)
    absent = [key for key in _REQUIRED[version.version] if getattr(document, key.replace("-", "_")) is None]
    if len(absent) > 0:
        raise missing("", *absent)
    reading = Reading(extras=extras, limits=limits, version=version.version)
    positions = snapshot_positions(data)
    location = table_location_of(document.location, version, where=where, at=at)
    metadata = _metadata(document, version, reading, positions, where, location)
    check_metadata(metadata, positions)
    return metadata if at is None else replace(metadata, states_location=False)


def _metadata(
    d: _Document, version: VersionRules, reading: Reading, positions: Mapping[int, int], where: str, location: str
) -> TableMetadata:
    locations = TableLocations.of(location, version)
    expressions = tuple(_each(d.expressions, "expressions", expression_from_record, reading))
    schemas = tuple(_schemas(d, reading))
    specs = with_distinct_ids(_specs(d, expressions, schemas, reading))
    current = None if d.current_snapshot_id == _NO_SNAPSHOT else d.current_snapshot_id
    first_unused = max((f.stored_id for s in specs for f in s.fields), default=FIRST_PARTITION_FIELD_ID - 1)
    stored = _or(d.snapshots, [])
    return TableMetadata(
        format_version=version.version,
        table_uuid=_or(d.table_uuid, ""),
        location=location,
        last_updated_ms=_or(d.last_updated_ms, 0),
        last_column_id=_last_column_id(d, schemas, expressions),
        schemas=schemas,
        current_schema_id=_or(d.current_schema_id, schemas[0].schema_id),
        last_sequence_number=_or(d.last_sequence_number, 0),
        specs=specs,
        default_spec_id=_or(d.default_spec_id, specs[0].spec_id),
        last_partition_id=_or(d.last_partition_id, first_unused),
        sort_orders=tuple(_sort_orders(d, reading)),
        default_sort_order_id=_or(d.default_sort_order_id, UNSORTED.order_id),
        properties=_or(d.properties, {}),
        current_snapshot_id=current,
        snapshots=LazySnapshots(
            stored=stored,
            positions=positions,
            location=location,
            rules=version,
            where=where,
            mirrored=_or(d.properties, {}).get(MIRROR_MANIFEST_LIST.name, "").lower() == "true",
        ),
        snapshot_log=_or(d.snapshot_log, ()),
        metadata_log=_absolute(_or(d.metadata_log, ()), locations),
        refs=refs_from_records(_or(d.refs, {}), current, reading),
        statistics=tuple(_each(d.statistics, "statistics", statistics_from_record, reading, locations)),
        partition_statistics=tuple(
            _each(d.partition_statistics, "partition-statistics", partition_statistics_from_record, reading, locations)
        ),
        encryption_keys=tuple(_each(d.encryption_keys, "encryption-keys", encryption_key_from_record, reading)),
        next_row_id=_or(d.next_row_id, 0),
        expressions=expressions,
        states_location=d.location is not None,
        extra={key: _kept(text) for key, text in reading.unknown("")},
    )


def _last_column_id(d: _Document, schemas: Iterable[Schema], expressions: Iterable[Expression]) -> int:
    """The highest id in use. Some writers state a lower one, with which an id would be assigned twice."""
    used = (*(schema.highest_id for schema in schemas), *(expression.expr_id for expression in expressions))
    stated: int = _or(d.last_column_id, 0)
    return max((stated, *used))


def _kept(text: str) -> Any:
    """The value of an unknown key; the text itself if it cannot be represented, such as a huge number."""
    try:
        return ANY.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return msgspec.Raw(text.encode())


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _each(records: list[Any] | None, key: str, convert: Callable[..., Any], *rest: object) -> Iterator[Any]:
    """Converts each record of a list; ``convert`` receives the record and its JSON path."""
    for index, record in enumerate(_or(records, [])):
        yield convert(record, f"{key}[{index}]", *rest)


def _schemas(d: _Document, reading: Reading) -> Iterator[Schema]:
    if d.schemas is not None and len(d.schemas) > 0:
        yield from _each(d.schemas, "schemas", schema_from_record, reading)
    elif d.schema is not None:
        yield schema_from_record(d.schema, "schema", reading)
    else:
        raise missing("", "schemas")


def _columns(schemas: tuple[Schema, ...]) -> dict[int, Expression]:
    """Columns as the expressions that identity fields of V4 may name."""
    names = {id_: name for schema in schemas for id_, name in schema.names.items()}
    return {i: Expression(expr_id=i, source_ids=(i,), transform=IDENTITY, name=name) for i, name in names.items()}


def _specs(
    d: _Document, expressions: tuple[Expression, ...], schemas: tuple[Schema, ...], reading: Reading
) -> Iterator[PartitionSpec]:
    by_id = {e.expr_id: e for e in expressions}
    if any(f.transform is None and f.expr_id is not None for s in _or(d.partition_specs, []) for f in s.fields):
        by_id = _columns(schemas) | by_id
    if d.partition_specs is not None and len(d.partition_specs) > 0:
        yield from _each(d.partition_specs, "partition-specs", spec_from_record, reading, by_id)
    elif d.partition_spec is not None:
        yield spec_from_fields(d.partition_spec, "partition-spec", reading, by_id)
    else:
        raise missing("", "partition-specs")


def _sort_orders(d: _Document, reading: Reading) -> Iterator[SortOrder]:
    if d.sort_orders is None or len(d.sort_orders) == 0:
        yield UNSORTED
    else:
        yield from _each(d.sort_orders, "sort-orders", sort_order_from_record, reading)


def _absolute(log: tuple[MetadataLogEntry, ...], locations: TableLocations) -> tuple[MetadataLogEntry, ...]:
    if locations.base is None:
        return log
    return tuple(msgspec.structs.replace(e, metadata_file=locations.absolute(e.metadata_file)) for e in log)


def encode_metadata(metadata: TableMetadata, *, compression: str = "none") -> bytes:
    """The bytes of a metadata file; snapshots that were not touched are copied as text.

    ``compression`` is the value of the property ``write.metadata.compression-codec``. The same metadata gives the same
    bytes, gzipped or not. V4 has several gzip members, earlier versions one: the gzip reader of Java stops after the
    first member of a stream that reports nothing as available.
    """
    if compression not in ("none", "gzip"):
        raise InputError(
            f"write.metadata.compression-codec: {compression!r} is not one of none, gzip", compression=compression
        )
    try:
        document = _to_json(metadata)
        if compression == "gzip" and metadata.rules.gzip_metadata:
            return encode_members(document, _GROWING, _members(metadata))
        data = msgspec.json.encode(document)
    except RecursionError as error:
        raise LimitError(f"{metadata.location}: metadata is nested too deeply", location=metadata.location) from error
    return data if compression == "none" else compressed(data, zlib.Z_DEFAULT_COMPRESSION)


def _members(metadata: TableMetadata) -> MemberCache:
    """The compressed blocks of the file that this metadata was read from, and of files written since."""
    return metadata.snapshots.members if isinstance(metadata.snapshots, LazySnapshots) else MemberCache()


def _to_json(m: TableMetadata) -> dict[str, Any]:
    values = {key: WRITERS[key](m) for key in fields(METADATA_FIELDS, m.format_version)}
    absent = [key for key in required(METADATA_FIELDS, m.format_version) if values[key] is None]
    if len(absent) > 0:
        raise missing(m.location, *absent)
    unknown = {key: value for key, value in m.extra.items() if key not in METADATA_FIELDS}
    return {key: value for key, value in values.items() if value is not None} | unknown


def _stored_specs(m: TableMetadata) -> list[dict[str, Any]]:
    expressions = m.expressions if m.rules.expressions else None
    return [spec_to_json(spec, expressions=expressions) for spec in m.specs]


def _stored_current(m: TableMetadata) -> object:
    if m.current_snapshot_id is not None:
        return m.current_snapshot_id
    return _NULL if m.rules.row_lineage else _NO_SNAPSHOT


def _stored_log(m: TableMetadata) -> list[MetadataLogEntry]:
    locations = _locations(m)
    if locations.base is None:
        return list(m.metadata_log)
    return [msgspec.structs.replace(e, metadata_file=locations.stored(e.metadata_file)) for e in m.metadata_log]


def _locations(m: TableMetadata) -> TableLocations:
    return TableLocations.of(m.location, m.rules)


# The value of each key of the field table; None omits an optional key.
WRITERS: Mapping[str, Callable[[TableMetadata], Any]] = {
    "format-version": lambda m: m.format_version,
    "table-uuid": lambda m: None if m.table_uuid == "" else m.table_uuid,
    "location": lambda m: m.location if m.states_location or not m.rules.relative_locations else None,
    "last-sequence-number": lambda m: m.last_sequence_number,
    "last-updated-ms": lambda m: m.last_updated_ms,
    "last-column-id": lambda m: m.last_column_id,
    "schema": lambda m: schema_to_json(m.schema),
    "schemas": lambda m: [schema_to_json(schema) for schema in m.schemas],
    "current-schema-id": lambda m: m.current_schema_id,
    "partition-spec": lambda m: spec_to_json(m.spec)["fields"],
    "partition-specs": _stored_specs,
    "default-spec-id": lambda m: m.default_spec_id,
    "last-partition-id": lambda m: m.last_partition_id,
    "properties": lambda m: dict(m.properties),
    "current-snapshot-id": _stored_current,
    "snapshots": lambda m: encode_snapshots(
        m.snapshots, m.location, m.rules, mirrored=MIRROR_MANIFEST_LIST.of(m.properties)
    ),
    "snapshot-log": lambda m: m.snapshot_log,
    "metadata-log": _stored_log,
    "sort-orders": lambda m: [sort_order_to_json(order) for order in m.sort_orders],
    "default-sort-order-id": lambda m: m.default_sort_order_id,
    "refs": lambda m: refs_to_json(m.refs, m.current_snapshot_id, m.rules),
    "statistics": lambda m: [statistics_to_json(file, _locations(m)) for file in m.statistics],
    "partition-statistics": lambda m: [partition_statistics_to_json(s, _locations(m)) for s in m.partition_statistics],
    "next-row-id": lambda m: m.next_row_id,
    "encryption-keys": lambda m: [encryption_key_to_json(key) for key in m.encryption_keys] or None,
    "expressions": lambda m: [expression_to_json(expression) for expression in m.expressions],
}

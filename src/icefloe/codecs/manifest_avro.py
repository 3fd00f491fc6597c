"""Manifests of versions 1 to 3: Avro files of nested records, read and written as entry columns (spec: Manifests).

Fields are found by id. The partition tuple becomes the statistics of partition fields, the maps of metrics become
statistics columns. Nothing is inherited here: rows come out as they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs import field_ids as ids
from icefloe.codecs.avro_container import Container, read_container, write_container
from icefloe.codecs.avro_schemas import MEASURE_MAPS, AvroFields, avro_fields, avro_name, manifest_schema, raw_type
from icefloe.codecs.avro_values import from_raw, maps_of, statistics_of, to_raw
from icefloe.codecs.context import VOID, ManifestContext
from icefloe.codecs.entry_columns import columns_of, partition_stats, partition_value, to_table
from icefloe.codecs.schema_json import schema_to_json
from icefloe.codecs.spec_json import spec_to_json
from icefloe.errors import CorruptFile, FormatError, IcefloeError, InputError, UnsupportedError
from icefloe.model.entries import ContentType, Status, partition_key, stat
from icefloe.model.partitioning import PartitionSpec
from icefloe.model.types import INT, Type

WRITTEN_VERSIONS = (2, 3)
DELETES = "deletes"

Columns = Mapping[str, pa.Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """A field of a manifest: its id, its name in the spec, the entry column it becomes."""

    id: int
    name: str
    entry: str
    type: pa.DataType
    required: bool = False


def _stored(id_: int, name: str, type_: pa.DataType, entry: str | None = None, *, required: bool = False) -> _Stored:
    return _Stored(id=id_, name=name, entry=name if entry is None else entry, type=type_, required=required)


ENTRY_FIELDS = (
    _stored(ids.STATUS, "status", pa.int32(), required=True),
    _stored(ids.SNAPSHOT_ID, "snapshot_id", pa.int64()),
    _stored(ids.SEQUENCE_NUMBER, "sequence_number", pa.int64()),
    _stored(ids.FILE_SEQUENCE_NUMBER, "file_sequence_number", pa.int64()),
)
FILE_FIELDS = (
    _stored(ids.CONTENT_TYPE, "content", pa.int32(), "content_type"),
    _stored(ids.LOCATION, "file_path", pa.string(), "location", required=True),
    _stored(ids.FILE_FORMAT, "file_format", pa.string(), required=True),
    _stored(ids.RECORD_COUNT, "record_count", pa.int64(), required=True),
    _stored(ids.FILE_SIZE_IN_BYTES, "file_size_in_bytes", pa.int64(), required=True),
    _stored(ids.KEY_METADATA, "key_metadata", pa.binary()),
    _stored(ids.SPLIT_OFFSETS, "split_offsets", pa.list_(pa.int64())),
    _stored(ids.EQUALITY_IDS, "equality_ids", pa.list_(pa.int32())),
    _stored(ids.SORT_ORDER_ID, "sort_order_id", pa.int32()),
    _stored(ids.FIRST_ROW_ID, "first_row_id", pa.int64()),
    _stored(ids.REFERENCED_FILE, "referenced_data_file", pa.string(), "referenced_file"),
    _stored(ids.CONTENT_OFFSET, "content_offset", pa.int64(), "dv_offset"),
    _stored(ids.CONTENT_SIZE_IN_BYTES, "content_size_in_bytes", pa.int64(), "dv_size_in_bytes"),
)
_VERSION_3_IDS = (ids.FIRST_ROW_ID, ids.REFERENCED_FILE, ids.CONTENT_OFFSET, ids.CONTENT_SIZE_IN_BYTES)


# -- reading


def decode_manifest(data: bytes, context: ManifestContext, *, where: str, delete: bool | None = None) -> pa.Table:
    """All rows of a manifest, in file order; ``delete`` says which kind its list calls it."""
    container = read_container(data, where=where, limits=context.limits)
    try:
        return _decode(container, context, where, delete)
    except IcefloeError:
        raise
    except Exception as error:  # a schema or a value that is not what the spec says
        raise CorruptFile(f"{where}: not a readable manifest: {error!r}", location=where) from error


def _decode(container: Container, context: ManifestContext, where: str, delete: bool | None) -> pa.Table:
    metadata = container.metadata
    _check_kind(metadata, where, delete)
    spec = _spec_of(metadata, context, where)
    top = avro_fields(container.schema)
    file_name = top.name(ids.DATA_FILE, "data_file")
    if file_name is None:
        raise FormatError(f"{where}: entries have no data_file (field id {ids.DATA_FILE})", location=where)
    shape = _FileShape(top.record(file_name), spec, context, where)
    wanted = [*_types(top, ENTRY_FIELDS), pa.field(file_name, pa.struct(shape.fields()))]
    rows = container.rows(pa.struct(wanted))
    length = len(rows)
    outer = _by_name(rows)
    inner = _by_name(outer[file_name])
    columns = _plain(outer, top, ENTRY_FIELDS, length, where) | _plain(inner, shape.file, FILE_FIELDS, length, where)
    columns |= {
        "content_type": columns["content_type"].fill_null(int(ContentType.DATA)),
        "file_format": pc.utf8_lower(columns["file_format"]),
        "format_version": pa.repeat(pa.scalar(_number(metadata, "format-version", 1, where), pa.int32()), length),
        "partition_spec_id": pa.repeat(pa.scalar(spec.spec_id, pa.int32()), length),
    }
    _check_rows(columns, metadata, where)
    columns |= shape.statistics(inner)
    columns |= shape.partition(inner, columns["record_count"])
    return to_table(columns, length)


def _check_kind(metadata: Mapping[str, str], where: str, delete: bool | None) -> None:
    content = metadata.get("content", "data")
    if content not in ("data", DELETES):
        raise FormatError(f"{where}: content is {content!r}, expected data or deletes", location=where)
    if delete is not None and delete != (content == DELETES):
        raise FormatError(f"{where}: content is {content!r}, its manifest list says otherwise", location=where)


def _spec_of(metadata: Mapping[str, str], context: ManifestContext, where: str) -> PartitionSpec:
    found = context.specs.get(_number(metadata, "partition-spec-id", 0, where))
    if found is None:
        raise FormatError(f"{where}: names a partition spec that the table lacks", location=where)
    return found


def _number(metadata: Mapping[str, str], key: str, default: int, where: str) -> int:
    text = metadata.get(key)
    if text is None:
        return default
    if not text.isdecimal():
        raise FormatError(f"{where}: {key} is {text!r}, expected a number", location=where)
    return int(text)


def _check_rows(columns: Columns, metadata: Mapping[str, str], where: str) -> None:
    deletes = metadata.get("content") == DELETES
    kind = pc.equal(columns["content_type"], int(ContentType.DATA))
    kind = pc.invert(kind) if deletes else kind
    known = pc.and_(pc.less_equal(columns["content_type"], 2), pc.greater_equal(columns["content_type"], 0))
    status = pc.is_in(columns["status"], value_set=pa.array([int(s) for s in Status], pa.int32()))
    for good, rule in ((pc.and_(kind, known), "content does not belong in this manifest"), (status, "unknown status")):
        if (row := pc.index(good, False).as_py()) >= 0:
            raise FormatError(f"{where}: row {row}: {rule}", location=where, row=row)


def _by_name(struct: pa.StructArray) -> dict[str, pa.Array]:
    return {field.name: child for field, child in zip(struct.type, struct.flatten(), strict=True)}


def _types(fields: AvroFields, wanted: tuple[_Stored, ...]) -> list[pa.Field]:
    named = ((fields.name(slot.id, slot.name), slot.type) for slot in wanted)
    return [pa.field(name, type_) for name, type_ in named if name is not None]


def _plain(
    stored: Columns, fields: AvroFields, wanted: tuple[_Stored, ...], length: int, where: str
) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}
    for slot in wanted:
        name = fields.name(slot.id, slot.name)
        column = pa.nulls(length, slot.type) if name is None else stored[name]
        if slot.required and column.null_count > 0:
            raise FormatError(f"{where}: {slot.name} (field id {slot.id}) is missing or null", location=where)
        columns[slot.entry] = column
    return columns


class _FileShape:
    """Where a file keeps the partition tuple and the metrics of its data files."""

    def __init__(self, file: AvroFields, spec: PartitionSpec, context: ManifestContext, where: str) -> None:
        self.file = file
        self._context = context
        self._where = where
        self._maps = {m: name for m in MEASURE_MAPS if (name := file.name(m.id, m.name)) is not None}
        self._tuple_name = file.name(ids.PARTITION, "partition")
        self._values: dict[int, str] = {}
        valued = [part for part in spec.fields if part.field_id in context.partition_types]
        tuple_ = None if self._tuple_name is None else file.record(self._tuple_name)
        for part in valued:
            name = None if tuple_ is None else tuple_.name(part.field_id, avro_name(part.name))
            if name is None:
                raise FormatError(f"{where}: partition has no field {part.name!r} ({part.field_id})", location=where)
            self._values[part.field_id] = name

    def fields(self) -> list[pa.Field]:
        """The parts of data_file that are wanted, in Arrow."""
        found = [*_types(self.file, FILE_FIELDS), *(pa.field(name, m.arrow) for m, name in self._maps.items())]
        if len(self._values) > 0:
            types = self._context.partition_types
            tuple_ = pa.struct([pa.field(name, raw_type(types[i])) for i, name in self._values.items()])
            found.append(pa.field(str(self._tuple_name), tuple_))
        return found

    def statistics(self, inner: Columns) -> dict[str, pa.Array]:
        """Statistics columns of the columns that the table knows."""
        maps = {shape: inner[name] for shape, name in self._maps.items()}
        return statistics_of(maps, self._context, where=self._where)

    def partition(self, inner: Columns, record_count: pa.Array) -> dict[str, pa.Array]:
        """Statistics columns of the partition fields."""
        if len(self._values) == 0:
            return {}
        tuple_ = _by_name(inner[str(self._tuple_name)])
        columns: dict[str, pa.Array] = {}
        for field_id, name in self._values.items():
            type_ = self._context.partition_types[field_id]
            value = from_raw(tuple_[name], type_, where=f"{self._where}: partition.{name}")
            columns |= partition_stats(partition_key(field_id), value, record_count, type_)
        return columns


# -- writing


def encode_manifest(entries: pa.Table, context: ManifestContext, *, delete: bool, spec_id: int) -> bytes:
    """The bytes of a manifest of files that were written with one partition spec."""
    version = context.format_version
    if version not in WRITTEN_VERSIONS:
        raise UnsupportedError(f"manifests of format version {version} are not written as Avro", version=version)
    columns = columns_of(entries)
    spec = context.spec(spec_id)
    _check_writable(columns, version, delete, spec_id)
    types = _tuple_types(spec, context)
    records = _records(columns, entries.num_rows, spec, types, context)
    metadata = {
        "schema": msgspec.json.encode(schema_to_json(context.schema)).decode(),
        "schema-id": str(context.schema.schema_id),
        "partition-spec": msgspec.json.encode(spec_to_json(spec)["fields"]).decode(),
        "partition-spec-id": str(spec_id),
        "format-version": str(version),
        "content": DELETES if delete else "data",
    }
    return write_container(records, manifest_schema(spec, types, version), metadata)


def _check_writable(columns: Columns, version: int, delete: bool, spec_id: int) -> None:
    """Refuse rows that the version cannot express or the spec forbids."""
    allowed = (ContentType.POSITION_DELETES, ContentType.EQUALITY_DELETES) if delete else (ContentType.DATA,)
    kinds = pc.is_in(columns["content_type"], value_set=pa.array([int(t) for t in allowed], pa.int32()))
    own = pc.fill_null(pc.equal(columns["partition_spec_id"], spec_id), False)
    numbered = pc.and_(pc.is_valid(columns["sequence_number"]), pc.is_valid(columns["file_sequence_number"]))
    counted = pc.or_(pc.equal(columns["status"], int(Status.ADDED)), numbered)
    rules = [
        (kinds, "its content type does not belong in this manifest"),
        (own, f"it was not written with partition spec {spec_id}"),
        (pc.fill_null(counted, False), "only an ADDED entry may leave its sequence numbers to be inherited"),
    ]
    if version < 3:
        rules.append((pc.is_null(columns["dv_offset"]), "format version 2 has no deletion vectors"))
    rules += [(pc.is_valid(columns[s.entry]), f"{s.entry} is null") for s in FILE_FIELDS if s.required]
    for good, rule in rules:
        if (row := pc.index(good, False).as_py()) >= 0:
            raise InputError(f"entry {row} cannot be written: {rule}", row=row)


def _tuple_types(spec: PartitionSpec, context: ManifestContext) -> dict[int, Type]:
    """The types of a spec's partition values; a void field has the type of its source, if that is still known."""
    found: dict[int, Type] = {}
    for part in spec.fields:
        if part.transform == VOID:
            found[part.field_id] = context.column_type(part.source_id) or INT
        elif part.field_id in context.partition_types:
            found[part.field_id] = context.partition_types[part.field_id]
        else:
            raise UnsupportedError(f"partition field {part.name!r}: cannot write {part.transform!r}", field=part.name)
    return found


def _records(
    columns: Columns, length: int, spec: PartitionSpec, types: Mapping[int, Type], context: ManifestContext
) -> pa.StructArray:
    """The rows as nested Arrow values with the names of the Avro schema."""
    slots = [s for s in FILE_FIELDS if context.format_version >= 3 or s.id not in _VERSION_3_IDS]
    file = {slot.name: columns[slot.entry] for slot in slots}
    file["file_format"] = pc.utf8_upper(file["file_format"])
    file["partition"] = _tuple(columns, length, spec, types)
    file |= {shape.name: pairs for shape, pairs in maps_of(columns, length, context).items()}
    outer = {slot.name: columns[slot.entry] for slot in ENTRY_FIELDS}
    outer["data_file"] = pa.StructArray.from_arrays(list(file.values()), names=list(file))
    return pa.StructArray.from_arrays(list(outer.values()), names=list(outer))


def _tuple(columns: Columns, length: int, spec: PartitionSpec, types: Mapping[int, Type]) -> pa.Array:
    values: dict[str, pa.Array] = {}
    for part in spec.fields:
        key, type_ = partition_key(part.field_id), types[part.field_id]
        if part.transform == VOID:
            values[avro_name(part.name)] = pa.nulls(length, raw_type(type_))
            continue
        counts = columns.get(stat("value_count", key), pa.nulls(length, pa.int64()))
        if (row := pc.index(counts.is_null(), True).as_py()) >= 0:
            raise InputError(f"entry {row} has no value of partition field {part.name!r}", field=part.name, row=row)
        values[avro_name(part.name)] = to_raw(partition_value(key, columns, length, type_), type_)
    if len(values) == 0:
        return pa.array([{}] * length, pa.struct([]))
    return pa.StructArray.from_arrays(list(values.values()), names=list(values))

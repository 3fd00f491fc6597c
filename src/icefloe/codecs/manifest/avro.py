"""Manifests of versions 1 to 3: Avro files of nested records, read and written as entry columns (spec: Manifests).

Fields are looked up by id and written as ``icefloe.model.metadata.version_rules`` says. Nothing is inherited here: rows
are returned as they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.avro.container import Container, read_container, write_container
from icefloe.codecs.avro.projection import ByKeys, Shape
from icefloe.codecs.avro.schemas import avro_name, type_from_avro
from icefloe.codecs.json.partition_spec import spec_to_json
from icefloe.codecs.json.schema import schema_to_json
from icefloe.codecs.manifest import field_ids as ids
from icefloe.codecs.manifest.avro_schemas import AvroFields, avro_fields, manifest_schema, raw_type
from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.field_ids import ENTRY_FIELDS, FILE_FIELDS, MEASURE_MAPS, Slot
from icefloe.codecs.manifest.partition_values import partition_value
from icefloe.codecs.manifest.v3_entries import (
    DELETES,
    Facts,
    StoredRows,
    check_tuple,
    entry_table,
    facts_of,
    maps_of,
    to_raw,
)
from icefloe.codecs.value.inferred_types import infer_types
from icefloe.errors import FormatError, IcefloeError, InputError, UnsupportedError, damaged
from icefloe.model.entries import (
    UNKNOWN_COUNT,
    Columns,
    ContentType,
    Measure,
    StatKeys,
    Status,
    columns_of,
    partition_key,
    stat,
)
from icefloe.model.metadata.version_rules import (
    DATA_FILE_FIELDS,
    MANIFEST_ENTRY_FIELDS,
    MANIFEST_KEYS,
    fields,
    required,
    rules,
    written,
)
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.partition.transform_names import VOID
from icefloe.model.schema.types import INT, Type

BLOCK_SIZE_IN_BYTES = 64 * 1024 * 1024  # v1 requires a number that no reader uses


# -- reading


def decode_manifest(
    data: bytes,
    context: ManifestContext,
    *,
    where: str,
    content: ContentType | None = None,
    spec_id: int | None = None,
    wanted: StatKeys | None = None,
) -> pa.Table:
    """All rows of a manifest, in file order.

    ``content`` and ``spec_id`` are those in its manifest list, none without a list. ``wanted`` are the statistics keys
    of the columns that are needed, none for all; partition values are always read.
    """
    container = read_container(data, where=where, limits=context.limits)
    try:
        facts = facts_of(container.metadata, context, where=where, content=content, spec_id=spec_id)
        context = context.with_partition_types(_types_in_schema(container, facts.spec, context))
        return entry_table(_stored(container, facts, context, wanted, where), facts, context, where=where)
    except IcefloeError:
        raise
    except Exception as error:  # a schema or a value that the spec does not allow
        raise damaged(error, f"{where}: not a readable manifest: {error!r:.200}", location=where) from error


def _stored(
    container: Container, facts: Facts, context: ManifestContext, wanted: StatKeys | None, where: str
) -> StoredRows:
    top = avro_fields(container.schema)
    file_name = top.name(ids.DATA_FILE, "data_file")
    if file_name is None:
        raise FormatError(f"{where}: entries have no data_file (field id {ids.DATA_FILE})", location=where)
    file = top.record(file_name)
    maps = _maps(file, context.measured(wanted))
    tuple_name = file.name(ids.PARTITION, "partition")
    tuple_ = None if tuple_name is None else file.record(tuple_name)
    check_tuple([] if tuple_ is None else tuple_.ids_and_names, facts, where=where)
    parts = _parts(tuple_, facts.spec, context)
    inner: dict[str, Any] = {**_types(file, FILE_FIELDS), **dict(maps.values())}
    if len(parts) > 0:
        inner[str(tuple_name)] = {name: raw_type(context.partition_types[id_]) for id_, name in parts.items()}
    rows = container.rows({**_types(top, ENTRY_FIELDS), file_name: inner})
    stored = rows[file_name]
    return StoredRows(
        length=container.count,
        plain=_plain(rows, top, ENTRY_FIELDS) | _plain(stored, file, FILE_FIELDS),
        partition={id_: stored[str(tuple_name)][name] for id_, name in parts.items()},
        measures={shape: stored[name] for shape, (name, _) in maps.items()},
    )


def _types_in_schema(container: Container, spec: PartitionSpec, context: ManifestContext) -> dict[int, Type]:
    """The types in the file's own schema of partition values whose type the table does not know, by field id."""
    untyped = [part for part in spec.fields if part.field_id in context.untyped and not part.is_void]
    top = avro_fields(container.schema)
    file_name = top.name(ids.DATA_FILE, "data_file")
    if len(untyped) == 0 or file_name is None:
        return {}
    file = top.record(file_name)
    tuple_name = file.name(ids.PARTITION, "partition")
    if tuple_name is None:
        return {}
    tuple_ = file.record(tuple_name)
    named = ((part, tuple_.name(part.stored_id, avro_name(part.name))) for part in untyped)
    return {
        part.field_id: type_from_avro(tuple_.by_name[name]["type"], f"partition.{part.name}")
        for part, name in named
        if name is not None
    }


def _types(file: AvroFields, slots: tuple[Slot, ...]) -> Shape:
    named = ((file.name(slot.id, slot.name), slot.type) for slot in slots)
    return {name: type_ for name, type_ in named if name is not None}


def _plain(rows: Mapping[str, Any], file: AvroFields, slots: tuple[Slot, ...]) -> dict[str, pa.Array]:
    named = ((file.name(slot.id, slot.name), slot.entry) for slot in slots)
    return {entry: rows[name] for name, entry in named if name is not None}


def _maps(file: AvroFields, keys: frozenset[int]) -> dict[Any, tuple[str, ByKeys]]:
    """The maps of measures in the file: the name of each, and the keys that are read."""
    named = ((shape, file.name(shape.id, shape.name)) for shape in MEASURE_MAPS if len(keys) > 0)
    return {shape: (name, ByKeys(shape.value_type, keys)) for shape, name in named if name is not None}


def _parts(tuple_: AvroFields | None, spec: PartitionSpec, context: ManifestContext) -> dict[int, str]:
    """The names that the file has for the partition fields whose values can be read, by their ids."""
    if tuple_ is None:
        return {}
    valued = [part for part in spec.fields if part.field_id in context.partition_types and not part.is_void]
    named = ((part.field_id, tuple_.name(part.stored_id, avro_name(part.name))) for part in valued)
    return {field_id: name for field_id, name in named if name is not None}


# -- writing


def encode_manifest(entries: pa.Table, context: ManifestContext, *, content: ContentType, spec_id: int) -> bytes:
    """The bytes of a manifest of files that were written with one partition spec."""
    version = context.format_version
    if not written(MANIFEST_ENTRY_FIELDS, "data_file", version):
        raise UnsupportedError(f"manifests of format version {version} are not written as Avro", version=version)
    columns = columns_of(entries)
    context = context.with_partition_types(infer_types(columns, context))
    spec = context.spec(spec_id)
    _check_writable(columns, version, content, spec_id)
    types = _tuple_types(spec, context)
    records = _records(columns, entries.num_rows, spec, types, context)
    metadata = {
        "schema": msgspec.json.encode(schema_to_json(context.schema)).decode(),
        "schema-id": str(context.schema.schema_id),
        "partition-spec": msgspec.json.encode(spec_to_json(spec)["fields"]).decode(),
        "partition-spec-id": str(spec_id),
        "format-version": str(version),
        "content": DELETES if content is ContentType.DELETE_MANIFEST else "data",
    }
    metadata = {key: metadata[key] for key in fields(MANIFEST_KEYS, version)}
    return write_container(records, manifest_schema(spec, types, version), metadata)


def _check_writable(columns: Columns, version: int, content: ContentType, spec_id: int) -> None:
    """Refuse rows that the version cannot express or the spec forbids."""
    lists_deletes = content is ContentType.DELETE_MANIFEST
    if lists_deletes and not written(DATA_FILE_FIELDS, "content", version):
        raise InputError(f"format version {version} has no delete files", version=version)
    allowed = (ContentType.POSITION_DELETES, ContentType.EQUALITY_DELETES) if lists_deletes else (ContentType.DATA,)
    kinds = pc.is_in(columns["content_type"], value_set=pa.array([int(t) for t in allowed], pa.int32()))
    own = pc.fill_null(pc.equal(columns["partition_spec_id"], spec_id), False)
    checks = [
        (kinds, "its content type does not belong in this manifest"),
        (own, f"it was not written with partition spec {spec_id}"),
    ]
    if rules(version).sequence_numbers:
        # The number of the file itself may be unknown: Apache Iceberg before 1.1 did not record it for older entries.
        numbered = pc.is_valid(columns["sequence_number"])
        counted = pc.fill_null(pc.or_(pc.equal(columns["status"], int(Status.ADDED)), numbered), False)
        checks.append((counted, "only an ADDED entry may leave its sequence number to be inherited"))
    if not rules(version).deletion_vectors:
        checks.append((pc.is_null(columns["dv_offset"]), f"format version {version} has no deletion vectors"))
    needed = {*required(DATA_FILE_FIELDS, version), *required(MANIFEST_ENTRY_FIELDS, version)}
    slots = (slot for slot in (*ENTRY_FIELDS, *FILE_FIELDS) if slot.name in needed)
    older = pc.not_equal(columns["status"], int(Status.ADDED))
    for slot in slots:
        known = pc.is_valid(columns[slot.entry])
        # An older entry may have come without a record count, and stays so.
        known = pc.or_(known, older) if slot.entry == "record_count" else known
        checks.append((known, f"{slot.entry} is null"))
    for good, rule in checks:
        if (row := pc.index(good, False).as_py()) >= 0:
            raise InputError(f"entry {row} cannot be written: {rule}", row=row)


def _tuple_types(spec: PartitionSpec, context: ManifestContext) -> dict[int, Type]:
    """The types of a spec's partition values; a void field has the type of its source column, or int if unknown."""
    types: dict[int, Type] = {}
    for part in spec.fields:
        if part.transform == VOID:
            types[part.field_id] = context.column_type(part.source_id) or INT
        elif part.field_id in context.partition_types:
            types[part.field_id] = context.partition_types[part.field_id]
        else:
            raise UnsupportedError(
                f"partition field {part.name!r}: cannot write {part.transform!r} of column {part.source_id}: its type"
                " is neither in the table's schemas nor in the files",
                field=part.name,
            )
    return types


def _records(
    columns: Columns, length: int, spec: PartitionSpec, types: Mapping[int, Type], context: ManifestContext
) -> pa.StructArray:
    """The rows as nested Arrow values with the names of the Avro schema."""
    file = {slot.name: columns[slot.entry] for slot in FILE_FIELDS}
    file["file_format"] = pc.utf8_upper(file["file_format"])
    file["record_count"] = file["record_count"].fill_null(UNKNOWN_COUNT)
    file["partition"] = _tuple(columns, length, spec, types)
    file["block_size_in_bytes"] = pa.repeat(pa.scalar(BLOCK_SIZE_IN_BYTES, pa.int64()), length)
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
        counts = columns.get(stat(Measure.VALUES, key), pa.nulls(length, pa.int64()))
        if (row := pc.index(counts.is_null(), True).as_py()) >= 0:
            raise InputError(f"entry {row} has no value of partition field {part.name!r}", field=part.name, row=row)
        values[avro_name(part.name)] = to_raw(partition_value(key, columns, length, type_), type_)
    if len(values) == 0:
        return pa.array([{}] * length, pa.struct([]))
    return pa.StructArray.from_arrays(list(values.values()), names=list(values))

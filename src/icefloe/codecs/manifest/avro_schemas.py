"""Avro schemas of v1 to v3 manifests and manifest lists (spec: Manifests, Manifest Lists, Appendix A, Avro).

``AvroFields`` has the fields of a file by their ids, whatever the file calls them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import pyarrow as pa

from icefloe.codecs.avro.schemas import Json, avro_record
from icefloe.codecs.manifest import field_ids as ids
from icefloe.model.metadata.version_rules import (
    DATA_FILE_FIELDS,
    MANIFEST_ENTRY_FIELDS,
    MANIFEST_LIST_FIELDS,
    FieldTable,
    Presence,
    fields,
    presence,
)
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    Field,
    List,
    Map,
    Primitive,
    Struct,
    Type,
)

_TYPES: Mapping[pa.DataType, Type] = {pa.int32(): INT, pa.int64(): LONG, pa.string(): STRING, pa.binary(): BINARY}


def _fields(slots: tuple[ids.Slot, ...]) -> dict[str, Field]:
    return {slot.name: Field(slot.id, slot.name, _type(slot)) for slot in slots}


def _type(slot: ids.Slot) -> Type:
    if slot.element_id is not None:
        return List(slot.element_id, _TYPES[slot.type.value_type], element_required=True)
    return _TYPES[slot.type]


def _measure_map(shape: ids.MeasureMap) -> Field:
    value = _TYPES[shape.value_type]
    return Field(shape.id, shape.name, Map(shape.key_id, INT, shape.value_id, value, value_required=True))


_ENTRY = _fields(ids.ENTRY_FIELDS)
_FILE = {
    **_fields(ids.FILE_FIELDS),
    "block_size_in_bytes": Field(ids.BLOCK_SIZE_IN_BYTES, "block_size_in_bytes", LONG),
    **{shape.name: _measure_map(shape) for shape in ids.MEASURE_MAPS},
}
PARTITION_SUMMARY = Struct(
    (
        Field(ids.CONTAINS_NULL, "contains_null", BOOLEAN, required=True),
        Field(ids.CONTAINS_NAN, "contains_nan", BOOLEAN),
        Field(ids.SUMMARY_LOWER_BOUND, "lower_bound", BINARY),
        Field(ids.SUMMARY_UPPER_BOUND, "upper_bound", BINARY),
    )
)
_SUMMARIES = List(ids.PARTITIONS_ELEMENT, PARTITION_SUMMARY, element_required=True)
_MANIFEST = {**_fields(ids.MANIFEST_FIELDS), "partitions": Field(ids.PARTITIONS, "partitions", _SUMMARIES)}


def _written(table: FieldTable, version: int, known: Mapping[str, Field]) -> tuple[Field, ...]:
    """The fields that a version writes, in the order of the field table."""
    return tuple(
        replace(known[name], required=presence(table, name, version) is Presence.REQUIRED)
        for name in fields(table, version)
        if name in known
    )


def manifest_schema(spec: PartitionSpec, types: Mapping[int, Type], version: int) -> Json:
    """The schema of a manifest of a spec; ``types`` are the partition values' types by partition field id."""
    return _manifest_schema(
        tuple(Field(part.stored_id, part.name, types[part.field_id]) for part in spec.fields), version
    )


@lru_cache(maxsize=64)
def _manifest_schema(partition: tuple[Field, ...], version: int) -> Json:
    known = {**_FILE, "partition": Field(ids.PARTITION, "partition", Struct(partition))}
    file = Field(ids.DATA_FILE, "data_file", Struct(_written(DATA_FILE_FIELDS, version, known)))
    return avro_record(_written(MANIFEST_ENTRY_FIELDS, version, {**_ENTRY, "data_file": file}), "manifest_entry")


@cache
def manifest_list_schema(version: int) -> Json:
    """The schema of a manifest list."""
    return avro_record(_written(MANIFEST_LIST_FIELDS, version, _MANIFEST), "manifest_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroFields:
    """The fields of a record in a file by their ids; a field without an id is found by its name."""

    names: Mapping[int, str]
    by_name: Mapping[str, Json]

    def name(self, field_id: int, spec_name: str) -> str | None:
        """The name of a field in the file; None if the file does not have the field."""
        stored_name = self.names.get(field_id)
        if stored_name is not None:
            return stored_name
        field = self.by_name.get(spec_name)
        return spec_name if field is not None and "field-id" not in field else None

    @property
    def ids_and_names(self) -> tuple[tuple[int | None, str], ...]:
        """The ids and names of all fields; a field may have no id."""
        return tuple((field.get("field-id"), name) for name, field in self.by_name.items())

    def record(self, name: str) -> AvroFields:
        """The fields of the record that a field holds."""
        type_ = self.by_name[name]["type"]
        return avro_fields(_not_null(type_))

    def elements(self, name: str) -> AvroFields:
        """The fields of the records in the array that a field holds."""
        return avro_fields(_not_null(_not_null(self.by_name[name]["type"])["items"]))


def _not_null(type_: Any) -> Any:
    return next(t for t in type_ if t != "null") if isinstance(type_, list) else type_


def avro_fields(record: Mapping[str, Any]) -> AvroFields:
    """The fields of an Avro record schema."""
    listed = record["fields"]
    return AvroFields(
        names={field["field-id"]: field["name"] for field in listed if "field-id" in field},
        by_name={field["name"]: field for field in listed},
    )


_RAW_TYPES: Mapping[Primitive, pa.DataType] = {
    BOOLEAN: pa.bool_(),
    INT: pa.int32(),
    LONG: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    DATE: pa.int32(),
    TIME: pa.int64(),
    TIMESTAMP: pa.int64(),
    TIMESTAMPTZ: pa.int64(),
    TIMESTAMP_NS: pa.int64(),
    TIMESTAMPTZ_NS: pa.int64(),
    STRING: pa.string(),
    UNKNOWN: pa.null(),
}


def raw_type(type_: Type) -> pa.DataType:
    """The Arrow type of a value without its logical type: numbers, text or bytes."""
    return _RAW_TYPES.get(type_, pa.binary()) if isinstance(type_, Primitive) else pa.binary()

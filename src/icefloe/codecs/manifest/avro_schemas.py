"""Avro schemas of v1 to v3 manifests and manifest lists (spec: Manifests, Manifest Lists, Appendix A, Avro).

``AvroFields`` reads the other way: it finds the fields of a foreign file by their ids, whatever they are called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from icefloe.codecs.manifest import field_ids as ids
from icefloe.codecs.manifest.value_sizes import decimal_bytes
from icefloe.errors import InputError
from icefloe.model.entries import Measure
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
    UUID,
    Decimal,
    Fixed,
    Primitive,
    Type,
)

Json = dict[str, Any]

_TIMESTAMP = {"type": "long", "logicalType": "timestamp-micros"}
_TIMESTAMP_NS = {"type": "long", "logicalType": "timestamp-nanos"}
_AVRO: dict[Primitive, str | Json] = {
    BOOLEAN: "boolean",
    INT: "int",
    LONG: "long",
    FLOAT: "float",
    DOUBLE: "double",
    DATE: {"type": "int", "logicalType": "date"},
    TIME: {"type": "long", "logicalType": "time-micros"},
    TIMESTAMP: {**_TIMESTAMP, "adjust-to-utc": False},
    TIMESTAMPTZ: {**_TIMESTAMP, "adjust-to-utc": True},
    TIMESTAMP_NS: {**_TIMESTAMP_NS, "adjust-to-utc": False},
    TIMESTAMPTZ_NS: {**_TIMESTAMP_NS, "adjust-to-utc": True},
    STRING: "string",
    BINARY: "bytes",
    UNKNOWN: "null",
}
UUID_BYTES = 16


def avro_type(type_: Type, field_id: int) -> str | Json:
    """The Avro type of a primitive; named types carry the field id, as a name may be defined only once."""
    match type_:
        case Decimal(precision, scale):
            fixed = {"type": "fixed", "name": f"decimal_{precision}_{scale}_{field_id}"}
            size = decimal_bytes(precision)
            return {**fixed, "size": size, "logicalType": "decimal", "precision": precision, "scale": scale}
        case Fixed(length):
            return {"type": "fixed", "name": f"fixed_{length}_{field_id}", "size": length}
        case Primitive() if type_ == UUID:
            return {"type": "fixed", "name": f"uuid_{field_id}", "size": UUID_BYTES, "logicalType": "uuid"}
        case Primitive():
            return _AVRO[type_]
    raise InputError(f"type {type_} has no Avro form of its own", type=str(type_))


def avro_name(name: str) -> str:
    """A valid Avro name, escaped in the same way as by the Apache Iceberg libraries.

    >>> avro_name("9-id")
    '_9_x2Did'
    """
    escaped = "".join(c if re.match(r"[A-Za-z0-9_]", c) is not None else f"_x{ord(c):X}" for c in name)
    return f"_{escaped}" if escaped[:1].isdigit() else escaped


def _field(name: str, field_id: int, type_: str | Json, *, required: bool = False) -> Json:
    if required:
        return {"name": name, "type": type_, "field-id": field_id}
    if type_ == "null":
        return {"name": name, "type": type_, "default": None, "field-id": field_id}
    return {"name": name, "type": ["null", type_], "default": None, "field-id": field_id}


def _list(element_id: int, items: str | Json) -> Json:
    return {"type": "array", "items": items, "element-id": element_id}


def _map(key_id: int, value_id: int, value: str) -> Json:
    pair = [_field("key", key_id, "int", required=True), _field("value", value_id, value, required=True)]
    entry = {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": pair}
    return {"type": "array", "logicalType": "map", "items": entry}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureMap:
    """A map from column ids to one measure of the columns."""

    measure: Measure
    name: str
    id: int
    key_id: int
    value_id: int
    value: str = "long"

    @property
    def value_type(self) -> pa.DataType:
        """The Arrow type of the values."""
        return pa.binary() if self.value == "bytes" else pa.int64()

    @property
    def arrow(self) -> pa.DataType:
        """The map as its file stores it: a list of pairs."""
        return pa.list_(pa.struct([pa.field("key", pa.int32()), pa.field("value", self.value_type)]))


def _measure(measure: Measure, name: str, id_: int, key_id: int, value_id: int, value: str = "long") -> MeasureMap:
    return MeasureMap(measure=measure, name=name, id=id_, key_id=key_id, value_id=value_id, value=value)


MEASURE_MAPS = (
    _measure(Measure.COLUMN_SIZE, "column_sizes", ids.COLUMN_SIZES, ids.COLUMN_SIZES_KEY, ids.COLUMN_SIZES_VALUE),
    _measure(Measure.VALUES, "value_counts", ids.VALUE_COUNTS, ids.VALUE_COUNTS_KEY, ids.VALUE_COUNTS_VALUE),
    _measure(Measure.NULLS, "null_value_counts", ids.NULL_COUNTS, ids.NULL_COUNTS_KEY, ids.NULL_COUNTS_VALUE),
    _measure(Measure.NANS, "nan_value_counts", ids.NAN_COUNTS, ids.NAN_COUNTS_KEY, ids.NAN_COUNTS_VALUE),
    _measure(Measure.LOWER, "lower_bounds", ids.LOWER_BOUNDS, ids.LOWER_BOUNDS_KEY, ids.LOWER_BOUNDS_VALUE, "bytes"),
    _measure(Measure.UPPER, "upper_bounds", ids.UPPER_BOUNDS, ids.UPPER_BOUNDS_KEY, ids.UPPER_BOUNDS_VALUE, "bytes"),
)


Parts: TypeAlias = Mapping[str, tuple[int, str | Json]]  # field name -> field id and Avro type

_PLAIN = {pa.int32(): "int", pa.int64(): "long", pa.string(): "string", pa.binary(): "bytes"}


def _parts(slots: tuple[ids.Slot, ...]) -> dict[str, tuple[int, str | Json]]:
    return {slot.name: (slot.id, _slot_type(slot)) for slot in slots}


def _slot_type(slot: ids.Slot) -> str | Json:
    if slot.element_id is not None:
        return _list(slot.element_id, _PLAIN[slot.type.value_type])
    return _PLAIN[slot.type]


_FILE: Parts = {
    **_parts(ids.FILE_FIELDS),
    "block_size_in_bytes": (ids.BLOCK_SIZE_IN_BYTES, "long"),
    **{m.name: (m.id, _map(m.key_id, m.value_id, m.value)) for m in MEASURE_MAPS},
}
_ENTRY: Parts = _parts(ids.ENTRY_FIELDS)
_SUMMARY = {
    "type": "record",
    "name": f"r{ids.PARTITIONS_ELEMENT}",
    "fields": [
        _field("contains_null", ids.CONTAINS_NULL, "boolean", required=True),
        _field("contains_nan", ids.CONTAINS_NAN, "boolean"),
        _field("lower_bound", ids.SUMMARY_LOWER_BOUND, "bytes"),
        _field("upper_bound", ids.SUMMARY_UPPER_BOUND, "bytes"),
    ],
}
_MANIFEST: Parts = {
    **_parts(ids.MANIFEST_FIELDS),
    "partitions": (ids.PARTITIONS, _list(ids.PARTITIONS_ELEMENT, _SUMMARY)),
}


def _record(name: str, table: FieldTable, version: int, parts: Parts) -> Json:
    """The record of the fields that a version writes, in the order of the field table."""
    listed = [
        _field(field_name, *parts[field_name], required=presence(table, field_name, version) is Presence.REQUIRED)
        for field_name in fields(table, version)
        if field_name in parts
    ]
    return {"type": "record", "name": name, "fields": listed}


def manifest_schema(spec: PartitionSpec, types: Mapping[int, Type], version: int) -> Json:
    """The schema of a manifest of a spec; ``types`` are the partition values' types by partition field id."""
    partition = [
        {
            **_field(avro_name(part.name), part.stored_id, avro_type(types[part.field_id], part.stored_id)),
            **({} if avro_name(part.name) == part.name else {"iceberg-field-name": part.name}),
        }
        for part in spec.fields
    ]
    tuple_ = {"type": "record", "name": f"r{ids.PARTITION}", "fields": partition}
    file = _record(f"r{ids.DATA_FILE}", DATA_FILE_FIELDS, version, {**_FILE, "partition": (ids.PARTITION, tuple_)})
    return _record("manifest_entry", MANIFEST_ENTRY_FIELDS, version, {**_ENTRY, "data_file": (ids.DATA_FILE, file)})


def manifest_list_schema(version: int) -> Json:
    """The schema of a manifest list."""
    return _record("manifest_file", MANIFEST_LIST_FIELDS, version, _MANIFEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroFields:
    """The fields of a record in a file by their ids; a field without an id is known by its name alone."""

    names: Mapping[int, str]
    by_name: Mapping[str, Json]

    def name(self, field_id: int, default: str) -> str | None:
        """The name of a field in the file; None if the file does not have the field."""
        stored_name = self.names.get(field_id)
        if stored_name is not None:
            return stored_name
        named = self.by_name.get(default)
        return default if named is not None and "field-id" not in named else None

    @property
    def named(self) -> tuple[tuple[int | None, str], ...]:
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


RAW: Mapping[Primitive, pa.DataType] = {
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
    return RAW.get(type_, pa.binary()) if isinstance(type_, Primitive) else pa.binary()

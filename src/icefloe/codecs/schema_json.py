"""Schemas, partition specs and sort orders as JSON (spec: Appendix C: JSON serialization).

The same objects stand in table metadata and in the key-value metadata of Avro manifests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from icefloe.codecs.json_input import Int, Record, convert_json, join, missing
from icefloe.errors import FormatError, LimitError, UnsupportedError
from icefloe.limits import DEFAULT, Limits
from icefloe.model.partitioning import FIRST_PARTITION_FIELD_ID, Expression, PartitionField, PartitionSpec
from icefloe.model.schema import Schema
from icefloe.model.sorting import SortField, SortOrder
from icefloe.model.types import Field, List, Map, Struct, Type, format_type, parse_type


class ListRecord(Record, frozen=True, tag="list"):
    """A list type."""

    element_id: Int
    element: str | StructRecord | ListRecord | MapRecord
    element_required: bool


class MapRecord(Record, frozen=True, tag="map"):
    """A map type."""

    key_id: Int
    key: str | StructRecord | ListRecord | MapRecord
    value_id: Int
    value: str | StructRecord | ListRecord | MapRecord
    value_required: bool


class FieldRecord(Record, frozen=True):
    """A column or a field of a struct."""

    id: Int
    name: str
    type: str | StructRecord | ListRecord | MapRecord
    required: bool
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None


class StructRecord(Record, frozen=True, tag="struct"):
    """A struct type."""

    fields: list[FieldRecord]


class SchemaRecord(Record, frozen=True):
    """A schema: a struct type with an id."""

    type: Literal["struct"]
    fields: list[FieldRecord]
    schema_id: Int = 0
    identifier_field_ids: list[Int] | None = None


class PartitionFieldRecord(Record, frozen=True):
    """A partition field; version 1 has no ids, and V4 may give an expression in place of everything else."""

    source_id: Int | None = None
    source_ids: list[Int] | None = None
    field_id: Int | None = None
    name: str | None = None
    transform: str | None = None
    expr_id: Int | None = None


class PartitionSpecRecord(Record, frozen=True):
    """A partition spec."""

    spec_id: Int
    fields: list[PartitionFieldRecord]


class SortFieldRecord(Record, frozen=True):
    """A key of a sort order."""

    transform: str
    direction: Literal["asc", "desc"]
    null_order: Literal["nulls-first", "nulls-last"]
    source_id: Int | None = None
    source_ids: list[Int] | None = None


class SortOrderRecord(Record, frozen=True):
    """A sort order."""

    order_id: Int
    fields: list[SortFieldRecord]


TypeRecord = str | StructRecord | ListRecord | MapRecord


def schema_from_json(value: object, path: str = "schema", *, limits: Limits = DEFAULT) -> Schema:
    """The schema of a parsed JSON object; ``path`` says in errors where it stands."""
    return schema_from_record(convert_json(value, SchemaRecord, path), path, limits)


def schema_from_record(record: SchemaRecord, path: str, limits: Limits) -> Schema:
    """The schema of a decoded record."""
    try:
        return Schema(
            fields=_fields(record.fields, join(path, "fields"), limits.type_depth),
            schema_id=record.schema_id,
            identifier_field_ids=tuple(record.identifier_field_ids or ()),
        )
    except FormatError as error:
        if str(error).startswith(path):
            raise
        raise FormatError(f"{path}: {error}", **{**error.context, "field": path}) from error


def _fields(records: list[FieldRecord], path: str, depth: int) -> tuple[Field, ...]:
    return tuple(
        Field(
            record.id,
            record.name,
            _type(record.type, f"{path}[{index}].type", depth),
            record.required,
            record.doc,
            record.initial_default,
            record.write_default,
        )
        for index, record in enumerate(records)
    )


def _type(record: TypeRecord, path: str, depth: int) -> Type:
    if depth <= 0:
        raise LimitError(f"{path}: types are nested too deeply", field=path)
    match record:
        case StructRecord():
            return Struct(_fields(record.fields, join(path, "fields"), depth - 1))
        case ListRecord():
            element = _type(record.element, join(path, "element"), depth - 1)
            return List(record.element_id, element, record.element_required)
        case MapRecord():
            key = _type(record.key, join(path, "key"), depth - 1)
            value = _type(record.value, join(path, "value"), depth - 1)
            return Map(record.key_id, key, record.value_id, value, record.value_required)
        case _:
            return _primitive(record, path)


def _primitive(text: str, path: str) -> Type:
    try:
        return parse_type(text)
    except (FormatError, UnsupportedError) as error:
        raise type(error)(f"{path}: {error}", **{**error.context, "field": path}) from error


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """A schema as a JSON object.

    >>> from icefloe.model.types import LONG
    >>> schema_to_json(Schema(fields=(Field(1, "id", LONG),)))["fields"]
    [{'id': 1, 'name': 'id', 'required': False, 'type': 'long'}]
    """
    head: dict[str, Any] = {"type": "struct", "schema-id": schema.schema_id}
    if len(schema.identifier_field_ids) > 0:
        head["identifier-field-ids"] = list(schema.identifier_field_ids)
    return {**head, "fields": [_field_to_json(field) for field in schema.fields]}


def _field_to_json(field: Field) -> dict[str, Any]:
    written: dict[str, Any] = {"id": field.id, "name": field.name, "required": field.required}
    written["type"] = type_to_json(field.type)
    optional = (("doc", field.doc), ("initial-default", field.initial_default), ("write-default", field.write_default))
    return written | {key: value for key, value in optional if value is not None}


def type_to_json(type_: Type) -> str | dict[str, Any]:
    """A type as JSON: a name, or an object for a nested type."""
    match type_:
        case Struct(fields):
            return {"type": "struct", "fields": [_field_to_json(field) for field in fields]}
        case List():
            return {
                "type": "list",
                "element-id": type_.element_id,
                "element": type_to_json(type_.element),
                "element-required": type_.element_required,
            }
        case Map():
            return {
                "type": "map",
                "key-id": type_.key_id,
                "key": type_to_json(type_.key),
                "value-id": type_.value_id,
                "value": type_to_json(type_.value),
                "value-required": type_.value_required,
            }
        case _:
            return format_type(type_)


def spec_from_json(
    value: object, path: str = "partition-spec", *, expressions: Iterable[Expression] = ()
) -> PartitionSpec:
    """The partition spec of a parsed JSON object, or of version 1's and Avro's bare list of fields."""
    whole = {"spec-id": 0, "fields": value} if isinstance(value, list) else value
    inner = path if isinstance(value, list) else join(path, "fields")
    record = convert_json(whole, PartitionSpecRecord, path)
    return spec_from_record(record, inner, {e.expr_id: e for e in expressions})


def spec_from_record(record: PartitionSpecRecord, path: str, expressions: dict[int, Expression]) -> PartitionSpec:
    """The partition spec of a decoded record; ``path`` is that of its fields."""
    fields = tuple(
        _partition_field(field, f"{path}[{index}]", FIRST_PARTITION_FIELD_ID + index, expressions)
        for index, field in enumerate(record.fields)
    )
    return PartitionSpec(spec_id=record.spec_id, fields=fields)


def _partition_field(
    record: PartitionFieldRecord, path: str, default_id: int, expressions: dict[int, Expression]
) -> PartitionField:
    expression = None if record.expr_id is None else expressions.get(record.expr_id)
    if expression is not None:
        record = _completed(record, expression)
    source_id = _source(record.source_id, record.source_ids, path)
    if record.name is None or record.transform is None:
        raise missing(path, *(key for key in ("name", "transform") if getattr(record, key) is None))
    return PartitionField(
        source_id=source_id,
        field_id=default_id if record.field_id is None else record.field_id,
        name=record.name,
        transform=record.transform,
    )


def _completed(record: PartitionFieldRecord, expression: Expression) -> PartitionFieldRecord:
    sources = record.source_ids if record.source_id is None else [record.source_id]
    return PartitionFieldRecord(
        source_ids=list(expression.source_ids) if sources is None else sources,
        field_id=expression.partition_field_id if record.field_id is None else record.field_id,
        name=expression.name if record.name is None else record.name,
        transform=expression.transform if record.transform is None else record.transform,
    )


def _source(single: int | None, several: list[int] | None, path: str) -> int:
    if single is not None:
        return single
    if several is None or len(several) == 0:
        raise missing(path, "source-id")
    if len(several) > 1:
        raise UnsupportedError(f"{path}.source-ids: transforms of several columns are not handled", field=path)
    return several[0]


def spec_to_json(spec: PartitionSpec, *, expressions: Iterable[Expression] | None = None) -> dict[str, Any]:
    """A partition spec as a JSON object; V4 gives its expressions, and each field names the one it uses."""
    written = [_partition_field_to_json(field) for field in spec.fields]
    if expressions is not None:
        by_field = {e.partition_field_id: e.expr_id for e in expressions}
        for field, fields in zip(spec.fields, written, strict=True):
            # An identity field needs no expression: the id of its column says it all.
            expr_id = field.source_id if field.transform == "identity" else by_field.get(field.field_id)
            if expr_id is not None:
                fields["expr-id"] = expr_id
    return {"spec-id": spec.spec_id, "fields": written}


def _partition_field_to_json(field: PartitionField) -> dict[str, Any]:
    return {
        "source-id": field.source_id,
        "field-id": field.field_id,
        "transform": field.transform,
        "name": field.name,
    }


def sort_order_from_record(record: SortOrderRecord, path: str) -> SortOrder:
    """The sort order of a decoded record."""
    fields = tuple(
        SortField(
            source_id=_source(field.source_id, field.source_ids, f"{path}.fields[{index}]"),
            transform=field.transform,
            direction=field.direction,
            null_order=field.null_order,
        )
        for index, field in enumerate(record.fields)
    )
    return SortOrder(order_id=record.order_id, fields=fields)


def sort_order_to_json(order: SortOrder) -> dict[str, Any]:
    """A sort order as a JSON object."""
    return {
        "order-id": order.order_id,
        "fields": [
            {
                "transform": field.transform,
                "source-id": field.source_id,
                "direction": field.direction,
                "null-order": field.null_order,
            }
            for field in order.fields
        ],
    }


class ExprRecord(Record, frozen=True):
    """What an expression computes."""

    transform: str
    name: str
    source_id: Int | None = None
    source_ids: list[Int] | None = None


class ExpressionRecord(Record, frozen=True):
    """A derived value with an id of its own (V4)."""

    expr_id: Int
    expr: ExprRecord
    partition_field_id: Int | None = None


def expression_from_record(record: ExpressionRecord, path: str) -> Expression:
    """The expression of a decoded record."""
    several = record.expr.source_ids
    sources = (_source(record.expr.source_id, several, f"{path}.expr"),) if several is None else tuple(several)
    return Expression(
        expr_id=record.expr_id,
        source_ids=sources,
        transform=record.expr.transform,
        name=record.expr.name,
        partition_field_id=record.partition_field_id,
    )


def expression_to_json(expression: Expression) -> dict[str, Any]:
    """An expression as a JSON object."""
    sources: dict[str, Any] = {"source-ids": list(expression.source_ids)}
    if len(expression.source_ids) == 1:
        sources = {"source-id": expression.source_ids[0]}
    expr = {**sources, "transform": expression.transform, "name": expression.name}
    link = expression.partition_field_id
    return {"expr-id": expression.expr_id, "expr": expr} | ({} if link is None else {"partition-field-id": link})

"""Partition specs, sort orders and V4's expressions as JSON (spec: Partition Specs; V4 proposal).

Table metadata and the key-value metadata of Avro manifests store the same partition specs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from icefloe.codecs.json.input import Extensible, Int, Reading, convert_extensible, missing, with_unknown
from icefloe.codecs.json.record_shapes import join
from icefloe.errors import FormatError
from icefloe.model.partition.sort_order import SortField, SortOrder
from icefloe.model.partition.spec import (
    FIRST_PARTITION_FIELD_ID,
    Expression,
    PartitionField,
    PartitionSpec,
    expression_ids,
)
from icefloe.model.partition.transform_names import IDENTITY
from icefloe.model.schema.types import Unknown
from icefloe.transforms import parse_transform

_INNER = "expr"


class PartitionFieldRecord(Extensible, frozen=True):
    """A partition field; version 1 has no ids, and V4 may have an expression instead of everything else."""

    source_id: Int | None = None
    source_ids: list[Int] | None = None
    field_id: Int | None = None
    name: str | None = None
    transform: str | None = None
    expr_id: Int | None = None


class PartitionSpecRecord(Extensible, frozen=True):
    """A partition spec."""

    spec_id: Int
    fields: list[PartitionFieldRecord]


class SortFieldRecord(Extensible, frozen=True):
    """A key of a sort order."""

    transform: str
    direction: Literal["asc", "desc"]
    null_order: Literal["nulls-first", "nulls-last"]
    source_id: Int | None = None
    source_ids: list[Int] | None = None


class SortOrderRecord(Extensible, frozen=True):
    """A sort order."""

    order_id: Int
    fields: list[SortFieldRecord]


class ExprRecord(Extensible, frozen=True):
    """What an expression computes; some examples of the proposal have its partition field here."""

    transform: str
    name: str
    source_id: Int | None = None
    source_ids: list[Int] | None = None
    partition_field_id: Int | None = None


class ExpressionRecord(Extensible, frozen=True):
    """A derived value with an id of its own (V4)."""

    expr_id: Int
    expr: ExprRecord
    partition_field_id: Int | None = None


def spec_from_json(
    value: object, path: str = "partition-spec", *, expressions: Iterable[Expression] = ()
) -> PartitionSpec:
    """The partition spec of a parsed JSON object, or of version 1's and Avro's bare list of fields."""
    by_id = {e.expr_id: e for e in expressions}
    if isinstance(value, list):
        whole, extras = convert_extensible({"spec-id": 0, "fields": value}, PartitionSpecRecord, path)
        shifted = {at.replace(join(path, "fields"), path, 1): unknown for at, unknown in extras.items()}
        return spec_from_fields(whole.fields, path, Reading(extras=shifted), by_id)
    record, extras = convert_extensible(value, PartitionSpecRecord, path)
    return spec_from_record(record, path, Reading(extras=extras), by_id)


def spec_from_record(
    record: PartitionSpecRecord, path: str, reading: Reading, expressions: Mapping[int, Expression]
) -> PartitionSpec:
    """The partition spec of a decoded record."""
    spec = spec_from_fields(record.fields, join(path, "fields"), reading, expressions)
    return PartitionSpec(spec_id=record.spec_id, fields=spec.fields, extra=reading.unknown(path))


def spec_from_fields(
    records: list[PartitionFieldRecord], path: str, reading: Reading, expressions: Mapping[int, Expression]
) -> PartitionSpec:
    """The spec of a bare list of fields, as in version 1; ``path`` is the JSON path of the list."""
    fields: dict[int, PartitionField] = {}
    for index, record in enumerate(records):
        at = f"{path}[{index}]"
        field = _partition_field(record, at, FIRST_PARTITION_FIELD_ID + index, reading, expressions)
        if field.field_id in fields:
            name = fields[field.field_id].name
            raise FormatError(f"{at}.field-id: {field.field_id} is also the id of {name!r}", field=f"{at}.field-id")
        fields[field.field_id] = field
    return PartitionSpec(fields=tuple(fields.values()))


def _partition_field(
    record: PartitionFieldRecord, path: str, default_id: int, reading: Reading, expressions: Mapping[int, Expression]
) -> PartitionField:
    expression = None if record.expr_id is None else expressions.get(record.expr_id)
    if expression is not None:
        record = _completed(record, expression)
    source_id, *others = _sources(record.source_id, record.source_ids, path)
    if record.name is None or record.transform is None:
        raise missing(path, *(key for key in ("name", "transform") if getattr(record, key) is None))
    return PartitionField(
        source_id=source_id,
        field_id=default_id if record.field_id is None else record.field_id,
        name=record.name,
        transform=_canonical(record.transform, path),
        other_source_ids=tuple(others),
        extra=reading.unknown(path),
    )


def _canonical(transform: str, path: str) -> str:
    """A transform in the spelling of the specification, which is how the library compares them."""
    try:
        return str(parse_transform(transform))
    except FormatError as error:
        raise FormatError(f"{path}.transform: {error}", **{**error.context, "field": f"{path}.transform"}) from error


def _completed(record: PartitionFieldRecord, expression: Expression) -> PartitionFieldRecord:
    """The record completed from its expression."""
    sourced = record.source_id is not None or record.source_ids is not None
    return PartitionFieldRecord(
        source_id=record.source_id,
        source_ids=record.source_ids if sourced else list(expression.source_ids),
        field_id=expression.partition_field_id if record.field_id is None else record.field_id,
        name=expression.name if record.name is None else record.name,
        transform=expression.transform if record.transform is None else record.transform,
    )


def _sources(single: int | None, several: list[int] | None, path: str) -> list[int]:
    """The source columns of a transform, from ``source-id`` or ``source-ids``."""
    if several is None or len(several) == 0:
        if single is None:
            raise missing(path, "source-id")
        return [single]
    if single is not None and single != several[0]:
        reason = f"starts with {several[0]}, but source-id is {single}"
        raise FormatError(f"{path}.source-ids: {reason}", field=f"{path}.source-ids")
    return several


def _sources_to_json(source_ids: tuple[int, ...]) -> dict[str, Any]:
    return {"source-id": source_ids[0]} if len(source_ids) == 1 else {"source-ids": list(source_ids)}


def spec_to_json(spec: PartitionSpec, *, expressions: Iterable[Expression] | None = None) -> dict[str, Any]:
    """A partition spec as a JSON object. In V4, ``expressions`` are the table's, and each field refers to one by id.

    >>> field = PartitionField(source_id=1, field_id=1000, name="id_bucket", transform="bucket[4]")
    >>> spec_to_json(PartitionSpec(fields=(field,)))["fields"]
    [{'source-id': 1, 'field-id': 1000, 'transform': 'bucket[4]', 'name': 'id_bucket'}]
    """
    by_field = None if expressions is None else expression_ids(spec.fields, expressions)
    fields = [_partition_field_to_json(field, by_field) for field in spec.fields]
    return with_unknown({"spec-id": spec.spec_id, "fields": fields}, spec.extra)


def _partition_field_to_json(field: PartitionField, expressions: Mapping[int, int] | None) -> dict[str, Any]:
    own = {"field-id": field.stored_id, "transform": field.transform, "name": field.name}
    written = {**_sources_to_json(field.source_ids), **own}
    if expressions is not None:
        # An identity field needs no expression: it has the id of its column.
        expr_id = field.source_id if field.transform == IDENTITY else expressions.get(field.field_id)
        if expr_id is not None:
            written["expr-id"] = expr_id
    return with_unknown(written, field.extra)


def sort_order_from_record(record: SortOrderRecord, path: str, reading: Reading) -> SortOrder:
    """The sort order of a decoded record."""
    fields = tuple(_sort_field(field, f"{path}.fields[{index}]", reading) for index, field in enumerate(record.fields))
    return SortOrder(order_id=record.order_id, fields=fields, extra=reading.unknown(path))


def _sort_field(record: SortFieldRecord, path: str, reading: Reading) -> SortField:
    source_id, *others = _sources(record.source_id, record.source_ids, path)
    return SortField(
        source_id=source_id,
        transform=_canonical(record.transform, path),
        direction=record.direction,
        null_order=record.null_order,
        other_source_ids=tuple(others),
        extra=reading.unknown(path),
    )


def sort_order_to_json(order: SortOrder) -> dict[str, Any]:
    """A sort order as a JSON object."""
    fields = [_sort_field_to_json(field) for field in order.fields]
    return with_unknown({"order-id": order.order_id, "fields": fields}, order.extra)


def _sort_field_to_json(field: SortField) -> dict[str, Any]:
    written = {
        "transform": field.transform,
        **_sources_to_json(field.source_ids),
        "direction": field.direction,
        "null-order": field.null_order,
    }
    return with_unknown(written, field.extra)


def expression_from_record(record: ExpressionRecord, path: str, reading: Reading) -> Expression:
    """The expression of a decoded record."""
    inner = record.expr
    return Expression(
        expr_id=record.expr_id,
        source_ids=tuple(_sources(inner.source_id, inner.source_ids, f"{path}.expr")),
        transform=_canonical(inner.transform, f"{path}.expr"),
        name=inner.name,
        partition_field_id=inner.partition_field_id if record.partition_field_id is None else record.partition_field_id,
        extra=(*reading.unknown(path), *_boxed(reading.unknown(f"{path}.expr"))),
    )


def _boxed(unknown: Unknown) -> Unknown:
    """Unknown keys of the inner object as one entry, under a known key, which cannot be an unknown one."""
    return () if len(unknown) == 0 else ((_INNER, msgspec.json.encode(with_unknown({}, unknown)).decode()),)


def expression_to_json(expression: Expression) -> dict[str, Any]:
    """An expression as a JSON object."""
    inner: dict[str, Any] = {
        **_sources_to_json(expression.source_ids),
        "transform": expression.transform,
        "name": expression.name,
    }
    boxed = dict(expression.extra).get(_INNER)
    if boxed is not None:
        inner = msgspec.json.decode(boxed, type=dict[str, msgspec.Raw]) | inner
    link = expression.partition_field_id
    written = {"expr-id": expression.expr_id, _INNER: inner}
    return with_unknown(written if link is None else {**written, "partition-field-id": link}, expression.extra)

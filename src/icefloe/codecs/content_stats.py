"""The content_stats struct of V4 manifests and the statistics columns of entries (V4 proposal).

Every measured column has a struct under 10 000 + 200 x its id, every derived partition value one under its expression
id. An identity partition value has no struct of its own: it is stored, untruncated, as the bounds of its column, and
reading gives it back under both keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.context import IDENTITY, ManifestContext
from icefloe.codecs.entry_columns import has_nan, is_file, partition_stats, without_nan
from icefloe.codecs.field_ids import CONTENT_STATS, MEASURE_OFFSETS, STATS_FIELD_LIMIT, stats_id, stats_owner
from icefloe.errors import FormatError, InputError
from icefloe.model.arrow import FIELD_ID, arrow_type
from icefloe.model.entries import ContentType, column_key, partition_key, stat
from icefloe.model.partitioning import PartitionField
from icefloe.model.types import BINARY, STRING, UUID, Type

Columns = Mapping[str, pa.Array]

_BOUNDS = ("lower_bound", "upper_bound")
_ALWAYS = (*_BOUNDS, "tight_bounds", "value_count", "null_value_count")
_OVERRIDDEN = (*_BOUNDS, "value_count", "null_value_count", "nan_value_count")
_MEASURE_TYPES = {"tight_bounds": pa.bool_(), "avg_value_size_in_bytes": pa.int32()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Owner:
    """Whose statistics a struct holds."""

    id: int
    key: str
    name: str
    type: Type


def with_id(name: str, type_: pa.DataType, field_id: int, *, required: bool = False) -> pa.Field:
    """An Arrow field that Parquet writes with this id."""
    return pa.field(name, type_, nullable=not required, metadata={FIELD_ID: str(field_id).encode()})


def measures_of(type_: Type) -> tuple[str, ...]:
    """The measures that statistics of a type have."""
    nan = ("nan_value_count",) if has_nan(type_) else ()
    size = ("avg_value_size_in_bytes",) if type_ in (STRING, BINARY) else ()
    return (*_ALWAYS, *nan, *size)


# -- writing


def encode_stats(columns: Columns, length: int, context: ManifestContext) -> tuple[pa.Field, pa.Array] | None:
    """The content_stats column of entries; none when no row has statistics."""
    _check_partition_values(columns, context)
    fields: list[pa.Field] = []
    structs: list[pa.Array] = []
    for owner in _owners(context):
        members = _members(columns, owner, context)
        if any(member.null_count < length for member in members.values()):
            field, struct = _struct(members, owner, length)
            fields.append(field)
            structs.append(struct)
    if len(structs) == 0:
        return None
    found = pa.StructArray.from_arrays(structs, fields=fields, mask=_all_null(structs))
    return with_id("content_stats", found.type, CONTENT_STATS), found


def _owners(context: ManifestContext) -> Iterator[_Owner]:
    """Measured columns, the columns of identity partitions even if dropped, and derived partition values."""
    kept = dict.fromkeys((*context.schema.measured, *sorted(context.identity_sources)))
    for column_id in kept:
        if column_id < STATS_FIELD_LIMIT:
            name = context.schema.names.get(column_id, f"column_{column_id}").replace(".", "_")
            yield _Owner(id=column_id, key=column_key(column_id), name=name, type=context.types[column_id])
    for field in context.partition_fields.values():
        if field.transform != IDENTITY and field.field_id in context.expressions:
            owner_id, type_ = context.expressions[field.field_id], context.partition_types[field.field_id]
            yield _Owner(id=owner_id, key=partition_key(field.field_id), name=field.name, type=type_)


def _members(columns: Columns, owner: _Owner, context: ManifestContext) -> dict[str, pa.Array]:
    """The arrays that are there of an owner's measures."""
    found = {m: columns[stat(m, owner.key)] for m in measures_of(owner.type) if stat(m, owner.key) in columns}
    if owner.key.startswith("p"):
        return _without_upper_of_files(found, columns["content_type"])
    if owner.id in context.identity_sources:
        for field in context.partition_fields.values():
            key = partition_key(field.field_id)
            if field.transform == IDENTITY and field.source_id == owner.id and stat("value_count", key) in columns:
                found = _overridden(found, columns, key, owner.type)
    return found


def _without_upper_of_files(found: dict[str, pa.Array], content_type: pa.Array) -> dict[str, pa.Array]:
    """On a file row the value stands in lower_bound alone."""
    if (upper := found.get("upper_bound")) is None:
        return found
    return {**found, "upper_bound": pc.if_else(is_file(content_type), None, upper)}


def _overridden(found: dict[str, pa.Array], columns: Columns, key: str, type_: Type) -> dict[str, pa.Array]:
    """A column's measures with those of its identity partition value in the rows that have one."""
    known = pc.is_valid(columns[stat("value_count", key)])
    result = dict(found)
    for measure in _OVERRIDDEN:
        if measure not in measures_of(type_) or (own := columns.get(stat(measure, key))) is None:
            continue
        column = found.get(measure)
        rest = own if column is None else pc.coalesce(own, column.cast(own.type))
        result[measure] = own if known.null_count == 0 and pc.all(known).as_py() else pc.if_else(known, own, rest)
    return result


def _struct(members: dict[str, pa.Array], owner: _Owner, length: int) -> tuple[pa.Field, pa.Array]:
    """The struct of an owner, of the measures that some row has: each one costs a column in every later root."""
    fields: list[pa.Field] = []
    arrays: list[pa.Array] = []
    for measure, field in zip(measures_of(owner.type), _member_fields(owner), strict=True):
        member = members.get(measure)
        if member is not None and member.null_count < length:
            fields.append(field)
            arrays.append(_stored_as(member, field.type))
    struct = pa.StructArray.from_arrays(arrays, fields=fields, mask=_all_null(arrays))
    return with_id(owner.name, struct.type, stats_id(owner.id)), struct


@lru_cache(maxsize=4096)
def _member_fields(owner: _Owner) -> list[pa.Field]:
    bound = pa.uuid() if owner.type == UUID else arrow_type(owner.type)
    types = {m: bound if m in _BOUNDS else _MEASURE_TYPES.get(m, pa.int64()) for m in measures_of(owner.type)}
    return [with_id(m, type_, stats_id(owner.id) + MEASURE_OFFSETS[m]) for m, type_ in types.items()]


def _stored_as(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, array)
    return array if array.type == type_ else array.cast(type_)


def _all_null(arrays: list[pa.Array]) -> pa.Array | None:
    """Which rows have nothing in any array; none if there is no such row."""
    if any(array.null_count == 0 for array in arrays):
        return None
    mask = pc.is_null(arrays[0])
    for array in arrays[1:]:
        mask = pc.and_(mask, pc.is_null(array))
    return mask


def _check_partition_values(columns: Columns, context: ManifestContext) -> None:
    """Every file row must tell each value of its partition tuple, or it could not be placed again."""
    spec_ids, files = columns["partition_spec_id"], is_file(columns["content_type"])
    for spec_id in pc.unique(spec_ids).to_pylist():
        for field in context.spec(spec_id).fields:
            if field.field_id in context.partition_types:
                _check_partition_value(columns, pc.and_(files, pc.equal(spec_ids, spec_id)), field, context)
            elif field.transform != "void":
                raise InputError(f"partition field {field.name!r}: cannot write {field.transform!r}", field=field.name)


def _check_partition_value(columns: Columns, rows: pa.Array, field: PartitionField, context: ManifestContext) -> None:
    if field.transform != IDENTITY and field.field_id not in context.expressions:
        raise InputError(f"partition field {field.name!r} has no expression id in the table", field=field.name)
    counts = columns.get(stat("value_count", partition_key(field.field_id)))
    if counts is not None and counts.null_count == 0:
        return
    missing = rows if counts is None else pc.and_(rows, pc.is_null(counts))
    if (row := pc.index(missing, True).as_py()) >= 0:
        raise InputError(f"entry {row} has no value of partition field {field.name!r}", field=field.name, row=row)


# -- reading


def decode_stats(struct: pa.Array | None, fixed: Columns, context: ManifestContext, *, where: str) -> Columns:
    """Statistics columns from a content_stats column; ``fixed`` are the decoded columns of the same rows."""
    names = {context.expressions[i]: partition_key(i) for i in context.partition_fields if i in context.expressions}
    types = {key: context.partition_types[int(key[1:])] for key in names.values()}
    found: dict[str, pa.Array] = {}
    children = [] if struct is None else zip(struct.type, struct.flatten(), strict=True)
    for field, child in children:
        owner = stats_owner(field_id(field, where))
        if owner is None or not pa.types.is_struct(child.type):
            continue
        if owner in names:
            found |= _measures(child, names[owner], types[names[owner]], owner, where)
        elif (type_ := context.column_type(owner)) is not None:
            found |= _measures(child, column_key(owner), type_, owner, where)
    present = set(pc.unique(fixed["partition_spec_id"]).to_pylist())
    for part in context.partition_fields.values():
        if not present.isdisjoint(context.specs_with[part.field_id]):
            found |= _partition(found, fixed, part, context, where)
    return {name: column for name, column in found.items() if column.null_count < len(column)}


def field_id(field: pa.Field, where: str) -> int:
    """The id of a field in a file; every field of a manifest has one."""
    text = (field.metadata or {}).get(FIELD_ID)
    if text is None or not text.lstrip(b"-").isdigit():
        raise FormatError(f"{where}: column {field.name!r} has no field id", location=where, field=field.name)
    return int(text)


_OFFSETS = {offset: measure for measure, offset in MEASURE_OFFSETS.items()}


def _measures(struct: pa.StructArray, key: str, type_: Type, owner: int, where: str) -> dict[str, pa.Array]:
    found: dict[str, pa.Array] = {}
    for field, member in zip(struct.type, struct.flatten(), strict=True):
        measure = _OFFSETS.get(field_id(field, where) - stats_id(owner))
        if measure not in measures_of(type_):
            continue
        array = member.storage if isinstance(member, pa.ExtensionArray) else member
        bound = measure in _BOUNDS
        target = arrow_type(type_) if bound else _MEASURE_TYPES.get(measure, pa.int64())
        try:
            array = array if array.type == target else array.cast(target)
        except pa.ArrowException as error:
            raise FormatError(
                f"{where}: content_stats.{field.name} of id {owner} is {array.type}, expected {target}", location=where
            ) from error
        found[stat(measure, key)] = without_nan(array) if bound else array
    return found


def _partition(
    found: Columns, fixed: Columns, part: PartitionField, context: ManifestContext, where: str
) -> dict[str, pa.Array]:
    """The statistics of one partition field, from its own struct or that of its identity column."""
    key, type_ = partition_key(part.field_id), context.partition_types[part.field_id]
    source = column_key(part.source_id) if part.transform == IDENTITY else key
    content_type, spec_ids = fixed["content_type"], fixed["partition_spec_id"]
    mine = pc.is_in(spec_ids, value_set=pa.array(context.specs_with[part.field_id], pa.int32()))
    rows = pc.and_(mine, pc.not_equal(content_type, int(ContentType.MANIFEST_DV)))
    files = pc.and_(rows, is_file(content_type))
    stored = {m: found.get(stat(m, source)) for m in _OVERRIDDEN}
    of_files = _file_values(stored, fixed["record_count"], key, type_, files, part, where)
    if files.true_count == len(files):
        return of_files
    result: dict[str, pa.Array] = {}
    for measure in _OVERRIDDEN:
        if (value := of_files.get(stat(measure, key))) is not None:
            own = stored[measure]
            others = pa.nulls(len(rows), value.type) if own is None else pc.if_else(rows, own.cast(value.type), None)
            result[stat(measure, key)] = pc.if_else(files, value, others)
    return result


def _file_values(
    stored: Mapping[str, pa.Array | None],
    record_count: pa.Array,
    key: str,
    type_: Type,
    files: pa.Array,
    part: PartitionField,
    where: str,
) -> dict[str, pa.Array]:
    """Partition values of file rows: the lower bound, else null or NaN as the counts say; silence is an error."""
    lower, total = stored["lower_bound"], stored["value_count"]
    target = arrow_type(type_)
    value = pa.nulls(len(files), target) if lower is None else lower.cast(target)
    told = pc.or_(pc.is_valid(value), _equal(stored["null_value_count"], total, len(files)))
    nan = _equal(stored["nan_value_count"], total, len(files)) if has_nan(type_) else None
    if nan is not None:
        nan = pc.and_(nan, pc.invert(told))
        value = pc.if_else(nan, pa.scalar(float("nan"), target), value)
        told = pc.or_(told, nan)
    if (row := pc.index(pc.and_not(files, told), True).as_py()) >= 0:
        raise FormatError(
            f"{where}: row {row} has no value of partition field {part.name!r} in content_stats", location=where
        )
    return partition_stats(key, value, record_count, type_)


def _equal(left: pa.Array | None, right: pa.Array | None, length: int) -> pa.Array:
    if left is None or right is None:
        return pa.repeat(False, length)
    return pc.fill_null(pc.equal(left, right), False)

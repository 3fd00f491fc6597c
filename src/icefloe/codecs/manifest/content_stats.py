"""The content_stats struct of V4 manifests and the statistics columns of entries (V4 proposal).

Every measured column has a struct under 10 000 + 200 x its id, every derived partition value one under its expression
id. An identity partition value has no struct of its own: it is stored, untruncated, as the bounds of its column, and
is decoded under both keys. The bounds of shapes are corners of a box, stored as structs of coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.field_ids import (
    CONTENT_STATS,
    CORNER_OFFSETS,
    MEASURE_OFFSETS,
    STATS_FIELD_LIMIT,
    stats_id,
    stats_owner,
)
from icefloe.codecs.manifest.partition_values import PARTITION_MEASURES, partition_values
from icefloe.codecs.manifest.value_sizes import average_sizes
from icefloe.codecs.manifest.virtual_columns import derived_measures, unknown_types
from icefloe.codecs.value.bounds import without_nan
from icefloe.codecs.value.inferred_types import infer_types, type_of_arrow
from icefloe.codecs.value.promoted_bounds import promoted
from icefloe.errors import FormatError, InputError
from icefloe.model.arrow.conform import FIELD_ID, arrow_type
from icefloe.model.corners import AXES, REQUIRED_AXES, corner_structs, corners_of
from icefloe.model.entries import (
    BOUNDS,
    Columns,
    Measure,
    StatKey,
    StatKeys,
    column_key,
    is_file,
    known_measures,
    partition_key,
    stat,
    type_of_measure,
)
from icefloe.model.partition.spec import PartitionField
from icefloe.model.partition.transform_names import IDENTITY
from icefloe.model.schema.types import UUID, Type, has_nan, has_value_sizes, is_primitive, is_shape


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Member:
    """A measure of an owner: its column in entry tables, and its field in a file."""

    measure: Measure
    column: str
    field: pa.Field


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Owner:
    """The column or expression whose statistics a struct has."""

    id: int
    key: StatKey
    name: str
    type: Type
    members: tuple[_Member, ...]
    others: tuple[StatKey, ...] = ()  # keys of partition fields that compute the same value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StatsShape:
    """The content_stats column of a file. Equal statistics have the same object, so it is a key of caches."""

    field: pa.Field


def with_id(name: str, type_: pa.DataType, field_id: int, *, required: bool = False) -> pa.Field:
    """An Arrow field that Parquet writes with this id."""
    return pa.field(name, type_, nullable=not required, metadata={FIELD_ID: str(field_id).encode()})


def struct_of(type_: pa.StructType, members: list[pa.Array], absent: pa.Array | None) -> pa.Array:
    """A struct array of a type that is known; ``absent`` are the rows that have none."""
    if absent is not None:
        return pa.StructArray.from_arrays(members, fields=list(type_), mask=absent)
    return pa.Array.from_buffers(type_, len(members[0]), [None], 0, 0, members)


def measures_of(type_: Type) -> tuple[Measure, ...]:
    """The measures that statistics of a type have."""
    tight = () if is_shape(type_) else (Measure.TIGHT,)
    nan = (Measure.NANS,) if has_nan(type_) else ()
    size = (Measure.AVERAGE_SIZE,) if has_value_sizes(type_) else ()
    return (*BOUNDS, *tight, Measure.VALUES, Measure.NULLS, *nan, *size)


# -- writing


def encode_stats(columns: Columns, length: int, context: ManifestContext) -> tuple[StatsShape, pa.Array] | None:
    """The content_stats column of entries; none when no row has statistics."""
    context = context.with_partition_types(infer_types(columns, context)).with_types(unknown_types(columns, context))
    _check_partition_values(columns, context)
    owners: list[tuple[_Owner, tuple[_Member, ...]]] = []
    structs: list[pa.Array] = []
    for owner in _owners(context):
        members, arrays = _present(_members(columns, owner, context), owner, length)
        if len(members) > 0:
            owners.append((owner, members))
            structs.append(struct_of(_struct_field(owner, members).type, arrays, _all_null(arrays)))
    if len(structs) == 0:
        return None
    shape = _shape(tuple(owners))
    return shape, struct_of(shape.field.type, structs, _all_null(structs))


@lru_cache(maxsize=256)
def _shape(owners: tuple[tuple[_Owner, tuple[_Member, ...]], ...]) -> StatsShape:
    structs = pa.struct([_struct_field(owner, members) for owner, members in owners])
    return StatsShape(field=with_id("content_stats", structs, CONTENT_STATS))


@lru_cache(maxsize=64)
def _owners(context: ManifestContext) -> tuple[_Owner, ...]:
    """Measured columns, the columns of identity partitions even if dropped, and derived partition values."""
    return tuple(_owner(*owned) for owned in _owned(context))


def _owner(id_: int, key: StatKey, name: str, type_: Type, others: tuple[StatKey, ...]) -> _Owner:
    members = []
    for measure in measures_of(type_):
        stored = _bound_type(type_, measure, id_) if measure in BOUNDS else type_of_measure(measure)
        field = with_id(measure, stored, stats_id(id_) + MEASURE_OFFSETS[measure])
        members.append(_Member(measure=measure, column=stat(measure, key), field=field))
    return _Owner(id=id_, key=key, name=name, type=type_, members=tuple(members), others=others)


def _bound_type(type_: Type, measure: Measure, owner: int) -> pa.DataType:
    """The Arrow type of a bound in a file."""
    if not is_shape(type_):
        return pa.uuid() if type_ == UUID else arrow_type(type_)
    first = stats_id(owner) + CORNER_OFFSETS[measure]
    return pa.struct(
        [with_id(axis, pa.float64(), first + i, required=i < REQUIRED_AXES) for i, axis in enumerate(AXES)]
    )


def _owned(context: ManifestContext) -> Iterator[tuple[int, StatKey, str, Type, tuple[StatKey, ...]]]:
    virtual = {id_: expression.name for id_, expression in context.virtual.items() if id_ in context.types}
    kept = dict.fromkeys((*context.schema.measured, *sorted(context.identity_sources), *virtual))
    for column_id in kept:
        if column_id < STATS_FIELD_LIMIT:
            name = virtual.get(column_id, context.schema.names.get(column_id, f"column_{column_id}")).replace(".", "_")
            yield column_id, column_key(column_id), name, context.types[column_id], ()
    for owner_id, fields in _derived(context).items():
        key, *others = (partition_key(field.field_id) for field in fields)
        type_ = context.partition_types[fields[0].field_id]
        yield owner_id, key, fields[0].name, type_, tuple(others)


def _derived(context: ManifestContext) -> dict[int, list[PartitionField]]:
    """The partition fields whose values are stored under each expression id."""
    derived: dict[int, list[PartitionField]] = {}
    for field in context.partition_fields.values():
        if field.transform != IDENTITY and field.field_id in context.expressions:
            derived.setdefault(context.expressions[field.field_id], []).append(field)
    return derived


def _members(columns: Columns, owner: _Owner, context: ManifestContext) -> dict[Measure, pa.Array]:
    """The available measures of an owner, by name."""
    measures = {m.measure: columns[m.column] for m in owner.members if m.column in columns}
    if has_value_sizes(owner.type) and (sizes := average_sizes(known_measures(columns, owner.key))) is not None:
        measures[Measure.AVERAGE_SIZE] = sizes
    if owner.id in context.virtual:
        for measure, derived in derived_measures(owner.id, columns, context).items():
            measures[measure] = pc.coalesce(measures[measure], derived) if measure in measures else derived
        return measures
    if owner.key.is_partition:
        for key in owner.others:
            measures |= {
                m: pc.coalesce(measures[m], columns[stat(m, key)]) if m in measures else columns[stat(m, key)]
                for m in measures_of(owner.type)
                if stat(m, key) in columns
            }
        if (upper := measures.get(Measure.UPPER)) is not None:  # rows of files have their value in lower_bound only
            measures[Measure.UPPER] = pc.if_else(is_file(columns["content_type"]), None, upper)
        return measures
    if owner.id in context.identity_sources:
        for field in context.partition_fields.values():
            key = partition_key(field.field_id)
            if field.transform == IDENTITY and field.source_id == owner.id and stat(Measure.VALUES, key) in columns:
                measures = _overridden(measures, columns, key, owner.type)
    return measures


def _overridden(
    measures: dict[Measure, pa.Array], columns: Columns, key: StatKey, type_: Type
) -> dict[Measure, pa.Array]:
    """A column's measures with those of its identity partition value in the rows that have one."""
    known = pc.is_valid(columns[stat(Measure.VALUES, key)])
    result = dict(measures)
    for measure in PARTITION_MEASURES:
        if measure not in measures_of(type_) or (own := columns.get(stat(measure, key))) is None:
            continue
        column = measures.get(measure)
        rest = own if column is None else pc.coalesce(own, column.cast(own.type))
        result[measure] = own if known.null_count == 0 and pc.all(known).as_py() else pc.if_else(known, own, rest)
    if (tight := measures.get(Measure.TIGHT)) is not None:  # a partition value is not cut
        result[Measure.TIGHT] = pc.if_else(pc.and_(known, pc.is_valid(tight)), True, tight)
    return result


def _present(
    measures: dict[Measure, pa.Array], owner: _Owner, length: int
) -> tuple[tuple[_Member, ...], list[pa.Array]]:
    """The measures of an owner that at least one row has. Each measure costs a column in every later root."""
    present: list[_Member] = []
    arrays: list[pa.Array] = []
    for member in owner.members:
        array = measures.get(member.measure)
        if array is not None and array.null_count < length:
            present.append(member)
            arrays.append(_stored_as(array, member.field.type))
    return tuple(present), arrays


@lru_cache(maxsize=4096)
def _struct_field(owner: _Owner, members: tuple[_Member, ...]) -> pa.Field:
    return with_id(owner.name, pa.struct([member.field for member in members]), stats_id(owner.id))


def _stored_as(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, array)
    if isinstance(type_, pa.StructType):
        return corner_structs(array, type_)
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
    """Raises if a file row lacks a value of its partition tuple: the tuple could not be restored."""
    spec_ids, files = columns["partition_spec_id"], is_file(columns["content_type"])
    for spec_id in pc.unique(spec_ids).to_pylist():
        for field in context.spec(spec_id).fields:
            if field.is_void:
                continue
            mine = pc.and_(files, pc.equal(spec_ids, spec_id))
            if field.field_id in context.partition_types:
                _check_partition_value(columns, mine, field, context)
            elif pc.any(mine).as_py() is True:  # optional for the row of a manifest
                raise InputError(
                    f"partition field {field.name!r}: cannot write {field.transform!r} of column {field.source_id}: its"
                    " type is neither in the table's schemas nor in the files",
                    field=field.name,
                )


def _check_partition_value(columns: Columns, rows: pa.Array, field: PartitionField, context: ManifestContext) -> None:
    if field.transform != IDENTITY and field.field_id not in context.expressions:
        raise InputError(f"partition field {field.name!r} has no expression id in the table", field=field.name)
    counts = columns.get(stat(Measure.VALUES, partition_key(field.field_id)))
    if counts is not None and counts.null_count == 0:
        return
    missing = rows if counts is None else pc.and_(rows, pc.is_null(counts))
    if (row := pc.index(missing, True).as_py()) >= 0:
        raise InputError(f"entry {row} has no value of partition field {field.name!r}", field=field.name, row=row)


# -- reading


def decode_stats(struct: pa.Array | None, fixed: Columns, context: ManifestContext, *, where: str) -> Columns:
    """Statistics columns from a content_stats column; ``fixed`` are the decoded columns of the same rows."""
    context = context.with_partition_types(_types_in_struct(struct, context, where))
    stats = decode_measures(struct, context, where=where)
    present = set(pc.unique(fixed["partition_spec_id"]).to_pylist())
    values: dict[str, pa.Array] = {}  # kept even if null in every row: a partition tuple has all of its values
    for part in context.partition_fields.values():
        if not present.isdisjoint(context.specs_with[part.field_id]):
            values |= partition_values(stats, fixed, part, context, where=where)
    return {name: column for name, column in stats.items() if column.null_count < len(column)} | values


def decode_measures(struct: pa.Array | None, context: ManifestContext, *, where: str) -> dict[str, pa.Array]:
    """The statistics of columns and expressions as they are stored."""
    derived = _derived(context)
    stats: dict[str, pa.Array] = {}
    children = [] if struct is None else zip(struct.type, struct.flatten(), strict=True)
    for field, child in children:
        owner = stats_owner(field_id(field, where))
        if owner is None or not pa.types.is_struct(child.type):
            continue
        if owner in derived:
            for part in derived[owner]:
                of_part = context.partition_types[part.field_id]
                stats |= _measures(child, partition_key(part.field_id), of_part, owner, where)
        elif (type_ := _type_of(owner, field, context, where)) is not None:
            stats |= _measures(child, column_key(owner), type_, owner, where)
    return stats


def _types_in_struct(struct: pa.Array | None, context: ManifestContext, where: str) -> dict[int, Type]:
    """The types in the file's own schema of partition values whose type the table does not know, by field id."""
    types: dict[int, Type] = {}
    if struct is None or len(context.untyped) == 0:
        return types
    owners = {
        i: part.source_id if part.transform == IDENTITY else context.expressions.get(i)
        for i, part in context.untyped.items()
    }
    structs = {stats_owner(field_id(field, where)): field for field in struct.type if pa.types.is_struct(field.type)}
    for i, owner in owners.items():
        if owner is not None and (field := structs.get(owner)) is not None:
            type_ = _stored_type(field, owner, where)
            types |= {} if type_ is None else {i: type_}
    return types


def _stored_type(field: pa.Field, owner: int, where: str) -> Type | None:
    """The type of an owner by the bounds in a file."""
    bounds = (m.type for m in field.type if field_id(m, where) == stats_id(owner) + MEASURE_OFFSETS[Measure.LOWER])
    return type_of_arrow(next(bounds, pa.null()))


def _type_of(owner: int, field: pa.Field, context: ManifestContext, where: str) -> Type | None:
    """The type of a column; of a virtual column whose transform is unknown, that of its bounds in the file."""
    type_ = context.column_type(owner)
    if type_ is None and owner in context.virtual:
        type_ = _stored_type(field, owner, where)
    return type_ if type_ is not None and is_primitive(type_) else None


def is_needed(field: pa.Field, context: ManifestContext, wanted: StatKeys, where: str) -> bool:
    """Whether a struct of a file holds statistics of a wanted column, or values of a partition field."""
    owner = stats_owner(field_id(field, where))
    return owner is None or column_key(owner) in wanted or owner in _partition_owners(context)


@lru_cache(maxsize=64)
def _partition_owners(context: ManifestContext) -> frozenset[int]:
    """The ids whose structs have partition values: expressions, and the source columns of identity partitions."""
    untyped = (part.source_id for part in context.untyped.values() if part.transform == IDENTITY)
    return context.identity_sources.union(context.expressions.values(), untyped)


def field_id(field: pa.Field, where: str) -> int:
    """The id of a field in a file; every field of a manifest has one."""
    text = (field.metadata or {}).get(FIELD_ID)
    if text is None or not text.lstrip(b"-").isdigit():
        raise FormatError(f"{where}: column {field.name!r} has no field id", location=where, field=field.name)
    return int(text)


_OFFSETS = {offset: measure for measure, offset in MEASURE_OFFSETS.items()}


def _measures(struct: pa.StructArray, key: StatKey, type_: Type, owner: int, where: str) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}
    for field, member in zip(struct.type, struct.flatten(), strict=True):
        measure = _OFFSETS.get(field_id(field, where) - stats_id(owner))
        if measure is None or measure not in measures_of(type_):
            continue
        array = member.storage if isinstance(member, pa.ExtensionArray) else member
        bound = measure in BOUNDS
        if bound and is_shape(type_) and pa.types.is_struct(array.type):
            first = stats_id(owner) + CORNER_OFFSETS[measure]
            axes = {field_id(f, where) - first: a for f, a in zip(array.type, array.flatten(), strict=True)}
            array = corners_of({AXES[i]: axis for i, axis in axes.items() if 0 <= i < len(AXES)}, len(array))
        target = arrow_type(type_) if bound else type_of_measure(measure)
        try:
            if array.type != target:
                array = promoted(array, type_) if bound else array.cast(target)
        except MemoryError:
            raise
        except pa.ArrowException as error:
            raise FormatError(
                f"{where}: content_stats.{field.name} of id {owner} is {array.type}, expected {target}", location=where
            ) from error
        columns[stat(measure, key)] = without_nan(array) if bound else array
    return columns

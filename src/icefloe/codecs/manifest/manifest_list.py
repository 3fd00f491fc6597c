"""Manifest lists of versions 1 to 3: roots whose rows are all manifests (spec: Manifest Lists).

A partition summary becomes the statistics of partition fields. It shows a count only if no value is null or all are;
``value_count`` distinguishes a summary of nulls and NaN alone from a missing one. The flags of a summary are kept too:
they cover all entries, removed ones included, but counts cover live rows only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.avro.container import Container, read_container, write_container
from icefloe.codecs.manifest import field_ids as ids
from icefloe.codecs.manifest.avro_schemas import PARTITION_SUMMARY, AvroFields, avro_fields, manifest_list_schema
from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.field_ids import MANIFEST_FIELDS
from icefloe.codecs.value.bounds import decode_bounds, encode_bounds
from icefloe.errors import FormatError, IcefloeError, InputError, UnsupportedError, damaged
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import (
    BOUNDS,
    COUNTS,
    Columns,
    ContentType,
    Measure,
    Status,
    columns_of,
    partition_key,
    stat,
    to_table,
)
from icefloe.model.metadata.version_rules import MANIFEST_LIST_FIELDS, required, rules, written
from icefloe.model.partition.spec import PartitionField
from icefloe.model.partition.transform_names import VOID
from icefloe.model.schema.types import has_nan

_ROWS_COUNTS = ("added_rows_count", "existing_rows_count", "deleted_rows_count")
# field id, measure, type
_SUMMARY = tuple((field.id, Measure(field.name), arrow_type(field.type)) for field in PARTITION_SUMMARY.fields)
_PARTITIONS = pa.list_(pa.struct([pa.field(name, type_) for _, name, type_ in _SUMMARY]))
_DATA_CONTENT, _DELETE_CONTENT = 0, 1


# -- reading


def decode_manifest_list(data: bytes, context: ManifestContext, *, where: str) -> pa.Table:
    """One row per manifest of a snapshot, all EXISTING, in file order."""
    container = read_container(data, where=where, limits=context.limits)
    try:
        return _decode(container, context, where)
    except IcefloeError:
        raise
    except Exception as error:  # a schema or a value that the spec does not allow
        raise damaged(error, f"{where}: not a readable manifest list: {error!r}", location=where) from error


def _decode(container: Container, context: ManifestContext, where: str) -> pa.Table:
    file = avro_fields(container.schema)
    names = {slot: file.name(slot.id, slot.name) for slot in MANIFEST_FIELDS}
    shape = {name: slot.type for slot, name in names.items() if name is not None}
    summaries = file.name(ids.PARTITIONS, "partitions")
    if summaries is not None:
        shape[summaries] = pa.list_(pa.struct(_summary_fields(file.elements(summaries))))
    stored = container.rows(shape)
    length = container.count
    columns = {s.entry: pa.nulls(length, s.type) if n is None else stored[n] for s, n in names.items()}
    for slot in MANIFEST_FIELDS:
        if slot.required and columns[slot.entry].null_count > 0:
            raise FormatError(f"{where}: {slot.entry} of a manifest is missing or null", location=where)
    columns = _adapted(columns, length, where)
    if summaries is not None:
        columns |= _summaries(stored[summaries], file.elements(summaries), columns, context, where)
    return to_table(columns, length)


def _summary_fields(file: AvroFields) -> list[pa.Field]:
    named = ((file.name(id_, name), type_) for id_, name, type_ in _SUMMARY)
    return [pa.field(name, type_) for name, type_ in named if name is not None]


def _adapted(columns: Columns, length: int, where: str) -> dict[str, pa.Array]:
    """Columns of a list as those of a root: version 1 has no content and no sequence numbers."""
    content = columns["content_type"].fill_null(_DATA_CONTENT)
    known = pc.is_in(content, value_set=pa.array([_DATA_CONTENT, _DELETE_CONTENT], pa.int32()))
    if (row := pc.index(known, False).as_py()) >= 0:
        raise FormatError(f"{where}: row {row}: content {content[row]} is neither data nor deletes", location=where)
    sequence = columns["sequence_number"].fill_null(0)
    # A negative number is a sum of record counts that were unknown.
    rows = {name: pc.if_else(pc.greater_equal(columns[name], 0), columns[name], None) for name in _ROWS_COUNTS}
    entries = pc.add(columns["added_files_count"], columns["existing_files_count"])
    avro = pc.invert(pc.ends_with(columns["location"], ".parquet"))
    return {
        **columns,
        **rows,
        "content_type": pc.add(content, pa.scalar(int(ContentType.DATA_MANIFEST), pa.int32())),
        "file_format": pc.if_else(avro, "avro", "parquet"),
        "status": pa.repeat(pa.scalar(int(Status.EXISTING), pa.int32()), length),
        "sequence_number": sequence,
        "file_sequence_number": sequence,
        "min_sequence_number": columns["min_sequence_number"].fill_null(0),
        "record_count": pc.add(entries, columns["deleted_files_count"]).cast(pa.int64()),
    }


def _summaries(
    lists: pa.Array, fields: AvroFields, columns: Columns, context: ManifestContext, where: str
) -> dict[str, pa.Array]:
    """Statistics of partition fields. FormatError if a list of summaries does not match its spec."""
    statistics: dict[str, pa.Array] = {}
    spec_ids = columns["partition_spec_id"]
    for spec_id in pc.unique(spec_ids).to_pylist():
        spec = context.specs.get(spec_id)
        if spec is None:
            raise FormatError(f"{where}: names partition spec {spec_id}, which the table lacks", location=where)
        of_spec = pc.and_(pc.equal(spec_ids, spec_id), lists.is_valid())
        rows = np.flatnonzero(of_spec)
        mine = lists.filter(of_spec)
        if len(rows) == 0:
            continue
        if np.any(np.asarray(mine.value_lengths()) != len(spec.fields)):
            raise FormatError(f"{where}: partition summaries do not fit partition spec {spec_id}", location=where)
        flat = mine.flatten()
        for index, part in enumerate(spec.fields):
            if part.field_id in context.partition_types and not part.is_void:
                chosen = flat.take(pa.array(np.arange(index, len(flat), len(spec.fields))))
                of_part = _summary_stats(chosen, fields, columns, rows, part, context, where)
                statistics |= {name: _merged(statistics.get(name), column) for name, column in of_part.items()}
    return statistics


def _merged(one: pa.Array | None, other: pa.Array) -> pa.Array:
    """Specs share fields but no rows, so a value comes from one of them."""
    return other if one is None else pc.coalesce(one, other)


def _summary_stats(
    summaries: pa.StructArray,
    fields: AvroFields,
    columns: Columns,
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
    part: PartitionField,
    context: ManifestContext,
    where: str,
) -> dict[str, pa.Array]:
    key, type_ = partition_key(part.field_id), context.partition_types[part.field_id]
    stored = {field.name: child for field, child in zip(summaries.type, summaries.flatten(), strict=True)}
    empty = {name: pa.nulls(len(rows), t) for _, name, t in _SUMMARY}
    summary = {name: stored.get(str(fields.name(i, name)), empty[name]) for i, name, _ in _SUMMARY}
    here = f"{where}: partition summary {part.name}"
    lower = decode_bounds(summary[Measure.LOWER], type_, where=here)
    upper = decode_bounds(summary[Measure.UPPER], type_, where=here)
    total = pc.add(columns["added_rows_count"], columns["existing_rows_count"]).take(pa.array(rows))
    total = pc.if_else(pc.greater(total, 0), total, None)  # 0 may be a sum with unknown numbers
    maybe_null = pc.fill_null(summary[Measure.HAS_NULL], True)
    maybe_nan = pc.fill_null(summary[Measure.HAS_NAN], True) if has_nan(type_) else pa.repeat(False, len(rows))
    nothing = lower.is_null()
    measures = {
        Measure.LOWER: lower,
        Measure.UPPER: upper,
        Measure.VALUES: total,
        Measure.NULLS: _count(maybe_null, pc.and_(nothing, pc.invert(maybe_nan)), total),
        Measure.HAS_NULL: summary[Measure.HAS_NULL],
    }
    if has_nan(type_):
        measures[Measure.HAS_NAN] = summary[Measure.HAS_NAN]
        measures[Measure.NANS] = _count(maybe_nan, pc.and_(nothing, pc.invert(maybe_null)), total)
    place = np.full(len(columns["location"]), -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    spread = pa.array(place, mask=place < 0)
    return {stat(measure, key): column.take(spread) for measure, column in measures.items()}


def _count(may_be: pa.Array, must_be: pa.Array, total: pa.Array) -> pa.Array:
    """A count from the flags of a summary: none, all, or unknown."""
    some = pc.if_else(must_be, total, None)
    return pc.if_else(may_be, some, pa.scalar(0, pa.int64()))


# -- writing


def encode_manifest_list(
    entries: pa.Table,
    context: ManifestContext,
    *,
    snapshot_id: int,
    parent_id: int | None,
    sequence_number: int,
    first_row_id: int | None = None,
) -> bytes:
    """The manifest list of a snapshot; rows without a number or snapshot of their own get this snapshot's."""
    version = context.format_version
    if not written(MANIFEST_LIST_FIELDS, "manifest_path", version):
        raise UnsupportedError(f"format version {version} has no manifest lists to write", version=version)
    columns = columns_of(entries)
    first = int(ContentType.DATA_MANIFEST)
    columns["content_type"] = pc.subtract(columns["content_type"], pa.scalar(first, pa.int32()))
    columns["snapshot_id"] = columns["snapshot_id"].fill_null(snapshot_id)
    for name in ("sequence_number", "min_sequence_number"):
        columns[name] = columns[name].fill_null(sequence_number)
    _check_writable(columns, version)
    kept = {slot.name: columns[slot.entry] for slot in MANIFEST_FIELDS}
    kept["partitions"] = _partitions(columns, context)
    rows = pa.StructArray.from_arrays(list(kept.values()), names=list(kept))
    metadata = {"snapshot-id": str(snapshot_id), "parent-snapshot-id": "null" if parent_id is None else str(parent_id)}
    if rules(version).sequence_numbers:
        metadata["sequence-number"] = str(sequence_number)
    if rules(version).row_lineage and first_row_id is not None:
        metadata["first-row-id"] = str(first_row_id)
    metadata["format-version"] = str(version)
    return write_container(rows, manifest_list_schema(version), metadata)


def _check_writable(columns: Columns, version: int) -> None:
    content = columns["content_type"]
    last = _DELETE_CONTENT if written(MANIFEST_LIST_FIELDS, "content", version) else _DATA_CONTENT
    manifest = pc.and_(pc.greater_equal(content, _DATA_CONTENT), pc.less_equal(content, last))
    checks = [(pc.fill_null(manifest, False), f"it is not a manifest that format version {version} has")]
    needed = [slot.entry for slot in MANIFEST_FIELDS if slot.name in required(MANIFEST_LIST_FIELDS, version)]
    checks += [(columns[name].is_valid(), f"{name} is null") for name in needed]
    for good, rule in checks:
        if (row := pc.index(good, False).as_py()) >= 0:
            raise InputError(f"row {row} cannot be written to a manifest list: {rule}", row=row)


def summary_lists(
    spec_ids: pa.Array, type_: pa.ListType, summaries: Callable[[int, pa.Array], list[pa.Array]]
) -> pa.ListArray:
    """One list for each manifest, with the summary of each field of its spec; null if a summary is unknown.

    ``summaries`` returns the summaries of each field of a spec, in the manifests at some row numbers.
    """
    lists: list[pa.Array] = [pa.array([], type_)]
    places: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = [np.empty(0, np.int64)]
    for spec_id in pc.unique(spec_ids).to_pylist():
        places.append(np.flatnonzero(pc.equal(spec_ids, spec_id)))
        lists.append(_interleaved(summaries(spec_id, pa.array(places[-1])), len(places[-1]), type_))
    return pa.concat_arrays(lists).take(pa.array(np.argsort(np.concatenate(places))))


def _interleaved(summaries: list[pa.Array], length: int, type_: pa.ListType) -> pa.ListArray:
    """Lists with one element of each array; null where an element is null."""
    width = len(summaries)
    values = pa.concat_arrays([pa.array([], type_.value_type), *summaries])
    by_row = np.arange(width * length).reshape(width, length).T.ravel()
    unknown = np.zeros(length, np.bool_)
    for summary in summaries:
        unknown |= np.asarray(summary.is_null())
    offsets = pa.array(np.arange(length + 1) * width, pa.int32())
    return pa.ListArray.from_arrays(offsets, values.take(pa.array(by_row)), type=type_, mask=pa.array(unknown))


def _partitions(columns: Columns, context: ManifestContext) -> pa.ListArray:
    """The partition summaries of every manifest; null if a bound is unknown, because null bounds mean "all null"."""

    def summaries(spec_id: int, rows: pa.Array) -> list[pa.Array]:
        return [_field_summaries(columns, part, context).take(rows) for part in context.spec(spec_id).fields]

    return summary_lists(columns["partition_spec_id"], _PARTITIONS, summaries)


def _field_summaries(columns: Columns, part: PartitionField, context: ManifestContext) -> pa.StructArray:
    """The summary of a partition field in every manifest; null where it is unknown."""
    type_, length = context.partition_types.get(part.field_id), len(columns["location"])
    if part.transform == VOID:  # Apache Iceberg's table all_manifests fails if contains_nan is null
        all_null = [pa.repeat(True, length), pa.repeat(False, length), *[pa.nulls(length, pa.binary())] * 2]
        return pa.StructArray.from_arrays(all_null, fields=list(_PARTITIONS.value_type))
    if type_ is None:
        return pa.nulls(length, _PARTITIONS.value_type)
    key = partition_key(part.field_id)
    counts = {m: columns.get(stat(m, key), pa.nulls(length, pa.int64())) for m in COUNTS}
    unknown = pa.nulls(length, arrow_type(type_))
    lower, upper = (columns.get(stat(m, key), unknown) for m in BOUNDS)
    null, nan = (columns.get(stat(m, key), pa.nulls(length, pa.bool_())) for m in (Measure.HAS_NULL, Measure.HAS_NAN))
    known = pc.or_(pc.or_(pc.and_(lower.is_valid(), upper.is_valid()), _is_empty(counts)), null.is_valid())
    nan = pc.coalesce(nan, pc.not_equal(counts[Measure.NANS], 0)) if has_nan(type_) else pa.repeat(False, length)
    return pa.StructArray.from_arrays(
        [
            pc.fill_null(pc.coalesce(null, pc.not_equal(counts[Measure.NULLS], 0)), True),
            nan,
            encode_bounds(lower, type_),
            encode_bounds(upper, type_),
        ],
        fields=list(_PARTITIONS.value_type),
        mask=pc.invert(known),
    )


def _is_empty(counts: Mapping[Measure, pa.Array]) -> pa.Array:
    """Which rows are known to have no value that is neither null nor NaN."""
    rest = pc.subtract(counts[Measure.VALUES], counts[Measure.NULLS])
    rest = pc.subtract(rest, counts[Measure.NANS].fill_null(0))
    return pc.fill_null(pc.equal(rest, 0), False)

"""Content files, data and deletes, as JSON objects: from and to entry tables (spec: Appendix C: JSON serialization).

A content file is an entry without its history: status, snapshot and sequence numbers are not written, and are null when
read. Tightness of bounds and average value sizes are not stored either; column sizes are (``column_size:<id>``).
Statistics of columns that the table does not have are ignored, as in manifests.

Keys that version 3 added have the names of REST catalogs. Names of contents and formats are read in any case, with
dashes or underscores, and partitions also as a list in the order of the spec, as REST catalogs send them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.avro.projection import split_pairs
from icefloe.codecs.json.input import Count, Int, Long, Record, convert_json, missing
from icefloe.codecs.json.record_shapes import join
from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.field_ids import MEASURE_MAPS, MeasureMap
from icefloe.codecs.manifest.partition_values import partition_stats, partition_value
from icefloe.codecs.manifest.v3_entries import maps_of, statistics_of
from icefloe.codecs.value.bounds import check_fixed
from icefloe.errors import FormatError, InputError, LimitError, UnsupportedError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import (
    DELETES,
    ENTRY,
    Columns,
    ContentType,
    Measure,
    columns_of,
    parse_stat,
    partition_key,
    stat,
    to_table,
)
from icefloe.model.partition.spec import PartitionField
from icefloe.model.partition.transform_names import VOID
from icefloe.model.schema.json_scalars import hex_from_json
from icefloe.model.schema.json_values import value_from_json, value_to_json
from icefloe.model.schema.types import TIMESTAMP_NS, TIMESTAMPTZ_NS, Type

CONTENTS = (ContentType.DATA, *DELETES)


class _Counts(Record, frozen=True):
    keys: list[Int]
    values: list[Long]


class _Bounds(Record, frozen=True):
    keys: list[Int]
    values: list[str]


class ContentFileRecord(Record, frozen=True):
    """A content file."""

    spec_id: Int
    content: str
    file_path: str
    file_format: str
    record_count: Count
    file_size_in_bytes: Count
    partition: dict[str, Any] | list[Any] | None = None
    column_sizes: _Counts | None = None
    value_counts: _Counts | None = None
    null_value_counts: _Counts | None = None
    nan_value_counts: _Counts | None = None
    lower_bounds: _Bounds | None = None
    upper_bounds: _Bounds | None = None
    key_metadata: str | None = None
    split_offsets: list[Long] | None = None
    equality_ids: list[Int] | None = None
    sort_order_id: Int | None = None
    first_row_id: Count | None = None
    referenced_data_file: str | None = None
    content_offset: Count | None = None
    content_size_in_bytes: Count | None = None


Files = Sequence[tuple[str, ContentFileRecord]]  # (JSON path, record)

# Fields whose values are those of an entry column, with its name: first those that every file has.
_REQUIRED = {"file_path": "location", "record_count": "record_count", "file_size_in_bytes": "file_size_in_bytes"}
_OPTIONAL = {
    "split_offsets": "split_offsets",
    "equality_ids": "equality_ids",
    "sort_order_id": "sort_order_id",
    "first_row_id": "first_row_id",
    "referenced_data_file": "referenced_file",
    "content_offset": "dv_offset",
    "content_size_in_bytes": "dv_size_in_bytes",
}


# -- writing


def content_files_to_json(entries: pa.Table, context: ManifestContext) -> list[dict[str, Any]]:
    """The files of an entry table as JSON objects, in order; keys without a value are left out.

    Raises InputError for rows that are no files, or whose partition values JSON cannot say (NaN).
    """
    columns = columns_of(entries)
    _check_files(columns)
    length = entries.num_rows
    content = [CONTENTS[number].name for number in columns["content_type"].to_pylist()]
    written: dict[str, list[Any]] = {
        "spec-id": columns["partition_spec_id"].to_pylist(),
        "content": content,
        "file-path": columns["location"].to_pylist(),
        "file-format": pc.utf8_upper(columns["file_format"]).to_pylist(),
        "partition": _partitions(columns, length, context),
        "record-count": columns["record_count"].to_pylist(),
        "file-size-in-bytes": columns["file_size_in_bytes"].to_pylist(),
    }
    for shape, pairs in maps_of(columns, length, context).items():
        written[_key(shape.name)] = [_map(row, shape) for row in pairs.to_pylist()]
    written["key-metadata"] = [None if key is None else _hex(key) for key in columns["key_metadata"].to_pylist()]
    written |= {_key(name): columns[entry].to_pylist() for name, entry in _OPTIONAL.items()}
    rows = zip(*written.values(), strict=True)
    return [{key: v for key, v in zip(written, row, strict=True) if v is not None} for row in rows]


def _key(name: str) -> str:
    return name.replace("_", "-")


def _hex(data: bytes) -> str:
    return data.hex().upper()


def _map(pairs: list[dict[str, Any]] | None, shape: MeasureMap) -> dict[str, list[Any]] | None:
    if pairs is None:
        return None
    values = [pair["value"] for pair in pairs]
    return {
        "keys": [pair["key"] for pair in pairs],
        "values": [_hex(value) for value in values] if shape.has_bounds else values,
    }


def _check_files(columns: Columns) -> None:
    kinds = pc.is_in(columns["content_type"], value_set=pa.array([int(t) for t in CONTENTS], pa.int32()))
    rules = [(kinds, "its content type is none of a file")]
    required = ("partition_spec_id", "file_format", *_REQUIRED.values())
    rules += [(pc.is_valid(columns[name]), f"{name} is null") for name in required]
    for good, rule in rules:
        if (row := pc.index(good, False).as_py()) >= 0:
            raise InputError(f"entry {row} is no content file: {rule}", row=row)


def _partitions(columns: Columns, length: int, context: ManifestContext) -> list[dict[str, object]]:
    """The partition tuples by partition field id."""
    spec_ids = columns["partition_spec_id"]
    statistics = {name: column for name in columns if (column := parse_stat(name)) is not None}
    of_partitions = [name for name, column in statistics.items() if column.key.is_partition]
    tuples: list[dict[str, object]] = [{} for _ in range(length)]
    for spec_id in pc.unique(spec_ids).to_pylist():
        rows = pc.indices_nonzero(pc.equal(spec_ids, spec_id))
        own = {name: columns[name].take(rows) for name in of_partitions}
        for part in context.spec(spec_id).fields:
            values = _partition_values(part, own, len(rows), context)
            for row, value in zip(rows.to_pylist(), values, strict=True):
                tuples[row][str(part.stored_id)] = value
    return tuples


def _partition_values(part: PartitionField, own: Columns, length: int, context: ManifestContext) -> list[object]:
    if part.transform == VOID:
        return [None] * length
    type_ = context.partition_types.get(part.field_id)
    if type_ is None:
        raise UnsupportedError(f"partition field {part.name!r}: cannot write {part.transform!r}", field=part.name)
    key = partition_key(part.field_id)
    counts = own.get(stat(Measure.VALUES, key), pa.nulls(length, pa.int64()))
    if counts.null_count > 0:
        raise InputError(f"an entry has no value of partition field {part.name!r}", field=part.name)
    values = _domain(partition_value(key, own, length, type_), type_, part.name)
    return [value_to_json(value, type_, f"partition field {part.name!r}") for value in values]


def _domain(values: pa.Array, type_: Type, name: str) -> list[Any]:
    if type_ in (TIMESTAMP_NS, TIMESTAMPTZ_NS):
        values = values.view(pa.int64())
    try:
        python_values: list[Any] = values.to_pylist()
    except (ValueError, OverflowError) as error:
        raise InputError(f"partition field {name!r}: a value is outside the years 1 to 9999", field=name) from error
    return python_values


# -- reading


def content_files_from_json(values: list[object], context: ManifestContext, path: str = "content-files") -> pa.Table:
    """The entry table of files from parsed JSON objects, in order; FormatError names the invalid field."""
    objects = convert_json(values, list[Any], path)
    if len(objects) > context.limits.manifest_entries:
        limit = context.limits.manifest_entries
        raise LimitError(f"{path}: more than {limit} files (Limits.manifest_entries)", field=path)
    return _table(objects, context, [f"{path}[{row}]" for row in range(len(objects))])


def content_file_from_json(value: object, context: ManifestContext, path: str = "content-file") -> pa.Table:
    """The entry table of one file; ``path`` is its position in the document, for errors."""
    return _table([value], context, [path])


def _table(values: list[object], context: ManifestContext, paths: list[str]) -> pa.Table:
    records = [convert_json(value, ContentFileRecord, at) for value, at in zip(values, paths, strict=True)]
    files: list[tuple[str, ContentFileRecord]] = list(zip(paths, records, strict=True))
    columns = {entry: _column(files, name, entry) for name, entry in (_REQUIRED | _OPTIONAL).items()}
    columns |= {
        "content_type": pa.array([int(_content(r, at)) for at, r in files], pa.int32()),
        "file_format": pc.utf8_lower(_column(files, "file_format", "file_format")),
        "partition_spec_id": _column(files, "spec_id", "partition_spec_id"),
        "key_metadata": pa.array([_key_metadata(r, at) for at, r in files], pa.binary()),
    }
    columns |= _statistics(files, context)
    columns |= _partition_columns(files, columns, context)
    return to_table(columns, len(records))


def _column(files: Files, name: str, entry: str) -> pa.Array:
    type_ = ENTRY.field(entry).type
    try:
        return pa.array([getattr(record, name) for _, record in files], type_)
    except UnicodeEncodeError as error:  # some parsers let half of a surrogate pair pass
        path = next(path for path, record in files if getattr(record, name) == error.object)
        at = f"{path}.{_key(name)}"
        raise FormatError(f"{at}: expected a string of Unicode characters", field=at) from error


def _content(record: ContentFileRecord, path: str) -> ContentType:
    content = ContentType.__members__.get(record.content.upper().replace("-", "_"))
    if content not in CONTENTS:
        expected = ", ".join(c.name for c in CONTENTS)
        raise FormatError(
            f"{path}.content: expected one of {expected}, got {record.content[:60]!r}", field=f"{path}.content"
        )
    if content == ContentType.EQUALITY_DELETES and record.equality_ids is None:
        raise missing(path, "equality-ids")
    vector = {
        "content-offset": record.content_offset,
        "content-size-in-bytes": record.content_size_in_bytes,
        "referenced-data-file": record.referenced_data_file,
    }
    placed = record.content_offset is not None or record.content_size_in_bytes is not None
    absent = [key for key, value in vector.items() if value is None]
    if placed and len(absent) > 0:
        raise missing(path, *absent)
    return content


def _key_metadata(record: ContentFileRecord, path: str) -> bytes | None:
    return None if record.key_metadata is None else _bytes(record.key_metadata, f"{path}.key-metadata")


def _bytes(text: str, path: str) -> bytes:
    try:
        return hex_from_json(text)
    except ValueError as error:
        raise FormatError(f"{path}: expected {error}, got {text[:60]!r}", field=path) from error


def _statistics(files: Files, context: ManifestContext) -> dict[str, pa.Array]:
    by_key = {shape: split_pairs(_pairs(files, shape)) for shape in MEASURE_MAPS}
    return statistics_of(by_key, context, where="content files")


def _pairs(files: Files, shape: MeasureMap) -> pa.Array:
    """A map of all files as a column of lists of (key, value)."""
    keys: list[int] = []
    values: list[Any] = []
    lengths = np.zeros(len(files) + 1, np.int32)
    for row, (path, record) in enumerate(files):
        stored: _Counts | _Bounds | None = getattr(record, shape.name)
        if stored is None:
            continue
        at = f"{path}.{_key(shape.name)}"
        if len(stored.keys) != len(stored.values):
            raise FormatError(f"{at}: {len(stored.keys)} keys but {len(stored.values)} values", field=at)
        keys += stored.keys
        values += _map_values(stored, at)
        lengths[row + 1] = len(stored.keys)
    type_ = shape.arrow
    entries = pa.StructArray.from_arrays(
        [pa.array(keys, pa.int32()), pa.array(values, type_.value_type.field(1).type)], fields=list(type_.value_type)
    )
    return pa.ListArray.from_arrays(pa.array(np.cumsum(lengths, dtype=np.int32)), entries, type=type_)


def _map_values(stored: _Counts | _Bounds, path: str) -> list[Any]:
    if isinstance(stored, _Counts):
        return stored.values
    return [_bytes(text, f"{path}.values[{index}]") for index, text in enumerate(stored.values)]


def _partition_columns(files: Files, columns: Columns, context: ManifestContext) -> dict[str, pa.Array]:
    """Statistics columns of the partition fields; null where a file's spec lacks the field."""
    tuples = [_tuple(record, context, path) for path, record in files]
    partition_columns: dict[str, pa.Array] = {}
    for field_id in context.partition_fields:
        belongs = pc.is_in(columns["partition_spec_id"], value_set=pa.array(context.specs_with[field_id], pa.int32()))
        if pc.any(belongs).as_py() is not True:
            continue
        type_ = context.partition_types[field_id]
        check_fixed(type_, len(tuples), where=f"partition field {field_id}")
        value = pa.array([values.get(field_id) for values in tuples], arrow_type(type_))
        stats = partition_stats(partition_key(field_id), value, columns["record_count"], type_)
        partition_columns |= {name: pc.if_else(belongs, column, None) for name, column in stats.items()}
    return partition_columns


def _tuple(record: ContentFileRecord, context: ManifestContext, path: str) -> dict[int, object]:
    """The partition values of a file by partition field id. Fields with an unknown transform have no value."""
    spec = context.specs.get(record.spec_id)
    if spec is None:
        raise FormatError(f"{path}.spec-id: the table has no partition spec {record.spec_id}", field=f"{path}.spec-id")
    at = join(path, "partition")
    partition = record.partition
    if isinstance(partition, list):
        if len(partition) != len(spec.fields):
            raise FormatError(f"{at}: expected {len(spec.fields)} values, got {len(partition)}", field=at)
        partition = {str(part.stored_id): value for part, value in zip(spec.fields, partition, strict=True)}
    types = context.partition_types
    valued = [part for part in spec.fields if part.field_id in types and not part.is_void]
    if partition is None and len(valued) > 0:
        raise missing(path, "partition")
    held = {} if partition is None else partition
    strange = set(held) - {str(part.stored_id) for part in spec.fields}
    if len(strange) > 0:
        raise FormatError(f"{at}: spec {spec.spec_id} has no partition field {min(strange)[:60]!r}", field=at)
    named = ((part.field_id, str(part.stored_id)) for part in valued)
    return {i: value_from_json(held.get(name), types[i], join(at, name)) for i, name in named}

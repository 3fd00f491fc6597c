"""The tables ``manifests`` and ``all_manifests`` (spec: Manifest Lists; V4 proposal).

A root of version 4 that holds files itself counts as manifests too: one for the data files and one for the deletes of
each partition spec, all with the location and the size of the root.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.manifest_list import summary_lists
from icefloe.codecs.manifest.manifest_summary import manifest_row
from icefloe.commit.base import Base
from icefloe.inspect.metadata_tables.table_shape import MetadataTable, chosen, fixed, optional, required
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import (
    BOUNDS,
    DELETES,
    MANIFESTS,
    ContentType,
    Measure,
    Status,
    concat,
    of_type,
    partition_key,
    stat,
)
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.types import UUID, Type, has_nan
from icefloe.scan.tree_entries import FILES
from icefloe.transforms import transform_of
from icefloe.transforms.base import Transform
from icefloe.tree.root import read_root

_SUMMARY = pa.struct(
    [
        required("contains_null", pa.bool_()),
        optional("contains_nan", pa.bool_()),  # false if the type has no NaN; null if it is not recorded
        optional("lower_bound", pa.string()),
        optional("upper_bound", pa.string()),
    ]
)
_SUMMARIES = pa.list_(required("element", _SUMMARY))
_ALL_SUMMARIES = pa.list_(
    required("element", pa.struct([field.with_nullable("bound" in field.name) for field in _SUMMARY]))
)
_COUNTS = ("added", "existing", "deleted")
_MANIFESTS = fixed(
    required("content", pa.int32()),
    required("path", pa.string()),
    required("length", pa.int64()),
    required("partition_spec_id", pa.int32()),
    required("added_snapshot_id", pa.int64()),
    *(required(f"{name}_data_files_count", pa.int32()) for name in _COUNTS),
    *(required(f"{name}_delete_files_count", pa.int32()) for name in _COUNTS),
    required("partition_summaries", _SUMMARIES),
)
_ALL_MANIFESTS = fixed(
    required("content", pa.int32()),
    required("path", pa.string()),
    required("length", pa.int64()),
    optional("partition_spec_id", pa.int32()),
    optional("added_snapshot_id", pa.int64()),
    *(optional(f"{name}_data_files_count", pa.int32()) for name in _COUNTS),
    *(required(f"{name}_delete_files_count", pa.int32()) for name in _COUNTS),
    optional("partition_summaries", _ALL_SUMMARIES),
    required("reference_snapshot_id", pa.int64()),
    optional("key_metadata", pa.binary()),
)


def _manifests(base: Base, snapshot: Snapshot | None) -> pa.Table:
    rows = concat([_manifest_rows(base, one) for one in chosen(snapshot)]).combine_chunks()
    *arrays, summaries = _arrays(base, rows)
    known = pc.if_else(summaries.is_valid(), summaries, pa.scalar([], _SUMMARIES))  # the column has no nulls
    return pa.Table.from_arrays([*arrays, known], schema=_MANIFESTS(base))


def _all_manifests(base: Base, snapshot: Snapshot | None) -> pa.Table:
    """A row for each snapshot and manifest of it."""
    snapshots = list(base.metadata.snapshots)
    parts = [_manifest_rows(base, one) for one in snapshots]
    ids = np.repeat([one.snapshot_id for one in snapshots], [part.num_rows for part in parts])
    rows = concat(parts).combine_chunks()
    *arrays, summaries = _arrays(base, rows)
    arrays += [_with_all_flags(summaries), pa.array(ids, pa.int64()), rows["key_metadata"].combine_chunks()]
    return pa.Table.from_arrays(arrays, schema=_ALL_MANIFESTS(base))


def _with_all_flags(summaries: pa.ListArray) -> pa.ListArray:
    """The summaries with ``contains_nan`` set to true, which is always safe, if it is not recorded."""
    null, nan, *bounds = summaries.values.flatten()
    values = pa.StructArray.from_arrays(
        [null, pc.fill_null(nan, True), *bounds], fields=list(_ALL_SUMMARIES.value_type)
    )
    return pa.ListArray.from_arrays(summaries.offsets, values, type=_ALL_SUMMARIES, mask=summaries.is_null())


def _manifest_rows(base: Base, snapshot: Snapshot) -> pa.Table:
    """The root rows of a snapshot's manifests, and such rows for the files in the root itself."""
    root = read_root(base.store, snapshot)
    own = root.entries.filter(of_type(root.entries, *FILES))
    return concat([*_rows_of_root(base, snapshot, own), root.rows(*MANIFESTS)])


def _rows_of_root(base: Base, snapshot: Snapshot, files: pa.Table) -> Iterator[pa.Table]:
    if files.num_rows == 0:
        return
    location = snapshot.root_location
    size = base.store.io.size(location)
    for content, types in ((ContentType.DATA_MANIFEST, (ContentType.DATA,)), (ContentType.DELETE_MANIFEST, DELETES)):
        of_kind = files.filter(of_type(files, *types))
        for spec_id in pc.unique(of_kind["partition_spec_id"]).to_pylist():
            yield manifest_row(
                of_kind.filter(pc.equal(of_kind["partition_spec_id"], spec_id)),
                base.store.context,
                location=location,
                size=size,
                content=content,
                status=Status.ADDED,
                snapshot_id=snapshot.snapshot_id,
                sequence_number=snapshot.sequence_number,
            )


def _arrays(base: Base, rows: pa.Table) -> list[pa.Array]:
    """The columns up to ``partition_summaries``."""
    is_data = of_type(rows, ContentType.DATA_MANIFEST).combine_chunks()
    counts = {name: pc.fill_null(rows[f"{name}_files_count"].combine_chunks(), 0) for name in _COUNTS}
    none = pa.scalar(0, pa.int32())
    first = pa.scalar(int(ContentType.DATA_MANIFEST), pa.int32())
    plain = ("location", "file_size_in_bytes", "partition_spec_id", "snapshot_id")
    return [
        pc.subtract(rows["content_type"].combine_chunks(), first),
        *(rows[name].combine_chunks() for name in plain),
        *(pc.if_else(is_data, counts[name], none) for name in _COUNTS),
        *(pc.if_else(is_data, none, counts[name]) for name in _COUNTS),
        _summaries(base, rows),
    ]


def _summaries(base: Base, rows: pa.Table) -> pa.Array:
    """The summaries of each manifest: one for each field of its spec."""

    def summaries(spec_id: int, places: pa.Array) -> list[pa.Array]:
        mine = rows.take(places).combine_chunks()
        return [_summary(base, mine, field) for field in base.store.context.spec(spec_id).fields]

    return summary_lists(rows["partition_spec_id"].combine_chunks(), _SUMMARIES, summaries)


def _summary(base: Base, rows: pa.Table, field: PartitionField) -> pa.Array:
    """The summary of a partition field in each manifest; null where nothing is recorded."""
    length = rows.num_rows
    type_ = base.store.context.partition_types.get(field.field_id)
    no_nan = pa.repeat(False, length)
    if field.is_void or type_ is None:  # the values of a void field are null; those of an unknown transform are unknown
        nulls = [pa.repeat(True, length), no_nan, *[pa.repeat("null", length)] * 2]
        return pa.StructArray.from_arrays(nulls, fields=list(_SUMMARY), mask=pa.repeat(not field.is_void, length))

    def measure(name: Measure, arrow: pa.DataType) -> pa.Array:
        column = stat(name, partition_key(field.field_id))
        return rows[column].combine_chunks() if column in rows.column_names else pa.nulls(length, arrow)

    lower, upper = (measure(name, arrow_type(type_)) for name in BOUNDS)
    null, nan = (  # as recorded, else by the count
        pc.coalesce(measure(flag, pa.bool_()), pc.greater(measure(count, pa.int64()), 0)) for flag, count in _FLAGS
    )
    is_known = pc.or_(null.is_valid(), lower.is_valid())
    transform = transform_of(field)
    arrays = [
        pc.fill_null(null, True),
        nan if has_nan(type_) else no_nan,
        *(pc.fill_null(partition_texts(bound, transform, type_), "null") for bound in (lower, upper)),
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(_SUMMARY), mask=pc.invert(is_known))


_FLAGS = ((Measure.HAS_NULL, Measure.NULLS), (Measure.HAS_NAN, Measure.NANS))


MANIFEST_TABLES = {
    "manifests": MetadataTable(schema=_MANIFESTS, rows=_manifests, of_snapshot=True),
    "all_manifests": MetadataTable(schema=_ALL_MANIFESTS, rows=_all_manifests, of_all=True),
}


def partition_texts(values: pa.Array, transform: Transform, type_: Type) -> pa.Array:
    """The texts of partition values; null stays null.

    >>> from icefloe.model.schema.types import INT, TIMESTAMP
    >>> from icefloe.transforms import parse_transform
    >>> partition_texts(pa.array([682, None], pa.int32()), parse_transform("month"), INT).to_pylist()
    ['2026-11', None]
    >>> at = pa.array([1_500_000], pa.timestamp("us"))
    >>> partition_texts(at, parse_transform("identity"), TIMESTAMP).to_pylist()
    ['1970-01-01T00:00:01.5']
    """
    kind = values.type
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return _times(values)
    if pa.types.is_integer(kind):
        return _each(values, lambda value: str(transform.display(value)))
    if type_ == UUID:
        return _each(values, lambda value: str(uuid.UUID(bytes=value)))
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _each(values, lambda value: base64.b64encode(value).decode())
    if pa.types.is_floating(kind):
        return _each(values, repr)
    return values.cast(pa.string())


def _each(values: pa.Array, text: Callable[..., str]) -> pa.Array:
    """The text of each different value, in the rows that have the value."""
    encoded = values.dictionary_encode()
    texts = pa.array([text(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return texts.take(encoded.indices)


def _times(values: pa.Array) -> pa.Array:
    """Times without zeros at the end of the fraction; instants are in UTC."""
    is_instant = pa.types.is_timestamp(values.type) and values.type.tz is not None
    local = values.cast(pa.timestamp(values.type.unit)) if is_instant else values
    texts = pc.replace_substring_regex(local.cast(pa.string()), r"(\.\d*?)0+$", r"\1")
    texts = pc.replace_substring_regex(pc.replace_substring(texts, " ", "T"), r"\.$", "")
    return pc.binary_join_element_wise(texts, "+00:00", "") if is_instant else texts

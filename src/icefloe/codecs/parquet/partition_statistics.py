"""Partition statistics files: one row for each partition of a snapshot, as Parquet (spec: Table statistics).

In memory a row has the columns of ``COUNTS`` and one column for each partition field of any spec, named by its
statistics key (``p1000``); fields that a spec lacks are null. Rows are sorted by partition, nulls first.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefloe.codecs.manifest.content_stats import with_id
from icefloe.codecs.manifest.context import ManifestContext
from icefloe.codecs.manifest.partition_values import partition_value
from icefloe.errors import UnsupportedError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.columns import one_array
from icefloe.model.entries import ContentType, columns_of, live, partition_key
from icefloe.model.metadata.statistics_files import PartitionStatisticsFile
from icefloe.model.metadata.version_rules import rules

PARTITION = 1
_LIVE = "live_file_count"
SPEC_ID = "spec_id"
DV_COUNT = "dv_count"
# column: field id, type, required
COUNTS: Mapping[str, tuple[int, pa.DataType, bool]] = {
    SPEC_ID: (2, pa.int32(), True),
    "data_record_count": (3, pa.int64(), True),
    "data_file_count": (4, pa.int32(), True),
    "total_data_file_size_in_bytes": (5, pa.int64(), True),
    "position_delete_record_count": (6, pa.int64(), False),
    "position_delete_file_count": (7, pa.int32(), False),
    "equality_delete_record_count": (8, pa.int64(), False),
    "equality_delete_file_count": (9, pa.int32(), False),
    "total_record_count": (10, pa.int64(), False),
    "last_updated_at": (11, pa.int64(), False),
    "last_updated_snapshot_id": (12, pa.int64(), False),
    DV_COUNT: (13, pa.int32(), True),
}


def collect_partition_statistics(
    files: pa.Table, context: ManifestContext, timestamps: Mapping[int, int] | None = None
) -> pa.Table:
    """The statistics of every partition that has live files, from the entries of a snapshot, deletes included.

    Entries of removed files say only when a partition was updated. ``timestamps`` are the milliseconds of snapshots by
    id, oldest first, as far as the table still has them.
    """
    columns, length = columns_of(files), files.num_rows
    types = sorted(context.partition_types.items())
    keys = {str(partition_key(i)): partition_value(partition_key(i), columns, length, t) for i, t in types}
    times = {} if timestamps is None else timestamps
    ids = pa.array(list(times), pa.int64())
    moments = pc.index_in(columns["snapshot_id"], value_set=ids)
    updated = {"at": pa.array(list(times.values()), pa.int64()).take(moments), "by": ids.take(moments)}
    measures = _measures(columns)
    table = pa.table({SPEC_ID: columns["partition_spec_id"], **keys, **measures, **updated, "order": moments})
    # Sorted by time, the last snapshot of a group is the one that changed it last; expired ones are null.
    table = table.sort_by([("at", "ascending"), ("order", "ascending")])
    sums = list(measures)
    grouped = table.group_by([SPEC_ID, *keys], use_threads=False).aggregate(
        [*((name, "sum") for name in sums), ("at", "last"), ("by", "last")]
    )
    grouped = grouped.filter(pc.greater(grouped[f"{_LIVE}_sum"], 0))
    totals = {SPEC_ID: grouped[SPEC_ID], **{name: grouped[f"{name}_sum"] for name in sums}}
    totals |= {"last_updated_at": grouped["at_last"], "last_updated_snapshot_id": grouped["by_last"]}
    totals["total_record_count"] = pa.nulls(grouped.num_rows, pa.int64())
    counts = {name: totals[name].cast(type_) for name, (_, type_, _) in COUNTS.items()}
    return _sorted(pa.table({**{key: grouped[key] for key in keys}, **counts}))


def _measures(columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """What each file adds to the counts of its partition."""
    none = pa.scalar(0, pa.int64())
    kind = columns["content_type"]
    is_live = live(columns)
    data, positions, equality = (pc.and_(is_live, pc.equal(kind, int(type_))) for type_ in list(ContentType)[:3])
    vectors = pc.and_(positions, columns["dv_offset"].is_valid())
    files = pc.and_(positions, columns["dv_offset"].is_null())
    records, one = columns["record_count"].fill_null(0), pa.scalar(1, pa.int64())
    return {
        "data_record_count": pc.if_else(data, records, none),
        "data_file_count": pc.if_else(data, one, none),
        "total_data_file_size_in_bytes": pc.if_else(data, columns["file_size_in_bytes"], none),
        "position_delete_record_count": pc.if_else(positions, records, none),
        "position_delete_file_count": pc.if_else(files, one, none),
        "equality_delete_record_count": pc.if_else(equality, records, none),
        "equality_delete_file_count": pc.if_else(equality, one, none),
        DV_COUNT: pc.if_else(vectors, one, none),
        _LIVE: is_live.cast(pa.int64()),
    }


def _sorted(rows: pa.Table) -> pa.Table:
    keys = [name for name in rows.column_names if name not in COUNTS]
    # Arrow puts nulls last, so whether there is a value is sorted by first.
    parts = {f"{name}?": rows[name].is_valid() for name in keys} | {name: rows[name] for name in keys}
    order = pa.table({**{name: parts[name] for key in keys for name in (f"{key}?", key)}, SPEC_ID: rows[SPEC_ID]})
    return rows.take(pc.sort_indices(order, sort_keys=[(name, "ascending") for name in order.column_names]))


def encode_partition_statistics(
    rows: pa.Table, context: ManifestContext, *, snapshot_id: int, location: str
) -> tuple[bytes, PartitionStatisticsFile]:
    """A partition statistics file to be written at a location, and its entry in table metadata."""
    _check_ids(context, location)
    rows = _sorted(rows)
    types = sorted(context.partition_types.items())
    fields: list[pa.Field] = []
    arrays: list[pa.Array] = []
    if len(types) > 0:  # Parquet has no empty groups
        members = [with_id(context.partition_fields[i].name, arrow_type(t), i) for i, t in types]
        values = [one_array(rows[str(partition_key(i))]).cast(arrow_type(t)) for i, t in types]
        fields.append(with_id("partition", pa.struct(members), PARTITION, required=True))
        arrays.append(pa.StructArray.from_arrays(values, fields=members))
    vectors = rules(context.format_version).deletion_vectors
    for name, (id_, type_, required) in COUNTS.items():
        if name == DV_COUNT and not vectors:
            continue
        fields.append(with_id(name, type_, id_, required=required))
        arrays.append(one_array(rows[name]).cast(type_))
    sink = pa.BufferOutputStream()
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    pq.write_table(table, sink, compression="zstd", store_schema=False, write_page_checksum=True)
    data = bytes(sink.getvalue())
    return data, PartitionStatisticsFile(
        snapshot_id=snapshot_id, statistics_path=location, file_size_in_bytes=len(data)
    )


def _check_ids(context: ManifestContext, where: str) -> None:
    """Raises if a field id has several meanings: the tuple has the fields of all specs, each under its own id."""
    shared = next((part for part in context.partition_fields.values() if part.shared_id is not None), None)
    if shared is not None:
        raise UnsupportedError(
            f"{where}: partition field {shared.name!r} has id {shared.shared_id}, which another partition spec of the"
            " table gives to another value; partition statistics cannot distinguish them",
            location=where,
            field=shared.name,
        )

"""The table ``partitions``: one row for each partition that has live files (spec: Partitioning)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.base import Base
from icefloe.inspect.metadata_tables.file_columns import partition_fields, partition_type
from icefloe.inspect.metadata_tables.log_tables import MICROSECONDS, TIME
from icefloe.inspect.metadata_tables.table_shape import MetadataTable, chosen, optional, required
from icefloe.model.columns import one_array
from icefloe.model.entries import ContentType, of_type
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.scan.partition_values import partition_tuples
from icefloe.scan.tree_entries import live_entries
from icefloe.tree.store import NO_STATISTICS

_TOTALS = (
    required("record_count", pa.int64()),
    required("file_count", pa.int32()),
    required("total_data_file_size_in_bytes", pa.int64()),
    required("position_delete_record_count", pa.int64()),
    required("position_delete_file_count", pa.int32()),
    required("equality_delete_record_count", pa.int64()),
    required("equality_delete_file_count", pa.int32()),
)
_UPDATED = (optional("last_updated_at", TIME), optional("last_updated_snapshot_id", pa.int64()))
_AT = "last_updated_at"


def _schema(base: Base) -> pa.Schema:
    partition = partition_fields(base)
    spec_id = [] if len(partition) == 0 else [required("spec_id", pa.int32())]
    return pa.schema([*partition, *spec_id, *_TOTALS, *_UPDATED])


def _partitions(base: Base, snapshot: Snapshot | None) -> pa.Table:
    """The totals of each partition; files of different specs with equal values are in one partition.

    ``spec_id`` is that of the file that was added last.
    """
    entries = live_entries(base.store, chosen(snapshot), wanted=NO_STATISTICS)
    type_ = partition_type(base)
    keys = {f"key {n}": array for n, array in enumerate(_values(entries, base))}
    files = pa.table({**keys, **_measures(entries), **_last_change(base, entries)})
    files = files.sort_by([(_AT, "descending")])  # stable; nulls last
    firsts = ["spec_id", *(field.name for field in _UPDATED)]
    # An entry of a snapshot that has expired says nothing about the time of a change.
    totals = files.append_column("all", pa.repeat(0, files.num_rows)).group_by(["all", *keys], use_threads=False)
    sums = totals.aggregate(
        [(field.name, "sum") for field in _TOTALS] + [(name, "first", pc.ScalarAggregateOptions()) for name in firsts]
    )
    schema = _schema(base)
    arrays = {field.name: sums[f"{field.name}_sum"] for field in _TOTALS}
    arrays |= {name: sums[f"{name}_first"] for name in firsts}
    if len(type_.fields) > 0:
        values = [sums[key].combine_chunks() for key in keys]
        arrays["partition"] = pa.StructArray.from_arrays(values, fields=list(schema.field("partition").type))
    return pa.Table.from_arrays([_column(arrays[field.name], field.type) for field in schema], schema=schema)


def _values(entries: pa.Table, base: Base) -> list[pa.Array]:
    """The values of each partition field."""
    type_ = partition_type(base)
    return [] if len(type_.fields) == 0 else partition_tuples(entries, type_).flatten()


def _measures(entries: pa.Table) -> dict[str, pa.Array]:
    """What each file adds to the totals."""
    rows = pc.fill_null(entries["record_count"], 0)
    kinds = {
        "": ContentType.DATA,
        "position_delete_": ContentType.POSITION_DELETES,
        "equality_delete_": ContentType.EQUALITY_DELETES,
    }
    measures = {}
    for prefix, kind in kinds.items():
        is_kind = of_type(entries, kind)
        measures[f"{prefix}record_count"] = pc.if_else(is_kind, rows, 0)
        measures[f"{prefix}file_count"] = is_kind.cast(pa.int32())
    sizes = pc.if_else(of_type(entries, ContentType.DATA), entries["file_size_in_bytes"], 0)
    return {**measures, "total_data_file_size_in_bytes": sizes}


def _last_change(base: Base, entries: pa.Table) -> dict[str, pa.Array]:
    """The snapshot that added each file, and its time; null if the snapshot has expired."""
    ids = entries["snapshot_id"]
    known = [base.metadata.snapshots.find(id_) for id_ in pc.unique(ids).to_pylist() if id_ is not None]
    snapshots = [snapshot for snapshot in known if snapshot is not None]
    found = pc.index_in(ids, value_set=pa.array([one.snapshot_id for one in snapshots], pa.int64()))
    times = pa.array([one.timestamp_ms * MICROSECONDS for one in snapshots], TIME)
    updated_ids = pa.array([one.snapshot_id for one in snapshots], pa.int64())
    return {
        "spec_id": entries["partition_spec_id"],
        _AT: times.take(found),
        "last_updated_snapshot_id": updated_ids.take(found),
    }


def _column(column: pa.ChunkedArray | pa.Array, type_: pa.DataType) -> pa.Array:
    array = one_array(column)
    return array if array.type == type_ else array.cast(type_)


PARTITION_TABLES = {"partitions": MetadataTable(schema=_schema, rows=_partitions, of_snapshot=True)}

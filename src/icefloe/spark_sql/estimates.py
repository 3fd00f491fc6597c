"""Answers calls about the size of scans, by which Spark orders and chooses joins."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.puffin.statistics_file import distinct_values
from icefloe.engines.spark.read.scan import UNKNOWN_SIZE
from icefloe.model.schema.types import Field
from icefloe.scan.aggregates import null_counts, value_ranges
from icefloe.spark_sql.conditions import pushed_filter
from icefloe.spark_sql.kept import Kept
from icefloe.spark_sql.options.session_names import is_case_sensitive
from icefloe.spark_sql.scan_messages import ColumnEstimate, EstimateScan, ScanEstimate
from icefloe.spark_sql.table_loads import LoadedTable, TableLoads
from icefloe.table.scan import request_of

_KEPT = 64


class EstimateCalls:
    """The sizes of scans of the tables of a catalog, after the filters of the query."""

    def __init__(self, loads: TableLoads) -> None:
        self._loads = loads
        self._estimates = Kept[tuple[bytes, bool], ScanEstimate](_KEPT)  # a call names a state of its table

    def estimate_scan(self, call: EstimateScan) -> ScanEstimate:
        """Rows, bytes and columns of the files that a scan reads."""
        key = (msgspec.json.encode(call), is_case_sensitive())
        known = self._estimates.get(key)
        if known is None:
            known = self._estimate(call)
            self._estimates.put(key, known)
        return known

    def _estimate(self, call: EstimateScan) -> ScanEstimate:
        loaded = self._loads.find(call.handle).selected_by(call.options)
        if loaded.handle.metadata_table is not None or loaded.appends is not None:
            return ScanEstimate(rows=None, size_bytes=UNKNOWN_SIZE, columns={})
        schema = loaded.at.schema
        fields = [field for field in schema.fields if field.name in call.columns]
        filter_ = pushed_filter(call.filters, schema, case_sensitive=is_case_sensitive())
        plan = request_of(loaded.at.scan(columns=[])).plan(filter_, bounded=tuple(field.id for field in fields))
        rows = plan.tasks["record_count"]
        deleted = pc.sum(plan.tasks["dv_cardinality"], min_count=0).as_py()
        distinct = _distinct(loaded)
        return ScanEstimate(
            rows=None if rows.null_count > 0 else max(pc.sum(rows, min_count=0).as_py() - deleted, 0),
            size_bytes=pc.sum(plan.tasks["file_size_in_bytes"], min_count=0).as_py(),
            columns={field.name: _column(plan.tasks, field, distinct) for field in fields},
        )


def _distinct(loaded: LoadedTable) -> Mapping[int, int]:
    """Numbers of distinct values by column id, from the newest statistics file of the snapshot or of one before it."""
    snapshot = loaded.at.snapshot
    files = {entry.snapshot_id: entry for entry in loaded.at.metadata.statistics}
    by_id = {each.snapshot_id: each for each in loaded.at.metadata.snapshots}
    while snapshot is not None and snapshot.snapshot_id not in files:
        snapshot = None if snapshot.parent_id is None else by_id.get(snapshot.parent_id)
    return {} if snapshot is None else distinct_values(files[snapshot.snapshot_id])


def _column(tasks: pa.Table, field: Field, distinct: Mapping[int, int]) -> ColumnEstimate:
    least, greatest = value_ranges(tasks, field)
    return ColumnEstimate(
        nulls=pc.sum(null_counts(tasks, field), skip_nulls=False, min_count=0).as_py(),
        least=_stored(least),
        greatest=_stored(greatest),
        distinct=distinct.get(field.id),
    )


def _stored(value: pa.Scalar) -> str | None:
    """The text of a number, date or time as Spark stores it; none for other values."""
    if pa.types.is_date32(value.type):
        value = value.cast(pa.int32())
    elif pa.types.is_timestamp(value.type):
        value = value.cast(pa.int64())
    known: Any = value.as_py()
    is_number = pa.types.is_integer(value.type) or pa.types.is_decimal(value.type) or pa.types.is_floating(value.type)
    return str(known) if known is not None and is_number and math.isfinite(known) else None

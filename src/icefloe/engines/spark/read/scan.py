"""Sources of rows for Spark: a scan, which is planned when a query runs, and files that are planned already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.read.column_types import filter_on_longs, in_microseconds, longs_to_microseconds
from icefloe.engines.spark.read.equality_joins import NO_EQUALITY_DELETES, EqualityDeletes
from icefloe.engines.spark.read.identity_columns import IdentityColumns
from icefloe.engines.spark.read.inherited_columns import InheritedColumns
from icefloe.engines.spark.read.read import dataframe
from icefloe.engines.spark.read.selection import columns_to_read, select_columns
from icefloe.engines.spark.read.source import Source
from icefloe.engines.spark.schema import names_are_stable
from icefloe.engines.work import PlannedFiles, ScanRequest
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.expr.filter.row_filter import to_sql
from icefloe.formats.read.reader import stored_columns
from icefloe.model.metadata.snapshots import Snapshot, SummaryKey
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.scan.plan import all_deletes, selected
from icefloe.scan.routes import Route, file_routes
from icefloe.scan.tasks import Plan
from icefloe.tree.root import Root, read_root

_PLANS_KEPT = 4  # the routes of a scan share its plan
_UNKNOWN_SIZE = 1 << 40  # bytes; too large for Spark to broadcast


def planned_source(files: PlannedFiles, schema: Schema, metadata_columns: tuple[Field, ...] = ()) -> Source:
    """The rows of planned files, whatever else Spark filters."""
    plan, stored = files.plan, partial(stored_columns, files.io)
    deleted = files.deleted_rows.positions(plan.tasks["location"].to_pylist())
    return Source(
        plan=lambda _: plan,
        vectors=lambda _: deleted,
        schema=schema,
        location=plan.tasks["location"][0].as_py(),
        size_bytes=pc.sum(plan.tasks["file_size_in_bytes"]).as_py(),
        has_deletes=len(deleted) > 0,
        identity=IdentityColumns(schema, plan.specs, plan.tasks["partition_spec_id"], stored),
        inherited=InheritedColumns(metadata_columns),
        routes=frozenset(Route(number) for number in np.unique(file_routes(plan)).tolist()),
        equality_deletes=EqualityDeletes(plan.deletes, plan.table_schema, plan.specs, stored),
    )


def read_scan(spark: SparkSession, scan: ScanRequest) -> DataFrame:
    """A scan as a DataFrame; files are planned when a query runs, with the filters of the query and of the scan."""
    metadata, store, schema = scan.base.metadata, scan.base.store, scan.table_schema
    wanted = selected(store, metadata, schema, scan.columns, scan.base.name).fields
    condition = bind(scan.filter, schema)
    read = columns_to_read(schema, wanted, condition, reads_nanoseconds=scan.truncates_nanoseconds)
    root = read_root(store, scan.snapshot)
    has_deletes = root.has_deletes
    stored = partial(stored_columns, store.io)
    equality_deletes = _equality_deletes(scan, root, stored) if has_deletes else NO_EQUALITY_DELETES

    @lru_cache(_PLANS_KEPT)
    def plan(more: Expr) -> Plan:
        planned = replace(scan, columns=None, schema=schema).plan(more)
        return planned.counted(store.io) if has_deletes else planned

    source = Source(
        plan=plan,
        vectors=lambda plan: plan.deleted_rows(store.io).positions(plan.tasks["location"].to_pylist()),
        schema=read,
        location=metadata.location,
        size_bytes=_size(scan.snapshot),
        has_deletes=has_deletes,
        stable_names=names_are_stable(metadata.schemas),
        identity=IdentityColumns(read, metadata.specs, root.entries["partition_spec_id"], stored),
        inherited=InheritedColumns(tuple(field for field in wanted if field.id not in read.by_id)),
        routes=frozenset({Route.NATIVE, *([Route.JOINED] if equality_deletes.files.num_rows > 0 else [])}),
        equality_deletes=equality_deletes,
        reads_nanoseconds=scan.truncates_nanoseconds,
    )
    rows = dataframe(spark, source)
    if scan.filter != ALWAYS_TRUE:
        rows = rows.where(F.expr(to_sql(filter_on_longs(condition))))
    rows = longs_to_microseconds(rows, read)
    return rows if scan.columns is None else select_columns(rows, in_microseconds(wanted), in_microseconds(read.fields))


def _equality_deletes(scan: ScanRequest, root: Root, stored: Callable[[str], frozenset[int]]) -> EqualityDeletes:
    """The equality deletes of a snapshot; its delete manifests are read unless its summary counts none."""
    summary = {} if scan.snapshot is None else scan.snapshot.summary
    if summary.get(str(SummaryKey.TOTAL_EQUALITY_DELETES)) == "0" and not scan.inspect_files:
        return NO_EQUALITY_DELETES
    deletes = all_deletes(scan.base.store, root)
    return EqualityDeletes(deletes, scan.table_schema, scan.base.metadata.specs, stored)


def _size(snapshot: Snapshot | None) -> int:
    """The size of the data files in bytes, by which Spark chooses joins."""
    text = "0" if snapshot is None else snapshot.summary.get("total-files-size", "")
    return int(text) if text.isdigit() else _UNKNOWN_SIZE

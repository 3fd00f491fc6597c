"""Sources of rows for Spark: a scan, which is planned when a query runs, and files that are planned already."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.deletes.delete_index import DELETE_NUMBERS
from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.engines.spark.read.identity_columns import IdentityColumns
from icefloe.engines.spark.read.inherited_columns import InheritedColumns
from icefloe.engines.spark.read.read import Source, dataframe
from icefloe.engines.spark.read.selection import columns_to_read, select_columns
from icefloe.engines.spark.schema import names_are_stable
from icefloe.engines.spark.session import SPARK
from icefloe.engines.work import PlannedFiles, Positions, ScanRequest
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.expr.filter.row_filter import to_sql
from icefloe.formats.read.reader import stored_columns
from icefloe.model.metadata.error_context import Origin
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.scan.plan import all_deletes, selected
from icefloe.scan.tasks import Plan
from icefloe.tree.root import read_root

_UNKNOWN_SIZE = 1 << 40  # bytes; too large for Spark to broadcast


def planned_source(files: PlannedFiles, schema: Schema, metadata_columns: tuple[Field, ...] = ()) -> Source:
    """The rows of planned files, whatever else Spark filters."""
    plan = files.plan
    SPARK.check_plan(plan)
    deleted = files.deleted_rows.positions(plan.tasks["location"].to_pylist())
    return Source(
        plan=lambda _: plan,
        vectors=lambda _: deleted,
        schema=schema,
        location=plan.tasks["location"][0].as_py(),
        size_bytes=pc.sum(plan.tasks["file_size_in_bytes"]).as_py(),
        has_deletes=len(deleted) > 0,
        identity=IdentityColumns(
            schema, plan.specs, plan.tasks["partition_spec_id"], partial(stored_columns, files.io)
        ),
        inherited=InheritedColumns(metadata_columns),
    )


def read_scan(spark: SparkSession, scan: ScanRequest) -> DataFrame:
    """A scan as a DataFrame; files are planned when a query runs, with the filters of the query and of the scan."""
    metadata, store, schema = scan.base.metadata, scan.base.store, scan.table_schema
    wanted = selected(store, metadata, schema, scan.columns, scan.base.name).fields
    read = columns_to_read(schema, wanted, bind(scan.filter, schema))
    root = read_root(store, scan.snapshot)
    deletes = all_deletes(store, root)
    SPARK.check_defaults(schema)
    SPARK.check_deletes(deletes)  # now, and not when a query runs

    def plan(more: Expr) -> Plan:
        planned = replace(scan, columns=None, schema=schema).plan(more)
        return _numbered(planned.counted(store.io) if deletes.num_rows > 0 else planned, deletes)

    def vectors(tasks: pa.Table) -> Positions:
        snapshot_id = None if scan.snapshot is None else scan.snapshot.snapshot_id
        origin = Origin(table=metadata.location, snapshot_id=snapshot_id)
        deleted_rows = DeletedRows(store.io, tasks, deletes, fields={}, origin=origin)
        return deleted_rows.positions(tasks["location"].to_pylist())

    source = Source(
        plan=plan,
        vectors=vectors,
        schema=read,
        location=metadata.location,
        size_bytes=_size(scan.snapshot),
        has_deletes=deletes.num_rows > 0,
        stable_names=names_are_stable(metadata.schemas),
        identity=IdentityColumns(
            read, metadata.specs, root.entries["partition_spec_id"], partial(stored_columns, store.io)
        ),
        inherited=InheritedColumns(tuple(field for field in wanted if field.id not in read.by_id)),
    )
    rows = dataframe(spark, source)
    if scan.filter != ALWAYS_TRUE:
        rows = rows.where(F.expr(to_sql(bind(scan.filter, schema))))
    return rows if scan.columns is None else select_columns(rows, wanted, read)


def _numbered(plan: Plan, deletes: pa.Table) -> Plan:
    """The plan with its delete files numbered by their rows in ``deletes``, which all plans of a scan share."""
    if plan.deletes.num_rows == 0:
        return plan
    rows = pc.index_in(plan.deletes["location"], value_set=deletes["location"].combine_chunks()).combine_chunks()
    numbers = plan.tasks["deletes"].combine_chunks()
    lists = pa.ListArray.from_arrays(numbers.offsets, rows.take(numbers.values))
    index = plan.tasks.schema.get_field_index("deletes")
    return replace(plan, tasks=plan.tasks.set_column(index, DELETE_NUMBERS, lists), deletes=deletes)


def _size(snapshot: Snapshot | None) -> int:
    """The size of the data files in bytes, by which Spark chooses joins."""
    text = "0" if snapshot is None else snapshot.summary.get("total-files-size", "")
    return int(text) if text.isdigit() else _UNKNOWN_SIZE

"""The engine that works on Spark: what the table facade asks for, put together from the parts of this package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.commit.base import Base
from icefloe.deletes.delete_index import DELETE_NUMBERS
from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.engines.engine import (
    Horizon,
    Keyed,
    Matched,
    Positions,
    check_defaults,
    check_no_equality_deletes,
    check_readable,
    lineage_of,
)
from icefloe.engines.spark.change.delete import find_rows, rewrite_without
from icefloe.engines.spark.change.upsert import find_keys, find_keys_and_ids, keyed
from icefloe.engines.spark.read.identity_columns import IdentityColumns
from icefloe.engines.spark.read.inherited_columns import InheritedColumns
from icefloe.engines.spark.read.read import Source, dataframe, rows_with_positions
from icefloe.engines.spark.read.selection import columns_to_read, select_columns
from icefloe.engines.spark.schema import names_are_stable
from icefloe.engines.spark.session import capabilities
from icefloe.engines.spark.write.write import write
from icefloe.errors import InputError, UnsupportedError
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Bound, Expr, conjunction
from icefloe.expr.filter.row_filter import to_sql
from icefloe.expr.value.expressions import Value
from icefloe.formats.read.reader import stored_columns
from icefloe.io.file_io import FileIO
from icefloe.model.metadata.error_context import Origin
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.metadata_columns import ROW_ID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.scan.plan import all_deletes, plan_scan, read_schema, selected
from icefloe.scan.tasks import Plan
from icefloe.tree.root import read_root

_UNKNOWN_SIZE = 1 << 40  # too large to be broadcast by mistake


class SparkEngine:
    """Rows as DataFrames of one classic session."""

    def __init__(self, spark: SparkSession) -> None:
        capabilities(spark)
        self._spark = spark

    def write(self, io: FileIO, rows: Any, metadata: TableMetadata, *, lineage: tuple[Field, ...] = ()) -> pa.Table:
        """Write rows to new data files of the table; their entries."""
        return write(_frame(rows), metadata=metadata, io=io, lineage=lineage)

    def find_rows(self, io: FileIO, plan: Plan, drops: DeletedRows) -> dict[str, BitMap64]:
        """Live rows that match the plan's filter, by file."""
        if plan.files == 0:
            return {}
        rows = rows_with_positions(self._spark, _planned(io, plan, drops, plan.table_schema))
        return find_rows(rows, to_sql(cast(Bound, plan.filter)))

    @contextmanager
    def keyed(self, rows: Any, metadata: TableMetadata, on: tuple[str, ...]) -> Iterator[Keyed]:
        """The source with distinct keys, evaluated once and kept for the duration."""
        with keyed(_frame(rows), metadata.schema, on) as source:
            yield source

    def find_keys(
        self, io: FileIO, plan: Plan, drops: DeletedRows, source: Keyed, *, settled: int | None = None
    ) -> Matched:
        """Live rows whose key is one of the source's, and the source with their ids."""
        if plan.files == 0:
            return Matched(positions={}, rows=source.rows)
        keys = plan.table_schema.select(source.on)
        if settled is None or len(lineage_of(plan)) == 0:
            return find_keys(rows_with_positions(self._spark, _planned(io, plan, drops, keys)), source)
        planned = _planned(io, plan, drops, keys, (ROW_ID,))
        return find_keys_and_ids(rows_with_positions(self._spark, planned), source, settled=settled)

    def write_key_deletes(self, io: FileIO, source: Keyed, metadata: TableMetadata) -> pa.Table:
        """Refused: equality deletes are not written on Spark yet."""
        raise UnsupportedError(
            "equality deletes are not written on Spark yet; upsert with deletes='position'", feature="equality deletes"
        )

    def write_updated(
        self,
        io: FileIO,
        plan: Plan,
        drops: DeletedRows,
        found: Positions,
        values: Mapping[str, Value],
        metadata: TableMetadata,
        *,
        others: bool,
        horizon: Horizon | None = None,
    ) -> pa.Table:
        """Refused: updates are not done on Spark yet."""
        raise UnsupportedError(
            "update is not done on Spark yet; do it in this process, without a Spark session", feature="update"
        )

    def write_survivors(
        self,
        io: FileIO,
        plan: Plan,
        drops: DeletedRows,
        found: Positions,
        metadata: TableMetadata,
        *,
        horizon: Horizon | None = None,
    ) -> pa.Table:
        """The rows that touched files keep, in new files."""
        touched = pa.array(list(found), pa.string())
        plan = plan.with_tasks(plan.tasks.filter(pc.is_in(plan.tasks["location"], value_set=touched)))
        planned = _planned(io, plan, drops, metadata.schema, lineage_of(plan))
        return rewrite_without(self._spark, planned, found, metadata=metadata, io=io, horizon=horizon)


def _frame(rows: Any) -> DataFrame:
    if not isinstance(rows, DataFrame):
        raise InputError(f"expected a Spark DataFrame, got {type(rows).__name__}")
    return rows


def _planned(
    io: FileIO, plan: Plan, drops: DeletedRows, schema: Schema, metadata_columns: tuple[Field, ...] = ()
) -> Source:
    """The files of a plan that was made already, whatever Spark filters on top of it."""
    check_readable(plan)
    deleted = drops.positions(plan.tasks["location"].to_pylist())
    return Source(
        plan=lambda _: plan,
        vectors=lambda _: deleted,
        schema=schema,
        location=plan.tasks["location"][0].as_py(),
        size_bytes=pc.sum(plan.tasks["file_size_in_bytes"]).as_py(),
        has_deletes=len(deleted) > 0,
        identity=IdentityColumns(schema, plan.specs, plan.tasks["partition_spec_id"], partial(stored_columns, io)),
        inherited=InheritedColumns(metadata_columns),
    )


def read_scan(
    spark: SparkSession,
    base: Base,
    snapshot: Snapshot | None,
    filter_: Expr,
    columns: Sequence[str] | None,
    schema: Schema | None = None,
) -> DataFrame:
    """A scan as a DataFrame; files are planned when a query runs, with the query's own filters and the scan's.

    Columns are those of ``schema``, by default the one that reading this snapshot uses.
    """
    capabilities(spark)
    metadata, store = base.metadata, base.store
    if schema is None:
        schema = metadata.schema if snapshot is None else read_schema(metadata, snapshot)
    wanted = selected(store, metadata, schema, columns, base.name).fields
    read = columns_to_read(schema, wanted, bind(filter_, schema))
    root = read_root(store, snapshot)
    deletes = all_deletes(store, root)
    check_defaults(schema)
    check_no_equality_deletes(deletes)  # at once, and not when a query runs

    def plan(more: Expr) -> Plan:
        found = plan_scan(store, metadata, snapshot, filter=conjunction([filter_, more]), schema=schema)
        return _numbered(found.counted(store.io) if deletes.num_rows > 0 else found, deletes)

    def vectors(tasks: pa.Table) -> Positions:
        origin = Origin(table=metadata.location, snapshot_id=None if snapshot is None else snapshot.snapshot_id)
        found = DeletedRows(store.io, tasks, deletes, fields={}, origin=origin)
        return found.positions(tasks["location"].to_pylist())

    source = Source(
        plan=plan,
        vectors=vectors,
        schema=read,
        location=metadata.location,
        size_bytes=_size(snapshot),
        has_deletes=deletes.num_rows > 0,
        stable_names=names_are_stable(metadata.schemas),
        identity=IdentityColumns(
            read, metadata.specs, root.entries["partition_spec_id"], partial(stored_columns, store.io)
        ),
        inherited=InheritedColumns(tuple(field for field in wanted if field.id not in read.by_id)),
    )
    rows = dataframe(spark, source)
    if filter_ != ALWAYS_TRUE:
        rows = rows.where(F.expr(to_sql(bind(filter_, schema))))
    return rows if columns is None else select_columns(rows, wanted, read)


def _numbered(plan: Plan, deletes: pa.Table) -> Plan:
    """The plan with its delete files told by their rows in the table of all of them, which every plan can share."""
    if plan.deletes.num_rows == 0:
        return plan
    rows = pc.index_in(plan.deletes["location"], value_set=deletes["location"].combine_chunks()).combine_chunks()
    listed = plan.tasks["deletes"].combine_chunks()
    lists = pa.ListArray.from_arrays(listed.offsets, rows.take(listed.values))
    index = plan.tasks.schema.get_field_index("deletes")
    return replace(plan, tasks=plan.tasks.set_column(index, DELETE_NUMBERS, lists), deletes=deletes)


def _size(snapshot: Snapshot | None) -> int:
    """How much Spark should expect to read, for its choice of joins."""
    text = "0" if snapshot is None else snapshot.summary.get("total-files-size", "")
    return int(text) if text.isdigit() else _UNKNOWN_SIZE

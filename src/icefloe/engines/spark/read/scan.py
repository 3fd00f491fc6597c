"""Sources of rows for Spark: a scan, which is planned when a query runs, and files that are planned already.

Which routes the files of a scan need is found when a DataFrame is made, before any file is planned. Delete manifests
are read only if the snapshot may have equality deletes. Data manifests of small tables are read, for the formats of
their files. A large table has Parquet files only, unless its properties say otherwise. If that is wrong, a query fails
and names ``inspect_files``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.read import source
from icefloe.engines.spark.read.column_types import (
    columns_to_read,
    filter_on_longs,
    in_microseconds,
    longs_to_microseconds,
    select_columns,
)
from icefloe.engines.spark.read.distributed_planning import data_rows_by_tasks
from icefloe.engines.spark.read.equality_joins import NO_EQUALITY_DELETES, EqualityDeletes
from icefloe.engines.spark.read.file_index import Buckets
from icefloe.engines.spark.read.footers import Footers
from icefloe.engines.spark.read.identity_columns import IdentityColumns
from icefloe.engines.spark.read.inherited_columns import InheritedColumns
from icefloe.engines.spark.read.read import dataframe
from icefloe.engines.spark.read.source import FilesByTasks, Source
from icefloe.engines.spark.schema import names_are_stable
from icefloe.engines.spark.storage import hadoop_storage
from icefloe.engines.work import PlannedFiles, ScanRequest
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.filter_columns import filter_columns
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Bound, Expr
from icefloe.expr.text.spark_sql import to_sql
from icefloe.formats.parquet.stats import PARQUET
from icefloe.model.entries import ContentType
from icefloe.model.metadata.error_context import Origin
from icefloe.model.metadata.properties import FILE_FORMAT
from icefloe.model.metadata.snapshots import Snapshot, SummaryKey, summary_number
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY
from icefloe.model.schema.schema import Schema, merged_fields
from icefloe.model.schema.types import Field
from icefloe.scan.metadata_filter import split_filter
from icefloe.scan.plan import all_deletes, known_fields, partition_fields, selected
from icefloe.scan.prune import statistics_keys
from icefloe.scan.routes import Route, finds_columns, is_parquet
from icefloe.scan.tasks import TASK, Plan
from icefloe.transforms import HashBuckets, transform_of
from icefloe.tree.root import Root, read_live_leaves, read_root

_PLANS_KEPT = 4  # the routes of a scan share its plan
UNKNOWN_SIZE = 1 << 40  # bytes; too large for Spark to broadcast
INSPECTED_FILES_MAX = 10_000


def planned_source(
    spark: SparkSession, files: PlannedFiles, schema: Schema, metadata_columns: tuple[Field, ...] = ()
) -> Source:
    """The rows of planned files, whatever else Spark filters."""
    plan, footers = files.plan, Footers.in_storage(files.io)
    location = plan.tasks["location"][0].as_py()
    hadoop = hadoop_storage(spark, files.io, location)
    deleted = files.deleted_rows.positions(plan.tasks["location"].to_pylist())
    source = Source(
        plan=lambda _, bounded: plan,
        vectors=lambda _: deleted,
        schema=schema,
        location=location,
        size_bytes=pc.sum(plan.tasks["file_size_in_bytes"]).as_py(),
        has_deletes=len(deleted) > 0,
        stable_names=names_are_stable(files.metadata.schemas),
        identity=IdentityColumns(schema, plan.specs, plan.tasks["partition_spec_id"], footers),
        inherited=InheritedColumns(metadata_columns),
        native=hadoop.is_readable and finds_columns(files.metadata.schemas, schema),
        hadoop=hadoop,
        equality_deletes=EqualityDeletes(plan.deletes, plan.table_schema, plan.specs, footers),
        footers=None if plan.mapping is None else footers,
        by_tasks=FilesByTasks(io=files.io, plan=_without_files(plan)),
    )
    routes = np.unique(source.routes_of(plan)).tolist()
    return replace(source, routes=frozenset(Route(number) for number in routes))


def read_scan(spark: SparkSession, scan: ScanRequest) -> DataFrame:
    """A scan as a DataFrame; files are planned when a query runs, with the filters of the query and of the scan."""
    metadata, store, schema = scan.base.metadata, scan.base.store, scan.table_schema
    wanted = selected(store, metadata, schema, scan.columns, scan.base.name).fields
    testable = scan.filter_schema(scan.filter)
    condition = bind(scan.filter, testable)
    read = columns_to_read(schema, wanted, condition, reads_nanoseconds=scan.truncates_nanoseconds)
    tested = tuple(field for field in testable.fields if field.id not in schema.by_id)
    inherited = merged_fields(tuple(field for field in wanted if field.id not in schema.by_id), tested)
    on_table, _ = split_filter(scan.filter, schema)
    bound, root, footers = bind(on_table, schema), read_root(store, scan.snapshot), Footers.in_storage(store.io)
    hadoop = hadoop_storage(spark, store.io, metadata.data_location)
    native = hadoop.is_readable and finds_columns(metadata.schemas, schema)
    forms = _file_forms(replace(scan, filter=on_table), root, footers, native=native)
    if Route.TASKS in forms.routes and scan.columns is not None:
        # Tasks read all columns of the DataFrame, so it has no others than are needed.
        read = _only(read, (*wanted, *filter_columns(condition, schema).fields))

    @lru_cache(_PLANS_KEPT)
    def plan(more: Expr, bounded: tuple[int, ...]) -> Plan:
        data_rows = data_rows_by_tasks(spark, scan.snapshot)
        planned = replace(scan, columns=None, schema=schema).plan(more, bounded=bounded, data_rows=data_rows)
        return planned.counted(store.io) if forms.has_deletes else planned

    source = Source(
        plan=plan,
        vectors=lambda plan: plan.deleted_rows(store.io).positions(plan.tasks["location"].to_pylist()),
        schema=read,
        location=metadata.location,
        size_bytes=size_of_files(scan.snapshot),
        has_deletes=forms.has_deletes,
        first_filter=filter_on_longs(bound),
        pushed=scan.pushed,
        stable_names=names_are_stable(metadata.schemas),
        identity=IdentityColumns(read, metadata.specs, root.entries["partition_spec_id"], footers),
        inherited=InheritedColumns(inherited),
        native=native,
        hadoop=hadoop,
        routes=forms.routes,
        equality_deletes=forms.equality_deletes,
        reads_nanoseconds=scan.truncates_nanoseconds,
        footers=footers if forms.may_lack_ids else None,
        buckets=_buckets(metadata, root, read, forms.routes),
        by_tasks=FilesByTasks(io=store.io, plan=_empty_plan(scan, bound), filter=bound),
    )
    rows = dataframe(spark, source)
    rows = rows if scan.filter == ALWAYS_TRUE else rows.where(F.expr(to_sql(filter_on_longs(condition))))
    rows = longs_to_microseconds(rows, read)
    if scan.columns is None and len(tested) == 0:
        return rows
    return select_columns(rows, in_microseconds(wanted), (*in_microseconds(read.fields), *inherited))


def _buckets(metadata: TableMetadata, root: Root, schema: Schema, routes: frozenset[Route]) -> tuple[Buckets, ...]:
    """The buckets of columns of a schema that all files are in; none unless Spark's own reader reads all of them."""
    if routes != {Route.NATIVE}:
        return ()
    columns, used = (
        {field.id: field for field in schema.fields},
        set(pc.unique(root.entries["partition_spec_id"]).to_pylist()),
    )
    specs = [spec for spec in metadata.specs if spec.spec_id in used]
    return tuple(
        Buckets(columns[field.source_id].name, method.count, field.field_id)
        for field in metadata.spec.fields
        if len(field.source_ids) == 1 and field.source_id in columns
        if len(specs) == len(used) and all(field in spec.fields for spec in specs)
        if isinstance(method := transform_of(field).spark_method(columns[field.source_id].type), HashBuckets)
    )


def _only(schema: Schema, needed: Iterable[Field]) -> Schema:
    """The columns of a schema that are needed."""
    ids = {field.id for field in needed}
    return Schema(fields=tuple(field for field in schema.fields if field.id in ids), schema_id=schema.schema_id)


def _without_files(plan: Plan) -> Plan:
    """The plan for tasks, which get their files separately."""
    no_tasks, no_deletes = plan.tasks.schema.empty_table(), plan.deletes.schema.empty_table()
    return replace(plan, tasks=no_tasks, deletes=no_deletes, trace=None)


def size_of_files(snapshot: Snapshot | None) -> int:
    """The size of the data files in bytes, by which Spark chooses joins."""
    size = 0 if snapshot is None else summary_number(snapshot, SummaryKey.TOTAL_FILES_SIZE)
    return UNKNOWN_SIZE if size is None else size


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileForms:
    """The routes that the files of a snapshot may need, and its equality deletes that joins apply."""

    routes: frozenset[Route]
    has_deletes: bool
    equality_deletes: EqualityDeletes
    may_lack_ids: bool  # whether the footers of Parquet files must be read


def _file_forms(scan: ScanRequest, root: Root, footers: Footers, *, native: bool) -> _FileForms:
    """The forms of the files of a scan, as far as metadata shows them; unless ``native``, tasks read all of them."""
    metadata, schema = scan.base.metadata, scan.table_schema
    has_deletes = root.has_deletes
    if not native:
        return _FileForms(
            routes=frozenset({Route.TASKS}),
            has_deletes=has_deletes,
            equality_deletes=NO_EQUALITY_DELETES,
            may_lack_ids=False,
        )
    equality_deletes = _equality_deletes(scan, root, footers) if has_deletes else NO_EQUALITY_DELETES
    may_lack_ids = NAME_MAPPING_PROPERTY in metadata.properties or scan.inspect_files
    identity = IdentityColumns(schema, metadata.specs, root.entries["partition_spec_id"], footers)
    by_tasks = may_lack_ids or not equality_deletes.is_complete or not identity.is_certain
    rows = summary_number(scan.snapshot, SummaryKey.TOTAL_RECORDS)
    if has_deletes and (rows is None or rows // 8 > source.BITMAP_BYTES_MAX):
        by_tasks = True
    routes = {Route.NATIVE}
    if equality_deletes.files.num_rows > 0:
        routes.add(Route.JOINED)
    if by_tasks or _has_other_formats(scan, root):
        routes.add(Route.TASKS)
    return _FileForms(
        routes=frozenset(routes), has_deletes=has_deletes, equality_deletes=equality_deletes, may_lack_ids=may_lack_ids
    )


def _equality_deletes(scan: ScanRequest, root: Root, footers: Footers) -> EqualityDeletes:
    """The equality deletes of a snapshot; its delete manifests are read unless its summary counts none."""
    if summary_number(scan.snapshot, SummaryKey.TOTAL_EQUALITY_DELETES) == 0 and not scan.inspect_files:
        return NO_EQUALITY_DELETES
    deletes = all_deletes(scan.base.store, root)
    return EqualityDeletes(deletes, scan.table_schema, scan.base.metadata.specs, footers)


def _has_other_formats(scan: ScanRequest, root: Root) -> bool:
    """Whether a data file is not Parquet, or may not be; the data manifests of small tables are read."""
    if FILE_FORMAT.of(scan.base.metadata.properties) != PARQUET or not is_parquet(root.rows(ContentType.DATA)).all():
        return True
    count = summary_number(scan.snapshot, SummaryKey.TOTAL_DATA_FILES)
    if not scan.inspect_files and (count is None or count > INSPECTED_FILES_MAX):
        return False
    metadata, leaves = scan.base.metadata, root.leaves(ContentType.DATA_MANIFEST)
    wanted = statistics_keys(bind(scan.filter, scan.table_schema), partition_fields(metadata))
    return any(not is_parquet(rows).all() for rows in read_live_leaves(scan.base.store, root, leaves, wanted))


def _empty_plan(scan: ScanRequest, filter_: Bound) -> Plan:
    """The plan of a scan without files: what readers need to know about the table."""
    metadata, snapshot = scan.base.metadata, scan.snapshot
    return Plan(
        tasks=TASK.empty_table(),
        schema=scan.table_schema,
        table_schema=scan.table_schema,
        filter=filter_,
        specs=metadata.specs,
        properties=metadata.properties,
        fields=known_fields(metadata),
        origin=Origin(table=metadata.location, snapshot_id=None if snapshot is None else snapshot.snapshot_id),
    )

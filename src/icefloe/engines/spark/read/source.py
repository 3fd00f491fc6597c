"""What Spark reads: the planned files of a scan or an operation, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.engines.spark.read.equality_joins import NO_EQUALITY_DELETES, EqualityDeletes
from icefloe.engines.spark.read.file_index import Buckets
from icefloe.engines.spark.read.footers import Footers
from icefloe.engines.spark.read.identity_columns import NO_IDENTITY, IdentityColumns
from icefloe.engines.spark.read.inherited_columns import NO_COLUMNS, InheritedColumns
from icefloe.engines.spark.storage import HadoopStorage
from icefloe.errors import UnsupportedError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Bound, Expr
from icefloe.io.file_io import FileIO
from icefloe.model.schema.schema import Schema
from icefloe.scan.routes import Route, file_routes
from icefloe.scan.tasks import Plan

Planner = Callable[[Expr, tuple[int, ...]], Plan]  # of a filter, with the bounds of columns
Vectors = Callable[[Plan], Mapping[str, BitMap64]]

BITMAP_BYTES_MAX = 1 << 30  # all bitmaps of one plan pass through the driver at once
_INSPECT = "; make the DataFrame with to_spark(spark, inspect_files=True)"
_REASONS = {
    Route.NATIVE: "{}: the file was not expected in this DataFrame",
    Route.JOINED: "{}: equality deletes apply to the file, but the summary of the snapshot counts none",
    Route.TASKS: "{}: Spark's Parquet reader cannot read the file: it is not Parquet, has no field ids, or has equality"
    " deletes that a join cannot apply",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesByTasks:
    """How tasks read files: their storage, a plan without files, and a filter for the rows.

    The filter only saves time: the reader of the rows applies it too.
    """

    io: FileIO
    plan: Plan
    filter: Bound = ALWAYS_TRUE


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The rows to read; every scan calls ``plan`` with its filters."""

    plan: Planner
    vectors: Vectors  # deleted positions by file location
    schema: Schema  # the columns to return
    location: str
    size_bytes: int
    has_deletes: bool  # whether any file of the snapshot may have deleted positions
    first_filter: Bound = ALWAYS_TRUE  # evaluated before the deletion test; the reader of the rows applies it too
    pushed: Expr = ALWAYS_TRUE  # the filter for files that tasks read; the reader of the rows applies it too
    also_deleted: Mapping[str, BitMap64] = field(default_factory=lambda: MappingProxyType({}))  # beside those of files
    stable_names: bool = False  # schema.names_are_stable: whether Spark may prune row groups, which it does by name
    identity: IdentityColumns = NO_IDENTITY  # identity-partition columns, which some data files do not contain
    inherited: InheritedColumns = NO_COLUMNS  # metadata columns to return after those of the schema
    reads_nanoseconds: bool = False  # whether timestamps of nanoseconds are returned, as longs, or refused
    native: bool = True  # whether Spark's Parquet reader opens the storage and finds the columns of the table
    hadoop: HadoopStorage = field(default_factory=HadoopStorage)  # how Spark's readers reach the files
    routes: frozenset[Route] = frozenset({Route.NATIVE})  # how the files may be read; another one is an error
    equality_deletes: EqualityDeletes = NO_EQUALITY_DELETES  # those that joins apply
    footers: Footers | None = None  # if Parquet files may lack field ids
    buckets: tuple[Buckets, ...] = ()  # those that all files are in
    by_tasks: FilesByTasks | None = None  # how tasks read files; none if no file is read by them

    def deleted_positions(self, plan: Plan) -> Mapping[str, BitMap64]:
        """The deleted positions of planned files by location; files without any are left out."""
        positions = dict(self.vectors(plan)) if plan.files > 0 else {}
        for location, more in self.also_deleted.items():
            known = positions.get(location)
            positions[location] = more if known is None else known | more
        return positions

    def files_of(self, plan: Plan, route: Route) -> Plan:
        """The planned files that are read by a route; UnsupportedError if a file needs a route that this lacks."""
        routes = self.routes_of(plan)
        others = np.flatnonzero(~np.isin(routes, [int(known) for known in self.routes]))
        if len(others) > 0:
            self.identity.check(plan.tasks)
            location = plan.tasks["location"][int(others[0])].as_py()
            reason = _REASONS[Route(int(routes[others[0]]))].format(location)
            raise UnsupportedError(reason + _INSPECT, location=location)
        return plan if len(self.routes) == 1 else plan.with_tasks(plan.tasks.filter(pa.array(routes == int(route))))

    def routes_of(self, plan: Plan) -> npt.NDArray[np.int8]:
        """The route of each planned file; footers are read where they decide it."""
        routes = file_routes(plan, native=self.native)
        in_doubt = routes != Route.TASKS
        if self.footers is not None:
            rows = np.flatnonzero(in_doubt)
            columns = self.footers.of(plan.tasks["location"].take(pa.array(rows)).to_pylist())
            routes[rows[[len(ids) == 0 for ids in columns]]] = Route.TASKS
        routes[self.identity.lacking(plan.tasks) & in_doubt] = Route.TASKS
        if self.has_deletes and Route.TASKS in self.routes:
            routes[self._beyond_bitmaps(plan.tasks, routes)] = Route.TASKS
        return routes

    def _beyond_bitmaps(self, tasks: pa.Table, routes: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
        """The files with deletes whose bitmaps, with those of the files before them, are too large for the driver."""
        has_deletes = pc.or_(pc.is_valid(tasks["dv_location"]), pc.greater(pc.list_value_length(tasks["deletes"]), 0))
        if len(self.also_deleted) > 0:
            more = pc.is_in(tasks["location"], value_set=pa.array(list(self.also_deleted), pa.string()))
            has_deletes = pc.or_(pc.fill_null(has_deletes, False), more)
        has_bitmap = np.asarray(pc.fill_null(has_deletes, False)) & (routes != Route.TASKS)
        sizes = np.asarray(pc.fill_null(tasks["record_count"], 0)) // 8 * has_bitmap
        beyond: npt.NDArray[np.bool_] = has_bitmap & (np.cumsum(sizes) > BITMAP_BYTES_MAX)
        return beyond

"""Scans: a filter and columns on one snapshot, and the ways to get the rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.base import Base
from icefloe.deletes.bitmaps import within
from icefloe.engines.arrow.read.read import count_plan, read_plan
from icefloe.engines.engine import spark_engine
from icefloe.errors import UnsupportedError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr, Predicate, conjunction, leaves
from icefloe.expr.prune.stats_eval import Match
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.lazy import load_optional
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.schema.metadata_columns import DELETED, is_metadata_column
from icefloe.model.schema.schema import Schema
from icefloe.scan.explain import explain
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import Plan

_AT_ONCE = 1024  # files whose deletion vectors are read together


class Scan:
    """What to read of a snapshot; nothing is read before one of the ``to_`` methods is called.

    Columns may be the table's and ``_file``, ``_pos``, and from format version 3 on ``_row_id`` and
    ``_last_updated_sequence_number``. Fields of structs are selected by their full names, such as ``who.name``: the
    struct comes with only these fields.

    >>> import icefloe, tempfile, pyarrow as pa
    >>> folder = tempfile.mkdtemp()
    >>> cat = icefloe.catalog("demo", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")
    >>> t = cat.create_table("db.orders", schema="id bigint, note string")
    >>> _ = t.append(pa.table({"id": [1, 2, 3], "note": ["a", "b", "c"]}))
    >>> t.scan("id > 1", columns=["note"]).to_arrow().to_pylist()
    [{'note': 'b'}, {'note': 'c'}]
    >>> t.scan("id > 99").plan().files
    0
    >>> nested = cat.create_table("db.people", schema="who struct<name: string, age: int>")
    >>> _ = nested.append(pa.table({"who": [{"name": "Ada", "age": 36}, None]}))
    >>> nested.scan(columns=["who.age"]).to_arrow().to_pylist()
    [{'who': {'age': 36}}, {'who': None}]
    """

    def __init__(
        self,
        base: Base,
        snapshot: Snapshot | None,
        where: str | Expr | None,
        columns: Iterable[str] | None,
        schema: Schema | None = None,
    ) -> None:
        self._base = base
        self._schema = schema  # none for the one that reading the snapshot uses
        self._snapshot = snapshot
        self._filter = _on_columns(parse_filter(where), base)
        self._columns = None if columns is None else tuple(columns)

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read; none for a table that was never written."""
        return self._snapshot

    def plan(self, more: Expr = ALWAYS_TRUE, *, trace: bool = False) -> Plan:
        """The files to read; ``more`` is a filter that came later, such as one that Spark pushes down.

        With ``trace`` the plan also lists why each manifest and file was kept or skipped, as an Arrow table.
        """
        return plan_scan(
            self._base.store,
            self._base.metadata,
            self._snapshot,
            filter=conjunction([self._filter, more]),
            columns=self._columns,
            schema=self._schema,
            trace=trace,
            table=self._base.name,
        )

    def explain(self) -> str:
        """Say which manifests and files the scan reads or skips, and what decided, as text; no data file is read.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table(
        ...     "docs.explain", schema="id bigint, city string", partition_by=["city"])
        >>> result = t.append(pa.table({"id": [1, 2], "city": ["Oslo", "Rome"]}))
        >>> print(t.scan("city = 'Oslo' and id < 9").explain())  # doctest: +ELLIPSIS
        snapshot ... (append, ...+00:00) of memory://.../docs/explain
        filter: city = 'Oslo' AND id < 9
        manifests: 1 read, 0 skipped
        data files: 1 to read (1 rows, ... bytes), 1 skipped
        deletes: 0 delete files and 0 deletion vectors to apply
        manifest kept (1): may match
          memory://...
        file kept (1): all rows match
          memory://.../city=Oslo/....parquet
        file skipped (1): partition: city = 'Oslo'
          memory://.../city=Rome/....parquet
        """
        return explain(self.plan(trace=True), self._snapshot, self._filter)

    def to_arrow(self) -> pa.Table:
        """The rows as one Arrow table."""
        return self.to_arrow_batch_reader().read_all()

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow batches, in a fixed order; files are read ahead, but only a little."""
        return read_plan(self._base.store.io, self.plan())

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The rows as a polars DataFrame."""
        return load_optional("polars", needed_by="to_polars()").from_arrow(self.to_arrow())

    def to_duckdb(self, table_name: str, connection: Any = None) -> Any:
        """A DuckDB connection, a new one unless it is given, in which the rows are a table of this name."""
        connection = load_optional("duckdb", needed_by="to_duckdb()").connect() if connection is None else connection
        connection.register(table_name, self.to_arrow())
        return connection

    def to_spark(self, spark: Any) -> Any:
        """The rows as a Spark DataFrame, read by Spark's own Parquet reader.

        Files are chosen when a query runs, with the query's own filters.
        """
        return spark_engine().read_scan(spark, self._base, self._snapshot, self._filter, self._columns, self._schema)

    def count(self) -> int:
        """How many rows there are; of files that match as a whole, only the deletes are read."""
        plan = self.plan()
        if DELETED in plan.schema.fields:
            return sum(batch.num_rows for batch in read_plan(self._base.store.io, plan))
        whole = pc.and_(
            pc.equal(plan.tasks["match"], int(Match.ALL)), pc.equal(pc.list_value_length(plan.tasks["deletes"]), 0)
        )
        whole = pc.and_(whole, pc.is_valid(plan.tasks["record_count"]))
        known = plan.tasks.filter(whole)
        counted = int(pc.sum(known["record_count"], min_count=0).as_py()) - self._deleted(plan.with_tasks(known))
        return counted + count_plan(self._base.store.io, plan.with_tasks(plan.tasks.filter(pc.invert(whole))))

    def _deleted(self, plan: Plan) -> int:
        """How many rows vectors delete; what their entries say may count rows that the files do not have."""
        touched = plan.tasks.filter(pc.is_valid(plan.tasks["dv_location"]))
        drops, dead = plan.deleted_rows(self._base.store.io), 0
        for batch in touched.select(["location", "record_count"]).to_batches(max_chunksize=_AT_ONCE):
            counts = dict(zip(*(column.to_pylist() for column in batch.columns), strict=True))
            dead += sum(len(within(rows, counts[file])) for file, rows in drops.positions(counts).items())
        return dead


def _on_columns(filter_: Expr, base: Base) -> Expr:
    """The filter, which must not test metadata columns: neither statistics nor pruning know them."""
    for leaf in leaves(filter_):
        name = leaf.column if isinstance(leaf, Predicate) else ""
        if is_metadata_column(name) and name not in base.metadata.schema.by_name:
            raise UnsupportedError(
                f"a scan cannot be filtered by the metadata column {name!r}; select it, and filter what comes back",
                field=name,
            )
    return filter_

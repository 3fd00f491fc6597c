"""Scans: a filter and columns on one snapshot, and the ways to get the rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.base import Base
from icefloe.deletes.vectors import load_vectors
from icefloe.engines.arrow.read import read_plan
from icefloe.engines.engine import spark_engine
from icefloe.errors import UnsupportedError
from icefloe.expr.nodes import ALWAYS_TRUE, Expr, Predicate, conjunction, leaves
from icefloe.expr.stats_eval import Match
from icefloe.expr.text import parse_filter
from icefloe.model.metadata_columns import is_metadata_column
from icefloe.model.snapshots import Snapshot
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import Plan


class Scan:
    """What to read of a snapshot; nothing is read before one of the ``to_`` methods is called.

    Columns may be the table's and ``_file``, ``_pos``, and from format version 3 on ``_row_id`` and
    ``_last_updated_sequence_number``.

    >>> import icefloe, tempfile, pyarrow as pa
    >>> folder = tempfile.mkdtemp()
    >>> cat = icefloe.catalog("demo", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")
    >>> t = cat.create_table("db.orders", schema="id bigint, note string")
    >>> _ = t.append(pa.table({"id": [1, 2, 3], "note": ["a", "b", "c"]}))
    >>> t.scan("id > 1", columns=["note"]).to_arrow().to_pylist()
    [{'note': 'b'}, {'note': 'c'}]
    >>> t.scan("id > 99").plan().files
    0
    """

    def __init__(
        self, base: Base, snapshot: Snapshot | None, where: str | Expr | None, columns: Iterable[str] | None
    ) -> None:
        self._base = base
        self._snapshot = snapshot
        self._filter = _on_columns(parse_filter(where), base)
        self._columns = None if columns is None else tuple(columns)

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read; none for a table that was never written."""
        return self._snapshot

    def plan(self, more: Expr = ALWAYS_TRUE) -> Plan:
        """The files to read; ``more`` is a filter that came later, such as one that Spark pushes down."""
        wanted = conjunction([self._filter, more])
        store, metadata = self._base.store, self._base.metadata
        return plan_scan(store, metadata, self._snapshot, filter=wanted, columns=self._columns)

    def to_arrow(self) -> pa.Table:
        """The rows as one Arrow table."""
        return self.to_arrow_batch_reader().read_all()

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow batches."""
        plan = self.plan()
        return read_plan(self._base.store.io, plan, load_vectors(self._base.store.io, plan.tasks))

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_spark(self, spark: Any) -> Any:
        """The rows as a Spark DataFrame, read by Spark's own Parquet reader.

        Files are chosen when a query runs, with the query's own filters.
        """
        return spark_engine().read_scan(spark, self._base, self._snapshot, self._filter, self._columns)

    def count(self) -> int:
        """How many rows there are; files that match as a whole and have no delete files are not read."""
        plan = self.plan()
        whole = pc.and_(
            pc.equal(plan.tasks["match"], int(Match.ALL)), pc.equal(pc.list_value_length(plan.tasks["deletes"]), 0)
        )
        known = plan.tasks.filter(whole)
        dead = pc.fill_null(known["dv_cardinality"], 0)
        counted = pc.sum(pc.subtract(known["record_count"], dead)).as_py()
        rest = plan.with_tasks(plan.tasks.filter(pc.invert(whole)))
        reader = read_plan(self._base.store.io, rest, load_vectors(self._base.store.io, rest.tasks))
        read = sum(int(batch.num_rows) for batch in reader)
        return read if counted is None else read + int(counted)


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

"""Answers calls that change rows: DELETE by a condition, and the rows of an UPDATE, DELETE or MERGE."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.change.kept_rows import keep_rows
from icefloe.engines.spark.change.row_operations import row_operations
from icefloe.engines.spark.change.source_keys import key_filter, keys_of_join, rows_with_keys
from icefloe.engines.spark.engine import SparkEngine
from icefloe.errors import UnsupportedError
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.text.spark_sql import to_sql
from icefloe.model.metadata.snapshots import SummaryKey, summary_number
from icefloe.model.schema.schema import Schema
from icefloe.rows.replacement import DELETES, MERGES, UPDATES
from icefloe.spark_sql.conditions import filter_of
from icefloe.spark_sql.messages import CanDelete, ChangeRows, DeleteRows
from icefloe.spark_sql.options.session_names import is_case_sensitive
from icefloe.spark_sql.scans import Reads
from icefloe.spark_sql.table_loads import LoadedTable, TableLoads
from icefloe.spark_sql.writes import branch_of, frame_of, is_first_write
from icefloe.table.operation_runs import commit_found_rows

_KINDS = {"DELETE": DELETES, "UPDATE": UPDATES, "MERGE": MERGES}


class RowChangeCalls:
    """The row changes of the tables of a catalog."""

    def __init__(self, loads: TableLoads, reads: Reads) -> None:
        self._loads = loads
        self._reads = reads

    def can_delete(self, call: CanDelete) -> bool:
        """Whether a condition is a filter; otherwise Spark finds the rows."""
        try:
            _filter(self._loads.find(call.handle), call)
        except UnsupportedError:
            return False
        return True

    def delete_rows(self, call: DeleteRows) -> None:
        """Delete the rows that match a filter."""
        loaded = self._loads.find(call.handle)
        loaded.table.delete(
            _filter(loaded, call),
            branch=branch_of(loaded),
            create_branch=is_first_write(loaded),
            spark=SparkSession.active(),
        )

    def change_rows(self, call: ChangeRows, passed: Any) -> None:
        """Commit what Spark has decided about the rows of a table, which it read in the state of the handle."""
        loaded = self._loads.find(call.handle)
        with ExitStack() as until:
            schema = loaded.at.schema
            frame = _joined_rows(passed, schema, until) if call.has_join else frame_of(passed)
            operations = row_operations(
                frame,
                schema,
                table_rows=_rows(loaded),
                files=None if call.has_join else self._reads.files(call.operation),  # a join plans them later
                is_deterministic=call.is_deterministic,
            )
            found = until.enter_context(operations)
            commit_found_rows(
                loaded.table,
                loaded.at,
                found,
                SparkEngine(frame.sparkSession),
                _KINDS[call.command],
                branch=branch_of(loaded),
                read=self._reads.take(call.operation, schema),
                depends_on_kept_rows=call.depends_on_kept_rows,
            )


def _joined_rows(join: Any, schema: Schema, until: ExitStack) -> DataFrame:
    """The rows of a join with a source, which is evaluated once: its keys decide which files of the table are read."""
    keys = keys_of_join(join.join(), join.columns(), join.sourceColumns(), schema)
    table, source = frame_of(join.target()), frame_of(join.source())
    if len(keys) > 0:
        kept = keep_rows(source, until)
        source = frame_of(join.kept(kept._jdf))
        filter_ = bind(key_filter(source, keys), schema)
        source = frame_of(join.kept(kept._jdf))  # its size is known now
        table = table.where(F.expr(to_sql(filter_)))
        table = rows_with_keys(table, source, keys) if join.isOuter() else table
    return frame_of(join.rows(table._jdf, source._jdf))


def _filter(loaded: LoadedTable, call: CanDelete | DeleteRows) -> Expr:
    return filter_of(call.where, loaded.at.schema, case_sensitive=is_case_sensitive())


def _rows(loaded: LoadedTable) -> int:
    """The number of rows of a table by its summary; without one, few are assumed."""
    return summary_number(loaded.at.snapshot, SummaryKey.TOTAL_RECORDS) or 0

"""Answers calls that write rows: appends and overwrites."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from icefloe.errors import UnsupportedError
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.spark_sql.conditions import filter_of
from icefloe.spark_sql.messages import TruncateTable, WriteRows
from icefloe.spark_sql.scans import session_of
from icefloe.spark_sql.staged_tables import StagedTables
from icefloe.spark_sql.table_loads import LoadedTable, TableLoads

_BRANCH = "branch"


class WriteCalls:
    """The writes to the tables of a catalog."""

    def __init__(self, loads: TableLoads, staged: StagedTables) -> None:
        self._loads = loads
        self._staged = staged

    def write_rows(self, call: WriteRows, java_rows: Any) -> None:
        """Commit one write: Spark passes the rows with the columns of the table."""
        rows = frame_of(java_rows)
        if self._staged.is_staged(call.handle):
            self._staged.write(call.handle, rows)
            return
        loaded = self._loads.find(call.handle)
        branch = branch_of(loaded, call.options)
        if call.mode == "append":
            loaded.table.append(rows, branch=branch)
        elif call.mode == "overwrite all":
            loaded.table.overwrite(rows, overwrite_all=True, branch=branch)
        elif call.mode == "overwrite partitions":
            loaded.table.overwrite_partitions(rows, branch=branch)
        else:
            is_case_sensitive = rows.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
            where = filter_of(call.where, loaded.at.schema, case_sensitive=is_case_sensitive)
            loaded.table.overwrite(rows, where=where, branch=branch)

    def truncate_table(self, call: TruncateTable) -> None:
        """Delete all rows."""
        loaded = self._loads.find(call.handle)
        loaded.table.delete(ALWAYS_TRUE, branch=branch_of(loaded, {}))


def frame_of(java_rows: Any) -> DataFrame:
    """The DataFrame that Java passes with a call."""
    return DataFrame(java_rows, session_of(java_rows.sparkSession()))


def branch_of(loaded: LoadedTable, options: dict[str, str]) -> str:
    """The branch that a write goes to: that of the option ``branch``, or of the name of the table."""
    named = next((value for name, value in options.items() if name.lower() == _BRANCH), None)
    branch = loaded.handle.branch if named is None else named
    if branch is None:
        raise UnsupportedError("a snapshot or a tag cannot be written; write to the table or to one of its branches")
    return branch

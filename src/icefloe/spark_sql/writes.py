"""Answers calls that write rows: appends and overwrites."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icefloe.errors import InputError, UnsupportedError
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.model.metadata.properties import WAP_ENABLED
from icefloe.model.metadata.snapshots import MAIN
from icefloe.spark_sql.conditions import filter_of
from icefloe.spark_sql.messages import TruncateTable, WriteRows
from icefloe.spark_sql.options.write_options import branch_option, merges_schema, summary_properties
from icefloe.spark_sql.scans import session_of
from icefloe.spark_sql.staged_tables import StagedTables
from icefloe.spark_sql.table_loads import LoadedTable, TableLoads
from icefloe.table.table import Table
from icefloe.table.transaction import Transaction

_WAP_ID, _WAP_BRANCH = "spark.wap.id", "spark.wap.branch"


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
        summary, is_merged = summary_properties(call.options), merges_schema(call.options)
        wap_id = wap_id_of(loaded)
        is_plain = len(summary) == 0 and not is_merged
        is_to_main = loaded.handle.branch == MAIN and branch_option(call.options) is None
        if wap_id is not None and call.mode == "append" and is_plain and is_to_main:
            loaded.table.append(rows, wap_id=wap_id)
            return
        to = {"branch": branch_of(loaded, call.options), "create_branch": is_first_write(loaded, call.options)}
        if is_plain:
            _write(loaded.table, loaded, call, rows, **to)
            return
        with loaded.table.transaction(summary=summary) as work:
            _write(work, loaded, call, rows, **to, schema_mode="merge" if is_merged else "strict")

    def truncate_table(self, call: TruncateTable) -> None:
        """Delete all rows."""
        loaded = self._loads.find(call.handle)
        loaded.table.delete(ALWAYS_TRUE, branch=branch_of(loaded, {}), create_branch=is_first_write(loaded, {}))


def _write(to: Table | Transaction, loaded: LoadedTable, call: WriteRows, rows: DataFrame, **options: Any) -> None:
    if call.mode == "append":
        to.append(rows, **options)
    elif call.mode == "overwrite all":
        to.overwrite(rows, overwrite_all=True, **options)
    elif call.mode == "overwrite partitions":
        to.overwrite_partitions(rows, **options)
    else:
        is_case_sensitive = rows.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
        where = filter_of(call.where, loaded.at.schema, case_sensitive=is_case_sensitive)
        to.overwrite(rows, where=where, **options)


def wap_id_of(loaded: LoadedTable) -> str | None:
    """The id under which the session stages writes, if it has one and the table allows it."""
    settings = SparkSession.active().conf
    wap_id: str | None = settings.get(_WAP_ID, None)
    if wap_id is None or not WAP_ENABLED.of(loaded.at.metadata.properties):
        return None
    if settings.get(_WAP_BRANCH, None) is not None:
        raise InputError(f"{_WAP_ID} and {_WAP_BRANCH} are both set; unset one of them", wap_id=wap_id)
    return wap_id


def frame_of(java_rows: Any) -> DataFrame:
    """The DataFrame that Java passes with a call."""
    return DataFrame(java_rows, session_of(java_rows.sparkSession()))


def branch_of(loaded: LoadedTable, options: dict[str, str]) -> str:
    """The branch that a write goes to: that of the option ``branch``, or of the name of the table."""
    wap_id = wap_id_of(loaded)
    if wap_id is not None:
        raise UnsupportedError(
            f"{_WAP_ID} is {wap_id!r}, which stages appends without options; set {_WAP_BRANCH} for other changes"
        )
    named = branch_option(options)
    branch = loaded.handle.branch if named is None else named
    if branch is None:
        raise UnsupportedError("a snapshot or a tag cannot be written; write to the table or to one of its branches")
    return branch


def is_first_write(loaded: LoadedTable, options: dict[str, str]) -> bool:
    """Whether a write creates its branch: that of the setting ``spark.wap.branch``, which may not exist yet."""
    return branch_option(options) is None and loaded.handle.branch not in loaded.at.metadata.refs

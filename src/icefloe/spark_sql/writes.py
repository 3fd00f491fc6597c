"""Answers calls that write rows: appends and overwrites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from icefloe.errors import InputError, UnsupportedError
from icefloe.expr.filter.nodes import ALWAYS_TRUE
from icefloe.model.metadata.properties import WAP_ENABLED
from icefloe.model.metadata.snapshots import MAIN
from icefloe.spark_sql.conditions import filter_of
from icefloe.spark_sql.messages import TruncateTable, WriteRows
from icefloe.spark_sql.options.known_options import branch_by_option
from icefloe.spark_sql.options.session_names import is_case_sensitive
from icefloe.spark_sql.options.write_options import WriteOptions, write_options
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
            self._staged.write(call.handle, rows, call.options)
            return
        loaded = self._loads.find(call.handle)
        options = options_of(loaded, call.options, rows, overwrites=call.mode != "append")
        wap_id = wap_id_of(loaded)
        is_to_main = loaded.handle.branch == MAIN and options.branch is None
        if wap_id is not None and call.mode == "append" and options.is_plain and is_to_main:
            loaded.table.append(rows, wap_id=wap_id)
            return
        to = {"branch": branch_of(loaded, options.branch), "create_branch": is_first_write(loaded, options.branch)}
        table = loaded.table._writing(options.settings)
        mode = "overwrite partitions" if options.is_dynamic and call.mode == "overwrite all" else call.mode
        if not options.merges_schema:
            _write(table, loaded, call, mode, rows, **to)
            return
        with table.transaction() as work:
            _write(work, loaded, call, mode, rows, **to, schema_mode="merge")

    def truncate_table(self, call: TruncateTable) -> None:
        """Delete all rows."""
        loaded = self._loads.find(call.handle)
        loaded.table.delete(ALWAYS_TRUE, branch=branch_of(loaded), create_branch=is_first_write(loaded))


def _write(
    to: Table | Transaction, loaded: LoadedTable, call: WriteRows, mode: str, rows: DataFrame, **options: Any
) -> None:
    if mode == "append":
        to.append(rows, **options)
    elif mode == "overwrite all":
        to.overwrite(rows, overwrite_all=True, **options)
    elif mode == "overwrite partitions":
        to.overwrite_partitions(rows, **options)
    else:
        where = filter_of(call.where, loaded.at.schema, case_sensitive=is_case_sensitive())
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


def options_of(
    loaded: LoadedTable,
    options: Mapping[str, str],
    rows: DataFrame,
    *,
    overwrites: bool,
    more: tuple[str, ...] = (),
) -> WriteOptions:
    """The options of a write of rows to a table, with the settings of the session of the rows."""
    metadata = loaded.at.metadata
    return write_options(
        options,
        metadata.properties,
        lambda name: rows.sparkSession.conf.get(name, None),
        specs=tuple(spec.spec_id for spec in metadata.specs),
        read=loaded.handle.snapshot_id,
        overwrites=overwrites,
        more=more,
    )


def branch_of(loaded: LoadedTable, named: str | None = None) -> str:
    """The branch that a write goes to: the one that the option ``branch`` names, or that of the name of the table."""
    wap_id = wap_id_of(loaded)
    if wap_id is not None:
        raise UnsupportedError(
            f"{_WAP_ID} is {wap_id!r}, which stages appends without options; set {_WAP_BRANCH} for other changes"
        )
    branch = branch_by_option(loaded.handle.branch, named, is_selected=loaded.handle.is_selected)
    if branch is None:
        raise UnsupportedError("a snapshot or a tag cannot be written; write to the table or to one of its branches")
    return branch


def is_first_write(loaded: LoadedTable, named: str | None = None) -> bool:
    """Whether a write creates its branch: that of the setting ``spark.wap.branch``, which may not exist yet."""
    return named is None and loaded.handle.branch not in loaded.at.metadata.refs

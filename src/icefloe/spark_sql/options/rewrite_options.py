"""The arguments of CALL for rewriting data files and delete files, with the names of Apache Iceberg."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from icefloe.errors import InputError
from icefloe.spark_sql.options.session_names import columns, filter_of_text, terms
from icefloe.table.table import Table

Row = tuple[object, ...]

DATA_FILES_RESULT = (
    "rewritten_data_files_count int, added_data_files_count int, rewritten_bytes_count bigint,"
    " failed_data_files_count int, removed_delete_files_count int"
)
DELETE_FILES_RESULT = (
    "rewritten_delete_files_count int, added_delete_files_count int, rewritten_bytes_count bigint,"
    " added_bytes_count bigint"
)
_ZORDER = re.compile(r"\s*zorder\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
_COMMA = re.compile(r",(?![^(]*\))")  # outside parentheses
_ALL = "rewrite-all"


def rewrite_data_files(table: Table, arguments: Mapping[str, Any]) -> list[Row]:
    """Compact a table on Spark; one row with counts."""
    strategy, sort_by, zorder_by = _order(arguments.get("strategy"), arguments.get("sort_order"))
    schema = table.refresh().schema
    plan = table.compact(
        filter_of_text(arguments.get("where"), schema),
        strategy=strategy,
        sort_by=None if sort_by is None else terms(sort_by, schema),
        zorder_by=None if zorder_by is None else columns(zorder_by, schema),
        options=arguments.get("options"),
        branch=arguments.get("branch"),
        spark=SparkSession.active(),
    )
    result = plan.execute()
    failed = sum(group.files_before for group in result.failed)
    return [(result.files_removed, result.files_added, result.bytes_removed, failed, result.delete_files_removed)]


def _order(strategy: str | None, sort_order: str | None) -> tuple[str, list[str] | None, list[str] | None]:
    """The strategy, the sort keys and the columns of a z-order."""
    chosen = ("binpack" if sort_order is None else "sort") if strategy is None else strategy.lower()
    if sort_order is None:
        return chosen, None, None
    if chosen != "sort":
        raise InputError(f"rewrite_data_files: sort_order needs strategy 'sort', not {strategy!r}")
    zorder = _ZORDER.fullmatch(sort_order)
    if zorder is not None:
        return "zorder", None, [name.strip() for name in zorder[1].split(",")]
    return chosen, [key.strip() for key in _COMMA.split(sort_order)], None


def rewrite_delete_files(table: Table, arguments: Mapping[str, Any]) -> list[Row]:
    """Convert the deletes of a table on Spark; one row with counts."""
    unknown = [name for name in arguments.get("options", {}) if name != _ALL]
    if len(unknown) > 0:
        raise InputError(
            f"rewrite_position_delete_files: there is no option {unknown[0]!r}; all delete files are converted that can"
            " be",
            option=unknown[0],
        )
    where = filter_of_text(arguments.get("where"), table.refresh().schema)
    result = table.rewrite_deletes(where, spark=SparkSession.active()).execute()
    removed = result.equality_files_removed + result.position_files_removed + result.vectors_removed
    added = result.vectors_added + result.position_files_added
    return [(removed, added, result.bytes_removed, result.bytes_added)]

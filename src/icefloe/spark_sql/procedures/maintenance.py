"""Procedures of CALL that rewrite files, delete those that are not needed, and compute statistics, on Spark."""

from __future__ import annotations

import re
from datetime import datetime

from pyspark.sql import SparkSession

from icefloe.errors import InputError, UnsupportedError
from icefloe.spark_sql.options import session_names
from icefloe.spark_sql.options.session_names import filter_of_text, terms
from icefloe.spark_sql.procedures.procedure import Int, Row, procedure
from icefloe.table.table import Table

_ZORDER = re.compile(r"\s*zorder\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
_COMMA = re.compile(r",(?![^(]*\))")  # outside parentheses
_ALL = "rewrite-all"


@procedure(
    "rewritten_data_files_count int, added_data_files_count int, rewritten_bytes_count bigint,"
    " failed_data_files_count int, removed_delete_files_count int"
)
def rewrite_data_files(
    table: Table,
    strategy: str | None = None,
    sort_order: str | None = None,
    options: dict[str, str] | None = None,
    where: str | None = None,
    branch: str | None = None,
) -> list[Row]:
    """Write small data files, large ones and those with many deleted rows again."""
    chosen, sort_by, zorder_by = _order(strategy, sort_order)
    schema = table.refresh().schema
    plan = table.compact(
        filter_of_text(where, schema),
        strategy=chosen,
        sort_by=None if sort_by is None else terms(sort_by, schema),
        zorder_by=None if zorder_by is None else session_names.columns(zorder_by, schema),
        options=options,
        branch=branch,
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


@procedure(
    "rewritten_delete_files_count int, added_delete_files_count int, rewritten_bytes_count bigint,"
    " added_bytes_count bigint"
)
def rewrite_position_delete_files(
    table: Table, options: dict[str, str] | None = None, where: str | None = None
) -> list[Row]:
    """Write delete files again, as deletion vectors if the table may have them."""
    unknown = [name for name in options or {} if name != _ALL]
    if len(unknown) > 0:
        raise InputError(
            f"rewrite_position_delete_files: there is no option {unknown[0]!r}; all delete files are converted that can"
            " be",
            option=unknown[0],
        )
    condition = filter_of_text(where, table.refresh().schema)
    result = table.rewrite_deletes(condition, spark=SparkSession.active()).execute()
    removed = result.equality_files_removed + result.position_files_removed + result.vectors_removed
    added = result.vectors_added + result.position_files_added
    return [(removed, added, result.bytes_removed, result.bytes_added)]


@procedure(
    "deleted_data_files_count bigint, deleted_position_delete_files_count bigint,"
    " deleted_equality_delete_files_count bigint, deleted_manifest_files_count bigint,"
    " deleted_manifest_lists_count bigint, deleted_statistics_files_count bigint"
)
def expire_snapshots(
    table: Table,
    older_than: datetime | None = None,
    retain_last: Int | None = None,
    max_concurrent_deletes: Int | None = None,
    stream_results: bool = False,
    snapshot_ids: list[int] | None = None,
    clean_expired_metadata: bool = False,
    dry_run: bool = False,
) -> list[Row]:
    """Expire snapshots and delete the files that only they need.

    ``max_concurrent_deletes`` and ``stream_results`` have no effect.
    """
    if clean_expired_metadata:
        raise UnsupportedError(
            "expire_snapshots: clean_expired_metadata: schemas and partition specs are kept; leave it out"
        )
    plan = table.expire(
        older_than=older_than, retain_last=retain_last, snapshots=snapshot_ids, spark=SparkSession.active()
    )
    return [plan.counts if dry_run else plan.execute().counts]


@procedure("orphan_file_location string")
def remove_orphan_files(
    table: Table,
    older_than: datetime | None = None,
    location: str | None = None,
    dry_run: bool = False,
    max_concurrent_deletes: Int | None = None,
    max_share: float | None = None,
) -> list[Row]:
    """Delete files in the table's location that no metadata references.

    ``max_concurrent_deletes`` has no effect.
    """
    share = 0.2 if max_share is None else max_share
    plan = table.remove_orphans(older_than=older_than, location=location, spark=SparkSession.active(), max_share=share)
    if not dry_run:
        plan.execute()
    return [(location,) for location in plan.files["location"].to_pylist()]


@procedure("statistics_file string")
def compute_table_stats(table: Table, snapshot_id: int | None = None, columns: list[str] | None = None) -> list[Row]:
    """Count the distinct values of columns."""
    named = None if columns is None else session_names.columns(columns, table.refresh().schema)
    result = table.analyze(named, snapshot=snapshot_id, spark=SparkSession.active())
    return [] if result.statistics_file is None else [(result.statistics_file,)]


@procedure("partition_statistics_file string")
def compute_partition_stats(table: Table, snapshot_id: int | None = None) -> list[Row]:
    """Sum up the files of each partition."""
    result = table.analyze_partitions(snapshot=snapshot_id)
    return [] if result.partition_statistics_file is None else [(result.partition_statistics_file,)]

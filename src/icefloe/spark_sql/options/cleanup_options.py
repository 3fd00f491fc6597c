"""``CALL demo.system.expire_snapshots`` and ``remove_orphan_files``, with the arguments and columns of Apache Iceberg.

Spark finds the files. ``max_concurrent_deletes`` and ``stream_results`` are accepted without effect. A dry run plans
and deletes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from icefloe.errors import UnsupportedError
from icefloe.table.table import Table

Row = tuple[object, ...]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def expire_snapshots(table: Table, arguments: Mapping[str, Any]) -> list[Row]:
    """Expire snapshots and delete their files: the numbers of deleted files by kind."""
    if _flag(arguments, "clean_expired_metadata"):
        raise UnsupportedError(
            "expire_snapshots: clean_expired_metadata: schemas and partition specs are kept; leave it out"
        )
    ids = arguments.get("snapshot_ids")
    retain = arguments.get("retain_last")
    plan = table.expire(
        older_than=_time(arguments),
        retain_last=None if retain is None else int(retain),
        snapshots=None if ids is None else [int(id_) for id_ in ids],
        spark=SparkSession.active(),
    )
    if _flag(arguments, "dry_run"):
        counts = plan.counts
    else:
        counts = plan.execute().counts
    return [counts]


def remove_orphan_files(table: Table, arguments: Mapping[str, Any]) -> list[Row]:
    """Delete orphan files: their locations."""
    share = arguments.get("max_share")
    plan = table.remove_orphans(
        older_than=_time(arguments),
        location=arguments.get("location"),
        spark=SparkSession.active(),
        max_share=0.2 if share is None else float(share),
    )
    if not _flag(arguments, "dry_run"):
        plan.execute()
    return [(location,) for location in plan.files["location"].to_pylist()]


def _time(arguments: Mapping[str, Any]) -> datetime | None:
    given = arguments.get("older_than")
    return None if given is None else _EPOCH + timedelta(microseconds=int(given))


def _flag(arguments: Mapping[str, Any], name: str) -> bool:
    return str(arguments.get(name, "false")).lower() == "true"

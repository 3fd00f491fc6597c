"""Procedures of CALL about files, manifests and whole tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from icefloe.commit.result import CommitResult
from icefloe.errors import InputError
from icefloe.model.metadata.snapshots import Snapshot, SummaryKey
from icefloe.spark_sql.options.session_names import is_case_sensitive
from icefloe.spark_sql.procedures.shape import Arguments, Row
from icefloe.table.catalog import Catalog
from icefloe.table.table import Table

_SOURCE = re.compile(r"`?(parquet|orc|avro)`?\.`(.+)`", re.IGNORECASE)


def rewrite_manifests(table: Table, arguments: Arguments) -> list[Row]:
    """Rewrite the manifests, unless there is a single one of about the target size; how many went and how many came."""
    sort_by, before = arguments.get("sort_by"), table.refresh().at().snapshot
    plan = table.rewrite_manifests(None if sort_by is None else _partition_fields(table, sort_by))
    if before is None or (_manifests(before) == 1 and plan.large == 0):
        return [(0, 0)]
    made = _made(table, plan.execute())
    counts = (_count(made, SummaryKey.MANIFESTS_REPLACED), _count(made, SummaryKey.MANIFESTS_CREATED))
    return [(0, 0) if made is None else counts]


def _partition_fields(table: Table, names: Sequence[str]) -> list[str]:
    """The names of partition fields as the table spells them, by the case rule of the session."""
    if is_case_sensitive():
        return list(names)
    known = {field.name.lower(): field.name for spec in table.metadata.specs for field in spec.fields}
    return [known.get(name.lower(), name) for name in names]


def _manifests(snapshot: Snapshot) -> int | None:
    """The number of manifests of a snapshot, if its summary has it; the root of version 4 is one."""
    created, kept = (_count(snapshot, key) for key in (SummaryKey.MANIFESTS_CREATED, SummaryKey.MANIFESTS_KEPT))
    return None if created is None or kept is None else created + kept


def _made(table: Table, result: CommitResult) -> Snapshot | None:
    """The snapshot that a commit made."""
    return None if result.snapshot_id is None else table.refresh().metadata.snapshots.find(result.snapshot_id)


def _count(snapshot: Snapshot | None, key: SummaryKey) -> int | None:
    """A count in the summary of a snapshot, if it is there."""
    text = "" if snapshot is None else snapshot.summary.get(key, "")
    return int(text) if text.isdecimal() else None


def add_files(table: Table, arguments: Arguments) -> list[Row]:
    """Add the data files of a folder; the row has the numbers of files and changed partitions."""
    source = arguments["source_table"]
    found = _SOURCE.fullmatch(source)
    if found is None:
        raise InputError(f"add_files: source_table {source!r} is no folder, such as parquet.`file:///data/orders`")
    is_partitioned = table.spec.is_partitioned
    result = table.add_files(found[2], partition="hive" if is_partitioned else None, file_format=found[1].lower())
    return [(result.files_added, _count(_made(table, result), SummaryKey.CHANGED_PARTITION_COUNT))]


def register_table(catalog: Catalog, arguments: Arguments) -> list[Row]:
    """Add a table to the catalog by its metadata file; the row has its snapshot, rows and data files."""
    snapshot = catalog.register_table(arguments["table"], arguments["metadata_file"]).at().snapshot
    if snapshot is None:
        return [(None, None, None)]
    counts = (_count(snapshot, key) for key in (SummaryKey.TOTAL_RECORDS, SummaryKey.TOTAL_DATA_FILES))
    return [(snapshot.snapshot_id, *counts)]

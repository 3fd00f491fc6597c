"""Procedures of CALL that add files and tables, and rewrite manifests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from icefloe.catalogs.names import Identifier
from icefloe.commit.result import CommitResult
from icefloe.errors import InputError
from icefloe.model.metadata.snapshots import Snapshot, SummaryKey
from icefloe.spark_sql.options.session_names import is_case_sensitive
from icefloe.spark_sql.procedures.procedure import Row, procedure
from icefloe.table.catalog import Catalog
from icefloe.table.table import Table

_SOURCE = re.compile(r"`?(parquet|orc|avro)`?\.`(.+)`", re.IGNORECASE)


@procedure("rewritten_manifests_count int, added_manifests_count int")
def rewrite_manifests(table: Table, use_caching: bool = False, sort_by: list[str] | None = None) -> list[Row]:
    """Write the manifests again, sorted by partition.

    A single manifest of about the target size is kept. ``use_caching`` has no effect.
    """
    before = table.refresh().at().snapshot
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


@procedure("added_files_count bigint, changed_partition_count bigint")
def add_files(table: Table, source_table: str) -> list[Row]:
    """Add data files of a folder without copying them."""
    found = _SOURCE.fullmatch(source_table)
    if found is None:
        raise InputError(
            f"add_files: source_table {source_table!r} is no folder, such as parquet.`file:///data/orders`"
        )
    is_partitioned = table.spec.is_partitioned
    result = table.add_files(found[2], partition="hive" if is_partitioned else None, file_format=found[1].lower())
    return [(result.files_added, _count(_made(table, result), SummaryKey.CHANGED_PARTITION_COUNT))]


@procedure("current_snapshot_id bigint, total_records_count bigint, total_data_files_count bigint")
def register_table(catalog: Catalog, table: Identifier, metadata_file: str) -> list[Row]:
    """Add an existing table to the catalog by its metadata file."""
    snapshot = catalog.register_table(table, metadata_file).at().snapshot
    if snapshot is None:
        return [(None, None, None)]
    counts = (_count(snapshot, key) for key in (SummaryKey.TOTAL_RECORDS, SummaryKey.TOTAL_DATA_FILES))
    return [(snapshot.snapshot_id, *counts)]

"""The summary of a snapshot, with Iceberg's keys (spec: Snapshots)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import MANIFESTS, ContentType, Measure, choose, count, live, of_type, stat, stat_keys, total
from icefloe.model.metadata.snapshots import Operation, Snapshot, SummaryKey
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import Root

TOTALS = {
    SummaryKey.TOTAL_DATA_FILES: (SummaryKey.ADDED_DATA_FILES, SummaryKey.DELETED_DATA_FILES),
    SummaryKey.TOTAL_RECORDS: (SummaryKey.ADDED_RECORDS, SummaryKey.DELETED_RECORDS),
    SummaryKey.TOTAL_FILES_SIZE: (SummaryKey.ADDED_FILES_SIZE, SummaryKey.REMOVED_FILES_SIZE),
    SummaryKey.TOTAL_DELETE_FILES: (SummaryKey.ADDED_DELETE_FILES, SummaryKey.REMOVED_DELETE_FILES),
    SummaryKey.TOTAL_POSITION_DELETES: (SummaryKey.ADDED_POSITION_DELETES, SummaryKey.REMOVED_POSITION_DELETES),
    SummaryKey.TOTAL_EQUALITY_DELETES: (SummaryKey.ADDED_EQUALITY_DELETES, SummaryKey.REMOVED_EQUALITY_DELETES),
}
# Stated even if zero, as other engines do. The files of V4 leave them out (codecs/json/snapshots.py).
ALWAYS = frozenset((*TOTALS, SummaryKey.MANIFESTS_CREATED, SummaryKey.MANIFESTS_KEPT, SummaryKey.MANIFESTS_REPLACED))


def summarize(
    operation: Operation,
    changes: FileChanges,
    parent: Snapshot | None,
    extra: Mapping[str, str],
    manifests: Mapping[SummaryKey, int],
) -> dict[str, str]:
    """The counts of a snapshot's changes, and the totals after them."""
    counts = {**_counts(changes), **manifests}
    before: Mapping[str, str] = {} if parent is None else parent.summary
    for key, (plus, minus) in TOTALS.items():
        if parent is None or before.get(key, "").isdigit():
            after = int(before.get(key, "0")) + counts.get(plus, 0) - counts.get(minus, 0)
            if after >= 0:  # else the parent's total was wrong, so no total is written
                counts[key] = after
    written = {str(key): str(value) for key, value in counts.items() if value != 0 or key in ALWAYS}
    return {str(SummaryKey.OPERATION): str(operation), **extra, **written}


def manifest_counts(before: Root, after: pa.Table, snapshot_id: int, *, roots: int) -> dict[SummaryKey, int]:
    """How many manifests a snapshot created, kept and replaced; ``roots`` is 1 if the root counts as a manifest."""
    old = count(pc.and_(live(before.entries), of_type(before.entries, *MANIFESTS)))
    new = of_type(after, *MANIFESTS)
    created = count(pc.and_(new, pc.fill_null(pc.equal(after["snapshot_id"], snapshot_id), False)))
    kept = count(new) - created
    return {
        SummaryKey.MANIFESTS_CREATED: created + roots,
        SummaryKey.MANIFESTS_KEPT: kept,
        SummaryKey.MANIFESTS_REPLACED: old - kept + (roots if before.entries.num_rows > 0 else 0),
    }


def _counts(changes: FileChanges) -> dict[SummaryKey, int]:
    added = changes.added
    data = choose(added, of_type(added, ContentType.DATA))
    old_vectors = changes.with_old_vectors
    added_deletes, removed_deletes = _deletes(added), _deletes(changes.removed_deletes)
    return {
        SummaryKey.ADDED_DATA_FILES: data.num_rows,
        SummaryKey.ADDED_RECORDS: total(data, "record_count"),
        SummaryKey.ADDED_FILES_SIZE: total(data, "file_size_in_bytes") + added_deletes.size,
        SummaryKey.DELETED_DATA_FILES: changes.removed.num_rows,
        SummaryKey.DELETED_RECORDS: total(changes.removed, "record_count"),
        SummaryKey.REMOVED_FILES_SIZE: total(changes.removed, "file_size_in_bytes")
        + total(old_vectors, "dv_size_in_bytes")
        + removed_deletes.size,
        SummaryKey.ADDED_DELETE_FILES: added_deletes.files,
        SummaryKey.ADDED_DVS: added_deletes.vectors,
        SummaryKey.ADDED_POSITION_DELETE_FILES: added_deletes.position_files,
        SummaryKey.ADDED_EQUALITY_DELETE_FILES: added_deletes.equality_files,
        SummaryKey.ADDED_POSITION_DELETES: added_deletes.positions,
        SummaryKey.ADDED_EQUALITY_DELETES: added_deletes.equalities,
        SummaryKey.REMOVED_DELETE_FILES: old_vectors.num_rows + removed_deletes.files,
        SummaryKey.REMOVED_DVS: old_vectors.num_rows + removed_deletes.vectors,
        SummaryKey.REMOVED_POSITION_DELETE_FILES: removed_deletes.position_files,
        SummaryKey.REMOVED_EQUALITY_DELETE_FILES: removed_deletes.equality_files,
        SummaryKey.REMOVED_POSITION_DELETES: total(old_vectors, "dv_cardinality") + removed_deletes.positions,
        SummaryKey.REMOVED_EQUALITY_DELETES: removed_deletes.equalities,
        SummaryKey.CHANGED_PARTITION_COUNT: _partitions(changes),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deletes:
    """Counts of delete entries."""

    vectors: int
    position_files: int
    equality_files: int
    positions: int
    equalities: int
    size: int

    @property
    def files(self) -> int:
        return self.vectors + self.position_files + self.equality_files


_NO_DELETES = _Deletes(vectors=0, position_files=0, equality_files=0, positions=0, equalities=0, size=0)


def _deletes(rows: pa.Table) -> _Deletes:
    if rows.num_rows == 0 or pc.max(rows["content_type"]).as_py() == int(ContentType.DATA):
        return _NO_DELETES
    by_position = choose(rows, of_type(rows, ContentType.POSITION_DELETES))
    by_value = choose(rows, of_type(rows, ContentType.EQUALITY_DELETES))
    vectors = by_position.filter(pc.is_valid(by_position["dv_offset"]))
    files = by_position.filter(pc.is_null(by_position["dv_offset"]))
    return _Deletes(
        vectors=vectors.num_rows,
        position_files=files.num_rows,
        equality_files=by_value.num_rows,
        positions=total(by_position, "record_count"),
        equalities=total(by_value, "record_count"),
        # Deletion vectors share a file, so each counts with the size of its blob.
        size=total(vectors, "dv_size_in_bytes")
        + total(files, "file_size_in_bytes")
        + total(by_value, "file_size_in_bytes"),
    )


def _partitions(changes: FileChanges) -> int:
    """How many distinct partitions have added or removed files."""
    every = (changes.added, changes.removed, changes.revectored, changes.removed_deletes)
    tables = [table for table in every if table.num_rows > 0]
    if len(tables) == 0:
        return 0
    keys = dict.fromkeys(stat(Measure.LOWER, k) for t in tables for k in stat_keys(t) if k.is_partition)
    parts = [t.select(["partition_spec_id", *(k for k in keys if k in t.column_names)]) for t in tables]
    rows = pa.concat_tables(parts, promote_options="permissive")
    if len(keys) == 0 or rows.num_rows == 1:
        return int(pc.count_distinct(rows["partition_spec_id"]).as_py())
    return int(rows.group_by(["partition_spec_id", *keys]).aggregate([]).num_rows)

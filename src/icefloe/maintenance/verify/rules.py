"""What must hold of a table: the rules of ``verify``, how severe it is to break one, and the next step.

``docs/verifying.md`` lists the rules with the invariants that they cover.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """What a broken rule means for readers and writers."""

    ERROR = "error"  # rows are lost, wrong, or may be read wrongly
    WARNING = "warning"  # rows are right; figures, speed or history are not
    INFO = "info"  # a report, not a fault


class Rule(StrEnum):
    """What must hold of a sound table."""

    READABLE = "readable"  # every metadata file, root, manifest, data file and delete file decodes
    FILES = "files"  # every file that is named exists, and is as long as it is said to be
    TABLE_UUID = "table-uuid"  # all metadata files of the log are of this table
    LOCATIONS = "locations"  # V4 stores locations under the table relative to it, earlier versions none
    SCHEMAS = "schemas"  # ids of columns are not reserved, identifier fields are never null
    HISTORY = "history"  # parents, logs, refs and numbers of snapshots agree
    SUMMARY = "summary"  # the operation and figures of a snapshot's summary are those of its tree
    CHANGES = "changes"  # the changes that a tree records are those from its parent
    CARRIED = "carried-over"  # files keep their numbers from snapshot to snapshot
    MANIFEST_COUNTS = "manifest-counts"
    MANIFEST_STATISTICS = "manifest-statistics"  # may be missing, never too narrow
    MANIFEST_VECTORS = "manifest-vectors"  # they hide rows that were live
    STATUS = "status"  # only what a snapshot did itself is ADDED or DELETED in its tree
    SEQUENCE_NUMBERS = "sequence-numbers"
    ROW_IDS = "row-ids"  # unique per row, and below the table's next-row-id
    UNIQUE = "unique-files"
    DELETION_VECTORS = "deletion-vectors"  # one for a data file, which is live, and as it says
    POSITION_DELETES = "position-deletes"  # they name rows of live files of their partition; v3 adds no new ones
    EQUALITY_DELETES = "equality-deletes"
    DANGLING_DELETES = "dangling-deletes"  # every delete file applies to a live data file
    AFFINITY = "affinity"
    RECORD_COUNTS = "record-counts"  # data files have as many rows as their entries say
    VALUE_COUNTS = "value-counts"  # values, nulls and NaNs of columns, as entries say
    BOUNDS = "bounds"  # recorded bounds contain every value
    PARTITIONS = "partitions"  # partition tuples are whole, and the transforms of the rows
    SORT_ORDER = "sort-order"  # entries state an order of the table, and rows are in it
    UNREFERENCED = "unreferenced"  # no file in the table's folder is without a reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """How severe a finding of a rule is, and the next step, unless the finding itself knows better."""

    severity: Severity = Severity.ERROR
    remedy: str


_REWRITE = "t.rewrite_manifests() writes the manifests again, with figures from their entries"
_COMPACT = "t.compact(where=...) for the file's partition writes its rows to new files, with new entries"
_ROLLBACK = "t.rollback(snapshot=...) to an earlier snapshot that t.verify() finds sound"

CONSEQUENCES: Mapping[Rule, Consequence] = {
    Rule.READABLE: Consequence(
        remedy=f"restore the file from a backup; else {_ROLLBACK}; if only old snapshots need the file, "
        "t.expire(snapshots=[...])"
    ),
    Rule.FILES: Consequence(remedy=f"restore the file from a backup; else {_ROLLBACK}"),
    Rule.TABLE_UUID: Consequence(
        remedy="another table was written to this folder: cat.register_table(name, metadata_location) with the last "
        "metadata file of the right table"
    ),
    Rule.LOCATIONS: Consequence(
        severity=Severity.WARNING,
        remedy="the table cannot be moved as it is; t.rewrite_manifests() writes roots and manifests again",
    ),
    Rule.HISTORY: Consequence(
        remedy="t.rollback(snapshot=...) sets main to a snapshot that the table has; t.remove_ref(name) removes a "
        "branch or tag that names none"
    ),
    Rule.SCHEMAS: Consequence(
        remedy="other programs may not open the table: with t.update_schema() as s: s.set_identifiers(...) names other "
        "columns, and s.drop_column(...) drops one with a reserved id"
    ),
    Rule.SUMMARY: Consequence(
        severity=Severity.WARNING,
        remedy="no rows are wrong; t.expire(snapshots=[...]) removes the snapshot when it is not needed any more",
    ),
    Rule.CHANGES: Consequence(
        remedy="read the whole table instead of its changes over this snapshot; t.expire(snapshots=[...]) removes it"
    ),
    Rule.CARRIED: Consequence(remedy=_ROLLBACK),
    Rule.MANIFEST_COUNTS: Consequence(remedy=_REWRITE),
    Rule.MANIFEST_STATISTICS: Consequence(remedy=_REWRITE),
    Rule.MANIFEST_VECTORS: Consequence(remedy=_REWRITE),
    Rule.STATUS: Consequence(remedy=_REWRITE),
    Rule.SEQUENCE_NUMBERS: Consequence(
        remedy=f"deletes may apply to the wrong files: {_ROLLBACK}; else t.compact() writes rows to new files"
    ),
    Rule.ROW_IDS: Consequence(
        remedy=f"{_ROLLBACK}; else t.overwrite(rows, where=...) gives new ids to the rows of one of the files"
    ),
    Rule.UNIQUE: Consequence(
        remedy=f"rows are read twice: {_ROLLBACK}; else t.remove_files([...]) and append the rows again"
    ),
    Rule.DELETION_VECTORS: Consequence(remedy=f"{_ROLLBACK}; t.rewrite_deletes() writes vectors that can be read"),
    Rule.POSITION_DELETES: Consequence(remedy=f"{_ROLLBACK}; t.rewrite_deletes() writes deletes that can be read"),
    Rule.EQUALITY_DELETES: Consequence(remedy=f"{_ROLLBACK}; t.rewrite_deletes() writes deletes that can be read"),
    Rule.DANGLING_DELETES: Consequence(
        severity=Severity.INFO, remedy="t.rewrite_deletes() removes deletes that apply to no file"
    ),
    Rule.AFFINITY: Consequence(remedy=_REWRITE),
    Rule.RECORD_COUNTS: Consequence(remedy=_COMPACT),
    Rule.VALUE_COUNTS: Consequence(remedy=_COMPACT),
    Rule.BOUNDS: Consequence(remedy=f"filters may skip the file although rows match: {_COMPACT}"),
    Rule.PARTITIONS: Consequence(remedy=f"filters may skip the file although rows match: {_COMPACT}"),
    Rule.SORT_ORDER: Consequence(
        severity=Severity.WARNING, remedy='t.compact(where=..., strategy="sort") sorts the rows of the partition'
    ),
    Rule.UNREFERENCED: Consequence(
        severity=Severity.INFO, remedy="t.remove_orphans() shows them; plan.execute() deletes them"
    ),
}

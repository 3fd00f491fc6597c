"""What must hold of a table, and what a check reports: the rules of ``verify`` and its findings (spec: Snapshots).

``docs/verifying.md`` lists the rules with the invariants that they cover. Rules look at whole columns: a mask says
which rows break one, and the first few of those become findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import IcefloeError
from icefloe.model.text.figures import Figures


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

# What damaged files may raise in a check that expects whole columns.
_UNEXPECTED = (IcefloeError, pa.ArrowException, ValueError, TypeError, LookupError, ArithmeticError)
SHOWN = 20  # rows of one file that break one rule; the last finding counts the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Figures):
    """A rule that is broken: in which file, at which of its rows if it has any, how, and what to do next.

    >>> print(finding(rule=Rule.FILES, location="memory://wh/t/metadata/root.parquet", row=3, message="is missing"))
    error: files: memory://wh/t/metadata/root.parquet: row 3: is missing
    """

    rule: Rule
    severity: Severity
    location: str
    row: int | None
    message: str
    remedy: str

    def __str__(self) -> str:
        row = "" if self.row is None else f" row {self.row}:"
        return f"{self.severity}: {self.rule}: {self.location}:{row} {self.message}"


def finding(
    *,
    rule: Rule,
    location: str,
    message: str,
    row: int | None = None,
    severity: Severity | None = None,
    remedy: str | None = None,
) -> Finding:
    """A finding; its severity and remedy are those of its rule, unless they are given."""
    usual = CONSEQUENCES[rule]
    return Finding(
        rule=rule,
        severity=usual.severity if severity is None else severity,
        location=location,
        row=row,
        message=message.removeprefix(f"{location}: "),
        remedy=usual.remedy if remedy is None else remedy,
    )


def broken(
    rule: Rule,
    location: str,
    wrong: pa.Array | pa.ChunkedArray,
    message: str,
    rows: pa.ChunkedArray | None = None,
) -> Iterator[Finding]:
    """Findings for the rows of a mask, null meaning no; ``rows`` are their positions in the file if not in order."""
    places = np.flatnonzero(np.asarray(pc.fill_null(wrong, False)))
    for place in places[:SHOWN].tolist():
        row = place if rows is None else rows[place].as_py()
        yield finding(rule=rule, location=location, row=row, message=message)
    if len(places) > SHOWN:
        more = f"{message}; {len(places) - SHOWN} more rows like this"
        yield finding(rule=rule, location=location, message=more)


def problem_of(error: BaseException) -> str:
    """The text of an error for a finding. Too little memory is no finding but ends the check: the file may be sound."""
    if isinstance(error, MemoryError):
        raise error
    return str(error)


def guarded(findings: Iterator[Finding], where: str) -> Iterator[Finding]:
    """The findings; an error that ends them is a finding itself."""
    try:
        yield from findings
    except _UNEXPECTED as error:
        message = f"the check could not go on: {type(error).__name__}: {problem_of(error)}"
        yield finding(rule=Rule.READABLE, location=where, message=message)

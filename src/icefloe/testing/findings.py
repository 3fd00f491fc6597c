"""What a check of a table reports: findings as values, and the rules that they break (spec: Snapshots).

Rules look at whole columns: a mask says which rows break one, and the first few of those become findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SHOWN = 20  # rows of one file that break one rule; the last finding counts the others


class Rule(StrEnum):
    """What must hold of a table whose metadata is whole."""

    READABLE = "readable"  # every root, manifest and deletion vector decodes
    FILES = "files"  # every file that is named exists, and is as long as it is said to be
    LOCATIONS = "locations"  # V4 stores locations under the table relative to it, earlier versions none
    HISTORY = "history"  # parents, logs, refs and numbers of snapshots agree
    SUMMARY = "summary"  # what a snapshot says of itself is so
    CHANGES = "changes"  # what a tree says its snapshot changed is what changed
    CARRIED = "carried-over"  # files keep their numbers from snapshot to snapshot
    MANIFEST_COUNTS = "manifest-counts"
    MANIFEST_STATISTICS = "manifest-statistics"  # may be missing, never too narrow
    MANIFEST_VECTORS = "manifest-vectors"  # they hide rows that were live
    STATUS = "status"  # only what a snapshot did itself is ADDED or DELETED in its tree
    SEQUENCE_NUMBERS = "sequence-numbers"
    ROW_IDS = "row-ids"  # unique per row, and below the table's next-row-id
    UNIQUE = "unique-files"
    DELETION_VECTORS = "deletion-vectors"  # one for a data file, which is live, and as it says
    POSITION_DELETES = "position-deletes"  # their files name rows that the data files have
    EQUALITY_DELETES = "equality-deletes"
    AFFINITY = "affinity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule that is broken: in which file, at which of its rows if it has any, and how.

    >>> print(Finding(rule=Rule.FILES, location="memory://wh/t/metadata/root.parquet", row=3, message="is missing"))
    files: memory://wh/t/metadata/root.parquet: row 3: is missing
    """

    rule: Rule
    location: str
    row: int | None = None
    message: str

    def __str__(self) -> str:
        row = "" if self.row is None else f" row {self.row}:"
        return f"{self.rule}: {self.location}:{row} {self.message}"


def broken(
    rule: Rule, location: str, wrong: pa.Array | pa.ChunkedArray, message: str, rows: pa.ChunkedArray | None = None
) -> Iterator[Finding]:
    """Findings for the rows of a mask, null meaning no; ``rows`` are their positions in the file if not in order."""
    places = np.flatnonzero(np.asarray(pc.fill_null(wrong, False)))
    for place in places[:SHOWN].tolist():
        row = place if rows is None else rows[place].as_py()
        yield Finding(rule=rule, location=location, row=row, message=message)
    if len(places) > SHOWN:
        more = f"{message}; {len(places) - SHOWN} more rows like this"
        yield Finding(rule=rule, location=location, message=more)

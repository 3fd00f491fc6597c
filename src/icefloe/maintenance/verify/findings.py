"""What a check of a table reports: findings as values (spec: Snapshots).

Rules look at whole columns: a mask says which rows break one, and the first few of those become findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import IcefloeError
from icefloe.maintenance.verify.rules import CONSEQUENCES, Rule, Severity

# What damaged files may raise in a check that expects whole columns.
_UNEXPECTED = (IcefloeError, pa.ArrowException, ValueError, TypeError, LookupError, ArithmeticError)
SHOWN = 20  # rows of one file that break one rule; the last finding counts the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
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

    def as_dict(self) -> dict[str, object]:
        """All fields by name."""
        return asdict(self)


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

"""``Table.verify``: checks a table and reports findings, each with its severity and the next step.

What cannot be read is a finding, never an exception. Nothing is changed.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

from icefloe.commit.base import TablePointer
from icefloe.engines.engine import Engine
from icefloe.errors import IcefloeError, InputError, NoSuchTable
from icefloe.maintenance.verify.check import Check, Checked
from icefloe.maintenance.verify.findings import Finding, Rule, Severity, finding, problem_of
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.text.figures import plural
from icefloe.progress import Progress, silent

Which: TypeAlias = Literal["current", "all"]

_SHOWN = 20  # findings in the text of a result


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult:
    """The findings of a check of a table, most severe first, and what was checked.

    >>> VerifyResult(table="db.t", metadata_location="file:///wh/t/metadata/00001-x.metadata.json", snapshots="current",
    ...     files=False, rows=False, findings=(), checked=Checked(snapshots=1, manifests=2, entries=5), seconds=0.01)
    verify db.t: sound: 0 errors, 0 warnings
      checked 1 snapshot (current), 2 manifests, 5 entries; not checked: storage (files=True), rows (rows=True); 0.0 s
    """

    table: str
    metadata_location: str
    snapshots: Which
    files: bool
    rows: bool
    findings: tuple[Finding, ...]
    checked: Checked
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether no finding is an error; there may be warnings."""
        return all(each.severity is not Severity.ERROR for each in self.findings)

    def as_dict(self) -> dict[str, object]:
        """All fields by name, and ``ok``."""
        return {
            "table": self.table,
            "ok": self.ok,
            "metadata_location": self.metadata_location,
            "snapshots": self.snapshots,
            "files": self.files,
            "rows": self.rows,
            "findings": [each.as_dict() for each in self.findings],
            "checked": self.checked.as_dict(),
            "seconds": self.seconds,
        }

    def __repr__(self) -> str:
        counts = Counter(each.severity for each in self.findings)
        said = f"{plural(counts[Severity.ERROR], 'error')}, {plural(counts[Severity.WARNING], 'warning')}"
        lines = [f"verify {self.table}: {'sound' if self.ok else 'NOT SOUND'}: {said}"]
        for each in self.findings[:_SHOWN]:
            lines += [f"  {each}", f"    next step: {each.remedy}"]
        if len(self.findings) > _SHOWN:
            lines.append(f"  and {len(self.findings) - _SHOWN} more in result.findings")
        return "\n".join([*lines, f"  {self._checked_text()}; {self.seconds:.1f} s"])

    def _checked_text(self) -> str:
        checked = self.checked
        done = [
            f"{plural(checked.snapshots, 'snapshot')} ({self.snapshots})",
            plural(checked.manifests, "manifest"),
            f"{checked.entries:,} entries",
        ]
        left = []
        if self.files:
            done.append(f"{plural(checked.files, 'file')} in storage")
        else:
            left.append("storage (files=True)")
        if self.rows:
            bare = checked.rows_without_checksums
            said = "" if bare == 0 else f" ({bare:,} of them in files without checksums)"
            done.append(f"{plural(checked.rows, 'row')} in {plural(checked.data_files, 'data file')}{said}")
        else:
            left.append("rows (rows=True)")
        return f"checked {', '.join(done)}" + (f"; not checked: {', '.join(left)}" if len(left) > 0 else "")


def verify_table(
    pointer: TablePointer,
    engine: Engine,
    *,
    snapshots: Which = "current",
    files: bool = False,
    rows: bool = False,
    progress: Progress = silent,
) -> VerifyResult:
    """Check the newest state of a table; its metadata file is read from storage."""
    if snapshots not in ("current", "all"):
        raise InputError(f'verify {pointer}: snapshots must be "current" or "all", not {snapshots!r}')
    started = time.monotonic()
    location = str(pointer.catalog.load(pointer.identifier))
    found, checked = _findings(pointer, engine, location, snapshots, files=files, rows=rows, progress=progress)
    order = list(Severity)
    return VerifyResult(
        table=str(pointer),
        metadata_location=location,
        snapshots=snapshots,
        files=files,
        rows=rows,
        findings=tuple(sorted(found, key=lambda each: order.index(each.severity))),
        checked=checked,
        seconds=time.monotonic() - started,
    )


def _findings(
    pointer: TablePointer,
    engine: Engine,
    location: str,
    snapshots: Which,
    *,
    files: bool,
    rows: bool,
    progress: Progress,
) -> tuple[list[Finding], Checked]:
    try:
        base = pointer.load()
    except NoSuchTable:
        raise
    except IcefloeError as error:
        remedy = (
            "restore the file from a backup; else cat.register_table(name, metadata_location) with the newest metadata "
            "file that can be read, after cat.drop_table(name)"
        )
        return [finding(rule=Rule.READABLE, location=location, message=problem_of(error), remedy=remedy)], Checked()
    check = Check(
        base.store,
        base.metadata,
        pointer=base.pointer,
        snapshots=None if snapshots == "all" else heads(base.metadata),
        files=files,
        deletes=rows,
        rows=rows,
        engine=engine,
        progress=progress,
    )
    return list(check.findings()), check.checked


def heads(metadata: TableMetadata) -> tuple[Snapshot, ...]:
    """The snapshots that branches and tags name, oldest first; refs that name none are left out."""
    ids = dict.fromkeys([metadata.current_snapshot_id, *(ref.snapshot_id for ref in metadata.refs.values())])
    named = [metadata.snapshots.find(id_) for id_ in ids if id_ is not None]
    return tuple(sorted((one for one in named if one is not None), key=lambda one: one.timestamp_ms))

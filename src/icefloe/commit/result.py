"""The result of a commit, with counts of files, rows and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from icefloe.commit.draft import Draft, Update, Work
from icefloe.commit.phases import NO_PHASES, Phases, PhaseTimer
from icefloe.model.metadata.snapshots import Snapshot, SummaryKey
from icefloe.model.text.figures import Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult(Figures):
    """The outcome of a commit that landed.

    >>> CommitResult(table="db.t", operation="append", snapshot_id=7, files_added=1, rows_added=3, seconds=0.01)
    append db.t: snapshot 7, +1 files (3 rows, 0 bytes), 0 metadata files (0 bytes), 1 attempt, 0.010 s
    """

    table: str
    operation: str
    snapshot_id: int | None
    files_added: int = 0
    files_removed: int = 0
    vectors_added: int = 0
    delete_files_added: int = 0  # besides deletion vectors: position and equality delete files
    rows_added: int = 0
    rows_deleted: int = 0
    rows_copied: int = 0  # rows that were only copied to another file; not counted as added or deleted
    data_bytes_written: int = 0
    metadata_files_written: int = 0
    metadata_bytes_written: int = 0
    attempts: int = 1
    runs: int = 1  # of the whole operation: each after the first one followed a conflict
    seconds: float = 0.0
    files_read: int = 0  # by a change of rows: data files that may contain rows to change
    files_skipped: int = 0  # by their statistics no row of them can match
    phases: Phases = NO_PHASES
    snapshots: int = 1  # how many were made; ``snapshot_id`` is the last one
    already_committed: bool = False  # by an earlier run with the same idempotency key, as ``snapshot_id``

    def __repr__(self) -> str:
        if self.already_committed:
            return f"{self.operation} {self.table}: already committed as snapshot {self.snapshot_id}"
        if self.attempts == 0:
            return f"{self.operation} {self.table}: nothing to do, no snapshot made, {self.seconds:.3f} s{self._phases}"
        parts = [] if self.snapshot_id is None else [f"snapshot {self.snapshot_id}"]
        if self.files_added > 0:
            copied = "" if self.rows_copied == 0 else f", {self.rows_copied} rows copied"
            parts.append(f"+{self.files_added} files ({self.rows_added} rows{copied}, {self.data_bytes_written} bytes)")
        if self.files_removed > 0:
            parts.append(f"-{self.files_removed} files")
        if self.rows_deleted > 0 or self.vectors_added > 0:
            parts.append(f"{self.rows_deleted} rows deleted, {self.vectors_added} deletion vectors")
        if self.delete_files_added > 0:
            parts.append(f"{self.delete_files_added} delete files")
        parts.append(f"{self.metadata_files_written} metadata files ({self.metadata_bytes_written} bytes)")
        parts.append(f"{self.attempts} attempt{'' if self.attempts == 1 else 's'}")
        if self.runs > 1:
            parts.append(f"{self.runs} runs")
        return f"{self.operation} {self.table}: {', '.join(parts)}, {self.seconds:.3f} s{self._phases}"

    @property
    def _phases(self) -> str:
        return "" if self.phases == NO_PHASES else f" ({self.phases})"


def nothing_done(table: str, operation: str, seconds: float = 0.0) -> CommitResult:
    """The result of an operation that changed nothing, so that nothing was committed."""
    return CommitResult(table=table, operation=operation, snapshot_id=None, attempts=0, seconds=seconds, snapshots=0)


def already_done(table: str, snapshot: Snapshot, runs: int) -> CommitResult:
    """The result if an earlier run with the same idempotency key made this snapshot."""
    return CommitResult(
        table=table,
        operation=str(snapshot.operation),
        snapshot_id=snapshot.snapshot_id,
        attempts=0,
        runs=runs,
        snapshots=0,
        already_committed=True,
    )


def with_row_figures(
    landed: CommitResult, *, copied: int, already_deleted: int, timer: PhaseTimer | None = None, runs: int = 1
) -> CommitResult:
    """The result of a change of rows, whose counts leave out copied rows and rows that were already deleted."""
    return replace(
        landed,
        rows_added=landed.rows_added - copied,
        rows_deleted=landed.rows_deleted - copied - already_deleted,
        rows_copied=copied,
        runs=runs,
        **({} if timer is None else timer.figures(commit=landed.seconds)),
    )


def names_of(steps: Sequence[Update]) -> str:
    """The names of steps as one operation, each once."""
    return ", ".join(dict.fromkeys(step.name for step in steps))


def result_of(table: str, steps: Sequence[Update], draft: Draft, work: Work, seconds: float) -> CommitResult:
    """The result of a commit, with counts over all snapshots that it made.

    Rows are counted step by step: a transaction may make one snapshot of several steps.
    """

    stepwise = draft.stepwise if len(draft.stepwise) > 0 else draft.made

    def total(key: str, of: Sequence[Snapshot] = draft.made) -> int:
        return sum(int(made.summary.get(key, "0")) for made in of)

    return CommitResult(
        table=table,
        operation=names_of(steps),
        snapshot_id=draft.made[-1].snapshot_id if len(draft.made) > 0 else None,
        files_added=total(SummaryKey.ADDED_DATA_FILES),
        files_removed=total(SummaryKey.DELETED_DATA_FILES),
        vectors_added=total(SummaryKey.ADDED_DVS),
        delete_files_added=total(SummaryKey.ADDED_DELETE_FILES) - total(SummaryKey.ADDED_DVS),
        rows_added=total(SummaryKey.ADDED_RECORDS, stepwise),
        rows_deleted=total(SummaryKey.DELETED_RECORDS, stepwise)
        + total(SummaryKey.ADDED_POSITION_DELETES, stepwise)
        - total(SummaryKey.REMOVED_POSITION_DELETES, stepwise),
        data_bytes_written=total(SummaryKey.ADDED_FILES_SIZE, stepwise),
        metadata_files_written=len(work.staging.written) - 1,  # besides the metadata file itself
        metadata_bytes_written=sum(work.staging.written.values()),
        attempts=work.attempt,
        seconds=seconds,
        snapshots=len(draft.made),
    )

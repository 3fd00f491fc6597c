"""The result of a compaction: figures for each group of files, and in total."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """The files of one group before and after; with ``error`` they are as before.

    >>> GroupResult(group=0, partition={}, files_before=5, files_after=1, bytes_before=50, bytes_after=40)
    group 0: 5 files (50 bytes) -> 1 files (40 bytes)
    """

    group: int
    partition: dict[str, object]
    files_before: int
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0  # that the new files have
    rows_dropped: int = 0  # deleted rows that the old files had
    snapshot_id: int | None = None  # that has the new files
    error: str | None = None  # why the group failed

    def __repr__(self) -> str:
        where = "" if len(self.partition) == 0 else f" {self.partition}"
        if self.error is not None:
            return f"group {self.group}{where}: {self.files_before} files, failed: {self.error}"
        return (
            f"group {self.group}{where}: {self.files_before} files ({self.bytes_before} bytes) -> {self.files_after}"
            f" files ({self.bytes_after} bytes)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactResult:
    """The outcome of a compaction: its groups, and the snapshots that it made.

    >>> CompactResult(table="db.t", strategy="binpack")
    compact db.t (binpack): nothing to do
    """

    table: str
    strategy: str
    groups: tuple[GroupResult, ...] = ()
    snapshot_ids: tuple[int, ...] = ()
    delete_files_removed: int = 0  # delete files and deletion vectors
    seconds: float = 0.0

    @property
    def failed(self) -> tuple[GroupResult, ...]:
        """The groups that failed."""
        return tuple(group for group in self.groups if group.error is not None)

    @property
    def _done(self) -> tuple[GroupResult, ...]:
        return tuple(group for group in self.groups if group.error is None)

    @property
    def files_removed(self) -> int:
        """How many data files were replaced."""
        return sum(group.files_before for group in self._done)

    @property
    def files_added(self) -> int:
        """How many data files were written."""
        return sum(group.files_after for group in self._done)

    @property
    def bytes_removed(self) -> int:
        """The bytes of the replaced data files."""
        return sum(group.bytes_before for group in self._done)

    @property
    def bytes_added(self) -> int:
        """The bytes of the new data files."""
        return sum(group.bytes_after for group in self._done)

    @property
    def rows(self) -> int:
        """How many rows the new data files have."""
        return sum(group.rows for group in self._done)

    @property
    def rows_dropped(self) -> int:
        """How many deleted rows the replaced data files had."""
        return sum(group.rows_dropped for group in self._done)

    def as_dict(self) -> dict[str, object]:
        """All fields and totals by name."""
        totals = ("files_removed", "files_added", "bytes_removed", "bytes_added", "rows", "rows_dropped")
        return {**asdict(self), **{name: getattr(self, name) for name in totals}}

    def __repr__(self) -> str:
        head = f"compact {self.table} ({self.strategy})"
        if len(self.groups) == 0:
            return f"{head}: nothing to do"
        failed = "" if len(self.failed) == 0 else f", {len(self.failed)} groups failed"
        return (
            f"{head}: {self.files_removed} files ({self.bytes_removed} bytes) -> {self.files_added} files"
            f" ({self.bytes_added} bytes) in {len(self._done)} groups{failed}, {self.rows} rows,"
            f" {self.rows_dropped} deleted rows dropped, {self.delete_files_removed} delete files removed,"
            f" {len(self.snapshot_ids)} snapshots, {self.seconds:.3f} s"
        )

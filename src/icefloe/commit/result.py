"""What a commit did, in the figures a person wants."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
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
    rows_added: int = 0
    rows_deleted: int = 0
    data_bytes_written: int = 0
    metadata_files_written: int = 0
    metadata_bytes_written: int = 0
    attempts: int = 1
    seconds: float = 0.0

    def as_dict(self) -> dict[str, object]:
        """All figures by name."""
        return asdict(self)

    def __repr__(self) -> str:
        if self.snapshot_id is None:
            return f"{self.operation} {self.table}: nothing to do, no snapshot made, {self.seconds:.3f} s"
        parts = [f"snapshot {self.snapshot_id}"]
        if self.files_added > 0:
            parts.append(f"+{self.files_added} files ({self.rows_added} rows, {self.data_bytes_written} bytes)")
        if self.files_removed > 0:
            parts.append(f"-{self.files_removed} files")
        if self.rows_deleted > 0 or self.vectors_added > 0:
            parts.append(f"{self.rows_deleted} rows deleted, {self.vectors_added} deletion vectors")
        parts.append(f"{self.metadata_files_written} metadata files ({self.metadata_bytes_written} bytes)")
        parts.append(f"{self.attempts} attempt{'' if self.attempts == 1 else 's'}")
        return f"{self.operation} {self.table}: {', '.join(parts)}, {self.seconds:.3f} s"

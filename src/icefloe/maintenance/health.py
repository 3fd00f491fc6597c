"""``Table.health``: what makes a table slow or large, what it costs, and the command that improves it.

Nothing is changed. ``t.verify()`` looks for what is wrong; this looks for what is slow.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from icefloe.commit.base import Base
from icefloe.engines.engine import Engine
from icefloe.maintenance.health_figures import MOSTLY_DEAD, MOSTLY_DELETED, HealthFigures, measure
from icefloe.maintenance.verify.findings import Severity
from icefloe.model.text.figures import Figures, plural, size_text

Numbers: TypeAlias = Mapping[str, int | float]

_MANY_FILES = 100  # saved files from which on small files are a warning
_SKEW = 10  # times the median
_FEW_PARTITIONS = 4
_DELETE_RATIO = 0.1
_MANY_DELETES = 10  # delete files of one data file
_MANY_EXPIRABLE = 100
_LARGE_METADATA = 8 * 1024 * 1024
_OVERLAP = 2.0  # times the manifests of a clustered table


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFinding(Figures):
    """Something that costs time or space: what it is, its figures, why it costs, what improves it, and the gain."""

    name: str
    severity: Severity
    what: str
    figures: Numbers
    why: str
    command: str
    gain: Numbers  # the expected figures after the command
    expected: str  # the gain in words

    def __str__(self) -> str:
        return f"{self.severity}: {self.name}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The findings about the current snapshot of a table, most severe first, and all measured figures."""

    table: str
    snapshot_id: int | None
    findings: tuple[HealthFinding, ...]
    figures: HealthFigures
    seconds: float

    def as_dict(self) -> dict[str, object]:
        """All fields by name."""
        return {
            "table": self.table,
            "snapshot_id": self.snapshot_id,
            "findings": [each.as_dict() for each in self.findings],
            "figures": self.figures.as_dict(),
            "seconds": self.seconds,
        }

    def __repr__(self) -> str:
        f = self.figures
        lines = [
            f"health {self.table}: {plural(len(self.findings), 'finding')}",
            f"  {plural(f.data_files, 'data file')}, {size_text(f.data_bytes)}, {plural(f.rows, 'row')} in "
            f"{plural(f.partitions, 'partition')}; {plural(f.manifests, 'manifest')}, "
            f"{plural(f.snapshots, 'snapshot')}; {self.seconds:.1f} s",
        ]
        for each in self.findings:
            lines += [f"  {each}", f"    {each.why}", f"    {each.command}: {each.expected}"]
        return "\n".join(lines)


def health_of(base: Base, engine: Engine, *, now_ms: int, storage: bool = False) -> Health:
    """Measure the current snapshot of a table. With ``storage`` its folder is listed for unreferenced files."""
    started = time.monotonic()
    figures = measure(base, engine, now_ms=now_ms, storage=storage)
    order = list(Severity)
    findings = sorted(findings_of(figures), key=lambda each: order.index(each.severity))
    return Health(
        table=base.metadata.location if base.name is None else base.name,
        snapshot_id=base.metadata.current_snapshot_id,
        findings=tuple(findings),
        figures=figures,
        seconds=time.monotonic() - started,
    )


def findings_of(f: HealthFigures) -> Iterator[HealthFinding]:
    """What the figures say is wrong or could be better."""
    for finding in (
        _small_files(f),
        _skew(f),
        _deleted_rows(f),
        _delete_files(f),
        _manifests(f),
        _dead_rows(f),
        _snapshots(f),
        _unreferenced(f),
    ):
        if finding is not None:
            yield finding


def _small_files(f: HealthFigures) -> HealthFinding | None:
    saved = f.small_files - f.small_files_after
    if saved <= 0:
        return None
    return HealthFinding(
        name="small-files",
        severity=Severity.WARNING if saved >= _MANY_FILES else Severity.INFO,
        what=f"{f.small_files:,} of {f.data_files:,} data files ({size_text(f.small_bytes)}) are smaller than "
        f"three quarters of the target, {size_text(f.target_file_bytes)}",
        figures={"small_files": f.small_files, "small_bytes": f.small_bytes, "data_files": f.data_files},
        why="every file is opened and planned by itself, so scans spend their time on footers and requests",
        command="t.compact()",
        gain={"data_files": f.data_files - saved},
        expected=f"{f.data_files - saved:,} data files instead of {f.data_files:,}",
    )


def _skew(f: HealthFigures) -> HealthFinding | None:
    is_skewed = f.largest_partition_bytes > _SKEW * max(1, f.median_partition_bytes)
    if f.partitions < _FEW_PARTITIONS or not is_skewed or f.largest_partition_bytes < f.target_file_bytes:
        return None
    times = f.largest_partition_bytes / max(1, f.median_partition_bytes)
    return HealthFinding(
        name="skew",
        severity=Severity.INFO,
        what=f"partition {f.largest_partition} has {size_text(f.largest_partition_bytes)} and "
        f"{plural(f.largest_partition_rows, 'row')}, {times:,.0f} times the median of {f.partitions:,} partitions",
        figures={
            "largest_partition_bytes": f.largest_partition_bytes,
            "median_partition_bytes": f.median_partition_bytes,
            "largest_partition_rows": f.largest_partition_rows,
            "median_partition_rows": f.median_partition_rows,
        },
        why="tasks that work by partition wait for the largest one",
        command='with t.update_partitioning() as p: p.add("bucket(16, ...)")',
        gain={"largest_partition_bytes": f.largest_partition_bytes // 16},
        expected=f"about {size_text(f.largest_partition_bytes // 16)} in its largest part, for new files",
    )


def _deleted_rows(f: HealthFigures) -> HealthFinding | None:
    if f.files_mostly_deleted == 0 and f.delete_ratio < _DELETE_RATIO:
        return None
    deleted = f.rows_deleted_by_vectors + f.rows_deleted_by_positions
    return HealthFinding(
        name="deleted-rows",
        severity=Severity.WARNING if f.delete_ratio >= _DELETE_RATIO else Severity.INFO,
        what=f"{f.delete_ratio:.0%} of the rows are deleted; {plural(f.files_mostly_deleted, 'data file')} "
        f"({size_text(f.bytes_mostly_deleted)}) lost {MOSTLY_DELETED:.0%} of their rows or more",
        figures={
            "delete_ratio": f.delete_ratio,
            "rows_deleted": deleted,
            "files_mostly_deleted": f.files_mostly_deleted,
            "bytes_mostly_deleted": f.bytes_mostly_deleted,
        },
        why="readers read deleted rows and drop them",
        command="t.compact()",
        gain={"rows": f.rows - deleted, "data_bytes": int(f.data_bytes * (1 - f.delete_ratio))},
        expected=f"up to {size_text(int(f.data_bytes * f.delete_ratio))} less to store and to read",
    )


def _delete_files(f: HealthFigures) -> HealthFinding | None:
    if f.equality_delete_files == 0 and f.most_delete_files_of_a_data_file <= 1:
        return None  # rewriting them would not make them fewer
    is_heavy = f.delete_files_per_data_file >= 1 or f.most_delete_files_of_a_data_file >= _MANY_DELETES
    return HealthFinding(
        name="delete-files",
        severity=Severity.WARNING if is_heavy or f.equality_delete_files > 0 else Severity.INFO,
        what=f"{plural(f.position_delete_files, 'position delete file')} and "
        f"{plural(f.equality_delete_files, 'equality delete file')}; a data file has "
        f"{f.delete_files_per_data_file:.1f} of them on average and {f.most_delete_files_of_a_data_file:,} at most",
        figures={
            "position_delete_files": f.position_delete_files,
            "equality_delete_files": f.equality_delete_files,
            "delete_files_per_data_file": f.delete_files_per_data_file,
            "most_delete_files_of_a_data_file": f.most_delete_files_of_a_data_file,
        },
        why="a scan reads every delete file of a data file first; equality deletes are compared with every row",
        command="t.rewrite_deletes()",
        gain={"position_delete_files": 0, "equality_delete_files": 0, "files_with_deletes": f.files_with_deletes},
        expected=f"at most one delete for each of {plural(f.files_with_deletes, 'data file')}, no equality deletes",
    )


def _manifests(f: HealthFigures) -> HealthFinding | None:
    overlaps = f.manifests_per_partition > _OVERLAP * max(1.0, f.manifests_per_partition_after)
    if f.manifests <= f.manifests_after or not (overlaps or f.manifests > _OVERLAP * f.manifests_after + 1):
        return None
    return HealthFinding(
        name="manifests",
        severity=Severity.WARNING if f.manifests_per_partition > 10 * _OVERLAP else Severity.INFO,
        what=f"a filter on one partition opens {f.manifests_per_partition:.1f} of {plural(f.manifests, 'manifest')} "
        f"({size_text(f.manifest_bytes)})",
        figures={"manifests": f.manifests, "manifests_per_partition": f.manifests_per_partition},
        why="planning a scan reads every manifest whose partition range has the filter's value",
        command="t.rewrite_manifests()",
        gain={
            "manifests": f.manifests_after,
            "manifests_per_partition": f.manifests_per_partition_after,
        },
        expected=f"{f.manifests_per_partition_after:.1f} of {plural(f.manifests_after, 'manifest')}",
    )


def _dead_rows(f: HealthFigures) -> HealthFinding | None:
    if f.leaves_mostly_dead == 0:
        return None
    return HealthFinding(
        name="dead-leaf-rows",
        severity=Severity.INFO,
        what=f"{plural(f.leaves_mostly_dead, 'manifest')} with {MOSTLY_DEAD:.0%} dead rows or more; "
        f"{f.dead_leaf_rows:,} of {f.leaf_rows:,} rows of all manifests are dead",
        figures={
            "leaves_mostly_dead": f.leaves_mostly_dead,
            "dead_leaf_rows": f.dead_leaf_rows,
            "leaf_rows": f.leaf_rows,
        },
        why="planning a scan decodes dead rows and drops them",
        command="t.rewrite_manifests()",
        gain={"dead_leaf_rows": 0, "leaf_rows": f.leaf_rows - f.dead_leaf_rows},
        expected=f"{f.leaf_rows - f.dead_leaf_rows:,} rows in manifests, none of them dead",
    )


def _snapshots(f: HealthFigures) -> HealthFinding | None:
    if f.expirable_snapshots == 0:
        return None
    share = f.expirable_snapshots / f.snapshots
    is_heavy = f.expirable_snapshots >= _MANY_EXPIRABLE or f.metadata_bytes >= _LARGE_METADATA
    after = int(f.metadata_bytes * (1 - share))
    return HealthFinding(
        name="snapshots",
        severity=Severity.WARNING if is_heavy else Severity.INFO,
        what=f"{f.expirable_snapshots:,} of {plural(f.snapshots, 'snapshot')} are past their retention; the metadata "
        f"file has {size_text(f.metadata_bytes)}, its log {plural(f.metadata_log_length, 'former file')}",
        figures={
            "expirable_snapshots": f.expirable_snapshots,
            "snapshots": f.snapshots,
            "metadata_bytes": f.metadata_bytes,
            "metadata_log_length": f.metadata_log_length,
        },
        why="every commit writes all snapshots to a new metadata file, and their files cannot be deleted",
        command="t.expire()",
        gain={"snapshots": f.snapshots - f.expirable_snapshots, "metadata_bytes": after},
        expected=f"{plural(f.snapshots - f.expirable_snapshots, 'snapshot')}, about {size_text(after)} per commit",
    )


def _unreferenced(f: HealthFigures) -> HealthFinding | None:
    if f.unreferenced_files is None or f.unreferenced_bytes is None or f.unreferenced_files == 0:
        return None
    return HealthFinding(
        name="unreferenced-files",
        severity=Severity.INFO,
        what=f"{plural(f.unreferenced_files, 'file')} ({size_text(f.unreferenced_bytes)}) in the table's folder are in "
        "no snapshot; some may be of writers that have not committed yet",
        figures={"unreferenced_files": f.unreferenced_files, "unreferenced_bytes": f.unreferenced_bytes},
        why="they take space and no reader needs them",
        command="t.remove_orphans()",
        gain={"unreferenced_bytes": 0},
        expected=f"up to {size_text(f.unreferenced_bytes)} less to store",
    )

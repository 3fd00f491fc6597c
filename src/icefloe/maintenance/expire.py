"""Expires snapshots and deletes the files that only they needed (spec: Snapshot Retention Policy).

The pointer is swapped first, and files are deleted afterwards: all files that were reachable before the commit that
landed and are not after it. They are those of the plan if the table has not changed since and all its files could be
read; otherwise they are computed again. A journal is written before the commit, so that a run that ends in between is
finished by the next one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.base import Base, TablePointer
from icefloe.commit.draft import draft_of
from icefloe.commit.idempotency import record_in
from icefloe.commit.loop import begin, land
from icefloe.commit.operations.snapshot_updates import ExpireSnapshots
from icefloe.commit.result import CommitResult
from icefloe.engines.engine import Engine
from icefloe.engines.file_sets import REFERENCED, Kind
from icefloe.env import Env
from icefloe.errors import CommitStateUnknown, IcefloeError, InputError, NoSuchFile, NoSuchSnapshot, is_out_of_space
from icefloe.maintenance.deletions import (
    Deletion,
    Journal,
    StillFree,
    check_deletable,
    complete,
    delete_files,
    finish_journals,
    unfinished_journals,
    withdraw,
    write_journal,
)
from icefloe.maintenance.reachable import freed_files, on_newest
from icefloe.model.entries import ContentType, count, total
from icefloe.model.location_columns import is_among
from icefloe.model.metadata.retention import ExpirePolicy, Retained, apply_policy, at_time
from icefloe.model.text.figures import Figures
from icefloe.model.text.text_checks import listed
from icefloe.progress import Progress, silent
from icefloe.scan.select import to_epoch_ms

_SHOWN = 20  # snapshots that a printed plan lists

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSnapshot:
    """A snapshot in a plan, and why it expires or is kept."""

    snapshot_id: int
    timestamp_ms: int
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.snapshot_id} of {at_time(self.timestamp_ms)}: {'; '.join(self.reasons)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireResult(Figures):
    """The result of an expiry: what was removed from the table, and which files were deleted.

    >>> ExpireResult(table="db.t", snapshots=3, data_files=2, manifests=4, bytes=9000)
    expired 3 snapshots of db.t, 0 refs; deleted 2 data files, 0 delete files, 4 manifests, 0 metadata files, ...
    """

    table: str
    snapshots: int = 0
    refs: int = 0
    data_files: int = 0
    delete_files: int = 0
    manifests: int = 0
    metadata_files: int = 0
    statistics_files: int = 0
    bytes: int = 0  # of deleted files whose size is known
    equality_delete_files: int = 0  # of the delete files
    roots: int = 0  # of the manifests: manifest lists, or root manifests
    finished_files: int = 0  # deleted for earlier runs that were interrupted
    left: tuple[str, ...] = ()  # not deleted, as they are outside the table's location
    failed: tuple[str, ...] = ()  # not deleted, as the storage failed
    problem: str | None = None  # why no more files were deleted; the next run continues
    attempts: int = 0
    seconds: float = 0.0

    @property
    def counts(self) -> tuple[int, ...]:
        """Deleted files: data, position deletes, equality deletes, manifests, manifest lists, statistics."""
        positions = self.delete_files - self.equality_delete_files
        manifests = self.manifests - self.roots
        return self.data_files, positions, self.equality_delete_files, manifests, self.roots, self.statistics_files

    def __repr__(self) -> str:
        text = (
            f"expired {self.snapshots} snapshots of {self.table}, {self.refs} refs; deleted {self.data_files} data"
            f" files, {self.delete_files} delete files, {self.manifests} manifests, {self.metadata_files} metadata"
            f" files, {self.statistics_files} statistics files ({self.bytes} bytes), {self.finished_files} files of"
            f" earlier runs; {len(self.left)} left outside its location, {len(self.failed)} failed"
        )
        return text if self.problem is None else f"{text}; stopped: {self.problem}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExpirePlan:
    """What an expiry would remove, and why, and what is kept by whom; ``execute`` does it.

    ``files`` are the files that would be freed, with columns ``location``, ``kind``, ``bytes`` (null if unknown) and
    ``content``.
    """

    table: str
    policy: ExpirePolicy
    expired: tuple[PlannedSnapshot, ...]
    kept: tuple[PlannedSnapshot, ...]
    refs: dict[str, str]  # branches and tags that expire, and why
    files: pa.Table
    unfinished: int  # files that earlier runs were about to delete
    clean: bool
    _update: ExpireSnapshots = field(compare=False)
    _base: Base = field(compare=False)  # the state that was planned on
    _is_whole: bool = field(compare=False)  # all files that it references were read
    _pointer: TablePointer = field(compare=False)
    _env: Env = field(compare=False)
    _engine: Engine = field(compare=False)

    def execute(self, progress: Progress = silent) -> ExpireResult:
        """Remove the snapshots in one commit, then delete the files that are not referenced any more.

        A snapshot that a concurrent commit needs stays. CommitStateUnknown means that it may have been committed; no
        file is deleted then.
        """
        return _execute(self, progress)

    @property
    def bytes(self) -> int:
        """The bytes of the files to delete, as far as their sizes are known."""
        return total(self.files, "bytes")

    def as_dict(self) -> dict[str, object]:
        """Everything that the plan shows, as plain values."""
        return {
            "table": self.table,
            "expired": [asdict(snapshot) for snapshot in self.expired],
            "kept": [asdict(snapshot) for snapshot in self.kept],
            "refs": dict(self.refs),
            "files": {kind.value: self._count(kind) for kind in Kind},
            "bytes": self.bytes,
            "unfinished": self.unfinished,
            "clean": self.clean,
        }

    @property
    def counts(self) -> tuple[int, ...]:
        """Files to delete: data, position deletes, equality deletes, manifests, manifest lists, statistics."""
        return _result(self.table, Deletion(files=self.files)).counts

    def _count(self, kind: Kind) -> int:
        return count(pc.equal(self.files["kind"], kind.value))

    def __repr__(self) -> str:
        lines = [f"expire {len(self.expired)} of {len(self.expired) + len(self.kept)} snapshots of {self.table}"]
        lines += _shown(self.expired)
        lines += [f"  ref {name}: {why}" for name, why in self.refs.items()]
        lines += [f"keep {len(self.kept)} snapshots", *_shown(self.kept)]
        if self.clean:
            counts = ", ".join(f"{self._count(kind)} {kind.value}" for kind in Kind)
            lines.append(f"delete {self.files.num_rows} files ({counts}), {self.bytes} bytes or more")
        else:
            lines.append("delete no files (clean=False)")
        if self.unfinished > 0:
            lines.append(f"finish earlier runs that were about to delete {self.unfinished} files")
        return "\n".join(lines)


def _shown(snapshots: tuple[PlannedSnapshot, ...]) -> list[str]:
    more = [] if len(snapshots) <= _SHOWN else [f"  and {len(snapshots) - _SHOWN} more"]
    return [f"  snapshot {snapshot}" for snapshot in snapshots[:_SHOWN]] + more


def plan_expire(
    table: TablePointer,
    env: Env,
    engine: Engine,
    *,
    older_than: datetime | str | None = None,
    retain_last: int | None = None,
    snapshots: Iterable[int] | None = None,
    clean: bool = True,
) -> ExpirePlan:
    """Plan an expiry on the newest state of a table; nothing is changed."""
    chosen = None if snapshots is None else list(listed(snapshots, "snapshots"))

    def plan(base: Base) -> ExpirePlan:
        return _plan(table, base, env, engine, _policy(base, env, older_than, retain_last, chosen), clean=clean)

    return on_newest(table, plan)


def _plan(
    table: TablePointer, base: Base, env: Env, engine: Engine, policy: ExpirePolicy, *, clean: bool
) -> ExpirePlan:
    if clean:
        check_deletable(base)
    retained = apply_policy(base.metadata, policy, record_in)
    _check_chosen(base, retained)
    update = ExpireSnapshots(
        policy=policy, snapshot_ids=frozenset(retained.expired), ref_names=frozenset(retained.expired_refs)
    )
    after = update.expired(base.metadata)
    files, is_whole = REFERENCED.empty_table(), False
    if clean and after != base.metadata:
        after = after.committed(timestamp_ms=base.metadata.last_updated_ms, former_location=base.pointer)
        files, problems = freed_files(base, replace(base, metadata=after), engine)
        if len(problems) > 0 and table.load().pointer != base.pointer:
            raise NoSuchFile(problems[0])  # deleted by another expiry: the plan is made again
        _warn(problems)
        is_whole = len(problems) == 0
    by_id = {snapshot.snapshot_id: snapshot for snapshot in base.metadata.snapshots}
    return ExpirePlan(
        table=str(table),
        policy=policy,
        expired=tuple(
            PlannedSnapshot(snapshot_id=key, timestamp_ms=by_id[key].timestamp_ms, reasons=(reason,))
            for key, reason in retained.expired.items()
        ),
        kept=tuple(
            PlannedSnapshot(snapshot_id=key, timestamp_ms=by_id[key].timestamp_ms, reasons=reasons)
            for key, reasons in retained.kept.items()
        ),
        refs=dict(retained.expired_refs),
        files=files,
        unfinished=sum(journal.files.num_rows for journal in unfinished_journals(base)) if clean else 0,
        clean=clean,
        _update=update,
        _base=base,
        _is_whole=is_whole,
        _pointer=table,
        _env=env,
        _engine=engine,
    )


def _warn(problems: tuple[str, ...]) -> None:
    for problem in problems:
        logger.warning("%s", problem)


def _policy(
    base: Base, env: Env, older_than: datetime | str | None, retain_last: int | None, snapshots: Iterable[int] | None
) -> ExpirePolicy:
    if retain_last is not None and (isinstance(retain_last, bool) or retain_last < 1):
        raise InputError(f"retain_last={retain_last!r}: give the number of snapshots to keep, 1 or more")
    chosen = frozenset(() if snapshots is None else snapshots)
    if snapshots is not None and len(chosen) == 0:
        raise InputError("snapshots= is empty; give the ids of the snapshots to expire, or leave it out")
    for snapshot_id in sorted(chosen):
        if base.metadata.snapshots.find(snapshot_id) is None:
            raise NoSuchSnapshot(
                f"table {base.metadata.location} has no snapshot {snapshot_id}", snapshot_id=snapshot_id
            )
    return ExpirePolicy(
        now_ms=env.now_ms(),
        older_than_ms=None if older_than is None else to_epoch_ms(older_than),
        retain_last=retain_last,
        snapshot_ids=chosen,
    )


def _check_chosen(base: Base, retained: Retained) -> None:
    for snapshot_id, reason in retained.needed.items():
        raise InputError(
            f"table {base.metadata.location}: snapshot {snapshot_id} cannot expire, it is needed: {reason}. Remove or"
            " move the branch or tag first, or wait until the record may be removed (history.expire.max-record-age-ms)",
            snapshot_id=snapshot_id,
        )


def _execute(plan: ExpirePlan, progress: Progress) -> ExpireResult:
    started, table, env = time.perf_counter(), plan._pointer, plan._env
    finished = Deletion()
    journals: list[Journal] = []
    base = table.load()
    if plan.clean:
        check_deletable(base)
        finished = finish_journals(table, env, plan._engine, progress)
        if plan.files.num_rows > 0:
            journals.append(write_journal(base, plan.files, "expire", env))
    commit, before, after = _commit(plan, table, env, journals)
    deletion, problem = Deletion(), None
    if plan.clean and commit.attempts > 0:
        try:
            deletion = _delete_freed(plan, before, after, journals, progress)
            base.store.cache.forget(deletion.files["location"])
        except IcefloeError as error:  # the snapshots are gone; the next run deletes the files
            logger.warning("expired snapshots of %s, but could not delete all files: %s", table, error)
            problem = str(error)
    return replace(
        _result(str(table), deletion),
        snapshots=len(_ids(before) - _ids(after)),
        refs=len(before.metadata.refs.keys() - after.metadata.refs.keys()),
        bytes=finished.bytes + deletion.bytes,
        finished_files=finished.files.num_rows,
        left=(*finished.outside, *deletion.outside),
        failed=(*finished.failed, *deletion.failed),
        problem=problem,
        attempts=commit.attempts,
        seconds=time.perf_counter() - started,
    )


def _result(table: str, deletion: Deletion) -> ExpireResult:
    """The counts of deleted files."""
    content = deletion.files["content"]
    equality = pc.equal(content, int(ContentType.EQUALITY_DELETES))
    roots = pc.and_(pc.equal(deletion.files["kind"], Kind.MANIFEST.value), pc.is_null(content))
    return ExpireResult(
        table=table,
        data_files=deletion.count(Kind.DATA.value),
        delete_files=deletion.count(Kind.DELETES.value),
        manifests=deletion.count(Kind.MANIFEST.value),
        metadata_files=deletion.count(Kind.METADATA.value),
        statistics_files=deletion.count(Kind.STATISTICS.value),
        equality_delete_files=count(equality),
        roots=count(roots),
    )


def _ids(base: Base) -> set[int]:
    return {snapshot.snapshot_id for snapshot in base.metadata.snapshots}


def _commit(
    plan: ExpirePlan, table: TablePointer, env: Env, journals: list[Journal]
) -> tuple[CommitResult, Base, Base]:
    """Commit the removal; the states before and after it. If it certainly failed, the journal is withdrawn.

    A journal that took the last space of a disk makes room for the metadata.
    """
    base = table.load()
    try:
        work = begin(base, env)
        result = land(table, (plan._update,), work, draft_of(base))
    except CommitStateUnknown:
        raise
    except Exception as error:
        had_journals = any(journal.location is not None for journal in journals)
        _withdraw_all(base, journals)
        if had_journals and is_out_of_space(error):
            return _commit(plan, table, env, journals)
        raise
    if result.attempts == 0:
        _withdraw_all(base, journals)
    return result, work.attempt_base, table.held() if result.attempts > 0 else work.attempt_base


def _withdraw_all(base: Base, journals: list[Journal]) -> None:
    journals[:] = [withdraw(base.store.io, journal) for journal in journals]


def _delete_freed(plan: ExpirePlan, before: Base, after: Base, journals: list[Journal], progress: Progress) -> Deletion:
    """Delete the files that the commit freed; files that the plan did not have are journalled first."""
    table, env, engine = plan._pointer, plan._env, plan._engine
    files = plan.files
    if not plan._is_whole or before.pointer != plan._base.pointer or before.metadata != plan._base.metadata:
        files, problems = freed_files(before, after, engine)
        _warn(problems)
    journals = list(journals)
    planned = [journal.files["location"] for journal in journals]
    known = pa.chunked_array([chunk for column in planned for chunk in column.chunks], pa.string())
    more = files.filter(pc.invert(is_among(files["location"], known, after.metadata.location)))
    if more.num_rows > 0:
        journals.append(write_journal(after, more, "expire", env))
    free = StillFree(table, engine, checked=after.pointer)
    deletion = delete_files(after.store.io, files, after.metadata.location, progress=progress, still_free=free)
    for journal in journals:
        complete(after.store.io, journal, deletion, env)
    return deletion

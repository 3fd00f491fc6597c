"""The commit loop: applies updates exactly once (spec: Commit Conflict Resolution and Retry).

Each attempt applies the updates to a freshly loaded table and ends in one swap. Files are deleted only if it is certain
that no snapshot references them: after ``Stale``, or after a conflict or another error before the swap. After
``Unknown`` nothing is deleted. After ``Stale`` the table is loaded before files are deleted: a catalog behind a proxy
that repeats requests may have committed the attempt all the same.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from icefloe.catalogs.catalog import Swap, Swapped, Unknown
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.draft import Draft, Update, Work, draft_of
from icefloe.commit.fewest_snapshots import fewest, remade, unused_files
from icefloe.commit.result import CommitResult, names_of, nothing_done, result_of
from icefloe.commit.stage import METADATA_FOLDER, Attempt, finish
from icefloe.commit.unknown_outcomes import check_not_landed, remember_files, unreferenced
from icefloe.env import SYSTEM, Env
from icefloe.errors import CommitFailed, CommitStateUnknown, ConflictError, IcefloeError
from icefloe.io.file_io import FileIO
from icefloe.model.metadata.properties import (
    COMMIT_MAX_WAIT_MS,
    COMMIT_MIN_WAIT_MS,
    COMMIT_RETRIES,
    DELETE_AFTER_COMMIT,
)
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.version_rules import check_writable
from icefloe.tree.staging import Staging

logger = logging.getLogger(__name__)


def commit(table: TablePointer, updates: Update | Sequence[Update], env: Env = SYSTEM) -> CommitResult:
    """Commit the updates, all or none of them.

    ConflictError and CommitFailed mean that nothing was committed. After CommitStateUnknown it is not known.
    """
    steps = tuple(updates) if isinstance(updates, Sequence) else (updates,)
    try:
        base = table.load()
        work = begin(base, env)
    except Exception:  # before the first attempt
        discard(table.io, _files(steps))
        raise
    return land(table, steps, work, draft_of(base))


def begin(base: Base, env: Env) -> Work:
    """The state that a commit keeps between its attempts."""
    check_writable(base.metadata.format_version)
    return Work(base, Staging(f"{base.metadata.location}/{METADATA_FOLDER}", env.new_uuid), env)


def land(
    table: TablePointer, steps: tuple[Update, ...], work: Work, draft: Draft, *, transaction: bool = False
) -> CommitResult:
    """Commit updates; those of a ``transaction`` are already applied to the draft, and make few snapshots."""
    started, io = time.perf_counter(), work.base.store.io  # it deletes no files outside the table
    attempt: Attempt | None = None
    for number in _attempts(draft.base, work.env):
        work.attempt = number
        if attempt is not None:  # it was Stale, as every earlier one
            rebased = _rebased(table, steps, work, draft, attempt)
            if rebased is None:
                return _committed(table, steps, work, draft, attempt, started)
            draft = rebased
        with before_swap(io, steps, work):
            work.attempt_base = draft.base
            check_not_landed(draft.base, _files(steps))
            if number > 1 or not transaction:
                draft = apply_updates(draft, steps, work)
            if transaction and len(plans := fewest(draft.plans, draft.metadata)) < len(draft.plans):
                draft = remade(draft, plans, steps, work)
            if is_unchanged(draft):
                discard(io, [*work.staging.written, *_files(steps)])
                return nothing_done(str(table), names_of(steps), time.perf_counter() - started)
            attempt = finish(draft, work)
            outcome = swap_pointer(table, draft.base.expected, attempt.pointer)
        if isinstance(outcome, Unknown):
            try:
                _resolve_unknown(table, attempt.pointer, draft, outcome)
            except BaseException:
                remember(steps, work)
                raise
            return _committed(table, steps, work, draft, attempt, started)
        if isinstance(outcome, Swapped):
            pointer = attempt.pointer if outcome.pointer is None else outcome.pointer
            table.remember(pointer, attempt.metadata, replaces=draft.base)
            return _committed(table, steps, work, draft, attempt, started)
        work.roots = {}
    if attempt is not None and _is_seen(table, attempt.pointer, draft):
        return _committed(table, steps, work, draft, attempt, started)
    discard(io, [*work.staging.written, *_files(steps)])
    raise CommitFailed(
        f"table {table}: gave up after {number} attempts, as other commits were faster; nothing was changed. Try again,"
        f" or raise the table property {COMMIT_RETRIES.name}",
        table=str(table),
        attempts=number,
    )


def _rebased(
    table: TablePointer, steps: tuple[Update, ...], work: Work, draft: Draft, attempt: Attempt
) -> Draft | None:
    """The draft that the next attempt starts with; None if the last one is in the table, although it was Stale."""
    io = work.base.store.io
    with before_swap(io, steps, work):
        base = table.load()
        if _has_landed(base, attempt.pointer, draft):
            return None
        discard(io, work.staging.forget_attempt())
        _check_not_relocated(table, work.base, base)
        work.staging.folder = f"{base.metadata.location}/{METADATA_FOLDER}"
        return draft_of(base)


def _committed(
    table: TablePointer, steps: tuple[Update, ...], work: Work, draft: Draft, attempt: Attempt, started: float
) -> CommitResult:
    """The result of an attempt that landed; deletes the files that are not needed any more."""
    io = work.base.store.io
    logger.info("committed %s: %s, attempt %d", table, ", ".join(step.name for step in steps), work.attempt)
    _delete_old_metadata(io, draft.base.metadata, attempt.metadata)
    discard(io, work.staging.forget_unlisted())
    if len(draft.stepwise) > 0:
        discard(io, [*work.staging.forget(draft.obsolete), *unused_files(draft, steps)])
    return result_of(str(table), steps, draft, work, time.perf_counter() - started)


def apply_updates(draft: Draft, steps: tuple[Update, ...], work: Work) -> Draft:
    """The draft after all updates, applied one after the other."""
    for number, step in enumerate(steps):
        work.step = number
        work.write_roots(draft.store)  # after a schema change, roots of earlier steps are read from storage
        draft = step.apply(draft, work)
    return draft


def is_unchanged(draft: Draft) -> bool:
    """Whether the table would stay the same, so that there is nothing to commit."""
    return len(draft.made) == 0 and draft.metadata == draft.base.metadata


@contextmanager
def before_swap(io: FileIO, steps: tuple[Update, ...], work: Work) -> Iterator[None]:
    """Runs the part of an attempt up to the swap. After CommitStateUnknown its files are kept and remembered.

    Any other error means that nothing was committed, so its files are deleted. After an interrupt they are kept, as
    after the end of the process.
    """
    try:
        yield
    except CommitStateUnknown:
        remember(steps, work)
        raise
    except Exception:
        discard(io, [*work.staging.written, *_files(steps)])
        raise


def swap_pointer(table: TablePointer, expected: str, new: str) -> Swap:
    """Swap the pointer in the catalog. Only an IcefloeError means that it was not swapped."""
    try:
        return table.catalog.swap(table.identifier, expected, new)
    except IcefloeError:
        raise
    except BaseException as error:
        return Unknown(cause=error)


def _check_not_relocated(table: TablePointer, before: Base, now: Base) -> None:
    """ConflictError if the table was relocated during a commit: files of this commit are at the old location.

    A relocation begins a new metadata log; another change of the location continues it.
    """
    logged = (entry.metadata_file for entry in now.metadata.metadata_log)
    if now.metadata.location != before.metadata.location and before.pointer not in logged:
        raise ConflictError(
            f"table {table} was relocated from {before.metadata.location} to {now.metadata.location} during this"
            " commit, whose files are at the old location. Nothing was committed; run the operation again",
            table=str(table),
        )


def _files(steps: tuple[Update, ...]) -> list[str]:
    return [file for step in steps for file in step.files]


def remember(steps: tuple[Update, ...], work: Work) -> None:
    """Remember the files of an attempt of unknown outcome: this process neither adds them again nor deletes them."""
    remember_files(work.attempt_base, [*work.staging.written, *_files(steps)], work.snapshot_ids)


def _attempts(base: Base, env: Env) -> Iterator[int]:
    """Attempt numbers, with pauses between them."""
    properties = base.metadata.properties
    for number in range(1, COMMIT_RETRIES.of(properties) + 2):
        if number > 1:
            pause(properties, number - 1, env)
        yield number


def pause(properties: Mapping[str, str], failures: int, env: Env) -> None:
    """Wait for a random time, so that concurrent commits spread out; its upper bound doubles with every failure."""
    shortest, longest = COMMIT_MIN_WAIT_MS.of(properties), COMMIT_MAX_WAIT_MS.of(properties)
    env.sleep(env.jitter() * min(longest, shortest * 2 ** min(failures - 1, 30)) / 1000)


def _resolve_unknown(table: TablePointer, pointer: str, draft: Draft, outcome: Unknown) -> None:
    """Check that a swap of unknown outcome landed.

    If it is not in the table, that proves nothing, as it may still land: then the result is CommitStateUnknown.
    """
    landed = _is_seen(table, pointer, draft)
    if not isinstance(outcome.cause, Exception):
        raise outcome.cause  # an interrupt; nothing was deleted
    if landed:
        return
    raise CommitStateUnknown(
        f"table {table}: the catalog failed during the swap, so {pointer} may or may not be committed. Nothing was"
        " deleted. Check whether it is committed before you repeat the operation",
        table=str(table),
        location=pointer,
        snapshot_ids=tuple(made.snapshot_id for made in draft.made),
    ) from outcome.cause


def _is_seen(table: TablePointer, pointer: str, draft: Draft) -> bool:
    """Whether an attempt is found in the table, loaded again; False also if it cannot be loaded."""
    try:
        return _has_landed(table.load(), pointer, draft)
    except Exception as error:
        logger.warning("could not check whether %s is committed to %s: %s", pointer, table, error)
        return False


def _has_landed(base: Base, pointer: str, draft: Draft) -> bool:
    """Whether an attempt is committed: the table has its snapshots, or its metadata file if it made none."""
    if len(draft.made) > 0:
        return all(base.metadata.snapshots.find(made.snapshot_id) is not None for made in draft.made)
    return pointer in (base.pointer, *(entry.metadata_file for entry in base.metadata.metadata_log))


def _delete_old_metadata(io: FileIO, before: TableMetadata, after: TableMetadata) -> None:
    """Delete metadata files that are no longer in the metadata log, if the table property asks for it."""
    if DELETE_AFTER_COMMIT.of(after.properties):
        kept = {entry.metadata_file for entry in after.metadata_log}
        discard(io, [entry.metadata_file for entry in before.metadata_log if entry.metadata_file not in kept])


def discard(io: FileIO, files: Iterable[str]) -> None:
    """Delete unreferenced files. Failures are logged and ignored."""
    to_delete = unreferenced(files)
    try:
        if len(to_delete) > 0:
            io.delete(to_delete)
    except Exception as error:
        logger.warning("could not delete unreferenced files: %s", error)

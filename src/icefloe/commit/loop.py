"""The commit loop: land an intent exactly once (spec: Commit Conflict Resolution and Retry).

Each attempt is a pure function of a fresh base and the intent, and ends in one swap. Files are deleted only when it is
proved that no snapshot can name them: after ``Stale``, or after a conflict found before the swap was tried. After
``Unknown`` nothing is deleted, whatever happens.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator

from icefloe.catalogs.catalog import Swapped, Unknown
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.intent import Intent
from icefloe.commit.result import CommitResult
from icefloe.commit.stage import METADATA_FOLDER, Attempt, stage
from icefloe.env import SYSTEM, Env
from icefloe.errors import CommitFailed, CommitStateUnknown, IcefloeError
from icefloe.io.file_io import FileIO
from icefloe.model.properties import COMMIT_MAX_WAIT_MS, COMMIT_MIN_WAIT_MS, COMMIT_RETRIES
from icefloe.model.snapshots import SummaryKey
from icefloe.model.version_rules import check_writable
from icefloe.tree.staging import Staging

logger = logging.getLogger(__name__)


def commit(table: TablePointer, intent: Intent, env: Env = SYSTEM) -> CommitResult:
    """Land ``intent`` on the table; ConflictError and CommitFailed say that it did not, CommitStateUnknown neither."""
    started = time.perf_counter()
    base = table.load()
    check_writable(base.metadata.format_version)
    staging = Staging(f"{base.metadata.location}/{METADATA_FOLDER}", env.new_uuid)
    snapshot_id = env.new_snapshot_id()
    for number in _attempts(base, env):
        base = base if number == 1 else table.load()
        try:
            attempt = stage(base, intent, staging, snapshot_id=snapshot_id, number=number, env=env)
            outcome = table.catalog.swap(table.identifier, base.pointer, attempt.pointer)
        except IcefloeError:  # a catalog that raises has moved nothing, and every earlier attempt was Stale
            discard(table.io, [*staging.written, *intent.files])
            raise
        if isinstance(outcome, Unknown):
            outcome = _settle(table, snapshot_id, outcome)
        if isinstance(outcome, Swapped):
            table.remember(attempt.pointer, attempt.metadata)
            logger.info("committed %s: snapshot %d, attempt %d", table, snapshot_id, number)
            return _result(table, intent, staging, attempt, number, time.perf_counter() - started)
        staging.forget_attempt(table.io)
    discard(table.io, [*staging.written, *intent.files])
    raise CommitFailed(
        f"table {table}: gave up after {number} attempts, each lost to another commit; nothing was changed. Try again,"
        f" or raise the table property {COMMIT_RETRIES.name}",
        table=str(table),
        attempts=number,
    )


def _attempts(base: Base, env: Env) -> Iterator[int]:
    """Attempt numbers, with a wait between them that is random over its whole range so that losers spread out."""
    properties = base.metadata.properties
    shortest, longest = COMMIT_MIN_WAIT_MS.of(properties), COMMIT_MAX_WAIT_MS.of(properties)
    for number in range(1, COMMIT_RETRIES.of(properties) + 2):
        if number > 1:
            env.sleep(env.jitter() * min(longest, shortest * 2 ** (number - 2)) / 1000)
        yield number


def _settle(table: TablePointer, snapshot_id: int, outcome: Unknown) -> Swapped:
    """Look whether a swap of unknown outcome landed; not seeing it proves nothing, so the answer is yes or an error."""
    try:
        landed = table.load().metadata.snapshots.find(snapshot_id) is not None
    except Exception as error:
        logger.warning("could not look for snapshot %d of %s: %s", snapshot_id, table, error)
        landed = False
    if not isinstance(outcome.cause, Exception):
        raise outcome.cause  # an interrupt stays an interrupt; nothing was deleted
    if landed:
        return Swapped()
    raise CommitStateUnknown(
        f"table {table}: the catalog failed while it moved the pointer, so snapshot {snapshot_id} may or may not be"
        " committed. Nothing was deleted. Look for the snapshot before you repeat the operation",
        table=str(table),
        snapshot_id=snapshot_id,
    ) from outcome.cause


def discard(io: FileIO, files: Iterable[str]) -> None:
    """Delete files that are proved unreferenced; failing to do so is no reason to hide what happened."""
    try:
        io.delete(list(files))
    except IcefloeError as error:
        logger.warning("left files behind: %s", error)


def _result(
    table: TablePointer, intent: Intent, staging: Staging, attempt: Attempt, number: int, seconds: float
) -> CommitResult:
    summary = attempt.snapshot.summary

    def figure(key: str) -> int:
        return int(summary.get(key, "0"))

    return CommitResult(
        table=str(table),
        operation=str(intent.operation),
        snapshot_id=attempt.snapshot.snapshot_id,
        files_added=figure(SummaryKey.ADDED_DATA_FILES),
        files_removed=figure(SummaryKey.DELETED_DATA_FILES),
        vectors_added=figure(SummaryKey.ADDED_DVS),
        rows_added=figure(SummaryKey.ADDED_RECORDS),
        rows_deleted=figure(SummaryKey.DELETED_RECORDS)
        + figure(SummaryKey.ADDED_POSITION_DELETES)
        - figure(SummaryKey.REMOVED_POSITION_DELETES),
        data_bytes_written=figure(SummaryKey.ADDED_FILES_SIZE),
        metadata_files_written=len(staging.written) - 1,  # besides the metadata file itself
        metadata_bytes_written=sum(staging.written.values()),
        attempts=number,
        seconds=seconds,
    )

"""Remembers the files of commits whose outcome is unknown (spec: Commit Conflict Resolution and Retry).

A program may repeat an operation that ended in CommitStateUnknown, with the files that it has written. If the first
commit has landed, the second must not add the files again, which would double their rows. If the second commit fails,
it must not delete files that the first one has brought into the table. This process therefore remembers the files of
such commits, by table. Another process cannot hold the same operation.

Each attempt looks up the outcome of the table's commits in the metadata that it starts from:

- ``OPEN``: the table still has the metadata file that the commit expected. A repetition expects the same file, so at
  most one of the two can land: it is allowed. Its files are not deleted if it fails.
- ``LANDED``: a snapshot of the commit is in the table, or in the metadata file that replaced the expected one. A
  repetition is refused. The record stays, as the operation may be repeated again.
- ``NOT_LANDED``: another commit replaced the expected metadata file, so this one can never land. No snapshot refers to
  its files, and the record is dropped. This is the only case in which a record is dropped.
- ``UNDECIDABLE``: the metadata log does not reach back to the expected file, or its successor cannot be read. The
  commit may have landed and its snapshot may have expired, so a repetition is refused and the record stays.

Records are small: eight bytes for each file, a hash. A table has at most ``MAX_FILES`` files on record. No record is
dropped to make room, since that could double rows or delete files in use. Instead, this process refuses to commit
further files to that table, before it moves the pointer.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from icefloe.catalogs.catalog import same_file
from icefloe.commit.base import Base
from icefloe.commit.table_location import read_metadata
from icefloe.errors import CommitFailed, ConflictError
from icefloe.model.metadata.table_metadata import TableMetadata

logger = logging.getLogger(__name__)

MAX_FILES = 1_000_000  # on record for one table, 8 MB


class Outcome(Enum):
    """What a table shows about a commit."""

    OPEN = "open"
    LANDED = "landed"
    NOT_LANDED = "not landed"
    UNDECIDABLE = "undecidable"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """A commit that tried to replace the metadata file ``expected``."""

    expected: str
    snapshot_ids: tuple[int, ...]
    hashes: NDArray[np.int64]  # of the locations of its files
    outcome: Outcome = Outcome.OPEN

    def landed_as(self, metadata: TableMetadata) -> int | None:
        """The snapshot of this commit that a table has."""
        return next((id_ for id_ in self.snapshot_ids if metadata.snapshots.find(id_) is not None), None)


RECORDS: dict[str, tuple[_Record, ...]] = {}  # by table
_LOCK = threading.Lock()


def remember_files(base: Base, files: Iterable[str], snapshot_ids: tuple[int, ...]) -> None:
    """Remember the files of a commit on this base that may or may not have landed as these snapshots.

    A commit without snapshots refers to no files.
    """
    hashes = _hashes(files)
    if len(snapshot_ids) == 0 or len(hashes) == 0:
        return
    record = _Record(expected=base.expected, snapshot_ids=snapshot_ids, hashes=hashes)
    with _LOCK:
        RECORDS[_key(base)] = (*RECORDS.get(_key(base), ()), record)


def unreferenced(files: Iterable[str]) -> list[str]:
    """The files that no commit on record may have brought into a table."""
    return _not_on_record(list(files), [record for table in list(RECORDS.values()) for record in table])


def cannot_land(files: Iterable[str]) -> list[str]:
    """The files that no commit on record may still bring into a table.

    Files of a commit that has landed are among them: the table itself shows whether it still needs them.
    """
    records = [record for table in list(RECORDS.values()) for record in table if record.outcome is not Outcome.LANDED]
    return _not_on_record(list(files), records)


def _not_on_record(files: list[str], records: list[_Record]) -> list[str]:
    if len(records) == 0:
        return files
    kept = np.isin(_hashes(files), np.concatenate([record.hashes for record in records]))
    return [file for file, is_kept in zip(files, kept.tolist(), strict=True) if not is_kept]


def check_not_landed(base: Base, files: Sequence[str]) -> None:
    """Refuse files that a commit on record has brought into the table, or may have; drop records of those that failed.

    CommitFailed if the table has ``MAX_FILES`` on record.
    """
    if _key(base) not in RECORDS:
        return
    records = _update_outcomes(base)
    if len(files) == 0:
        return
    hashes = _hashes(files)
    for record in records:
        repeated = np.flatnonzero(np.isin(hashes, record.hashes))
        if len(repeated) > 0 and record.outcome is not Outcome.OPEN:
            raise _conflict(base, record, files[int(repeated[0])])
    count = sum(len(record.hashes) for record in records)
    if count >= MAX_FILES:
        raise CommitFailed(
            f"table {base.metadata.location}: this process has {count} files on record from {len(records)} commits of"
            " unknown outcome, and keeps no more; nothing was changed. Find out why the catalog does not answer, then"
            " commit from a new process",
            table=base.metadata.location,
        )


def _update_outcomes(base: Base) -> tuple[_Record, ...]:
    """The table's records with their outcomes on this base, without those that did not land.

    Outcomes may be read from storage, so the lock is not held meanwhile. Records stay visible to other threads until
    their outcomes are known, and those that other threads add meanwhile are kept.
    """
    known = RECORDS.get(_key(base), ())
    outcomes = {id(record.hashes): _outcome(record, base) for record in known}
    with _LOCK:
        records = tuple(
            replace(record, outcome=outcomes.get(id(record.hashes), record.outcome))
            for record in RECORDS.get(_key(base), ())
            if outcomes.get(id(record.hashes)) is not Outcome.NOT_LANDED
        )
        if len(records) > 0:
            RECORDS[_key(base)] = records
        else:
            RECORDS.pop(_key(base), None)
    return records


def _outcome(record: _Record, base: Base) -> Outcome:
    """Looked up by each attempt until it is known that the commit has landed."""
    if record.outcome is Outcome.LANDED:
        return Outcome.LANDED
    if same_file(record.expected, base.expected):
        return Outcome.OPEN
    if record.landed_as(base.metadata) is not None:
        return Outcome.LANDED
    versions = [*(entry.metadata_file for entry in base.metadata.metadata_log), base.pointer]
    if record.expected not in versions[:-1]:
        return Outcome.UNDECIDABLE
    successor = versions[versions.index(record.expected) + 1]
    if successor == base.pointer:
        return Outcome.NOT_LANDED
    try:
        metadata, _ = read_metadata(base.store.io, successor, base.metadata.location, base.store.context.limits)
    except Exception as error:
        logger.warning("could not read %s, which shows whether an earlier commit has landed: %s", successor, error)
        return Outcome.UNDECIDABLE
    return Outcome.NOT_LANDED if record.landed_as(metadata) is None else Outcome.LANDED


def _conflict(base: Base, record: _Record, file: str) -> ConflictError:
    ids = ", ".join(str(id_) for id_ in record.snapshot_ids)
    if record.outcome is Outcome.LANDED:
        landed = record.landed_as(base.metadata)
        detail = (
            f"{file} is in the table already: the earlier commit whose outcome was unknown has landed as snapshot"
            f" {ids if landed is None else landed}, so there is nothing to repeat"
        )
        next_step = "Do nothing: the earlier commit has landed."
    else:
        detail = (
            f"{file} may be in the table already: an earlier commit of snapshot {ids} had an unknown outcome, and the"
            " metadata log no longer shows whether it landed. Nothing was deleted. Look for its rows; if they are"
            " missing, write them to new files"
        )
        next_step = "Look for the rows of the earlier commit; if they are missing, write them to new files."
    message = f"table {base.metadata.location}: {detail}"
    return ConflictError(
        message, files=[file], snapshot_ids=list(record.snapshot_ids), retryable=False, next_step=next_step
    )


def _key(base: Base) -> str:
    """The table; in version 1 it may have no uuid."""
    return base.metadata.location if base.metadata.table_uuid == "" else base.metadata.table_uuid


def _hashes(files: Iterable[str]) -> NDArray[np.int64]:
    return np.fromiter((hash(file) for file in files), np.int64)

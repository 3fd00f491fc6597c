"""Deletes files of a table: one implementation for expiry, orphan removal and purge (spec: Snapshots).

Only files inside the table's location are deleted, by parsed locations and, on a local disk, by real paths, so that
links do not lead elsewhere. Files are deleted in chunks. A file that the storage does not delete is reported, and the
others are deleted all the same.

A journal lists all files before the first one is deleted, as JSON lines in ``metadata/deletions``. When all are
deleted, a second file says so. A later run finishes a journal without it, as far as its files are still unreferenced.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.base import Base, TablePointer
from icefloe.commit.unknown_outcomes import cannot_land
from icefloe.engines.engine import Engine
from icefloe.engines.file_sets import REFERENCED, Kind, ReferencedFiles, distinct_files, journal_folder
from icefloe.env import Env
from icefloe.errors import AlreadyExists, IcefloeError, InputError, NoSuchFile, StorageError, is_out_of_space
from icefloe.io.file_io import FileIO
from icefloe.maintenance.containment import inside_mask, is_root
from icefloe.maintenance.reachable import on_newest, referenced_files
from icefloe.model.columns import one_array
from icefloe.model.entries import count, total
from icefloe.model.metadata.properties import GC_ENABLED
from icefloe.progress import Progress, silent

CHUNK = 1_000
DAY_MS = 24 * 60 * 60 * 1000
KEPT_MS = 30 * DAY_MS  # finished journals are kept for so long
_JOURNAL, _DONE = ".jsonl", ".done.json"

Filter = Callable[[pa.Table], pa.Table]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What was deleted and what was not; ``files`` has the columns of reachable files."""

    files: pa.Table = field(default_factory=REFERENCED.empty_table)
    outside: tuple[str, ...] = ()  # not deleted, as they are outside the table's location
    failed: tuple[str, ...] = ()  # not deleted, as the storage failed

    def count(self, kind: str) -> int:
        """The number of deleted files of a kind."""
        return count(pc.equal(self.files["kind"], kind))

    @property
    def bytes(self) -> int:
        """The bytes of deleted files whose size is known."""
        return total(self.files, "bytes")

    def with_more(self, other: Deletion) -> Deletion:
        """Both together."""
        return Deletion(
            files=pa.concat_tables([self.files, other.files]),
            outside=(*self.outside, *other.outside),
            failed=(*self.failed, *other.failed),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """The files that a run is about to delete; ``files`` has the columns of reachable files."""

    location: str | None  # None if there was no space for it
    table_uuid: str
    reason: str
    started_ms: int
    files: pa.Table


def check_deletable(base: Base) -> None:
    """InputError if the property ``gc.enabled`` forbids that files are deleted, or the location is a whole disk."""
    table = base.metadata.location if base.name is None else base.name
    if not GC_ENABLED.of(base.metadata.properties):
        raise InputError(
            f"table {table} has the property {GC_ENABLED.name}=false: other tables may use its files, so they are not"
            " deleted. Use clean=False or drop without purge, which delete no files, or change the property",
            table=table,
        )
    if is_root(base.metadata.location):
        raise InputError(
            f"table {table} is located at {base.metadata.location}, a whole disk or bucket; nothing is deleted there",
            table=table,
        )


def delete_files(
    io: FileIO, files: pa.Table, folder: str, *, progress: Progress = silent, still_free: Filter | None = None
) -> Deletion:
    """Delete the files that are inside a folder.

    Before each chunk, ``still_free`` selects from the files that are left those that are still unreferenced.
    """
    files = _conform(files)
    inside = inside_mask(one_array(files["location"]), folder)
    outside = tuple(files.filter(pc.invert(inside))["location"].to_pylist())
    free = cannot_land(files.filter(inside)["location"].to_pylist())  # not those of commits of unknown outcome
    files = files.filter(pc.and_(inside, pc.is_in(files["location"], value_set=pa.array(free, pa.string()))))
    deleted: list[pa.Table] = [REFERENCED.empty_table()]
    failed: list[str] = []
    planned = files.num_rows
    while files.num_rows > 0:
        files = files if still_free is None else still_free(files)
        chunk, files = files.slice(0, CHUNK), files.slice(CHUNK)
        not_deleted = _delete_chunk(io, chunk["location"].to_pylist())
        failed += not_deleted
        deleted.append(
            chunk.filter(pc.invert(pc.is_in(chunk["location"], value_set=pa.array(not_deleted, pa.string()))))
        )
        progress(planned - files.num_rows, planned, "files deleted")
    return Deletion(files=pa.concat_tables(deleted), outside=outside, failed=tuple(failed))


def _conform(files: pa.Table) -> pa.Table:
    """The files with the columns of reachable files; those that are missing are null."""
    missing = [name for name in REFERENCED.names if name not in files.column_names]
    for name in missing:
        files = files.append_column(name, pa.nulls(files.num_rows, REFERENCED.field(name).type))
    return files.select(REFERENCED.names)


def _delete_chunk(io: FileIO, locations: list[str]) -> list[str]:
    """Delete files; those that could not be deleted."""
    if len(locations) == 0:
        return []
    try:
        io.delete(locations)
    except (StorageError, InputError) as error:
        failed = list(error.context.get("locations", locations))
        logger.warning("could not delete %d of %d files: %s", len(failed), len(locations), error)
        return failed
    return []


class StillFree:
    """Selects the files that the newest state of a table does not reference; reads it again only if it has changed.

    Each call is given files that an earlier call returned. ``checked`` is the pointer of a state that certainly
    references none of the files.
    """

    def __init__(self, table: TablePointer, engine: Engine, checked: str | None = None) -> None:
        self._table = table
        self._engine = engine
        self.checked = checked

    def __call__(self, files: pa.Table) -> pa.Table:
        """The unreferenced files; an error if the table cannot be read."""
        return on_newest(self._table, lambda base: self._free(files, base))

    def _free(self, files: pa.Table, base: Base) -> pa.Table:
        if base.pointer == self.checked or files.num_rows == 0:
            return files
        named = ReferencedFiles(store=base.store, table_location=base.metadata.location, files=files)
        free = self._engine.file_sets.subtract(named, referenced_files(base), check=False)
        self.checked = base.pointer
        return free.files


def write_journal(base: Base, files: pa.Table, reason: str, env: Env) -> Journal:
    """Write a journal of files that are about to be deleted; durable on return.

    On a full disk there is none, as the space that the files take is needed more. If the run then ends early, the files
    that are left are orphans.
    """
    started = env.now_ms()
    folder = journal_folder(base.metadata.location)
    location = f"{folder}/{started:015d}-{env.new_uuid()}{_JOURNAL}"
    journal = Journal(
        location=location,
        table_uuid=base.metadata.table_uuid,
        reason=reason,
        started_ms=started,
        files=_conform(files),
    )
    header = {
        "table": base.name,
        "table-uuid": journal.table_uuid,
        "reason": reason,
        "started-ms": started,
        "metadata-file": base.pointer,
        "files": files.num_rows,
    }
    lines = [header, *journal.files.to_pylist(), {"end": files.num_rows}]
    try:
        base.store.io.write_new(location, msgspec.json.Encoder().encode_lines(lines))
    except StorageError as error:
        if not is_out_of_space(error):
            raise
        logger.warning("files of %s are deleted without a journal, as the disk is full: %s", base.name, error)
        return replace(journal, location=None)
    return journal


def complete(io: FileIO, journal: Journal, deletion: Deletion, env: Env) -> None:
    """Record that the work of a journal is done; unless files failed, which a later run tries again."""
    if len(deletion.failed) > 0 or journal.location is None:
        return
    done = {
        "finished-ms": env.now_ms(),
        "deleted": deletion.files.num_rows,
        "bytes": deletion.bytes,
        "outside": deletion.outside,
    }
    try:
        io.write_new(_done_of(journal.location), msgspec.json.encode(done))
    except AlreadyExists:
        logger.info("another run has completed the journal %s", journal.location)
    except StorageError as error:  # a later run will
        logger.warning("could not complete the journal %s: %s", journal.location, error)


def withdraw(io: FileIO, journal: Journal) -> Journal:
    """Remove a journal of which nothing was done; its files may still be deleted without it."""
    if journal.location is not None:
        _delete_chunk(io, [journal.location])
    return replace(journal, location=None)


def unfinished_journals(base: Base) -> list[Journal]:
    """The journals of earlier runs that were not completed, oldest first; those that cannot be read are left out."""
    listed = {info.location: info for info in base.store.io.list(journal_folder(base.metadata.location))}
    found = (
        _read_journal(base, location)
        for location in sorted(listed)
        if location.endswith(_JOURNAL) and _done_of(location) not in listed
    )
    return [journal for journal in found if journal is not None]


def journal_files(base: Base) -> pa.Table:
    """The files of all journals, as metadata files."""
    listed = list(base.store.io.list(journal_folder(base.metadata.location)))
    kinds = pa.repeat(Kind.METADATA.value, len(listed))
    locations = pa.array([info.location for info in listed], pa.string())
    sizes = pa.array([info.size for info in listed], pa.int64())
    return _conform(pa.table([locations, kinds, sizes], names=["location", "kind", "bytes"]))


def finish_journals(table: TablePointer, env: Env, engine: Engine, progress: Progress = silent) -> Deletion:
    """Delete what earlier runs left, as far as it is still unreferenced, and remove old journals."""
    base = table.load()
    io, finished = base.store.io, Deletion()
    journals = unfinished_journals(base)
    free = StillFree(table, engine)
    every = free(distinct_files(journal.files for journal in journals))["location"]
    for journal in journals:
        wanted = journal.files.filter(pc.is_in(journal.files["location"], value_set=one_array(every)))
        still_free = StillFree(table, engine, free.checked)
        deletion = delete_files(io, wanted, base.metadata.location, progress=progress, still_free=still_free)
        logger.info("finished the journal %s: deleted %d files", journal.location, deletion.files.num_rows)
        # The run that wrote it may be about to commit: then its files are still referenced.
        if wanted.num_rows == journal.files.num_rows or journal.started_ms < env.now_ms() - DAY_MS:
            complete(io, journal, deletion, env)
        finished = finished.with_more(deletion)
    _remove_old_journals(base, env)
    return finished


def _remove_old_journals(base: Base, env: Env) -> None:
    """Remove journals that were completed long ago, and those that were not even completely written."""
    io, oldest = base.store.io, env.now_ms() - KEPT_MS
    names = {info.location for info in io.list(journal_folder(base.metadata.location)) if info.modified_ms < oldest}
    journals = sorted(name for name in names if name.endswith(_JOURNAL))
    finished = [name for name in journals if _done_of(name) in names]
    torn = [name for name in journals if _done_of(name) not in names and _is_torn(base, name)]
    left = {_done_of(name) for name in _delete_chunk(io, [*finished, *torn])}
    # Last: a journal without its marker would be worked on again.
    _delete_chunk(io, sorted(name for name in names if name.endswith(_DONE) and name not in left))


def _is_torn(base: Base, location: str) -> bool:
    try:
        return _decode_journal(location, base.store.read(location)) is None
    except IcefloeError:
        return False


def _done_of(journal: str) -> str:
    return journal.removesuffix(_JOURNAL) + _DONE


def _read_journal(base: Base, location: str) -> Journal | None:
    """A journal; none if it is incomplete, unreadable or of another table: then nothing is deleted because of it."""
    try:
        journal = _decode_journal(location, base.store.read(location))
    except NoSuchFile:  # another run has removed it
        return None
    except IcefloeError as error:
        logger.warning("could not read the journal %s: %s", location, error)
        return None
    return None if journal is None or journal.table_uuid != base.metadata.table_uuid else journal


def _decode_journal(location: str, data: bytes) -> Journal | None:
    """A journal; none if it was not completely written, so that its run deleted nothing."""
    try:
        lines = [msgspec.json.decode(line, type=dict[str, Any]) for line in data.splitlines() if line != b""]
        header, rows, end = lines[0], lines[1:-1], lines[-1]
        files = pa.Table.from_pylist(rows, schema=REFERENCED)
        if end != {"end": len(rows)} or files["location"].null_count > 0:
            return None
        return Journal(
            location=location,
            table_uuid=header["table-uuid"],
            reason=str(header["reason"]),
            started_ms=int(header["started-ms"]),
            files=files,
        )
    except MemoryError:
        raise
    except (msgspec.DecodeError, IndexError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        logger.warning("the journal %s is not used: %s", location, error)
        return None

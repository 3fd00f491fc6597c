"""Finds and deletes files in a table's location that no metadata references (spec: Snapshots, File System Operations).

Files are left by writers that died. A writer that is alive has such files too, until it commits, so only files older
than some days are orphans. Whatever is not certain is refused: locations that may be two spellings of one file,
metadata of another table below the location, more orphans than a share of all files.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.json.gzip_members import beginning
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.table_location import is_inside, read_metadata
from icefloe.engines.engine import Engine
from icefloe.engines.file_sets import METADATA_NAME, ListedFolder, ReferencedFiles, Unreferenced
from icefloe.env import Env
from icefloe.errors import CorruptFile, IcefloeError, InputError, NoSuchFile
from icefloe.io.local import local_path
from icefloe.maintenance.containment import check_no_alias, inside_mask
from icefloe.maintenance.deletions import (
    DAY_MS,
    Deletion,
    StillFree,
    check_deletable,
    complete,
    delete_files,
    finish_journals,
    unfinished_journals,
    write_journal,
)
from icefloe.maintenance.reachable import on_newest, referenced_files
from icefloe.model.columns import one_array
from icefloe.model.entries import count, total
from icefloe.model.locations import FILE, S3, parse_location
from icefloe.model.metadata.retention import at_time
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.text.figures import Figures
from icefloe.progress import Progress, silent
from icefloe.scan.select import to_epoch_ms

_DEFAULT_DAYS = 3
_SHOWN = 20
_TEMPORARY = "_temporary"  # the folder of a Spark write, empty when it ends; object stores have no folders
_HEAD = 4096  # bytes of a metadata file that usually name the table
_UUID = re.compile(rb'^\s*\{[^{}\[\]]*?"table-uuid"\s*:\s*"([^"\\]*)"')

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanResult(Figures):
    """The result of an orphan removal.

    >>> OrphanResult(table="db.t", files=3, bytes=4096, still_used=1)
    deleted 3 orphan files of db.t (4096 bytes), 0 files of earlier runs; 1 kept, 0 failed
    """

    table: str
    files: int = 0
    bytes: int = 0
    finished_files: int = 0  # deleted for earlier runs that were interrupted
    folders: int = 0  # empty ones of Spark writes that were killed
    still_used: int = 0  # planned, but referenced or changed since
    failed: tuple[str, ...] = ()  # not deleted, as the storage failed
    seconds: float = 0.0

    def __repr__(self) -> str:
        return (
            f"deleted {self.files} orphan files of {self.table} ({self.bytes} bytes), {self.finished_files} files of"
            f" earlier runs; {self.still_used} kept, {len(self.failed)} failed"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OrphanPlan:
    """The files that no metadata references; ``execute`` deletes them.

    ``files`` has columns ``location``, ``kind`` (a guess by the name), ``bytes`` and ``modified_ms``.
    """

    table: str
    location: str  # the folder that was listed
    older_than_ms: int
    files: pa.Table
    listed: int  # files in the folder
    young: int  # unreferenced files that are too young
    unfinished: int  # files that earlier runs were about to delete
    planned_ms: int
    folders: tuple[str, ...] = ()  # empty ones of Spark writes that were killed
    _pointer: TablePointer = field(compare=False)
    _env: Env = field(compare=False)
    _engine: Engine = field(compare=False)

    def execute(self, progress: Progress = silent) -> OrphanResult:
        """Delete the files that are still unreferenced and unchanged."""
        return _execute(self, progress)

    @property
    def bytes(self) -> int:
        """The bytes of the files."""
        return total(self.files, "bytes")

    def as_dict(self) -> dict[str, object]:
        """Everything that the plan shows, as plain values."""
        return {
            "table": self.table,
            "location": self.location,
            "older_than_ms": self.older_than_ms,
            "files": self.files.to_pylist(),
            "bytes": self.bytes,
            "listed": self.listed,
            "young": self.young,
            "unfinished": self.unfinished,
            "folders": list(self.folders),
        }

    def __repr__(self) -> str:
        lines = [
            f"delete {self.files.num_rows} of {self.listed} files in {self.location} ({self.bytes} bytes) that"
            f" {self.table} does not reference and that are older than {at_time(self.older_than_ms)}"
        ]
        for row in self.files.slice(0, _SHOWN).to_pylist():
            days = (self.planned_ms - row["modified_ms"]) / DAY_MS
            lines.append(f"  {row['location']}: {row['kind']}, {row['bytes']} bytes, {days:.1f} days old")
        if self.files.num_rows > _SHOWN:
            lines.append(f"  and {self.files.num_rows - _SHOWN} more")
        if len(self.folders) > 0:
            lines.append(f"remove {len(self.folders)} empty folders of Spark writes that were killed")
        if self.young > 0:
            lines.append(f"keep {self.young} younger files: a writer may be about to commit them")
        if self.unfinished > 0:
            lines.append(f"finish earlier runs that were about to delete {self.unfinished} files")
        return "\n".join(lines)


def plan_orphans(
    table: TablePointer,
    env: Env,
    engine: Engine,
    *,
    older_than: datetime | str | None = None,
    location: str | None = None,
    allow_recent: bool = False,
    max_share: float = 0.2,
) -> OrphanPlan:
    """Plan the removal of orphan files; nothing is changed."""
    now = env.now_ms()
    cutoff = now - _DEFAULT_DAYS * DAY_MS if older_than is None else to_epoch_ms(older_than)
    if cutoff > now - DAY_MS and not allow_recent:
        raise InputError(
            f"older_than={at_time(cutoff)} is less than 24 hours ago: a writer may not have committed its files yet."
            " Choose an earlier time; allow_recent=True if no writer is active",
            older_than_ms=cutoff,
        )
    if not 0 <= max_share <= 1:
        raise InputError(f"max_share={max_share!r}: give a share of the files from 0 to 1")
    base = table.load()
    check_deletable(base)
    folder = _folder(base, location)
    found = _find(table, engine, folder, min(cutoff, now))
    share = found.files.num_rows / max(1, found.listed)
    if share > max_share:
        raise InputError(
            f"table {table}: {found.files.num_rows} of {found.listed} files in {folder} are unreferenced, such as"
            f" {found.files['location'][0].as_py()}. This is more than {max_share:.0%}, so the location may be wrong."
            f" If it is right, plan again with max_share={share:.2f} or more",
            table=str(table),
            files=found.files.num_rows,
            listed=found.listed,
        )
    return OrphanPlan(
        table=str(table),
        location=folder,
        older_than_ms=min(cutoff, now),
        files=found.files,
        listed=found.listed,
        young=found.young,
        unfinished=sum(journal.files.num_rows for journal in unfinished_journals(base)),
        planned_ms=now,
        folders=_abandoned_folders(base.metadata, folder, min(cutoff, now)),
        _pointer=table,
        _env=env,
        _engine=engine,
    )


def _folder(base: Base, location: str | None) -> str:
    """The folder to list: the table's location or a folder in it."""
    folder = base.metadata.location.rstrip("/")
    if location is None:
        return folder
    given = location.rstrip("/")
    if is_inside(folder, given, same_schemes=S3) or given == folder:
        # Spelled like the table's location, as the storage lists files.
        inner = given[len(folder) :] if given.startswith(folder) else None
        if inner is not None:
            return folder + inner
    raise InputError(
        f"location {location} is not in {folder}, the location of the table; orphans are removed only there",
        location=location,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    base: Base  # the state that references none of the files
    files: pa.Table
    listed: int
    young: int


def _find(table: TablePointer, engine: Engine, folder: str, cutoff: int) -> _Found:
    """The orphans in a folder. It is listed before the newest state is loaded, which then has all listed commits."""
    loaded: list[Base] = []

    def kept() -> ReferencedFiles:
        loaded.append(table.load())
        return referenced_files(loaded[-1])

    def found_after(before: Base) -> Unreferenced:
        listing = ListedFolder(io=before.store.io, folder=folder, table_location=before.metadata.location)
        return engine.file_sets.unreferenced(listing, kept)

    found = on_newest(table, found_after)
    base = loaded[-1]
    check_no_alias(found, base.metadata.location)
    candidates = found.files
    _check_own(base, candidates)
    is_old = pc.less(candidates["modified_ms"], cutoff)
    inside = inside_mask(one_array(candidates["location"]), base.metadata.location)
    old = candidates.filter(pc.and_(is_old, inside))
    young = candidates.num_rows - count(is_old)
    return _Found(base=base, files=old, listed=found.listed, young=young)


def _check_own(base: Base, candidates: pa.Table) -> None:
    """Refuse if there is metadata of another table: then its files look unreferenced too."""
    names = candidates["location"].filter(pc.match_substring_regex(candidates["location"], METADATA_NAME))
    for location in names.to_pylist():
        found = _table_uuid(base, location)
        if found is not None and (found == "" or found != base.metadata.table_uuid):
            raise InputError(
                f"table {base.name}: {location} is metadata of another table, with uuid {found!r} and not"
                f" {base.metadata.table_uuid!r}. Its files cannot be distinguished from orphans. Move that table to a"
                " location of its own, or remove the file if the table does not exist any more",
                location=location,
            )


def _table_uuid(base: Base, location: str) -> str | None:
    """The uuid that a metadata file states; empty if it states none, none if it is no complete metadata file."""
    io, folder = base.store.io, base.metadata.location
    try:
        match = _UUID.match(beginning(io.read_range(location, 0, min(io.size(location), _HEAD)), _HEAD))
        if match is not None:
            return match[1].decode(errors="replace")
        return read_metadata(io, location, folder, base.store.context.limits)[0].table_uuid
    except (NoSuchFile, CorruptFile):  # it was deleted, or a writer died while it wrote it
        return None
    except IcefloeError as error:
        logger.warning("cannot read %s, so it may be metadata of another table: %s", location, error)
        return ""


def _execute(plan: OrphanPlan, progress: Progress) -> OrphanResult:
    started, table, env, engine = time.perf_counter(), plan._pointer, plan._env, plan._engine
    check_deletable(table.load())
    finished = finish_journals(table, env, engine, progress)
    deletion, found = Deletion(), None
    if plan.files.num_rows > 0:
        found = _find(table, engine, plan.location, plan.older_than_ms)
    files = plan.files.slice(0, 0) if found is None else _still_orphans(plan, found.files)
    if found is not None and files.num_rows > 0:
        base = found.base
        journal = write_journal(base, files, "orphans", env)
        still_free = StillFree(table, engine, base.pointer)
        deletion = delete_files(base.store.io, files, base.metadata.location, progress=progress, still_free=still_free)
        complete(base.store.io, journal, deletion, env)
    still_empty = _abandoned_folders(table.held().metadata, plan.location, plan.older_than_ms)
    return OrphanResult(
        table=plan.table,
        folders=_remove_folders(sorted({*plan.folders} & {*still_empty})),
        files=deletion.files.num_rows,
        bytes=deletion.bytes + finished.bytes,
        finished_files=finished.files.num_rows,
        still_used=plan.files.num_rows - deletion.files.num_rows - len(deletion.failed),
        failed=(*finished.failed, *deletion.failed),
        seconds=time.perf_counter() - started,
    )


def _still_orphans(plan: OrphanPlan, now: pa.Table) -> pa.Table:
    """The planned files that were not changed since."""
    place = pc.index_in(plan.files["location"], value_set=one_array(now["location"]))
    modified = pc.take(now["modified_ms"], place)
    return plan.files.filter(pc.fill_null(pc.equal(modified, plan.files["modified_ms"]), False))


def _abandoned_folders(metadata: TableMetadata, folder: str, older_than_ms: int) -> tuple[str, ...]:
    """The temporary folders of writes, in a folder of the table, that have no file and did not change since a time."""
    data = metadata.data_location.rstrip("/")
    if parse_location(data).scheme != FILE:
        return ()
    try:
        with os.scandir(local_path(data)) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    found = [f"{data}/{name}/{_TEMPORARY}" for name in names if _is_abandoned(f"{data}/{name}", older_than_ms)]
    inside = inside_mask(pa.array([f"{each}/file" for each in found], pa.string()), folder).to_pylist()
    return tuple(each for each, is_inside in zip(found, inside, strict=True) if is_inside)


def _is_abandoned(write: str, older_than_ms: int) -> bool:
    """Whether the temporary folder of a write is there, empty at every depth, and old."""
    path = os.path.join(local_path(write), _TEMPORARY)
    if os.path.islink(path) or not os.path.isdir(path):
        return False
    for inner, folders, files in os.walk(path):
        is_linked = any(os.path.islink(os.path.join(inner, each)) for each in folders)
        if len(files) > 0 or is_linked or os.stat(inner).st_mtime_ns // 1_000_000 >= older_than_ms:
            return False
    return True


def _remove_folders(folders: Iterable[str]) -> int:
    """Remove empty folders, and the folders of their writes if they are empty too; how many temporary ones went.

    A folder that got a file meanwhile stays, as the storage removes empty ones only.
    """
    removed = 0
    for folder in folders:
        path = local_path(folder)
        with suppress(OSError):
            for inner, _, _ in os.walk(path, topdown=False):
                os.rmdir(inner)
            removed += 1
            os.rmdir(os.path.dirname(path))
    return removed

"""Drops a table and deletes its files.

Deletes only files that the table's own metadata references and that are inside its location, and only if the catalog
has no other name for the table. All metadata is read before the table is dropped, so a table that cannot be purged is
not changed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.catalogs.catalog import Catalog
from icefloe.catalogs.names import Identifier, dotted
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.table_location import location_in, read_metadata
from icefloe.engines.file_sets import Kind
from icefloe.errors import FormatError, IcefloeError, InputError, NotFound
from icefloe.io.file_io import FileIO
from icefloe.maintenance.deletions import check_deletable, delete_files, journal_files, unfinished_journals
from icefloe.maintenance.reachable import reachable_files
from icefloe.model.locations import S3, same_location
from icefloe.model.text.figures import Figures

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropResult(Figures):
    """The result of dropping a table: counts of deleted files, and the files that were not deleted.

    >>> DropResult(table="db.t", metadata_location="file:///wh/db/t/metadata/00003-x.metadata.json")
    dropped db.t; its files stay, its last metadata is file:///wh/db/t/metadata/00003-x.metadata.json
    """

    table: str
    metadata_location: str | None  # to register the table again, unless it was purged
    purged: bool = False
    data_files: int = 0
    delete_files: int = 0
    manifests: int = 0
    metadata_files: int = 0
    statistics_files: int = 0
    left: tuple[str, ...] = ()  # not deleted, as they are outside the table's location
    failed: tuple[str, ...] = ()  # not deleted, as the storage failed

    def __repr__(self) -> str:
        if not self.purged:
            return f"dropped {self.table}; its files stay, its last metadata is {self.metadata_location}"
        return (
            f"dropped {self.table} and deleted {self.data_files} data files, {self.delete_files} delete files, "
            f"{self.manifests} manifests, {self.metadata_files} metadata files, {self.statistics_files} statistics "
            f"files; {len(self.left)} left outside its location, {len(self.failed)} failed"
        )


def drop_and_purge(
    catalog: Catalog, identifier: Identifier, io: FileIO, settings: Mapping[str, str] | None = None
) -> DropResult:
    """Drop a table, then delete the files that its metadata references and that are inside its location.

    ``settings`` are those of the catalog, such as the roots from which files may be read.
    """
    location = location_in(catalog, identifier)
    table = TablePointer(catalog, identifier, io, settings=settings, location=location)
    base = table.load()
    check_deletable(base)
    shared = _other_names(catalog, identifier, base)
    if len(shared) > 0:
        raise InputError(
            f"table {table} is also known as {', '.join(shared)}, which has the same files. Drop it without purge",
            table=str(table),
        )
    files = reachable_files(base, hidden=True)
    last = catalog.drop(identifier)
    if len(_other_names(catalog, identifier, base)) > 0:  # registered in the meantime
        return DropResult(table=dotted(identifier), metadata_location=last)
    if last is not None and last != base.pointer:  # another commit was faster, or the catalog moved the file
        files = _with_last(table, base, files, last, location)
    return _delete(files, base, table=dotted(identifier), last=last)


def _other_names(catalog: Catalog, identifier: Identifier, base: Base) -> list[str]:
    """Other names of the table, among tables whose metadata is in the same folder."""
    folder = base.pointer.rpartition("/")[0]
    others = catalog.others(identifier).items()
    in_folder = [(name, pointer) for name, pointer in others if _is_folder_of(folder, pointer)]
    return sorted(name for name, pointer in in_folder if _is_same_table(base, pointer))


def _is_folder_of(folder: str, pointer: str) -> bool:
    other = pointer.rpartition("/")[0]
    try:
        return other == folder or same_location(other, folder, same_schemes=S3)
    except FormatError:
        return False


def _is_same_table(base: Base, pointer: str) -> bool:
    if pointer == base.pointer:
        return True
    try:
        metadata, _ = read_metadata(base.store.io, pointer)
    except NotFound:
        return False  # it cannot be read either
    except IcefloeError:
        return True  # it may be the same
    return metadata.table_uuid == base.metadata.table_uuid


def _with_last(table: TablePointer, base: Base, files: pa.Table, last: str, location: str | None) -> pa.Table:
    """The files with those of the last commit, which was made while the table was dropped."""
    try:
        metadata, _ = read_metadata(base.store.io, last, location)
        more = reachable_files(table.remember(last, metadata), hidden=True)
    except IcefloeError as error:
        logger.warning("files of the last commit to %s may not be deleted: %s", table, error)
        return files
    known = pc.is_in(more["location"], value_set=files["location"].combine_chunks())
    return pa.concat_tables([files, more.filter(pc.invert(known))])


def _of_journals(base: Base) -> list[pa.Table]:
    """What earlier runs were about to delete, and their journals."""
    try:
        return [*(journal.files for journal in unfinished_journals(base)), journal_files(base)]
    except IcefloeError as error:
        logger.warning("the journals of %s are not deleted: %s", base.metadata.location, error)
        return []


def _delete(files: pa.Table, base: Base, *, table: str, last: str | None) -> DropResult:
    files = pa.concat_tables([files, *_of_journals(base)])
    deletion = delete_files(base.store.io, files, base.metadata.location)
    return DropResult(
        table=table,
        metadata_location=last,
        purged=True,
        data_files=deletion.count(Kind.DATA.value),
        delete_files=deletion.count(Kind.DELETES.value),
        manifests=deletion.count(Kind.MANIFEST.value),
        metadata_files=deletion.count(Kind.METADATA.value),
        statistics_files=deletion.count(Kind.STATISTICS.value),
        left=deletion.outside,
        failed=deletion.failed,
    )

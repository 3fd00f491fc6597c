"""Dropping a table together with its files.

Only files that the table's own metadata names are deleted, only those inside its location, and only when its catalog
does not point to it by another name. Everything that has to be read is read before the table is dropped, so one that
cannot be purged stays whole.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.catalogs.catalog import Catalog
from icefloe.catalogs.names import Identifier, dotted
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.table_location import place_in, read_metadata
from icefloe.errors import FormatError, IcefloeError, InputError, NotFound, StorageError
from icefloe.io.file_io import FileIO
from icefloe.maintenance.reachable import Kind, reachable_files
from icefloe.model.locations import S3, contains, parse_location, same_location

GC_ENABLED = "gc.enabled"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropResult:
    """What dropping a table did: figures of the files that were deleted, and the files that were not.

    >>> DropResult(table="db.t", metadata_location="file:///wh/db/t/metadata/00003-x.metadata.json")
    dropped db.t; its files stay, its last metadata is file:///wh/db/t/metadata/00003-x.metadata.json
    """

    table: str
    metadata_location: str | None  # with it the table can be registered again, unless it was purged
    purged: bool = False
    data_files: int = 0
    delete_files: int = 0
    manifests: int = 0
    metadata_files: int = 0
    statistics_files: int = 0
    left: tuple[str, ...] = ()  # outside the table's location, so not deleted
    failed: tuple[str, ...] = ()  # storage did not delete them

    def as_dict(self) -> dict[str, object]:
        """All figures by name."""
        return asdict(self)

    def __repr__(self) -> str:
        if not self.purged:
            return f"dropped {self.table}; its files stay, its last metadata is {self.metadata_location}"
        return (
            f"dropped {self.table} and deleted {self.data_files} data files, {self.delete_files} delete files, "
            f"{self.manifests} manifests, {self.metadata_files} metadata files, {self.statistics_files} statistics "
            f"files; {len(self.left)} left outside its location, {len(self.failed)} failed"
        )


def drop_and_purge(catalog: Catalog, identifier: Identifier, io: FileIO) -> DropResult:
    """Drop a table, then delete the files that its metadata names and that lie inside its location."""
    place = place_in(catalog, identifier)
    table = TablePointer(catalog, identifier, io, place=place)
    base = table.load()
    if base.metadata.properties.get(GC_ENABLED, "true").lower() == "false":
        raise InputError(
            f"table {table} has the property {GC_ENABLED}=false: its files may belong to others, so they are not "
            "deleted. Drop it without purge, or change the property",
            table=str(table),
        )
    shared = _other_names(catalog, identifier, base)
    if len(shared) > 0:
        raise InputError(
            f"table {table} is also known as {', '.join(shared)}, which has the same files. Drop it without purge",
            table=str(table),
        )
    files = reachable_files(base, hidden=True)
    last = catalog.drop(identifier)
    if len(_other_names(catalog, identifier, base)) > 0:  # one came meanwhile
        return DropResult(table=dotted(identifier), metadata_location=last)
    if last is not None and last != base.pointer:  # another commit came first, or the catalog keeps it elsewhere
        files = _with_last(table, base, files, last, place)
    return _delete(files, base, table=dotted(identifier), last=last)


def _other_names(catalog: Catalog, identifier: Identifier, base: Base) -> list[str]:
    """What else the table is called, told by the tables whose metadata is in the same folder."""
    folder = base.pointer.rpartition("/")[0]
    others = catalog.others(identifier).items()
    beside = [(name, pointer) for name, pointer in others if _is_folder_of(folder, pointer)]
    return sorted(name for name, pointer in beside if _is_same_table(base, pointer))


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
        return False  # and nobody can read it
    except IcefloeError:
        return True  # which may be so
    return metadata.table_uuid == base.metadata.table_uuid


def _with_last(table: TablePointer, base: Base, files: pa.Table, last: str, place: str | None) -> pa.Table:
    try:
        metadata, _ = read_metadata(base.store.io, last, place)
        more = reachable_files(table.remember(last, metadata), hidden=True)
    except IcefloeError as error:
        logger.warning("files of the last commit to %s may be left behind: %s", table, error)
        return files
    known = pc.is_in(more["location"], value_set=files["location"].combine_chunks())
    return pa.concat_tables([files, more.filter(pc.invert(known))])


def _delete(files: pa.Table, base: Base, *, table: str, last: str | None) -> DropResult:
    inside = _inside(files["location"].combine_chunks(), base.metadata.location)
    doomed = files.filter(inside)
    failed: tuple[str, ...] = ()
    try:
        base.store.io.delete(doomed["location"].to_pylist())
    except StorageError as error:
        failed = tuple(error.context.get("locations", ()))
        logger.warning("left files behind: %s", error)
    gone = doomed.filter(pc.invert(pc.is_in(doomed["location"], value_set=pa.array(failed, pa.string()))))
    counts = {row["values"]: row["counts"] for row in pc.value_counts(gone["kind"]).to_pylist()}
    return DropResult(
        table=table,
        metadata_location=last,
        purged=True,
        data_files=counts.get(Kind.DATA.value, 0),
        delete_files=counts.get(Kind.DELETES.value, 0),
        manifests=counts.get(Kind.MANIFEST.value, 0),
        metadata_files=counts.get(Kind.METADATA.value, 0),
        statistics_files=counts.get(Kind.STATISTICS.value, 0),
        left=tuple(files.filter(pc.invert(inside))["location"].to_pylist()),
        failed=failed,
    )


def _inside(locations: pa.Array, folder: str) -> pa.Array:
    """Which locations lie in the folder; those that are spelled like it and hold no dots are told without parsing."""
    if len(parse_location(folder).segments) == 0:
        return pa.repeat(False, len(locations))  # a whole disk or bucket is nobody's table
    plain = pc.and_(
        pc.starts_with(locations, folder.rstrip("/") + "/"),
        pc.invert(pc.match_substring_regex(locations, r"(?i)/(\.|%2e){1,2}(/|$)|//.*//|/$|\x00")),
    )
    others = [location for location in locations.filter(pc.invert(plain)).to_pylist() if _is_inside(folder, location)]
    return pc.or_(plain, pc.is_in(locations, value_set=pa.array(others, pa.string())))


def _is_inside(folder: str, location: str) -> bool:
    try:
        return contains(folder, location)
    except FormatError:
        return False

"""Executes a relocation: copies and rewrites files, then swaps the pointer (spec: Optimistic Concurrency).

The order is that of a commit: data files, delete files, manifests, roots, the metadata file, the swap. Rewritten files
have names with a digest of their content, and files appear completely or not at all. So a run that was interrupted
leaves the table unchanged, and the next one reuses what is there.
"""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.catalogs.catalog import Stale, Unknown, same_file
from icefloe.codecs.json.table_metadata import encode_metadata
from icefloe.codecs.manifest.manifests import AVRO_MAGIC
from icefloe.codecs.manifest.relocated import (
    at_location,
    relocated_leaf,
    relocated_manifest,
    relocated_manifest_list,
    relocated_root,
)
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.loop import swap_pointer
from icefloe.commit.stage import METADATA_FOLDER, metadata_codec, metadata_name
from icefloe.engines.file_sets import list_files
from icefloe.errors import (
    AlreadyExists,
    CommitStateUnknown,
    ConflictError,
    InputError,
    StorageError,
    UnsupportedError,
)
from icefloe.io.contained import contain
from icefloe.io.file_io import FileIO
from icefloe.io.select import file_io
from icefloe.io.storage_locations import scheme_family
from icefloe.maintenance.relocate.delete_files import PUFFIN, moved_deletes, with_new_sizes
from icefloe.maintenance.relocate.target import check_unused
from icefloe.model.columns import one_array
from icefloe.model.entries import total
from icefloe.model.location_columns import inner_paths
from icefloe.model.locations import parse_location
from icefloe.model.metadata.snapshots import Snapshots
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.moved_locations import REWRITTEN, Moves
from icefloe.model.text.figures import Figures
from icefloe.progress import Progress
from icefloe.tree.root import Leaf

COPIES = pa.schema([pa.field("source", pa.string()), pa.field("target", pa.string()), pa.field("bytes", pa.int64())])

_THREADS = 8
_DIGEST = re.compile(r"-at-[0-9a-f]{32}$")
_Row = dict[str, str | int | None]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelocateResult(Figures):
    """The result of a relocation: what was copied and rewritten, and where the table is now.

    >>> RelocateResult(table="db.t", former_location="file:///a/t", location="s3://b/t", metadata_location="...")
    relocated db.t to s3://b/t: copied 0 files (0 bytes), rewrote 0 manifests, 0 delete files; its catalog entry is ...
    """

    table: str
    former_location: str
    location: str
    metadata_location: str
    switched: bool = True
    snapshots: int = 0
    copied_files: int = 0
    copied_bytes: int = 0
    present_files: int = 0  # were at the new location already, with the right size
    manifests: int = 0
    delete_files: int = 0
    seconds: float = 0.0

    def __repr__(self) -> str:
        entry = (
            "its catalog entry is switched"
            if self.switched
            else f"its catalog entry is not switched; register {self.metadata_location} to use the copy"
        )
        return (
            f"relocated {self.table} to {self.location}: copied {self.copied_files} files ({self.copied_bytes} bytes),"
            f" rewrote {self.manifests} manifests, {self.delete_files} delete files; {entry}. The files at"
            f" {self.former_location} are unchanged: delete that folder with the tool of its storage once no reader"
            " and no other catalog uses it"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A planned relocation: ``base`` is the table with the snapshots that are relocated."""

    table: TablePointer
    base: Base
    moves: Moves
    copies: pa.Table
    deletes: dict[str, str]  # delete files to rewrite, with their formats
    leaves: tuple[Leaf, ...]
    roots: tuple[str, ...]
    copy: bool
    switch: bool
    expected: str  # the pointer that the plan was made for


def execute(work: Work, progress: Progress) -> RelocateResult:
    """Copy or check the files, rewrite the others, write the metadata file and swap the pointer."""
    started, table, base = time.perf_counter(), work.table, work.base
    _check_current(work)
    storage = _storage(table, base, work.moves.new)
    io = contain(storage, work.moves.new, table.settings)
    check_unused(table, base, io, work.moves.new)
    missing = _missing(work, io)
    if work.copy:
        _each("files copied", _copier(base.store.io, io), missing.to_pylist(), progress)
        present = work.copies.num_rows - missing.num_rows
    else:
        _check_copied(table, missing)
        present = work.copies.num_rows
    moves = _rewrite_deletes(work, io, progress)
    moves = _rewrite_leaves(work, io, moves, progress)
    moves = _rewrite_roots(work, io, moves, progress)
    metadata = relocated_metadata(_with_new_sizes(work, moves), moves)
    pointer = _write_metadata(metadata, base.pointer, io)
    _check_current(work)
    if work.switch:
        _switch(work, pointer, metadata, storage)
    return RelocateResult(
        table=str(table),
        former_location=work.moves.old,
        location=work.moves.new,
        metadata_location=pointer,
        switched=work.switch,
        snapshots=len(metadata.snapshots),
        copied_files=missing.num_rows if work.copy else 0,
        copied_bytes=total(missing, "bytes") if work.copy else 0,
        present_files=present,
        manifests=len(work.leaves) + len(work.roots),
        delete_files=len(work.deletes),
        seconds=time.perf_counter() - started,
    )


def _check_current(work: Work) -> None:
    if not same_file(work.table.catalog.load(work.table.identifier), work.expected):
        raise _stale(work.table)


def _stale(table: TablePointer) -> ConflictError:
    return ConflictError(
        f"table {table}: another commit landed after the relocation was planned. Nothing was switched; plan again, and"
        " only files that are not at the new location yet are copied",
        table=str(table),
        next_step="Plan the relocation again and execute it.",
    )


def _storage(table: TablePointer, base: Base, new: str) -> FileIO:
    """The storage of the new location, which is that of the table unless the scheme belongs to another one."""
    schemes = [parse_location(location).scheme for location in (base.metadata.location, new)]
    if schemes[0] == schemes[1] or schemes[1] in scheme_family(schemes[0]):
        return table.io
    return file_io(new, table.settings)


# -- files that are copied as they are


def _missing(work: Work, io: FileIO) -> pa.Table:
    """The copies that are not at the new location yet; InputError if a file of another size has one of their names."""
    listed = list_files(io, work.moves.new)
    there = inner_paths(listed["location"], work.moves.new)
    index = pc.index_in(inner_paths(work.copies["target"], work.moves.new), value_set=there)
    sizes = pc.take(one_array(listed["bytes"]), index)
    wrong = pc.fill_null(pc.not_equal(sizes, one_array(work.copies["bytes"])), False)
    for row in work.copies.filter(wrong).slice(0, 1).to_pylist():
        raise InputError(
            f"table {work.table}: {row['target']} exists with another size than the {row['bytes']} bytes of"
            f" {row['source']}. Delete it if it is a broken copy, or choose another location",
            location=row["target"],
        )
    return work.copies.filter(index.is_null())


def _check_copied(table: TablePointer, missing: pa.Table) -> None:
    if missing.num_rows > 0:
        first = missing["target"][0].as_py()
        raise InputError(
            f"table {table}: {missing.num_rows} files are not at the new location yet, first {first}. Copy the files in"
            " plan.copies with your tool, then execute the plan; or plan with copy=True",
            location=first,
        )


def _copier(source: FileIO, target: FileIO) -> Callable[[_Row], None]:
    """Copies one file through memory; it appears completely or not at all."""

    def copy(row: _Row) -> None:
        data = source.read(str(row["source"]))
        if row["bytes"] is not None and len(data) != row["bytes"]:
            raise StorageError(
                f"{row['source']} has {len(data)} bytes, its metadata says {row['bytes']}", location=row["source"]
            )
        _put(target, str(row["target"]), data)

    return copy


def _put(io: FileIO, location: str, data: bytes) -> None:
    """Write a file unless it is there; another run wrote the same content then."""
    try:
        io.put_if_absent(location, data)
    except UnsupportedError:  # storage without exclusive puts
        with suppress(AlreadyExists):
            io.write_new(location, data)
    except CommitStateUnknown as error:  # of this file alone; nothing refers to it yet
        raise StorageError(f"could not write {location}: {error}", location=location) from error


def _each(step: str, act: Callable[[_Row], _T], rows: Sequence[_Row], progress: Progress) -> list[_T]:
    """The results for all rows, in order."""
    done: list[_T] = []
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="icefloe-relocate") as pool:
        for result in pool.map(act, rows):
            done.append(result)
            progress(len(done), len(rows), step)
    return done


# -- files that are rewritten


def _rewrite_deletes(work: Work, io: FileIO, progress: Progress) -> Moves:
    properties = work.base.metadata.properties

    def rewrite(row: _Row) -> _Row:
        location = str(row["location"])
        data = work.base.store.read(location)
        moved = moved_deletes(data, str(row["format"]), work.moves, where=location, properties=properties)
        return {
            **_written(io, work.moves, location, moved.data),
            "lower_path": moved.lower_path,
            "upper_path": moved.upper_path,
        }

    rows: list[_Row] = [{"location": location, "format": name} for location, name in work.deletes.items()]
    return _with(work.moves, _each("delete files rewritten", rewrite, rows, progress))


def _rewrite_leaves(work: Work, io: FileIO, moves: Moves, progress: Progress) -> Moves:
    store = work.base.store
    context = at_location(store.context, moves.new)
    leaves = {leaf.location: leaf for leaf in work.leaves}

    def rewrite(row: _Row) -> _Row:
        leaf = leaves[str(row["location"])]
        data, where = store.read(leaf.location), leaf.location
        if data.startswith(AVRO_MAGIC):
            changed = relocated_manifest(data, moves, where=where, limits=context.limits)
        else:
            changed = relocated_leaf(data, moves, context, where=where, content=leaf.content, spec_id=leaf.spec_id)
        return _written(io, moves, where, changed)

    rows: list[_Row] = [{"location": location} for location in leaves]
    return _with(moves, _each("manifests rewritten", rewrite, rows, progress))


def _rewrite_roots(work: Work, io: FileIO, moves: Moves, progress: Progress) -> Moves:
    store = work.base.store
    context = at_location(store.context, moves.new)

    def rewrite(row: _Row) -> _Row:
        where = str(row["location"])
        data = store.read(where)
        if data.startswith(AVRO_MAGIC):
            changed = relocated_manifest_list(data, moves, where=where, limits=context.limits)
        else:
            changed = relocated_root(data, moves, context, where=where)
        return _written(io, moves, where, changed)

    rows: list[_Row] = [{"location": location} for location in work.roots]
    return _with(moves, _each("roots rewritten", rewrite, rows, progress))


def _written(io: FileIO, moves: Moves, location: str, data: bytes) -> _Row:
    """Write a rewritten file beside the place of the old one; its row among the rewritten files."""
    inner = moves.inner(pa.array([location]))[0].as_py()
    folder, slash, name = inner.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    stem = _DIGEST.sub("", stem if dot != "" else extension)
    digest = hashlib.sha256(data).hexdigest()[:32]
    target = f"{moves.new}/{folder}{slash}{stem}-at-{digest}" + (f".{extension}" if dot != "" else "")
    _put(io, target, data)
    return {"inner": inner, "location": target, "bytes": len(data)}


def _with(moves: Moves, rows: Iterable[_Row]) -> Moves:
    return moves.with_rewritten(pa.Table.from_pylist(list(rows), schema=REWRITTEN))


# -- metadata


def _with_new_sizes(work: Work, moves: Moves) -> TableMetadata:
    """The metadata, with sizes in summaries as they are after position delete files were rewritten."""
    metadata = work.base.metadata
    if all(name == PUFFIN for name in work.deletes.values()):
        return metadata
    snapshots = [
        replace(snapshot, summary=with_new_sizes(work.base, snapshot, moves)) for snapshot in metadata.snapshots
    ]
    return replace(metadata, snapshots=Snapshots(tuple(snapshots)))


def relocated_metadata(metadata: TableMetadata, moves: Moves) -> TableMetadata:
    """The metadata of a table at its new location. The log of former metadata files starts empty.

    A property whose value is a location inside the table moves too, such as ``write.data.path``.
    """
    listed = [snapshot.root for snapshot in metadata.snapshots]
    roots = moves.moved(pa.array(listed, pa.string())).to_pylist()
    snapshots = [
        replace(snapshot, root=root, manifests=_all(moves, snapshot.manifests))
        for snapshot, root in zip(metadata.snapshots, roots, strict=True)
    ]
    names = list(metadata.properties)
    values = _all(moves, [metadata.properties[name] for name in names])
    return replace(
        metadata,
        location=moves.new,
        properties=dict(zip(names, values, strict=True)),
        snapshots=Snapshots(tuple(snapshots)),
        metadata_log=(),
        statistics=tuple(
            replace(file, statistics_path=_all(moves, [file.statistics_path])[0]) for file in metadata.statistics
        ),
        partition_statistics=tuple(
            replace(file, statistics_path=_all(moves, [file.statistics_path])[0])
            for file in metadata.partition_statistics
        ),
    )


def _all(moves: Moves, locations: Sequence[str]) -> tuple[str, ...]:
    if len(locations) == 0:
        return ()
    return tuple(moves.moved(pa.array(locations, pa.string())).to_pylist())


def _write_metadata(metadata: TableMetadata, former: str, io: FileIO) -> str:
    compression = metadata_codec(metadata)
    data = encode_metadata(metadata, compression=compression)
    name = uuid.UUID(bytes=hashlib.sha256(data).digest()[:16], version=4)
    file_name = metadata_name(former, str(name), compressed=compression != "none")
    location = f"{metadata.location}/{METADATA_FOLDER}/{file_name}"
    _put(io, location, data)
    return location


def _switch(work: Work, pointer: str, metadata: TableMetadata, storage: FileIO) -> None:
    table = work.table
    outcome = swap_pointer(table, work.expected, pointer)
    if isinstance(outcome, Unknown):
        landed = table.catalog.load(table.identifier) == pointer
        if not isinstance(outcome.cause, Exception):
            raise outcome.cause
        if not landed:
            raise CommitStateUnknown(
                f"table {table}: the catalog failed during the swap, so {pointer} may or may not be its metadata now."
                " Load the table again and compare its location before you plan again",
                table=str(table),
                location=pointer,
                snapshot_ids=(),
            ) from outcome.cause
    if isinstance(outcome, Stale):
        raise _stale(table)
    table.io = storage
    table.remember(pointer, metadata, replaces=table.held())

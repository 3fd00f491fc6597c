"""The check of a table: its metadata, the trees of its snapshots, its files, its rows (spec: Snapshots; V4 proposal).

Trees are read without caches, in the order of the snapshots, and each manifest is checked once for every row that
references it. Nothing is changed, and nothing stops the check: what cannot be read is a finding like others.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.codecs.manifest.context import manifest_context
from icefloe.commit.table_location import read_metadata
from icefloe.engines.choose import engine_for
from icefloe.engines.engine import Engine
from icefloe.engines.file_sets import list_files
from icefloe.errors import IcefloeError
from icefloe.limits import MIB
from icefloe.maintenance.verify.findings import Finding, Rule, finding, guarded, problem_of
from icefloe.maintenance.verify.leaves import check_hidden, check_leaf
from icefloe.maintenance.verify.row_checks import RowChecks
from icefloe.maintenance.verify.snapshot_checks import (
    View,
    check_carried,
    check_changes,
    check_delete_files,
    check_files,
    check_root,
    check_summary,
    with_keys,
)
from icefloe.maintenance.verify.snapshot_history import check_history
from icefloe.maintenance.verify.storage import (
    NAMED,
    NamedKind,
    PositionFiles,
    Vectors,
    check_log,
    check_named,
    check_stored_locations,
    check_stored_roots,
    check_unreferenced,
    named,
    named_by,
)
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, choose, concat, live, of_type
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.text.figures import Figures
from icefloe.progress import Progress, silent
from icefloe.tree.root import Leaf, Root, leaves_of, position_mask, read_leaf, read_root, with_manifest
from icefloe.tree.snapshot_changes import snapshot_changes
from icefloe.tree.store import ManifestCache, ManifestStore

_FILES = (ContentType.DATA, *DELETES)
_KEPT = 4  # snapshots whose files are kept in memory, as parents of others
_CACHE_BYTES = 64 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked(Figures):
    """How much of a table was checked."""

    snapshots: int = 0
    manifests: int = 0  # roots included
    entries: int = 0  # live data and delete files of the snapshots, those of several snapshots counted for each
    files: int = 0  # looked up in storage
    data_files: int = 0  # read
    rows: int = 0  # read
    rows_without_checksums: int = 0  # of those, rows whose files have none: a wrong value in them may not be found


class Check:
    """One check of a table; ``of_snapshot`` may be called as snapshots come, which costs no more than all at once.

    With ``files``, data and delete files are looked up in storage. With ``deletes``, deletion vectors and position
    delete files are read. With ``rows``, data files are read too, by ``engine``, which is by default that of this
    process. ``snapshots`` are those to check, by default all.
    """

    def __init__(
        self,
        store: ManifestStore,
        metadata: TableMetadata,
        *,
        pointer: str | None = None,
        snapshots: Iterable[Snapshot] | None = None,
        files: bool = True,
        deletes: bool = True,
        rows: bool = False,
        engine: Engine | None = None,
        progress: Progress = silent,
    ) -> None:
        # Of its own, so that what is in memory is not taken for what is in storage.
        context = manifest_context(metadata, store.context.limits)
        self._store = ManifestStore(store.io, context, ManifestCache(_CACHE_BYTES))
        self._metadata = metadata
        self._pointer = pointer
        self._chosen = None if snapshots is None else tuple(snapshots)
        self._files = files
        self._deletes = deletes
        self._progress = progress
        self._vectors = Vectors(store.io, metadata.location)
        self._position_files = PositionFiles(store.io, metadata.location)
        engine = engine_for(None) if engine is None else engine
        self._rows = RowChecks(self._store, metadata, engine, progress) if rows else None
        self._views: dict[int, View] = {}
        self._checked: set[str] = set()  # leaves with their root rows
        self._stored: set[str] = set()  # manifests whose bytes were looked at
        self._manifests: set[str] = set()
        self._named: list[pa.Table] = [NAMED.empty_table()]
        self._snapshot_count = 0
        self._entry_count = 0
        self._file_count = 0

    @property
    def checked(self) -> Checked:
        """How much was checked so far."""
        rows = self._rows
        return Checked(
            snapshots=self._snapshot_count,
            manifests=len(self._manifests),
            entries=self._entry_count,
            files=self._file_count,
            data_files=0 if rows is None else rows.files_read,
            rows=0 if rows is None else rows.rows_read,
            rows_without_checksums=0 if rows is None else rows.rows_without_checksums,
        )

    def follow(self, metadata: TableMetadata) -> None:
        """Go on with later metadata of the same table."""
        self._store = self._store.with_context(manifest_context(metadata, self._store.context.limits))
        self._metadata = metadata

    def findings(self) -> Iterator[Finding]:
        """All findings, those of the whole table first."""
        where = self._metadata.location if self._pointer is None else self._pointer
        yield from guarded(check_history(self._metadata, where), where)
        if self._pointer is not None:
            yield from guarded(self._of_metadata_file(self._pointer), where)
        yield from guarded(self._of_snapshots(), where)
        yield from guarded(self.of_files(), where)

    def _of_snapshots(self) -> Iterator[Finding]:
        chosen = tuple(self._metadata.snapshots) if self._chosen is None else self._chosen
        for number, snapshot in enumerate(chosen):
            self._progress(number, len(chosen), "snapshots checked")
            yield from self.of_snapshot(snapshot)
        self._progress(len(chosen), len(chosen), "snapshots checked")

    def of_files(self) -> Iterator[Finding]:
        """Findings about the files that the snapshots looked at so far name."""
        files, self._named = pa.concat_tables(self._named), [NAMED.empty_table()]
        io, location = self._store.io, self._metadata.location
        listing = list_files(io, location).select(["location", "bytes"]).rename_columns(["location", "size"])
        self._file_count += pc.count_distinct(files["location"]).as_py()
        yield from check_named(io, listing, files)
        if self._files and self._chosen is None and self._pointer is not None:
            yield from check_unreferenced(listing, files, location)

    def _of_metadata_file(self, pointer: str) -> Iterator[Finding]:
        metadata, io, limits = self._metadata, self._store.io, self._store.context.limits
        try:
            read_metadata(io, pointer, metadata.location, limits)
            yield from check_stored_roots(io.read(pointer, limits.metadata_bytes), pointer, metadata.location, limits)
        except IcefloeError as error:
            yield finding(rule=Rule.READABLE, location=pointer, message=problem_of(error))
        logged = [entry.metadata_file for entry in metadata.metadata_log]
        yield from check_log(io, metadata, pointer, logged if self._chosen is None else logged[-1:], limits)
        statistics = metadata.statistics_files
        sizes = [file.file_size_in_bytes for file in statistics]
        self._named += [
            named_by(pointer, [pointer], NamedKind.METADATA),
            named_by(pointer, logged, NamedKind.LOGGED),
            named_by(pointer, [file.statistics_path for file in statistics], NamedKind.STATISTICS, sizes),
        ]

    def of_snapshot(self, snapshot: Snapshot) -> Iterator[Finding]:
        """Findings about one snapshot, its manifests and its deletion vectors."""
        where = f"snapshot {snapshot.snapshot_id}" if snapshot.root is None else snapshot.root
        self._snapshot_count += 1
        yield from guarded(self._of_snapshot(snapshot), where)

    def _of_snapshot(self, snapshot: Snapshot) -> Iterator[Finding]:
        view = yield from self._read(snapshot)
        if view is None:
            return
        self._entry_count += view.files.num_rows
        is_list = snapshot.root is None or not snapshot.root.endswith(".parquet")
        yield from check_root(view, files_in_root=self._metadata.rules.root_holds_files and not is_list)
        if view.is_whole:  # else what is missing would be reported many times more
            yield from check_files(view, self._metadata)
            yield from check_delete_files(view, self._metadata, self._store.context)
            yield from self._delete_contents(view)
            yield from self._history(view)
        if self._rows is not None:
            yield from guarded(self._rows.of_snapshot(view), view.where)
        self._remember(view)

    def _read(self, snapshot: Snapshot, *, quiet: bool = False) -> Generator[Finding, None, View | None]:
        """The snapshot as stored; files that cannot be read are reported. A ``quiet`` reading checks nothing else."""
        where = f"snapshot {snapshot.snapshot_id}" if snapshot.root is None else snapshot.root
        try:
            root = read_root(self._store, snapshot)
            yield from self._locations(None if quiet else snapshot.root)
        except IcefloeError as error:
            yield finding(rule=Rule.READABLE, location=where, message=problem_of(error))
            return None
        leaves: list[tuple[Leaf, pa.Table]] = []
        files = [with_manifest(root.rows(*_FILES), None)]
        manifests = root.rows(*MANIFESTS)
        for number, leaf in enumerate(leaves_of(manifests)):
            try:
                rows = read_leaf(self._store, replace(leaf, record_count=None))
                hidden = root.dead.get(leaf.location, BitMap64())
                shown = pc.invert(pa.array(position_mask(hidden, rows.num_rows, leaf.location)))
                yield from self._locations(None if quiet else leaf.location)
            except IcefloeError as error:
                yield finding(rule=Rule.READABLE, location=leaf.location, message=problem_of(error))
                continue
            if not quiet:
                yield from self._leaf(where, manifests.slice(number, 1), leaf, rows, snapshot)
                yield from check_hidden(where, leaf, rows, hidden)
            files.append(with_manifest(choose(rows, pc.and_(live(rows), shown)), leaf))
            leaves.append((leaf, rows))
        whole = with_keys(concat(files)).combine_chunks()
        if not quiet:
            self._manifests.update([where, *(leaf.location for leaf, _ in leaves)])
            self._name(root, whole, where, snapshot)
        is_whole = len(leaves) == manifests.num_rows
        return View(snapshot=snapshot, where=where, root=root, leaves=tuple(leaves), files=whole, is_whole=is_whole)

    def _leaf(self, where: str, row: pa.Table, leaf: Leaf, rows: pa.Table, snapshot: Snapshot) -> Iterator[Finding]:
        """Check one root row against its leaf, unless an earlier root had the same row."""
        (entry,) = row.to_pylist()
        new = leaf.snapshot_id == snapshot.snapshot_id
        known = repr({**entry, "ordinal": None, "status": entry["status"] if new else None})
        if known not in self._checked:
            self._checked.add(known)
            yield from check_leaf(where, entry, leaf, rows, self._store.context, snapshot_id=snapshot.snapshot_id)

    def _locations(self, location: str | None) -> Iterator[Finding]:
        """What the bytes of a manifest of V4 say, once."""
        if location is None or location in self._stored or not self._metadata.rules.relative_locations:
            return
        self._stored.add(location)
        yield from check_stored_locations(self._store.read(location), location, self._metadata.location)

    def _name(self, root: Root, files: pa.Table, where: str, snapshot: Snapshot) -> None:
        """Take note of the files that a snapshot names."""
        inside = root.rows(*MANIFESTS, ContentType.MANIFEST_DV)
        roots = snapshot.manifests if snapshot.root is None else (snapshot.root,)
        replaced = root.entries.filter(pc.invert(live(root.entries)))  # its vectors are needed to find what changed
        self._named += [named_by(where, roots, NamedKind.MANIFEST), named(inside, where)]
        self._named.append(named(choose(replaced, of_type(replaced, ContentType.MANIFEST_DV)), where))
        if self._files:
            new = choose(files, pc.equal(files["snapshot_id"], snapshot.snapshot_id))
            new = files if snapshot.parent_id not in self._views else new
            self._named.append(named(new, pc.fill_null(new["manifest"], where)))

    def _delete_contents(self, view: View) -> Iterator[Finding]:
        manifests = view.root.rows(*MANIFESTS)
        sizes = dict(zip(manifests["location"].to_pylist(), manifests["record_count"].to_pylist(), strict=True))
        yield from self._vectors.check(view.root.rows(ContentType.MANIFEST_DV), view.where, sizes)
        vectors = view.of(ContentType.POSITION_DELETES)
        if self._deletes and vectors.num_rows > 0:
            data = view.of(ContentType.DATA)
            rows = dict(zip(data["location"].to_pylist(), data["record_count"].to_pylist(), strict=True))
            yield from self._vectors.check(vectors, view.where, rows)
            yield from self._position_files.check(vectors, view.where, rows)

    def _history(self, view: View) -> Iterator[Finding]:
        """What happened between the parent and the snapshot, if the parent is still there and can be read."""
        parent_id, parent = view.snapshot.parent_id, None
        if parent_id is not None:
            parent = self._parent(parent_id)
            if parent is None:
                yield from check_summary(view, None)
                return
        try:
            changes = snapshot_changes(self._store, self._metadata, view.snapshot)
        except IcefloeError as error:
            yield finding(rule=Rule.READABLE, location=view.where, message=problem_of(error))
            return
        yield from check_changes(view, parent, changes)
        yield from check_carried(view, parent)
        yield from check_summary(view, changes)

    def _parent(self, snapshot_id: int) -> View | None:
        snapshot = self._metadata.snapshots.find(snapshot_id)
        if snapshot_id in self._views or snapshot is None:
            known = self._views.get(snapshot_id)
            return None if known is None or not known.is_whole else known
        reading = self._read(snapshot, quiet=True)
        try:
            while True:
                next(reading)  # a finding, which is reported for that snapshot itself
        except StopIteration as end:
            view: View | None = end.value
            return None if view is None or not view.is_whole else view

    def _remember(self, view: View) -> None:
        """Keep the last few snapshots, which are mostly the parents of the next ones."""
        self._views[view.snapshot.snapshot_id] = view
        while len(self._views) > _KEPT:
            del self._views[next(iter(self._views))]

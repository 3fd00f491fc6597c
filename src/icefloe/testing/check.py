"""A check of all that a table's metadata says, for every snapshot that it has (spec: Snapshots; V4 proposal).

Trees are read without caches, in the order of the snapshots, and each manifest is checked once for every row that
references it. Nothing is changed, and nothing stops the check: what cannot be read is a finding like others.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.codecs.manifest.context import manifest_context
from icefloe.commit.base import Base
from icefloe.errors import IcefloeError
from icefloe.limits import MIB
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, choose, concat, live
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.table.table import Table
from icefloe.testing.check_history import check_history
from icefloe.testing.check_leaves import check_hidden, check_leaf
from icefloe.testing.check_snapshots import (
    View,
    check_carried,
    check_changes,
    check_files,
    check_root,
    check_summary,
    with_keys,
)
from icefloe.testing.check_storage import (
    NAMED,
    PositionFiles,
    Vectors,
    check_named,
    check_stored_locations,
    check_stored_roots,
    named,
)
from icefloe.testing.findings import Finding, Rule
from icefloe.tree.diff import snapshot_changes, with_manifest
from icefloe.tree.root import Leaf, Root, leaves_of, position_mask, read_leaf, read_root
from icefloe.tree.store import ManifestCache, ManifestStore

_FILES = (ContentType.DATA, *DELETES)
_KEPT = 4  # snapshots whose files are kept in memory, as parents of others
_CACHE_BYTES = 64 * MIB


def check_table(table: Table | Base | tuple[ManifestStore, TableMetadata], *, data: bool = True) -> list[Finding]:
    """Everything that is wrong with a table, or with metadata and the manifests that it names; nothing if it is sound.

    Without ``data`` only metadata files are looked for in storage, not data files and their deletes.

    >>> import icefloe, pyarrow as pa
    >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.check", schema="id bigint", format_version=4)
    >>> result = t.append(pa.table({"id": [1, 2, 3]}))
    >>> check_table(t)
    []
    """
    if isinstance(table, tuple):
        store, metadata = table
        return list(Check(store, metadata, data=data).findings())
    base = table._pointer.load() if isinstance(table, Table) else table
    return list(Check(base.store, base.metadata, pointer=base.pointer, data=data).findings())


class Check:
    """One check of a table; ``of_snapshot`` may be asked as snapshots come, which costs no more than all at once."""

    def __init__(
        self, store: ManifestStore, metadata: TableMetadata, *, pointer: str | None = None, data: bool = True
    ) -> None:
        # Of its own, so that what is in memory is not taken for what is in storage.
        context = manifest_context(metadata, store.context.limits)
        self._store = ManifestStore(store.io, context, ManifestCache(_CACHE_BYTES))
        self._metadata = metadata
        self._pointer = pointer
        self._data = data
        self._vectors = Vectors(store.io, metadata.location)
        self._position_files = PositionFiles(store.io, metadata.location)
        self._views: dict[int, View] = {}
        self._checked: set[str] = set()  # leaves with their root rows
        self._stored: set[str] = set()  # manifests whose bytes were looked at
        self._named: list[pa.Table] = [NAMED.empty_table()]

    def follow(self, metadata: TableMetadata) -> None:
        """Go on with later metadata of the same table."""
        self._store = self._store.with_context(manifest_context(metadata, self._store.context.limits))
        self._metadata = metadata

    def findings(self) -> Iterator[Finding]:
        """All findings, those of the whole table first."""
        where = self._metadata.location if self._pointer is None else self._pointer
        yield from check_history(self._metadata, where)
        yield from self._of_metadata_file()
        for snapshot in self._metadata.snapshots:
            yield from self.of_snapshot(snapshot)
        yield from self.of_files()

    def of_files(self) -> Iterator[Finding]:
        """Findings about the files that the snapshots looked at so far name."""
        files, self._named = pa.concat_tables(self._named), [NAMED.empty_table()]
        yield from check_named(self._store.io, self._metadata.location, files)

    def _of_metadata_file(self) -> Iterator[Finding]:
        pointer, metadata = self._pointer, self._metadata
        if pointer is None:
            return
        try:
            yield from check_stored_roots(self._store.io.read(pointer), pointer, metadata.location)
        except IcefloeError as error:
            yield Finding(rule=Rule.READABLE, location=pointer, message=str(error))
        logged = [entry.metadata_file for entry in metadata.metadata_log]
        files = [file.statistics_path for file in metadata.statistics]
        files += [file.statistics_path for file in metadata.partition_statistics]
        rows = [{"location": location, "by": pointer} for location in (*logged, *files)]
        self._named.append(pa.Table.from_pylist(rows, schema=NAMED))

    def of_snapshot(self, snapshot: Snapshot) -> Iterator[Finding]:
        """Findings about one snapshot, its manifests and its deletion vectors."""
        view = yield from self._read(snapshot)
        if view is None:
            return
        rules = self._metadata.rules
        is_list = snapshot.root is None or not snapshot.root.endswith(".parquet")
        yield from check_root(view, files_in_root=rules.root_holds_files and not is_list)
        yield from check_files(view, self._metadata)
        yield from self._deletes(view)
        yield from self._history(view)
        self._remember(view)

    def _read(self, snapshot: Snapshot) -> Generator[Finding, None, View | None]:
        """The snapshot as stored; files that cannot be read are reported."""
        where = f"snapshot {snapshot.snapshot_id}" if snapshot.root is None else snapshot.root
        try:
            root = read_root(self._store, snapshot)
            yield from self._locations(snapshot.root)
        except IcefloeError as error:
            yield Finding(rule=Rule.READABLE, location=where, message=str(error))
            return None
        leaves: list[tuple[Leaf, pa.Table]] = []
        files = [with_manifest(root.rows(*_FILES), None)]
        manifests = root.rows(*MANIFESTS)
        for number, leaf in enumerate(leaves_of(manifests)):
            try:
                rows = read_leaf(self._store, replace(leaf, record_count=None))
                yield from self._locations(leaf.location)
            except IcefloeError as error:
                yield Finding(rule=Rule.READABLE, location=leaf.location, message=str(error))
                continue
            yield from self._leaf(where, manifests.slice(number, 1), leaf, rows, snapshot)
            hidden = root.dead.get(leaf.location, BitMap64())
            yield from check_hidden(where, leaf, rows, hidden)
            shown = pc.invert(pa.array(position_mask(hidden, rows.num_rows, leaf.location)))
            files.append(with_manifest(choose(rows, pc.and_(live(rows), shown)), leaf))
            leaves.append((leaf, rows))
        whole = with_keys(concat(files)).combine_chunks()
        self._name(root, whole, where, snapshot)
        return View(snapshot=snapshot, where=where, root=root, leaves=tuple(leaves), files=whole)

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
        yield from check_stored_locations(self._store.io.read(location), location, self._metadata.location)

    def _name(self, root: Root, files: pa.Table, where: str, snapshot: Snapshot) -> None:
        """Take note of the files that a snapshot names."""
        inside = root.rows(*MANIFESTS, ContentType.MANIFEST_DV)
        own = [{"location": snapshot.root, "by": where}] if snapshot.root is not None else []
        self._named += [pa.Table.from_pylist(own, schema=NAMED), named(inside, where)]
        if self._data:
            new = choose(files, pc.equal(files["snapshot_id"], snapshot.snapshot_id))
            new = files if snapshot.parent_id not in self._views else new
            self._named.append(named(new, pc.fill_null(new["manifest"], where)))

    def _deletes(self, view: View) -> Iterator[Finding]:
        manifests = view.root.rows(*MANIFESTS)
        sizes = dict(zip(manifests["location"].to_pylist(), manifests["record_count"].to_pylist(), strict=True))
        yield from self._vectors.check(view.root.rows(ContentType.MANIFEST_DV), view.where, sizes)
        vectors = view.of(ContentType.POSITION_DELETES)
        if self._data and vectors.num_rows > 0:
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
            yield Finding(rule=Rule.READABLE, location=view.where, message=str(error))
            return
        yield from check_changes(view, parent, changes)
        yield from check_carried(view, parent)
        yield from check_summary(view, changes)

    def _parent(self, snapshot_id: int) -> View | None:
        snapshot = self._metadata.snapshots.find(snapshot_id)
        if snapshot_id in self._views or snapshot is None:
            return self._views.get(snapshot_id)
        reading = self._read(snapshot)  # its findings are reported for that snapshot itself
        try:
            while True:
                next(reading)
        except StopIteration as end:
            view: View | None = end.value
            return view

    def _remember(self, view: View) -> None:
        """Keep the last few snapshots, which are mostly the parents of the next ones."""
        self._views[view.snapshot.snapshot_id] = view
        while len(self._views) > _KEPT:
            del self._views[next(iter(self._views))]

"""The metadata tree of a snapshot as an outline: metadata file, root, leaves, files and deletion vectors.

All format versions have the same outline: a manifest list of versions 1 to 3 is a root whose rows are all manifests. An
outline shows a few of the siblings at each level and summarizes the others. Only leaves that are shown are read, so the
cost does not depend on the size of the table (spec: Snapshots, Manifest Lists, Manifests; V4 proposal).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.codecs.json.table_metadata import decode_metadata
from icefloe.codecs.manifest.context import manifest_context
from icefloe.inspect.node import Node, listing, range_text, rows_text, short_name
from icefloe.io.file_io import FileIO
from icefloe.io.select import file_io
from icefloe.limits import DEFAULT
from icefloe.model.entries import BOUNDS, DELETES, MANIFESTS, ContentType, Status, live, of_type, partition_key, stat
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.text.figures import plural, size_text
from icefloe.transforms import transform_of
from icefloe.tree.root import Leaf, Root, leaves_of, position_mask, read_leaf, read_root
from icefloe.tree.store import ManifestCache, ManifestStore

SHOWN = 3
NOUNS = {
    ContentType.DATA: "data file",
    ContentType.POSITION_DELETES: "deletion vector",
    ContentType.EQUALITY_DELETES: "equality delete file",
    ContentType.DATA_MANIFEST: "data manifest",
    ContentType.DELETE_MANIFEST: "delete manifest",
    ContentType.MANIFEST_DV: "manifest deletion vector",
}
# On a line of its own, a row need not repeat what its position and its name show.
SHORT_NOUNS = {ContentType.DATA: "data", ContentType.POSITION_DELETES: "DV", ContentType.DATA_MANIFEST: "manifest"}
HIDDEN = "_hidden"

Row = Mapping[str, Any]


def outline(metadata_location: str, snapshot_id: int | None = None, *, shown: int = SHOWN) -> Node:
    """The metadata tree of a metadata file, at a snapshot or at the current one.

    ``shown`` is the number of siblings of a kind that are shown.

    ``print(outline(table.metadata_location))`` shows::

        00003-5d1f2c90….metadata.json  format version 4, 3 snapshots, 2.9 kB
        └── root-514203….parquet  root manifest, 7.1 kB, 2 rows: 2 data files
            ├── 8e1d07a2….parquet  data, EXISTING, 1,000 rows, 12.4 kB
            └── c2b9915f….parquet  data, ADDED, 10 rows, 2.0 kB
    """
    io = file_io(metadata_location)
    data = io.read(metadata_location, DEFAULT.metadata_bytes)
    metadata = decode_metadata(data, where=metadata_location)
    snapshot = metadata.current_snapshot if snapshot_id is None else metadata.snapshot(snapshot_id)
    return outline_metadata(io, metadata, snapshot, metadata_location, len(data), shown=shown)


def outline_metadata(
    io: FileIO, metadata: TableMetadata, snapshot: Snapshot | None, location: str, size: int, *, shown: int = SHOWN
) -> Node:
    """A metadata file of a location and size, with the tree of one of its snapshots."""
    return Node(
        kind="metadata",
        name=short_name(location),
        facts=(
            f"format version {metadata.format_version}",
            plural(len(metadata.snapshots), "snapshot"),
            size_text(size),
        ),
        children=() if snapshot is None else (outline_snapshot(io, metadata, snapshot, shown=shown),),
    )


def outline_snapshot(io: FileIO, metadata: TableMetadata, snapshot: Snapshot, *, shown: int = SHOWN) -> Node:
    """The root of a snapshot, with its children."""
    store = ManifestStore(io, manifest_context(metadata), ManifestCache())
    root = read_root(store, snapshot)
    return _Outline(store, metadata, root, shown).root(snapshot)


@dataclass(frozen=True, slots=True)
class _Outline:
    """Builds the outline of one root."""

    store: ManifestStore
    metadata: TableMetadata
    tree: Root
    shown: int

    def root(self, snapshot: Snapshot) -> Node:
        rows = self.tree.entries
        kinds = [(noun, pc.sum(of_type(rows, kind)).as_py() or 0) for kind, noun in NOUNS.items()]
        counted = ", ".join(plural(count, noun) for noun, count in kinds if count > 0)
        groups = ((ContentType.DATA_MANIFEST,), (ContentType.DELETE_MANIFEST,), (ContentType.DATA,), DELETES)
        return Node(
            kind="root",
            name=f"snapshot {snapshot.snapshot_id}" if snapshot.root is None else short_name(snapshot.root),
            facts=(
                *self._root_facts(snapshot),
                f"{plural(rows.num_rows, 'row')}: {counted}" if rows.num_rows > 0 else "no rows",
            ),
            children=tuple(child for kinds in groups for child in self._group(rows.filter(of_type(rows, *kinds)))),
        )

    def _root_facts(self, snapshot: Snapshot) -> tuple[str, ...]:
        if snapshot.root is None:
            return ("lists its manifests itself",)  # allowed in v1
        kind = "root manifest" if self.metadata.rules.root_holds_files else "manifest list"
        return (kind, size_text(self.store.io.size(snapshot.root)))

    def _group(self, rows: pa.Table) -> list[Node]:
        """Root rows of one kind; removed rows and leaves with removed entries are shown first."""
        if rows.num_rows == 0:
            return []
        if ContentType(rows["content_type"][0].as_py()) not in MANIFESTS:
            return _abbreviate(rows, pc.invert(live(rows)), self.shown, self._file)
        has_vector = pc.is_in(rows["location"], value_set=pa.array(list(self.tree.dead), pa.string()))
        has_deleted = pc.fill_null(pc.greater(rows["deleted_files_count"], 0), False)
        return _abbreviate(rows, pc.or_(has_vector, has_deleted), self.shown, self._manifest)

    def _manifest(self, one: pa.Table) -> Node:
        (row,), (leaf,) = one.to_pylist(), leaves_of(one)
        dead = self.tree.dead.get(leaf.location, BitMap64())
        kind = ContentType(row["content_type"])
        facts = [
            SHORT_NOUNS.get(kind, NOUNS[kind]),
            *([Status(row["status"]).name] if self.metadata.rules.root_holds_files else []),
            *self._partition(row),
            _live_text(leaf, dead),
            size_text(row["file_size_in_bytes"]),
        ]
        removed = row["status"] == Status.DELETED
        children = () if removed else (*self._vectors(leaf.location), *self._files(leaf, dead))
        name = short_name(leaf.location)
        return Node(kind="manifest", name=name, facts=tuple(facts), removed=removed, children=children)

    def _files(self, leaf: Leaf, dead: BitMap64) -> list[Node]:
        rows = read_leaf(self.store, leaf)
        hidden = pa.array(position_mask(dead, rows.num_rows, leaf.location))
        rows = rows.append_column(HIDDEN, hidden)
        return _abbreviate(rows, pc.or_(hidden, pc.invert(live(rows))), self.shown, self._file)

    def _vectors(self, leaf: str) -> list[Node]:
        """The manifest deletion vectors of a leaf, the replaced one included."""
        rows = self.tree.entries
        vectors = rows.filter(pc.and_(of_type(rows, ContentType.MANIFEST_DV), pc.equal(rows["referenced_file"], leaf)))
        return [self._vector(row) for row in vectors.to_pylist()]

    def _vector(self, row: Row) -> Node:
        removed = row["status"] == Status.DELETED
        inline = row["dv_inline_content"]
        positions = () if removed else self.tree.dead[row["referenced_file"]]
        return Node(
            kind="vector",
            name="manifest deletion vector",
            facts=(
                Status(row["status"]).name,
                f"hides {plural(row['record_count'], 'row')}" + (f": {listing(positions)}" if not removed else ""),
                size_text(row["dv_size_in_bytes"]) if inline is None else f"{size_text(len(inline))} inline",
            ),
            removed=removed,
        )

    def _file(self, one: pa.Table) -> Node:
        (row,) = one.to_pylist()
        kind = ContentType(row["content_type"])
        is_data, hidden = kind is ContentType.DATA, row.get(HIDDEN) is True
        facts = [SHORT_NOUNS.get(kind, NOUNS[kind]), "hidden" if hidden else Status(row["status"]).name]
        if row["referenced_file"] is None:
            facts += [*self._partition(row), rows_text(row["record_count"])]
        else:  # it has the partition of its data file
            facts.append(f"{rows_text(row['record_count'])} of {short_name(row['referenced_file'])}")
        size = row["file_size_in_bytes"] if row["dv_offset"] is None else row["dv_size_in_bytes"]
        return Node(
            kind="file" if is_data else "vector",
            name=short_name(row["location"]),
            facts=(*facts, size_text(size)),
            removed=hidden or row["status"] == Status.DELETED,
        )

    def _partition(self, row: Row) -> list[str]:
        """The partition of a file, or the range of partitions of a manifest."""
        spec: PartitionSpec = self.store.context.spec(row["partition_spec_id"])
        values = []
        for field in spec.fields:
            key = partition_key(field.field_id)
            display = transform_of(field).display
            lower, upper = (display(row.get(stat(bound, key))) for bound in BOUNDS)
            if lower is not None:
                values.append(f"{field.name}={range_text(lower, lower if upper is None else upper)}")
        return values


def _abbreviate(rows: pa.Table, chosen: pa.Array, shown: int, describe: Callable[[pa.Table], Node]) -> list[Node]:
    """Up to ``shown`` rows in order, chosen ones and others, and one line that summarizes the rest.

    ``describe`` takes a table of one row.
    """
    picked = picked_rows(np.asarray(chosen, dtype=np.bool_), shown)
    nodes = [describe(rows.slice(int(position), 1)) for position in picked]
    rest = np.setdiff1d(np.arange(rows.num_rows), picked)
    return nodes if len(rest) == 0 else [*nodes, _rest(rows.take(pa.array(rest)))]


def picked_rows(chosen: np.ndarray[Any, np.dtype[np.bool_]], shown: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The rows to show: up to half of them chosen ones, then other rows, then further chosen ones."""
    if len(chosen) <= shown + 1:  # a summary of one row would take as much space
        return np.arange(len(chosen))
    first, other = np.flatnonzero(chosen), np.flatnonzero(~chosen)
    half = (shown + 1) // 2
    order = np.concatenate([first[:half], other, first[half:]])
    return np.sort(order[:shown])


def _rest(rows: pa.Table) -> Node:
    kind = ContentType(rows["content_type"][0].as_py())
    total = size_text(pc.sum(rows["dv_size_in_bytes" if kind in DELETES else "file_size_in_bytes"]).as_py() or 0)
    if kind in MANIFESTS:
        files = pc.sum(pc.add(rows["added_files_count"], rows["existing_files_count"])).as_py() or 0
        inside = plural(files, "file")
    else:
        inside = plural(pc.sum(rows["record_count"]).as_py() or 0, "row")
    return Node(kind="more", name=f"… {plural(rows.num_rows, f'more {NOUNS[kind]}')}", facts=(inside, total))


def _live_text(leaf: Leaf, dead: BitMap64) -> str:
    if leaf.live_count is None or leaf.record_count is None:
        return "number of files unknown"
    return f"{leaf.live_count - len(dead):,} of {leaf.record_count:,} live"

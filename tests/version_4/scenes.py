"""A V4 table on disk whose files have short names, and its roots as plain Parquet tells them.

Data file ``D4`` holds the ids 40 to 49. What a root or a leaf says is read with pyarrow alone, so that the tests do not
see the metadata through the reader they test; what icefloe makes of it is compared with what the rows say.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.overwrite import OverwriteFiles
from icefloe.commit.result import CommitResult
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, concat
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import leaves_of, read_live_leaf, read_root
from icefloe.tree.snapshot_changes import snapshot_changes
from support.engine_work import write_entries
from support.tables import new_catalog

KINDS = ("DATA", "DV", "EQUALITY_DELETE", "DATA_MANIFEST", "DELETE_MANIFEST", "MANIFEST_DV")
STATUSES = ("EXISTING", "ADDED", "DELETED")
DATA, DV, EQUALITY_DELETE, DATA_MANIFEST, DELETE_MANIFEST, MANIFEST_DV = range(6)
EXISTING, ADDED, DELETED = range(3)
TO_LEAVES = {"commit.root.max-data-files": "0", "commit.root.max-dvs": "0"}
FILES = (ContentType.DATA, *DELETES)
TO_ROOT = {"commit.root.max-data-files": "1000", "commit.root.max-dvs": "10000"}

Row = dict[str, Any]


def positions(blob: bytes) -> list[int]:
    """The positions of a deletion vector blob with one bitmap, its length, magic and checksum tested."""
    assert struct.unpack(">I", blob[:4]) == (len(blob) - 8,)
    assert blob[4:8] == bytes.fromhex("d1d33964")
    assert struct.unpack(">I", blob[-4:]) == (zlib.crc32(blob[4:-4]),)
    assert struct.unpack("<QI", blob[8:20]) == (1, 0)
    return list(BitMap.deserialize(blob[20:-4]))


# Optional fields of a content entry, which a manifest without a value of them does not have.
OPTIONAL = (
    *("location", "format_version", "deletion_vector", "sort_order_id", "file_size_in_bytes", "content_stats"),
    *("manifest_stats", "referenced_file", "key_metadata", "split_offsets", "equality_ids", "first_row_id"),
)


def plain_rows(file: Path | pa.BufferReader) -> list[Row]:
    """The rows of a manifest as Parquet has them, null in columns that it does not have."""
    return [dict.fromkeys(OPTIONAL) | row for row in pq.ParquetFile(file).read().to_pylist()]


class Stage:
    """An unpartitioned V4 table with one column ``id``."""

    def __init__(self, folder: Path, schema: str = "id bigint", **properties: str) -> None:
        self.table: Table = new_catalog(folder).create_table(
            "db.t", schema=schema, format_version=4, properties=properties
        )
        self.folder = Path(self.table.location.removeprefix("file://"))
        self.names: dict[tuple[str, int | None], str] = {}

    # -- changing it

    def settings(self, properties: dict[str, str]) -> None:
        """Set properties of the table, which makes no snapshot."""
        self.table.set_properties(properties)

    def write(self, *names: str, count: int = 10) -> pa.Table:
        """Write data files; their entries."""
        base = pointer_of(self.table).load()
        found = []
        for name in names:
            start = int(name[1:]) * 10
            ids = pa.table({"id": pa.array(range(start, start + count), pa.int64())})
            entry = write_entries(base.store.io, ids, base.metadata)
            self.names[self.stored_location(entry["location"][0].as_py()), None] = name
            found.append(entry)
        return concat(found)

    def append(self, *names: str, count: int = 10) -> CommitResult:
        """Add data files."""
        return self._commit(Append(added=self.write(*names, count=count)))

    def remove(self, *names: str) -> CommitResult:
        """Remove data files."""
        return self.table.remove_files([self.location(name) for name in names])

    def overwrite(self, removed: str, added: str) -> CommitResult:
        """Put a data file in the place of another."""
        tasks = self.table.scan().plan().tasks
        chosen = tasks.filter(pa.array([place == self.location(removed) for place in tasks["location"].to_pylist()]))
        read = self.table.metadata.current_snapshot
        return self._commit(OverwriteFiles(changes=FileChanges(added=self.write(added), removed=chosen), read=read))

    def upsert(self, *ids: int) -> CommitResult:
        """Rows of these ids in the place of those that are there."""
        return self.table.upsert(pa.table({"id": pa.array(ids, pa.int64())}), on=["id"])

    def _commit(self, update: Any) -> CommitResult:
        return commit(pointer_of(self.table), update)

    # -- names

    def call(self, *names: str) -> None:
        """Name what has no name yet: rows of the head's root in their order, then those of its leaves in theirs."""
        new = iter(names)
        rows = self.root_rows()
        for row in rows + [inner for leaf in rows if leaf["manifest_stats"] for inner in self.leaf_rows(leaf)]:
            if row["location"] is not None and self._key(row) not in self.names:
                self.names[self._key(row)] = next(new)
        assert list(new) == [], "fewer new files than names"

    def stored_location(self, location: str) -> str:
        """A location as manifests of the table hold it: relative to the table."""
        return location.removeprefix(f"file://{self.folder}/")

    def location(self, name: str) -> str:
        """The whole location of a named file."""
        (found,) = (place for (place, _), known in self.names.items() if known == name)
        return f"file://{self.folder}/{found}"

    def path(self, name: str) -> Path:
        """The path of a named file."""
        return Path(self.location(name).removeprefix("file://"))

    def _key(self, row: Row) -> tuple[str, int | None]:
        vector = row["deletion_vector"]
        return row["location"], None if vector is None else vector["offset"]

    # -- looking at it

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        return self.table.snapshots

    def root_path(self, back: int = 0) -> Path:
        """The file of a root, the newest or an older one."""
        return Path(self.snapshots[-1 - back].root_location.removeprefix("file://"))

    def root_rows(self, back: int = 0) -> list[Row]:
        """The rows of a root as stored."""
        return plain_rows(self.root_path(back))

    def leaf_rows(self, leaf: Row | str) -> list[Row]:
        """The rows of a leaf as stored."""
        where = self.path(leaf) if isinstance(leaf, str) else self.folder / leaf["location"]
        return plain_rows(where)

    def row(self, name: str, back: int = 0) -> Row:
        """The row of a root for a named file."""
        (found,) = (row for row in self.root_rows(back) if self.names.get(self._key(row)) == name)
        return found

    def root(self, back: int = 0) -> list[str]:
        """The rows of a root, a line for each."""
        return [self.line(row) for row in self.root_rows(back)]

    def leaf(self, name: str) -> list[str]:
        """The rows of a leaf, a line for each."""
        return [self.line(row) for row in self.leaf_rows(name)]

    def line(self, row: Row) -> str:
        """What a row says: kind, name, status, snapshot, data/file sequence number, counts, first row id, target."""
        info, stats, target = row["version_info"], row["manifest_stats"], row["referenced_file"]
        order = [None, *(snapshot.snapshot_id for snapshot in self.snapshots)]
        snapshot = "-" if info["snapshot_id"] is None else order.index(info["snapshot_id"])
        numbers = "/".join(
            "-" if n is None else str(n) for n in (info["sequence_number"], info["file_sequence_number"])
        )
        words = [KINDS[row["content_type"]]]
        words += [] if row["location"] is None else [self.names[self._key(row)]]
        words += [STATUSES[info["status"]], f"by {snapshot} at {numbers}:", f"{row['record_count']} rows"]
        if stats is not None:
            words += ["of +{}={}-{} files".format(*list(stats.values())[:3])]
            words += ["+{}={}-{} rows since {}".format(*list(stats.values())[3:])]
        words += [] if row["first_row_id"] is None else [f"ids {row['first_row_id']}.."]
        words += [] if target is None else [f"for {self.names[target, None]}"]
        words += [] if row["deletion_vector"] is None else [str(self.dead(row))]
        return " ".join(words)

    def dead(self, row: Row) -> list[int]:
        """The positions of a deletion vector, of rows or of a manifest, inline or in a Puffin file."""
        vector = row["deletion_vector"]
        if vector["inline_content"] is not None:
            return positions(vector["inline_content"])
        data = (self.folder / row["location"]).read_bytes()
        return positions(data[vector["offset"] :][: vector["size_in_bytes"]])

    def live(self, back: int = 0) -> list[str]:
        """The live data files and vectors of a snapshot, by the rows of its root and leaves; icefloe agrees."""
        found = sorted(self._live(back))
        base = pointer_of(self.table).load()
        root = read_root(base.store, self.snapshots[-1 - back])
        files = root.rows(*FILES).to_pylist()
        for leaf in leaves_of(root.rows(*MANIFESTS)):
            files += read_live_leaf(base.store, root, leaf).to_pylist()
        assert sorted(self._called(row) for row in files) == found
        return found

    def _live(self, back: int) -> Iterator[str]:
        rows = [row for row in self.root_rows(back) if row["version_info"]["status"] != DELETED]
        hidden = {row["referenced_file"]: self.dead(row) for row in rows if row["content_type"] == MANIFEST_DV}
        for row in rows:
            if row["content_type"] <= EQUALITY_DELETE:
                yield self.names[self._key(row)]
            elif row["content_type"] != MANIFEST_DV:
                for place, inner in enumerate(self.leaf_rows(row)):
                    if inner["version_info"]["status"] != DELETED and place not in hidden.get(row["location"], ()):
                        yield self.names[self._key(inner)]

    def changes(self) -> list[str]:
        """What icefloe says that the head changed: ``+D4`` for a new file, ``-D2`` for one that left."""
        base = pointer_of(self.table).load()
        found = snapshot_changes(base.store, base.metadata, self.snapshots[-1]).to_pylist()
        return sorted(("+" if row["status"] == ADDED else "-") + self._called(row) for row in found)

    def _called(self, row: Row) -> str:
        return self.names[self.stored_location(row["location"]), row["dv_offset"]]

    def ids(self, **where: Any) -> list[int]:
        """The rows that a scan finds."""
        return sorted(self.table.at(**where).scan().to_arrow()["id"].to_pylist())

    def metadata_files(self) -> set[str]:
        """The files of the metadata folder, less the table metadata itself."""
        return {path.name for path in (self.folder / "metadata").iterdir() if not path.name.endswith(".json")}


def tens(*numbers: int) -> list[int]:
    """The ids of the data files with these numbers."""
    return [id_ for number in numbers for id_ in range(number * 10, number * 10 + 10)]


def with_leaf(folder: Path) -> Stage:
    """A table whose first snapshot is one leaf M1 of D1, D2 and D3; later changes go to the root."""
    stage = Stage(folder, **TO_LEAVES)
    stage.append("D1", "D2", "D3")
    stage.call("M1")
    stage.settings(TO_ROOT)
    return stage

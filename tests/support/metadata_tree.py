"""A small metadata tree without a catalog: a table of one column, with one root for each commit."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import uuid4

import pyarrow as pa

from icefloe.codecs.json.table_metadata import encode_metadata
from icefloe.codecs.manifest.context import manifest_context
from icefloe.codecs.manifest.manifests import encode_root, extension
from icefloe.commit.base import Base
from icefloe.io.memory import MemoryFileIO
from icefloe.model.entries import ContentType, Status, column_key, entries
from icefloe.model.metadata.snapshots import Snapshot, SummaryKey
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, Field
from icefloe.testing.counting_io import CountingFileIO
from icefloe.tree.apply_changes import NewRoot, apply_changes
from icefloe.tree.file_changes import PLANNED_FILE, FileChanges
from icefloe.tree.new_snapshot import SnapshotIdentity
from icefloe.tree.root import Root, read_root
from icefloe.tree.staging import Staging
from icefloe.tree.store import LeafRequest, ManifestCache, ManifestStore

LOCATION = "memory://wh/t"
NAMES = {value: value.name for value in ContentType}
STATUSES = {value: value.name for value in Status}


def stored_leaf(
    store: ManifestStore, location: str, *, content: ContentType = ContentType.DATA_MANIFEST, **request: Any
) -> pa.Table:
    """All rows of a leaf, as stored."""
    (table,) = store.leaves([LeafRequest(location=location, content=content, **request)])
    return table


def data_file(name: str, rows: int = 10, lower: int = 0, upper: int = 9) -> dict[str, object]:
    return {
        "content_type": int(ContentType.DATA),
        "location": f"{LOCATION}/data/{name}.parquet",
        "file_format": "parquet",
        "partition_spec_id": 0,
        "record_count": rows,
        "file_size_in_bytes": 100,
        "lower_bound:1": lower,
        "upper_bound:1": upper,
        "value_count:1": rows,
        "null_value_count:1": 0,
    }


def vector(name: str, target: str, count: int = 1) -> dict[str, object]:
    return {
        "content_type": int(ContentType.POSITION_DELETES),
        "location": f"{LOCATION}/data/{name}.puffin",
        "file_format": "puffin",
        "partition_spec_id": 0,
        "record_count": count,
        "file_size_in_bytes": 60,
        "dv_offset": 4,
        "dv_size_in_bytes": 40,
        "referenced_file": f"{LOCATION}/data/{target}.parquet",
    }


def rows(*dicts: dict[str, object]) -> pa.Table:
    return entries(list(dicts), {column_key(1): pa.int64()})


def planned_files(*names: str, vectors: Collection[str] = ()) -> pa.Table:
    """Data files to remove, some of which have a deletion vector, without the manifest that lists them."""
    files = [
        {"location": f"{LOCATION}/data/{name}.parquet", "dv_location": "vectors.puffin" if name in vectors else None}
        for name in names
    ]
    return pa.Table.from_pylist(files, schema=PLANNED_FILE)


def short(location: str | None) -> str | None:
    return None if location is None else location.rsplit("/", 1)[-1].split(".")[0]


@dataclass
class Tree:
    """The history of a table's roots."""

    version: int = 4
    properties: dict[str, str] = field(default_factory=dict)
    snapshots: list[Snapshot] = field(default_factory=list)
    next_row_id: int = 0
    leaf_names: dict[str, str] = field(default_factory=dict)
    made: ClassVar[list[Tree]] = []  # all of them, for the check after each test

    def __post_init__(self) -> None:
        self.metadata = TableMetadata(
            format_version=self.version,
            table_uuid=str(uuid4()),
            location=LOCATION,
            last_updated_ms=0,
            last_column_id=1,
            schemas=(Schema(fields=(Field(1, "id", LONG),)),),
        )
        self.io = CountingFileIO(MemoryFileIO())
        self.store = self.fresh_store()
        self.made.append(self)

    def fresh_store(self) -> ManifestStore:
        """A store that has decoded nothing yet."""
        return ManifestStore(self.io, manifest_context(self.metadata), ManifestCache())

    @property
    def head(self) -> Snapshot | None:
        return self.snapshots[-1] if len(self.snapshots) > 0 else None

    def root(self, back: int = 0) -> Root:
        """A root as written, decoded again."""
        return read_root(self.fresh_store(), self.snapshots[-1 - back])

    def commit(self, **changes: pa.Table) -> NewRoot:
        """Apply file changes to the head and write the new root."""
        number = len(self.snapshots) + 1
        lineage = self.metadata.rules.row_lineage
        first = self.next_row_id if lineage else None
        identity = SnapshotIdentity(snapshot_id=number, sequence_number=number, first_row_id=first)
        staging = Staging(f"{LOCATION}/metadata", uuid4)
        base = read_root(self.store, self.head)
        new = apply_changes(self.store, base, FileChanges(**changes), identity, staging, self.properties)
        location = f"{LOCATION}/metadata/root-{number}.{extension(self.store.context)}"
        parent = None if self.head is None else self.head.snapshot_id
        data = encode_root(new.rows, self.store.context, snapshot_id=number, parent_id=parent, sequence_number=number)
        self.io.write_new(location, data)
        self.snapshots.append(
            Snapshot(
                snapshot_id=number,
                parent_id=parent,
                sequence_number=number,
                timestamp_ms=number,
                root=location,
                summary={SummaryKey.OPERATION: "overwrite"},
                first_row_id=first,
                added_rows=new.added_rows if lineage else None,
            )
        )
        self.next_row_id += new.added_rows
        return new

    def base(self) -> Base:
        """The table with these snapshots, whose metadata file is written now."""
        metadata = self.metadata
        for snapshot in self.snapshots:
            metadata = metadata.with_snapshot(snapshot)
        pointer = f"{LOCATION}/metadata/{len(self.snapshots):05d}.metadata.json"
        self.io.inner.write_new(pointer, encode_metadata(metadata))
        return Base(pointer=pointer, metadata=metadata, store=self.store)

    def describe(self, back: int = 0) -> list[str]:
        """The rows of a root as short texts: what, which, status, and the dead positions of a manifest's vector."""
        root = self.root(back)
        lines = []
        for row in root.entries.to_pylist():
            kind, status = NAMES[row["content_type"]], STATUSES[row["status"]]
            if kind.endswith("MANIFEST"):
                name = self.leaf_names.setdefault(row["location"], f"M{len(self.leaf_names) + 1}")
                lines.append(f"{kind} {name} {status}")
            elif kind == "MANIFEST_DV":
                target = self.leaf_names[row["referenced_file"]]
                shown = sorted(root.dead[row["referenced_file"]]) if status != "DELETED" else f"({row['record_count']})"
                lines.append(f"{kind} {target} {shown} {status}")
            else:
                lines.append(f"{kind} {short(row['location'])} {status}")
        return lines

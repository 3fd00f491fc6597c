"""The data files and deletes that snapshots added and removed (spec: Manifests, Snapshots; V4 proposal).

In version 4 the root of a snapshot records what the snapshot changed. A leaf is opened only if the snapshot wrote it,
or if it lists a file that the snapshot removed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import DELETES, ContentType, Status, empty, of_status, of_type
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.scan.changes.snapshot_range import SnapshotRange
from icefloe.tree.opened_manifests import OpenedManifests, RecordingStore
from icefloe.tree.snapshot_changes import in_total, snapshot_changes
from icefloe.tree.store import NO_STATISTICS, ManifestStore

_KINDS = ["data", "position deletes", "equality deletes", "deletion vector"]
_VECTOR = 3
_FILE = (
    "location",
    "dv_offset",
    "referenced_file",
    "file_format",
    "partition_spec_id",
    "record_count",
    "file_size_in_bytes",
    "sequence_number",
    "first_row_id",
)
_STATE = ("content_type", "status")
_BY = pa.schema(
    [
        pa.field("snapshot_id", pa.int64()),
        pa.field("snapshot_sequence_number", pa.int64()),
        pa.field("operation", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FileDifferences:
    """The files that changed between two snapshots: Arrow tables with one row per file, oldest snapshot first.

    Columns: ``snapshot_id``, ``snapshot_sequence_number`` and ``operation`` of the snapshot that made the change;
    ``content`` (``data``, ``position deletes``, ``equality deletes``, ``deletion vector``), ``location`` and others of
    the file. In ``deletes_removed``, ``is_replaced`` is true if the snapshot added another vector of the same file.
    """

    data_added: pa.Table
    data_removed: pa.Table
    deletes_added: pa.Table
    deletes_removed: pa.Table
    snapshots: int
    manifests: OpenedManifests

    @property
    def files_opened(self) -> int:
        """How many manifests were opened: roots and leaves."""
        return self.manifests.total

    def as_dict(self) -> dict[str, object]:
        """The counts by name."""
        return {
            "snapshots": self.snapshots,
            "data_added": self.data_added.num_rows,
            "data_removed": self.data_removed.num_rows,
            "deletes_added": self.deletes_added.num_rows,
            "deletes_removed": self.deletes_removed.num_rows,
            "roots_opened": self.manifests.roots,
            "leaves_opened": self.manifests.leaves,
        }

    def __repr__(self) -> str:
        return (
            f"file changes of {self.snapshots} snapshot{'' if self.snapshots == 1 else 's'}: data files"
            f" +{self.data_added.num_rows} -{self.data_removed.num_rows}, deletes +{self.deletes_added.num_rows}"
            f" -{self.deletes_removed.num_rows}; {self.manifests.roots} roots and {self.manifests.leaves} leaf"
            " manifests opened"
        )


def file_differences(
    store: ManifestStore, metadata: TableMetadata, between: SnapshotRange, *, net: bool = False
) -> FileDifferences:
    """The files that a range of snapshots added and removed, by snapshot or with ``net`` in total."""
    recording = RecordingStore(store)
    parts = [
        _described(snapshot_changes(recording, metadata, snapshot, NO_STATISTICS), snapshot)
        for snapshot in between.snapshots
    ]
    changes = pa.concat_tables([_described(empty(), None), *parts]).combine_chunks()
    if net:
        changes = in_total(changes)
    is_added, is_data = of_status(changes, Status.ADDED), of_type(changes, ContentType.DATA)
    is_delete = of_type(changes, *DELETES)
    deletes_added = changes.filter(pc.and_(is_delete, is_added))
    deletes_removed = changes.filter(pc.and_(is_delete, pc.invert(is_added)))
    return FileDifferences(
        data_added=_readable(changes.filter(pc.and_(is_data, is_added))),
        data_removed=_readable(changes.filter(pc.and_(is_data, pc.invert(is_added)))),
        deletes_added=_readable(deletes_added),
        deletes_removed=_readable(deletes_removed).append_column(
            "is_replaced", _is_replaced(deletes_removed, deletes_added, net=net)
        ),
        snapshots=len(between.snapshots),
        manifests=recording.opened,
    )


def _described(rows: pa.Table, snapshot: Snapshot | None) -> pa.Table:
    """Changed entries with the snapshot that changed them."""
    values: tuple[int | None, int | None, str | None] = (None, None, None)
    if snapshot is not None:
        values = (snapshot.snapshot_id, snapshot.sequence_number, str(snapshot.operation))
    columns = [pa.repeat(pa.scalar(value, field.type), rows.num_rows) for value, field in zip(values, _BY, strict=True)]
    chosen = rows.select([*_STATE, *_FILE])
    return pa.table([*columns, *chosen.columns], schema=pa.schema([*_BY, *chosen.schema]))


def _is_replaced(removed: pa.Table, added: pa.Table, *, net: bool) -> pa.Array:
    """Which removed vectors were replaced: by a vector of the same snapshot, or in a total by any."""
    names = ["referenced_file"] if net else ["referenced_file", "snapshot_id"]
    vectors = added.filter(pc.is_valid(added["dv_offset"])).select(names)
    numbered = removed.select(names).append_column("row", pa.array(np.arange(removed.num_rows)))
    numbered = numbered.filter(pc.is_valid(removed["dv_offset"]))
    found = numbered.join(vectors, names, join_type="left semi")["row"]
    is_replaced = np.zeros(removed.num_rows, np.bool_)
    is_replaced[np.asarray(found)] = True
    return pa.array(is_replaced)


def _readable(changes: pa.Table) -> pa.Table:
    """The columns for people; a position delete with an offset is a deletion vector."""
    kinds = pc.if_else(pc.is_valid(changes["dv_offset"]), _VECTOR, changes["content_type"])
    content = pa.array(_KINDS).take(kinds.combine_chunks().cast(pa.int8()))
    shown = changes.select([*_BY.names, *_FILE])
    return shown.add_column(len(_BY), "content", content)

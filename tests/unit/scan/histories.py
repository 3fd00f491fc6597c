"""Trees as tables that can be planned: metadata with the snapshots of a tree as one line of parents."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from icefloe.model.entries import ContentType, column_key, entries
from icefloe.model.metadata.snapshots import Operation, Snapshots
from icefloe.model.metadata.table_metadata import TableMetadata
from support.metadata_tree import LOCATION, Tree, data_file, short

PATH = column_key(2147483546)
TYPES = {column_key(1): pa.int64(), PATH: pa.string()}


def table_of(tree: Tree, operations: dict[int, Operation] | None = None) -> TableMetadata:
    """The table whose current snapshot is the head of a tree."""
    parents = [None, *(snapshot.snapshot_id for snapshot in tree.snapshots)]
    kinds = {} if operations is None else operations
    chain = tuple(
        replace(s, parent_id=parent, summary={"operation": str(kinds.get(s.snapshot_id, Operation.APPEND))})
        for s, parent in zip(tree.snapshots, parents, strict=False)
    )
    current = None if len(chain) == 0 else chain[-1].snapshot_id
    return replace(tree.metadata, snapshots=Snapshots(chain), current_snapshot_id=current)


def delete_file(kind: ContentType, name: str, **more: object) -> dict[str, object]:
    """A position or equality delete file; bounds of column 1 are ``low`` and ``high``."""
    row = {**data_file(name, lower=more.pop("low", 0), upper=more.pop("high", 9)), "content_type": int(kind)}
    if kind == ContentType.POSITION_DELETES:
        row = {key: value for key, value in row.items() if ":" not in key}
    else:
        row["equality_ids"] = [1]
    return {**row, **{key.replace("__", ":"): value for key, value in more.items()}}


def rows(*dicts: dict[str, object]) -> pa.Table:
    return entries(list(dicts), TYPES)


def path(name: str) -> str:
    return f"{LOCATION}/data/{name}.parquet"


def names(column: pa.ChunkedArray) -> list[str | None]:
    return [short(location) for location in column.to_pylist()]

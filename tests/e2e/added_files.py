"""Files that were there before the table, and what the table knows of one that it took over."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.model.entries import ContentType
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.tree.root import live_files, read_root


def file_of(folder: Path, rows: pa.Table, name: str = "a.parquet", **options: object) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, **options)
    return str(path)


def entry_of(table: Table) -> dict[str, object]:
    """The entry of the only data file, with its statistics."""
    store = pointer_of(table).load().store
    root = read_root(store, table.metadata.current_snapshot)
    (row,) = live_files(store, root, root.leaves(ContentType.DATA_MANIFEST), ContentType.DATA).to_pylist()
    return row

"""Files that were there before the table, and what the table knows of one that it took over."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.scan.plan import plan_scan
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table


def file_of(folder: Path, rows: pa.Table, name: str = "a.parquet", **options: object) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, **options)
    return str(path)


def entry_of(table: Table, *, statistics: bool = True) -> dict[str, object]:
    (row,) = plan_scan(
        pointer_of(table).load().store, table.metadata, table.metadata.current_snapshot, statistics=statistics
    ).tasks.to_pylist()
    return row

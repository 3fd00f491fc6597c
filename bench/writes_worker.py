"""The process of one contender of bench ``writes``.

``writes_worker.py append <contender> <folder> <rows>`` or ``upsert <contender> <folder> <rows> <rows of the source>``.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from arrow_rows import lineitem, pieces
from measure import Clock, peak_mb

ROW_GROUP_ROWS = 1024 * 1024
KEY = "id"
Work = Callable[[], object]


def table_of(contender: str, folder: Path, schema: pa.Schema) -> Any:
    """An empty table of a contender that has tables."""
    uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}/wh"
    if contender == "pyiceberg":
        cat = importlib.import_module("pyiceberg.catalog.sql").SqlCatalog("bench", uri=uri, warehouse=warehouse)
        cat.create_namespace("db")
        return cat.create_table("db.t", schema=schema)
    cat = importlib.import_module("icefloe").catalog("bench", uri=uri, warehouse=warehouse)
    return cat.create_table("db.t", schema=schema, format_version=int(contender[-1]))


def append(contender: str, folder: Path, rows: int) -> tuple[Work, int]:
    data = pa.concat_tables(pieces(rows)).combine_chunks()
    if contender == "plain pyarrow":
        numbers = iter(range(10**9))
        options = {"compression": "zstd", "row_group_size": ROW_GROUP_ROWS, "write_page_index": True}
        return lambda: pq.write_table(data, folder / f"{next(numbers)}.parquet", **options), rows
    if contender == "delta-rs":
        deltalake = importlib.import_module("deltalake")
        return lambda: deltalake.write_deltalake(str(folder / "wh"), data, mode="append"), rows
    table = table_of(contender, folder, data.schema)
    return lambda: table.append(data), rows


def upsert(contender: str, folder: Path, target: int, source: int) -> tuple[Work, int]:
    """Half of the source's keys are every n-th of the table's, the others follow behind its last."""
    table = table_of(contender, folder, _keyed(0, np.zeros(1, np.int64)).schema)
    for start in range(0, target, ROW_GROUP_ROWS):
        table.append(_keyed(start, np.arange(start, min(target, start + ROW_GROUP_ROWS), dtype=np.int64)))
    old = np.linspace(0, target - 1, source // 2).astype(np.int64)
    new = np.arange(target, target + source - source // 2, dtype=np.int64)
    keys = np.random.default_rng(3).permutation(np.concatenate([old, new]))
    data = _keyed(target + 1, keys)
    if contender == "pyiceberg":
        return lambda: table.upsert(data, join_cols=[KEY]), source
    return lambda: table.upsert(data, on=[KEY]), source


def _keyed(seed: int, keys: np.ndarray) -> pa.Table:
    rows = lineitem(seed, len(keys)).select(["l_partkey", "l_quantity", "l_extendedprice", "l_shipdate", "l_comment"])
    return rows.add_column(0, KEY, pa.array(keys))


def sample(work: Work, rows: int) -> dict[str, float]:
    before = Clock.now()
    work()
    found = before.until(Clock.now())
    return {**{key: round(value, 1) for key, value in found.items()}, "peak_mb": round(peak_mb(), 1), "rows": rows}


def main(kind: str, contender: str, folder: str, *sizes: str) -> None:
    Path(folder).mkdir()
    make = {"append": append, "upsert": upsert}[kind]
    work, rows = make(contender, Path(folder), *map(int, sizes))
    print("[]", flush=True)  # ready
    for line in sys.stdin:
        print(json.dumps([sample(work, rows) for _ in range(int(line))]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

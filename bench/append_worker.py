"""The process of one contender of bench ``append``: reads how many commits to make and answers with samples.

Started as ``append_worker.py <contender> <folder> <rows>``; what a contender imports is imported here and only here,
so that no process carries another one's libraries.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from measure import Clock, Sample

Append = Callable[[], object]


def rows(count: int) -> pa.Table:
    """Ten columns of the usual types, the same in every run."""
    dice = np.random.default_rng(7)
    ids = np.arange(count, dtype=np.int64)
    return pa.table(
        {
            "id": ids,
            "customer": dice.integers(0, 100_000, count).astype(np.int64),
            "quantity": dice.integers(1, 50, count).astype(np.int32),
            "price": dice.random(count) * 1000,
            "discount": dice.random(count),
            "paid": dice.random(count) < 0.5,
            "day": pa.array(ids % 365, pa.int32()).cast(pa.date32()),
            "at": pa.array(1_700_000_000_000_000 + ids * 1_000_000, pa.timestamp("us", tz="UTC")),
            "status": pa.array(dice.choice(["placed", "paid", "packed", "shipped"], count)),
            "note": pa.array([f"order number {number} of the morning" for number in ids.tolist()]),
        }
    )


def icefloe(folder: Path, data: pa.Table, version: int) -> Append:
    library = importlib.import_module("icefloe")
    cat = library.catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
    table = cat.create_table("db.t", schema=data.schema, format_version=version)
    return lambda: table.append(data)


def pyiceberg(folder: Path, data: pa.Table) -> Append:
    sql = importlib.import_module("pyiceberg.catalog.sql")
    cat = sql.SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
    cat.create_namespace("db")
    table = cat.create_table("db.t", schema=data.schema)
    return lambda: table.append(data)


def delta(folder: Path, data: pa.Table, *, by_path: bool) -> Append:
    """The table object is kept, or the path given for every commit, which is how most programs call it."""
    deltalake = importlib.import_module("deltalake")
    path = str(folder / "wh")
    table = deltalake.DeltaTable.create(path, schema=deltalake.Schema.from_arrow(data.schema))
    return lambda: deltalake.write_deltalake(path if by_path else table, data, mode="append")


def data_file_only(folder: Path, data: pa.Table) -> Append:
    target = folder / "wh"
    target.mkdir()
    numbers = iter(range(10**9))
    return lambda: pq.write_table(data, target / f"{next(numbers)}.parquet", compression="zstd")


CONTENDERS: dict[str, Callable[[Path, pa.Table], Append]] = {
    "icefloe v4": lambda folder, data: icefloe(folder, data, 4),
    "icefloe v2": lambda folder, data: icefloe(folder, data, 2),
    "pyiceberg": pyiceberg,
    "delta-rs": lambda folder, data: delta(folder, data, by_path=False),
    "delta-rs by path": lambda folder, data: delta(folder, data, by_path=True),
    "data file only": data_file_only,
}


class MetadataFolder:
    """Counts the metadata files that appear in a table's folder, and their bytes."""

    def __init__(self, folder: Path) -> None:
        self._places = [*folder.glob("**/metadata"), *folder.glob("**/_delta_log")]
        self._seen: set[Path] = set()

    def news(self) -> tuple[int, int]:
        """Files and bytes since the last call."""
        found = {path for place in self._places for path in place.iterdir() if path.is_file()}
        new = found - self._seen
        self._seen = found
        return len(new), sum(path.stat().st_size for path in new)


def one_commit(append: Append, metadata: MetadataFolder) -> Sample:
    before = Clock.now()
    append()
    sample = before.until(Clock.now())
    files, size = metadata.news()
    return {**sample, "metadata_files": files, "metadata_bytes": size}


def main(contender: str, folder: str, count: str) -> None:
    append = CONTENDERS[contender](Path(folder), rows(int(count)))
    metadata = MetadataFolder(Path(folder))
    metadata.news()
    print("[]", flush=True)  # ready
    for line in sys.stdin:
        samples = [one_commit(append, metadata) for _ in range(int(line))]
        print(json.dumps(samples), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

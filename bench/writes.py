"""Bench ``writes``: appending some millions of rows, and replacing a million of them by key, in this process.

Appends go beside plain Parquet files with the same settings, which is what any writer has to do. For upserts half of
the source's keys are in the table, spread over all of it, and half are new. pyiceberg's upsert of a million rows takes
a quarter of an hour, so it is given a smaller source.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measure import Sample, median, ratio, spread
from report import Table
from workers import Worker

TITLE = "writes: appends and upserts without a JVM"
APPENDS = ("plain pyarrow", "icefloe v2", "icefloe v4", "pyiceberg", "delta-rs")
UPSERTS = ("icefloe v2", "icefloe v4", "pyiceberg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Rows of an append and how often; rows of the table of an upsert, of its source, and of pyiceberg's source."""

    rows: int = 4_000_000
    runs: int = 5
    target: int = 5_000_000
    source: int = 1_000_000
    peer_source: int = 100_000


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Appends in turns, upserts one after the other; samples by contender."""
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        tell(f"writes: {sizes.runs} appends of {sizes.rows:,} rows by each of {len(APPENDS)} contenders")
        appends = _appends(Path(folder), sizes)
        upserts = {name: _upsert(Path(folder), name, sizes, tell) for name in UPSERTS}
    return {"sizes": asdict(sizes), "appends": appends, "upserts": upserts}


def _appends(folder: Path, sizes: Sizes) -> dict[str, list[Sample]]:
    workers = {
        name: Worker("writes_worker.py", "append", name, str(folder / f"append{i}"), str(sizes.rows))
        for i, name in enumerate(APPENDS)
    }
    samples: dict[str, list[Sample]] = {name: [] for name in APPENDS}
    try:
        for number in range(-1, sizes.runs):
            shift = number % len(APPENDS)
            for name in APPENDS[shift:] + APPENDS[:shift]:
                found = workers[name].run(1)
                if number >= 0:
                    samples[name] += found
    finally:
        for worker in workers.values():
            worker.stop()
    return samples


def _upsert(folder: Path, name: str, sizes: Sizes, tell: Callable[[str], None]) -> list[Sample]:
    rows = sizes.peer_source if name == "pyiceberg" else sizes.source
    tell(f"writes: {name}, an upsert of {rows:,} rows into {sizes.target:,}")
    place = str(folder / f"upsert-{name.replace(' ', '-')}")
    worker = Worker("writes_worker.py", "upsert", name, place, str(sizes.target), str(rows))
    try:
        return worker.run(1)
    finally:
        worker.stop()


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Throughput of appends and upserts."""
    sizes = result["sizes"]
    return [_append_table(result["appends"], sizes), _upsert_table(result["upserts"], sizes)]


def _append_table(samples: Mapping[str, list[Sample]], sizes: Mapping[str, int]) -> Table:
    plain, peer = samples["plain pyarrow"], samples["pyiceberg"]
    rows = []
    for name, found in samples.items():
        wall, cpu = median(found, "wall_ms"), median(found, "cpu_ms")
        shares = [
            ratio(median(base, key), own) for base in (plain, peer) for key, own in (("wall_ms", wall), ("cpu_ms", cpu))
        ]
        peak = f"{max(sample['peak_mb'] for sample in found):,.0f}"
        rows.append([name, spread(found, "wall_ms"), spread(found, "cpu_ms"), *shares, peak])
    columns = ("", "wall ms", "CPU ms", "of plain pyarrow", "by CPU", "of pyiceberg", "by CPU ", "peak MB")
    title = f"Appends of {sizes['rows']:,} rows of 16 columns; ratios of throughput, above 1 is faster"
    note = (
        "Plain pyarrow writes one zstd file with the row group and page sizes of icefloe, and commits nothing. icefloe"
        " syncs its files to disk before the commit; the others do not. The rows are already in memory."
    )
    return Table(title=title, columns=columns, rows=rows, note=note)


def _upsert_table(samples: Mapping[str, list[Sample]], sizes: Mapping[str, int]) -> Table:
    (peer,) = samples["pyiceberg"]
    rows = []
    for name, (found,) in samples.items():
        rate = found["rows"] / found["wall_ms"] * 1000
        theirs = peer["rows"] / peer["wall_ms"] * 1000
        cells = [f"{found['rows']:,.0f}", f"{found['wall_ms']:,.0f}", f"{found['cpu_ms']:,.0f}", f"{rate:,.0f}"]
        rows.append([name, *cells, ratio(rate, theirs), f"{found['peak_mb']:,.0f}"])
    columns = ("", "rows of the source", "wall ms", "CPU ms", "rows per second", "of pyiceberg", "peak MB")
    note = (
        "Version 2 rewrites the affected files, here all of them, as pyiceberg does. Version 4 writes deletion vectors."
        " The source of pyiceberg is smaller, so the rewrite of all files weighs more in its rate."
    )
    return Table(
        title=f"Upserts into {sizes['target']:,} rows; half of the source replaces a row, half is new",
        columns=columns,
        rows=rows,
        note=note,
    )

"""The processes of bench ``huge``: they make leaves, a root above them, and plans, and answer in JSON.

Tables lie in a folder: ``leaves`` has the leaves that exist, each table has a folder with its root and metadata. A
FileIO puts both together, so that leaves are written once for all tables.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from icefloe.codecs.manifest.context import manifest_context
from icefloe.codecs.manifest.manifests import decode_root, encode_root
from icefloe.io.memory import MemoryFileIO
from icefloe.testing.counting_io import CountingFileIO
from measure import Clock, Sample
from synthetic import LOCATION, NAME, Bed, equals, leaf_file, leaf_name, leaf_rows, new_bed, new_catalog

COLUMNS = 10


class LeavesOnDisk(MemoryFileIO):
    """Files in memory, and behind them files of a folder by their names."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def read(self, location: str, limit: int | None = None) -> bytes:
        path = self._folder / location.rsplit("/", 1)[-1]
        return path.read_bytes() if path.exists() else super().read(location, limit)


def leaves(folder: str, per_leaf: str, count: str) -> dict[str, Any]:
    """Write the leaves that exist."""
    context = manifest_context(new_bed(4, COLUMNS).base.metadata)
    place = Path(folder) / "leaves"
    place.mkdir()
    for number in range(int(count)):
        name = leaf_name(context, number).rsplit("/", 1)[-1]
        (place / name).write_bytes(leaf_file(context, number, int(per_leaf), COLUMNS))
    return {}


def table(folder: str, files: str, per_leaf: str) -> dict[str, Any]:
    """Make a table of so many files, and keep its root and metadata in a folder."""
    bed = new_bed(4, COLUMNS)
    count = int(files) // int(per_leaf)
    bed.install(leaf_rows(manifest_context(bed.base.metadata), count, int(per_leaf), COLUMNS), int(files))
    place = Path(folder) / files
    place.mkdir()
    for info in bed.io.list(LOCATION):
        (place / info.location.rsplit("/", 1)[-1]).write_bytes(bed.io.inner.read(info.location))
    (place / "pointer").write_text(bed.base.pointer, encoding="utf-8")
    root = next(i.size for i in bed.io.list(LOCATION) if "/root-" in i.location)
    return {"leaves": count, "root_bytes": root}


def opened(folder: Path, files: str) -> Bed:
    """The table, with all its leaves that exist."""
    io = LeavesOnDisk(folder / "leaves")
    for path in (folder / files).iterdir():
        if path.name != "pointer":
            io.write_new(f"{LOCATION}/metadata/{path.name}", path.read_bytes())
    catalog = new_catalog()
    catalog.register(NAME, (folder / files / "pointer").read_text(encoding="utf-8"))
    return Bed(CountingFileIO(io), catalog, COLUMNS)


def plan(folder: str, files: str, per_leaf: str, answer: str, spread: str) -> dict[str, Any]:
    """Plan twice for ``answer`` files that lie in ``spread`` leaves."""
    bed = opened(Path(folder), files)
    wanted, among, size = int(answer), int(spread), int(per_leaf)
    numbers = [(i % among) * size + size // 2 + i // among for i in range(wanted)]
    before = _memory("VmRSS")
    cost, found = bed.plan(equals(numbers), cold=False)
    if found.files != wanted:
        raise RuntimeError(f"planned {found.files} files, not {wanted}")
    again, _ = bed.plan(equals(numbers), cold=False)
    return {
        "first": _rounded(cost.time),
        "again": _rounded(again.time),
        "bytes_read": cost.bytes_read,
        "leaves_read": found.manifests_read,
        "idle_mb": before,
        "peak_mb": _memory("VmHWM"),
    }


def roots(files: str, *leaf_sizes: str) -> list[dict[str, Any]]:
    """The same table with leaves of several sizes."""
    return [_root(files, size) for size in leaf_sizes]


def _root(files: str, per_leaf: str) -> dict[str, Any]:
    """A table whose leaves are of another size: the bytes of its root, what it costs, and a plan of one file."""
    bed = new_bed(4, COLUMNS)
    context = manifest_context(bed.base.metadata)
    count = int(files) // int(per_leaf)
    bed.install(leaf_rows(context, count, int(per_leaf), COLUMNS), int(files))
    snapshot = bed.head
    if snapshot is None or snapshot.root is None:
        raise RuntimeError("the table has no root")
    where = snapshot.root
    data = bed.io.read(where)
    rows: pa.Table = decode_root(data, context, where=where)
    options: dict[str, Any] = {"snapshot_id": snapshot.snapshot_id, "parent_id": None, "sequence_number": 1}
    bed.io.write_new(leaf_name(context, 0), leaf_file(context, 0, int(per_leaf), COLUMNS))
    bed.plan(equals([1]))
    cost, found = bed.plan(equals([int(per_leaf) // 2]))
    if found.files != 1:
        raise RuntimeError(f"planned {found.files} files, not 1")
    return {
        "files": int(files),
        "per_leaf": int(per_leaf),
        "leaves": count,
        "root_bytes": len(data),
        "leaf_bytes": bed.io.size(leaf_name(context, 0)),
        "decode": _timed(lambda: decode_root(data, context, where=where)),
        "encode": _timed(lambda: encode_root(rows, context, **options)),
        "plan": _rounded(cost.time),
        "bytes_read": cost.bytes_read,
    }


def _timed(work: Callable[[], object]) -> Sample:
    """The best of three."""
    found = []
    for _ in range(3):
        gc.collect()
        start = Clock.now()
        work()
        found.append(start.until(Clock.now()))
    return _rounded(min(found, key=lambda sample: sample["wall_ms"]))


def _rounded(sample: Sample) -> Sample:
    return {key: round(value, 3) for key, value in sample.items()}


def _memory(name: str) -> float:
    """Megabytes of this process, from Linux's /proc."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


VERBS: dict[str, Callable[..., object]] = {"leaves": leaves, "table": table, "plan": plan, "roots": roots}

if __name__ == "__main__":
    print(json.dumps(VERBS[sys.argv[1]](*sys.argv[2:])))

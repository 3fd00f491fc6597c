"""The processes of bench ``billion``: one plan or one commit each, on a table that ``huge_worker`` has made."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from huge_worker import COLUMNS, opened
from icefloe.codecs.manifest.context import manifest_context
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.overwrite import OverwriteFiles
from icefloe.expr.filter.bind import bind
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.metadata.snapshots import Operation
from icefloe.scan.plan import partition_fields
from icefloe.scan.prune import Pruner
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import read_root
from measure import Clock
from synthetic import LOCATION, Bed, Cost, data_files, equals, task_of


def _figures(cost: Cost, before: float) -> dict[str, Any]:
    return {**cost.sample(), "idle_mb": round(before, 1), "peak_mb": round(_memory("VmHWM"), 1)}


def _memory(name: str) -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith(name))


def plan(bed: Bed, files: int, per_leaf: int) -> dict[str, Any]:
    """Plan one file, which the first leaf lists."""
    before = _memory("VmRSS")
    cost, found = bed.plan(equals([per_leaf // 2]))
    if found.files != 1:
        raise RuntimeError(f"planned {found.files} files, not 1")
    return _figures(cost, before)


def append(bed: Bed, files: int, per_leaf: int) -> dict[str, Any]:
    """Append one file."""
    update = Append(added=data_files(LOCATION, files, 1, COLUMNS))
    before = _memory("VmRSS")
    return _figures(bed.commit(update, cold=True), before)


def removal(bed: Bed, files: int, per_leaf: int) -> dict[str, Any]:
    """Remove one file, which was planned."""
    task = task_of(manifest_context(bed.base.metadata), per_leaf // 2, per_leaf)
    update = OverwriteFiles(changes=FileChanges(removed=task), read=bed.head, operation=Operation.DELETE)
    before = _memory("VmRSS")
    return _figures(bed.commit(update, cold=True), before)


def unsorted(bed: Bed, files: int, per_leaf: int) -> dict[str, Any]:
    """The leaves that a filter by another column leaves to read; they are not read."""
    base = bed.base
    root = read_root(base.store, bed.head)
    start = Clock.now()
    bound = bind(parse_filter("c4 = 500000000000"), base.metadata.schema)
    left = Pruner(bound, partition_fields(base.metadata)).candidates(root).leaves
    time = start.until(Clock.now())
    return {**time, "leaves": len(left), "bytes": sum(leaf.size or 0 for leaf in left)}


VERBS: dict[str, Callable[[Bed, int, int], dict[str, Any]]] = {
    "plan": plan,
    "append": append,
    "removal": removal,
    "unsorted": unsorted,
}


def main(verb: str, folder: str, files: str, per_leaf: str) -> None:
    bed = opened(Path(folder), files)
    print(json.dumps(VERBS[verb](bed, int(files), int(per_leaf))))


if __name__ == "__main__":
    main(*sys.argv[1:])

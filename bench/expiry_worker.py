"""The processes of bench ``expiry``: they make tables, let snapshots expire and look for orphans, and answer in JSON.

Tables are in a catalog that Apache Iceberg opens too. Their data files are empty: their entries are made from numbers.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import icefloe
from icefloe.commit.base import TablePointer
from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.table.held_table import pointer_of
from measure import Clock, peak_mb, reset_peak, resident_mb
from synthetic import ROWS, data_files, ddl, names_of

COLUMNS = 10
DELETES = 10  # one of so many snapshots removes files
REMOVED = 0.25  # of all files
AGE_S = 10 * 24 * 3600  # of data files
ORPHANS_OLDER_S = 5 * 24 * 3600
STEP = 50_000  # files of a commit to a table for orphans
BOTH = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
}


def opened(folder: str) -> Any:
    """The catalog in a folder."""
    return icefloe.catalog("shared", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/icefloe")


def _new_table(folder: str, name: str, version: int) -> tuple[Any, TablePointer]:
    table = opened(folder).create_table(
        f"db.{name}", schema=ddl(COLUMNS), partition_by=["part"], format_version=version, properties=BOTH
    )
    return table, pointer_of(table)


def history(folder: str, name: str, version: str, files: str, snapshots: str) -> dict[str, Any]:
    """Make a table with so many snapshots and files: most snapshots add files, some remove the oldest ones."""
    table, pointer = _new_table(folder, name, int(version))
    total, count = int(files), int(snapshots)
    deletes = count // DELETES
    appends = count - deletes
    ends = [total * (number + 1) // appends for number in range(appends)]
    gone = int(total * REMOVED) // max(1, deletes)
    added = removed = 0
    for number in range(count):
        if number % DELETES == DELETES - 1:
            table.refresh()
            table.delete(f"c0 >= {removed * ROWS} and c0 < {(removed + gone) * ROWS}")
            removed += gone
        else:
            end = ends.pop(0)
            new = data_files(table.location, added, end - added, COLUMNS)
            _touch(new["location"].to_pylist())
            commit(pointer, Append(added=new))
            added = end
    table.refresh()
    return {"files": table.scan().plan().files, "snapshots": len(table.snapshots), "removed": removed}


def listing(folder: str, name: str, version: str, files: str, orphans: str) -> dict[str, Any]:
    """Make a table of one snapshot or a few, in a folder with ``files`` files of which ``orphans`` are unreferenced."""
    table, pointer = _new_table(folder, name, int(version))
    referenced = int(files) - int(orphans)
    for start in range(0, referenced, STEP):
        new = data_files(table.location, start, min(STEP, referenced - start), COLUMNS)
        _touch(new["location"].to_pylist())
        commit(pointer, Append(added=new))
    _touch(names_of(table.location, np.arange(referenced, int(files))).to_pylist())
    return {"files": referenced}


def _touch(locations: list[str]) -> None:
    """Make empty files that are ten days old."""
    old = time.time() - AGE_S
    made: set[str] = set()
    for location in locations:
        path = location.removeprefix("file://")
        parent = os.path.dirname(path)
        if parent not in made:
            os.makedirs(parent, exist_ok=True)
            made.add(parent)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        os.utime(path, (old, old))


def expire(folder: str, name: str, retain: str) -> dict[str, Any]:
    """Let all but the newest snapshots expire and delete the files."""
    table = opened(folder).load_table(f"db.{name}")

    def work() -> dict[str, Any]:
        plan = table.expire(older_than="2100-01-01T00:00:00+00:00", retain_last=int(retain))
        result = plan.execute()
        if len(result.failed) > 0 or result.problem is not None:
            raise RuntimeError(f"not all files were deleted: {result}")
        return {"counts": list(result.counts)}

    return _measured(work)


def orphans(folder: str, name: str) -> dict[str, Any]:
    """Plan the removal of orphan files."""
    table = opened(folder).load_table(f"db.{name}")
    older = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - ORPHANS_OLDER_S))
    return _measured(lambda: {"counts": [table.remove_orphans(older_than=older, max_share=1.0).files.num_rows]})


def _measured(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    reset_peak(os.getpid())
    idle, before = resident_mb(os.getpid()), Clock.now()
    found = work()
    sample = before.until(Clock.now())
    return {**{key: round(value, 1) for key, value in sample.items()}, **found, "idle_mb": idle, "peak_mb": peak_mb()}


VERBS: dict[str, Callable[..., object]] = {
    "history": history,
    "listing": listing,
    "expire": expire,
    "orphans": orphans,
}

if __name__ == "__main__":
    print(json.dumps(VERBS[sys.argv[1]](*sys.argv[2:])))

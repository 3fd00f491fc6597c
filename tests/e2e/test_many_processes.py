"""Writers as separate processes on one SQLite catalog: no acknowledged row is lost, and none comes twice."""

from __future__ import annotations

import multiprocessing
import os

import pyarrow as pa
import pytest

from tables import VERSIONS, new_catalog

PROCESSES = 8
APPENDS = int(os.environ.get("ICEFLOE_APPENDS", "3"))


def append_many(folder, worker: int, start) -> None:
    table = new_catalog(folder).load_table("db.t")
    start.wait()
    for n in range(APPENDS):
        table.append(pa.table({"id": pa.array([worker * 1000 + n], pa.int64())}))


@pytest.mark.parametrize("version", VERSIONS)
def test_eight_processes_appending_to_one_table_lose_nothing(tmp_path, version):
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint", format_version=version)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["icefloe", "tables"])  # eight imports at once would be most of the time
    start = context.Barrier(PROCESSES)
    workers = [context.Process(target=append_many, args=(tmp_path, w, start)) for w in range(PROCESSES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES
    expected = sorted(w * 1000 + n for w in range(PROCESSES) for n in range(APPENDS))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == expected
    snapshots = table.snapshots
    assert [s.sequence_number for s in snapshots] == list(range(1, len(expected) + 1))
    assert [s.parent_id for s in snapshots] == [None, *(s.snapshot_id for s in snapshots[:-1])]
    named = {s.root for s in snapshots}
    roots = {str(p) for p in (tmp_path / "warehouse/db/t/metadata").iterdir() if p.name.startswith(("root-", "snap-"))}
    assert {f"file://{path}" for path in roots} == named  # attempts that lost the race left nothing behind

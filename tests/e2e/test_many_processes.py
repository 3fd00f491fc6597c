"""Writers as separate processes on one table, in every catalog that processes can share.

No acknowledged row is lost and none comes twice. ``ICEFLOE_APPENDS`` is the number of appends of each process. A
control with a catalog that looks before it renames, as file-system tables are often committed, loses rows here: it
shows that these tests would see it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.catalogs.files import FilesCatalog
from icefloe.errors import ConflictError, NoSuchFile
from icefloe.io.local import LocalFileIO, local_path
from icefloe.maintenance.reachable import reachable_files
from icefloe.table.catalog import Catalog, catalog
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from support.selection import thorough
from support.tables import VERSIONS

PROCESSES = 8
TRIES = 200
CLEANERS = 2  # processes that delete files, where some do
APPENDS = int(os.environ.get("ICEFLOE_APPENDS", "3"))
LONG = os.environ.get("ICEFLOE_LONG", "") == "1"
CONTROL_APPENDS = 5
NEVER_GIVE_UP = {"commit.retry.num-retries": "1000", "commit.retry.max-wait-ms": "200"}
_METADATA = re.compile(r"v?(\d+)(-[0-9a-f-]+)?(\.gz)?\.metadata\.json")


class LooksThenRenames(LocalFileIO):
    """What must not be done: between the look and the rename another process may have taken the name."""

    def put_if_absent(self, location: str, data: bytes) -> bool:
        if "/.exclusive-" in location:  # the check before the first commit, which would refuse this storage
            return super().put_if_absent(location, data)
        path = local_path(location)
        temporary = Path(f"{path}.{uuid.uuid4()}.tmp")
        temporary.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        if os.path.exists(path):
            temporary.unlink()
            return False
        time.sleep(0.002)  # as a busy machine does by itself, if one waits long enough
        temporary.rename(path)
        return True

    def link_if_absent(self, source: str, location: str) -> bool:
        return self.put_if_absent(location, self.read(source))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which catalog the processes share, in words that a process understands."""

    kind: str
    folder: Path
    uri: str = ""

    def open(self) -> Catalog:
        warehouse = f"file://{self.folder}/warehouse"
        if self.kind == "control":
            return Catalog(FilesCatalog("lake", warehouse=warehouse, io=LooksThenRenames()))
        if self.kind == "files":
            return catalog("lake", type="files", warehouse=warehouse)
        return catalog("lake", uri=self.uri, warehouse=warehouse)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    uris = {"sqlite": lambda: f"sqlite:///{tmp_path}/catalog.db", "files": lambda: ""}
    uri = uris.get(request.param, lambda: request.getfixturevalue("postgres_uri"))()
    return Place(kind=request.param, folder=tmp_path, uri=uri)


def append_many(place: Place, worker: int, appends: int, start) -> None:
    table = place.open().load_table("db.t")
    start.wait()
    for n in range(appends):
        table.append(pa.table({"id": pa.array([worker * 1000 + n], pa.int64())}))


def churn(place: Place, worker: int, appends: int, start) -> None:
    """Append rows and remove every other one again, once with its file and once by its position."""
    table = place.open().load_table("db.t")
    start.wait()
    for n in range(appends):
        first = worker * 1000 + 3 * n
        table.append(pa.table({"id": pa.array([first, first + 1], pa.int64())}))
        table.append(pa.table({"id": pa.array([first + 2], pa.int64())}))
        table.delete(f"id = {first}")
        table.delete(f"id = {first + 2}")


def churn_and_compact(place: Place, worker: int, appends: int, start) -> None:
    """The same, with every process compacting the table in between; a conflict is no error for it."""
    table = place.open().load_table("db.t")
    start.wait()
    for n in range(appends):
        first = worker * 1000 + 3 * n
        table.append(pa.table({"id": pa.array([first, first + 1], pa.int64())}))
        table.delete(f"id = {first}", retries=1000)
        table.append(pa.table({"id": pa.array([first + 2], pa.int64())}))
        with contextlib.suppress(ConflictError):
            table.compact(options={"min-input-files": 2, "partial-progress.enabled": n % 2 == 0}).execute()


def again(act: Callable[[], Any]) -> Any:
    """Repeat what failed because expiry has deleted a file of the older state that it read; nothing was committed."""
    for _ in range(TRIES):
        try:
            return act()
        except NoSuchFile:
            continue
    raise AssertionError("files are missing again and again, so that the newest state lacks them")


def churn_compact_and_clean(place: Place, worker: int, appends: int, start) -> None:
    """The first process expires all snapshots but the newest, the second removes orphans, the others do as above."""
    table = place.open().load_table("db.t")
    start.wait()
    for n in range(appends):
        if worker < CLEANERS:
            for round in range(4):
                clean(place, table, worker, 4 * n + round)
            continue
        first = worker * 1000 + 3 * n
        again(lambda first=first: table.append(pa.table({"id": pa.array([first, first + 1], pa.int64())})))
        again(lambda first=first: table.delete(f"id = {first}", retries=1000))
        again(lambda first=first: table.append(pa.table({"id": pa.array([first + 2], pa.int64())})))
        with contextlib.suppress(ConflictError, NoSuchFile):
            table.compact(options={"min-input-files": 2, "partial-progress.enabled": n % 2 == 0}).execute()


def clean(place: Place, table: Table, worker: int, number: int) -> None:
    time.sleep(0.05)
    if worker == 0:
        while True:  # the first time until there was something to expire
            result = again(lambda: table.expire(older_than=datetime.now(UTC), retain_last=1).execute())
            if number > 0 or result.snapshots > 0:
                return
    orphan = place.folder / f"warehouse/db/t/data/orphan-{number}.parquet"
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"")
    os.utime(orphan, (0, 0))  # old enough
    again(lambda: table.remove_orphans(max_share=1.0).execute())


def run(
    place: Place, appends: int, version: int, work=append_many, properties: Mapping[str, str] = NEVER_GIVE_UP
) -> Table:
    """Let all processes work on a new table; every one of them must have acknowledged all."""
    place.open().create_table("db.t", schema="id bigint", format_version=version, properties=dict(properties))
    context = multiprocessing.get_context("forkserver")
    # Eight imports at once would take most of the time.
    context.set_forkserver_preload(["icefloe", "psycopg", "support.tables"])
    start = context.Barrier(PROCESSES)
    workers = [context.Process(target=work, args=(place, w, appends, start)) for w in range(PROCESSES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES
    return place.open().load_table("db.t")


def rows_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def written(appends: int) -> list[int]:
    return sorted(worker * 1000 + n for worker in range(PROCESSES) for n in range(appends))


def written_rows(appends: int) -> set[int]:
    """All rows that a process has ever added, with those that were deleted."""
    return {w * 1000 + n for w in range(CLEANERS, PROCESSES) for n in range(3 * appends)}


@pytest.mark.slow
@pytest.mark.parametrize("version", [version if version == 4 else thorough(version) for version in VERSIONS])
@pytest.mark.parametrize("place", ["files", "sqlite", "postgres"], indirect=True)
def test_eight_processes_appending_to_one_table_lose_nothing(place: Place, version: int) -> None:
    table = run(place, APPENDS, version)
    assert rows_of(table) == written(APPENDS)
    commits = PROCESSES * APPENDS
    snapshots = table.snapshots
    if version > 1:
        assert [s.sequence_number for s in snapshots] == list(range(1, commits + 1))
    assert [s.parent_id for s in snapshots] == [None, *(s.snapshot_id for s in snapshots[:-1])]
    names = [path.name for path in (place.folder / "warehouse/db/t/metadata").iterdir()]
    roots = {name for name in names if name.startswith(("root-", "snap-"))}
    assert roots == {s.root_location.rsplit("/", 1)[-1] for s in snapshots}  # attempts that lost left nothing behind
    numbers = Counter(int(found[1]) for name in names if (found := _METADATA.fullmatch(name)) is not None)
    first = 1 if place.kind == "files" else 0
    assert numbers == dict.fromkeys(range(first, first + commits + 1), 1)  # each version once, and none missing


# Leaves, flushes, merges, and vectors of manifests in files, all the time.
DEEP = {
    **NEVER_GIVE_UP,
    "commit.root.max-data-files": "2",
    "commit.root.max-dvs": "1",
    "commit.leaf.max-dead-percent": "30",
    "commit.leaf.min-dead-rows": "1",
    "commit.manifest.min-count-to-merge": "3",
    "write.manifest-dv.inline-max-bytes": "0",
    "write.delete.isolation-level": "snapshot",
}


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("place", ["files", "sqlite", "postgres"], indirect=True)
def test_processes_that_add_and_remove_files_of_the_same_leaves_lose_nothing(place: Place) -> None:
    appends = APPENDS // 4 if LONG else 1  # each time four commits
    table = run(place, appends, 4, churn, DEEP)
    assert rows_of(table) == sorted(w * 1000 + 3 * n + 1 for w in range(PROCESSES) for n in range(appends))
    assert len(table.snapshots) == 4 * PROCESSES * appends
    assert check_table(table) == []
    named = set(reachable_files(pointer_of(table).load(), hidden=True)["location"].to_pylist())
    files = {f"file://{path}" for path in (place.folder / "warehouse/db/t").rglob("*") if path.is_file()}
    versions = {file for file in files if file.endswith(".metadata.json")}  # the log forgets the oldest ones
    assert len(versions) == 4 * PROCESSES * appends + 1
    assert {f for f in files - named - versions if not f.endswith("version-hint.text")} == set()  # nor left anything


@pytest.mark.slow
@pytest.mark.parametrize("version", [4, thorough(2), thorough(3)])
@pytest.mark.parametrize("place", ["files", "sqlite", "postgres"], indirect=True)
def test_processes_that_compact_beside_each_other_lose_and_resurrect_nothing(place: Place, version: int) -> None:
    appends = APPENDS if LONG else 1
    table = run(place, appends, version, churn_and_compact, DEEP)
    kept = [w * 1000 + 3 * n + more for w in range(PROCESSES) for n in range(appends) for more in (1, 2)]
    assert rows_of(table) == sorted(kept)
    assert check_table(table) == []


@pytest.mark.slow
@pytest.mark.parametrize("version", [4, thorough(1), thorough(2), thorough(3)])
@pytest.mark.parametrize("place", ["files", "sqlite", "postgres"], indirect=True)
def test_processes_that_compact_beside_expiry_and_orphan_removal_lose_nothing(place: Place, version: int) -> None:
    appends = APPENDS if LONG else 1
    table = run(place, appends, version, churn_compact_and_clean, DEEP)
    workers = range(CLEANERS, PROCESSES)
    kept = sorted(w * 1000 + 3 * n + more for w in workers for n in range(appends) for more in (1, 2))
    assert rows_of(table) == kept
    for snapshot in table.snapshots:
        assert set(table.at(snapshot=snapshot.snapshot_id).scan().to_arrow()["id"].to_pylist()) <= written_rows(appends)
    assert check_table(table) == []
    table.remove_orphans(max_share=1.0).execute()
    assert list((place.folder / "warehouse/db/t/data").glob("orphan-*")) == []


@pytest.mark.thorough
def test_a_catalog_that_looks_before_it_renames_loses_rows_in_the_same_way(tmp_path: Path) -> None:
    table = run(Place(kind="control", folder=tmp_path), CONTROL_APPENDS, 2)
    assert set(rows_of(table)) < set(written(CONTROL_APPENDS))

"""Files to delete that Spark finds: the plans are those of this process, and executing them has the same result."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.commit.loop import commit
from icefloe.commit.operations.snapshot_updates import SetStatistics
from icefloe.engines.choose import engine_for
from icefloe.engines.file_sets import Kind, ReferencedFiles, files_at, journal_folder
from icefloe.env import SYSTEM
from icefloe.errors import CorruptFile, UnsupportedError
from icefloe.maintenance.containment import check_no_alias
from icefloe.maintenance.reachable import reachable_files
from icefloe.model.metadata.statistics_files import StatisticsFile
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from support.selection import thorough
from support.tables import new_catalog

pytestmark = pytest.mark.spark

LATER = "2100-01-01T00:00:00+00:00"
DAY_MS = 86_400_000
LEAVES = {  # leaves and deletion vectors of manifests from the first commits on
    "commit.root.max-data-files": "1",
    "commit.root.max-dvs": "1",
    "commit.leaf.max-dead-percent": "95",
    "commit.manifest-merge.enabled": "false",
    "write.manifest-dv.inline-max-bytes": "0",
    "write.delete.mode": "merge-on-read",
}


def rows(*ids: int, note: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "note": [note] * len(ids)})


def lived_in(folder: Path, version: int) -> Table:
    """A table with branches, tags, removed files, deletes, rewritten manifests and statistics files."""
    table = new_catalog(folder).create_table(
        "db.t", "id bigint, note string", format_version=version, properties=LEAVES
    )
    table.append(rows(1, 2, 3))
    table.tag("first")
    for number in range(4, 8):
        table.append(rows(number, number + 100))
    table.delete("id in (2, 105)")
    table.append(rows(20), branch="side", create_branch=True)
    table.append(rows(21), wap_id="audit")
    table.delete("id in (4, 104)")  # all rows of a file
    if version > 1:
        table.upsert(rows(1, 8, note="b"), on=["id"], deletes="equality")
    table.rewrite_manifests().execute()
    table.delete("id in (6, 106)")
    table.append(rows(30))
    for snapshot in (table.snapshots[1], table.snapshots[-1]):
        location = put(table, f"metadata/{snapshot.snapshot_id}.stats")
        file = StatisticsFile(
            snapshot_id=snapshot.snapshot_id,
            statistics_path=location,
            file_size_in_bytes=1,
            file_footer_size_in_bytes=1,
        )
        commit(pointer_of(table), SetStatistics(files_of_snapshots=(file,)))
    return table.refresh()


def put(table: Table, name: str) -> str:
    location = f"{table.location}/{name}"
    pointer_of(table).io.write_new(location, b"x")
    return location


def later(table: Table, days: float = 10) -> Table:
    return Table(pointer_of(table), replace(SYSTEM, now_ms=lambda: SYSTEM.now_ms() + int(days * DAY_MS)))


def on_disk(table: Table) -> set[str]:
    folder = journal_folder(table.location)
    return {info.location for info in pointer_of(table).io.list(table.location) if not info.location.startswith(folder)}


@pytest.mark.parametrize("version", [4, thorough(2), 1, 3])
def test_expiry_and_orphan_removal_on_spark_equal_those_in_this_process(spark, tmp_path, version):
    table = lived_in(tmp_path, version)
    here, there = table.expire(older_than=LATER), table.expire(older_than=LATER, spark=spark)
    assert there.files.equals(here.files)
    assert here.files.num_rows > 8
    assert {"data", "manifest"} <= set(here.files["kind"].to_pylist())
    assert (repr(there), there.expired, there.kept) == (repr(here), here.expired, here.kept)
    before = on_disk(table)
    result = there.execute()
    assert (result.problem, result.left, result.failed) == (None, (), ())
    assert before - on_disk(table) == set(here.files["location"].to_pylist())
    assert on_disk(table) == set(reachable_files(pointer_of(table.refresh()).held())["location"].to_pylist())
    assert check_table(table) == []
    junk = {put(table, name) for name in ("data/a.parquet", "metadata/b.avro", "data/x/_p=1/c.orc", "odd.txt")}
    put(table, "data/_hidden/d.parquet")
    here, there = (later(table).remove_orphans(max_share=1, spark=where) for where in (None, spark))
    assert there.files.equals(here.files)
    assert set(here.files["location"].to_pylist()) == junk
    assert (there.listed, there.young) == (here.listed, here.young)
    assert there.execute().files == len(junk)
    assert later(table).remove_orphans(spark=spark).files.num_rows == 0
    assert check_table(table) == []


def spellings(rng: random.Random, count: int) -> list[str]:
    """Random locations, some of which name the same file."""
    found = []
    for _ in range(count):
        store = rng.choice(["file:///wh/t/", "file:/wh/t/", "/wh/t/", "/wh//t/", "file:///wh/u/", "s3://b/t/", ""])
        folder = rng.choice(["data/", "data/x/", "", "data/p=1/"])
        found.append(f"{store}{folder}{rng.randrange(12)}.parquet")
    return found


@pytest.mark.parametrize("seed", range(4))
def test_locations_are_compared_by_their_spelling_as_in_this_process(spark, tmp_path, seed):
    rng = random.Random(seed)
    store = pointer_of(lived_in(tmp_path, 2)).held().store
    for plain in (True, False):
        sets = []
        for count in (60, 40):
            names = spellings(rng, 7 * count if plain else count)
            names = [name for name in names if not plain or name.startswith("file:///wh/t/")]
            files = files_at(names, Kind.DATA)
            sets.append(ReferencedFiles(store=store, table_location="file:///wh/t", files=files))
        here, there = (engine_for(where).file_sets.subtract(*sets) for where in (None, spark))
        assert there.files.equals(here.files)
        assert 0 < here.files.num_rows < len(sets[0].files)
        assert set(there.similar.to_pylist()) <= set(here.similar.to_pylist())
        assert is_refused(there) == is_refused(here)


def is_refused(found: object) -> bool:
    """Whether a kept file may be one to delete; which of several is named may differ."""
    try:
        check_no_alias(found, "file:///wh/t")
    except UnsupportedError:
        return True
    return False


@pytest.mark.parametrize(
    "kept", ["hdfs://nn1{}/data/3.parquet", "file://{}/x/../data/3.parquet", "file://{}/linked/3.parquet"]
)
def test_a_kept_file_that_may_be_one_to_delete_is_refused_as_in_this_process(spark, tmp_path, kept):
    (tmp_path / "t" / "data").mkdir(parents=True)
    (tmp_path / "t" / "linked").symlink_to(tmp_path / "t" / "data")
    location = f"file://{tmp_path}/t"
    store = pointer_of(new_catalog(tmp_path).create_table("db.other", "id bigint")).held().store
    named = [f"{location}/data/{number}.parquet" for number in range(5)]
    alias = kept.format(tmp_path / "t")
    sets = [
        ReferencedFiles(store=store, table_location=location, files=files_at(names, Kind.DATA))
        for names in (named, [*named[:3], alias])
    ]
    for where in (None, spark):
        with pytest.raises(UnsupportedError, match="othing was deleted"):
            check_no_alias(engine_for(where).file_sets.subtract(*sets), location)


def test_unreadable_manifests_stop_an_expiry_if_they_are_kept_and_are_skipped_if_not(spark, tmp_path, caplog):
    table = lived_in(tmp_path, 2)
    all_files = table.expire(older_than=LATER).files
    manifests = [row for row in all_files.to_pylist() if row["kind"] == "manifest"]
    freed = {row["location"] for row in manifests if row["content"] is not None}
    damaged = sorted(freed)[0]
    kept = next(name for name in on_disk(table) if name.endswith("-m0.avro") and name not in freed)
    path = Path(damaged.removeprefix("file://"))
    good = path.read_bytes()
    path.write_bytes(good[:20])
    table = new_catalog(tmp_path).load_table("db.t")
    plan = table.expire(older_than=LATER, spark=spark)
    assert f"the files of manifest {damaged} are not freed" in caplog.text
    assert plan.files.equals(table.expire(older_than=LATER).files)
    path.write_bytes(good)
    Path(kept.removeprefix("file://")).write_bytes(b"Obj")
    with pytest.raises(CorruptFile):
        new_catalog(tmp_path).load_table("db.t").expire(older_than=LATER, spark=spark)

"""Removal of orphan files: what counts as one, what is refused, and writers that are about to commit."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.engines.file_sets import ListedFolder
from icefloe.env import SYSTEM
from icefloe.errors import InputError, UnsupportedError
from icefloe.maintenance.deletions import journal_folder
from icefloe.maintenance.reachable import reachable_files
from icefloe.table.catalog import catalog
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from support.engine_work import write_entries
from support.tables import VERSIONS, new_catalog

DAY_MS = 86_400_000
ALL = 1.0


def new_table(folder: Path, version: int = 2) -> Table:
    table = new_catalog(folder).create_table("db.t", "id bigint", format_version=version)
    table.append(rows(1))
    return table


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def later(table: Table, days: float = 10) -> Table:
    return Table(pointer_of(table), replace(SYSTEM, now_ms=lambda: SYSTEM.now_ms() + int(days * DAY_MS)))


def put(table: Table, name: str, data: bytes = b"x") -> str:
    location = f"{table.location}/{name}"
    pointer_of(table).io.write_new(location, data)
    return location


def on_disk(table: Table) -> set[str]:
    folder = journal_folder(table.location)
    return {info.location for info in pointer_of(table).io.list(table.location) if not info.location.startswith(folder)}


def found(table: Table, **arguments: object) -> set[str]:
    return set(table.remove_orphans(**{"max_share": ALL, **arguments}).files["location"].to_pylist())


@pytest.mark.parametrize("version", VERSIONS)
def test_old_files_that_no_metadata_references_are_deleted_and_nothing_else(tmp_path, version):
    table = new_table(tmp_path, version)
    table.append(rows(2, 3))
    table.delete("id = 2")
    table.tag("t")
    table.append(rows(4), wap_id="staged")
    before = on_disk(table)
    junk = {put(table, name) for name in ("data/a.parquet", "metadata/b.avro", "data/x/_p=1/c.orc", "odd.txt")}
    plan = later(table).remove_orphans(max_share=ALL)
    assert on_disk(table) == before | junk, "a plan changes nothing"
    assert set(plan.files["location"].to_pylist()) == junk
    assert plan.listed == len(before | junk)
    result = plan.execute()
    assert (result.files, result.bytes, result.still_used, result.failed) == (4, 4, 0, ())
    assert on_disk(table) == before
    assert check_table(table) == []
    assert later(table).remove_orphans().files.num_rows == 0


def test_a_plan_shows_location_bytes_age_and_a_guess_of_the_kind(tmp_path):
    table = new_table(tmp_path)
    names = {
        "data/a.parquet": "data",
        "data/a-deletes.parquet": "deletes",
        "data/v.puffin": "deletes",
        "metadata/m.avro": "manifest",
        "metadata/s.stats": "statistics",
        "metadata/.v3.metadata.json.0123456789abcdef0123456789abcdef.tmp": "temporary",
        "metadata/.exclusive-01234567-89ab-cdef-0123-456789abcdef.tmp": "temporary",  # a check whose program died
        "notes.txt": "other",
    }
    for name in names:
        put(table, name)
    plan = later(table).remove_orphans(max_share=ALL)
    shown = {row["location"].removeprefix(f"{table.location}/"): row["kind"] for row in plan.files.to_pylist()}
    assert shown == names
    assert f"  {table.location}/data/a.parquet: data, 1 bytes, 10.0 days old" in str(plan)
    assert plan.as_dict()["bytes"] == len(names)


def test_younger_files_stay_and_less_than_a_day_is_refused(tmp_path):
    table = new_table(tmp_path)
    orphan = put(table, "data/a.parquet")
    assert found(table) == set()
    assert found(later(table, 2.9)) == set()
    assert "keep 1 younger files" in str(table.remove_orphans())
    assert found(later(table, 3.1)) == {orphan}
    soon = datetime.now(UTC) + timedelta(hours=1)
    with pytest.raises(InputError, match="less than 24 hours ago"):
        table.remove_orphans(older_than=soon)
    with pytest.raises(InputError, match="no time zone"):
        table.remove_orphans(older_than=datetime(2020, 1, 1))
    os.utime(orphan.removeprefix("file://"), (1_000_000, 1_000_000))
    assert found(table, older_than=soon, allow_recent=True) == {orphan}


@pytest.mark.parametrize("version", VERSIONS)
def test_files_of_a_writer_that_commits_between_plan_and_execution_stay(tmp_path, version):
    table = new_table(tmp_path, version)
    entries = write_entries(pointer_of(table).io, rows(2, 3), table.metadata)
    written = set(entries["location"].to_pylist())
    orphan = put(table, "data/a.parquet")
    plan = later(table).remove_orphans(max_share=ALL)
    assert set(plan.files["location"].to_pylist()) == {orphan, *written}
    other = new_catalog(tmp_path).load_table("db.t")
    commit(pointer_of(other), Append(added=entries))
    result = plan.execute()
    assert (result.files, result.still_used) == (1, 1)
    assert table.refresh().scan().count() == 3
    assert check_table(table) == []


def test_files_of_a_writer_that_commits_while_files_are_listed_are_not_planned(tmp_path, monkeypatch):
    table = new_table(tmp_path)
    entries = write_entries(pointer_of(table).io, rows(2, 3), table.metadata)
    orphan = put(table, "data/a.parquet")
    read = ListedFolder.read

    def listed_then_committed(listing: ListedFolder) -> pa.Table:
        files = read(listing)
        commit(pointer_of(new_catalog(tmp_path).load_table("db.t")), Append(added=entries))
        return files

    monkeypatch.setattr(ListedFolder, "read", listed_then_committed)
    assert found(later(table)) == {orphan}


def test_files_of_a_writer_that_commits_while_chunks_are_deleted_stay(tmp_path, monkeypatch):
    table = new_table(tmp_path)
    entries = write_entries(pointer_of(table).io, rows(2), table.metadata)
    put(table, "data/0.parquet")
    plan = later(table).remove_orphans(max_share=ALL)
    monkeypatch.setattr("icefloe.maintenance.deletions.CHUNK", 1)
    other = new_catalog(tmp_path).load_table("db.t")

    def commit_now(done, total, step):
        if done == 1:
            commit(pointer_of(other), Append(added=entries))

    assert plan.files["location"].to_pylist()[0].endswith("/0.parquet")
    assert plan.execute(progress=commit_now).files == 1
    assert table.refresh().scan().count() == 2
    assert check_table(table) == []


def test_a_file_that_was_written_again_after_the_plan_stays(tmp_path):
    table = new_table(tmp_path)
    orphan = put(table, "data/a.parquet")
    path = orphan.removeprefix("file://")
    os.utime(path, (1_000_000, 1_000_000))
    plan = table.remove_orphans(max_share=ALL)
    Path(path).write_bytes(b"new")
    assert plan.execute().files == 0
    assert Path(path).exists()


def test_too_many_orphans_are_refused_unless_the_share_is_raised(tmp_path):
    table = new_table(tmp_path)
    for number in range(10):
        put(table, f"data/{number}.parquet")
    with pytest.raises(InputError, match=r"10 of \d+ files .* more than 20%.* max_share=0\.\d\d"):
        later(table).remove_orphans()
    assert len(found(later(table), max_share=0.9)) == 10
    with pytest.raises(InputError, match="from 0 to 1"):
        later(table).remove_orphans(max_share=20)


def test_metadata_of_another_table_below_the_location_is_refused(tmp_path):
    table = new_table(tmp_path)
    inner = new_catalog(tmp_path).create_table("db.inner", "id bigint", location=f"{table.location}/inner")
    inner.append(rows(1))
    orphan = put(table, "data/a.parquet")
    with pytest.raises(InputError, match=f"metadata of another table, with uuid '{inner.metadata.table_uuid}'"):
        later(table).remove_orphans(max_share=ALL)
    assert pointer_of(table).io.exists(orphan)
    assert found(later(table), location=f"{table.location}/data") == {orphan}


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_another_table_in_the_same_folder_is_refused(tmp_path, compression):
    table = new_table(tmp_path)
    settings = {"write.metadata.compression-codec": compression}
    new_catalog(tmp_path).create_table("db.two", "id bigint", location=table.location, properties=settings)
    put(table, "data/a.parquet")
    with pytest.raises(InputError, match="metadata of another table"):
        later(table).remove_orphans(max_share=ALL)


def test_metadata_of_another_table_that_comes_after_the_plan_is_refused_too(tmp_path):
    table = new_table(tmp_path)
    orphan = put(table, "data/a.parquet")
    plan = later(table).remove_orphans(max_share=ALL)
    new_catalog(tmp_path).create_table("db.two", "id bigint", location=table.location)
    with pytest.raises(InputError, match="metadata of another table"):
        plan.execute()
    assert pointer_of(table).io.exists(orphan)


def test_old_metadata_files_of_the_table_itself_are_orphans_once_the_log_forgets_them(tmp_path):
    table = new_table(tmp_path)
    table.set_properties({"write.metadata.previous-versions-max": "1"})
    for number in range(3):
        table.append(rows(number))
    names = found(later(table))
    assert len(names) == 4
    assert all(name.endswith(".metadata.json") for name in names)
    later(table).remove_orphans(max_share=ALL).execute()
    assert check_table(table) == []


def test_a_half_written_metadata_file_is_an_orphan(tmp_path):
    table = new_table(tmp_path)
    data = pointer_of(table).io.read(table.metadata_location)
    torn = {put(table, "metadata/torn.metadata.json", data[:40]), put(table, "metadata/empty.metadata.json", b"")}
    assert found(later(table)) == torn


def test_hidden_files_of_other_programs_journals_and_the_version_hint_stay(tmp_path):
    table = new_table(tmp_path)
    for name in ("_SUCCESS", ".lock", "_delta_log/0.json", ".hoodie/x", "metadata/version-hint.text", "data/.x.crc"):
        put(table, name)
    orphan = put(table, "data/_day=1/a.parquet")
    assert found(later(table)) == {orphan}
    assert later(table).remove_orphans(max_share=ALL).execute().files == 1
    assert len(list(pointer_of(table).io.list(journal_folder(table.location)))) == 2
    assert found(later(table)) == set()


@pytest.mark.parametrize("where", ["/", "{parent}", "{location}/../u", "{location}x", "s3://b/t", "{location}/data/.."])
def test_a_location_outside_the_table_is_refused(tmp_path, where):
    table = new_table(tmp_path)
    where = where.format(location=table.location, parent=table.location.rpartition("/")[0])
    with pytest.raises(InputError, match="is not in"):
        later(table).remove_orphans(location=where)


def test_files_in_a_data_path_outside_of_the_location_are_not_looked_at(tmp_path):
    table = new_table(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    table.set_properties({"write.data.path": f"file://{elsewhere}"})
    table.append(rows(2))
    (elsewhere / "orphan.parquet").write_bytes(b"x")
    assert found(later(table)) == set()
    with pytest.raises(InputError, match="is not in"):
        later(table).remove_orphans(location=f"file://{elsewhere}")
    table.set_properties({"write.data.path": f"{table.location}/other"})
    table.append(rows(3))
    orphan = put(table, "other/orphan.parquet")
    assert found(later(table)) == {orphan}


@pytest.mark.parametrize("spelling", ["file:{path}", "{path}", "file://localhost{path}"])
def test_spellings_of_one_location_are_one_file(tmp_path, spelling):
    """Metadata names files by a spelling of its own; those files are not orphans."""
    files = tmp_path / "warehouse"
    shown = catalog("x", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{files}")
    table = shown.create_table("db.t", "id bigint")
    path = f"{files}/db/t"
    entries = write_entries(pointer_of(table).io, rows(1), table.metadata)
    respelled = [spelling.format(path=name.removeprefix("file://")) for name in entries["location"].to_pylist()]
    entries = entries.set_column(entries.column_names.index("location"), "location", pa.array(respelled, pa.string()))
    commit(pointer_of(table), Append(added=entries))
    orphan = put(table, "data/a.parquet")
    assert path in orphan
    assert found(later(table)) == {orphan}


def test_files_that_another_host_may_name_are_refused(tmp_path):
    table = new_table(tmp_path)
    entries = write_entries(pointer_of(table).io, rows(2), table.metadata)
    remote = [name.replace("file://", "hdfs://nn1") for name in entries["location"].to_pylist()]
    entries = entries.set_column(entries.column_names.index("location"), "location", pa.array(remote, pa.string()))
    commit(pointer_of(table), Append(added=entries))
    with pytest.raises(UnsupportedError, match=r"hdfs://nn1.* may be the unreferenced file file://"):
        later(table).remove_orphans(max_share=ALL)


def test_files_behind_a_linked_folder_are_neither_listed_nor_deleted(tmp_path):
    table = new_table(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.parquet").write_bytes(b"x")
    folder = Path(table.location.removeprefix("file://"))
    (folder / "data" / "linked").symlink_to(outside)
    assert found(later(table)) == set()


def test_a_purge_after_all_leaves_nothing(tmp_path):
    table = new_table(tmp_path)
    put(table, "data/a.parquet")
    later(table).remove_orphans(max_share=ALL).execute()
    left = put(table, "data/b.parquet")
    lines = [{"table-uuid": table.metadata.table_uuid, "reason": "orphans", "started-ms": 1}, {"location": left}]
    put(table, "metadata/deletions/1.jsonl", msgspec.json.Encoder().encode_lines([*lines, {"end": 1}]))
    new_catalog(tmp_path).drop_table("db.t", purge=True)
    assert list(pointer_of(table).io.list(table.location)) == []


def test_reachable_files_are_never_planned_however_old_they_are(tmp_path):
    table = new_table(tmp_path)
    for location in reachable_files(pointer_of(table).load())["location"].to_pylist():
        os.utime(location.removeprefix("file://"), (1, 1))
    assert found(later(table, 10_000)) == set()


def test_what_a_killed_write_of_spark_left_is_removed(tmp_path: Path) -> None:
    # Its empty folders stayed for ever, and so did its files, as their folder has the name of a hidden one.
    table = new_table(tmp_path)
    data = Path(table.location.removeprefix("file://")) / "data"
    old, killed, young = (data / f"344b83b5-e345-4b80-8519-700446c5e22{number}" for number in range(3))
    for write in (old, killed, young):
        (write / "_temporary" / "0" / "_temporary").mkdir(parents=True)
    (part := killed / "_temporary" / "0" / "part-0.parquet").write_bytes(b"x")
    (foreign := data / "_temporary" / "0").mkdir(parents=True)  # another program's
    for write in (old, killed):
        for path in sorted(write.rglob("*"), reverse=True):
            os.utime(path, (1_000_000, 1_000_000))
    plan = table.remove_orphans(max_share=ALL)
    assert [Path(folder.removeprefix("file://")) for folder in plan.folders] == [old / "_temporary"]
    assert plan.files["location"].to_pylist() == [f"file://{part}"]
    assert "remove 1 empty folders of Spark writes that were killed" in repr(plan)
    result = plan.execute()
    assert (result.folders, result.files) == (1, 1)
    assert [path.exists() for path in (old, part, young / "_temporary", foreign)] == [False, False, True, True]
    for path in sorted(killed.rglob("*"), reverse=True):
        os.utime(path, (1_000_000, 1_000_000))
    assert table.remove_orphans(location=f"{table.location}/metadata").folders == ()
    assert table.remove_orphans().execute().folders == 1
    assert not killed.exists()
    check_table(table)

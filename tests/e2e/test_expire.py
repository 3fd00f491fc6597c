"""Expiry of snapshots: plans, the commit, the files that go, the journal, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from icefloe.commit.loop import commit
from icefloe.commit.operations.ref_updates import SetRef
from icefloe.commit.operations.snapshot_updates import SetStatistics
from icefloe.env import SYSTEM
from icefloe.errors import InputError, NoSuchSnapshot, StorageError
from icefloe.maintenance.deletions import KEPT_MS, journal_folder
from icefloe.maintenance.reachable import reachable_files
from icefloe.model.metadata.snapshots import Ref
from icefloe.model.metadata.statistics_files import StatisticsFile
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from support.tables import VERSIONS, new_catalog

LATER = "2100-01-01T00:00:00+00:00"
DAY_MS = 86_400_000


def new_table(folder: Path, version: int = 2, **properties: str) -> Table:
    properties = {name.replace("_", "-"): text for name, text in properties.items()}
    return new_catalog(folder).create_table(
        "db.t", "id bigint, note string", format_version=version, properties=properties
    )


def rows(*ids: int, note: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "note": [note] * len(ids)})


def read(table: Table, **at: object) -> list[int]:
    return sorted(table.at(**at).scan(columns=["id"]).to_arrow()["id"].to_pylist())


def on_disk(table: Table) -> set[str]:
    """All files of the table, without its journals."""
    folder = journal_folder(table.location)
    files = {info.location for info in pointer_of(table).io.list(table.location)}
    return {file for file in files if not file.startswith(folder)}


def reachable(table: Table) -> set[str]:
    return set(reachable_files(pointer_of(table.refresh()).held())["location"].to_pylist())


def later(table: Table, days: float) -> Table:
    """The table as a process sees it whose clock is some days ahead."""
    return Table(pointer_of(table), replace(SYSTEM, now_ms=lambda: SYSTEM.now_ms() + int(days * DAY_MS)))


@pytest.mark.parametrize("version", VERSIONS)
def test_an_expiry_keeps_what_refs_need_and_deletes_exactly_what_is_not_reachable_any_more(tmp_path, version):
    table = new_table(tmp_path, version)
    table.append(rows(1, 2, 3))
    table.tag("first")
    table.append(rows(4, 5))
    table.delete("id = 2")
    table.append(rows(6), branch="side", create_branch=True)
    table.append(rows(7), wap_id="audit")
    table.delete("id > 3 and id < 6")
    table.upsert(rows(1, 8, note="b"), on=["id"])
    before = on_disk(table)
    plan = table.expire(older_than=LATER)
    assert on_disk(table) == before, "a plan changes nothing"
    assert {"branch main", "tag first", "branch side"} <= {reason for kept in plan.kept for reason in kept.reasons}
    result = plan.execute()
    assert result.snapshots == len(plan.expired) > 0
    assert result.problem is None
    assert (result.left, result.failed) == ((), ())
    assert on_disk(table) == reachable(table)
    assert before - on_disk(table) == set(plan.files["location"].to_pylist())
    assert read(table) == [1, 3, 8]
    assert read(table, tag="first") == [1, 2, 3]
    assert read(table, branch="side") == [1, 3, 4, 5, 6]
    assert check_table(table) == []
    assert table.expire(older_than=LATER).execute().attempts == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_plans_show_the_files_by_kind_with_their_bytes(tmp_path, version):
    table = new_table(tmp_path, version)
    table.append(rows(1))
    table.overwrite(rows(2), overwrite_all=True)
    plan = table.expire(older_than=LATER)
    kinds = plan.files["kind"].to_pylist()
    assert kinds.count("data") == 1
    assert kinds.count("manifest") >= 1
    sizes = dict(zip(plan.files["location"].to_pylist(), plan.files["bytes"].to_pylist(), strict=True))
    known = {location: size for location, size in sizes.items() if size is not None}
    assert known == {location: Path(location.removeprefix("file://")).stat().st_size for location in known}
    assert any(kind == "data" and sizes[file] is not None for file, kind in zip(sizes, kinds, strict=True))
    text = str(plan)
    assert text.startswith("expire 1 of 2 snapshots of db.t\n  snapshot ")
    assert "too old for branch main" in text
    assert "branch main; among the newest 1 of branch main" in text
    assert f"delete {len(sizes)} files (1 data, 0 deletes, " in text
    assert plan.as_dict()["files"]["data"] == 1
    assert plan.execute().data_files == 1


def test_nothing_expires_before_its_age_by_the_defaults(tmp_path):
    table = new_table(tmp_path)
    for number in range(3):
        table.append(rows(number))
    assert table.expire().expired == ()
    assert later(table, 4.9).expire().expired == ()
    assert len(later(table, 5.1).expire().expired) == 2
    assert len(table.expire(retain_last=2, older_than=datetime.now(UTC) + timedelta(days=1)).expired) == 1


def test_arguments_that_make_no_sense_are_refused(tmp_path):
    table = new_table(tmp_path)
    snapshot = table.append(rows(1)).snapshot_id
    with pytest.raises(InputError, match="no time zone"):
        table.expire(older_than=datetime(2026, 1, 1))
    with pytest.raises(InputError, match="retain_last=0"):
        table.expire(retain_last=0)
    with pytest.raises(InputError, match="snapshots= is empty"):
        table.expire(snapshots=[])
    with pytest.raises(NoSuchSnapshot, match="no snapshot 77"):
        table.expire(snapshots=[77])
    with pytest.raises(InputError, match=f"snapshot {snapshot} cannot expire, it is needed: branch main"):
        table.expire(snapshots=[snapshot])


def test_chosen_snapshots_expire_alone(tmp_path):
    table = new_table(tmp_path)
    first, second, third = (table.append(rows(number)).snapshot_id for number in range(3))
    result = table.expire(snapshots=[second]).execute()
    assert result.snapshots == 1
    assert [snapshot.snapshot_id for snapshot in table.snapshots] == [first, third]
    assert read(table, snapshot=first) == [0]
    assert read(table) == [0, 1, 2]
    assert check_table(table) == []


def test_without_clean_no_file_is_deleted_and_no_journal_is_written(tmp_path):
    table = new_table(tmp_path)
    table.append(rows(1))
    table.overwrite(rows(2), overwrite_all=True)
    before = on_disk(table)
    plan = table.expire(older_than=LATER, clean=False)
    assert "delete no files (clean=False)" in str(plan)
    assert plan.execute().snapshots == 1
    assert on_disk(table) >= before
    assert list(pointer_of(table).io.list(journal_folder(table.location))) == []


def test_a_table_whose_files_must_not_be_deleted_is_refused_by_the_name_of_the_property(tmp_path):
    table = new_table(tmp_path)
    table.append(rows(1))
    table.overwrite(rows(2), overwrite_all=True)
    planned = table.expire(older_than=LATER)
    table.set_properties({"gc.enabled": "false"})
    before = on_disk(table)
    for act in (lambda: table.expire(older_than=LATER), planned.execute, lambda: table.remove_orphans()):
        with pytest.raises(InputError, match=r"gc\.enabled=false"):
            act()
    assert on_disk(table) == before
    assert table.expire(older_than=LATER, clean=False).execute().snapshots == 1


def test_a_snapshot_that_gets_a_tag_after_the_plan_is_kept_with_its_files(tmp_path):
    table = new_table(tmp_path)
    first = table.append(rows(1)).snapshot_id
    second = table.overwrite(rows(2), overwrite_all=True).snapshot_id
    table.overwrite(rows(3), overwrite_all=True)
    plan = table.expire(older_than=LATER)
    assert {snapshot.snapshot_id for snapshot in plan.expired} == {first, second}
    new_catalog(tmp_path).load_table("db.t").tag("saved", snapshot=first)
    result = plan.execute()
    assert (result.snapshots, result.data_files) == (1, 1)
    assert read(table.refresh(), tag="saved") == [1]
    assert check_table(table) == []


def test_a_tag_that_comes_between_two_attempts_keeps_its_snapshot(tmp_path, monkeypatch):
    table = new_table(tmp_path)
    first = table.append(rows(1)).snapshot_id
    table.overwrite(rows(2), overwrite_all=True)
    plan = table.expire(older_than=LATER)
    other, swap = new_catalog(tmp_path).load_table("db.t"), pointer_of(table).catalog.swap
    calls: list[str] = []

    def slow(identifier, expected, new):
        if len(calls) == 0:
            calls.append(new)
            other.tag("saved", snapshot=first)
        return swap(identifier, expected, new)

    monkeypatch.setattr(pointer_of(table).catalog, "swap", slow)
    result = plan.execute()
    assert (result.snapshots, result.data_files, result.attempts) == (0, 0, 0)
    assert read(table.refresh(), tag="saved") == [1]
    assert list(pointer_of(table).io.list(journal_folder(table.location))) == []


def test_a_snapshot_that_is_newer_than_the_plan_is_not_removed_by_it(tmp_path):
    table = new_table(tmp_path)
    table.append(rows(1))
    table.append(rows(2))
    plan = table.expire(older_than=LATER)
    table.append(rows(3))
    table.append(rows(4))
    assert plan.execute().snapshots == 1
    assert len(table.refresh().snapshots) == 3


def test_a_branch_past_its_age_goes_with_its_snapshots(tmp_path):
    table = new_table(tmp_path)
    first = table.append(rows(1)).snapshot_id
    table.append(rows(2), branch="old", create_branch=True)
    head = table.refs["old"].snapshot_id
    table.remove_ref("old")
    commit(pointer_of(table), SetRef(ref_name="old", ref=Ref(snapshot_id=head, max_ref_age_ms=DAY_MS)))
    assert first == table.refs["main"].snapshot_id
    plan = later(table, 10).expire()
    assert "  ref old: its snapshot is 10 days old, and it is kept for 24.0 h" in str(plan)
    result = plan.execute()
    assert (result.snapshots, result.refs, result.data_files) == (1, 1, 1)
    assert set(table.refresh().refs) == {"main"}


def test_the_record_of_a_job_stays_as_long_as_it_is_promised(tmp_path):
    table = new_table(tmp_path)
    table.append(rows(1), idempotency_key="load 1")
    table.append(rows(2), query="orders", batch=4)
    table.append(rows(3), query="orders", batch=5)
    for number in range(4, 7):
        table.append(rows(number))
    assert table.expire(older_than=LATER).expired == ()
    assert table.append(rows(1), idempotency_key="load 1").already_committed
    old = later(table, 4.9).expire(older_than=LATER)
    assert old.expired == ()
    table.set_properties({"history.expire.max-record-age-ms": "1"})
    assert later(table, 1).expire(older_than=LATER).execute().snapshots == 5
    assert not table.append(rows(1), idempotency_key="load 1").already_committed


def test_statistics_and_old_metadata_files_go_too(tmp_path):
    table = new_table(tmp_path, write_metadata_previous_versions_max="2")
    assert table.properties == {"write-metadata-previous-versions-max": "2"}
    table.set_properties({"write.metadata.previous-versions-max": "2"})
    first = table.append(rows(1)).snapshot_id
    file = StatisticsFile(
        snapshot_id=first,
        statistics_path=f"{table.location}/metadata/one.stats",
        file_size_in_bytes=4,
        file_footer_size_in_bytes=2,
    )
    pointer_of(table).io.write_new(file.statistics_path, b"stat")
    commit(pointer_of(table), SetStatistics(files_of_snapshots=(file,)))
    table.append(rows(2))
    oldest = table.metadata.metadata_log[0].metadata_file
    plan = table.expire(older_than=LATER)
    result = plan.execute()
    assert (result.statistics_files, result.metadata_files) == (1, 1)
    assert not pointer_of(table).io.exists(file.statistics_path)
    assert not pointer_of(table).io.exists(oldest)
    assert check_table(table) == []


def test_a_journal_names_every_file_and_is_completed(tmp_path):
    table = new_table(tmp_path)
    table.append(rows(1))
    table.overwrite(rows(2), overwrite_all=True)
    plan = table.expire(older_than=LATER)
    plan.execute()
    io = pointer_of(table).io
    journal, done = sorted((info.location for info in io.list(journal_folder(table.location))), key=len, reverse=False)
    lines = [msgspec.json.decode(line) for line in io.read(journal).splitlines()]
    assert lines[0]["table-uuid"] == table.metadata.table_uuid
    assert (lines[0]["reason"], lines[0]["table"], lines[0]["files"]) == ("expire", "db.t", plan.files.num_rows)
    assert {line["location"] for line in lines[1:-1]} == set(plan.files["location"].to_pylist())
    assert lines[-1] == {"end": plan.files.num_rows}
    assert msgspec.json.decode(io.read(done))["deleted"] == plan.files.num_rows


def test_old_journals_are_removed_by_a_later_run(tmp_path):
    table = new_table(tmp_path)
    table.append(rows(1))
    table.overwrite(rows(2), overwrite_all=True)
    table.expire(older_than=LATER).execute()
    folder = journal_folder(table.location)
    assert len(list(pointer_of(table).io.list(folder))) == 2
    pointer_of(table).io.write_new(f"{folder}/torn.jsonl", b'{"table-uuid":')
    later(table, KEPT_MS / DAY_MS + 1).expire(clean=True).execute()
    assert list(pointer_of(table).io.list(folder)) == []


def test_files_that_the_storage_does_not_delete_are_reported_and_deleted_by_the_next_run(tmp_path, monkeypatch):
    table = new_table(tmp_path)
    table.append(rows(1))
    table.overwrite(rows(2), overwrite_all=True)
    plan = table.expire(older_than=LATER)
    data = plan.files["location"].to_pylist()[plan.files["kind"].to_pylist().index("data")]
    real = type(pointer_of(table).io).delete

    def failing(self, locations):
        real(self, [location for location in locations if location != data])
        if data in locations:
            raise StorageError("no", location=data, locations=(data,))

    with monkeypatch.context() as patch:
        patch.setattr(type(pointer_of(table).io), "delete", failing)
        result = plan.execute()
    assert result.failed == (data,)
    assert (result.data_files, result.manifests) == (0, plan.as_dict()["files"]["manifest"])
    again = table.expire(older_than=LATER)
    assert again.unfinished == plan.files.num_rows
    assert "finish earlier runs" in str(again)
    assert again.execute().finished_files == plan.files.num_rows
    assert on_disk(table) == reachable(table)
    assert table.expire(older_than=LATER).unfinished == 0


def journal_of(table: Table, *locations: str, **header: object) -> bytes:
    lines = [
        {"table-uuid": table.metadata.table_uuid, "reason": "expire", "started-ms": 1, **header},
        *({"location": location, "kind": "data", "bytes": 1} for location in locations),
        {"end": len(locations)},
    ]
    return b"\n".join(msgspec.json.encode(line) for line in lines) + b"\n"


def test_an_unfinished_journal_deletes_only_what_is_unreferenced_and_inside(tmp_path):
    table = new_table(tmp_path)
    table.append(rows(1))
    live = table.scan().plan().tasks["location"].to_pylist()[0]
    dead, outside = f"{table.location}/data/dead.parquet", tmp_path / "outside.parquet"
    pointer_of(table).io.write_new(dead, b"x")
    outside.write_bytes(b"x")
    spelled = live.replace("file://", "file:")
    folder = journal_folder(table.location)
    named = journal_of(table, live, spelled, dead, f"file://{outside}", f"{table.location}/data/../../../../outside")
    pointer_of(table).io.write_new(f"{folder}/1.jsonl", named)
    result = table.expire().execute()
    assert result.finished_files == 1
    assert not pointer_of(table).io.exists(dead)
    assert outside.exists()
    assert read(table) == [1]
    assert check_table(table) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data.rpartition(b'{"end"')[0],
        lambda data: b"",
        lambda data: b"\xff" + data,
        lambda data: data.replace(b'"table-uuid":"', b'"table-uuid":"0'),
        lambda data: data.replace(b'"location":"', b'"location":null,"x":"'),
        lambda data: b"[1]\n" + data,
    ],
)
def test_a_journal_that_is_damaged_or_of_another_table_deletes_nothing(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    dead = f"{table.location}/data/dead.parquet"
    pointer_of(table).io.write_new(dead, b"x")
    good = journal_of(table, dead)
    pointer_of(table).io.write_new(f"{journal_folder(table.location)}/1.jsonl", damage(good))
    assert table.expire().execute().finished_files == 0
    assert pointer_of(table).io.exists(dead)
    pointer_of(table).io.write_new(f"{journal_folder(table.location)}/2.jsonl", good)
    assert table.expire().execute().finished_files == 1


@pytest.mark.broken_tables
@pytest.mark.parametrize("version", VERSIONS)
def test_an_unreadable_manifest_of_an_expired_snapshot_frees_nothing_and_one_that_is_kept_stops_the_plan(
    tmp_path, version
):
    table = new_table(tmp_path, version)
    first = table.append(rows(1)).snapshot_id
    table.overwrite(rows(2), overwrite_all=True)
    root = table.metadata.snapshot(first).root
    Path(root.removeprefix("file://")).write_bytes(b"broken")
    table = new_catalog(tmp_path).load_table("db.t")  # nothing is cached
    plan = table.expire(older_than=LATER)
    assert "data" not in plan.files["kind"].to_pylist()
    assert plan.execute().snapshots == 1
    assert read(table) == [2]
    table.overwrite(rows(3), overwrite_all=True)
    root = table.metadata.current_snapshot.root
    Path(root.removeprefix("file://")).unlink()
    table = new_catalog(tmp_path).load_table("db.t")
    with pytest.raises(Exception, match="no file"):
        table.expire(older_than=LATER)


def test_progress_counts_the_files(tmp_path):
    table = new_table(tmp_path)
    table.append(rows(1))
    table.overwrite(rows(2), overwrite_all=True)
    seen: list[tuple[int, int, str]] = []
    plan = table.expire(older_than=LATER)
    plan.execute(progress=lambda done, total, step: seen.append((done, total, step)))
    assert seen == [(plan.files.num_rows, plan.files.num_rows, "files deleted")]

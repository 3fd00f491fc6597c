"""Erased rows are in no file of the table any more, and the report says what blocks it where they are."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefloe
from icefloe.table.held_table import pointer_of
from icefloe.testing.check import check_table
from support.tables import new_catalog

SECRET = "Grace Hopper"


def table_of(tmp_path: Path, version: int, mode: str = "copy-on-write") -> icefloe.Table:
    """Two partitions; the rows to erase are in the first file, in an updated copy, and in a removed file."""
    table = new_catalog(tmp_path).create_table(
        "db.people",
        schema="id bigint, part int, name string",
        partition_by=["part"],
        format_version=version,
        properties={"write.delete.mode": mode, "write.update.mode": mode},
    )
    table.append(rows([1, 2, 3], [SECRET, "Ada", "Bob"]))
    table.append(rows([4, 5], ["Cy", SECRET], part=1))
    table.update({"id": "id + 10"}, where="id = 1")
    table.delete("id = 5")
    table.append(rows([6], ["Dan"]))
    return table


def rows(ids: list[int], names: list[str], part: int = 0) -> pa.Table:
    return pa.table({"id": ids, "part": pa.array([part] * len(ids), pa.int32()), "name": names})


def files_with_secret(tmp_path: Path) -> list[str]:
    """The data files, manifests and delete files of the warehouse that contain the name, in rows or bounds."""
    found = []
    for path in sorted((tmp_path).rglob("*")):
        if path.is_file() and path.suffix in (".parquet", ".avro", ".puffin"):
            texts = path.read_bytes()
            if path.suffix == ".parquet" and "/data/" in str(path):
                texts += "|".join(str(row) for row in pq.read_table(path).to_pylist()).encode()
            if path.suffix == ".avro":
                with path.open("rb") as file:
                    texts += str(list(fastavro.reader(file))).encode()
            if SECRET.encode() in texts:
                found.append(path.name)
    return found


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_erased_rows_are_in_no_file_any_more(tmp_path: Path, version: int, mode: str) -> None:
    table = table_of(tmp_path, version, mode)
    assert len(files_with_secret(tmp_path)) > 0
    plan = table.erase(f"name = '{SECRET}'")
    assert len(plan.data_files) >= 2
    before = table.refresh().metadata.current_snapshot_id
    report = plan.execute()
    assert (report.complete, report.remaining, report.blockers) == (True, (), ())
    assert set(plan.data_files) <= set(report.files_deleted)
    assert files_with_secret(tmp_path) == []
    assert table.refresh().metadata.current_snapshot_id != before
    assert sorted(table.scan().to_arrow()["name"].to_pylist()) == ["Ada", "Bob", "Cy", "Dan"]
    assert check_table(table) == []


def test_a_plan_changes_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path, 4)
    before = (table.metadata_location, files_with_secret(tmp_path))
    plan = table.erase(f"name = '{SECRET}'")
    assert "data files in" in repr(plan)
    assert (table.refresh().metadata_location, files_with_secret(tmp_path)) == before


def test_a_tag_blocks_the_erasure_until_it_is_removed(tmp_path: Path) -> None:
    table = table_of(tmp_path, 4)
    table.tag("audit", snapshot=table.snapshots[0].snapshot_id)
    plan = table.erase(f"name = '{SECRET}'")
    assert any("tag audit" in blocker for blocker in plan.blockers)
    report = plan.execute()
    assert not report.complete
    assert [each.refs for each in report.remaining] == [("tag audit",)]
    assert "blocked: snapshot" in repr(report)
    assert table.refresh().scan(f"name = '{SECRET}'").count() == 0
    table.remove_ref("audit")
    assert table.erase(f"name = '{SECRET}'").execute().complete
    assert files_with_secret(tmp_path) == []


def test_rows_of_other_branches_are_erased_too(tmp_path: Path) -> None:
    table = table_of(tmp_path, 4)
    table.branch("side", snapshot=table.snapshots[0].snapshot_id)
    report = table.erase(f"name = '{SECRET}'").execute()
    assert report.complete
    assert table.refresh().at(branch="side").scan().count() == 2
    assert files_with_secret(tmp_path) == []


def test_an_erasure_that_died_before_it_deleted_files_is_ended_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No snapshot references the files any more, so only the journal of the first run names them."""
    table = table_of(tmp_path, 2)

    def die(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("icefloe.maintenance.expire.delete_files", die)
        with pytest.raises(KeyboardInterrupt):
            table.erase(f"name = '{SECRET}'").execute()
    assert len(files_with_secret(tmp_path)) > 0
    assert table.refresh().erase(f"name = '{SECRET}'").execute().complete
    assert files_with_secret(tmp_path) == []


def test_rows_that_only_equality_deletes_name_are_erased(tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, name string", format_version=2)
    table.append(pa.table({"id": [1, 2], "name": [SECRET, "Ada"]}))
    table.upsert(pa.table({"id": [1], "name": ["Anonymous"]}), on=["id"], deletes="equality")
    report = table.erase(f"name = '{SECRET}'").execute()
    assert report.complete
    assert files_with_secret(tmp_path) == []
    assert sorted(table.scan().to_arrow()["name"].to_pylist()) == ["Ada", "Anonymous"]


def test_nothing_is_done_for_rows_that_never_were(tmp_path: Path) -> None:
    table = table_of(tmp_path, 4)
    plan = table.erase("name = 'Nobody'")
    assert repr(plan) == "erase db.people where name = 'Nobody': no data file contains such rows"
    assert plan.execute().complete


def test_files_that_storage_does_not_delete_make_the_erasure_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(tmp_path, 4)
    plan = table.erase(f"name = '{SECRET}'")
    monkeypatch.setattr(type(pointer_of(table).io), "delete", lambda io, locations: None)
    report = plan.execute()
    assert (report.complete, report.files_deleted) == (False, ())
    assert {
        f"{file} was not deleted; remove_orphans() deletes it once it is old enough" for file in plan.data_files
    } <= set(report.blockers)

"""Deletes become deletion vectors, or one position delete file for each data file, without a change of rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from icefloe.errors import ConflictError, InputError
from icefloe.model.entries import ContentType
from support.compacted import HISTORIES, SMALL, check_same, contents, exists_in, made, rows, snapshots
from support.people import MERGE, delete_files, new_table
from support.tables import VERSIONS

CASES = [
    (version, history, partitioned)
    for version in VERSIONS
    for history in HISTORIES
    for partitioned in (False, True)
    if exists_in(history, version)
]


@pytest.mark.parametrize(("version", "history", "partitioned"), CASES)
def test_rows_lineage_and_old_snapshots_stay(tmp_path: Path, version: int, history: str, partitioned: bool) -> None:
    table = made(tmp_path, version, history, partitioned=partitioned)
    before, old = contents(table), snapshots(table)
    had = delete_files(table)
    table.rewrite_deletes().execute()
    check_same(table, before, old)
    kinds = [kind for kind, _ in delete_files(table)]
    assert int(ContentType.EQUALITY_DELETES) not in kinds
    if version > 2:
        assert kinds == []  # deletion vectors only
    tasks = table.refresh().scan().plan().tasks
    assert all(len(numbers) <= 1 for numbers in tasks["deletes"].to_pylist())
    count = len(table.snapshots)
    assert table.rewrite_deletes().execute().snapshot_id is None
    assert len(table.refresh().snapshots) == count
    assert had != [] or count == len(old)


def test_position_delete_files_of_version_2_become_vectors_after_an_upgrade(tmp_path: Path) -> None:
    table = made(tmp_path, 2, "mixed", partitioned=True)
    table.upgrade(3)
    table.append(rows(90, 92))
    before, old = contents(table), snapshots(table)
    result = table.rewrite_deletes().execute()
    assert result.position_files_removed > 0
    assert result.vectors_added > 0
    assert delete_files(table.refresh()) == []
    check_same(table, before, old)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_dangling_deletes_are_removed(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version, "upserted", partitioned=False)
    before, old = contents(table), snapshots(table)
    table.compact(options={**SMALL, "rewrite-all": True, "remove-dangling-deletes": False}).execute()
    result = table.rewrite_deletes().execute()
    assert (result.dangling_removed, result.vectors_added, result.position_files_added) == (2, 0, 0)
    assert result.equality_files_removed == 2
    check_same(table, before, old)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_deletes_of_other_partitions_are_left_alone(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version, MERGE, ("city",))
    for city in ("Oslo", "Rome"):
        table.append(rows(0, 10, city))
        table.upsert(rows(3, 5, city), on=["city", "id"], deletes="equality")
    before, old = contents(table), snapshots(table)
    assert table.rewrite_deletes("city = 'Rome'").execute().equality_files_removed == 1
    assert [kind for kind, _ in delete_files(table.refresh())].count(int(ContentType.EQUALITY_DELETES)) == 1
    check_same(table, before, old)


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_are_clustered_by_partition_fields(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version, partition_by=("city", "amount"), schema="id bigint, city string, amount int")
    table.set_properties(
        {
            "commit.manifest.target-size-bytes": "3000" if version == 4 else "800",
            "commit.root.max-data-files": "0",
            "commit.manifest-merge.enabled": "false",
        }
    )
    for number in range(4):
        data = rows(number * 70, number * 70 + 70)
        cities = [f"c{index % 10}" for index in range(70)]
        table.append(data.set_column(1, "city", [cities]))
    before, old = contents(table), snapshots(table)
    assert table.rewrite_manifests(cluster_by=["amount"]).execute().snapshot_id is not None
    check_same(table, before, old)
    assert table.rewrite_manifests(cluster_by=["amount"]).execute().snapshot_id is None
    plan = table.refresh().scan("amount = 3").plan()
    by_amount = plan.manifests_skipped
    assert table.rewrite_manifests(cluster_by=["city"]).execute().snapshot_id is not None
    assert table.refresh().scan("amount = 3").plan().manifests_skipped < by_amount
    check_same(table, before, old)
    with pytest.raises(InputError, match="no partition field 'day'"):
        table.rewrite_manifests(cluster_by=["day"]).execute()


def test_rows_deleted_meanwhile_are_a_conflict(tmp_path: Path) -> None:
    table = made(tmp_path, 3, "upserted", partitioned=False)
    target = table._target(None)
    table.delete("id = 6 or id = 1")
    before = contents(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_target", lambda branch: target)
        with pytest.raises(ConflictError):
            table.rewrite_deletes().execute()
    assert contents(table) == before

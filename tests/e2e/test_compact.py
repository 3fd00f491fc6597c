"""Compaction of whole tables: rows, row lineage and old snapshots stay, files become fewer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.errors import ConflictError, InputError
from icefloe.model.entries import ContentType, of_type
from icefloe.scan.plan import all_deletes
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from icefloe.tree.root import read_root
from support.compacted import HISTORIES, SMALL, check_same, contents, data_files, exists_in, made, rows, snapshots
from support.people import COPY, MERGE, new_table
from support.tables import VERSIONS

CASES = [
    (version, history, partitioned)
    for version in VERSIONS
    for history in HISTORIES
    for partitioned in (False, True)
    if exists_in(history, version)
]


def deletes_of(table: Table) -> pa.Table:
    """All live deletes of the current snapshot."""
    base = pointer_of(table).load()
    return all_deletes(base.store, read_root(base.store, base.metadata.current_snapshot))


@pytest.mark.parametrize(("version", "history", "partitioned"), CASES)
def test_rows_lineage_and_old_snapshots_stay(tmp_path: Path, version: int, history: str, partitioned: bool) -> None:
    table = made(tmp_path, version, history, partitioned=partitioned)
    before, old, files = contents(table), snapshots(table), data_files(table)
    plan = table.compact(options={**SMALL, "rewrite-all": True})
    assert plan.files_before == files
    result = plan.execute()
    assert (result.files_removed, result.failed) == (files, ())
    assert data_files(table) == result.files_added
    assert result.files_added < files or (history == "evolved" and partitioned)  # then there are more partitions
    assert len(result.snapshot_ids) == 1
    check_same(table, before, old)
    assert deletes_of(table).num_rows == 0  # all of them are dangling


@pytest.mark.parametrize("mode", [COPY, MERGE])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_second_compaction_has_nothing_to_do(tmp_path: Path, version: int, mode: str) -> None:
    table = made(tmp_path, version, "deleted", partitioned=True, mode=mode)
    table.compact(options=SMALL).execute()
    again = table.compact(options=SMALL)
    assert again.groups.num_rows == 0
    snapshot = table.refresh().metadata.current_snapshot_id
    assert again.execute().groups == ()
    assert table.refresh().metadata.current_snapshot_id == snapshot


@pytest.mark.parametrize("version", VERSIONS)
def test_only_files_that_may_match_are_considered(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version, "plain", partitioned=True)
    plan = table.compact("city = 'Rome'", options=SMALL)
    assert plan.files["partition"].to_pylist() == [{"city": "Rome"}] * 3
    before, old = contents(table), snapshots(table)
    result = plan.execute()
    assert (result.files_removed, result.files_added, data_files(table)) == (3, 1, 4)
    check_same(table, before, old)


def test_the_plan_says_why_each_file_is_rewritten_or_not(tmp_path: Path) -> None:
    table = new_table(tmp_path, 4, MERGE, ("city",))
    for start in range(0, 50, 10):
        table.append(rows(start, start + 10))
    table.append(rows(50, 60, "Rome"))
    table.append(rows(60, 70, "Bern"))
    table.delete("id >= 60 and id < 65")
    plan = table.compact()
    reasons = {row["partition"]["city"]: (row["chosen"], row["reason"]) for row in plan.files.to_pylist()}
    assert reasons == {
        "Oslo": (True, "smaller than min-file-size-bytes"),
        "Rome": (False, "too few files in its partition"),
        "Bern": (True, "deleted rows above delete-ratio-threshold"),
    }
    assert (plan.files_before, plan.files_after, plan.rows_dropped) == (6, 2, 5)
    assert "6 of 7 files" in repr(plan)
    assert "1 kept: too few files in its partition" in repr(plan)


def test_rows_are_sorted_by_the_given_order_or_by_that_of_the_table(tmp_path: Path) -> None:
    table = made(tmp_path, 4, "plain", partitioned=False)
    before, old = contents(table), snapshots(table)
    with pytest.raises(InputError, match="the table has no sort order"):
        table.compact(strategy="sort")
    table.compact(strategy="sort", sort_by=["amount desc", "id"], options=SMALL).execute()
    read = table.refresh().scan(columns=["amount", "id"]).to_arrow().to_pylist()
    assert [(row["amount"], row["id"]) for row in read] == sorted(
        ((row["amount"], row["id"]) for row in read), key=lambda pair: (-pair[0], pair[1])
    )
    check_same(table, before, old)
    table.set_sort_order("id desc")
    table.compact(strategy="sort", options={**SMALL, "rewrite-all": True}).execute()
    ids = table.refresh().scan(columns=["id"]).to_arrow()["id"].to_pylist()
    assert ids == sorted(ids, reverse=True)
    check_same(table, before, old)


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_are_put_in_z_order(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version, "deleted", partitioned=False)
    before, old = contents(table), snapshots(table)
    table.compact(strategy="zorder", zorder_by=["id", "amount"], options=SMALL).execute()
    check_same(table, before, old)
    read = table.refresh().scan(columns=["id", "amount"]).to_arrow().to_pylist()

    def z_value(row: dict[str, int]) -> str:
        words = [f"{row[name] + 2**63:064b}" for name in ("id", "amount")]
        return "".join(first + second for first, second in zip(*words, strict=True))

    assert [z_value(row) for row in read] == sorted(z_value(row) for row in read)


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    table = made(tmp_path, 4, "plain", partitioned=False)
    for arguments, text in (
        ({"options": {"min-input-file": 3}}, "nearest name is 'min-input-files'"),
        ({"options": {"target-file-size-bytes": "big"}}, "expected a whole number"),
        ({"options": {"delete-ratio-threshold": 2}}, "above 0 and up to 1"),
        ({"options": {"rewrite-all": "perhaps"}}, "true or false"),
        ({"options": {"rewrite-job-order": "random"}}, "bytes-asc"),
        ({"options": {"output-spec-id": 9}}, "no partition spec 9"),
        ({"options": {"target-file-size-bytes": 10, "min-file-size-bytes": 20}}, "must be less than"),
        ({"strategy": "shuffle"}, "is unknown"),
        ({"strategy": "zorder"}, "1 to 8 columns"),
        ({"strategy": "zorder", "zorder_by": ["id", "id"]}, "named twice"),
        ({"sort_by": "id"}, "needs strategy='sort'"),
        ({"zorder_by": ["id"]}, "needs strategy='zorder'"),
    ):
        with pytest.raises(InputError, match=text):
            table.compact(**arguments)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_equality_deletes_that_still_apply_elsewhere_stay(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version, MERGE)  # unpartitioned, so the deletes apply to all older files
    for start in range(0, 60, 10):
        table.append(rows(start, start + 10))
    table.upsert(pa.concat_tables([rows(5, 6), rows(55, 56)]), on=["id"], deletes="equality")
    before, old = contents(table), snapshots(table)
    result = table.compact("id < 50", options=SMALL).execute()
    assert result.delete_files_removed == 0
    assert deletes_of(table).num_rows == 1
    check_same(table, before, old)
    result = table.compact(options={**SMALL, "rewrite-all": True}).execute()
    assert (result.delete_files_removed, deletes_of(table).num_rows) == (1, 0)
    check_same(table, before, old)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_equality_deletes_of_later_commits_apply_to_the_new_files(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version, "plain", partitioned=True)
    plan = table.compact(options=SMALL)
    table.upsert(
        rows(5, 8, "Oslo").set_column(2, "amount", pa.array([99] * 3, pa.int32())),
        on=["city", "id"],
        deletes="equality",
    )
    before, old = contents(table), snapshots(table)
    plan.execute()
    check_same(table, before, old)
    assert table.refresh().scan("amount = 99").count() == 3


@pytest.mark.parametrize("version", [2, 3, 4])
def test_equality_deletes_of_later_commits_are_a_conflict_if_rows_get_another_spec(
    tmp_path: Path, version: int
) -> None:
    table = made(tmp_path, version, "evolved", partitioned=True)
    plan = table.compact(options={**SMALL, "output-spec-id": 1})
    assert set(plan.files.filter(plan.files["chosen"])["reason"].to_pylist()) <= {
        "old partition spec",
        "smaller than min-file-size-bytes",
    }
    changed = table.scan("id = 5").to_arrow()
    table.upsert(changed, on=["town", "id"], deletes="equality")
    before, old = contents(table), snapshots(table)
    with pytest.raises(ConflictError, match="deletes rows of a file"):
        plan.execute()
    check_same(table, before, old)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_rows_deleted_meanwhile_are_a_conflict_and_leave_no_file(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version, "plain", partitioned=True)
    plan = table.compact(options=SMALL)
    table.delete("id = 5")
    before, old = contents(table), snapshots(table)
    stored = set((tmp_path / "warehouse").rglob("*"))
    with pytest.raises(ConflictError, match="deletes rows of a file"):
        plan.execute()
    assert set((tmp_path / "warehouse").rglob("*")) == stored
    check_same(table, before, old)


@pytest.mark.parametrize("version", VERSIONS)
def test_with_partial_progress_other_groups_land(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version, "plain", partitioned=True)
    options = {**SMALL, "partial-progress.enabled": True, "partial-progress.max-commits": 1}
    plan = table.compact(options=options)
    table.delete("id = 5")  # in Oslo
    before, old = contents(table), snapshots(table)
    result = plan.execute()
    assert [group.partition["city"] for group in result.failed] == ["Oslo"]
    assert "ConflictError" in str(result.failed[0].error)
    assert (result.files_removed, result.files_added, len(result.snapshot_ids)) == (3, 1, 1)
    check_same(table, before, old)
    unlisted = {path.name for path in (tmp_path / "warehouse").rglob("*.parquet") if "data" in path.parts}
    named = {
        location.rsplit("/", 1)[-1]
        for snapshot in table.snapshots
        for location in table.at(snapshot=snapshot.snapshot_id).scan().plan().tasks["location"].to_pylist()
    }
    deletes = {location.rsplit("/", 1)[-1] for location in deletes_of(table)["location"].to_pylist()}
    assert unlisted <= named | deletes


@pytest.mark.parametrize("version", VERSIONS)
def test_partial_progress_makes_up_to_as_many_commits_as_allowed(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version, MERGE, ("city",))
    for start in range(0, 100, 10):
        table.append(pa.concat_tables([rows(start, start + 5, f"c{city}") for city in range(5)]))
    before, old = contents(table), snapshots(table)
    seen: list[tuple[int, int, str]] = []
    options = {**SMALL, "partial-progress.enabled": True, "partial-progress.max-commits": 3}
    result = table.compact(options=options).execute(lambda *step: seen.append(step))
    assert (len(result.snapshot_ids), len(result.groups), data_files(table)) == (3, 5, 5)
    assert seen[-1] == (5, 5, "groups rewritten")
    check_same(table, before, old)


def test_a_group_has_at_most_the_given_size_and_the_number_of_files_is_limited(tmp_path: Path) -> None:
    table = made(tmp_path, 4, "plain", partitioned=False)
    size = max(table.scan().plan().tasks["file_size_in_bytes"].to_pylist())
    plan = table.compact(options={**SMALL, "max-file-group-size-bytes": 2 * size})
    assert plan.groups["files"].to_pylist() == [2, 2, 2]
    plan = table.compact(options={**SMALL, "max-file-group-size-bytes": 2 * size, "max-files-to-rewrite": 4})
    assert plan.groups["files"].to_pylist() == [2, 2]
    assert plan.files["reason"].to_pylist().count("beyond max-files-to-rewrite") == 2


def test_a_large_file_is_split(tmp_path: Path) -> None:
    table = new_table(tmp_path, 4, MERGE)
    table.append(rows(0, 200_000))
    size = table.scan().plan().tasks["file_size_in_bytes"][0].as_py()
    before, old = contents(table), snapshots(table)
    plan = table.compact(options={"target-file-size-bytes": size // 4})
    assert plan.files["reason"].to_pylist() == ["larger than max-file-size-bytes"]
    plan.execute()
    assert 3 <= data_files(table) <= 8
    check_same(table, before, old)


@pytest.mark.parametrize("version", [2, 4])
def test_a_branch_is_compacted_without_main(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version, "plain", partitioned=False)
    table.branch("dev")
    table.append(rows(90, 95), branch="dev")
    main = table.refresh().metadata.current_snapshot_id
    table.compact(options=SMALL, branch="dev").execute()
    assert table.refresh().metadata.current_snapshot_id == main
    assert table.at(branch="dev").scan().plan().files == 1
    assert table.at(branch="dev").scan().count() == 65
    assert check_table(table) == []


def test_an_empty_table_has_nothing_to_compact(tmp_path: Path) -> None:
    table = new_table(tmp_path, 4, MERGE)
    assert repr(table.compact()) == "compact db.people (binpack): nothing to do, 0 files considered"
    assert table.compact().execute().snapshot_ids == ()


def test_dangling_equality_deletes_stay_if_asked(tmp_path: Path) -> None:
    table = made(tmp_path, 2, "upserted", partitioned=False)
    before, old = contents(table), snapshots(table)
    table.compact(options={**SMALL, "rewrite-all": True, "remove-dangling-deletes": False}).execute()
    kept = deletes_of(table)
    assert kept.filter(of_type(kept, ContentType.EQUALITY_DELETES)).num_rows > 0
    check_same(table, before, old)


RIVALS = {
    "append": lambda table: table.append(rows(90, 95)),
    "delete": lambda table: table.delete("id = 5 or id = 25"),
    "update": lambda table: table.update({"amount": "amount + 1"}, where="id = 5"),
    "upsert": lambda table: table.upsert(rows(5, 8), on=["id"]),
    "upsert by equality": lambda table: table.upsert(rows(5, 8), on=["city", "id"], deletes="equality"),
    "compact": lambda table: table.compact(options=SMALL).execute(),
    "rewrite deletes": lambda table: table.rewrite_deletes().execute(),
    "rewrite manifests": lambda table: table.rewrite_manifests().execute(),
}


@pytest.mark.slow
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("mode", [COPY, MERGE])
@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("version", VERSIONS)
def test_no_row_is_lost_or_resurrected_beside_another_commit(
    tmp_path: Path, version: int, rival: str, mode: str, partial: bool
) -> None:
    if version == 1 and rival == "upsert by equality":
        return
    table = made(tmp_path, version, "deleted" if version == 1 else "mixed", partitioned=True, mode=mode)
    plan = table.compact(options={**SMALL, "rewrite-all": True, "partial-progress.enabled": partial})
    RIVALS[rival](table)
    before, old = contents(table), snapshots(table)
    try:
        result = plan.execute()
    except ConflictError:
        assert not partial
        assert rival not in ("append", "upsert by equality", "rewrite manifests")
    else:
        assert len(result.failed) == 0 or partial
    check_same(table, before, old)

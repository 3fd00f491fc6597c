"""Verbs that keep tables healthy: they show plans, do the work with --execute, and tell scripts of findings."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.cli.verb import ExitCode
from support.command_line import CommandLine

FUTURE = "2100-01-01T00:00:00+00:00"


@pytest.fixture
def many(run: CommandLine) -> icefloe.Table:
    """A table of six small files in six snapshots."""
    table = run.catalog().create_table("shop.many", schema="id bigint, note string", format_version=4)
    for number in range(6):
        table.append(pa.table({"id": [number], "note": [str(number)]}))
    return table


def files_of(table: icefloe.Table) -> set[Path]:
    return {path for path in Path(table.location.removeprefix("file://")).rglob("*") if path.is_file()}


def test_verify_of_a_sound_table_has_exit_code_0(run: CommandLine, many: icefloe.Table) -> None:
    answer = run("verify", "shop.many", "--files", "--rows", "--snapshots", "all", "-o", "json")
    assert (answer.code, answer.json["ok"], answer.json["findings"]) == (ExitCode.OK, True, [])
    assert run("verify", "shop.many").code == ExitCode.OK


def test_verify_of_a_table_that_lost_a_file_has_exit_code_3(run: CommandLine, many: icefloe.Table) -> None:
    lost = many.scan().plan().tasks["location"][0].as_py()
    Path(lost.removeprefix("file://")).unlink()
    assert run("verify", "shop.many").code == ExitCode.OK
    answer = run("verify", "shop.many", "--files", "-o", "json")
    assert answer.code == ExitCode.FINDINGS
    (found,) = answer.json["findings"]
    assert (found["rule"], found["severity"], lost in found["message"]) == ("files", "error", True)
    shown = run("verify", "shop.many", "--files")
    assert (shown.code, lost in shown.out) == (ExitCode.FINDINGS, True)


def test_health_names_the_command_that_fixes_a_finding(run: CommandLine, many: icefloe.Table) -> None:
    answer = run("health", "shop.many", "-o", "json")
    assert answer.code == ExitCode.FINDINGS
    assert "small-files" in [found["name"] for found in answer.json["findings"]]
    assert "compact" in run("health", "shop.many").out


def test_compact_shows_its_plan_and_changes_nothing_without_execute(run: CommandLine, many: icefloe.Table) -> None:
    before = files_of(many)
    plan = run("compact", "shop.many")
    assert plan.code == ExitCode.OK
    assert plan.lines[-1] == "nothing was changed; --execute does it"
    assert files_of(many) == before
    done = run("compact", "shop.many", "--execute", "-o", "json").json
    assert (done["files_removed"], done["files_added"]) == (6, 1)
    assert many.refresh().scan().to_arrow().sort_by("id")["id"].to_pylist() == list(range(6))


def test_compact_sorts_and_takes_options_by_name(run: CommandLine, many: icefloe.Table) -> None:
    arguments = ("compact", "shop.many", "--strategy", "sort", "--sort-by", "id desc", "--execute")
    assert run(*arguments, "--option", "rewrite-all=true", "-o", "json").json["files_added"] == 1
    assert many.refresh().scan().to_arrow()["id"].to_pylist() == [5, 4, 3, 2, 1, 0]
    wrong = run(*arguments, "--option", "rewrite-al=true")
    assert (wrong.code, "the nearest name is 'rewrite-all'" in wrong.err) == (ExitCode.USAGE, True)


def test_maintain_shows_its_plan_and_changes_nothing_without_execute(run: CommandLine, many: icefloe.Table) -> None:
    before = files_of(many)
    plan = run("maintain", "shop.many")
    assert (plan.code, plan.lines[-1]) == (ExitCode.OK, "nothing was changed; --execute does it")
    assert files_of(many) == before
    done = run("maintain", "shop.many", "--execute", "-o", "json")
    assert (done.code, done.json["left"]) == (ExitCode.OK, {})
    assert many.refresh().scan().plan().files == 1


def test_maintain_leaves_what_is_over_its_budget(run: CommandLine, many: icefloe.Table) -> None:
    done = run("maintain", "shop.many", "--max-bytes", "0", "--execute", "-o", "json")
    assert (done.code, len(done.json["left"]) > 0) == (ExitCode.OK, True)
    assert many.refresh().scan().plan().files == 6
    assert run("maintain", "shop.many", "--max-bytes", "-1").code == ExitCode.USAGE


def test_rewrite_deletes_makes_vectors_of_delete_files(run: CommandLine, many: icefloe.Table) -> None:
    many.upsert(pa.table({"id": [3], "note": ["new"]}), on=["id"], deletes="equality")
    assert run("inspect", "shop.many", "delete_files", "-o", "json").json[0]["content"] == 2
    plan = run("rewrite-deletes", "shop.many", "-o", "json")
    assert (plan.code, plan.json["equality_files"], plan.json["dangling"]) == (ExitCode.OK, 1, 0)
    assert run("inspect", "shop.many", "delete_files", "-o", "json").json[0]["content"] == 2  # it is a plan
    answer = run("rewrite-deletes", "shop.many", "--execute", "-o", "json")
    assert (answer.code, answer.json["equality_files_removed"]) == (ExitCode.OK, 1)
    assert run("inspect", "shop.many", "delete_files", "-o", "json").json[0]["content"] == 1
    assert sorted(many.refresh().scan("id = 3").to_arrow()["note"].to_pylist()) == ["new"]
    assert run("rewrite-deletes", "shop.many", "--where", "price > 1").code == ExitCode.USAGE


def test_rewrite_manifests_changes_no_row(run: CommandLine, many: icefloe.Table) -> None:
    many.set_properties({"commit.root.max-data-files": "0"})
    many.append(pa.table({"id": [7], "note": ["seven"]}))
    before = len(many.snapshots)
    plan = run("rewrite-manifests", "shop.many")
    assert (plan.code, plan.out.endswith("nothing was changed; --execute does it\n")) == (ExitCode.OK, True)
    assert len(many.refresh().snapshots) == before
    assert run("rewrite-manifests", "shop.many", "--execute").code == ExitCode.OK
    assert (len(many.refresh().snapshots), many.scan().count()) == (before + 1, 7)


def test_analyze_stores_distinct_values(run: CommandLine, many: icefloe.Table) -> None:
    done = run("analyze", "shop.many", "-o", "json").json
    assert done["distinct_values"] == {"id": 6, "note": 6}
    assert [file.statistics_path for file in many.refresh().metadata.statistics] == [done["statistics_file"]]
    first = many.snapshots[0].snapshot_id
    shown = run("analyze", "shop.many", "--column", "id", "--snapshot", first)
    assert (shown.code, f"snapshot {first}, distinct values: id 1;" in shown.out) == (ExitCode.OK, True)


def test_analyze_refuses_a_column_that_does_not_exist(run: CommandLine, many: icefloe.Table) -> None:
    answer = run("analyze", "shop.many", "--column", "none")
    assert (answer.code, "no column 'none' in table shop.many" in answer.err) == (ExitCode.USAGE, True)


def test_analyze_sums_up_partitions(run: CommandLine, orders: icefloe.Table) -> None:
    done = run("analyze", "shop.orders", "--partitions", "-o", "json").json
    assert (done["partitions"], done["snapshot_id"]) == (2, orders.snapshots[-1].snapshot_id)
    (entry,) = orders.refresh().metadata.partition_statistics
    assert entry.statistics_path == done["partition_statistics_file"]
    assert "2 partitions" in run("analyze", "shop.orders", "--partitions").out
    assert run("analyze", "shop.orders", "--partitions", "--column", "id").code == ExitCode.USAGE


def test_expire_shows_its_plan_and_changes_nothing_without_execute(run: CommandLine, many: icefloe.Table) -> None:
    before = files_of(many)
    plan = run("expire", "shop.many", "--older-than", FUTURE, "--retain-last", 2)
    assert (plan.code, plan.lines[-1]) == (ExitCode.OK, "nothing was changed; --execute does it")
    assert files_of(many) == before
    done = run("expire", "shop.many", "--older-than", FUTURE, "--retain-last", 2, "--execute", "-o", "json").json
    assert done["snapshots"] == 4
    assert (len(many.refresh().snapshots), many.scan().count()) == (2, 6)


def test_expire_refuses_a_time_without_a_zone(run: CommandLine, many: icefloe.Table) -> None:
    answer = run("expire", "shop.many", "--older-than", "2026-11-15T09:00:00")
    assert (answer.code, "has no time zone" in answer.err) == (ExitCode.USAGE, True)


def test_orphans_deletes_what_nothing_references(run: CommandLine, many: icefloe.Table) -> None:
    left = Path(many.location.removeprefix("file://")) / "data" / "left.parquet"
    left.write_bytes(b"left behind")
    arguments = ("orphans", "shop.many", "--older-than", FUTURE, "--allow-recent")
    plan = run(*arguments, "-o", "json")
    assert plan.code == ExitCode.OK
    assert left.exists()
    assert run(*arguments, "--execute", "-o", "json").json["files"] == 1
    assert not left.exists()
    assert run("verify", "shop.many", "--files", "--snapshots", "all").code == ExitCode.OK


def test_orphans_refuses_recent_files(run: CommandLine, many: icefloe.Table) -> None:
    assert run("orphans", "shop.many", "--older-than", FUTURE).code == ExitCode.USAGE


def test_files_and_partitions_are_listed(run: CommandLine, orders: icefloe.Table) -> None:
    assert [row["record_count"] for row in run("files", "shop.orders", "-o", "json").json] == [2, 1, 1]
    assert len(run("files", "shop.orders", "--snapshot", orders.snapshots[0].snapshot_id, "-o", "csv").lines) == 3
    assert run("files", "shop.orders").lines[0].split()[:2] == ["content", "file_path"]
    partitions = run("partitions", "shop.orders", "-o", "json").json
    assert sorted((row["partition"]["city"], row["record_count"]) for row in partitions) == [("Oslo", 2), ("Rome", 2)]
    assert run("partitions", "shop.orders").lines[0].split()[:2] == ["partition", "record_count"]


def test_metadata_tables_are_shown_by_name(run: CommandLine, orders: icefloe.Table) -> None:
    assert [row["operation"] for row in run("inspect", "shop.orders", "snapshots", "-o", "json").json] == ["append"] * 2
    assert run("inspect", "shop.orders", "refs").lines[0].split()[0] == "name"
    wrong = run("inspect", "shop.orders", "filez")
    assert (wrong.code, "there is no metadata table 'filez'" in wrong.err) == (ExitCode.USAGE, True)


def test_diff_compares_snapshots_tags_and_times(run: CommandLine, orders: icefloe.Table) -> None:
    assert run("diff", "shop.orders", "-o", "json").json["rows_added"] == 1
    orders.tag("v1", snapshot=orders.snapshots[0].snapshot_id)
    back = run("diff", "shop.orders", "main", "v1", "-o", "json").json
    assert (back["rows_added"], back["rows_removed"]) == (0, 1)
    assert run("diff", "shop.orders").code == ExitCode.OK


def test_changes_lists_changed_rows(run: CommandLine, orders: icefloe.Table) -> None:
    first = orders.snapshots[0].snapshot_id
    orders.update({"city": "'Bern'"}, where="id = 1")
    rows = run("changes", "shop.orders", "--since", first, "--images", "-o", "json").json
    assert [(row["id"], row["city"], row["_change_type"]) for row in rows] == [
        (4, "Rome", "insert"),
        (1, "Oslo", "update_before"),
        (1, "Bern", "update_after"),
    ]
    assert "_change_type" in run("changes", "shop.orders", "--since", first).lines[0]
    wrong = run("changes", "shop.orders", "--since", "absent")
    assert wrong.code == ExitCode.ERROR


def test_erase_shows_its_plan_and_reports_what_blocks_it(run: CommandLine, many: icefloe.Table) -> None:
    many.tag("kept", snapshot=many.snapshots[0].snapshot_id)
    plan = run("erase", "shop.many", "id = 0")
    assert (plan.code, "will be blocked: snapshot" in plan.out) == (ExitCode.OK, True)
    assert many.refresh().scan().count() == 6
    blocked = run("erase", "shop.many", "id = 0", "--execute")
    assert (blocked.code, "NOT COMPLETE" in blocked.out) == (ExitCode.FINDINGS, True)
    many.refresh().remove_ref("kept")
    assert run("erase", "shop.many", "id = 0", "--execute", "-o", "json").json["complete"]


def test_relocate_shows_its_plan_and_changes_nothing_without_execute(run: CommandLine, many: icefloe.Table) -> None:
    before = files_of(many)
    target = Path(many.location.removeprefix("file://")).parent / "elsewhere"
    plan = run("relocate", "shop.many", str(target))
    assert (plan.code, plan.lines[-1]) == (ExitCode.OK, "nothing was changed; --execute does it")
    assert "copy 12 files as they are" in plan.out
    answer = run("relocate", "shop.many", str(target), "--snapshots", "current", "--no-copy", "-o", "json")
    assert (answer.code, answer.json["copy"], answer.json["dropped_snapshots"]) == (ExitCode.OK, False, 5)
    assert files_of(many) == before
    assert not target.exists()


def test_relocate_moves_the_table_with_execute(run: CommandLine, many: icefloe.Table) -> None:
    target = Path(many.location.removeprefix("file://")).parent / "elsewhere"
    answer = run("relocate", "shop.many", str(target), "--execute", "-o", "json")
    assert (answer.code, answer.json["switched"], answer.json["location"]) == (ExitCode.OK, True, f"file://{target}")
    moved = run.catalog().load_table("shop.many")
    assert (moved.location, moved.scan().count()) == (f"file://{target}", 6)


def test_relocate_to_the_same_folder_is_an_error(run: CommandLine, many: icefloe.Table) -> None:
    answer = run("relocate", "shop.many", many.location, "--execute")
    assert (answer.code, "is its location already" in answer.err) == (ExitCode.USAGE, True)

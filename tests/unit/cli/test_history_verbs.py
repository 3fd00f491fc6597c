"""Verbs about the history of a table: snapshots, refs, branch, tag, rollback."""

from __future__ import annotations

import icefloe
from icefloe.cli.verb import ExitCode
from support.command_line import CommandLine


def test_snapshots_lists_the_newest_first_with_what_each_changed(run: CommandLine, orders: icefloe.Table) -> None:
    rows = run("snapshots", "shop.orders", "-o", "json").json
    assert [row["snapshot_id"] for row in rows] == [s.snapshot_id for s in reversed(orders.snapshots)]
    assert [(row["rows_added"], row["rows"], row["refs"]) for row in rows] == [(1, 4, "main"), (3, 3, "")]
    assert rows[0]["summary"]["added-records"] == "1"
    assert rows[0]["committed_at"].endswith("+00:00")


def test_snapshots_shows_people_at_most_the_limit(run: CommandLine, orders: icefloe.Table) -> None:
    lines = run("snapshots", "shop.orders", "--limit", 1).lines
    assert lines[0].split()[:3] == ["snapshot_id", "committed_at", "operation"]
    assert lines[2].startswith(str(orders.metadata.current_snapshot_id))
    assert lines[3:] == ["the first 1 rows; --limit 0 shows all"]
    assert len(run("snapshots", "shop.orders", "--limit", 0).lines) == 4


def test_branches_and_tags_are_created_listed_and_removed(run: CommandLine, orders: icefloe.Table) -> None:
    first = orders.snapshots[0].snapshot_id
    assert (
        run("tag", "shop.orders", "v1", "--snapshot", first).out == f"tag 'v1' of shop.orders is at snapshot {first}\n"
    )
    assert run("branch", "shop.orders", "audit").code == ExitCode.OK
    listed = {row["name"]: (row["type"], row["snapshot_id"]) for row in run("refs", "shop.orders", "-o", "json").json}
    current = orders.metadata.current_snapshot_id
    assert listed == {"main": ("branch", current), "v1": ("tag", first), "audit": ("branch", current)}
    assert run("tag", "shop.orders", "v1", "--remove").out == "removed 'v1' from shop.orders\n"
    assert run("branch", "shop.orders", "audit", "--remove", "-o", "json").json["operation"] == "remove ref"
    assert run("refs", "shop.orders", "-o", "csv").lines[1:] == [f"main,branch,{current},,,"]


def test_a_name_that_is_taken_is_an_error(run: CommandLine, orders: icefloe.Table) -> None:
    answer = run("tag", "shop.orders", "main")
    assert answer.code == ExitCode.USAGE
    assert "branch 'main' already exists" in answer.err


def test_rollback_shows_its_plan_and_changes_nothing_without_execute(run: CommandLine, orders: icefloe.Table) -> None:
    first, last = (snapshot.snapshot_id for snapshot in orders.snapshots)
    plan = run("rollback", "shop.orders", "--snapshot", first, "-o", "json").json
    assert plan == {"table": "shop.orders", "from": last, "to": first, "executed": False}
    assert orders.refresh().metadata.current_snapshot_id == last
    done = run("rollback", "shop.orders", "--snapshot", first, "--execute")
    assert done.out == f"shop.orders is at snapshot {first}\n"
    assert orders.refresh().metadata.current_snapshot_id == first


def test_rollback_to_a_time_before_the_table_is_an_error(run: CommandLine, orders: icefloe.Table) -> None:
    answer = run("rollback", "shop.orders", "--at", "2001-01-01T00:00:00+00:00")
    assert answer.code == ExitCode.ERROR
    assert "has no snapshot at or before" in answer.err


def test_main_and_branches_are_set_to_other_snapshots(run: CommandLine, orders: icefloe.Table) -> None:
    first, last = (snapshot.snapshot_id for snapshot in orders.snapshots)
    done = run("set-current-snapshot", "shop.orders", "--snapshot", first)
    assert done.out == f"main of shop.orders is at snapshot {first}\n"
    run("tag", "shop.orders", "v2", "--snapshot", last)
    assert run("set-current-snapshot", "shop.orders", "--ref", "v2", "-o", "json").json["snapshot_id"] == last
    run("branch", "shop.orders", "audit", "--snapshot", first)
    done = run("fast-forward", "shop.orders", "audit", "main")
    assert done.out == f"audit of shop.orders is at snapshot {last}\n"
    assert run("set-current-snapshot", "shop.orders").code == ExitCode.USAGE

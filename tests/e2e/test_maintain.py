"""Maintenance takes the steps that the health of a table calls for, within a budget, and reports what it left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefloe
from icefloe.maintenance.maintain import Budget, budget_of
from icefloe.testing.check import check_table
from support.tables import new_catalog

SMALL_AGE = {"history.expire.max-snapshot-age-ms": "1"}


def table_of(tmp_path: Path, version: int, *, commits: int = 8, **properties: str) -> icefloe.Table:
    """A table of two partitions with a small file of each in every commit, and some deleted rows."""
    table = new_catalog(tmp_path).create_table(
        "db.t",
        schema="id bigint, part int",
        partition_by=["part"],
        format_version=version,
        properties={**SMALL_AGE, **properties},
    )
    for number in range(commits):
        table.append(pa.table({"id": [number * 2, number * 2 + 1], "part": pa.array([0, 1], pa.int32())}))
    return table


def ids(table: icefloe.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_neglected_table_becomes_healthy_and_keeps_its_rows(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, version)
    table.upsert(pa.table({"id": [3], "part": pa.array([1], pa.int32())}), on=["id", "part"])
    plan = table.maintain()
    assert {"compact", "expire"} <= {step.name for step in plan.steps}
    assert table.refresh().scan().plan().files > 2  # planned, not done
    result = plan.execute()
    assert (dict(result.left), [step.name for step in result.done]) == ({}, [step.name for step in plan.steps])
    assert (ids(table), table.refresh().scan().plan().files, len(table.snapshots)) == (list(range(16)), 2, 1)
    assert check_table(table) == []
    assert [finding.name for finding in table.health().findings if finding.severity == "warning"] == []


def test_a_table_with_a_bound_of_snapshots_stays_small_however_young_they_are(tmp_path: Path) -> None:
    bounds = {"history.expire.max-snapshots-to-keep": "3", "history.expire.max-snapshot-age-ms": "432000000"}
    table = table_of(tmp_path, 4, **bounds)
    result = table.maintain().execute()
    assert "expire" in [step.name for step in result.done]
    assert len(table.refresh().snapshots) == 3
    table.append(pa.table({"id": [16], "part": pa.array([0], pa.int32())}))
    assert table.expire().execute().snapshots == 1
    assert (ids(table), check_table(table)) == (list(range(17)), [])


def test_a_large_file_is_not_rewritten_for_the_sake_of_a_few_small_ones(tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint", format_version=4)
    table.append(pa.table({"id": range(50_000)}))
    large = table.scan().plan().tasks["location"].to_pylist()
    for number in range(6):
        table.append(pa.table({"id": [50_000 + number]}))
    assert table.compact().files_before == 7
    result = table.maintain().execute()
    assert [(step.name, step.result.files_removed) for step in result.done] == [("compact", 6)]
    after = table.refresh().scan().plan().tasks["location"].to_pylist()
    assert (len(after), set(large) <= set(after), ids(table)) == (2, True, list(range(50_006)))


def test_equality_deletes_are_rewritten(tmp_path: Path) -> None:
    table = table_of(tmp_path, 2, commits=2)
    table.upsert(pa.table({"id": [0], "part": pa.array([0], pa.int32())}), on=["id", "part"], deletes="equality")
    result = table.maintain().execute()
    assert "rewrite_deletes" in [step.name for step in result.done]
    assert ids(table) == [0, 1, 2, 3]
    assert [finding.name for finding in table.health().findings if finding.name == "delete-files"] == []


def test_a_healthy_table_is_left_alone(tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint")
    table.append(pa.table({"id": [1]}))
    plan = table.maintain()
    assert (plan.steps, repr(plan)) == ((), "maintain db.t: nothing to do")
    assert plan.execute().done == ()
    assert len(table.refresh().snapshots) == 1


def test_compaction_keeps_to_the_budget_of_bytes(tmp_path: Path) -> None:
    table = table_of(tmp_path, 4)
    sizes = table.scan().plan().tasks["file_size_in_bytes"].to_pylist()
    result = table.maintain({"bytes": sum(sizes) // 2 + max(sizes)}).execute()
    assert "1 of 2 groups of files are over the budget" in result.left["compact"]
    assert table.refresh().scan().plan().files == 9  # one partition is compacted
    assert table.maintain({"bytes": 0}).execute().left["compact"].startswith("1 of 1 groups")
    assert ids(table) == list(range(16))


def test_no_step_begins_after_the_budget_of_seconds(tmp_path: Path) -> None:
    table = table_of(tmp_path, 4)
    snapshots = len(table.snapshots)
    result = table.maintain(Budget(seconds=0)).execute()
    assert set(result.left.values()) == {"the budget of 0 seconds is used up"}
    assert (result.done, len(table.refresh().snapshots)) == ((), snapshots)


def test_a_step_that_fails_is_left_and_the_others_are_taken(tmp_path: Path) -> None:
    table = table_of(tmp_path, 2, **{"gc.enabled": "false"})
    result = table.maintain().execute()
    assert "compact" in [step.name for step in result.done]
    assert "gc.enabled" in result.left["expire"]
    assert ids(table) == list(range(16))


def test_a_conflict_is_left_to_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(tmp_path, 4)

    def conflicting(*_: Any, **__: Any) -> Any:
        raise icefloe.ConflictError("another commit removed the files")

    monkeypatch.setattr(type(table), "compact", conflicting)
    result = table.maintain().execute()
    assert result.left["compact"].startswith("another commit was faster; the next run tries again")
    assert "expire" in [step.name for step in result.done]


def test_orphans_are_removed_if_asked_for(tmp_path: Path) -> None:
    table = table_of(tmp_path, 4, commits=1)
    result = table.maintain(orphans=True).execute()
    assert [step.name for step in result.done][-1] == "remove_orphans"


@pytest.mark.parametrize(("budget", "words"), [({"rows": 1}, "has no 'rows'"), ({"bytes": -1}, "is negative")])
def test_a_wrong_budget_is_refused(budget: dict[str, float], words: str) -> None:
    with pytest.raises(icefloe.InputError, match=words):
        budget_of(budget)

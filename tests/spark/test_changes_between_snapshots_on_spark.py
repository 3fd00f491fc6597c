"""The changes between two snapshots on Spark: the same rows as in this process, and without Python in tasks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icefloe.errors import InputError
from icefloe.table.snapshot_changes import Changes
from icefloe.table.table import Table
from support.change_feeds import line_of
from support.people import EACH_MODE, new_table, people
from support.row_histories.columns import in_order
from support.row_histories.history import RowHistory, random_steps
from support.row_histories.model import Start
from support.row_histories.spark_engine import OnSpark

pytestmark = pytest.mark.spark
SEEDS = 12


def same_rows(changes: Changes, spark: SparkSession) -> pa.Table:
    """The changes as Spark returns them, compared with those of this process."""
    here, there = changes.to_arrow(), changes.to_spark(spark).toArrow()
    assert there.column_names == here.column_names
    assert in_order(there.to_pylist()) == in_order(here.to_pylist())
    return there


def history_of(table: Table) -> int:
    """Appends, an update, a delete, a key that goes and comes back; the first snapshot."""
    start = table.append(people(1, 2, 3)).snapshot_id
    table.update({"amount": "amount + 1"}, where="id < 3")
    table.delete("id = 3")
    table.append(people(3, 4, city="Rome"))
    table.update({"amount": "7"}, where="id = 1")
    table.rewrite_manifests().execute()
    assert start is not None
    return start


@pytest.mark.parametrize("mode", EACH_MODE)
def test_spark_returns_the_changes_that_arrow_returns(
    mode: tuple[int, str], tmp_path: Path, spark: SparkSession
) -> None:
    table = new_table(tmp_path, *mode)
    start = history_of(table)
    for since in (None, start):
        for net in (False, True):
            assert same_rows(table.changes(since, net=net), spark).num_rows > 0
            same_rows(table.changes(since, net=net, images=True, keys=["id"]), spark)
    if table.metadata.rules.row_lineage:
        same_rows(table.changes(start, images=True, net=True), spark)
        found = same_rows(table.changes(start, images=True, columns=["id", "_row_id"]), spark)
        assert found.column_names[:2] == ["id", "_row_id"]
    same_rows(table.changes(where="city = 'Rome' and id > 3", columns=["amount"]), spark)
    assert table.changes(spark=spark).count() == table.changes().count() > 0


def test_a_range_without_changes_is_an_empty_frame(tmp_path: Path, spark: SparkSession) -> None:
    table = new_table(tmp_path, 3)
    assert same_rows(table.changes(), spark).num_rows == 0
    table.append(people(1))
    assert same_rows(table.changes(table.metadata.current_snapshot_id), spark).num_rows == 0


@pytest.mark.parametrize("mode", EACH_MODE)
def test_no_python_runs_in_the_tasks(mode: tuple[int, str], tmp_path: Path, spark: SparkSession) -> None:
    table = new_table(tmp_path, *mode)
    history_of(table)
    frame = table.changes(images=True, keys=["id"]).to_spark(spark)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "Python" not in plan
    assert "MapInArrow" not in plan


def test_a_repeated_key_fails_the_query(tmp_path: Path, spark: SparkSession) -> None:
    table = new_table(tmp_path, 2)
    table.append(people(1, 1))
    table.update({"amount": "amount + 1"})
    changes = table.changes(table.snapshots[0].snapshot_id, images=True, keys=["id"])
    with pytest.raises(InputError, match="several changed rows have the key"):
        changes.to_arrow()
    with pytest.raises(Exception, match="several changed rows have the key"):
        changes.to_spark(spark).toArrow()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_history_has_the_same_changes_on_both_engines(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    history = RowHistory(Start.drawn(3 * seed), OnSpark(spark, tmp_path))
    history.engine.options = {}
    history.engine.data = lambda rows: rows  # type: ignore[method-assign,assignment]  # changes run in this process
    history.run(random_steps(seed, 7), check_each=False)
    table = history.table
    line = line_of(table)
    since = line[len(line) // 3].snapshot_id if len(line) > 2 else None
    same_rows(table.changes(since), spark)
    same_rows(table.changes(since, net=True), spark)
    same_rows(table.changes(images=True, keys=["uid"], columns=["uid", "id", "city"]), spark)

"""How many jobs statements run that change rows."""

from __future__ import annotations

from typing import Any

import pytest

from icefloe.engines.spark.change import row_operations

TABLE = "demo.db.t"


def jobs(spark: Any, statement: str) -> int:
    spark.sparkContext.setJobGroup(statement, statement)
    try:
        spark.sql(statement)
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(statement))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("change", ["UPDATE {} SET n = -1 WHERE id % 10 = {}", "DELETE FROM {} WHERE id % 10 = {}"])
def test_the_names_of_the_files_are_those_of_the_plan(spark, demo, monkeypatch, version, change):
    """A job looks for them if the plan has very many."""
    spark.sql(f"CREATE TABLE {TABLE} (id int, n int) TBLPROPERTIES ('format-version' = '{version}')")
    for first in (0, 20, 40):
        spark.sql(f"INSERT INTO {TABLE} SELECT id, 0 FROM range({first}, {first + 20})")
    known = jobs(spark, change.format(TABLE, 3))
    monkeypatch.setattr(row_operations, "FILES_SENT_MAX", 2)
    assert jobs(spark, change.format(TABLE, 4)) > known
    rows = {row.id for row in spark.sql(f"SELECT id FROM {TABLE} WHERE n = 0").collect()}
    assert rows == {id_ for id_ in range(60) if id_ % 10 not in (3, 4)}

"""Data manifests that Spark's tasks prune: the plan is the one that the driver makes."""

from __future__ import annotations

import pytest

from icefloe.engines.spark.read import distributed_planning
from icefloe.engines.spark.read.distributed_planning import data_rows_by_tasks
from icefloe.engines.work import ScanRequest
from icefloe.errors import UnsupportedError
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.table.held_table import pointer_of
from support.people import MERGE, new_table, people

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("version", [4, 2])
def test_plans_of_tasks_and_of_the_driver_are_equal(spark, tmp_path, monkeypatch, version):
    keep = {"commit_manifest-merge_enabled": "false", "commit_root_max-data-files": "0", "commit_root_max-dvs": "0"}
    table = new_table(tmp_path, version, MERGE, partition_by=("city",), **keep)
    for number in range(4):
        table.append(people(number, number + 10))
        table.append(people(number + 100, city="Rome"))
    table.delete("id in (1, 11, 102)")
    table.upsert(people(0, city="Oslo", amount=5), on=["id", "city"], deletes="equality")
    table.delete("id = 103")  # the last row of its file: a leaf of version 4 gets a deletion vector
    monkeypatch.setattr(distributed_planning, "ENTRIES_MIN", 2)
    for where in ("true", "id > 2 and city = 'Oslo'", "city = 'Rome' or id = 0", "id > 1000"):
        base = pointer_of(table).load()
        request = ScanRequest(base=base, snapshot=base.metadata.current_snapshot)
        driver = request.plan(parse_filter(where))
        tasks = request.plan(parse_filter(where), data_rows=data_rows_by_tasks(spark, request.snapshot))
        assert tasks.tasks.sort_by("location").to_pylist() == driver.tasks.sort_by("location").to_pylist()
        assert tasks.deletes.to_pylist() == driver.deletes.to_pylist()
        assert (tasks.files_skipped, tasks.manifests_read) == (driver.files_skipped, driver.manifests_read)
        assert driver.manifests_read + driver.manifests_skipped > 1
    # Inside of a query, the job that plans runs while Spark plans the query.
    jobs = []
    planned = distributed_planning.map_in_arrow
    monkeypatch.setattr(distributed_planning, "map_in_arrow", lambda *given: jobs.append(1) or planned(*given))
    frame = table.scan().to_spark(spark)
    assert sorted(row.id for row in frame.where("city = 'Oslo'").collect()) == [0, 2, 3, 10, 12, 13]
    assert len(jobs) > 0


def test_the_driver_plans_if_tasks_cannot(spark, tmp_path, monkeypatch, caplog):
    table = new_table(tmp_path, 2, **{"commit_manifest-merge_enabled": "false"})
    for number in range(3):
        table.append(people(number))
    monkeypatch.setattr(distributed_planning, "ENTRIES_MIN", 2)

    def refused(*given):
        raise UnsupportedError("no Python")

    monkeypatch.setattr(distributed_planning, "map_in_arrow", refused)
    assert sorted(row.id for row in table.scan().to_spark(spark).collect()) == [0, 1, 2]
    assert "planning on the driver" in caplog.text

"""A plan by which rows were read is used again for the change of the rows, if it is a plan of the same rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.env import SYSTEM
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.metadata.error_context import Origin
from icefloe.rows.target import Target
from icefloe.scan.tasks import Plan
from icefloe.table.held_table import pointer_of
from support.tables import new_catalog

FILTER = parse_filter("id < 10")


@pytest.fixture
def target(tmp_path: Path) -> Target:
    """A table of two files, of which the filter selects one."""
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint")
    for first in (0, 10):
        table.append(pa.table({"id": range(first, first + 10)}))
    return Target(base=pointer_of(table).load(), env=SYSTEM)


def test_the_plan_of_the_same_rows_is_used_again(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    known = target.plan(FILTER)
    monkeypatch.setattr(Target, "plan", None)
    assert target.planned(FILTER, known).plan.tasks.equals(known.tasks)
    assert target.timer.files_skipped == 1


@pytest.mark.parametrize("difference", ["filter", "snapshot", "schema"])
def test_the_files_are_planned_again_for_other_rows(target: Target, difference: str) -> None:
    known, where = target.plan(FILTER), FILTER
    empty = known.with_tasks(known.tasks.slice(0, 0))
    other: dict[str, tuple[Plan, Expr]] = {
        "filter": (empty, ALWAYS_TRUE),
        "snapshot": (replace(empty, origin=Origin(table=known.origin.table, snapshot_id=1)), where),
        "schema": (replace(empty, table_schema=replace(known.table_schema, schema_id=7)), where),
    }
    plan, read = other[difference]
    assert target.planned(read, plan).plan.files == (2 if difference == "filter" else 1)

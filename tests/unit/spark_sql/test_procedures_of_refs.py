"""Branches and tags by CALL, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.errors import IcefloeError
from icefloe.model.metadata.snapshots import Ref
from icefloe.spark_sql.procedures.calls import PROCEDURES

DAY = 86_400_000


def set_ref(table: icefloe.Table, kind: str, arguments: dict[str, str]) -> tuple[object, ...]:
    """Run create_branch or create_tag, with arguments as Java sends them."""
    catalog = icefloe.catalog("refs", uri=table.location.removesuffix("/db/t"))
    (row,) = PROCEDURES[f"create_{kind}"].run(catalog, ("db", "t"), arguments)
    table.refresh()
    return row


@pytest.fixture
def table(tmp_path: Path) -> icefloe.Table:
    """A table with two snapshots."""
    t = icefloe.catalog("refs", uri=f"file://{tmp_path}").create_table("db.t", schema="id bigint")
    t.append(pa.table({"id": [1]}))
    t.append(pa.table({"id": [2]}))
    return t


def test_a_branch_gets_the_retention_that_is_stated(table: icefloe.Table) -> None:
    first, second = (snapshot.snapshot_id for snapshot in table.snapshots)
    arguments = {"retain": "30 Days", "min_snapshots_to_keep": "3", "max_snapshot_age": "90 minutes"}
    assert set_ref(table, "branch", {"branch": "audit", **arguments}) == ("audit", second)
    expected = Ref(
        snapshot_id=second, max_ref_age_ms=30 * DAY, min_snapshots_to_keep=3, max_snapshot_age_ms=90 * 60_000
    )
    assert table.refs["audit"] == expected
    assert set_ref(table, "tag", {"tag": "v1", "snapshot_id": str(first), "retain": "1 hour"}) == ("v1", first)
    assert table.refs["v1"] == Ref(snapshot_id=first, type="tag", max_ref_age_ms=3_600_000)


def test_a_replaced_branch_keeps_the_retention_that_is_not_stated(table: icefloe.Table) -> None:
    first, second = (snapshot.snapshot_id for snapshot in table.snapshots)
    set_ref(table, "branch", {"branch": "audit", "retain": "30 days", "min_snapshots_to_keep": "3"})
    replacing = {"branch": "audit", "or_replace": "true", "snapshot_id": str(first), "retain": "7 days"}
    assert set_ref(table, "branch", replacing) == ("audit", first)
    assert table.refs["audit"] == Ref(snapshot_id=first, max_ref_age_ms=7 * DAY, min_snapshots_to_keep=3)
    assert set_ref(table, "branch", {"branch": "audit", "if_not_exists": "true", "retain": "1 day"}) == ("audit", first)
    assert table.refs["audit"].max_ref_age_ms == 7 * DAY
    assert set_ref(table, "branch", {"branch": "new", "or_replace": "true"}) == ("new", second)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "already exists"),
        ({"if_not_exists": "true", "or_replace": "true"}, "not both"),
        ({"or_replace": "true", "retain": "two weeks"}, "retain 'two weeks': give an age in days, hours or minutes"),
        ({"or_replace": "true", "max_snapshot_age": "0 days"}, "max-snapshot-age-ms is 0"),
        ({"or_replace": "true", "snapshot_id": "5"}, "has no snapshot 5"),
    ],
)
def test_what_makes_no_sense_is_refused(table: icefloe.Table, arguments: dict[str, str], message: str) -> None:
    set_ref(table, "branch", {"branch": "audit"})
    before = table.refs["audit"]
    with pytest.raises(IcefloeError, match=message):
        set_ref(table, "branch", {"branch": "audit", **arguments})
    assert table.refresh().refs["audit"] == before


@pytest.mark.parametrize("flag", ["if_not_exists", "or_replace"])
def test_a_tag_is_not_taken_for_a_branch(table: icefloe.Table, flag: str) -> None:
    set_ref(table, "tag", {"tag": "v1"})
    with pytest.raises(IcefloeError, match="tag"):
        set_ref(table, "branch", {"branch": "v1", flag: "true"})

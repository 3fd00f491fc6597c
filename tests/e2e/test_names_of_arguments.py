"""Arguments and properties that were missing from the public surface, or had another name than elsewhere."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.errors import AlreadyExists, InputError
from support.tables import new_catalog

CHANGES = pa.table({"id": [1, 2], "n": [10, 20], "seq": [1, 1]})
pytestmark = pytest.mark.slow


def test_a_batch_of_changes_is_applied_once(tmp_path: Path) -> None:
    """A batch of a stream that ran again was applied again, while append knew it by its number."""
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, n bigint, seq bigint")
    batch = {"keys": ["id"], "sequence_by": "seq", "query": "feed"}
    assert not table.apply_changes(CHANGES, **batch, batch=0).already_committed
    assert table.delete("id = 1").rows_deleted == 1
    assert table.apply_changes(CHANGES, **batch, batch=0).already_committed
    assert table.scan().count() == 1
    assert not table.apply_changes(CHANGES, **batch, batch=1).already_committed
    assert table.scan().count() == 2
    with pytest.raises(InputError, match="give idempotency_key=, or query= and batch=, not both"):
        table.apply_changes(CHANGES, **batch, batch=2, idempotency_key="x")


def test_a_merge_of_a_batch_is_done_once(tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, n bigint, seq bigint")
    for run in range(2):
        merge = table.merge(CHANGES, ["id"], query="feed", batch=3).when_not_matched_insert_all()
        assert merge.execute().already_committed == (run == 1)
    assert len(table.snapshots) == 1


def test_a_table_is_created_if_there_is_none(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    made = catalog.create_table("db.t", schema="id bigint", data=pa.table({"id": [1]}), if_not_exists=True)
    again = catalog.create_table("db.t", schema="n int", data=pa.table({"n": [2]}), if_not_exists=True)
    assert again.metadata.table_uuid == made.metadata.table_uuid
    assert again.scan().to_arrow().to_pylist() == [{"id": 1}]
    with pytest.raises(AlreadyExists):
        catalog.create_table("db.t", schema="id bigint")


def test_a_table_that_another_process_creates_meanwhile_is_the_one_that_is_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, other = new_catalog(tmp_path), new_catalog(tmp_path)
    made = other.create_table("db.t", schema="id bigint", data=pa.table({"id": [1]}))
    known = iter((False, True))
    monkeypatch.setattr(type(catalog), "table_exists", lambda self, name: next(known))
    found = catalog.create_table("db.t", schema="id bigint", data=pa.table({"id": [2]}), if_not_exists=True)
    assert found.metadata.table_uuid == made.metadata.table_uuid
    assert found.scan().to_arrow().to_pylist() == [{"id": 1}]
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


def test_the_sort_order_is_a_property_of_the_table_and_names_for_annotations_are_public(tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint, n int", sort_by=["n"])
    assert table.sort_order == table.metadata.sort_order
    assert isinstance(table.sort_order, icefloe.SortOrder)
    assert isinstance(table.schema.field("id"), icefloe.Field)
    assert isinstance(table.expire(), icefloe.ExpirePlan)
    assert isinstance(table.compact(), icefloe.CompactPlan)
    assert icefloe.Expr is not None


def test_properties_of_namespaces_are_removed_by_the_argument_of_tables(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    catalog.create_namespace("db", {"owner": "ann"})
    catalog.set_namespace_properties("db", {"team": "x"}, remove=["owner"])
    assert catalog.namespace_properties("db") == {"team": "x"}

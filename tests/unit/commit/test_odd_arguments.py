"""Arguments and stored properties that make no sense: no commit lands that nobody can read, and none is blocked."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from icefloe.errors import InputError
from icefloe.table.table import Table
from support.tables import new_catalog, stored_by_others


@pytest.fixture
def table(tmp_path) -> Table:
    made = new_catalog(tmp_path).create_table("db.t", schema="id bigint", format_version=3)
    made.append(pa.table({"id": [1]}))
    return made


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(
    "properties",
    [
        {"commit.retry.num-retries": "-1"},
        {"commit.retry.num-retries": "many"},
        {"commit.retry.min-wait-ms": "1s"},
        {"commit.retry.min-wait-ms": "-5", "commit.retry.max-wait-ms": "-5"},
        {"commit.manifest.target-size-bytes": "0"},
        {"write.metadata.delete-after-commit.enabled": "yes"},
        {"write.metadata.previous-versions-max": "all"},
        {"write.metadata.compression-codec": "snappy"},
    ],
)
def test_a_stored_property_that_makes_no_sense_neither_stops_a_commit_nor_its_repair(table, properties):
    """Every commit failed, also the one that would have fixed the property. With delete-after-commit the error came
    after the commit had landed: whoever repeated it had its rows twice."""
    stored_by_others(table, properties)
    tx = table.transaction()
    tx.append(pa.table({"id": [2]}))
    table.append(pa.table({"id": [3]}))
    assert tx.commit().attempts == 2
    assert ids(table) == [1, 2, 3]
    table.set_properties({}, remove=list(properties))
    assert properties.keys().isdisjoint(table.properties)


def edit(change: Callable) -> Callable[[Table], None]:
    def run(table: Table) -> None:
        with table.update_schema() as opened:
            change(opened)

    return run


def partitioned(table: Table) -> None:
    with table.update_partitioning() as opened:
        opened.add("id", name=5)


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        (lambda table: table.set_properties({"write.target-file-size-bytes": 1000}), "write '1000'"),
        (lambda table: table.set_properties({"owner": None}), "'owner'"),
        (lambda table: table.set_properties({"gc.enabled": True}), "write 'true'"),
        (lambda table: table.set_properties({5: "a"}), "name of property 5"),
        (lambda table: table.set_properties({"owner": "\ud800"}), "surrogate"),
        (lambda table: table.transaction().set_properties({"a": 1}), "write '1'"),
        (edit(lambda e: e.set_doc("id", 5)), "comment of a column"),
        (edit(lambda e: e.add_column("z", "int", doc=5)), "comment of a column"),
        (edit(lambda e: e.add_column(5, "int")), "name of a column"),
        (edit(lambda e: e.rename_column("id", 5)), "name of a column"),
        (edit(lambda e: e.rename_column("id", "\ud800")), "surrogate"),
        (partitioned, "partition field 5"),
        (lambda table: table.tag(5), "ref 5"),
        (lambda table: table.append(pa.table({"id": [2]}), wap_id=7), "wap_id"),
        (lambda table: table.append(pa.table({"id": [2]}), branch=5), "branch 5"),
        (lambda table: table.append(pa.table({"id": [2]}), branch=""), "branch ''"),
        (lambda table: table.upgrade("3"), "format version"),
    ],
)
def test_what_is_not_text_is_refused_before_it_makes_the_table_unreadable(tmp_path, table, change, hint):
    """JSON took the number, the commit landed, and every load of the table was an error from then on."""
    with pytest.raises(InputError, match=hint):
        change(table)
    again = new_catalog(tmp_path).load_table("db.t")
    assert ids(again) == [1]
    assert list(again.metadata.refs) == ["main"]
    assert len(again.snapshots) == 1


@pytest.mark.parametrize("properties", [{"a": 1}, {"a": None}, {"format-version": 3}])
def test_a_table_is_not_made_with_properties_that_are_not_text(tmp_path, properties):
    """The name was taken by a table that nobody could open."""
    catalog = new_catalog(tmp_path)
    with pytest.raises(InputError, match="expected text"):
        catalog.create_table("db.t", schema="id bigint", properties=properties)
    assert not catalog.table_exists("db.t")


def test_no_branch_means_main(table):
    """The snapshot was silently staged: success was told, and nobody saw the rows."""
    table.append(pa.table({"id": [2, 3]}), branch=None)
    assert table.delete("id = 1", branch=None).rows_deleted == 1
    with table.transaction() as tx:
        tx.append(pa.table({"id": [4]}), branch=None)
        assert tx.scan(branch=None).count() == 3
    assert ids(table) == [2, 3, 4]

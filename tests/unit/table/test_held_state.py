"""A table object holds one state: properties and scans agree and cost no catalog call until ``refresh`` or a change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.catalogs.memory import MemoryCatalog
from icefloe.catalogs.names import NameLike
from icefloe.errors import ConflictError, NoSuchTable
from icefloe.table.catalog import Catalog
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.tables import new_catalog


class CountingCatalog(MemoryCatalog):
    """Counts how often a table's pointer is loaded."""

    def __init__(self, name: str, warehouse: str) -> None:
        super().__init__(name, warehouse=warehouse)
        self.loads = 0

    def load(self, identifier: NameLike) -> str:
        self.loads += 1
        return super().load(identifier)


@pytest.fixture
def pointers(tmp_path: Path) -> CountingCatalog:
    return CountingCatalog("counting", warehouse=f"file://{tmp_path}/warehouse")


@pytest.fixture
def cat(pointers: CountingCatalog) -> Catalog:
    return Catalog(pointers)


@pytest.fixture
def table(cat: Catalog) -> Table:
    made = cat.create_table("db.t", schema="id bigint, city string", partition_by=["city"])
    made.append(rows(1))
    return made


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "city": ["Oslo"] * len(ids)})


PROPERTIES = (
    "metadata",
    "metadata_location",
    "location",
    "schema",
    "spec",
    "format_version",
    "properties",
    "snapshots",
)


def test_properties_and_scans_do_not_load_the_pointer(table: Table, pointers: CountingCatalog) -> None:
    before = pointers.loads
    for _ in range(3):
        for name in PROPERTIES:
            getattr(table, name)
        repr(table)
        assert table.scan().count() == 1
        assert table.at(snapshot=table.snapshots[0].snapshot_id).scan().to_arrow().num_rows == 1
    assert pointers.loads == before


def test_properties_are_never_of_two_states(table: Table, cat: Catalog) -> None:
    other = cat.load_table("db.t")
    spec = table.spec
    with other.update_schema() as columns:
        columns.add_column("note", "string")
    with other.update_partitioning() as fields:
        fields.remove("city")
        fields.add("bucket(4, id)")
    other.set_properties({"owner": "other"})
    other.append(pa.table({"id": [2], "city": ["Rome"], "note": ["x"]}))

    assert (table.spec, [field.name for field in table.schema.fields]) == (spec, ["id", "city"])
    assert "owner" not in table.properties
    assert len(table.snapshots) == table.scan().count() == 1
    assert table.scan().to_arrow().column_names == ["id", "city"]

    table.refresh()
    assert [field.name for field in table.schema.fields] == ["id", "city", "note"]
    assert [field.name for field in table.spec.fields] == ["id_bucket_4"]
    assert table.properties["owner"] == "other"
    assert len(table.snapshots) == table.scan().count() == 2


def test_refresh_shows_the_commit_of_another_handle_with_one_load(
    table: Table, cat: Catalog, pointers: CountingCatalog
) -> None:
    cat.load_table("db.t").append(rows(2, 3))
    assert table.scan().count() == 1
    before = pointers.loads
    assert table.refresh() is table
    assert pointers.loads == before + 1
    assert table.scan().count() == 3


def test_a_scan_keeps_the_state_it_was_made_from(table: Table, cat: Catalog) -> None:
    scan = table.scan()
    table.append(rows(2))
    assert (scan.count(), table.scan().count()) == (1, 2)


def test_changes_through_the_object_are_seen_at_once_and_bring_those_of_others(table: Table, cat: Catalog) -> None:
    cat.load_table("db.t").append(rows(2))
    table.append(rows(3))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    with table.transaction() as work:
        work.delete("id = 3")
    assert table.scan().count() == 2
    with table.update_schema() as columns:
        columns.rename_column("city", "town")
    assert "town" in table.schema.by_name


def adds_a_column(table: Table) -> None:
    with table.update_schema() as columns:
        columns.rename_column("note", "remark")


def partitions_by_a_column(table: Table) -> None:
    with table.update_partitioning() as fields:
        fields.add("note")


CHANGES: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append(pa.table({"id": [3], "city": ["Rome"], "note": ["x"]})),
    "update": lambda table: table.update({"note": "'seen'"}),
    "delete": lambda table: table.delete("note is null"),
    "update_schema": adds_a_column,
    "update_partitioning": partitions_by_a_column,
    "set_sort_order": lambda table: table.set_sort_order("note"),
    "rollback": lambda table: table.rollback(timestamp=datetime.now(UTC) + timedelta(days=1)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_starts_from_the_newest_state(table: Table, cat: Catalog, change: str) -> None:
    other = cat.load_table("db.t")
    with other.update_schema() as columns:
        columns.add_column("note", "string")
    assert "note" not in table.schema.by_name
    CHANGES[change](table)
    assert {"note", "remark"} & set(table.schema.by_name)


def test_after_a_conflict_the_object_holds_the_state_that_was_in_the_way(table: Table, cat: Catalog) -> None:
    other = cat.load_table("db.t")
    work = table.transaction()
    work.delete("id = 1")
    other.delete("id = 1")
    other.append(rows(5))
    with pytest.raises(ConflictError):
        work.commit()
    assert table.scan().to_arrow()["id"].to_pylist() == [5]


def test_the_object_keeps_its_state_when_the_table_is_dropped(table: Table, cat: Catalog) -> None:
    cat.drop_table("db.t")
    assert [field.name for field in table.schema.fields] == ["id", "city"]
    with pytest.raises(NoSuchTable):
        table.refresh()


def test_a_restored_older_state_is_taken_over_by_refresh(table: Table, cat: Catalog) -> None:
    first = table.metadata_location
    table.append(rows(2))
    cat.drop_table("db.t")
    cat.register_table("db.t", first)
    assert table.refresh().scan().count() == 1


def test_a_slow_load_in_another_thread_does_not_take_a_newer_state_back(
    table: Table, pointers: CountingCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, committed = threading.Event(), threading.Event()
    load = CountingCatalog.load

    def slow(self: CountingCatalog, identifier: NameLike) -> str:
        pointer = load(self, identifier)
        if threading.current_thread() is reader:
            loaded.set()
            assert committed.wait(30)
        return pointer

    reader = threading.Thread(target=lambda: table.refresh())
    Catalog(pointers).load_table("db.t").append(rows(2))  # so that the reader has a new state to read
    monkeypatch.setattr(CountingCatalog, "load", slow)
    reader.start()
    assert loaded.wait(30)
    table.append(rows(3))
    committed.set()
    reader.join()
    assert table.scan().count() == 3


def test_a_commit_that_is_remembered_late_does_not_take_a_newer_state_back(table: Table) -> None:
    old = pointer_of(table).held()
    table.append(rows(2))
    pointer_of(table).remember(old.pointer, old.metadata)
    assert table.scan().count() == 2


def test_tables_in_sqlite_hold_their_state_too(tmp_path: Path) -> None:
    lake = new_catalog(tmp_path)
    one = lake.create_table("db.t", schema="id bigint, city string")
    two = icefloe.catalog(
        "lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse"
    ).load_table("db.t")
    one.append(rows(1))
    assert (two.scan().count(), two.refresh().scan().count()) == (0, 1)

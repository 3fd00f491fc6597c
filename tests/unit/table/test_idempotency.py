"""A change with an idempotency key is committed once, however often and wherever it is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.catalogs.catalog import Swap, Unknown
from icefloe.catalogs.memory import MemoryCatalog
from icefloe.catalogs.names import NameLike
from icefloe.env import SYSTEM
from icefloe.errors import CommitStateUnknown, InputError
from icefloe.io.select import file_io
from icefloe.maintenance.reachable import reachable_files
from icefloe.table.catalog import Catalog
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table

ENV = replace(SYSTEM, sleep=lambda seconds: None)


class Interleaved(MemoryCatalog):
    """Runs another writer before a swap, and may lose the answer of a swap that succeeds."""

    def __init__(self, name: str, warehouse: str) -> None:
        super().__init__(name, warehouse=warehouse)
        self.before_swap: list[Callable[[], object]] = []
        self.loses_answers = False

    def swap(self, identifier: NameLike, expected: str, new: str) -> Swap:
        if len(self.before_swap) > 0:
            self.before_swap.pop(0)()
        done = super().swap(identifier, expected, new)
        return Unknown(cause=TimeoutError("no answer")) if self.loses_answers else done


@pytest.fixture
def pointers(tmp_path: Path) -> Interleaved:
    return Interleaved("busy", warehouse=f"file://{tmp_path}/warehouse")


@pytest.fixture(params=[2, 4])
def table(pointers: Interleaved, request: pytest.FixtureRequest) -> Table:
    made = Catalog(pointers, ENV).create_table("db.t", schema="id bigint, city string", format_version=request.param)
    made.append(rows(1, 2, 3))
    return made


def rows(*ids: int, city: str = "Oslo") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "city": [city] * len(ids)})


OPERATIONS: dict[str, Callable[[Table, str], Any]] = {
    "append": lambda t, key: t.append(rows(4), idempotency_key=key),
    "append with new columns": lambda t, key: t.append(
        rows(4).append_column("note", pa.array(["x"])), schema_mode="merge", idempotency_key=key
    ),
    "overwrite": lambda t, key: t.overwrite(rows(4), where="id = 1", idempotency_key=key),
    "overwrite_partitions": lambda t, key: t.overwrite_partitions(rows(4), idempotency_key=key),
    "delete": lambda t, key: t.delete("id = 1", idempotency_key=key),
    "update": lambda t, key: t.update({"id": "id + 10"}, idempotency_key=key),
    "upsert": lambda t, key: t.upsert(rows(3, 4, city="Rome"), on=["id"], idempotency_key=key),
    "merge": lambda t, key: (
        t.merge(rows(3, 4), on=["id"], idempotency_key=key)
        .when_matched_update({"id": "t.id + 20"})
        .when_not_matched_insert_all()
        .execute()
    ),
}


def contents(table: Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=str)


def data_files(table: Table) -> set[str]:
    location = table.metadata.location
    return {info.location for info in file_io(location).list(f"{location}/data")}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_repeated_operation_changes_nothing(table: Table, name: str) -> None:
    first = OPERATIONS[name](table, "job-7")
    after, files, snapshots = contents(table), data_files(table), len(table.metadata.snapshots)
    again = OPERATIONS[name](table, "job-7")
    assert (again.already_committed, again.snapshot_id) == (True, first.snapshot_id)
    assert f"already committed as snapshot {first.snapshot_id}" in repr(again)
    assert (contents(table), data_files(table), len(table.metadata.snapshots)) == (after, files, snapshots)
    assert not first.already_committed
    assert table.metadata.snapshot(first.snapshot_id).summary["icefloe.idempotency-key"] == "job-7"
    other = OPERATIONS[name](table, "job-8")
    assert not other.already_committed


@pytest.mark.parametrize("name", OPERATIONS)
def test_two_runs_that_race_commit_once(table: Table, pointers: Interleaved, name: str) -> None:
    """The other run commits between the last look at the table and the swap of this one."""
    winner: list[Any] = []
    pointers.before_swap.append(lambda: winner.append(OPERATIONS[name](Catalog(pointers, ENV).load_table("db.t"), "j")))
    loser = OPERATIONS[name](table, "j")
    assert [result.already_committed for result in (*winner, loser)] == [False, True]
    assert loser.snapshot_id == winner[0].snapshot_id == table.metadata.current_snapshot_id
    assert data_files(table) <= set(reachable_files(pointer_of(table).load())["location"].to_pylist())


def test_a_run_after_an_unknown_outcome_finds_what_landed(table: Table, pointers: Interleaved) -> None:
    held = pointers.load

    def unreachable(identifier: NameLike) -> str:
        raise TimeoutError("no answer")

    pointers.loses_answers = True
    pointers.before_swap.append(lambda: setattr(pointers, "load", unreachable))
    with pytest.raises(CommitStateUnknown):
        table.append(rows(4), idempotency_key="job")
    pointers.loses_answers = False
    pointers.load = held  # type: ignore[method-assign]
    later = Catalog(pointers, ENV).load_table("db.t")
    assert later.append(rows(4), idempotency_key="job").already_committed
    assert sorted(row["id"] for row in contents(later)) == [1, 2, 3, 4]


def test_a_key_belongs_to_its_branch(table: Table) -> None:
    table.append(rows(4), branch="audit", create_branch=True, idempotency_key="job")
    assert not table.append(rows(4), idempotency_key="job").already_committed
    assert table.append(rows(4), branch="audit", idempotency_key="job").already_committed


def test_a_staged_snapshot_is_found_by_its_key(table: Table) -> None:
    first = table.append(rows(4), wap_id="w", idempotency_key="job")
    again = table.append(rows(4), wap_id="w", idempotency_key="job")
    assert (again.already_committed, again.snapshot_id) == (True, first.snapshot_id)


def test_a_key_is_known_as_long_as_its_snapshot_is_retained(table: Table) -> None:
    table.append(rows(4), idempotency_key="job")
    for n in range(5, 9):
        table.append(rows(n))
    assert table.append(rows(4), idempotency_key="job").already_committed


@pytest.mark.parametrize(("key", "message"), [("", "is empty"), (7, "expected text")])
def test_a_key_that_is_no_text_is_refused(table: Table, key: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        table.append(rows(4), idempotency_key=key)


BATCHES: dict[str, Callable[[Table, int], Any]] = {
    "append": lambda t, batch: t.append(rows(batch), query="orders", batch=batch),
    "overwrite": lambda t, batch: t.overwrite(rows(batch), overwrite_all=True, query="orders", batch=batch),
    "overwrite_partitions": lambda t, batch: t.overwrite_partitions(rows(batch), query="orders", batch=batch),
    "upsert": lambda t, batch: t.upsert(rows(3, batch, city="Rome"), on=["id"], query="orders", batch=batch),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_of_a_stream_is_committed_once(table: Table, name: str) -> None:
    """Also if later batches of the stream are committed: Apache Iceberg's keys have the number of the newest one."""
    first, second = BATCHES[name](table, 10), BATCHES[name](table, 11)
    after, files = contents(table), data_files(table)
    again = [BATCHES[name](table, batch) for batch in (10, 11)]
    assert [result.already_committed for result in (first, second, *again)] == [False, False, True, True]
    assert (contents(table), data_files(table)) == (after, files)
    summary = table.metadata.snapshot(second.snapshot_id).summary
    assert summary["spark.sql.streaming.queryId"] == "orders"
    assert summary["spark.sql.streaming.epochId"] == "11"
    assert not BATCHES[name](table, 12).already_committed


@pytest.mark.parametrize("name", BATCHES)
def test_two_drivers_that_race_commit_a_batch_once(table: Table, pointers: Interleaved, name: str) -> None:
    winner: list[Any] = []
    pointers.before_swap.append(lambda: winner.append(BATCHES[name](Catalog(pointers, ENV).load_table("db.t"), 7)))
    loser = BATCHES[name](table, 7)
    assert [result.already_committed for result in (*winner, loser)] == [False, True]
    assert data_files(table) <= set(reachable_files(pointer_of(table).load())["location"].to_pylist())


def test_batches_of_two_streams_do_not_hide_each_other(table: Table) -> None:
    table.append(rows(4), query="a", batch=9)
    assert not table.append(rows(5), query="b", batch=3).already_committed


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ({"query": "a"}, "give both or none"),
        ({"batch": 1}, "give both or none"),
        ({"query": "", "batch": 1}, "query is empty"),
        ({"query": "a", "batch": -1}, "number of the batch"),
        ({"query": "a", "batch": "1"}, "number of the batch"),
        ({"query": "a", "batch": 1, "idempotency_key": "b"}, "not both"),
    ],
)
def test_a_batch_that_is_not_named_well_is_refused(table: Table, key: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        table.append(rows(4), **key)

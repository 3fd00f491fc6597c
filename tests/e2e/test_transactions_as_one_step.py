"""What others see of a transaction: one step, by its changes, by time, and where possible by one snapshot."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.errors import ConflictError, InputError
from icefloe.model.metadata.transactions import TRANSACTION_ID, TRANSACTION_POSITION
from icefloe.table.table import Table
from icefloe.table.transaction import Transaction
from icefloe.testing.check import check_table
from support.people import COPY, EACH_MODE, MERGE
from support.tables import new_catalog

pytestmark = pytest.mark.slow
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MODES = pytest.mark.parametrize("mode", EACH_MODE)


def accounts(*balances: int, first: int = 1) -> pa.Table:
    ids = range(first, first + len(balances))
    return pa.table({"id": pa.array(ids, pa.int64()), "balance": pa.array(balances, pa.int64())})


def bank(folder: Path, version: int, mode: str = MERGE, **properties: str) -> Table:
    modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    table = new_catalog(folder).create_table(
        "db.bank", schema="id bigint, balance bigint", format_version=version, properties={**modes, **properties}
    )
    table.append(accounts(100, 100, 100))
    return table


def transfer(tx: Table | Transaction, amount: int, source: int, target: int) -> None:
    tx.update({"balance": f"balance - {amount}"}, f"id = {source}")
    tx.update({"balance": f"balance + {amount}"}, f"id = {target}")


def balances(table: Table) -> dict[int, int]:
    rows = table.scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["balance"] for row in rows}


def sums(table: Table, since: int | None = None) -> list[int]:
    """The sum of all balances after each commit, as a reader of the changes adds them up."""
    total, found = Counter[int](), []
    for row in table.changes(since).to_arrow().to_pylist():
        total[row["_change_ordinal"]] += row["balance"] * (1 if row["_change_type"] == "insert" else -1)
    for ordinal in sorted(total):
        found.append(total[ordinal] + (found[-1] if found else 0))
    return found


def sums_by_time(table: Table) -> set[int]:
    """The sums that time travel finds, at the time of every snapshot and a little before."""
    oldest = min(snapshot.timestamp_ms for snapshot in table.snapshots)
    times = {each.timestamp_ms + shift for each in table.snapshots for shift in (-1, 0, 1)}
    found = set()
    for time in sorted(time for time in times if time >= oldest):
        at = table.at(timestamp=_EPOCH + timedelta(milliseconds=time))
        found.add(sum(row["balance"] for row in at.scan().to_arrow().to_pylist()))
    return found


@MODES
def test_a_transfer_by_two_updates_is_one_snapshot_and_no_money_vanishes(tmp_path: Path, mode: tuple[int, str]) -> None:
    """A reader of the changes saw a snapshot in which the money had left one account and not reached the other."""
    table = bank(tmp_path, *mode)
    before = table.metadata.current_snapshot_id
    with table.transaction() as tx:
        transfer(tx, 30, 1, 2)
        assert tx.scan("id = 2").to_arrow()["balance"].to_pylist() == [130]
    assert balances(table) == {1: 70, 2: 130, 3: 100}
    assert (tx.result.snapshots, len(table.snapshots)) == (1, 2)
    assert (tx.result.rows_added, tx.result.rows_deleted) == (2, 2)
    assert table.snapshots[-1].parent_id == before
    assert (sums(table), sums(table, before)) == ([300, 300], [0])
    check(table)


def check(table: Table) -> None:
    """The table is sound, and no file is left of the steps."""
    found = check_table(table, rows=True)
    assert [(each.message, each.location) for each in found] == []
    later = datetime.now(UTC) + timedelta(minutes=1)
    assert table.remove_orphans(later, allow_recent=True, max_share=1.0).files.num_rows == 0


@MODES
def test_changes_of_each_kind_are_one_snapshot_with_what_is_left_of_them(tmp_path: Path, mode: tuple[int, str]) -> None:
    """Rows that a step adds and a later one changes or deletes; files of both are no part of the table."""
    table = bank(tmp_path, *mode)
    with table.transaction(one_snapshot=True, summary={"job": "7"}) as tx:
        tx.append(accounts(5, 5, 5, first=10))
        tx.update({"balance": "balance + 1"}, "id in (1, 10)")
        tx.delete("id = 11 or id = 2")
        tx.upsert(accounts(7, 8, first=3), on=["id"])
        tx.overwrite(accounts(9, first=20), "id = 10")
        tx.update({"balance": "balance + 1"}, "id = 1")
        tx.set_properties({"owner": "me"})
        tx.append(accounts(1, first=30))
        seen = {row["id"]: row["balance"] for row in tx.scan().to_arrow().to_pylist()}
    assert seen == balances(table) == {1: 102, 3: 7, 4: 8, 12: 5, 20: 9, 30: 1}
    summary = table.snapshots[-1].summary
    assert (len(table.snapshots), summary["operation"], summary["job"]) == (2, "overwrite", "7")
    if mode != (2, MERGE):  # there a file may leave while its position deletes remain
        assert int(summary["total-records"]) - int(summary["total-position-deletes"]) == 6
    assert TRANSACTION_ID not in summary
    if mode[0] > 2:
        ids = table.scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
        assert len({row["_row_id"] for row in ids}) == 6
        assert {row["id"]: row["_row_id"] for row in ids}[1] == 0
    check(table)


@MODES
def test_rows_that_come_and_go_in_a_transaction_make_no_snapshot(tmp_path: Path, mode: tuple[int, str]) -> None:
    table = bank(tmp_path, *mode)
    with table.transaction() as tx:
        tx.append(accounts(5, 5, first=10))
        tx.delete("id >= 10")
    assert (tx.result.snapshots, len(table.snapshots)) == (0, 1)
    check(table)


@MODES
def test_a_transaction_that_lost_a_race_is_one_snapshot_on_top_of_the_other_commit(
    tmp_path: Path, mode: tuple[int, str]
) -> None:
    table = bank(tmp_path, *mode)
    with table.transaction() as tx:
        transfer(tx, 30, 1, 2)
        tx.append(accounts(0, first=50))
        table.append(accounts(40, first=40))
    assert (tx.result.attempts, tx.result.snapshots) == (2, 1)
    assert balances(table) == {1: 70, 2: 130, 3: 100, 40: 40, 50: 0}
    assert sums(table) == [300, 340, 340]
    check(table)
    with pytest.raises(ConflictError), table.transaction() as tx:  # noqa: PT012
        transfer(tx, 30, 1, 2)
        table.update({"balance": "0"}, "id = 1")
    assert balances(table)[2] == 130
    check(table)


def of_two_snapshots(table: Table) -> None:
    """A transfer whose steps need several snapshots: one deletes by value what another one has added."""
    with table.transaction() as tx:
        tx.update({"balance": "balance - 30"}, "id = 1")
        tx.upsert(accounts(130, first=2), on=["id"], deletes="equality")
    assert tx.result.snapshots == 2


@pytest.mark.parametrize("version", [2, 3, 4])
def test_snapshots_of_one_transaction_are_one_step_of_changes_and_one_time(tmp_path: Path, version: int) -> None:
    table = bank(tmp_path, version)
    first = table.snapshots[-1].snapshot_id
    of_two_snapshots(table)
    middle, last = table.snapshots[-2:]
    table.append(accounts(40, first=40))
    marks = [[each.summary[key] for key in (TRANSACTION_ID, TRANSACTION_POSITION)] for each in (middle, last)]
    assert marks == [[str(last.snapshot_id), "1/2"], [str(last.snapshot_id), "2/2"]]
    assert middle.timestamp_ms == last.timestamp_ms
    assert sums(table) == [300, 300, 340]
    assert sums_by_time(table) == {300, 340}
    changes = table.changes(first, last.snapshot_id).to_arrow().to_pylist()
    assert {row["_commit_snapshot_id"] for row in changes} == {last.snapshot_id}
    found = sorted((row["_change_type"], row["id"], row["balance"]) for row in changes)
    assert found == [("delete", 1, 100), ("delete", 2, 100), ("insert", 1, 70), ("insert", 2, 130)]
    assert table.changes(middle.snapshot_id, last.snapshot_id).count() == 4, "a point inside is the state before"
    assert table.changes(first, middle.snapshot_id).count() == 0
    assert table.changes(middle.snapshot_id, middle.snapshot_id).count() == 0
    table.rollback(timestamp=_EPOCH + timedelta(milliseconds=middle.timestamp_ms))
    assert table.metadata.current_snapshot_id == last.snapshot_id
    check(table)


@pytest.mark.parametrize("version", [2, 4])
def test_a_transaction_expires_as_a_whole_and_is_published_as_a_whole(tmp_path: Path, version: int) -> None:
    table = bank(tmp_path, version)
    table.branch("trial")
    of_two_snapshots(table)
    middle, last = table.snapshots[-2:]
    late = datetime.now(UTC) + timedelta(days=1)
    plan = table.expire(older_than=late, retain_last=1)
    assert middle.snapshot_id not in {each.snapshot_id for each in plan.expired}
    table.rollback(snapshot=table.snapshots[0].snapshot_id)
    with pytest.raises(InputError, match="half of it"):
        table.cherry_pick(middle.snapshot_id)
    with pytest.raises(InputError, match="half of it"):
        table.cherry_pick(last.snapshot_id)


def test_operations_that_need_another_snapshot_are_refused_if_one_was_asked_for(tmp_path: Path) -> None:
    table = bank(tmp_path, 4)
    with table.transaction(one_snapshot=True) as tx:
        tx.append(accounts(1, first=10))
        with pytest.raises(InputError, match="equality deletes do not apply to rows of the same snapshot"):
            tx.upsert(accounts(2, first=10), on=["id"], deletes="equality")
        with pytest.raises(InputError, match="it changes branch 'trial', the others 'main'"):
            tx.append(accounts(2, first=11), branch="trial", create_branch=True)
    assert (balances(table)[10], len(table.snapshots)) == (1, 2)
    check(table)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_no_reader_sees_another_sum_whatever_the_transfers_are(tmp_path: Path, version: int, seed: int) -> None:
    rng = random.Random(f"{version} {seed}")
    table = bank(tmp_path, version, rng.choice((COPY, MERGE)) if version > 1 else COPY)
    for number in range(6):
        with table.transaction() as tx:
            for _ in range(rng.randint(1, 4)):
                step(tx, rng, version)
            if rng.random() < 0.3:
                table.append(accounts(0, first=-number))  # somebody else, in between
        assert sum(balances(table).values()) == 300
        if rng.random() < 0.3:
            table.compact(options={"rewrite-all": "true"}).execute()
    assert set(sums(table)) == {300}
    assert sums_by_time(table) == {300}
    check(table)


def step(tx: Transaction, rng: random.Random, version: int) -> None:
    """Moves money between accounts, opens one or closes one."""
    rows = {row["id"]: row["balance"] for row in tx.scan().to_arrow().to_pylist()}
    source, target = rng.sample(sorted(rows), 2)
    match rng.randrange(5 if version > 1 else 4):
        case 0 | 1:
            transfer(tx, rng.randint(1, 20), source, target)
        case 2:
            new = max(rows) + 1
            tx.append(accounts(rows[source], first=new))
            tx.delete(f"id = {source}")
        case 3:
            pair = pa.concat_tables([accounts(rows[target], first=source), accounts(rows[source], first=target)])
            tx.upsert(pair, on=["id"])
        case _:
            pair = pa.concat_tables([accounts(rows[target], first=source), accounts(rows[source], first=target)])
            tx.upsert(pair, on=["id"], deletes="equality")

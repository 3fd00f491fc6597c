"""Change data in batches that are late, repeated and out of order: the table has the last state of every key."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.errors import InputError
from support.people import COPY, MERGE, check, new_table
from support.selection import thorough

pytestmark = pytest.mark.slow
SCHEMA = "id bigint not null, n int, seq bigint, is_deleted boolean"
CHANGES = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("seq", pa.int64()), ("op", pa.string())])
MODES = [(2, COPY), (4, MERGE), thorough((1, COPY)), thorough((3, MERGE))]


@pytest.fixture
def wrap() -> Callable[[Any], Any]:
    """The table as the tests change it."""
    return lambda table: table


def changes(*rows: tuple[int | None, int | None, int | None, str]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(CHANGES.names, row, strict=True)) for row in rows], schema=CHANGES)


def live(table: Any) -> dict[int, int]:
    found = table.scan("is_deleted = false", columns=["id", "n"]).to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["n"] for row in found}


def apply(table: Any, batch: pa.Table, **options: Any) -> Any:
    return table.apply_changes(batch, keys=["id"], sequence_by="seq", delete_when="op = 'D'", **options)


@pytest.mark.parametrize(("version", "mode"), MODES)
def test_batches_in_any_order_and_number_leave_the_last_state(
    wrap: Callable[[Any], Any], tmp_path: Path, version: int, mode: str
) -> None:
    plain = new_table(tmp_path, version, mode, schema=SCHEMA)
    table, chance = wrap(plain), random.Random(version)
    history = [(chance.randrange(5), number, number, chance.choice("IUD")) for number in range(1, 25)]
    batches = [history[start : start + 8] for start in range(0, len(history), 8)]
    for batch in (batches[1], batches[0], batches[1], batches[2], batches[0]):
        apply(table, changes(*chance.sample(batch, len(batch)), batch[0]))
    expected = {id_: (n, op) for id_, n, _, op in history}
    assert live(table) == {id_: n for id_, (n, op) in expected.items() if op != "D"}
    assert apply(table, changes(*history)).snapshot_id is None
    check(plain)


def test_a_late_change_does_not_bring_a_deleted_row_back(wrap: Callable[[Any], Any], tmp_path: Path) -> None:
    table = wrap(new_table(tmp_path, 4, schema=SCHEMA))
    apply(table, changes((1, 10, 1, "I"), (2, 20, 1, "I")))
    assert apply(table, changes((1, None, 5, "D"), (7, None, 5, "D"))).rows_updated == 1
    assert apply(table, changes((1, 11, 3, "U"), (7, 70, 4, "I"))).snapshot_id is None
    assert live(table) == {2: 20}
    assert apply(table, changes((1, 12, 6, "I"))).rows_updated == 1
    assert live(table) == {1: 12, 2: 20}


def test_chosen_columns_alone_are_set(wrap: Callable[[Any], Any], tmp_path: Path) -> None:
    table = wrap(new_table(tmp_path, 4, schema="id bigint, n int, note string, seq bigint"))
    first = pa.table({"id": [1], "n": pa.array([1], pa.int32()), "note": ["a"], "seq": [1]})
    table.apply_changes(first, keys=["id"], sequence_by="seq")
    second = pa.table({"id": [1], "n": pa.array([2], pa.int32()), "note": ["b"], "seq": [2]})
    table.apply_changes(second, keys=["id"], sequence_by="seq", columns=["n"])
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "n": 2, "note": "a", "seq": 2}]


def test_changes_that_cannot_be_ordered_are_refused(wrap: Callable[[Any], Any], tmp_path: Path) -> None:
    table = wrap(new_table(tmp_path, 4, schema=SCHEMA))
    twice = changes((3, 1, 2, "U"), (3, 1, 2, "U"), (4, 5, 1, "U"), (4, 6, 1, "U"), (4, 7, 2, "U"))
    assert apply(table, twice).rows_inserted == 2  # equal changes are one, and older ones do not matter
    with pytest.raises(InputError, match=r"the key .*id.*9.* has different changes with seq"):
        apply(table, changes((9, 1, 2, "U"), (9, 2, 2, "U"), (8, 1, 1, "U")))
    with pytest.raises(InputError, match="column 'id' of the changes has a null"):
        apply(table, changes((None, 1, 2, "U")))
    with pytest.raises(InputError, match="column 'seq' of the changes has a null"):
        apply(table, changes((1, 1, None, "U")))
    with pytest.raises(InputError, match="the changes have no column 'seq'"):
        apply(table, pa.table({"id": [1]}))
    with pytest.raises(InputError, match="deletes need a boolean column 'gone'"):
        apply(table, twice, deleted_column="gone")
    with pytest.raises(InputError, match="the table has no column 'lsn'"):
        table.apply_changes(twice, keys=["id"], sequence_by="lsn")
    with pytest.raises(InputError, match="as a list"):
        table.apply_changes(twice, keys="id", sequence_by="seq")
    assert live(table) == {3: 1, 4: 7}


def test_changes_are_applied_once_by_key_and_together_with_other_operations(
    wrap: Callable[[Any], Any], tmp_path: Path
) -> None:
    plain = new_table(tmp_path, 4, schema=SCHEMA)
    table, batch = wrap(plain), changes((1, 10, 1, "I"), (2, 20, 1, "I"))
    first = apply(table, batch, idempotency_key="batch 1")
    plain.delete("true")  # without the key, the batch would now be applied again
    again = apply(table, batch, idempotency_key="batch 1")
    assert (first.already_committed, again.already_committed) == (False, True)
    assert again.snapshot_id == first.snapshot_id
    assert live(table) == {}
    with plain.transaction() as transaction:
        work = wrap(transaction)
        apply(work, changes((1, 10, 2, "I"), (3, 30, 2, "I")))
        apply(work, changes((1, 11, 1, "U"), (3, 31, 3, "U"), (4, 40, 3, "D")))
        transaction.delete("n = 10")
    assert live(table) == {3: 31}
    check(plain)

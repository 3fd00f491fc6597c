"""Random histories of rows, in every version and with every kind of delete: changes are the differences of snapshots.

Sixty histories run in ``make test``, five for each version and file format. ``make thorough`` runs 2,000 in all;
``ICEFLOE_CHANGE_HISTORIES`` sets another number.
"""

from __future__ import annotations

import os
import random

import pytest

from icefloe.errors import InputError
from icefloe.table.table import Table
from support.change_feeds import check_steps, difference, line_of, old_and_new, rows_at
from support.row_histories.conditions import draw_condition
from support.row_histories.history import RowHistory, random_steps
from support.row_histories.model import Start
from support.selection import first

SEED = int(os.environ.get("ICEFLOE_SEED", "0"))
HISTORIES = int(os.environ.get("ICEFLOE_CHANGE_HISTORIES", "2000"))
LENGTH = 8
GROUPS, FEW = 12, 5  # seeds that are equal in GROUPS have the same version and format
SEEDS = {
    **{f"group {group}, first": range(SEED + group, SEED + FEW * GROUPS, GROUPS) for group in range(GROUPS)},
    **{f"group {group}": range(SEED + FEW * GROUPS + group, SEED + HISTORIES, GROUPS) for group in range(GROUPS)},
}


@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("seeds", first(4, SEEDS))
def test_the_changes_of_a_history_are_the_differences_of_its_snapshots(seeds: str) -> None:
    for seed in SEEDS[seeds]:
        history = RowHistory(Start.drawn(seed))
        history.run(random_steps(seed, LENGTH), check_each=False)
        try:
            check_changes(history, random.Random(seed))
        except BaseException as error:
            error.add_note(f"seed {seed}: RowHistory({history.start}).run({history.done})")
            raise


def check_changes(history: RowHistory, rng: random.Random) -> None:
    """Compare the changes of main, whole and in part, with its snapshots."""
    table = history.table
    line = line_of(table)
    states = [rows_at(table, snapshot, table.schema) for snapshot in (None, *line)]
    check_steps(table.changes().to_arrow(), states, line)
    assert old_and_new(table.changes(net=True).to_arrow()) == difference(states[0], states[-1]), "all in one"
    start = rng.randrange(len(line) + 1)
    since = None if start == 0 else line[start - 1].snapshot_id
    check_steps(table.changes(since).to_arrow(), states[start:], line[start:])
    net = table.changes(since, net=True).to_arrow()
    assert old_and_new(net) == difference(states[start], states[-1]), f"net changes since {since}"
    _check_images(history, since)
    condition = draw_condition(rng, history.columns).text
    some = [rows_at(table, snapshot, table.schema, condition) for snapshot in (None, *line)]
    check_steps(table.changes(since, where=condition).to_arrow(), some[start:], line[start:])


def _gets_row_ids(table: Table, since: int | None) -> bool:
    """Whether rows get ids after a snapshot: they are other rows then, and were paired with themselves once more."""
    line = line_of(table)
    read = line if since is None else line[[each.snapshot_id for each in line].index(since) :]
    return any(snapshot.first_row_id is None for snapshot in read)


def _check_images(history: RowHistory, since: int | None) -> None:
    """With images the same rows change; the two rows of an update have one key, which is unique in these histories."""
    table = history.table
    for net in (False, True):
        plain = table.changes(since, net=net).to_arrow()
        for keys in (["uid"], None) if table.metadata.rules.row_lineage else (["uid"],):
            if net and keys is None and _gets_row_ids(table, since):
                with pytest.raises(InputError, match="have none: it is older than the upgrade"):
                    table.changes(since, net=True, images=True)
                continue
            paired = table.changes(since, net=net, images=True, keys=keys).to_arrow()
            assert old_and_new(paired) == old_and_new(plain), f"images by {keys}, net={net}"
            rows = paired.to_pylist()
            updates = [row for row in rows if row["_change_type"].startswith("update")]
            assert [row["_change_type"] for row in updates] == ["update_before", "update_after"] * (len(updates) // 2)
            if keys is not None:
                assert all(one["uid"] == other["uid"] for one, other in zip(updates[::2], updates[1::2], strict=True))
                single = [(row["_change_ordinal"], row["uid"]) for row in rows if row not in updates]
                assert len(set(single)) == len(single), "a deleted and an inserted row have the same key"

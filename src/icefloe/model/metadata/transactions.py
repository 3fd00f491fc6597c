"""Snapshots of one transaction: how they are marked, and grouped when a history is read (spec: Snapshots).

A transaction that needs several snapshots marks each of them in its summary, with the id of its last snapshot and with
its position. Only the last one is a state of the table that a reader should see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from icefloe.model.metadata.snapshots import Snapshot

TRANSACTION_ID = "icefloe.transaction-id"  # the same for all snapshots of the transaction, also on other branches
TRANSACTION_POSITION = "icefloe.transaction-position"  # among those of its branch, such as 2/3


def marked(snapshots: Sequence[Snapshot], branches: Sequence[str]) -> tuple[Snapshot, ...]:
    """The snapshots that one commit made on these branches with their marks, all with the timestamp of the last one.

    >>> made = [Snapshot(snapshot_id=number, timestamp_ms=number, root=None) for number in (5, 7)]
    >>> [(each.timestamp_ms, *each.summary.values()) for each in marked(made, ["main", "main"])]
    [(7, '7', '1/2'), (7, '7', '2/2')]
    """
    last, number_of = snapshots[-1], Counter[str]()
    every = Counter(branches)
    found = []
    for snapshot, branch in zip(snapshots, branches, strict=True):
        number_of[branch] += 1
        keys = {
            TRANSACTION_ID: str(last.snapshot_id),
            TRANSACTION_POSITION: f"{number_of[branch]}/{every[branch]}",
        }
        found.append(replace(snapshot, timestamp_ms=last.timestamp_ms, summary={**snapshot.summary, **keys}))
    return tuple(found)


def transaction_of(snapshot: Snapshot) -> str | None:
    """The id of the transaction that a snapshot is a part of; none if it is a commit of its own."""
    return snapshot.summary.get(TRANSACTION_ID)


def is_part(snapshot: Snapshot) -> bool:
    """Whether a transaction made other snapshots of the same branch too."""
    return snapshot.summary.get(TRANSACTION_POSITION, "1/1") != "1/1"


def is_intermediate(snapshot: Snapshot) -> bool:
    """Whether later snapshots of the same transaction follow on its branch."""
    number, _, count = snapshot.summary.get(TRANSACTION_POSITION, "").partition("/")
    return transaction_of(snapshot) is not None and number != count


def by_commit(snapshots: Iterable[Snapshot]) -> tuple[tuple[Snapshot, ...], ...]:
    """The snapshots of a line of history, oldest first, grouped by transaction."""
    groups: list[list[Snapshot]] = []
    for snapshot in snapshots:
        transaction = transaction_of(snapshot)
        if transaction is not None and len(groups) > 0 and transaction_of(groups[-1][-1]) == transaction:
            groups[-1].append(snapshot)
        else:
            groups.append([snapshot])
    return tuple(map(tuple, groups))

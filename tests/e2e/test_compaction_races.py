"""Compaction beside expiry and orphan removal, in the orders of their calls: no row is lost or comes back.

``test_interleavings`` and ``test_many_processes`` have compaction beside appends, deletes and updates. Here files are
deleted while others read them, so that each call to storage or catalog that can meet another one is a switch point.
Compaction beside expiry runs in all orders. With more than that, ``ICEFLOE_LONG=1`` (``make long``) runs all orders;
without it some of them run, the same each time.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import pytest

from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.errors import ConflictError, NoSuchFile
from icefloe.maintenance.compact.compact_result import CompactResult
from icefloe.maintenance.deletions import DAY_MS
from icefloe.model.metadata.version_rules import WRITABLE
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.partition_text import partition_spec
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from icefloe.testing.scheduler import Baton, Place, Step, explore
from support.crashes import DEEP, LOCATION, LONG, NAME, Act, World, ids_at, rows
from support.memory_files import files_in
from support.races import race

pytestmark = pytest.mark.slow

LATER = "2100-01-01T00:00:00+00:00"
RUNS = 12
ORPHAN = f"{LOCATION}/data/dead.parquet"
KEPT = ((0, 0), (2, 0), (3, 0), (10, 1), (12, 1), (13, 1))


def compact(table: Table) -> CompactResult:
    return table.compact(options={"rewrite-all": True}).execute()


def compact_in_parts(table: Table) -> CompactResult:
    """A commit for each of the two partitions; the second one may find that the snapshot it has read has expired."""
    return table.compact(options={"rewrite-all": True, "partial-progress.enabled": True}).execute()


def expire(table: Table) -> None:
    result = table.expire(older_than=LATER, retain_last=1).execute()
    assert (result.failed, result.left) == ((), ())


def remove_orphans(table: Table) -> None:
    table.remove_orphans(max_share=1.0).execute()


def append(table: Table) -> None:
    table.append(rows(20))


def delete(table: Table) -> None:
    table.delete("id = 3")


def update(table: Table) -> None:
    table.update({"id": "id + 100"}, where="id = 3")


@cache
def start_world(version: int) -> World:
    """Two partitions of two files each, of which a row is deleted; all files are a month old. One is an orphan."""
    world, schema = World(), parse_ddl("id bigint, part int")
    spec: PartitionSpec = partition_spec(["part"], schema)
    properties = {**DEEP, "commit.retry.num-retries": "20"}
    metadata = new_metadata(location=LOCATION, schema=schema, spec=spec, properties=properties, format_version=version)
    world.catalog.create_namespace("db")
    create_table(world.catalog, NAME, world.io, metadata)
    table = world.table()
    for part in (0, 1):
        table.append(rows(10 * part, 10 * part + 1, part=part))
        table.append(rows(10 * part + 2, 10 * part + 3, part=part))
    table.delete("id = 1 or id = 11")
    world.io.write_new(ORPHAN, b"")
    for name, file in list(files_in(world.io).items()):
        files_in(world.io)[name] = replace(file, modified_ms=file.modified_ms - 30 * DAY_MS)
    return world


@dataclass(frozen=True, kw_only=True)
class Raced:
    """The world after a run, and how each action ended: its error, or what it returned."""

    world: World
    ended: tuple[object, ...]


def run(start: World, acts: Sequence[Act], baton: Baton, *, lists: bool) -> Raced:
    """Run actions; one that other actions make impossible may refuse, by these errors."""
    ended: dict[int, object] = {}

    def recorded(number: int, act: Act) -> Act:
        def body(table: Table) -> None:
            try:
                ended[number] = act(table)
            except (ConflictError, NoSuchFile) as error:
                ended[number] = error

        return body

    world = race(start, [recorded(number, act) for number, act in enumerate(acts)], baton, lists=lists)
    return Raced(world=world, ended=tuple(ended[number] for number in range(len(acts))))


def all_orders(start: World, acts: Sequence[Act], *, lists: bool = False) -> Iterator[Raced]:
    return (explored.outcome for explored in explore(lambda baton: run(start, acts, baton, lists=lists)))


def some_orders(start: World, acts: Sequence[Act], *, lists: bool = False, runs: int = RUNS) -> Iterator[Raced]:
    rng = random.Random(7)
    return (run(start, acts, RandomBaton(rng), lists=lists) for _ in range(runs))


class RandomBaton(Baton):
    """Lets any action that can run be next, by chance; an action often keeps its turn for a while."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng
        self._keeps = rng.choice([0.0, 0.5, 0.9])

    def _choose(self, steps: dict[int, Step], asleep: frozenset[int]) -> Place:
        place = super()._choose(steps, frozenset())
        last = self.places[-1].chosen if len(self.places) > 0 else -1
        place.chosen = last if last in steps and self._rng.random() < self._keeps else self._rng.choice(sorted(steps))
        return place


def check_sound(world: World, expected: Sequence[tuple[int, int]]) -> None:
    """The head has these rows, every retained snapshot is readable with all its files, and nothing is found."""
    table = world.table()
    assert table.metadata.current_snapshot_id is not None
    assert ids_at(table, table.metadata.current_snapshot_id) == sorted(expected)
    assert world.named() <= world.files(), "a file that a snapshot names is gone"
    for snapshot in table.snapshots:
        ids_at(table, snapshot.snapshot_id)
    assert check_table(table) == []


def changed(expected: Sequence[tuple[int, int]], act: Act) -> list[tuple[int, int]]:
    """The rows after an append, delete or update has landed."""
    if act is append:
        return [*expected, (20, 1)]
    kept = [row for row in expected if row[0] != 3]
    return [*kept, (103, 0)] if act is update else kept


@pytest.mark.parametrize("version", WRITABLE)
@pytest.mark.parametrize("way", [compact, compact_in_parts])
def test_compaction_beside_expiry_keeps_every_row(version: int, way: Callable[[Table], CompactResult]) -> None:
    for raced in all_orders(start_world(version), [way, expire]):
        check_sound(raced.world, KEPT)
        result = raced.ended[0]
        assert isinstance(result, CompactResult)  # expiry never removes the head, which is what compaction reads
        landed = [group for group in result.groups if group.error is None]
        assert len(landed) >= (1 if way is compact_in_parts else 2)
        assert raced.ended[1] is None


@pytest.mark.parametrize("version", WRITABLE)
def test_compaction_beside_orphan_removal_keeps_every_row_and_its_new_files(version: int) -> None:
    orders = all_orders if LONG else some_orders
    for raced in orders(start_world(version), [compact, remove_orphans], lists=True):
        check_sound(raced.world, KEPT)
        assert isinstance(raced.ended[0], CompactResult)
        assert not raced.world.io.exists(ORPHAN)


@pytest.mark.broken_tables
def test_orphan_removal_that_takes_recent_files_too_breaks_a_compaction_in_some_order() -> None:
    """These tests would notice it: ``allow_recent`` says that no writer is about to commit, and one is."""

    def remove_recent(table: Table) -> None:
        table.refresh()  # others may write files before, which are recent when the plan is made
        table.remove_orphans(older_than=LATER, allow_recent=True, max_share=1.0).execute()

    def is_broken(raced: Raced) -> bool:
        try:
            check_sound(raced.world, KEPT)
        except (AssertionError, NoSuchFile):
            return True
        return False

    assert any(map(is_broken, all_orders(start_world(2), [compact, remove_recent], lists=True)))


@pytest.mark.parametrize("version", WRITABLE)
@pytest.mark.parametrize("act", [append, delete, update])
def test_compaction_beside_a_change_and_expiry_loses_and_resurrects_nothing(version: int, act: Act) -> None:
    """Compaction may find that a file it was about to read was changed and has expired."""
    orders = all_orders if LONG else some_orders
    for raced in orders(start_world(version), [compact, act, expire]):
        check_change(raced, act)


@pytest.mark.parametrize("version", WRITABLE)
@pytest.mark.parametrize("act", [append, delete, update])
def test_compaction_beside_a_change_expiry_and_orphan_removal_loses_and_resurrects_nothing(
    version: int, act: Act
) -> None:
    """Four actions have too many orders: some are chosen by chance."""
    acts, runs = [compact, act, expire, remove_orphans], 300 if LONG else RUNS // 2
    for raced in some_orders(start_world(version), acts, lists=True, runs=runs):
        check_change(raced, act)


@pytest.mark.parametrize("version", WRITABLE)
@pytest.mark.parametrize("acts", [(expire, expire), (expire, remove_orphans), (remove_orphans, remove_orphans)])
def test_cleanups_at_the_same_time_end_without_errors_and_warnings(
    version: int, acts: tuple[Act, Act], caplog: pytest.LogCaptureFixture
) -> None:
    """One met "no file at ...", when the other had deleted a manifest that it was about to read."""
    for raced in some_orders(start_world(version), acts, lists=True, runs=300 if LONG else RUNS):
        check_sound(raced.world, KEPT)
        assert raced.ended == (None, None)
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


def check_change(raced: Raced, act: Act) -> None:
    """The change, which is the second action, has landed with its rows, or has not."""
    did = not isinstance(raced.ended[1], Exception)
    check_sound(raced.world, changed(KEPT, act) if did else KEPT)

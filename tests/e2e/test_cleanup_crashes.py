"""Expiry and orphan removal struck at every call of storage and catalog: no live file goes, the next run ends it.

Each test strikes at call 1, 2, 3 ... until a run meets no strike, as in ``test_crashes``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from icefloe.env import SYSTEM
from icefloe.maintenance.deletions import journal_folder
from icefloe.maintenance.reachable import reachable_files
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from icefloe.testing.crash_io import Kind, Strike
from icefloe.testing.intercepted_io import Effect
from support.crashes import (
    FOREIGN_FILE,
    LOCATION,
    LONG,
    MANY,
    NAME,
    STRIKES,
    VERSIONS,
    Act,
    Ended,
    World,
    check_goes_on,
    run,
    start_world,
    with_rival,
)
from support.selection import every

pytestmark = pytest.mark.slow

LATER = "2100-01-01T00:00:00+00:00"
DAY_MS = 86_400_000
CLEANUP_STRIKES = [*STRIKES, (Kind.INTERRUPT, Effect.NONE)]
CASES = every(1 if LONG else 5, [(version, *strike) for version, strike in product(VERSIONS, CLEANUP_STRIKES)])
ORPHANS = ("data/dead.parquet", "metadata/dead.avro", "metadata/00009-dead.metadata.json", "data/x=1/dead.parquet")


def later(table: Table) -> Table:
    """The table as a process sees it whose clock is ten days ahead."""
    return Table(table._pointer, replace(table._env, now_ms=lambda: SYSTEM.now_ms() + 10 * DAY_MS))


def expire(table: Table) -> None:
    result = later(table).expire(older_than=LATER).execute()
    assert result.problem is None or "struck" in result.problem


def remove_orphans(table: Table) -> None:
    later(table).remove_orphans(max_share=1.0).execute()


@cache
def world_of(version: int, *, orphans: bool) -> World:
    world = start_world(version).copy()
    world.io.delete([FOREIGN_FILE])
    if orphans:
        for name in ORPHANS:
            world.io.write_new(f"{LOCATION}/{name}", b"")
    return world


def rows_of(world: World) -> dict[str, list[tuple[int, int]]]:
    return world.view()[0]


def unreferenced(world: World) -> set[str]:
    """Files that no metadata names, besides the journals."""
    named = set(reachable_files(world.table()._pointer.load())["location"].to_pylist())
    assert named <= world.files(), "a file that a snapshot names is gone"
    return {file for file in world.files() - named if not file.startswith(journal_folder(LOCATION))}


def strikes(start: World, act: Act, kind: Kind, effect: Effect, *, rival: World | None = None) -> list[Ended]:
    """The ends of runs that were struck at each call in turn."""
    struck: list[Ended] = []
    for call in range(1, MANY):
        ended = run(start, act, Strike(at=call, kind=kind, effect=effect), rival=rival)
        if ended.hit is None:
            assert ended.error is None
            return struck
        struck.append(ended)
    raise AssertionError("too many calls")


def changed(start: World, ended: list[Ended]) -> Iterator[Ended]:
    """The runs that did something; after the others the world is as it was, and a next run is a first one."""
    for end in ended:
        same_pointer = end.world.catalog.load(NAME) == start.catalog.load(NAME)
        if not same_pointer or end.world.io._files != start.io._files:
            yield end


@pytest.mark.parametrize(("version", "kind", "effect"), CASES)
def test_a_struck_expiry_loses_nothing_and_the_next_one_ends_it(version, kind, effect):
    start = world_of(version, orphans=False)
    rows = rows_of(start)
    whole = run(start, expire).world
    assert unreferenced(whole) == set()
    ended = strikes(start, expire, kind, effect)
    assert len(ended) > (0 if kind is Kind.UNKNOWN else 2)
    for end in changed(start, ended):
        unreferenced(end.world)  # no live file is gone
        assert rows_of(end.world) == rows
        expire(end.world.table())
        assert rows_of(end.world) == rows
        assert len(end.world.table().snapshots) == len(whole.table().snapshots)
        left = {file for file in unreferenced(end.world) if not file.endswith(".metadata.json")}
        assert left == set(), "the second run left files"
        remove_orphans(end.world.table())
        assert unreferenced(end.world) == set()
        assert check_table(end.world.table()) == []
    check_goes_on(ended[-1].world)


@pytest.mark.parametrize(("version", "kind", "effect"), CASES)
def test_a_struck_orphan_removal_loses_nothing_and_the_next_one_ends_it(version, kind, effect):
    start = world_of(version, orphans=True)
    rows = rows_of(start)
    assert len(unreferenced(start)) == len(ORPHANS)
    ended = strikes(start, remove_orphans, kind, effect)
    assert len(ended) > (-1 if kind is Kind.UNKNOWN else 2)  # it swaps nothing
    for end in changed(start, ended):
        assert unreferenced(end.world) <= unreferenced(start)
        assert rows_of(end.world) == rows
        remove_orphans(end.world.table())
        assert unreferenced(end.world) == set()
        assert rows_of(end.world) == rows
        assert check_table(end.world.table()) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("kind", "effect"), [(Kind.ERROR, Effect.NONE), (Kind.DEATH, Effect.ALL)])
def test_a_struck_expiry_that_lost_a_race_keeps_the_rows_of_the_other_commit(version, kind, effect):
    start = world_of(version, orphans=False)
    rival = with_rival(start)
    rows = {True: rows_of(rival), False: rows_of(start)}
    for end in changed(start, strikes(start, expire, kind, effect, rival=rival)):
        unreferenced(end.world)
        assert rows_of(end.world) == rows[end.rival_came]
        expire(end.world.table())
        assert rows_of(end.world) == rows[end.rival_came]
        remove_orphans(end.world.table())
        assert unreferenced(end.world) == set()


def test_a_journal_is_durable_before_the_pointer_moves_and_before_any_file_goes():
    """Else a run that dies in between leaves files that nothing names."""
    start = world_of(2, orphans=False)
    seen = 0
    for end in strikes(start, expire, Kind.DEATH, Effect.NONE):
        if end.hit == "delete" or end.world.catalog.load(NAME) != start.catalog.load(NAME):
            seen += 1
            assert any(file.startswith(journal_folder(LOCATION)) for file in end.world.files())
    assert seen > 0

"""Expiry, orphan removal and erasure struck at every call of storage and catalog: the next run ends the work.

No live file goes, and no rows but those to erase. Each test strikes at call 1, 2, 3 ... until a run meets no strike, as
in ``test_crashes``. An erasure makes hundreds of calls: without ``ICEFLOE_LONG=1`` each case strikes at some of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

from icefloe.env import SYSTEM
from icefloe.maintenance.deletions import journal_folder
from icefloe.maintenance.reachable import reachable_files
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from icefloe.testing.crash_io import Kind, Strike
from icefloe.testing.intercepted_io import Effect
from support.crashes import (
    ENV,
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
    ids_at,
    rows,
    run,
    start_world,
    with_rival,
)
from support.memory_files import files_in

pytestmark = pytest.mark.slow

LATER = "2100-01-01T00:00:00+00:00"
DAY_MS = 86_400_000
CLEANUP_STRIKES = [*STRIKES, (Kind.INTERRUPT, Effect.NONE)]
CASES = [(version, *strike) for version, strike in product(VERSIONS, CLEANUP_STRIKES)]
ERASE_MODES = ("copy-on-write", "merge-on-read")
ERASE_CASES = [
    (version, mode, *strike)
    for version, strike, mode in product(VERSIONS, CLEANUP_STRIKES, ERASE_MODES)
    if version > 1 or mode == "copy-on-write"  # version 1 has no delete files
]
SECRET = 0x5EC2_E75E_C2E7_5EC2  # an id whose eight bytes are in no other file
SECRET_BYTES = SECRET.to_bytes(8, "little")
UNCOMPRESSED = {"write.parquet.compression-codec": "uncompressed"}
ORPHANS = ("data/dead.parquet", "metadata/dead.avro", "metadata/00009-dead.metadata.json", "data/x=1/dead.parquet")


def later(table: Table) -> Table:
    """The table as a process sees it whose clock is ten days ahead."""
    return Table(pointer_of(table), replace(ENV, now_ms=lambda: SYSTEM.now_ms() + 10 * DAY_MS))


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
    named = set(reachable_files(pointer_of(world.table()).load())["location"].to_pylist())
    assert named <= world.files(), "a file that a snapshot names is gone"
    return {file for file in world.files() - named if not file.startswith(journal_folder(LOCATION))}


def strikes(
    start: World,
    act: Act,
    kind: Kind,
    effect: Effect,
    *,
    rival: World | None = None,
    calls: Iterable[int] = range(1, MANY),
) -> list[Ended]:
    """The ends of runs that were struck at each of these calls in turn."""
    struck: list[Ended] = []
    for call in calls:
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
        if not same_pointer or files_in(end.world.io) != files_in(start.io):
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
    ended = strikes(start, expire, kind, effect, rival=rival)
    assert len(ended) > 2
    for end in changed(start, ended):
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


def erase(table: Table) -> None:
    table.erase(f"id = {SECRET}").execute()


@cache
def world_with_secret(version: int, mode: str) -> World:
    """A table whose row to erase is in files of two branches, in an updated copy, and in a file that was removed."""
    world = world_of(version, orphans=False).copy()
    table = world.table()
    table.set_properties({**UNCOMPRESSED, "write.delete.mode": mode, "write.update.mode": mode})
    table.append(rows(20, SECRET))
    table.update({"part": "5"}, where=f"id = {SECRET}")
    table.append(rows(SECRET, 21), branch="side", create_branch=True)
    table.append(rows(SECRET, part=6))
    table.delete("part = 6")
    return world


def files_with_secret(world: World) -> set[str]:
    """The data and delete files in storage that contain the row, whether the table references them or not."""
    found = (info.location for info in world.io.list(f"{LOCATION}/data"))
    return {location for location in found if SECRET_BYTES in world.io.read(location)}


def without_secret(by_ref: dict[str, list[tuple[int, int]]]) -> dict[str, list[tuple[int, int]]]:
    return {ref: [row for row in of_ref if row[0] != SECRET] for ref, of_ref in by_ref.items()}


def erase_calls(version: int, mode: str, kind: Kind, effect: Effect) -> range:
    """The calls of an erasure to strike at: all, or a part of them that is another one for each case."""
    step = 1 if LONG or kind is Kind.UNKNOWN else 11 if effect is Effect.NONE else 5
    return range(1 + zlib.crc32(f"{version} {mode} {kind} {effect}".encode()) % step, MANY, step)


def check_struck_erasure(end: Ended, before: dict[str, list[tuple[int, int]]], snapshots: dict[int, object]) -> None:
    """Each branch has all rows, or all but those to erase; snapshots from before read as they did."""
    unreferenced(end.world)  # no live file is gone
    gone = without_secret(before)
    for ref, found in rows_of(end.world).items():
        assert found in (before[ref], gone[ref])
    table = end.world.table()
    for snapshot in table.snapshots:
        if snapshot.snapshot_id in snapshots:
            assert ids_at(table, snapshot.snapshot_id) == snapshots[snapshot.snapshot_id]


@pytest.mark.parametrize(("version", "mode", "kind", "effect"), ERASE_CASES)
def test_a_struck_erasure_loses_no_other_row_and_the_next_one_leaves_none_in_any_file(version, mode, kind, effect):
    start = world_with_secret(version, mode)
    before, table = rows_of(start), start.table()
    snapshots = {each.snapshot_id: ids_at(table, each.snapshot_id) for each in table.snapshots}
    assert len(files_with_secret(start)) >= 3
    ended = strikes(start, erase, kind, effect, calls=erase_calls(version, mode, kind, effect))
    for end in changed(start, ended):
        check_struck_erasure(end, before, snapshots)
        report = end.world.table().erase(f"id = {SECRET}").execute()
        assert (report.complete, report.remaining, report.blockers) == (True, (), ())
        assert files_with_secret(end.world) == set()
        assert rows_of(end.world) == without_secret(before)
        unreferenced(end.world)
        assert check_table(end.world.table()) == []

"""A relocation struck at every call of storage and catalog: the table is never half moved, and the next run ends it."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

from icefloe.errors import ConflictError
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from icefloe.testing.crash_io import CHANGES, Kind, Strike
from icefloe.testing.intercepted_io import Effect
from support.crashes import (
    FOREIGN_FILE,
    LOCATION,
    LONG,
    MANY,
    NAME,
    STRIKES,
    VERSIONS,
    World,
    run,
    start_world,
    with_rival,
)
from support.memory_files import files_in

pytestmark = pytest.mark.slow

NEW = "memory://archive/t"
CASES = [(version, *strike) for version, strike in product(VERSIONS, STRIKES)]


def relocate(table: Table) -> None:
    table.relocate(NEW).execute()


@cache
def world_of(version: int) -> World:
    world = start_world(version).copy()
    world.io.delete([FOREIGN_FILE])
    return world


def check_moved(world: World, rows: object) -> None:
    """The table is at its new location and needs nothing of the old one."""
    assert world.table().location == NEW
    world.io.delete([info.location for info in list(world.io.list(LOCATION))])
    assert world.view() == rows
    assert check_table(world.table()) == []


@pytest.mark.parametrize(("version", "kind", "effect"), CASES)
def test_a_struck_relocation_changes_nothing_and_the_next_one_ends_it(version, kind, effect):
    start = world_of(version)
    rows, old = start.view(), start.catalog.load(NAME)
    struck = 0
    for call in range(1, MANY):
        among = CHANGES if not LONG else Strike.__dataclass_fields__["among"].default
        ended = run(start, relocate, Strike(at=call, kind=kind, effect=effect, among=among))
        if ended.hit is None:
            assert ended.error is None
            break
        struck += 1
        assert {file: data for file, data in files_in(ended.world.io).items() if file.startswith(LOCATION)} == dict(
            files_in(start.io)
        ), "the old location was changed"
        if ended.world.catalog.load(NAME) == old:
            relocate(ended.world.table())
        check_moved(ended.world, rows)
    else:
        raise AssertionError("too many calls")
    # Files appear by exclusive puts, which are never half done.
    assert struck >= (0 if effect is Effect.HALF else 1 if kind is Kind.UNKNOWN else 3)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_just_before_the_swap_makes_the_relocation_fail(version):
    start = world_of(version)
    rival = with_rival(start)
    ended = run(start, relocate, rival=rival)
    assert isinstance(ended.error, ConflictError)
    assert ended.rival_came
    rows = rival.view()
    assert ended.world.view() == rows
    assert ended.world.table().location == LOCATION
    relocate(ended.world.table())
    check_moved(ended.world, rows)


def test_an_interrupt_during_the_swap_is_passed_on():
    start = world_of(2)
    ended = run(start, relocate, Strike(at=1, kind=Kind.INTERRUPTED_SWAP, effect=Effect.ALL))
    assert isinstance(ended.error, KeyboardInterrupt)
    check_moved(ended.world, start.view())

"""Processes that are struck at every call of storage and catalog: all or nothing, and nothing acknowledged is lost.

Each test strikes at call 1, 2, 3 ... until a run meets no strike. ``ICEFLOE_LONG=1`` (``make long``) takes every
operation, every format version and every kind of strike; otherwise it is those that matter most. Of these ``make test``
runs every eighth, and ``make thorough`` the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product

import pytest

from icefloe.errors import CommitStateUnknown
from icefloe.model.entries import ContentType, Status
from icefloe.table.held_table import pointer_of
from icefloe.testing.check import check_table
from icefloe.testing.crash_io import Kind, Strike
from icefloe.testing.intercepted_io import Effect
from icefloe.tree.root import read_root
from support.crashes import (
    ACTS,
    FIRST,
    LONG,
    MANY,
    NAME,
    STRIKES,
    VERSIONS,
    Expected,
    World,
    check_goes_on,
    exists_in,
    landed,
    run,
    start_world,
    with_rival,
)

pytestmark = pytest.mark.slow

ALL_STRIKES = [
    (kind, effect) for kind in Kind for effect in Effect if len(Strike(at=1, kind=kind, effect=effect).verbs) > 0
]
WRITTEN = VERSIONS if LONG else (2, 4)
NEWEST = ["upsert by equality", "add files"]
# Commits of V4 that move rows of the tree besides: fewer kinds of strikes see all there is, as files are all alike.
DEEP_STRIKES = ALL_STRIKES if LONG else [(Kind.ERROR, Effect.NONE), (Kind.DEATH, Effect.HALF)]
DEEP_ACTS = list(ACTS) if LONG else ["append", "delete"]


def cases(names: Iterable[str]) -> list[tuple[int, str]]:
    return [(version, name) for version in WRITTEN for name in names if exists_in(name, version)]


def each_struck(names: Iterable[str], strikes: Iterable[tuple[Kind, Effect]]) -> list[tuple[int, str, Kind, Effect]]:
    """Version, operation, kind and effect."""
    return [(*case, *strike) for case, strike in product(cases(names), strikes)]


@pytest.mark.parametrize(
    ("version", "name", "kind", "effect"),
    each_struck(ACTS if LONG else [*FIRST, *NEWEST], ALL_STRIKES if LONG else STRIKES),
)
def test_a_strike_at_any_call_leaves_all_or_nothing(version, name, kind, effect):
    strike_everywhere(version, name, kind, effect, rival=False)


@pytest.mark.parametrize(
    ("version", "name", "kind", "effect"),
    each_struck(
        ACTS if LONG else ["append", "delete"],
        ALL_STRIKES if LONG else [(Kind.ERROR, Effect.NONE), (Kind.DEATH, Effect.NONE)],
    ),
)
def test_a_strike_at_any_call_of_an_operation_that_lost_a_race_leaves_all_or_nothing(version, name, kind, effect):
    strike_everywhere(version, name, kind, effect, rival=True)


@pytest.mark.parametrize(("name", "kind", "effect"), [(n, *s) for n, s in product(DEEP_ACTS, DEEP_STRIKES)])
def test_a_strike_at_any_call_of_a_commit_that_moves_rows_of_the_tree_leaves_all_or_nothing(name, kind, effect):
    strike_everywhere(4, name, kind, effect, rival=False, deep=True)


@pytest.mark.parametrize(("kind", "effect"), ALL_STRIKES if LONG else [(Kind.ERROR, Effect.NONE)])
@pytest.mark.parametrize("name", DEEP_ACTS)
def test_a_strike_at_any_call_of_such_a_commit_that_lost_a_race_leaves_all_or_nothing(name, kind, effect):
    strike_everywhere(4, name, kind, effect, rival=True, deep=True)


def test_the_commits_that_are_struck_move_rows_of_the_tree():
    """Else the two tests above would prove nothing."""
    world = start_world(4, deep=True)
    before = set(leaves_of(world))
    for name, vectors in (("append", 0), ("delete", 1)):
        ended = run(world, ACTS[name])
        new = [status for leaf, status in leaves_of(ended.world).items() if leaf not in before]
        assert Status.EXISTING in new
        assert before - set(leaves_of(ended.world)) == before  # written again
        written = [file for file in ended.world.named() - world.named() if "/metadata/" in file and "puffin" in file]
        assert len(written) == vectors
        assert check_table(ended.world.table()) == []


def leaves_of(world: World) -> dict[str, int]:
    """The data leaves of the head, and their status."""
    base = pointer_of(world.table()).load()
    rows = read_root(base.store, base.metadata.current_snapshot).rows(ContentType.DATA_MANIFEST)
    return dict(zip(rows["location"].to_pylist(), rows["status"].to_pylist(), strict=True))


@cache
def expected_of(version: int, name: str, *, rival: bool = False, deep: bool = False) -> Expected:
    world = start_world(version, deep=deep)
    return Expected(world, ACTS[name], rival=with_rival(world) if rival else None)


def strike_everywhere(version: int, name: str, kind: Kind, effect: Effect, *, rival: bool, deep: bool = False) -> None:
    world, act = start_world(version, deep=deep), ACTS[name]
    other = with_rival(world) if rival else None
    expected = expected_of(version, name, rival=rival, deep=deep)
    for at in range(1, MANY):
        ended = run(world, act, Strike(at=at, kind=kind, effect=effect), rival=other)
        expected.check(ended)
        if LONG or at == 1 or not expected.unchanged(ended).is_still(ended.world):
            check_goes_on(ended.world)
        if ended.hit is None:
            break
    else:
        pytest.fail(f"still struck after {MANY} calls")
    assert ended.error is None


UNKNOWN_OUTCOMES = [
    (*case, kind, landing)
    for case in [
        *((*case, False) for case in cases(ACTS if LONG else [*FIRST, "transaction", "schema"])),
        *((4, name, True) for name in (ACTS if LONG else [])),
    ]
    for kind in (Kind.UNKNOWN, Kind.INTERRUPTED_SWAP, Kind.INTERRUPT)
    for landing in ("landed", "lost", "late")
]


@pytest.mark.parametrize(("version", "name", "deep", "kind", "landing"), UNKNOWN_OUTCOMES)
def test_after_an_unknown_outcome_nothing_is_deleted_and_a_careful_repetition_is_no_second_one(
    version, name, deep, kind, landing
):
    world, act = start_world(version, deep=deep), ACTS[name]
    effect = Effect.ALL if landing == "landed" else Effect.NONE
    ended = run(world, act, Strike(at=1, kind=kind, effect=effect, among=frozenset({"swap"})))
    assert ended.hit == "swap"
    if landing == "late":
        ended.world.catalog.swap(NAME, *ended.swaps[0])
    if (kind, landing) == (Kind.UNKNOWN, "landed"):
        assert ended.error is None
    else:
        assert isinstance(ended.error, CommitStateUnknown if kind is Kind.UNKNOWN else KeyboardInterrupt)
        assert ended.deleted == ()
        assert landed(ended) == (landing != "lost")
        if landing == "lost":
            act(ended.world.table())
    assert ended.world.named() <= ended.world.files()
    assert ended.world.view() == expected_of(version, name, deep=deep).whole
    check_goes_on(ended.world)

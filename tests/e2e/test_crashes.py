"""Processes that are struck at every call of storage and catalog: all or nothing, and nothing acknowledged is lost.

Each test strikes at call 1, 2, 3 ... until a run meets no strike. ``ICEFLOE_LONG=1`` (``make long``) takes every
operation, every format version and every kind of strike; otherwise it is those that matter most.
"""

from __future__ import annotations

from functools import cache

import pytest

from crashes import (
    ACTS,
    FIRST,
    LONG,
    MANY,
    NAME,
    VERSIONS,
    Expected,
    check_goes_on,
    landed,
    run,
    start_world,
    with_rival,
)
from icefloe.errors import CommitStateUnknown
from icefloe.testing.crash_io import Effect, Kind, Strike

STRIKES = [
    (Kind.ERROR, Effect.NONE),
    (Kind.ERROR, Effect.HALF),
    (Kind.DEATH, Effect.NONE),
    (Kind.DEATH, Effect.HALF),
    (Kind.DEATH, Effect.ALL),
    (Kind.UNKNOWN, Effect.NONE),
    (Kind.UNKNOWN, Effect.ALL),
]
ALL_STRIKES = [
    (kind, effect) for kind in Kind for effect in Effect if len(Strike(at=1, kind=kind, effect=effect).verbs) > 0
]
WRITTEN = VERSIONS if LONG else (2, 4)


@pytest.mark.parametrize(("kind", "effect"), ALL_STRIKES if LONG else STRIKES)
@pytest.mark.parametrize("name", ACTS if LONG else FIRST)
@pytest.mark.parametrize("version", WRITTEN)
def test_a_strike_at_any_call_leaves_all_or_nothing(version, name, kind, effect):
    strike_everywhere(version, name, kind, effect, rival=False)


@pytest.mark.parametrize(
    ("kind", "effect"), ALL_STRIKES if LONG else [(Kind.ERROR, Effect.NONE), (Kind.DEATH, Effect.NONE)]
)
@pytest.mark.parametrize("name", ACTS if LONG else ["append", "delete"])
@pytest.mark.parametrize("version", WRITTEN)
def test_a_strike_at_any_call_of_an_operation_that_lost_a_race_leaves_all_or_nothing(version, name, kind, effect):
    strike_everywhere(version, name, kind, effect, rival=True)


@cache
def expected_of(version: int, name: str, *, rival: bool = False) -> Expected:
    world = start_world(version)
    return Expected(world, ACTS[name], rival=with_rival(world) if rival else None)


def strike_everywhere(version: int, name: str, kind: Kind, effect: Effect, *, rival: bool) -> None:
    world, act = start_world(version), ACTS[name]
    other = with_rival(world) if rival else None
    expected = expected_of(version, name, rival=rival)
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


@pytest.mark.parametrize("landing", ["landed", "lost", "late"])
@pytest.mark.parametrize("kind", [Kind.UNKNOWN, Kind.INTERRUPTED_SWAP, Kind.INTERRUPT])
@pytest.mark.parametrize("name", ACTS if LONG else [*FIRST, "transaction", "schema"])
@pytest.mark.parametrize("version", WRITTEN)
def test_after_an_unknown_outcome_nothing_is_deleted_and_a_careful_repetition_is_no_second_one(
    version, name, kind, landing
):
    world, act = start_world(version), ACTS[name]
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
    assert ended.world.view() == expected_of(version, name).whole
    check_goes_on(ended.world)

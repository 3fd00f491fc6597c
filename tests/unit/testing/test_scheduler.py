"""The baton: every order of the places where threads meet, each once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from icefloe.catalogs.catalog import Stale, Swapped
from icefloe.catalogs.memory import MemoryCatalog
from icefloe.testing.scheduler import Baton, BatonPointers, Explored, explore

NAME = ("db", "t")


def explored(scripts: list[str], *, readers: bool) -> list[Explored[object]]:
    """All runs of threads that read ("r") and write ("w") a list; the outcome is the list and what each read saw.

    Without ``readers`` the baton is not told that reading changes nothing.
    """

    def run(baton: Baton) -> object:
        written: list[tuple[int, int]] = []
        seen: dict[tuple[int, int], object] = {}

        def body(who: int) -> Callable[[], None]:
            def steps() -> None:
                for number, step in enumerate(scripts[who]):
                    baton.point(reads=readers and step == "r")
                    if step == "r":
                        seen[(who, number)] = tuple(written)
                    else:
                        written.append((who, number))

            return steps

        baton.run([body(who) for who in range(len(scripts))])
        return tuple(written), tuple(sorted(seen.items()))

    return list(explore(run))


@pytest.mark.parametrize(
    ("scripts", "orders", "outcomes"),
    [
        (["rw", "rw"], 6, 4),
        (["rrw", "rrw"], 20, 6),
        (["rrwrw", "rrwrw"], 252, 54),
        (["rw", "rrw", "rw"], 210, 54),
        (["r", "rr"], 3, 1),
        (["ww", "ww"], 6, 6),
    ],
)
def test_orders_that_differ_only_between_readers_run_once_and_no_outcome_is_missed(scripts, orders, outcomes):
    every, fewer = explored(scripts, readers=False), explored(scripts, readers=True)
    assert len(every) == len({run.choices for run in every}) == orders
    assert len(fewer) == outcomes
    assert {run.outcome for run in fewer} == {run.outcome for run in every}


def test_a_run_is_repeated_by_its_choices():
    log: list[str] = []

    def run(choices: tuple[int, ...]) -> list[str]:
        baton = Baton(choices)

        def body(name: str) -> Callable[[], None]:
            def steps() -> None:
                for step in range(3):
                    baton.point()
                    log.append(f"{name}{step}")

            return steps

        log.clear()
        baton.run([body("a"), body("b")])
        return [*log, str(baton.taken)]

    first = run((1, 0, 1))
    assert run((1, 0, 1, 0, 0, 1)) == first
    assert first[:3] == ["b0", "a0", "b1"]


def test_an_error_of_a_thread_is_raised_when_all_have_ended():
    ended = []
    baton = Baton((0,))

    def fails() -> None:
        baton.point()
        raise KeyError("broken")

    def goes_on() -> None:
        baton.point()
        ended.append(True)

    with pytest.raises(KeyError, match="broken"):
        baton.run([fails, goes_on])
    assert ended == [True]


def test_a_swap_that_others_overtake_is_stale_in_some_order_and_lost_in_none():
    def run(baton: Baton) -> tuple[str, ...]:
        catalog = MemoryCatalog("test")
        catalog.create_namespace("db")
        catalog.create(NAME, "0")
        answers: dict[int, str] = {}

        def body(who: int) -> Callable[[], None]:
            def steps() -> None:
                pointers = BatonPointers(catalog, baton)
                outcome = pointers.swap(NAME, pointers.load(NAME), f"{who + 1}")
                answers[who] = {Swapped: "swapped", Stale: "stale"}[type(outcome)]

            return steps

        baton.run([body(0), body(1)])
        assert catalog.load(NAME) in [f"{who + 1}" for who, answer in answers.items() if answer == "swapped"]
        return answers[0], answers[1]

    outcomes = [found.outcome for found in explore(run)]
    assert set(outcomes) == {("swapped", "swapped"), ("swapped", "stale"), ("stale", "swapped")}

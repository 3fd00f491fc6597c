"""A baton for concurrent code: one thread runs at a time, and threads switch only where they can affect each other.

Writers of a table affect each other only through its catalog, because the files they write have unique names. So only
``load`` and ``swap`` are switch points there; a test of code that deletes files makes calls to storage switch points
too. ``explore`` runs all orders of such steps. Two steps that only read, or that touch different things, give the same
result in both orders: of the orders that differ only in such steps, one runs (dynamic partial-order reduction with
sleep sets, as in model checkers).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from icefloe.catalogs.catalog import Pointers, Swap
from icefloe.catalogs.names import NameLike, dotted, parse_identifier

_T = TypeVar("_T")
Choices = tuple[int, ...]  # numbers of the threads that ran, in order


@dataclass(frozen=True, slots=True)
class Step:
    """What a thread does next: whether it only reads, and what it touches.

    A name that ends in a slash represents all names that begin with it; "" represents all names.

    >>> Step(on="t/a").meets(Step(on="t/b")), Step(on="t/a").meets(Step(reads=True, on="t/"))
    (False, True)
    """

    reads: bool = False
    on: str = ""

    def meets(self, other: Step) -> bool:
        """Whether the order of the two steps can matter."""
        return not (self.reads and other.reads) and (self._covers(other) or other._covers(self))

    def _covers(self, other: Step) -> bool:
        is_many = self.on == "" or self.on.endswith("/")
        return other.on.startswith(self.on) if is_many else other.on == self.on


class Place:
    """A switch point: the next step of each thread that could run, the threads to skip, and the one chosen."""

    def __init__(self, steps: dict[int, Step], asleep: frozenset[int], chosen: int) -> None:
        self.steps = steps
        self.asleep = asleep
        self.chosen = chosen
        self.to_try: set[int] = set()  # threads whose turn here leads to another result
        self.tried: set[int] = set()

    @property
    def step(self) -> Step:
        """The step that was done."""
        return self.steps[self.chosen]

    def open_after(self) -> set[int]:
        """The threads that are still to be tried here, when all runs with the chosen one are done."""
        self.tried.add(self.chosen)
        return self.to_try - self.tried - self.asleep

    def asleep_after(self) -> frozenset[int]:
        """The threads to skip next: their next step was tried before the chosen one and does not meet it."""
        before = (self.asleep | self.tried) - {self.chosen}
        return frozenset(n for n in before if not self.steps[n].meets(self.step))


class Baton:
    """Runs functions in threads, one at a time, in the order of ``choices``; after those, the first one that can run.

    The part of each function before its first switch point runs at the start, in order: it affects no other thread.

    >>> log = []
    >>> baton = Baton((1, 0))
    >>> def writer(name):
    ...     def body():
    ...         for step in ("loads", "swaps"):
    ...             baton.point(reads=step == "loads")
    ...             log.append(f"{name} {step}")
    ...     return body
    >>> baton.run([writer("a"), writer("b")])
    >>> log, baton.taken
    (['b loads', 'a loads', 'a swaps', 'b swaps'], (1, 0, 0, 1))
    """

    def __init__(self, choices: Choices = (), asleep: frozenset[int] = frozenset()) -> None:
        self.repeats_from: int | None = None  # the place from which another run came to the same
        self.places: list[Place] = []
        self._choices = choices
        self._asleep = asleep  # after the choices
        self._runners: dict[int, _Runner] = {}  # by thread
        self._back = threading.Semaphore(0)

    @property
    def taken(self) -> Choices:
        """All choices of the run: the prescribed ones and those made after them."""
        return tuple(place.chosen for place in self.places)

    def point(self, *, reads: bool = False, on: str = "") -> None:
        """Hand over, before a step that only ``reads`` what threads share, or that may change it.

        ``on`` names what the step touches, as in ``Step``: steps on different things do not affect each other. Called
        by the threads of a run; in any other thread nothing happens.
        """
        runner = self._runners.get(threading.get_ident())
        if runner is not None:
            runner.next = Step(reads, on)
            self._back.release()
            runner.turn.acquire()

    def run(self, bodies: Sequence[Callable[[], object]]) -> None:
        """Run the functions to their end, then raise the first error, in the order of the functions."""
        runners = [_Runner(body, self._runners, self._back) for body in bodies]
        for runner in runners:
            runner.start()
            self._back.acquire()
        asleep = self._asleep if len(self._choices) == 0 else frozenset[int]()
        while len(running := {n: runner for n, runner in enumerate(runners) if not runner.ended}) > 0:
            place = self._choose({n: runner.next for n, runner in running.items()}, asleep)
            self.places.append(place)
            running[place.chosen].turn.release()
            self._back.acquire()
            asleep = self._asleep if len(self.places) == len(self._choices) else place.asleep_after()
        for runner in runners:
            runner.join()
        for runner in runners:
            if runner.error is not None:
                raise runner.error

    def _choose(self, steps: dict[int, Step], asleep: frozenset[int]) -> Place:
        number = len(self.places)
        if number < len(self._choices):
            return Place(steps, asleep, self._choices[number])
        asleep = asleep & steps.keys()
        awake = [n for n in steps if n not in asleep]
        if len(awake) == 0 and self.repeats_from is None:
            self.repeats_from = number
        return Place(steps, asleep, awake[0] if len(awake) > 0 else min(steps))


class _Runner(threading.Thread):
    """A thread that waits for its turn at each switch point, and signals when it has ended."""

    def __init__(self, body: Callable[[], object], runners: dict[int, _Runner], back: threading.Semaphore) -> None:
        super().__init__(daemon=True)
        self.turn = threading.Semaphore(0)
        self.next = Step()
        self.ended = False
        self.error: BaseException | None = None
        self._body = body
        self._runners = runners
        self._back = back

    def run(self) -> None:
        self._runners[threading.get_ident()] = self
        try:
            self._body()
        except BaseException as error:
            self.error = error
        finally:
            self.ended = True
            del self._runners[threading.get_ident()]
            self._back.release()


class BatonPointers:
    """The pointers of a catalog; each call is a switch point."""

    def __init__(self, inner: Pointers, baton: Baton) -> None:
        self._inner = inner
        self._baton = baton

    def load(self, identifier: NameLike) -> str:
        """The table's metadata location."""
        self._baton.point(reads=True, on=dotted(parse_identifier(identifier)))
        return self._inner.load(identifier)

    def swap(self, identifier: NameLike, expected: str, new: str) -> Swap:
        """Move the pointer."""
        self._baton.point(on=dotted(parse_identifier(identifier)))
        return self._inner.swap(identifier, expected, new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored(Generic[_T]):
    """One run: its choices, by which it can be run again, and what it came to."""

    choices: Choices
    outcome: _T


def explore(run: Callable[[Baton], _T]) -> Iterator[Explored[_T]]:
    """Run all interleavings of what ``run`` does with a baton, each once; every call of ``run`` must use new state."""
    places: list[Place] = []  # of the last run; the places up to the choice that differs stay for the next one
    choices: Choices = ()
    asleep: frozenset[int] = frozenset()
    while True:
        baton = Baton(choices, asleep)
        outcome = run(baton)
        if baton.repeats_from is None:
            yield Explored(choices=baton.taken, outcome=outcome)
        for place, again in zip(places, baton.places, strict=False):
            place.steps = again.steps  # new files have other names than in the last run
        places.extend(baton.places[len(places) : baton.repeats_from])
        _mark_races(places)
        while len(places) > 0 and len(places[-1].open_after()) == 0:
            places.pop()
        if len(places) == 0:
            return
        places[-1].chosen = min(places[-1].open_after())
        choices, asleep = tuple(place.chosen for place in places), places[-1].asleep_after()


def _mark_races(places: Sequence[Place]) -> None:
    """Where two steps that meet could come in the other order, let a thread be tried that leads to it."""
    order = _Order(places)
    for second in range(len(places)):
        for first in order.races[second]:
            known = places[first].to_try | places[first].tried | {places[first].chosen}
            threads = order.beginnings(first, second)
            if known.isdisjoint(threads):
                places[first].to_try.add(threads[0])


class _Order:
    """Which steps of a run must come before others, in every order of the steps that do not meet."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.races: list[list[int]] = []  # for each step, those of other threads that it could have come before
        self._threads = [place.chosen for place in places]
        self._clocks: list[dict[int, int]] = []  # for each step, the number of steps of each thread up to it
        last: dict[int, dict[int, int]] = {}
        for number, place in enumerate(places):
            clock, races = dict(last.get(place.chosen, {})), []
            for earlier in reversed(range(number)):
                if self._threads[earlier] == place.chosen or not places[earlier].step.meets(place.step):
                    continue
                if clock.get(self._threads[earlier], 0) < self._count(earlier):
                    races.append(earlier)
                    for thread, count in self._clocks[earlier].items():
                        clock[thread] = max(clock.get(thread, 0), count)
            clock[place.chosen] = clock.get(place.chosen, 0) + 1
            last[place.chosen] = clock
            self._clocks.append(clock)
            self.races.append(races)

    def _count(self, number: int) -> int:
        return self._clocks[number][self._threads[number]]

    def _is_before(self, first: int, second: int) -> bool:
        return self._clocks[second].get(self._threads[first], 0) >= self._count(first)

    def beginnings(self, first: int, second: int) -> list[int]:
        """The threads that can be next instead of ``first``, so that ``second`` comes before it."""
        others = [n for n in range(first + 1, second) if not self._is_before(first, n)]
        steps = [*others, second]
        return [
            self._threads[n] for place, n in enumerate(steps) if not any(self._is_before(m, n) for m in steps[:place])
        ]

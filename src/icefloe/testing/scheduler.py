"""A baton for concurrent code: one thread runs at a time, and threads switch only where they can affect each other.

Writers of a table affect each other only through its catalog, because the files they write have unique names. So only
``load`` and ``swap`` are switch points. ``explore`` runs all orders of switch points, by replaying choices and
branching at each of them. Orders that differ only in which of two readers was first are equivalent and run once (sleep
sets, as in model checkers).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from icefloe.catalogs.catalog import Pointers, Swap
from icefloe.catalogs.names import NameLike

_T = TypeVar("_T")
Choices = tuple[int, ...]  # numbers of the threads that ran, in order


@dataclass(frozen=True, slots=True)
class _Place:
    """A switch point: the threads that could run and whether they only read, those to skip, and the one chosen."""

    readers: dict[int, bool]
    asleep: frozenset[int]
    chosen: int

    def asleep_after(self, chosen: int, besides: frozenset[int]) -> frozenset[int]:
        """The threads to skip next: their next step was tried before this one and does not depend on it."""
        return frozenset(n for n in self.asleep | besides if n != chosen and self.readers[n] and self.readers[chosen])


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
        self.is_repeat = False  # whether another run with other choices came to the same
        self._choices = choices
        self._asleep = asleep  # after the choices
        self._places: list[_Place] = []
        self._runners: dict[int, _Runner] = {}  # by thread
        self._back = threading.Semaphore(0)

    @property
    def taken(self) -> Choices:
        """All choices of the run: the prescribed ones and those made after them."""
        return tuple(place.chosen for place in self._places)

    def branches(self) -> Iterator[tuple[Choices, frozenset[int]]]:
        """The runs that begin like this one and differ at a choice after the prescribed ones."""
        for number, place in enumerate(self._places[len(self._choices) :], len(self._choices)):
            tried = frozenset({place.chosen})
            for other in place.readers.keys() - place.asleep - tried:
                yield (*self.taken[:number], other), place.asleep_after(other, tried)
                tried |= {other}

    def point(self, *, reads: bool = False) -> None:
        """Hand over, before a step that only ``reads`` what threads share, or that may change it.

        Called by the threads of a run; in any other thread nothing happens.
        """
        runner = self._runners.get(threading.get_ident())
        if runner is not None:
            runner.reads = reads
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
            place = self._choose({n: runner.reads for n, runner in running.items()}, asleep)
            self._places.append(place)
            running[place.chosen].turn.release()
            self._back.acquire()
            is_last_choice = len(self._places) == len(self._choices)
            asleep = self._asleep if is_last_choice else place.asleep_after(place.chosen, frozenset())
        for runner in runners:
            runner.join()
        for runner in runners:
            if runner.error is not None:
                raise runner.error

    def _choose(self, readers: dict[int, bool], asleep: frozenset[int]) -> _Place:
        number = len(self._places)
        if number < len(self._choices):
            return _Place(readers, asleep, self._choices[number])
        asleep = asleep & readers.keys()
        awake = [n for n in readers if n not in asleep]
        if len(awake) == 0:
            self.is_repeat = True
        return _Place(readers, asleep, awake[0] if len(awake) > 0 else min(readers))


class _Runner(threading.Thread):
    """A thread that waits for its turn at each switch point, and signals when it has ended."""

    def __init__(self, body: Callable[[], object], runners: dict[int, _Runner], back: threading.Semaphore) -> None:
        super().__init__(daemon=True)
        self.turn = threading.Semaphore(0)
        self.reads = False
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
        self._baton.point(reads=True)
        return self._inner.load(identifier)

    def swap(self, identifier: NameLike, expected: str, new: str) -> Swap:
        """Move the pointer."""
        self._baton.point()
        return self._inner.swap(identifier, expected, new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored(Generic[_T]):
    """One run: its choices, by which it can be run again, and what it came to."""

    choices: Choices
    outcome: _T


def explore(run: Callable[[Baton], _T]) -> Iterator[Explored[_T]]:
    """Run all interleavings of what ``run`` does with a baton, each once; every call of ``run`` must use new state."""
    waiting: list[tuple[Choices, frozenset[int]]] = [((), frozenset())]
    while len(waiting) > 0:
        choices, asleep = waiting.pop()
        baton = Baton(choices, asleep)
        outcome = run(baton)
        if not baton.is_repeat:
            yield Explored(choices=baton.taken, outcome=outcome)
        waiting.extend(baton.branches())

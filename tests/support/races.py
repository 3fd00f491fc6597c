"""Actions on one table with real files, in any order of their calls to storage and catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from icefloe.testing.crash_io import CHANGES, CrashFileIO, CrashPointers, Fuse
from icefloe.testing.scheduler import Baton
from support.crashes import Act, World

_T = TypeVar("_T")
_WRITES = frozenset({"write_new", "put_if_absent", "output", "sync"})


class Switches(Fuse):
    """Makes the calls of an action switch points where they can meet those of another one.

    New files have unique names, so that a write meets only a listing: without one, writes are no switch points.
    """

    def __init__(self, baton: Baton, *, lists: bool) -> None:
        super().__init__()
        self._baton = baton
        self._lists = lists

    def call(self, verb: str, where: str, effect: Callable[[], _T], *, half: Callable[[], object] | None = None) -> _T:
        """Hand over, then do the call."""
        if self._lists or verb not in _WRITES:
            self._baton.point(reads=verb not in CHANGES)
        return effect()


def race(start: World, acts: Sequence[Act], baton: Baton, *, lists: bool = False) -> World:
    """Run actions on a copy of a world, each as a process of its own, in the order of the baton."""
    world = start.copy()

    def body(act: Act) -> Callable[[], object]:
        switches = Switches(baton, lists=lists)
        return lambda: act(world.table(CrashFileIO(world.io, switches), CrashPointers(world.catalog, switches)))

    baton.run([body(act) for act in acts])
    return world

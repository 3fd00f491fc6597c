"""Actions on one table with real files, in any order of their calls to storage and catalog."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar
from unittest.mock import patch

from icefloe.deletes import equality_files
from icefloe.engines.arrow.read import plan_reader
from icefloe.testing.crash_io import CHANGES, CrashFileIO, CrashPointers, Fuse
from icefloe.testing.scheduler import Baton
from icefloe.tree import store
from support.crashes import Act, World

_T = TypeVar("_T")
_WRITES = frozenset({"write_new", "put_if_absent", "link_if_absent", "output"})


class Switches(Fuse):
    """Switches to the other action at calls that can affect it.

    New files have unique names, so that a write meets only a listing: without one, writes are no switch points. Neither
    is a sync, which changes nothing that others see.
    """

    def __init__(self, baton: Baton, *, lists: bool) -> None:
        super().__init__()
        self._baton = baton
        self._lists = lists
        self._thread = 0

    def begin(self) -> None:
        """All calls come from this thread."""
        self._thread = threading.get_ident()

    def call(self, verb: str, where: str, effect: Callable[[], _T], *, half: Callable[[], object] | None = None) -> _T:
        """Hand over, then do the call."""
        assert threading.get_ident() == self._thread, f"{verb} of {where} in another thread: no switch point"
        if verb != "sync" and (self._lists or verb not in _WRITES):
            self._baton.point(reads=verb not in CHANGES, on=f"{where.rstrip('/')}/" if verb == "list" else where)
        return effect()


class RacedFileIO(CrashFileIO):
    """Deletes one file in each call, so that others may see some files of a deletion gone and others not."""

    def delete(self, locations: Sequence[str]) -> None:
        """Delete files."""
        for location in locations:
            super().delete([location])


def race(start: World, acts: Sequence[Act], baton: Baton, *, lists: bool = False) -> World:
    """Run actions on a copy of a world, each as a process of its own, in the order of the baton."""
    world = start.copy()

    def body(act: Act) -> Callable[[], object]:
        def steps() -> None:
            switches = Switches(baton, lists=lists)
            switches.begin()
            act(world.table(RacedFileIO(world.io, switches), CrashPointers(world.catalog, switches)))

        return steps

    with one_thread_each():
        baton.run([body(act) for act in acts])
    return world


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Files are read one after the other, in the same order each time."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(plan_reader, "MAX_THREADS", 1))
        for module in (equality_files, store):
            stack.enter_context(patch.object(module, "ThreadPoolExecutor", _AtOnce))
        yield


class _AtOnce(Executor):
    """Does what is submitted in the thread that submits it."""

    def __init__(self, *arguments: object, **options: object) -> None:
        pass

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        future: Future[_T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future

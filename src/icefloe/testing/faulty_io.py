"""A FileIO that fails at the Nth call: with an error or by ending the process, before, after or halfway through.

Tests run an operation with N = 1, 2, 3 ... until a run completes without meeting the fault (``hit`` stays False), so
every point where storage can fail is tried. Only calls that change storage or that other writers can observe are
counted by default; reads can be counted too.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from icefloe.errors import CommitStateUnknown, IcefloeError, StorageError
from icefloe.io.file_io import FileIO
from icefloe.testing.intercepted_io import Effect, InterceptedFileIO

_T = TypeVar("_T")

EXCLUSIVE = frozenset({"put_if_absent", "link_if_absent"})
CHANGES = frozenset({"write_new", "sync", "delete"}) | EXCLUSIVE
READS = frozenset({"read", "read_range", "size", "exists", "list", "arrow_path"})
EXIT_CODE = 86  # exit code of a process that its fault ended, for the parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault at the ``at``-th counted call (from 1) of the methods."""

    at: int
    effect: Effect = Effect.NONE
    die: bool = False  # end the process at once, as a kill would, instead of raising
    verbs: frozenset[str] = CHANGES
    code: int = errno.EIO


class FaultyFileIO(InterceptedFileIO):
    """Forwards all calls except the one at which the fault occurs.

    >>> from icefloe.io.memory import MemoryFileIO
    >>> io = FaultyFileIO(MemoryFileIO(), Fault(at=2))
    >>> io.write_new("memory://t/a", b"1")
    >>> io.write_new("memory://t/b", b"2")
    Traceback (most recent call last):
    icefloe.errors.StorageError: fault at call 2: write_new of memory://t/b, effect none
    """

    def __init__(self, inner: FileIO, fault: Fault | None = None) -> None:
        super().__init__(inner)
        self.fault = fault
        self.calls = 0
        self.hit = False

    def _call(
        self, verb: str, location: str, effect: Callable[[], _T], *, half: Callable[[], object] | None = None
    ) -> _T:
        fault = self._turn(verb)
        if fault is None:
            return effect()
        fault.effect.happen(effect, half)
        raise self._failure(fault, verb, location)

    def _turn(self, verb: str) -> Fault | None:
        """Count the call; returns the fault if it occurs at this call."""
        fault = self.fault
        if fault is None or verb not in fault.verbs:
            return None
        self.calls += 1
        if self.calls != fault.at:
            return None
        self.hit = True
        return fault

    def _failure(self, fault: Fault, verb: str, location: str) -> IcefloeError:
        if fault.die:
            os._exit(EXIT_CODE)
        message = f"fault at call {fault.at}: {verb} of {location}, effect {fault.effect}"
        if verb in EXCLUSIVE and fault.effect is Effect.ALL:
            return CommitStateUnknown(message, location=location)
        error = StorageError(message, location=location)
        error.errno = fault.code
        return error

"""Storage and catalog of a process that fails at one call: with an error, an interrupt, or its end.

Tests run an operation with a failure at call 1, 2, 3 ... until a run has none (``Fuse.hit`` stays None), so that every
call is tried. After its end a process does nothing: each later call ends it again, so its handlers clean up nothing.
``power_cut`` then truncates the files that were not synced.
"""

from __future__ import annotations

import io as streams
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

import pyarrow as pa

from icefloe.catalogs.catalog import Pointers, Swap, Unknown
from icefloe.catalogs.names import NameLike, dotted, parse_identifier
from icefloe.errors import CommitStateUnknown, NoSuchFile, StorageError
from icefloe.io.arrow_view import arrow_view
from icefloe.io.file_io import FileIO
from icefloe.testing.intercepted_io import Effect, InterceptedFileIO, Locations

_T = TypeVar("_T")

READS = frozenset({"read", "read_range", "size", "input"})
TORN = frozenset({"write_new", "output", "sync", "delete"})  # verbs of which a part can happen
ATOMIC = frozenset({"put_if_absent", "link_if_absent", "swap"})
CHANGES = TORN | ATOMIC
VERBS = READS | CHANGES | {"exists", "list", "load"}


class Died(BaseException):
    """The process ended here; no handler of the library catches it."""


class Kind(StrEnum):
    """What the caller gets instead of a result."""

    ERROR = "error"
    MISSING = "missing"  # NoSuchFile, from a read
    UNKNOWN = "unknown"  # from the verbs that have such an answer
    INTERRUPTED_SWAP = "interrupted swap"  # an unknown outcome because of an interrupt
    INTERRUPT = "interrupt"  # KeyboardInterrupt
    DEATH = "death"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """A failure at the ``at``-th call (from 1) of the methods ``among`` which it can occur."""

    at: int
    kind: Kind
    effect: Effect = Effect.NONE
    among: frozenset[str] = VERBS

    @property
    def verbs(self) -> frozenset[str]:
        """The methods at which it can occur; a swap or put that raises an error certainly changed nothing."""
        possible = {Effect.NONE: VERBS, Effect.HALF: TORN, Effect.ALL: CHANGES}[self.effect]
        match self.kind:
            case Kind.MISSING:
                possible = READS if self.effect is Effect.NONE else frozenset()
            case Kind.UNKNOWN:
                possible &= ATOMIC
            case Kind.INTERRUPTED_SWAP:
                possible &= {"swap"}
            case Kind.ERROR if self.effect is Effect.ALL:
                possible -= ATOMIC
        return possible & self.among


class Fuse:
    """Counts the calls of one process and fails once; shared by its storage and its catalog.

    >>> from icefloe.io.memory import MemoryFileIO
    >>> fuse = Fuse(Strike(at=2, kind=Kind.ERROR))
    >>> io = CrashFileIO(MemoryFileIO(), fuse)
    >>> io.write_new("memory://t/a", b"1")
    >>> io.read("memory://t/a")
    Traceback (most recent call last):
    icefloe.errors.StorageError: struck at call 2: error in read of memory://t/a
    >>> fuse.hit, io.read("memory://t/a")
    ('read', b'1')
    """

    def __init__(self, strike: Strike | None = None) -> None:
        self.strike = strike
        self.calls = 0
        self.hit: str | None = None  # the verb that was struck
        self.dead = False
        self._lock = threading.Lock()

    def call(self, verb: str, where: str, effect: Callable[[], _T], *, half: Callable[[], object] | None = None) -> _T:
        """Run a call of the process, or fail."""
        strike = self._turn(verb)
        if strike is None:
            return effect()
        strike.effect.happen(effect, half)
        self.dead = strike.kind is Kind.DEATH
        raise self._failure(strike, verb, where)

    def _turn(self, verb: str) -> Strike | None:
        with self._lock:
            if self.dead:
                raise Died(f"{verb} after the end")
            strike = self.strike
            if strike is None or verb not in strike.verbs:
                return None
            self.calls += 1
            if self.calls != strike.at:
                return None
            self.hit = verb
            return strike

    def _failure(self, strike: Strike, verb: str, where: str) -> BaseException:
        message = f"struck at call {self.calls}: {strike.kind} in {verb} of {where}"
        match strike.kind:
            case Kind.ERROR:
                return StorageError(message, location=where)
            case Kind.MISSING:
                return NoSuchFile(message, location=where)
            case Kind.UNKNOWN:
                return CommitStateUnknown(message, location=where)
            case Kind.INTERRUPT | Kind.INTERRUPTED_SWAP:
                return KeyboardInterrupt(message)
            case Kind.DEATH:
                return Died(message)


class CrashPointers:
    """The pointers of a catalog, for a process that may fail."""

    def __init__(self, inner: Pointers, fuse: Fuse) -> None:
        self.inner = inner
        self.fuse = fuse
        self.swaps: list[tuple[str, str]] = []  # what was to be swapped for what

    def load(self, identifier: NameLike) -> str:
        """The table's metadata location."""
        return self.fuse.call("load", _name(identifier), lambda: self.inner.load(identifier))

    def swap(self, identifier: NameLike, expected: str, new: str) -> Swap:
        """Move the pointer; an unknown outcome is a result, not an error."""
        self.swaps.append((expected, new))
        try:
            return self.fuse.call("swap", _name(identifier), lambda: self.inner.swap(identifier, expected, new))
        except CommitStateUnknown as error:
            return Unknown(cause=TimeoutError(str(error)))
        except KeyboardInterrupt as error:
            if self.fuse.strike is not None and self.fuse.strike.kind is Kind.INTERRUPTED_SWAP:
                return Unknown(cause=error)
            raise


class CrashFileIO(InterceptedFileIO):
    """Storage for a process that may fail; reads and writes of Arrow are counted too.

    Arrow's inputs are counted when they are opened (``input``), its outputs when they are closed (``output``).
    """

    def __init__(self, inner: FileIO, fuse: Fuse, *, scheme: str = "memory://") -> None:
        super().__init__(inner)
        self.fuse = fuse
        self.scheme = scheme
        self.unsynced: dict[str, bytes] = {}  # what Arrow wrote and is not synced yet
        self.deleted: Locations = []

    def power_cut(self) -> None:
        """Truncate the files that were not synced to half of their bytes."""
        for location, data in self.unsynced.items():
            self.inner.delete([location])
            self.inner.write_new(location, data[: len(data) // 2])
        self.unsynced.clear()

    def _call(
        self, verb: str, location: str, effect: Callable[[], _T], *, half: Callable[[], object] | None = None
    ) -> _T:
        return self.fuse.call(verb, location, effect, half=half)

    def _ends_the_process(self, error: BaseException) -> bool:
        return isinstance(error, Died)

    def arrow_path(self, location: str) -> tuple[Any, str]:
        """An Arrow file system whose files are counted here, and the path in it."""
        view = arrow_view(self, self.scheme, open_input=self._open_input, open_output=self._open_output)
        return view, location.removeprefix(self.scheme)

    def _sync(self, locations: Sequence[str]) -> None:
        self.inner.sync(locations)
        for location in locations:
            self.unsynced.pop(location, None)

    def _delete(self, locations: Sequence[str]) -> None:
        self.inner.delete(locations)
        self.deleted.extend(locations)
        for location in locations:
            self.unsynced.pop(location, None)

    def _open_input(self, location: str) -> Any:
        return pa.BufferReader(self.fuse.call("input", location, lambda: self.inner.read(location)))

    def _open_output(self, location: str) -> Any:
        return pa.PythonFile(_Output(lambda data: self._written(location, data)), mode="w")

    def _written(self, location: str, data: bytes) -> None:
        half = data[: len(data) // 2]
        self.fuse.call(
            "output", location, lambda: self._store(location, data), half=lambda: self._store(location, half)
        )

    def _store(self, location: str, data: bytes) -> None:
        self.inner.write_new(location, data)
        self.unsynced[location] = data


class _Output(streams.BytesIO):
    """A stream that passes on its bytes once, when it is closed."""

    def __init__(self, done: Callable[[bytes], None]) -> None:
        super().__init__()
        self._done = done

    def close(self) -> None:
        if self.closed:
            return
        data = self.getvalue()
        super().close()
        self._done(data)


def _name(identifier: NameLike) -> str:
    return dotted(parse_identifier(identifier))

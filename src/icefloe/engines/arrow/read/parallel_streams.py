"""Produces several streams in parallel and yields their items in order.

A few threads read files; rows are yielded in the order of the files. The bytes that are read ahead are limited: beyond
the limit only the current stream continues. So memory is bounded, however many and however large the files are.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")
Source: TypeAlias = Callable[[], Iterator[T]]

AHEAD_BYTES = 128 * 1024 * 1024
_LINES_PER_THREAD = 8
_PATIENCE_S = 0.05


def in_order(sources: Iterable[Source[T]], *, threads: int, ahead: int = AHEAD_BYTES) -> Iterator[T]:
    """The items of all sources in order; up to ``threads`` sources are read at the same time.

    ``ahead`` limits the items that are read ahead, by their ``nbytes``; an item without ``nbytes`` counts one.

    >>> list(in_order([lambda: iter("ab"), lambda: iter("c")], threads=2))
    ['a', 'b', 'c']
    """
    if threads <= 1:
        for source in sources:
            yield from source()
        return
    work = _Work(iter(sources), threads, ahead)
    try:
        yield from work.items()
    finally:
        work.end()


class _Line(Generic[T]):
    """The items of one source that are read ahead; ``error`` is the error that ended it."""

    def __init__(self) -> None:
        self.items: deque[tuple[T, int]] = deque()
        self.ended = False
        self.error: BaseException | None = None


class _Work(Generic[T]):
    """Threads that read the sources, and the lines of items that are read ahead, in the order of the sources."""

    def __init__(self, sources: Iterator[Source[T]], threads: int, ahead: int) -> None:
        self._sources: Iterator[Source[T]] | None = sources
        self._ahead = ahead
        self._most_lines = threads * _LINES_PER_THREAD
        self._lines: deque[_Line[T]] = deque()
        self._waiting = 0  # the bytes of all items in the lines
        self._stopped = False
        self._reader = threading.current_thread()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        for _ in range(threads):
            # Not an executor: when the interpreter exits, it joins its threads before they can notice the exit.
            # Not daemons, as threads of a daemon are by default: they are killed at exit, perhaps with the lock held.
            thread = threading.Thread(target=self._produce, name="icefloe-read", daemon=False)
            self._threads.append(thread)
            thread.start()

    def items(self) -> Iterator[T]:
        """All items, in order."""
        while True:
            with self._changed:
                self._reader = threading.current_thread()
                self._changed.wait_for(self._has_news)
                if len(self._lines) == 0:
                    return
                line = self._lines[0]
                if len(line.items) == 0:
                    if line.error is not None:
                        raise line.error
                    self._lines.popleft()
                    self._changed.notify_all()
                    continue
                item, weight = line.items.popleft()
                self._waiting -= weight
                self._changed.notify_all()
            yield item

    def end(self) -> None:
        """Stop the threads after their current items."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _has_news(self) -> bool:
        if len(self._lines) == 0:
            return self._sources is None
        return len(self._lines[0].items) > 0 or self._lines[0].ended

    def _produce(self) -> None:
        while (begun := self._next()) is not None:
            source, line = begun
            try:
                with closing(_items(source)) as items:
                    for item in items:
                        if not self._put(line, item):
                            return
            except BaseException as error:
                line.error = error
            with self._changed:
                line.ended = True
                self._changed.notify_all()

    def _next(self) -> tuple[Source[T], _Line[T]] | None:
        """The next source and its line; none if there are no more sources, or no reader."""
        with self._changed:
            if not self._wait(lambda: self._sources is None or len(self._lines) < self._most_lines):
                return None
            if self._sources is None:
                return None
            line: _Line[T] = _Line()
            try:
                source = next(self._sources, None)
            except BaseException as error:
                source, line.error, line.ended = None, error, True
                self._lines.append(line)
            if source is None:
                self._sources = None
                self._changed.notify_all()
                return None
            self._lines.append(line)
            return source, line

    def _put(self, line: _Line[T], item: T) -> bool:
        """Add an item when there is room; False if there is no reader any more."""
        weight = int(getattr(item, "nbytes", 1))
        with self._changed:
            if not self._wait(lambda: self._has_room(line)):
                return False
            line.items.append((item, weight))
            self._waiting += weight
            self._changed.notify_all()
        return True

    def _has_room(self, line: _Line[T]) -> bool:
        return self._waiting < self._ahead or (line is self._lines[0] and len(line.items) == 0)

    def _wait(self, ready: Callable[[], bool]) -> bool:
        """Wait until ``ready`` is true; False if there is no reader any more, or the program exits."""
        while not self._stopped and self._has_reader():
            if ready():
                return True
            self._changed.wait(_PATIENCE_S)
        return False

    def _has_reader(self) -> bool:
        """Whether the thread that took the last item can take another; daemon threads end with the program."""
        return self._reader.is_alive() and (not self._reader.daemon or threading.main_thread().is_alive())


def _items(source: Source[Any]) -> Generator[Any, None, None]:
    """The items as a generator, which can be closed whatever the source returns."""
    yield from source()

"""Several streams produced at the same time and handed out one after the other.

Files are read by a few threads while their rows leave in the order of the files. What waits to be taken is weighed, in
bytes: when it is enough, only the stream whose turn it is goes on. So memory is bounded, however many files there are
and however large they are.
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
    """The items of every source, source after source, with up to ``threads`` of them being produced.

    ``ahead`` is how much may wait, by the items' ``nbytes``; items without any count one.

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
    """The items of one source that wait; ``error`` says why it ended early."""

    def __init__(self) -> None:
        self.items: deque[tuple[T, int]] = deque()
        self.ended = False
        self.error: BaseException | None = None


class _Work(Generic[T]):
    """Threads that take source after source, and the lines in which their items wait, in the order of the sources."""

    def __init__(self, sources: Iterator[Source[T]], threads: int, ahead: int) -> None:
        self._sources: Iterator[Source[T]] | None = sources
        self._ahead = ahead
        self._most_lines = threads * _LINES_PER_THREAD
        self._lines: deque[_Line[T]] = deque()
        self._waiting = 0  # what lies in the lines
        self._stopped = False
        self._reader = threading.current_thread()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        for _ in range(threads):
            # Not an executor: at the end of the interpreter it waits for its threads before they can learn of the end.
            # Never daemons, which a daemon's threads would be: those are killed at the end, perhaps with the lock held.
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
        """Stop the threads; they finish the item that they are at."""
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
        """The next source and its line; none if there is no more, or nobody to read it."""
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
        """Wait for room; False when nobody reads any more."""
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
        """Wait until something is so; False when nobody reads any more, also because the program is ending."""
        while not self._stopped and self._has_reader():
            if ready():
                return True
            self._changed.wait(_PATIENCE_S)
        return False

    def _has_reader(self) -> bool:
        """Whether the thread that took the last item may take another; daemons end with the program."""
        return self._reader.is_alive() and (not self._reader.daemon or threading.main_thread().is_alive())


def _items(source: Source[Any]) -> Generator[Any, None, None]:
    """The items in a generator, which can be closed whatever the source returns."""
    yield from source()

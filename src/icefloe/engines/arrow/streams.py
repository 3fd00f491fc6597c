"""Several streams produced at the same time and handed out one after the other.

Files are read by a few threads while their rows leave in the order of the files. Each thread runs only a few items
ahead, so memory is bounded by the number of threads and not by the number of files.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from queue import Full, Queue
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Source: TypeAlias = Callable[[], Iterator[T]]

_AHEAD = 4
_PATIENCE_S = 0.05


@dataclass(frozen=True, slots=True)
class _End:
    """The last item of a stream; ``error`` says why it ended early."""

    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class _Running:
    queue: Queue[Any]
    thread: threading.Thread


def in_order(sources: Iterable[Source[T]], *, threads: int) -> Iterator[T]:
    """The items of every source, source after source, with up to ``threads`` of them being produced.

    >>> list(in_order([lambda: iter("ab"), lambda: iter("c")], threads=2))
    ['a', 'b', 'c']
    """
    if threads <= 1:
        for source in sources:
            yield from source()
        return
    waiting = iter(sources)
    stop = threading.Event()
    running: deque[_Running] = deque()
    try:
        running.extend(_start(source, stop) for source in islice(waiting, threads))
        while len(running) > 0:
            yield from _drain(running[0].queue)
            running.popleft()
            running.extend(_start(source, stop) for source in islice(waiting, 1))
    finally:
        stop.set()
        for each in running:
            each.thread.join()


def _start(source: Source[Any], stop: threading.Event) -> _Running:
    # Not an executor: at the end of the interpreter it waits for its threads before they can learn of the end.
    queue: Queue[Any] = Queue(_AHEAD)
    thread = threading.Thread(target=_produce, args=(source, queue, stop), name="icefloe-read")
    thread.start()
    return _Running(queue, thread)


def _produce(source: Source[Any], queue: Queue[Any], stop: threading.Event) -> None:
    end = _End()
    try:
        with closing(_items(source)) as items:
            for item in items:
                if not _put(queue, item, stop):
                    return
    except BaseException as error:
        end = _End(error)
    _put(queue, end, stop)


def _items(source: Source[T]) -> Generator[T, None, None]:
    """The items in a generator, which can be closed whatever the source returns."""
    yield from source()


def _put(queue: Queue[Any], item: object, stop: threading.Event) -> bool:
    """Wait for room; False when nobody reads any more, also because the program is ending."""
    while not stop.is_set() and threading.main_thread().is_alive():
        try:
            queue.put(item, timeout=_PATIENCE_S)
            return True
        except Full:
            continue
    return False


def _drain(queue: Queue[Any]) -> Iterator[Any]:
    while not isinstance(item := queue.get(), _End):
        yield item
    if item.error is not None:
        raise item.error

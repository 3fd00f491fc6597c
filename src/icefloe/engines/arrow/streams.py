"""Several streams produced at the same time and handed out one after the other.

Files are read by a few threads while their rows leave in the order of the files. Each thread runs only a few items
ahead, so memory is bounded by the number of threads and not by the number of files.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
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
    queues: deque[Queue[Any]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="icefloe-read") as pool:
        try:
            for source in _first(waiting, threads):
                queues.append(_start(pool, source, stop))
            while len(queues) > 0:
                yield from _drain(queues.popleft())
                for source in _first(waiting, 1):
                    queues.append(_start(pool, source, stop))
        finally:
            stop.set()


def _first(sources: Iterator[Source[T]], count: int) -> Iterator[Source[T]]:
    for _, source in zip(range(count), sources, strict=False):
        yield source


def _start(pool: ThreadPoolExecutor, source: Source[T], stop: threading.Event) -> Queue[Any]:
    queue: Queue[Any] = Queue(_AHEAD)
    pool.submit(_produce, source, queue, stop)
    return queue


def _produce(source: Source[Any], queue: Queue[Any], stop: threading.Event) -> None:
    end = _End()
    try:
        with closing(source()) as items:  # type: ignore[type-var]
            for item in items:
                if not _put(queue, item, stop):
                    return
    except BaseException as error:
        end = _End(error)
    _put(queue, end, stop)


def _put(queue: Queue[Any], item: object, stop: threading.Event) -> bool:
    """Wait for room; False when nobody reads any more."""
    while not stop.is_set():
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

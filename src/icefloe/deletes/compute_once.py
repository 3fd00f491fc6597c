"""A cache of values that are computed on first use, once for all threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class _Slot(Generic[V]):
    """The cache slot of one value."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.values: list[V] = []  # the value, once computed
        self.size = 0


class ComputeOnce(Generic[K, V]):
    """Computes a value for each key; other threads wait while it is computed. A failed computation is not cached.

    The least recently used values are evicted while the total size, by ``size_of``, is above ``limit``.

    >>> doubled = ComputeOnce(lambda key: key * 2)
    >>> doubled(4), doubled(4)
    (8, 8)
    """

    def __init__(
        self, compute: Callable[[K], V], *, size_of: Callable[[V], int] = lambda value: 0, limit: int = 0
    ) -> None:
        self._compute = compute
        self._size_of = size_of
        self._limit = limit
        self._lock = threading.Lock()
        self._slots: OrderedDict[K, _Slot[V]] = OrderedDict()

    def __call__(self, key: K) -> V:
        """The value of a key."""
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
        with slot.lock:
            if len(slot.values) == 0:
                slot.values.append(self._compute(key))
                self._evict(key, slot)
            return slot.values[0]

    def _evict(self, newest: K, slot: _Slot[V]) -> None:
        with self._lock:
            slot.size = self._size_of(slot.values[0])
            total = sum(other.size for other in self._slots.values())
            for key in list(self._slots):
                if total <= self._limit:
                    break
                if key != newest and self._slots[key].size > 0:
                    total -= self._slots.pop(key).size

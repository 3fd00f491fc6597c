"""A bounded cache that is safe to use from several threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Kept(Generic[K, V]):
    """The values that were used last, up to a number.

    >>> kept = Kept[str, int](1)
    >>> kept.put("a", 1)
    >>> kept.put("b", 2)
    >>> kept.get("a"), kept.get("b")
    (None, 2)
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """A value, if it is kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        """Keep a value, and remove the least recently used one if there are too many."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._limit:
                self._values.popitem(last=False)

    def pop(self, key: K) -> V | None:
        """Remove a value, and return it if it was kept."""
        with self._lock:
            return self._values.pop(key, None)

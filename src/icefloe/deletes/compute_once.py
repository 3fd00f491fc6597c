"""Values that are made when they are first asked for, once each, whichever threads ask."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class _Slot(Generic[V]):
    """The place of one value."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made: list[V] = []  # one value, or none yet
        self.weight = 0


class OnceEach(Generic[K, V]):
    """A value for each key; threads that ask for one that is being made wait for it. What failed is tried again.

    Values that were not asked for lately are let go of while all together weigh more than ``limit``.

    >>> doubled = OnceEach(lambda key: key * 2)
    >>> doubled(4), doubled(4)
    (8, 8)
    """

    def __init__(self, make: Callable[[K], V], *, weigh: Callable[[V], int] = lambda value: 0, limit: int = 0) -> None:
        self._make = make
        self._weigh = weigh
        self._limit = limit
        self._lock = threading.Lock()
        self._slots: OrderedDict[K, _Slot[V]] = OrderedDict()

    def __call__(self, key: K) -> V:
        """The value of a key."""
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
        with slot.lock:
            if len(slot.made) == 0:
                slot.made.append(self._make(key))
                self._make_room(key, slot)
            return slot.made[0]

    def _make_room(self, newest: K, slot: _Slot[V]) -> None:
        with self._lock:
            slot.weight = self._weigh(slot.made[0])
            total = sum(other.weight for other in self._slots.values())
            for key in list(self._slots):
                if total <= self._limit:
                    break
                if key != newest and self._slots[key].weight > 0:
                    total -= self._slots.pop(key).weight

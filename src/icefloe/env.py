"""Clock, randomness and sleep as a value, so that tests can replace them."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

VERSION = "0.1.0"
CREATED_BY = f"icefloe {VERSION}"

_SNAPSHOT_ID_BITS = 63


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Env:
    """The clock, the source of ids and the sleep function of a commit."""

    now_ms: Callable[[], int] = _now_ms
    new_uuid: Callable[[], uuid.UUID] = uuid.uuid4
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random

    def new_snapshot_id(self) -> int:
        """A positive 63-bit id; never 0, which some readers take for "none"."""
        return (self.new_uuid().int >> (128 - _SNAPSHOT_ID_BITS)) or 1


SYSTEM = Env()

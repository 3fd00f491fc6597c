"""Retries after transient faults: exponential backoff with jitter, a few attempts, then the error.

Only for idempotent requests: reads, and writes of unique names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from icefloe.env import SYSTEM, Env

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often and how fast to retry; the pause doubles with every retry up to the longest."""

    attempts: int = 4
    first_pause_s: float = 0.1
    longest_pause_s: float = 2.0

    def pause_s(self, attempt: int, jitter: float) -> float:
        """The pause after the ``attempt``-th failure, from 1; ``jitter`` in [0, 1) spreads callers apart.

        >>> Patience().pause_s(1, 0.0), Patience().pause_s(3, 0.0), Patience().pause_s(60, 0.0)
        (0.05, 0.2, 1.0)
        """
        doublings = min(attempt - 1, 30)
        return float(min(self.first_pause_s * 2**doublings, self.longest_pause_s) * (0.5 + jitter / 2))


DEFAULT_PATIENCE = Patience()


def retried(
    action: Callable[[int], _T],
    *,
    passes: Callable[[Exception], bool],
    patience: Patience = DEFAULT_PATIENCE,
    env: Env = SYSTEM,
) -> _T:
    """The result of ``action``, which gets the attempt number; errors for which ``passes`` is true are retried."""
    attempt = 1
    while True:
        try:
            return action(attempt)
        except Exception as error:
            if attempt >= patience.attempts or not passes(error):
                raise
        env.sleep(patience.pause_s(attempt, env.jitter()))
        attempt += 1

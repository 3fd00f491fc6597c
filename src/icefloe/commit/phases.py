"""The time that a change of rows spends in each of its phases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Phase(StrEnum):
    """A part of the work of a change."""

    PLAN = "plan"  # chooses files by their metadata
    MATCH = "match"  # evaluates the source, and finds rows
    WRITE = "write"  # writes data and delete files
    COMMIT = "commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """Seconds by phase.

    >>> Phases(plan=0.01, write=1.5)
    plan 0.010 s, match 0.000 s, write 1.500 s, commit 0.000 s
    """

    plan: float = 0.0
    match: float = 0.0
    write: float = 0.0
    commit: float = 0.0

    def __repr__(self) -> str:
        return ", ".join(f"{phase} {getattr(self, phase):.3f} s" for phase in Phase)


NO_PHASES = Phases()


class PhaseTimer:
    """Adds up the seconds of phases, and counts the files that planning chose and skipped."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(Phase, 0.0)
        self.files_read = 0
        self.files_skipped = 0

    @contextmanager
    def of(self, phase: Phase) -> Iterator[None]:
        """Measure a block as a part of a phase."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[phase] += time.perf_counter() - started

    def figures(self, *, commit: float) -> dict[str, Any]:
        """The fields of a result that were measured; ``commit`` is the seconds of the commit."""
        phases = Phases(**{str(phase): seconds for phase, seconds in {**self._seconds, Phase.COMMIT: commit}.items()})
        return {"files_read": self.files_read, "files_skipped": self.files_skipped, "phases": phases}

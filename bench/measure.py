"""Clocks and the few statistics that are reported: the median, with the least and the greatest beside it."""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Sample = dict[str, float]
Work = tuple[Callable[[], object], Callable[[], object]]  # what is timed, and what follows it and is not timed


@dataclass(frozen=True, slots=True)
class Clock:
    """Wall time and CPU time (user and system, of this process, its children, and a process given by id)."""

    wall: float
    cpu: float

    @classmethod
    def now(cls, other: int | None = None) -> Clock:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = time.process_time() + children.ru_utime + children.ru_stime
        return cls(time.perf_counter(), cpu + (0.0 if other is None else _cpu_of(other)))

    def until(self, later: Clock) -> Sample:
        """Milliseconds from here to there."""
        return {"wall_ms": (later.wall - self.wall) * 1000, "cpu_ms": (later.cpu - self.cpu) * 1000}


def _cpu_of(process: int) -> float:
    """CPU seconds of another process, from Linux's /proc; 0 where there is none."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return 0.0
    after_name = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def in_turns(works: Mapping[str, Work], runs: int, *, warm_up: int, process: int) -> dict[str, list[Sample]]:
    """Samples by contender, with the CPU time of another process. Contenders take turns, in another order every round.

    What follows the timed work undoes a change, or returns more values of the sample.
    """
    names = list(works)
    samples: dict[str, list[Sample]] = {name: [] for name in names}
    for number in range(-warm_up, runs):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            work, follow = works[name]
            before = Clock.now(process)
            work()
            sample = before.until(Clock.now(process))
            more = follow()
            if isinstance(more, Mapping):
                sample |= more
            if number >= 0:
                samples[name].append({key: round(value, 1) for key, value in sample.items()})
    return samples


def check_same(results: Mapping[str, object], what: str) -> None:
    """RuntimeError if contenders have different results: those are not worth timing."""
    if len({repr(result) for result in results.values()}) > 1:
        raise RuntimeError(f"{what}: the contenders have different results: {results}")


def peak_mb() -> float:
    """The most memory that this process has had; unlike ``ru_maxrss``, without what its parent had when it forked."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    (line,) = (line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def resident_mb(process: int, what: str = "VmRSS") -> float:
    """Resident memory of a process, from Linux's /proc: what it has now, or with ``VmHWM`` the most that it has had."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith(what))
    return int(line.split()[1]) / 1024


def reset_peak(process: int) -> None:
    """Let ``VmHWM`` of a process begin again with what it has now."""
    Path(f"/proc/{process}/clear_refs").write_text("5", encoding="utf-8")


def median(samples: Sequence[Sample], key: str) -> float:
    return statistics.median(sample[key] for sample in samples)


def spread(samples: Sequence[Sample], key: str) -> str:
    """The median with the least and the greatest in brackets."""
    values = [sample[key] for sample in samples]
    return f"{_number(statistics.median(values))} ({_number(min(values))}-{_number(max(values))})"


def ratio(value: float, base: float) -> str:
    return "-" if base == 0 else f"{value / base:.2f}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"

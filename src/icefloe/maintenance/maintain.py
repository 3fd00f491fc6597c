"""Keeps a table healthy: looks at its health, and does what pays within a budget of bytes and seconds.

The steps are those that a person would take: rewrite deletes, compact data files, rewrite manifests, expire snapshots,
and if asked remove orphan files. Each step is safe by itself: it checks for conflicts, and deletes only what it proves
to be unreferenced. A step that fails does not stop the others; the result says what was left and why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TypeAlias

from icefloe.commit.result import CommitResult
from icefloe.errors import ConflictError, IcefloeError, InputError
from icefloe.maintenance.compact.compaction_plan import CompactPlan
from icefloe.maintenance.health import Health, HealthFinding
from icefloe.model.metadata.snapshots import Ref
from icefloe.model.text.figures import size_text
from icefloe.progress import Progress, silent

_COMPACT = frozenset({"small-files", "deleted-rows"})
_DELETES = frozenset({"delete-files"})
_MANIFESTS = frozenset({"manifests", "dead-leaf-rows"})
_SNAPSHOTS = frozenset({"snapshots"})
# A conflict of one group leaves the others. A large file is not rewritten for the sake of a few small ones, or the cost
# of every run would grow with the table.
_COMPACT_OPTIONS = {"partial-progress.enabled": "true", "max-file-share": "0.75"}
_STEP = "steps of maintenance"

BudgetLike: TypeAlias = "Budget | Mapping[str, float] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run of maintenance may cost; none means no limit.

    ``bytes`` are those of data files that compaction reads. No step begins after ``seconds``; a step that has begun is
    completed.

    >>> Budget(bytes=10**9, seconds=60)
    Budget(bytes=1000000000, seconds=60)
    """

    bytes: int | None = None
    seconds: float | None = None


def budget_of(budget: BudgetLike) -> Budget:
    """The budget of a mapping such as ``{"bytes": 10**9, "seconds": 60}``."""
    if isinstance(budget, Budget):
        return budget
    given = dict(budget or {})
    unknown = sorted(given.keys() - {"bytes", "seconds"})
    if len(unknown) > 0:
        raise InputError(f"maintain: budget has no {unknown[0]!r}; it has 'bytes' and 'seconds'")
    negative = [name for name, limit in given.items() if limit < 0]
    if len(negative) > 0:
        raise InputError(f"maintain: the budget of {negative[0]} is negative")
    return Budget(bytes=None if "bytes" not in given else int(given["bytes"]), seconds=given.get("seconds"))


class TableActions(Protocol):
    """The methods of a table that maintenance and erasures call."""

    @property
    def name(self) -> str:
        """The name in the catalog."""

    @property
    def refs(self) -> Mapping[str, Ref]:
        """The branches and tags."""

    def refresh(self) -> Any:
        """Load the newest state."""

    def health(self, storage: bool = False, *, spark: Any = None) -> Health:
        """Measure the table."""

    def delete(self, where: Any, *, branch: str | None = None, spark: Any = None) -> CommitResult:
        """Delete rows."""

    def compact(
        self, *, options: Mapping[str, object] | None = None, branch: str | None = None, spark: Any = None
    ) -> CompactPlan:
        """Plan a compaction."""

    def rewrite_deletes(self, *, branch: str | None = None, spark: Any = None) -> Any:
        """Plan to rewrite deletes."""

    def rewrite_manifests(self) -> Any:
        """Plan to rewrite manifests."""

    def expire(self, *, snapshots: Any = None, spark: Any = None) -> Any:
        """Plan an expiry."""

    def remove_orphans(self, *, spark: Any = None) -> Any:
        """Plan a removal of orphan files."""

    def _commit(self, update: Any) -> CommitResult:
        """Commit an update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of maintenance, and the findings for which it is taken."""

    name: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {'; '.join(self.reasons)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneStep:
    """A step that was taken: its own result, and how long it took."""

    name: str
    result: Any
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainResult:
    """What a run of maintenance did, and what it left.

    >>> MaintainResult(table="db.t")
    maintain db.t: nothing to do, 0.0 s
    """

    table: str
    done: tuple[DoneStep, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)  # step -> why
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """All fields by name, with the result of each step."""
        done = [{"name": step.name, "seconds": step.seconds, **step.result.as_dict()} for step in self.done]
        return {"table": self.table, "done": done, "left": dict(self.left), "seconds": self.seconds}

    def __repr__(self) -> str:
        if len(self.done) == 0 and len(self.left) == 0:
            return f"maintain {self.table}: nothing to do, {self.seconds:.1f} s"
        lines = [f"maintain {self.table}: {len(self.done)} steps, {len(self.left)} left, {self.seconds:.1f} s"]
        lines += [f"  {step.result!r}" for step in self.done]
        return "\n".join([*lines, *(f"  left: {name}: {why}" for name, why in self.left.items())])


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MaintainPlan:
    """The steps that pay for a table, by its health; ``execute`` takes them, in order, within the budget."""

    table: str
    steps: tuple[Step, ...]
    health: Health
    budget: Budget
    _target: TableActions = field(compare=False)
    _spark: Any = field(compare=False, default=None)

    def as_dict(self) -> dict[str, Any]:
        """All fields by name."""
        steps = [asdict(step) for step in self.steps]
        return {"table": self.table, "steps": steps, "budget": asdict(self.budget), "health": self.health.as_dict()}

    def __repr__(self) -> str:
        if len(self.steps) == 0:
            return f"maintain {self.table}: nothing to do"
        return "\n".join([f"maintain {self.table}:", *(f"  {step}" for step in self.steps)])

    def execute(self, progress: Progress = silent) -> MaintainResult:
        """Take the steps; a step that fails is left, and the others are taken."""
        return _Run(self, progress).run()


def plan_maintenance(
    table: TableActions, *, budget: BudgetLike = None, orphans: bool = False, spark: Any = None
) -> MaintainPlan:
    """The steps that the health of a table calls for."""
    limits = budget_of(budget)
    table.refresh()
    health = table.health(storage=orphans, spark=spark)
    return MaintainPlan(
        table=table.name,
        steps=tuple(_steps(health.findings, orphans=orphans)),
        health=health,
        budget=limits,
        _target=table,
        _spark=spark,
    )


def _steps(findings: tuple[HealthFinding, ...], *, orphans: bool) -> Iterator[Step]:
    for name, wanted in (
        ("rewrite_deletes", _DELETES),
        ("compact", _COMPACT),
        ("rewrite_manifests", _MANIFESTS),
        ("expire", _SNAPSHOTS),
    ):
        reasons = tuple(finding.what for finding in findings if finding.name in wanted)
        if len(reasons) > 0:
            yield Step(name=name, reasons=reasons)
    if orphans:
        yield Step(name="remove_orphans", reasons=("asked for",))


class _Run:
    """One execution of a plan."""

    def __init__(self, plan: MaintainPlan, progress: Progress) -> None:
        self._plan = plan
        self._table = plan._target
        self._progress = progress
        self._done: list[DoneStep] = []
        self._left: dict[str, str] = {}

    def run(self) -> MaintainResult:
        started = time.monotonic()
        actions: Mapping[str, Callable[[], Any]] = {
            "rewrite_deletes": lambda: self._table.rewrite_deletes(spark=self._plan._spark).execute(),
            "compact": self._compact,
            "rewrite_manifests": lambda: self._table.rewrite_manifests().execute(),
            "expire": lambda: self._table.expire(spark=self._plan._spark).execute(),
            "remove_orphans": lambda: self._table.remove_orphans(spark=self._plan._spark).execute(),
        }
        for number, step in enumerate(self._plan.steps):
            self._progress(number, len(self._plan.steps), _STEP)
            limit = self._plan.budget.seconds
            if limit is not None and time.monotonic() - started >= limit:
                self._left[step.name] = f"the budget of {limit:g} seconds is used up"
            else:
                self._take(step.name, actions[step.name])
        self._progress(len(self._plan.steps), len(self._plan.steps), _STEP)
        return MaintainResult(
            table=self._plan.table,
            done=tuple(self._done),
            left=dict(self._left),
            seconds=time.monotonic() - started,
        )

    def _take(self, name: str, action: Callable[[], Any]) -> None:
        begun = time.monotonic()
        try:
            result = action()
        except ConflictError as error:
            self._left[name] = f"another commit was faster; the next run tries again ({error})"
            return
        except IcefloeError as error:
            self._left[name] = f"{error} {error.next_step}"
            return
        if result is not None:
            self._done.append(DoneStep(name=name, result=result, seconds=time.monotonic() - begun))

    def _compact(self) -> Any:
        plan = self._table.compact(options=_COMPACT_OPTIONS, spark=self._plan._spark)
        limit, groups = self._plan.budget.bytes, plan.groups.num_rows
        if limit is not None:
            plan = plan.within(limit)
        dropped = groups - plan.groups.num_rows
        if dropped > 0 and limit is not None:
            self._left["compact"] = f"{dropped} of {groups} groups of files are over the budget of {size_text(limit)}"
        if plan.groups.num_rows == 0:
            return None
        result = plan.execute()
        if len(result.failed) > 0:
            self._left["compact"] = f"{len(result.failed)} groups failed: {result.failed[0].error}"
        return result

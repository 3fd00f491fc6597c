"""Runs an operation again on the newest state after a conflict (spec: Commit Conflict Resolution and Retry).

The commit loop repeats only the commit: it applies the planned change to a newer state. If that is a conflict, the
change must be planned again from the current rows. That is one more run of the whole operation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from icefloe.commit.idempotency import CommitKey, committed_snapshot
from icefloe.engines.choose import is_spark
from icefloe.engines.engine import Engine
from icefloe.env import Env
from icefloe.errors import CommitFailed, ConflictError, InputError
from icefloe.model.metadata.properties import COMMIT_MAX_WAIT_MS, COMMIT_MIN_WAIT_MS, OPERATION_RETRIES
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.rows.target import Target

R = TypeVar("R")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How an operation is run: the options that all operations on rows share."""

    engine: Engine
    branch: str | None
    create: bool  # the branch, if the table has none of this name
    retries: int | None
    source: object = None
    key: CommitKey | None = None
    staged: bool = False

    @property
    def summary(self) -> dict[str, str]:
        """The keys that the operation adds to the summary of its snapshot."""
        return {**self.engine.summary, **({} if self.key is None else self.key.summary)}

    def committed(self, target: Target) -> Snapshot | None:
        """The snapshot that an earlier run with the same key made."""
        if self.key is None:
            return None
        return committed_snapshot(target.metadata, target.branch, self.key, staged=self.staged)


def run_again(
    operation: Callable[[Target], R],
    load: Callable[[], Target],
    *,
    retries: int | None,
    source: object = None,
    env: Env,
) -> tuple[R, int]:
    """The result of an operation and the number of its runs; each run gets a freshly loaded target.

    A run that ends in a retryable ConflictError or in CommitFailed has changed nothing, so another one may follow.
    After the last run its error is raised, with ``runs`` in its context. No other error is followed by another run.
    """
    target = load()
    allowed, number = allowed_retries(retries, source, target.properties), 1
    while True:
        try:
            return operation(target), number
        except (ConflictError, CommitFailed) as error:
            if number > allowed or not error.retryable:
                if number > 1:
                    error.context["runs"] = number
                    error.add_note(f"the operation was run {number} times, each time on the newest state")
                raise
            logger.info("run %d of the operation failed, running it again: %s", number, error)
        env.sleep(_pause_s(target.properties, number, env))
        number += 1
        target = load()


def allowed_retries(retries: int | None, source: object, properties: Mapping[str, str]) -> int:
    """How often an operation may run again: ``retries``, or else the property ``commit.operation.num-retries``.

    A source that may be readable only once is refused with ``retries``; the property does not apply to it.
    """
    if retries is None:
        return OPERATION_RETRIES.of(properties) if is_repeatable(source) else 0
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InputError(f"retries must be a whole number that is not negative, got {retries!r}")
    if retries > 0 and not is_repeatable(source):
        kind = f"{type(source).__module__}.{type(source).__qualname__}"
        raise InputError(
            f"retries={retries} needs rows that can be read again, and a {kind} may be readable only once;"
            " give a table (pyarrow.table(rows)), or leave retries out",
            type=kind,
            next_step="Read the rows into a table with pyarrow.table(rows), or call without retries.",
        )
    return retries


def is_repeatable(source: object) -> bool:
    """Whether rows can be read more than once: DataFrames of Spark, and data with a length. Streams cannot.

    >>> import pyarrow as pa
    >>> table = pa.table({"id": [1]})
    >>> is_repeatable(table), is_repeatable(table.to_reader())
    (True, False)
    """
    return source is None or is_spark(source) or hasattr(source, "__len__")


def _pause_s(properties: Mapping[str, str], number: int, env: Env) -> float:
    """A random pause, so that conflicting operations spread out; its upper bound doubles up to the maximum."""
    shortest, longest = COMMIT_MIN_WAIT_MS.of(properties), COMMIT_MAX_WAIT_MS.of(properties)
    return float(env.jitter() * min(longest, shortest * 2 ** min(number - 1, 30)) / 1000)

"""The options that all operations on rows share, and the keys that these add to the summaries of snapshots."""

from __future__ import annotations

from dataclasses import dataclass

from icefloe.commit.idempotency import CommitKey, committed_snapshot
from icefloe.engines.engine import Engine
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.rows.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How an operation is run: the options that all operations on rows share."""

    engine: Engine
    branch: str | None
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

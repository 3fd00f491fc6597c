"""Plans to rewrite the manifests of a branch, sorted by partition and in the target size of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from icefloe.commit.result import CommitResult
from icefloe.model.entries import total
from icefloe.model.text.figures import Figures
from icefloe.progress import Progress, silent
from icefloe.rows.target import Target
from icefloe.tree.rewrite import large_leaves, live_leaves, reasons_to_rewrite
from icefloe.tree.root import read_root

_STEP = "snapshots"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RewriteManifestsPlan(Figures):
    """The manifests that would be rewritten, and why; ``execute`` does it.

    >>> RewriteManifestsPlan(table="db.t", manifests=1, large=0, bytes=4096, reasons=(), _run=lambda: None)
    rewrite manifests db.t: nothing to do, 1 manifests (4096 bytes) have the form that a rewrite gives them
    """

    table: str
    manifests: int
    large: int  # those that are split
    bytes: int
    reasons: tuple[str, ...]  # none if there is nothing to do
    _run: Callable[[], CommitResult] = field(compare=False)

    def execute(self, progress: Progress = silent) -> CommitResult:
        """Rewrite the manifests of the newest state, as one snapshot, unless there is nothing to do by then."""
        progress(0, 1, _STEP)
        result = self._run()
        progress(1, 1, _STEP)
        return result

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return len(self.reasons) == 0

    def __repr__(self) -> str:
        size = f"{self.manifests} manifests ({self.bytes} bytes)"
        if self.is_empty:
            return f"rewrite manifests {self.table}: nothing to do, {size} have the form that a rewrite gives them"
        return f"rewrite manifests {self.table}: {size}, as {'; '.join(self.reasons)}"


def plan_rewrite_manifests(
    name: str, target: Target, cluster_by: tuple[int, ...], run: Callable[[], CommitResult]
) -> RewriteManifestsPlan:
    """Plan to rewrite the manifests of a branch, sorted by the partition fields ``cluster_by`` first."""
    store = target.base.store
    root = read_root(store, target.head)
    leaves = live_leaves(root)
    return RewriteManifestsPlan(
        table=name,
        manifests=leaves.num_rows,
        large=large_leaves(store, leaves, target.properties),
        bytes=total(leaves, "file_size_in_bytes"),
        reasons=reasons_to_rewrite(store, root, target.properties, cluster_by),
        _run=run,
    )

"""Rewrites the deletes of a table in the form that costs readers least, and removes those that apply to no file."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.base import TablePointer
from icefloe.commit.loop import commit
from icefloe.engines.engine import Engine
from icefloe.expr.filter.nodes import Expr
from icefloe.maintenance.compact.dangling_deletes import dangling_deletes
from icefloe.model.entries import ContentType, count, of_type
from icefloe.rows.convert_deletes import convert_deletes
from icefloe.rows.target import Target
from icefloe.scan.plan import all_deletes
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import read_root


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteDeletesResult:
    """The outcome of rewriting deletes: which were replaced, which applied to no file, and the new ones.

    >>> RewriteDeletesResult(table="db.t")
    rewrite deletes db.t: nothing to do
    """

    table: str
    snapshot_id: int | None = None
    equality_files_removed: int = 0
    position_files_removed: int = 0
    vectors_removed: int = 0
    dangling_removed: int = 0  # of the removed ones: deletes that applied to no data file
    vectors_added: int = 0
    position_files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0

    def as_dict(self) -> dict[str, object]:
        """All fields by name."""
        return asdict(self)

    def __repr__(self) -> str:
        if self.snapshot_id is None:
            return f"rewrite deletes {self.table}: nothing to do"
        return (
            f"rewrite deletes {self.table}: snapshot {self.snapshot_id}, removed {self.equality_files_removed} equality"
            f" delete files, {self.position_files_removed} position delete files and {self.vectors_removed} deletion"
            f" vectors ({self.bytes_removed} bytes, {self.dangling_removed} dangling), added {self.vectors_added}"
            f" deletion vectors and {self.position_files_added} position delete files ({self.bytes_added} bytes)"
        )


def rewrite_deletes(
    name: str, table: TablePointer, target: Target, engine: Engine, where: Expr, *, all_files: bool
) -> RewriteDeletesResult:
    """Convert the deletes of data files that may contain matching rows; with ``all_files`` remove dangling ones too."""
    dangling = _dangling(target) if all_files else FileChanges()
    update = convert_deletes(target, engine, where, dangling)
    if update is None:
        return RewriteDeletesResult(table=name)
    landed = commit(table, update, target.env)
    changes = update.changes
    removed, vectors, added = changes.removed_deletes, changes.with_old_vectors, changes.added
    new_vectors = added.filter(pc.is_valid(added["dv_offset"]))
    new_files = added.filter(pc.is_null(added["dv_offset"]))
    return RewriteDeletesResult(
        table=name,
        snapshot_id=landed.snapshot_id,
        equality_files_removed=count(of_type(removed, ContentType.EQUALITY_DELETES)),
        position_files_removed=count(of_type(removed, ContentType.POSITION_DELETES)),
        vectors_removed=vectors.num_rows,
        dangling_removed=dangling.removed_deletes.num_rows + dangling.revectored.num_rows,
        vectors_added=new_vectors.num_rows,
        position_files_added=new_files.num_rows,
        bytes_removed=_sum(removed, "file_size_in_bytes") + _sum(vectors, "dv_size_in_bytes"),
        bytes_added=_sum(new_vectors, "dv_size_in_bytes") + _sum(new_files, "file_size_in_bytes"),
    )


def _dangling(target: Target) -> FileChanges:
    """The deletes of a branch that apply to no data file."""
    store = target.base.store
    deletes = all_deletes(store, read_root(store, target.head))
    tasks = target.plan().tasks
    return dangling_deletes(deletes, tasks, tasks.slice(0, 0), store.context)


def _sum(entries: pa.Table, name: str) -> int:
    return int(pc.sum(entries[name], min_count=0).as_py())

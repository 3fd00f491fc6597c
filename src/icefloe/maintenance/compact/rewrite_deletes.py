"""Rewrites the deletes of a table in the form that costs readers least, and removes those that apply to no file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.commit.base import TablePointer
from icefloe.commit.loop import commit
from icefloe.deletes.delete_index import DeleteOutcome, attach_deletes
from icefloe.engines.engine import Engine
from icefloe.expr.filter.nodes import Expr
from icefloe.model.entries import ContentType, choose, count, of_type, total
from icefloe.model.text.figures import Figures
from icefloe.progress import Progress, silent
from icefloe.rows.convert_deletes import convert_deletes, planned_conversion
from icefloe.rows.target import Target
from icefloe.scan.plan import all_deletes
from icefloe.tree.file_changes import PLANNED_FILE, FileChanges
from icefloe.tree.root import read_root

_STEP = "snapshots"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteDeletesResult(Figures):
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

    def __repr__(self) -> str:
        if self.snapshot_id is None:
            return f"rewrite deletes {self.table}: nothing to do"
        return (
            f"rewrite deletes {self.table}: snapshot {self.snapshot_id}, removed {self.equality_files_removed} equality"
            f" delete files, {self.position_files_removed} position delete files and {self.vectors_removed} deletion"
            f" vectors ({self.bytes_removed} bytes, {self.dangling_removed} dangling), added {self.vectors_added}"
            f" deletion vectors and {self.position_files_added} position delete files ({self.bytes_added} bytes)"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RewriteDeletesPlan(Figures):
    """The deletes that would be written in another form, and those that apply to no data file; ``execute`` does it."""

    table: str
    equality_files: int
    position_files: int
    data_files: int  # that these delete files apply to
    dangling: int  # deletes that apply to no data file
    bytes: int  # of the delete files that would be removed
    makes_vectors: bool  # deletion vectors, or in version 2 one position delete file for each data file
    _run: Callable[[], RewriteDeletesResult] = field(compare=False)

    def execute(self, progress: Progress = silent) -> RewriteDeletesResult:
        """Convert the deletes on the newest state of the table, as one snapshot."""
        progress(0, 1, _STEP)
        result = self._run()
        progress(1, 1, _STEP)
        return result

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return self.equality_files + self.position_files + self.dangling == 0

    def __repr__(self) -> str:
        if self.is_empty:
            return f"rewrite deletes {self.table}: nothing to do"
        form = "deletion vectors" if self.makes_vectors else "one position delete file each"
        return (
            f"rewrite deletes {self.table}: {self.equality_files} equality delete files and {self.position_files}"
            f" position delete files ({self.bytes} bytes) that apply to {self.data_files} data files become {form};"
            f" {self.dangling} deletes that apply to no data file are removed"
        )


def plan_rewrite_deletes(
    name: str, table: TablePointer, load: Callable[[], Target], engine: Engine, where: Expr, *, all_files: bool
) -> RewriteDeletesPlan:
    """Plan to convert the deletes of data files that may contain matching rows; with ``all_files`` dangling ones go."""
    target = load()
    conversion = planned_conversion(target, where)
    dangling = _dangling(target) if all_files else FileChanges()
    deletes, unused = conversion.deletes, dangling.removed_deletes
    return RewriteDeletesPlan(
        table=name,
        equality_files=count(of_type(deletes, ContentType.EQUALITY_DELETES)),
        position_files=count(of_type(deletes, ContentType.POSITION_DELETES)),
        data_files=conversion.tasks.num_rows,
        dangling=unused.num_rows + dangling.revectored.num_rows,
        bytes=total(deletes, "file_size_in_bytes") + total(unused, "file_size_in_bytes"),
        makes_vectors=target.metadata.rules.deletion_vectors,
        _run=lambda: _rewrite(name, table, load(), engine, where, all_files=all_files),
    )


def _rewrite(
    name: str, table: TablePointer, target: Target, engine: Engine, where: Expr, *, all_files: bool
) -> RewriteDeletesResult:
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
        bytes_removed=total(removed, "file_size_in_bytes") + total(vectors, "dv_size_in_bytes"),
        bytes_added=total(new_vectors, "dv_size_in_bytes") + total(new_files, "file_size_in_bytes"),
    )


def _dangling(target: Target) -> FileChanges:
    """The deletes of a branch that apply to no data file."""
    store = target.base.store
    deletes = all_deletes(store, read_root(store, target.head))
    tasks = target.plan().tasks
    return dangling_deletes(deletes, tasks, tasks.slice(0, 0), store.context)


def dangling_deletes(
    deletes: pa.Table, remaining: pa.Table, removed: pa.Table, context: ManifestContext
) -> FileChanges:
    """The removal of deletes that apply to none of the ``remaining`` data files.

    ``deletes`` are all live delete entries of the snapshot, ``remaining`` and ``removed`` its data files as tasks. The
    deletion vectors of removed files are not included: they are removed together with their files.
    """
    if deletes.num_rows == 0:
        return FileChanges()
    outcomes = attach_deletes(remaining.drop_columns(["deletes"]), deletes, context).outcomes
    unused = choose(deletes, pc.equal(outcomes, int(DeleteOutcome.NO_FILE)))
    is_vector = pc.is_valid(unused["dv_offset"])
    vectors = unused.filter(is_vector)
    own = pc.is_in(vectors["referenced_file"], value_set=removed["location"].combine_chunks())
    return FileChanges(
        removed_deletes=unused.filter(pc.invert(is_vector)), revectored=_as_files(vectors.filter(pc.invert(own)))
    )


def _as_files(vectors: pa.Table) -> pa.Table:
    """The data files that deletion vectors name, in the form in which vectors are removed."""
    columns = {
        "location": vectors["referenced_file"],
        "partition_spec_id": vectors["partition_spec_id"],
        "dv_location": vectors["location"],
        "dv_size_in_bytes": vectors["dv_size_in_bytes"],
        "dv_cardinality": vectors["record_count"],
        "dv_manifest": vectors["manifest"],
        "dv_ordinal": vectors["ordinal"],
    }
    unknown = {field.name: pa.nulls(vectors.num_rows, field.type) for field in PLANNED_FILE}
    return pa.table({**unknown, **columns}, schema=PLANNED_FILE)

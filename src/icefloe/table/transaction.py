"""Several operations as one commit: all of them or none (spec: Optimistic Concurrency).

An operation sees the changes of the operations before it. Files are written at once; readers see the changes after the
commit. If another commit was first, the operations are applied again on top of it, unless they conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from icefloe import rows
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.draft import Draft, Update, draft_of
from icefloe.commit.fewest_snapshots import are_one
from icefloe.commit.loop import begin, discard, land
from icefloe.commit.operations.property_updates import SetProperties
from icefloe.commit.operations.schema_updates import ChangePartitioning
from icefloe.commit.result import CommitResult, nothing_done, with_row_figures
from icefloe.engines.choose import engine_of
from icefloe.engines.merge_plan import Merge
from icefloe.engines.work import FinalLineage
from icefloe.env import Env
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.value.expressions import Value
from icefloe.model.evolution.schema_update import update_of
from icefloe.model.metadata.snapshots import MAIN
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec_evolution import PartitionUpdate
from icefloe.model.text.text_checks import property_names
from icefloe.rows.add_files import Partition
from icefloe.rows.schema_merge import SchemaMode, schema_steps
from icefloe.table.change_data import DELETED_COLUMN, change_data
from icefloe.table.edits import CommittedBlock, PartitionEdit, SchemaEdit
from icefloe.table.merge_builder import MergeBuilder
from icefloe.table.scan import Scan


class Transaction(CommittedBlock):
    """Operations of one commit. The ``with`` block commits them when it ends, or discards them after an error.

    >>> import icefloe, tempfile, pyarrow as pa
    >>> folder = tempfile.mkdtemp()
    >>> cat = icefloe.catalog("demo", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")
    >>> t = cat.create_table("db.orders", schema="id bigint")
    >>> with t.transaction() as tx:
    ...     tx.append(pa.table({"id": [1, 2, 3]}))
    ...     tx.delete("id = 2")
    >>> tx.result.snapshots, sorted(t.scan().to_arrow()["id"].to_pylist())
    (1, [1, 3])

    The operations are one snapshot where they can be. Changes of several branches need several, and so do rows that one
    operation adds and a later one replaces by equality deletes. Then all have the same transaction in their summaries,
    and ``changes``, streams and time travel take them together. With ``one_snapshot`` an operation that needs another
    snapshot is an InputError.
    """

    def __init__(
        self,
        table: TablePointer,
        env: Env,
        summary: Mapping[str, str] | None = None,
        *,
        one_snapshot: bool = False,
        settings: rows.WriteSettings = rows.AS_TABLE,
    ) -> None:
        base = table.load()
        self._one_snapshot = one_snapshot
        self._settings = settings
        self._summary = {**({} if summary is None else summary), **settings.summary}  # added to that of every snapshot
        self._table = table
        self._env = env
        self._work = begin(base, env)
        self._draft = draft_of(base)
        self._steps: list[Update] = []
        self._copied = self._already_deleted = 0
        self._open = True

    def _end(self, *, failed: bool) -> None:
        if self._open and failed:
            self.drop()
        elif self._open:
            self.commit()

    @property
    def metadata(self) -> TableMetadata:
        """The table after the operations so far."""
        return self._draft.metadata

    def append(
        self, data: Any, *, schema_mode: SchemaMode = "strict", branch: str | None = MAIN, create_branch: bool = False
    ) -> None:
        """Add rows; with ``schema_mode="merge"``, first add the columns that the table lacks."""
        self._run(rows.append(data, schema_mode=schema_mode), branch, create_branch)

    def overwrite(
        self,
        data: Any,
        where: str | Expr | None = None,
        *,
        overwrite_all: bool = False,
        schema_mode: SchemaMode = "strict",
        branch: str | None = MAIN,
        create_branch: bool = False,
    ) -> None:
        """Replace the rows that match, or all rows, by other rows; ``schema_mode`` is that of ``append``."""
        change = rows.overwrite(data, where, overwrite_all=overwrite_all, schema_mode=schema_mode)
        self._run(change, branch, create_branch)

    def overwrite_partitions(
        self, data: Any, *, schema_mode: SchemaMode = "strict", branch: str | None = MAIN, create_branch: bool = False
    ) -> None:
        """Replace all rows of the partitions of the new rows; ``schema_mode`` is that of ``append``."""
        self._run(rows.overwrite_partitions(data, schema_mode=schema_mode), branch, create_branch)

    def delete(
        self, where: str | Expr, *, branch: str | None = MAIN, create_branch: bool = False, spark: Any = None
    ) -> None:
        """Delete the rows that match."""
        self._run(rows.delete(where, spark), branch, create_branch)

    def update(
        self,
        changes: Mapping[str, str | Value],
        where: str | Expr | None = None,
        *,
        branch: str | None = MAIN,
        create_branch: bool = False,
        spark: Any = None,
    ) -> None:
        """Set columns of the rows that match, or of all."""
        self._run(rows.update(changes, where, spark), branch, create_branch)

    def upsert(
        self,
        data: Any,
        on: Sequence[str] | None = None,
        *,
        deletes: Literal["position", "equality"] | None = None,
        branch: str | None = MAIN,
        create_branch: bool = False,
    ) -> None:
        """Replace rows by key, and add the others."""
        self._run(rows.upsert(data, on, deletes=deletes), branch, create_branch)

    def merge(
        self, source: Any, on: str | Value | Sequence[str], *, branch: str | None = MAIN, create_branch: bool = False
    ) -> MergeBuilder[None]:
        """Update, delete and insert rows by those of a source; see ``Table.merge``."""
        self._check_open()

        def run(merge: Merge, retries: int | None) -> None:
            if retries is not None:
                raise InputError("merge: retries= has no use in a transaction, which commits at its end")
            self._run(rows.merge(source, merge), branch, create_branch)

        return MergeBuilder(on, run, engine_of(source), self._env)

    def apply_changes(
        self,
        data: Any,
        keys: Sequence[str],
        sequence_by: str,
        *,
        delete_when: str | Value | None = None,
        columns: Sequence[str] | None = None,
        deleted_column: str = DELETED_COLUMN,
        branch: str | None = MAIN,
        create_branch: bool = False,
    ) -> None:
        """Apply the last change of each key, if it is newer than the row in the table; see ``Table.apply_changes``."""
        changes = change_data(
            data,
            self.metadata.schema,
            self._env,
            keys=keys,
            sequence_by=sequence_by,
            delete_when=delete_when,
            columns=columns,
            deleted_column=deleted_column,
        )
        changes.added_to(self.merge(changes.source, list(keys), branch=branch, create_branch=create_branch)).execute()

    def add_files(
        self,
        paths: str | Iterable[str],
        *,
        partition: Partition = None,
        file_format: str | None = None,
        branch: str | None = MAIN,
        create_branch: bool = False,
    ) -> None:
        """Add existing data files without copying them; see ``Table.add_files``."""
        self._run(rows.add_files(paths, partition=partition, file_format=file_format), branch, create_branch)

    def update_schema(self) -> SchemaEdit:
        """Change the schema, also for the operations that follow."""
        read = self.metadata
        return SchemaEdit(
            update_of(read),
            lambda update: self._add(schema_steps(update.steps, read)),
        )

    def update_partitioning(self) -> PartitionEdit:
        """Change the partitioning, also for the operations that follow."""
        read = self.metadata
        return PartitionEdit(
            PartitionUpdate(metadata=read),
            lambda update: self._add(ChangePartitioning(update=update)),
        )

    def set_properties(self, updates: Mapping[str, str], remove: Sequence[str] = ()) -> None:
        """Set and remove table properties; setting ``format-version`` upgrades the table."""
        self._add(SetProperties(updates=dict(updates), removals=property_names(remove)))

    def scan(
        self, where: str | Expr | None = None, columns: Sequence[str] | None = None, *, branch: str | None = MAIN
    ) -> Scan:
        """Read the table after the operations so far."""
        return Scan(
            self._base, self._draft.head(rows.branch_of(branch, self.metadata)), where, columns, self.metadata.schema
        )

    def commit(self) -> CommitResult:
        """Commit all operations; a second call is an error."""
        self._check_open()
        self._open = False
        if len(self._steps) == 0:
            result = nothing_done(str(self._table), "transaction")
        else:
            landed = land(self._table, tuple(self._steps), self._work, self._draft, transaction=True)
            result = with_row_figures(landed, copied=self._copied, already_deleted=self._already_deleted)
        self.result = result
        return result

    def drop(self) -> None:
        """Drop all operations, and delete the files that were written for them."""
        self._check_open()
        self._open = False
        files = [file for step in self._steps for file in step.files]
        discard(self._table.io, [*self._work.staging.written, *files])

    @property
    def _base(self) -> Base:
        base, draft = self._draft.base, self._draft
        return Base(pointer=base.pointer, metadata=draft.metadata, store=draft.store, name=base.name)

    def _target(self, branch: str | None, create_branch: bool) -> rows.Target:
        """A branch after the operations so far; row lineage that they assigned changes if the commit is retried."""
        self._check_open()
        final = FinalLineage.of(self._draft.base.metadata)
        name = rows.branch_of(branch, self.metadata, create=create_branch)
        return rows.Target(base=self._base, env=self._env, branch=name, final=final, settings=self._settings)

    def _run(self, change: rows.RowChange, branch: str | None, create_branch: bool) -> None:
        prepared = change.prepared(self._target(branch, create_branch), self._summary)
        self._add(*prepared.steps)
        self._copied += prepared.rows_copied
        self._already_deleted += prepared.rows_already_deleted

    def _add(self, *updates: Update) -> None:
        """Apply updates to the draft: all, or none if one fails. The transaction can then continue without them."""
        self._check_open()
        work, before = self._work, self._draft
        steps, written = len(self._steps), len(work.staging.written)
        try:
            for update in updates:
                work.step = len(self._steps)
                draft = update.apply(self._draft, work)
                work.write_roots(draft.store)
                self._check_one_snapshot(draft)
                self._draft = draft
                self._steps.append(update)
        except BaseException:
            self._draft, work.roots = before, {}
            del self._steps[steps:]
            files = [file for update in updates for file in update.files]
            discard(self._table.io, [*work.staging.forget_since(written), *files])
            raise

    def _check_one_snapshot(self, draft: Draft) -> None:
        before = self._draft.plans
        if not self._one_snapshot or len(before) in (0, len(draft.plans)):
            return
        plan = draft.plans[-1]
        if are_one(before, plan, draft.metadata):
            return
        reason = f"it changes branch {plan.branch!r}, the others {before[0].branch!r}"
        if plan.branch == before[0].branch:
            reason = "its equality deletes do not apply to rows of the same snapshot"
        raise InputError(
            f"table {self._table}: {plan.operation} needs a snapshot of its own, as {reason}; use a transaction without"
            " one_snapshot=True, or commit it by itself",
            ref=plan.branch,
        )

    def _check_open(self) -> None:
        if not self._open:
            raise InputError(f"table {self._table}: this transaction has ended; begin another one")

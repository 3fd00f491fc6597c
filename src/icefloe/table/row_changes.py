"""The operations of a table on its rows: every method prepares an operation and commits it as one snapshot."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

from icefloe import rows
from icefloe.commit.idempotency import commit_key
from icefloe.commit.phases import PhaseTimer
from icefloe.commit.result import CommitResult, already_done
from icefloe.engines.choose import engine_for, engine_of
from icefloe.engines.merge import Merge
from icefloe.errors import ConflictError, InputError
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.value.expressions import Value
from icefloe.model.metadata.snapshots import MAIN, Operation, Snapshot
from icefloe.rows.add_files import Partition, add_files
from icefloe.rows.schema_merge import SchemaMode
from icefloe.table.apply_changes import DELETED_COLUMN, changes_merge
from icefloe.table.held_table import HeldTable
from icefloe.table.merge import MergeBuilder, MergeResult, merge_done_before, merge_result
from icefloe.table.operation_runs import RunOptions, run_again
from icefloe.table.transaction import Transaction

DeleteName = Literal["position", "equality"]
R = TypeVar("R")


class RowChanges(HeldTable):
    """The methods of a table that change its rows.

    A change that conflicts with another commit fails with a ConflictError. With ``retries`` the change is planned and
    run again on the newest state, up to that many times; ``runs`` of the result counts the runs. The
    default is the table property ``commit.operation.num-retries``, which is 0 if it is not set. Rows that can be read
    only once, such as a RecordBatchReader, are refused with ``retries``.

    A change with an ``idempotency_key`` is committed once, however often and wherever it is run. The key is in the
    summary of its snapshot; a run that finds it on the branch changes nothing and returns ``already_committed``.

    A batch of a stream has ``query`` and ``batch`` instead, such as the number that ``foreachBatch`` passes, and a text
    that names the stream. It is committed once: the stream may be restarted and run the batch again.
    """

    def append(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        branch: str | None = MAIN,
        create_branch: bool = False,
        wap_id: str | None = None,
        retries: int | None = None,
        idempotency_key: str | None = None,
        query: str | None = None,
        batch: int | None = None,
    ) -> CommitResult:
        """Add rows: a Spark DataFrame, or anything with Arrow's stream protocol.

        With ``schema_mode="merge"`` the same commit first adds the columns that the rows have and the table lacks.
        With ``wap_id`` the snapshot is staged under that id: readers do not see it until ``cherry_pick`` publishes it.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.append", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1], "note": ["new"]}), schema_mode="merge")
        >>> t.scan().to_arrow().to_pylist()
        [{'id': 1, 'note': 'new'}]
        """
        engine, key = engine_of(data), commit_key(idempotency_key, query, batch)
        run = RunOptions(engine=engine, branch=branch, create=create_branch, retries=retries, source=data, key=key)
        run = replace(run, staged=wap_id is not None)
        if schema_mode != "strict":
            return self._append_merging(data, schema_mode, wap_id, run)
        return self._change(lambda target: rows.append(target, data, run.engine, wap_id=wap_id), run)

    def overwrite(
        self,
        data: Any,
        where: str | Expr | None = None,
        *,
        overwrite_all: bool = False,
        branch: str | None = MAIN,
        create_branch: bool = False,
        retries: int | None = None,
        idempotency_key: str | None = None,
        query: str | None = None,
        batch: int | None = None,
    ) -> CommitResult:
        """Replace the rows that match ``where`` by other rows, as one snapshot; rows for which it is null are kept.

        To replace all rows, use ``overwrite_all=True`` instead of a condition.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.overwrite", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1, 2, 3]}))
        >>> result = t.overwrite(pa.table({"id": [20, 30]}), where="id >= 2")
        >>> sorted(t.scan().to_arrow()["id"].to_pylist())
        [1, 20, 30]
        """
        rows.check_overwrite(where, overwrite_all=overwrite_all)
        key = commit_key(idempotency_key, query, batch)
        run = RunOptions(
            engine=engine_of(data), branch=branch, create=create_branch, retries=retries, source=data, key=key
        )
        return self._change(lambda target: rows.overwrite(target, data, where, run.engine), run)

    def overwrite_partitions(
        self,
        data: Any,
        *,
        branch: str | None = MAIN,
        create_branch: bool = False,
        retries: int | None = None,
        idempotency_key: str | None = None,
        query: str | None = None,
        batch: int | None = None,
    ) -> CommitResult:
        """Replace all rows of the partitions of the new rows.

        In a table without partitions, all rows are replaced. Without new rows nothing happens.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table(
        ...     "docs.overwrite_partitions", schema="city string, id bigint", partition_by=["city"])
        >>> result = t.append(pa.table({"city": ["Oslo", "Oslo", "Rome"], "id": [1, 2, 3]}))
        >>> result = t.overwrite_partitions(pa.table({"city": ["Oslo"], "id": [10]}))
        >>> sorted(t.scan().to_arrow()["id"].to_pylist())
        [3, 10]
        """
        key = commit_key(idempotency_key, query, batch)
        run = RunOptions(
            engine=engine_of(data), branch=branch, create=create_branch, retries=retries, source=data, key=key
        )
        return self._change(lambda target: rows.overwrite_partitions(target, data, run.engine), run)

    def delete(
        self,
        where: str | Expr,
        *,
        branch: str | None = MAIN,
        create_branch: bool = False,
        spark: Any = None,
        retries: int | None = None,
        idempotency_key: str | None = None,
    ) -> CommitResult:
        """Delete the rows that match, with a Spark session on Spark, otherwise in this process.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.delete", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1, 2, 3]}))
        >>> t.delete("id >= 2").rows_deleted, t.scan().count()
        (2, 1)
        """
        key = commit_key(idempotency_key)
        run = RunOptions(engine=engine_for(spark), branch=branch, create=create_branch, retries=retries, key=key)
        return self._change(lambda target: rows.delete(target, where, run.engine), run)

    def update(
        self,
        changes: Mapping[str, str | Value],
        where: str | Expr | None = None,
        *,
        branch: str | None = MAIN,
        create_branch: bool = False,
        spark: Any = None,
        retries: int | None = None,
        idempotency_key: str | None = None,
    ) -> CommitResult:
        """Set columns, or fields inside structs, to SQL values in the rows that match ``where``, by default in all.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.update", schema="id bigint, note string")
        >>> result = t.append(pa.table({"id": [1, 2], "note": ["a", "b"]}))
        >>> result = t.update({"note": "upper(note) || '!'"}, where="id = 2")
        >>> sorted(t.scan().to_arrow()["note"].to_pylist())
        ['B!', 'a']
        """
        key = commit_key(idempotency_key)
        run = RunOptions(engine=engine_for(spark), branch=branch, create=create_branch, retries=retries, key=key)
        return self._change(lambda target: rows.update(target, changes, where, run.engine), run)

    def upsert(
        self,
        data: Any,
        on: Sequence[str] | None = None,
        *,
        deletes: DeleteName | None = None,
        branch: str | None = MAIN,
        create_branch: bool = False,
        retries: int | None = None,
        idempotency_key: str | None = None,
        query: str | None = None,
        batch: int | None = None,
    ) -> CommitResult:
        """Replace the rows whose key columns equal those of a row in ``data``, and add the others.

        The keys are ``on``, or else the identifier fields of the schema. A key with a null equals none.

        With ``deletes="equality"`` the table is not read: the keys are written to equality delete files, which readers
        apply until the table is compacted. Use it for streams of small changes. The default is the table property
        ``write.upsert.deletes``, which is ``position`` if it is not set.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.upsert", schema="id bigint, note string")
        >>> result = t.append(pa.table({"id": [1], "note": ["a"]}))
        >>> result = t.upsert(pa.table({"id": [1, 2], "note": ["A", "b"]}), on=["id"])
        >>> sorted(t.scan().to_arrow()["note"].to_pylist())
        ['A', 'b']
        >>> t.upsert(pa.table({"id": [2], "note": ["B"]}), on=["id"], retries=5).runs
        1
        """
        key = commit_key(idempotency_key, query, batch)
        run = RunOptions(
            engine=engine_of(data), branch=branch, create=create_branch, retries=retries, source=data, key=key
        )
        return self._change(lambda target: rows.upsert(target, data, on, run.engine, deletes=deletes), run)

    def merge(
        self,
        source: Any,
        on: str | Value | Sequence[str],
        *,
        branch: str | None = MAIN,
        create_branch: bool = False,
        idempotency_key: str | None = None,
        query: str | None = None,
        batch: int | None = None,
    ) -> MergeBuilder[MergeResult]:
        """Update, delete and insert rows by those of a source, as one snapshot; ``on`` joins the two.

        Add clauses, then ``execute()``. A row of the table that several rows of the source match is an error.
        ``query`` and ``batch`` are those of ``append``.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.merging", schema="id bigint, n bigint")
        >>> result = t.append(pa.table({"id": [1, 2], "n": [10, 20]}))
        >>> merge = t.merge(pa.table({"id": [2, 3], "n": [5, 7]}), on="t.id = s.id")
        >>> result = merge.when_matched_update({"n": "t.n + s.n"}).when_not_matched_insert_all().execute()
        >>> sorted(t.scan().to_arrow()["n"].to_pylist())
        [7, 10, 25]
        """

        engine = engine_of(source)
        key = commit_key(idempotency_key, query, batch)

        def run(merge: Merge, retries: int | None) -> MergeResult:
            options = RunOptions(
                engine=engine, branch=branch, create=create_branch, retries=retries, source=source, key=key
            )

            def once(target: rows.Target) -> MergeResult:
                prepared = rows.merge(target, merge, source, engine)
                change = prepared.change.with_summary(options.summary)
                return merge_result(prepared, self._run(change, target.timer), 0.0)

            started = time.perf_counter()
            result, runs = self._repeat(once, options, lambda earlier: merge_done_before(self.name, earlier))
            return replace(result, runs=runs, seconds=time.perf_counter() - started)

        return MergeBuilder(on, run, engine, self._env)

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
        retries: int | None = None,
        idempotency_key: str | None = None,
        query: str | None = None,
        batch: int | None = None,
    ) -> MergeResult:
        """Apply change data: the last change of each key by ``sequence_by``, if it is newer than the row in the table.

        Late and repeated changes do nothing. Rows for which ``delete_when`` is true mark their row as deleted in the
        boolean column ``deleted_column``; see docs/merge.md. ``columns`` are those to set, by default all. ``query``
        and ``batch`` are those of ``append``.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.cdc", schema="id bigint, n int, seq bigint")
        >>> changes = pa.table({"id": [1, 1, 2], "n": pa.array([10, 11, 20], pa.int32()), "seq": [1, 2, 1]})
        >>> t.apply_changes(changes, keys=["id"], sequence_by="seq").rows_inserted
        2
        >>> t.apply_changes(changes, keys=["id"], sequence_by="seq").snapshot_id is None
        True
        """
        merge = changes_merge(
            lambda source, on: self.merge(
                source,
                on,
                branch=branch,
                create_branch=create_branch,
                idempotency_key=idempotency_key,
                query=query,
                batch=batch,
            ),
            engine_of(data),
            self._pointer.load().metadata.schema,
            data,
            keys=keys,
            sequence_by=sequence_by,
            delete_when=delete_when,
            columns=columns,
            deleted_column=deleted_column,
            env=self._env,
        )
        return merge.execute(retries=retries)

    def add_files(
        self,
        paths: str | Iterable[str],
        *,
        partition: Partition = None,
        file_format: str | None = None,
        branch: str | None = MAIN,
        create_branch: bool = False,
    ) -> CommitResult:
        """Add existing data files without copying them: Parquet, ORC or Avro files, or folders of them.

        Columns are matched by field id, or by name in files without ids; the table gets a name mapping if it has none.
        All rows of a file must belong to one partition. ``partition`` states the values that files lack:
        ``partition="hive"`` takes them from paths such as ``.../region=eu/part-0.parquet``, a mapping gives them for
        all files. If the table has one of the files already, or one does not fit it, none is added.

        >>> import icefloe, tempfile, pyarrow as pa, pyarrow.parquet as pq
        >>> folder = tempfile.mkdtemp()
        >>> pq.write_table(pa.table({"id": [1, 2]}), f"{folder}/old.parquet")
        >>> t = icefloe.catalog("demo", uri=f"file://{folder}/wh").create_table("db.t", schema="id bigint")
        >>> t.add_files(f"{folder}/old.parquet").rows_added, t.scan().count()
        (2, 2)
        """
        target = self._target(branch, create_branch=create_branch)
        steps = add_files(target.base, paths, partition=partition, file_format=file_format, branch=target.branch)
        return (
            self._run(rows.Prepared(operation=Operation.APPEND), PhaseTimer())
            if len(steps) == 0
            else self._commit(steps)
        )

    def _append_merging(self, data: Any, schema_mode: SchemaMode, wap_id: str | None, run: RunOptions) -> CommitResult:
        if wap_id is not None:
            raise InputError("append: wap_id= stages rows, but schema_mode='merge' changes the schema for all readers")

        def once(target: rows.Target) -> CommitResult:
            with Transaction(self._pointer, self._env, run.summary, settings=self._settings) as work:
                work.append(data, schema_mode=schema_mode, branch=run.branch, create_branch=run.create)
            return rows.Prepared(operation=Operation.APPEND).nothing(self.name) if work.result is None else work.result

        result, runs = self._repeat(once, run, self._done_before)
        return replace(result, runs=runs)

    def _done_before(self, snapshot: Snapshot) -> CommitResult:
        return already_done(self.name, snapshot)

    def _change(self, prepare: Callable[[rows.Target], rows.Prepared], run: RunOptions) -> CommitResult:
        """Prepare an operation on the newest state and commit it; after a conflict again, if retries are allowed."""

        def once(target: rows.Target) -> CommitResult:
            return self._run(prepare(target).with_summary(run.summary), target.timer)

        result, runs = self._repeat(once, run, self._done_before)
        return replace(result, runs=runs)

    def _repeat(
        self, once: Callable[[rows.Target], R], run: RunOptions, done_before: Callable[[Snapshot], R]
    ) -> tuple[R, int]:
        def load() -> rows.Target:
            return self._target(run.branch, create_branch=run.create)

        def unless_committed(target: rows.Target) -> R:
            earlier = run.committed(target)
            if earlier is None:
                try:
                    return once(target)
                except ConflictError:  # the other commit may be that of the same change
                    earlier = run.committed(load())
                    if earlier is None:
                        raise
            return done_before(earlier)

        return run_again(unless_committed, load, retries=run.retries, source=run.source, env=self._env)

    def _run(self, prepared: rows.Prepared, timer: PhaseTimer) -> CommitResult:
        if prepared.update is None:
            result = prepared.nothing(self.name)
        else:
            result = prepared.result(self._commit(prepared.with_summary(self._settings.summary).steps))
        phases = timer.phases(commit=result.seconds)
        return replace(result, files_read=timer.files_read, files_skipped=timer.files_skipped, phases=phases)

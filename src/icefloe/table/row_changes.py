"""The operations of a table on its rows: every method prepares an operation and commits it as one snapshot."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from icefloe import rows
from icefloe.commit.idempotency import CommitKey, commit_key
from icefloe.commit.result import CommitResult
from icefloe.engines.choose import engine_of
from icefloe.engines.merge_plan import Merge
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.value.expressions import Value
from icefloe.model.metadata.snapshots import MAIN
from icefloe.rows.add_files import Partition
from icefloe.rows.schema_merge import SchemaMode
from icefloe.table.change_data import DELETED_COLUMN, change_data
from icefloe.table.held_table import HeldTable
from icefloe.table.merge_builder import MergeBuilder, MergeResult, merge_result
from icefloe.table.operation_runs import run_change

DeleteName = Literal["position", "equality"]


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
        change = rows.append(data, schema_mode=schema_mode, wap_id=wap_id)
        return self._run(change, branch, create_branch, retries, commit_key(idempotency_key, query, batch))

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
        change = rows.overwrite(data, where, overwrite_all=overwrite_all)
        return self._run(change, branch, create_branch, retries, commit_key(idempotency_key, query, batch))

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
        change = rows.overwrite_partitions(data)
        return self._run(change, branch, create_branch, retries, commit_key(idempotency_key, query, batch))

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
        return self._run(rows.delete(where, spark), branch, create_branch, retries, commit_key(idempotency_key))

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
        change = rows.update(changes, where, spark)
        return self._run(change, branch, create_branch, retries, commit_key(idempotency_key))

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
        change = rows.upsert(data, on, deletes=deletes)
        return self._run(change, branch, create_branch, retries, commit_key(idempotency_key, query, batch))

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
        key = commit_key(idempotency_key, query, batch)

        def run(merge: Merge, retries: int | None) -> MergeResult:
            started = time.perf_counter()
            landed, prepared = run_change(
                self, rows.merge(source, merge), branch, create_branch=create_branch, retries=retries, key=key
            )
            merged = None if prepared is None else prepared.merged
            return merge_result(landed, merged, seconds=time.perf_counter() - started)

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
        changes = change_data(
            data,
            self._pointer.load().metadata.schema,
            self._env,
            keys=keys,
            sequence_by=sequence_by,
            delete_when=delete_when,
            columns=columns,
            deleted_column=deleted_column,
        )
        merge = self.merge(
            changes.source,
            list(keys),
            branch=branch,
            create_branch=create_branch,
            idempotency_key=idempotency_key,
            query=query,
            batch=batch,
        )
        return changes.added_to(merge).execute(retries=retries)

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
        change = rows.add_files(paths, partition=partition, file_format=file_format)
        return self._run(change, branch, create_branch, retries=0)

    def _run(
        self,
        change: rows.RowChange,
        branch: str | None,
        create_branch: bool,
        retries: int | None = None,
        key: CommitKey | None = None,
    ) -> CommitResult:
        return run_change(self, change, branch, create_branch=create_branch, retries=retries, key=key)[0]

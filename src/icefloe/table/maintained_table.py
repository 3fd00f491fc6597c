"""The methods of a table that check, measure and maintain it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from icefloe.commit.operations.rewrite import RewriteManifests, partition_field_ids
from icefloe.engines.choose import engine_for
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.inspect.diff import Diff, diff_snapshots
from icefloe.maintenance.analyze import PartitionStatisticsResult, StatisticsResult, analyze, analyze_partitions
from icefloe.maintenance.compact.compaction_plan import CompactPlan, plan_compaction
from icefloe.maintenance.compact.rewrite_deletes import RewriteDeletesPlan, plan_rewrite_deletes
from icefloe.maintenance.compact.rewrite_manifests import RewriteManifestsPlan, plan_rewrite_manifests
from icefloe.maintenance.compact.run_compaction import execute_compaction
from icefloe.maintenance.expire import ExpirePlan, plan_expire
from icefloe.maintenance.health import Health, health_of
from icefloe.maintenance.orphans import OrphanPlan, plan_orphans
from icefloe.maintenance.relocate.relocation_plan import KeptSnapshots, Outside, RelocatePlan, plan_relocation
from icefloe.maintenance.verify.verify import VerifyResult, verify_table
from icefloe.model.metadata.snapshots import MAIN
from icefloe.model.text.text_checks import listed
from icefloe.progress import Progress, silent
from icefloe.scan.select import Point
from icefloe.table.held_table import HeldTable


class MaintainedTable(HeldTable):
    """Checks and figures of a table, its statistics, and plans that rewrite, remove or move its files.

    A plan shows what it would do, and why; its ``execute()`` does it.
    """

    def verify(
        self,
        snapshots: Literal["current", "all"] = "current",
        *,
        files: bool = False,
        rows: bool = False,
        progress: Progress = silent,
        spark: Any = None,
    ) -> VerifyResult:
        """Check that the table is sound, and report what is not, with the next step for each finding.

        By default the metadata of the newest state is checked: the metadata file, and the trees of all branches and
        tags. ``snapshots="all"`` checks every snapshot. ``files=True`` looks up every file in storage, with its length.
        ``rows=True`` reads the data files of these snapshots and compares rows with statistics, partitions, row ids and
        sort order; with a Spark session the tasks of Spark do it, file by file. Metadata, storage and repeated row ids
        are always checked in this process. What cannot be read is a finding; only a table that does not exist is an
        error.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.verify", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1, 2, 3]}))
        >>> result = t.verify(files=True, rows=True)
        >>> result.ok, result.findings, result.checked.rows
        (True, (), 3)
        """
        engine = engine_for(spark)
        return verify_table(self._pointer, engine, snapshots=snapshots, files=files, rows=rows, progress=progress)

    def health(self, storage: bool = False, *, spark: Any = None) -> Health:
        """Measure what makes the table slow or large: each finding says what it costs and which command improves it.

        Only metadata of the current snapshot is read. ``storage=True`` also lists the table's folder for files that
        nothing references, with a Spark session on Spark.

        >>> import icefloe, pyarrow as pa
        >>> cat = icefloe.catalog("docs", uri="memory://")
        >>> t = cat.create_table("docs.health", schema="id bigint", format_version=4)
        >>> for number in range(6):
        ...     result = t.append(pa.table({"id": [number]}))
        >>> health = t.health()
        >>> [(finding.name, finding.command, dict(finding.gain)) for finding in health.findings]
        [('small-files', 't.compact()', {'data_files': 1})]
        >>> health.figures.small_files
        6
        """
        return health_of(self._pointer.held(), engine_for(spark), now_ms=self._env.now_ms(), storage=storage)

    def diff(self, a: Point | None = None, b: Point | None = None) -> Diff:
        """The difference from snapshot ``a`` to snapshot ``b``: files, rows, bytes, columns, properties and refs.

        Each is a snapshot id, a tag, a branch or a time. ``b`` is by default the current snapshot, and ``a`` the parent
        of ``b``.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.diff", schema="id bigint")
        >>> first, second = (t.append(pa.table({"id": [number, number]})) for number in (1, 2))
        >>> result = t.tag("both")
        >>> diff = t.diff()
        >>> diff.files_added.num_rows, diff.rows_added, diff.rows_removed
        (1, 2, 0)
        >>> t.diff("both", first.snapshot_id).rows_removed
        2
        """
        return diff_snapshots(self._pointer.held(), a, b)

    def analyze(
        self,
        columns: Sequence[str] | None = None,
        *,
        snapshot: int | None = None,
        spark: Any = None,
        progress: Progress = silent,
    ) -> StatisticsResult:
        """Estimate how many distinct values columns have, and store it with a snapshot, by default the current one.

        ``columns`` are by default all top-level columns of single values; a field of a struct is named by its path.
        Nulls and empty texts are not counted. The sketches are stored in a statistics file of the table, where other
        programs find them; a file from before is replaced. No snapshot is made. With a Spark session, Spark reads the
        rows; the sketches are the same.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.analyze", schema="id bigint, city string")
        >>> result = t.append(pa.table({"id": [1, 2, 3], "city": ["Oslo", "Rome", "Oslo"]}))
        >>> t.analyze().distinct_values
        {'id': 3, 'city': 2}
        >>> t.metadata.statistics[0].snapshot_id == result.snapshot_id
        True
        """
        return analyze(
            self._pointer, engine_for(spark), self._env, columns=columns, snapshot=snapshot, progress=progress
        )

    def analyze_partitions(self, *, snapshot: int | None = None) -> PartitionStatisticsResult:
        """Sum up rows, files and deletes of each partition, and store it with a snapshot, by default the current one.

        Only metadata is read. The table gets a partition statistics file; one from before is replaced. No snapshot is
        made. ``t.inspect.partitions()`` computes similar totals when it is called, and stores nothing.

        >>> import icefloe, pyarrow as pa
        >>> cat = icefloe.catalog("docs", uri="memory://")
        >>> t = cat.create_table("docs.analyze_partitions", schema="id bigint, city string", partition_by=["city"])
        >>> result = t.append(pa.table({"id": [1, 2, 3], "city": ["Oslo", "Rome", "Oslo"]}))
        >>> t.analyze_partitions().partitions
        2
        """
        return analyze_partitions(self._pointer, self._env, snapshot=snapshot)

    def compact(
        self,
        where: str | Expr | None = None,
        strategy: str = "binpack",
        sort_by: str | Sequence[str] | None = None,
        zorder_by: str | Sequence[str] | None = None,
        options: Mapping[str, object] | None = None,
        *,
        branch: str | None = MAIN,
        spark: Any = None,
    ) -> CompactPlan:
        """Plan to rewrite small files, large files and files with many deleted rows; ``execute()`` does it.

        Considers the files that may contain rows matching ``where``. The strategy ``sort`` sorts rows by ``sort_by``,
        or by the table's sort order; ``zorder`` by the interleaved bits of the columns ``zorder_by``. ``options`` have
        the names and defaults of Apache Iceberg. With a Spark session the rows are rewritten on Spark.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.compact", schema="id bigint")
        >>> for number in range(5):
        ...     result = t.append(pa.table({"id": [number]}))
        >>> plan = t.compact()
        >>> plan.files_before, plan.files_after, plan.files["reason"][0].as_py()
        (5, 1, 'smaller than min-file-size-bytes')
        >>> result = plan.execute()
        >>> result.files_removed, result.files_added, t.scan().count()
        (5, 1, 5)
        """
        return plan_compaction(
            self.name,
            self._target(branch),
            engine_for(spark),
            lambda plan, progress: execute_compaction(plan, self._pointer, progress),
            where=parse_filter(where),
            strategy=strategy,
            sort_by=sort_by,
            zorder_by=zorder_by,
            options=options,
            is_parallel=spark is not None,
        )

    def rewrite_deletes(
        self, where: str | Expr | None = None, *, branch: str | None = MAIN, spark: Any = None
    ) -> RewriteDeletesPlan:
        """Plan to convert equality and position delete files to deletion vectors; ``execute()`` does it.

        Rows and row ids do not change.

        Version 2 has no deletion vectors: there each data file gets one position delete file. Considers the data files
        that may contain rows matching ``where``; without it, deletes that apply to no data file are removed too.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table(
        ...     "docs.rewrite_deletes", schema="id bigint", format_version=3)
        >>> result = t.append(pa.table({"id": [1, 2, 3]}))
        >>> result = t.upsert(pa.table({"id": [2]}), on=["id"], deletes="equality")
        >>> plan = t.rewrite_deletes()
        >>> plan.equality_files, plan.data_files
        (1, 1)
        >>> result = plan.execute()
        >>> result.equality_files_removed, result.vectors_added, t.scan().count()
        (1, 1, 3)
        """
        return plan_rewrite_deletes(
            self.name,
            self._pointer,
            lambda: self._target(branch),
            engine_for(spark),
            parse_filter(where),
            all_files=where is None,
        )

    def rewrite_manifests(self, cluster_by: Sequence[str] | None = None) -> RewriteManifestsPlan:
        """Plan to rewrite the manifests, sorted by partition and with the target size of the table.

        ``cluster_by`` names the partition fields to sort by first. The plan says why; ``execute()`` does it. If the
        manifests are in this form already, nothing is committed.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.rewrite_manifests", schema="id bigint")
        >>> for number in range(3):
        ...     result = t.append(pa.table({"id": [number]}))
        >>> plan = t.rewrite_manifests()
        >>> plan.manifests, plan.reasons
        (3, ('several manifests are smaller than 4194304 bytes on average',))
        >>> plan.execute().operation, t.scan().count()
        ('replace', 3)
        >>> t.rewrite_manifests().is_empty
        True
        """
        target = self._target(MAIN)
        fields = () if cluster_by is None else partition_field_ids(target.metadata, listed(cluster_by, "cluster_by"))
        return plan_rewrite_manifests(
            self.name, target, fields, lambda: self._commit(RewriteManifests(cluster_by=fields))
        )

    def expire(
        self,
        older_than: datetime | str | None = None,
        *,
        retain_last: int | None = None,
        snapshots: Iterable[int] | None = None,
        clean: bool = True,
        spark: Any = None,
    ) -> ExpirePlan:
        """Plan which snapshots expire, by the retention rules of branches, tags and table properties.

        ``older_than`` and ``retain_last`` replace the properties ``history.expire.max-snapshot-age-ms`` and
        ``history.expire.min-snapshots-to-keep``; without both, ``history.expire.max-snapshots-to-keep`` bounds the
        snapshots of each branch however young they are. ``snapshots`` are ids to expire, and then nothing else does.
        With ``clean=False`` the plan deletes no files. The plan prints what would be removed and why; ``execute()``
        does it. With a Spark session the files are found on Spark.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.expire", schema="id bigint")
        >>> for number in range(3):
        ...     result = t.append(pa.table({"id": [number]}))
        >>> plan = t.expire(older_than="2100-01-01T00:00:00+00:00")
        >>> len(plan.expired), plan.files.num_rows
        (2, 2)
        >>> result = plan.execute()
        >>> result.snapshots, result.manifests, t.scan().count()
        (2, 2, 3)
        """
        return plan_expire(
            self._pointer,
            self._env,
            engine_for(spark),
            older_than=older_than,
            retain_last=retain_last,
            snapshots=snapshots,
            clean=clean,
        )

    def remove_orphans(
        self,
        older_than: datetime | str | None = None,
        *,
        location: str | None = None,
        spark: Any = None,
        allow_recent: bool = False,
        max_share: float = 0.2,
    ) -> OrphanPlan:
        """Plan which files in the table's location are deleted, as no metadata references them.

        Only files last modified before ``older_than`` count, by default three days ago: a writer may be about to commit
        younger ones. Less than 24 hours is refused without ``allow_recent``. ``location`` is a folder of the table to
        look at. The plan is refused if more than ``max_share`` of the files would be deleted. ``execute()`` deletes
        them. With a Spark session the folder is listed and compared on Spark.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.orphans", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1]}))
        >>> plan = t.remove_orphans()
        >>> plan.files.num_rows, plan.execute().files
        (0, 0)
        """
        return plan_orphans(
            self._pointer,
            self._env,
            engine_for(spark),
            older_than=older_than,
            location=location,
            allow_recent=allow_recent,
            max_share=max_share,
        )

    def relocate(
        self,
        new_location: str,
        *,
        copy: bool = True,
        snapshots: KeptSnapshots = "all",
        outside: Outside = "refuse",
        switch: bool = True,
    ) -> RelocatePlan:
        """Plan to move the table to another folder or bucket; the files at the old location stay.

        ``execute()`` rewrites all metadata that contains locations, copies the other files, and switches the catalog
        entry. With ``copy=False`` another program copies the files in ``plan.copies`` first, and ``execute()`` checks
        them. ``snapshots="current"`` relocates only the snapshots that branches and tags name. Files outside the table
        are refused, or stay where they are with ``outside="keep"``. With ``switch=False`` the catalog entry stays.

        >>> import icefloe, tempfile, pyarrow as pa
        >>> folder = tempfile.mkdtemp()
        >>> cat = icefloe.catalog("demo", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")
        >>> t = cat.create_table("db.moved", schema="id bigint", data=pa.table({"id": [1, 2]}))
        >>> plan = t.relocate(f"file://{folder}/archive/moved")
        >>> plan.copies.num_rows, plan.manifests
        (1, 2)
        >>> plan.execute().switched, t.location == f"file://{folder}/archive/moved", t.scan().count()
        (True, True, 2)
        """
        return plan_relocation(
            self._pointer, new_location, copy=copy, snapshots=snapshots, outside=outside, switch=switch
        )

"""Methods of a table that check and measure it, and those that store what they measured as statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from icefloe.engines.choose import engine_for
from icefloe.inspect.diff import Diff, diff_snapshots
from icefloe.maintenance.health import Health, health_of
from icefloe.maintenance.statistics import PartitionStatisticsResult, StatisticsResult, analyze, analyze_partitions
from icefloe.maintenance.verify.verify import VerifyResult, verify_table
from icefloe.progress import Progress, silent
from icefloe.scan.select import Point
from icefloe.table.held_table import HeldTable


class Checks(HeldTable):
    """The methods of a table that check and measure it; they change nothing."""

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
        """Measure what makes the table slow or large: each finding says what it costs and which command mends it.

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


class Statistics(HeldTable):
    """Statistics of snapshots: distinct values of columns, and totals of partitions."""

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

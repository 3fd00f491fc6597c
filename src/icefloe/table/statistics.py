"""The methods of a table that compute statistics for the planners of queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icefloe.engines.choose import engine_for
from icefloe.maintenance.statistics import PartitionStatisticsResult, StatisticsResult, analyze, analyze_partitions
from icefloe.progress import Progress, silent
from icefloe.table.held_table import HeldTable


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

"""The methods of a table that rewrite its files and manifests without changing its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from icefloe.commit.operations.rewrite import RewriteManifests, partition_field_ids
from icefloe.engines.choose import engine_for
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.maintenance.compact.execute import execute_compaction
from icefloe.maintenance.compact.plan import CompactPlan, plan_compaction
from icefloe.maintenance.compact.rewrite_deletes import RewriteDeletesPlan, plan_rewrite_deletes
from icefloe.maintenance.compact.rewrite_manifests import RewriteManifestsPlan, plan_rewrite_manifests
from icefloe.model.metadata.snapshots import MAIN
from icefloe.model.text.text_checks import listed
from icefloe.table.held_table import HeldTable


class Compaction(HeldTable):
    """Compaction of data files, delete files and manifests."""

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

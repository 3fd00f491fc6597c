"""The methods of a table that delete what is no longer needed: each plans, and the plan is executed by the user."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from icefloe.engines.choose import engine_for
from icefloe.maintenance.expire import ExpirePlan, plan_expire
from icefloe.maintenance.orphans import OrphanPlan, plan_orphans
from icefloe.table.held_table import HeldTable


class Cleanup(HeldTable):
    """Expiry of snapshots, and removal of files that no snapshot references."""

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
        With ``clean=False`` the plan deletes no files. The plan prints what would go and why; ``execute()`` does it.
        With a Spark session the files are found on Spark.

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
        look at. The plan is refused if more than ``max_share`` of the files would go. ``execute()`` deletes the files.
        With a Spark session the folder is listed and compared on Spark.

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

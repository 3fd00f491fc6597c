"""Prunes the data manifests of large tables in Spark's tasks; the driver gets the files that may match.

The result is that of planning on the driver, in the same order. Tasks read the root of the snapshot themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, LongType, StructType

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.engines.spark.failures import marking, translated
from icefloe.engines.spark.storage import TaskStorage, task_storage
from icefloe.engines.spark.task_python import arrow_stream, map_in_arrow
from icefloe.errors import UnsupportedError
from icefloe.model.entries import ContentType, StatKeys
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.scan.prune import Candidates, DataRows, Pruner
from icefloe.tree.root import Root, read_root
from icefloe.tree.store import ManifestCache, ManifestStore

logger = logging.getLogger(__name__)

ENTRIES_MIN = 500_000  # in manifests that may match; fewer are pruned on the driver in less time
_TASKS_PER_CORE = 4
_RESULT = StructType().add("leaf", LongType()).add("skipped", LongType()).add("rows", BinaryType())


def data_rows_by_tasks(spark: SparkSession, snapshot: Snapshot | None) -> DataRows:
    """How to prune the data files of a scan: on the driver, or by tasks if they are many."""

    def data_rows(
        pruner: Pruner, store: ManifestStore, root: Root, data: Candidates, wanted: StatKeys | None
    ) -> pa.Table:
        entries = sum(0 if leaf.live_count is None else leaf.live_count for leaf in data.leaves)
        if snapshot is None or entries < ENTRIES_MIN or len(data.leaves) < 2:
            return pruner.data_rows(store, root, data, wanted)
        work = _LeafWork(
            storage=task_storage(store.io),
            context=store.context,
            snapshot=snapshot,
            pruner=pruner.untraced(),
            leaves=tuple(leaf.location for leaf in data.leaves),
            wanted=wanted,
        )
        count = min(len(data.leaves), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
        try:
            with translated():
                numbers = spark.range(0, len(data.leaves), 1, count)
                parts = map_in_arrow(numbers, work, _RESULT).toArrow().sort_by("leaf")
        except UnsupportedError as error:  # such as a Python of the executors without icefloe
            logger.warning("planning on the driver, because tasks cannot plan: %s", error)
            return pruner.data_rows(store, root, data, wanted)
        pruner.files_skipped += int(pc.sum(parts["skipped"]).as_py())
        rows = [pa.ipc.open_stream(part.as_buffer()).read_all() for part in parts["rows"]]
        return pruner.joined(data.rows, rows, wanted)

    return data_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _LeafWork:
    """What tasks do: read leaves by their numbers and return the data files that may match."""

    storage: TaskStorage
    context: ManifestContext
    snapshot: Snapshot
    pruner: Pruner
    leaves: tuple[str, ...]
    wanted: StatKeys | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For each leaf the number of files that were skipped, and the others as an Arrow stream."""
        with marking():
            store = ManifestStore(self.storage.open(), self.context, ManifestCache(0))
            root = read_root(store, self.snapshot)
            known = {leaf.location: leaf for leaf in root.leaves(ContentType.DATA_MANIFEST)}
            none = root.entries.slice(0, 0)
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    pruner = self.pruner.untraced()
                    leaf = (known[self.leaves[number]],)
                    data = Candidates(rows=pruner.keep_files(none, None), leaves=leaf, min_sequence_number=None)
                    rows = pruner.data_rows(store, root, data, self.wanted)
                    result = {"leaf": [number], "skipped": [pruner.files_skipped], "rows": [arrow_stream(rows)]}
                    yield pa.record_batch(result)

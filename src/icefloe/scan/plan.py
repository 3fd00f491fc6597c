"""Planning: from a snapshot and a filter to the files to read (spec: Scan Planning; V4 proposal).

Everything is columnar: the root's rows are pruned by statistics at once, the leaves that remain are read and pruned
the same way, and deletion vectors are attached with one lookup.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.index import attach_vectors, check_supported
from icefloe.errors import UnsupportedError
from icefloe.expr.bind import bind
from icefloe.expr.nodes import ALWAYS_TRUE, Bound, Expr
from icefloe.expr.stats_eval import Match, evaluate
from icefloe.model.entries import DELETES, ContentType, concat
from icefloe.model.metadata import TableMetadata
from icefloe.model.partitioning import PartitionField
from icefloe.model.schema import Schema
from icefloe.model.snapshots import Snapshot
from icefloe.scan.tasks import TASK, Plan
from icefloe.tree.root import Leaf, Root, leaves_of, live_rows, read_root
from icefloe.tree.store import ManifestStore


def plan_scan(
    store: ManifestStore,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    *,
    filter: Expr = ALWAYS_TRUE,
    columns: Sequence[str] | None = None,
) -> Plan:
    """The files of a snapshot that may hold rows matching ``filter``."""
    table_schema = metadata.schema if snapshot is None else read_schema(metadata, snapshot)
    schema = table_schema if columns is None else table_schema.select(tuple(columns))
    bound = bind(filter, table_schema)
    root = read_root(store, snapshot)
    pruner = _Pruner(bound, partition_fields(metadata))
    data = _data_rows(store, root, pruner)
    tasks = _tasks(attach_vectors(data, delete_rows(store, root) if data.num_rows > 0 else data.slice(0, 0)))
    return Plan(
        tasks=tasks,
        schema=schema,
        table_schema=table_schema,
        filter=bound,
        specs=metadata.specs,
        files_skipped=pruner.files_skipped,
        manifests_read=pruner.manifests_read,
        manifests_skipped=pruner.manifests_skipped,
    )


def read_schema(metadata: TableMetadata, snapshot: Snapshot) -> Schema:
    """Reading the head uses the current schema, time travel the schema of its time."""
    at_head = snapshot.snapshot_id == metadata.current_snapshot_id
    schema = metadata.schema if at_head else metadata.schema_of(snapshot)
    for name, field in schema.by_name.items():
        if field.initial_default is not None:
            # Rows written before the column came would read as null, which is not what the table says.
            raise UnsupportedError(f"column {name!r} has an initial default, which is not applied yet", field=name)
    return schema


def partition_fields(metadata: TableMetadata) -> tuple[PartitionField, ...]:
    """The partition fields of every spec the table has or had."""
    return tuple({field.field_id: field for spec in metadata.specs for field in spec.fields}.values())


def delete_rows(store: ManifestStore, root: Root) -> pa.Table:
    """Live delete rows of a snapshot, with the leaf each stands in."""
    found = [_from(root.rows(*DELETES), None)]
    for leaf in root.leaves(ContentType.DELETE_MANIFEST):
        found.append(_from(live_rows(store, root, leaf), leaf))
    rows = _concat(found)
    check_supported(rows)
    return rows


class _Pruner:
    """Evaluates one filter on entry tables, and counts what it dropped."""

    def __init__(self, bound: Bound, partitions: tuple[PartitionField, ...]) -> None:
        self._bound = bound
        self._partitions = partitions
        self.files_skipped = 0
        self.manifests_read = 0
        self.manifests_skipped = 0

    def match(self, rows: pa.Table) -> pa.Array:
        return evaluate(self._bound, rows, self._partitions)

    def keep_files(self, rows: pa.Table) -> pa.Table:
        match = self.match(rows)
        kept = rows.append_column("match", match).filter(pc.not_equal(match, int(Match.NONE)))
        self.files_skipped += rows.num_rows - kept.num_rows
        return kept

    def keep_leaves(self, root: Root) -> tuple[Leaf, ...]:
        rows = root.rows(ContentType.DATA_MANIFEST)
        kept = rows.filter(pc.not_equal(self.match(rows), int(Match.NONE)))
        leaves = tuple(leaf for leaf in leaves_of(kept) if not root.is_dead(leaf))
        self.manifests_read += len(leaves)
        self.manifests_skipped += rows.num_rows - len(leaves)
        return leaves


def _data_rows(store: ManifestStore, root: Root, pruner: _Pruner) -> pa.Table:
    found = [_from(pruner.keep_files(root.rows(ContentType.DATA)), None)]
    for leaf in pruner.keep_leaves(root):
        found.append(_from(pruner.keep_files(live_rows(store, root, leaf)), leaf))
    return _concat(found)


def _from(rows: pa.Table, leaf: Leaf | None) -> pa.Table:
    """The rows with the leaf they come from; a row of the root has none."""
    manifest = pa.nulls(rows.num_rows, pa.string()) if leaf is None else pa.repeat(leaf.location, rows.num_rows)
    return rows.append_column(pa.field("manifest", pa.string()), manifest)


def _concat(parts: list[pa.Table]) -> pa.Table:
    return concat(parts).combine_chunks()


def _tasks(rows: pa.Table) -> pa.Table:
    statistics = [name for name in rows.column_names if ":" in name]
    return rows.select([*TASK.names, *statistics])

"""Rewrites all leaves of a tree, sorted by partition and in the target size of the table (spec: Manifests).

In a V4 table this converts leaves of older versions. Leaves with position delete files, which version 2 wrote, are kept
as they are until their deletes have been converted to deletion vectors (V4 proposal).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import (
    BOUNDS,
    MANIFESTS,
    ContentType,
    Status,
    choose,
    concat,
    live,
    of_type,
    partition_key,
    stat,
)
from icefloe.model.metadata.properties import LEAF_TARGET_SIZE, MERGE_TARGET_SIZE
from icefloe.model.metadata.version_rules import rules
from icefloe.tree.delete_leaf_affinity import data_leaves_among, split_by_data_leaf, with_current_affinity
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.root import Root, leaves_of, read_live_leaves, with_status
from icefloe.tree.staging import empty_leaf_size, sorted_by_partition
from icefloe.tree.store import ManifestStore

_LARGE = 2  # target sizes from which on a leaf is split


def rewrite_leaves(writer: LeafWriter, root: Root) -> pa.Table:
    """The rows of a root with rewritten leaves; all rows of ``root`` are live."""
    root_holds_files = rules(writer.store.context.format_version).root_holds_files
    rows = root.entries
    data = _live_entries(writer, root, ContentType.DATA_MANIFEST)
    deletes = _live_entries(writer, root, ContentType.DELETE_MANIFEST)
    kept_leaves = [
        location for location, entries in deletes.items() if root_holds_files and _has_position_files(entries)
    ]
    deletes = {location: entries for location, entries in deletes.items() if location not in kept_leaves}
    write = writer.write_existing if root_holds_files else writer.write_merged
    written = [row for part in _by_spec(writer, data) for row in write(part, ContentType.DATA_MANIFEST)]
    if root_holds_files:
        written += _write_by_affinity(writer, deletes, written)
    else:
        written += [row for part in _by_spec(writer, deletes) for row in write(part, ContentType.DELETE_MANIFEST)]
    # A manifest deletion vector is kept with its leaf.
    leaf = pc.if_else(of_type(rows, ContentType.MANIFEST_DV), rows["referenced_file"], rows["location"])
    is_leaf = of_type(rows, *MANIFESTS, ContentType.MANIFEST_DV)
    kept = choose(rows, pc.or_(pc.invert(is_leaf), pc.is_in(leaf, value_set=pa.array(kept_leaves, pa.string()))))
    return with_current_affinity(concat([with_status(kept, Status.EXISTING), *written]), {})


def reasons_to_rewrite(
    store: ManifestStore, root: Root, properties: Mapping[str, str], cluster_by: tuple[int, ...] = ()
) -> tuple[str, ...]:
    """What a rewrite would change about the leaves of a root, in words; none if it would leave them as they are.

    Without a reason all entries of leaves are live, leaves have about the target size or are the only one of their
    kind, and their partitions do not overlap. A rewrite would only turn ADDED into EXISTING then.
    """
    rules_ = rules(store.context.format_version)
    leaves = live_leaves(root)
    if leaves.num_rows == 0:
        return ()
    data = choose(leaves, of_type(leaves, ContentType.DATA_MANIFEST))
    target = _target(store, properties)
    removed, versions = leaves["deleted_files_count"], pc.unique(leaves["format_version"]).to_pylist()
    reasons = {
        "manifests list removed files": len(root.dead) > 0 or pc.any(pc.not_equal(removed, 0)).as_py() is True,
        "manifests have no counts": removed.null_count > 0,
        "manifests have no row ids": rules_.row_lineage and data["first_row_id"].null_count > 0,
        "manifests have an older form": rules_.root_holds_files and versions != [store.context.format_version],
        f"several manifests are smaller than {target // 2} bytes on average": _are_small(leaves, target),
        f"manifests are larger than {_LARGE * target} bytes": large_leaves(store, leaves, properties) > 0,
        "partitions of manifests overlap": _overlap(data, store, cluster_by),
    }
    return tuple(reason for reason, holds in reasons.items() if holds)


def live_leaves(root: Root) -> pa.Table:
    """The live rows of leaves."""
    return choose(root.entries, pc.and_(of_type(root.entries, *MANIFESTS), live(root.entries)))


def _are_small(leaves: pa.Table, target: int) -> bool:
    kinds = leaves.group_by(["content_type", "partition_spec_id", "referenced_file"]).aggregate(
        [("file_size_in_bytes", "sum"), ([], "count_all")]
    )
    small = pc.less(kinds["file_size_in_bytes_sum"], pc.multiply(kinds["count_all"], target // 2))
    return pc.any(pc.and_(pc.greater(kinds["count_all"], 1), small)).as_py() is True


def large_leaves(store: ManifestStore, leaves: pa.Table, properties: Mapping[str, str]) -> int:
    """How many leaves a rewrite splits: those whose entries take much more than the target size."""
    limit = _LARGE * _target(store, properties)
    entries = pc.add(leaves["added_files_count"], leaves["existing_files_count"])
    large = leaves.filter(pc.and_(pc.greater(leaves["file_size_in_bytes"], limit), pc.greater(entries, 1)))
    found, kind = 0, ["content_type", "partition_spec_id"]
    for content, spec_id in zip(*large.group_by(kind).aggregate([]).to_pydict().values(), strict=True):
        same = pc.and_(pc.equal(large["content_type"], content), pc.equal(large["partition_spec_id"], spec_id))
        fixed = empty_leaf_size(store, ContentType(content), spec_id)
        found += int(pc.sum(pc.and_(same, pc.greater(large["file_size_in_bytes"], limit + fixed))).as_py())
    return found


def _target(store: ManifestStore, properties: Mapping[str, str]) -> int:
    """The target size of a leaf, in bytes."""
    holds_files = rules(store.context.format_version).root_holds_files
    return (LEAF_TARGET_SIZE if holds_files else MERGE_TARGET_SIZE).of(properties)


def _overlap(leaves: pa.Table, store: ManifestStore, cluster_by: tuple[int, ...]) -> bool:
    """Whether two data leaves of one spec have overlapping ranges of the first partition field that is sorted by."""
    first = next(iter((*cluster_by, *store.context.partition_fields)), None)
    if first is None:
        return False
    lower, upper = (stat(measure, partition_key(first)) for measure in BOUNDS)
    if lower not in leaves.column_names or upper not in leaves.column_names:
        return False
    ordered = leaves.select(["partition_spec_id", lower, upper]).drop_null()
    ordered = ordered.sort_by([("partition_spec_id", "ascending"), (lower, "ascending"), (upper, "ascending")])
    if ordered.num_rows < 2:
        return False
    ends, starts = ordered.slice(0, ordered.num_rows - 1), ordered.slice(1)
    same_spec = pc.equal(ends["partition_spec_id"], starts["partition_spec_id"])
    return pc.any(pc.and_(same_spec, pc.greater(ends[upper], starts[lower]))).as_py() is True


def _live_entries(writer: LeafWriter, root: Root, content: ContentType) -> dict[str, pa.Table]:
    """The live entries of all leaves of a content type, by leaf."""
    leaves = tuple(leaves_of(choose(root.entries, of_type(root.entries, content))))
    entries = read_live_leaves(writer.store, root, leaves)
    return {leaf.location: with_status(rows, Status.EXISTING) for leaf, rows in zip(leaves, entries, strict=True)}


def _has_position_files(rows: pa.Table) -> bool:
    files = pc.and_(of_type(rows, ContentType.POSITION_DELETES), pc.is_null(rows["dv_offset"]))
    return pc.any(files).as_py() is True


def _by_spec(writer: LeafWriter, leaves: Mapping[str, pa.Table]) -> Iterator[pa.Table]:
    """The entries of each partition spec, sorted by partition."""
    rows = concat(list(leaves.values()))
    for spec_id in pc.unique(rows["partition_spec_id"]).sort().to_pylist():
        chosen = choose(rows, pc.equal(rows["partition_spec_id"], spec_id))
        yield sorted_by_partition(chosen, writer.store, writer.cluster_by)


def _write_by_affinity(writer: LeafWriter, deletes: Mapping[str, pa.Table], data: list[pa.Table]) -> list[pa.Table]:
    """Write delete leaves, separated by the new data leaf that their vectors belong to; their root rows."""
    if len(deletes) == 0:
        return []
    leaves = tuple(leaves_of(concat(data)))
    entries = read_live_leaves(writer.store, Root(), leaves, frozenset())
    files = {leaf.location: rows.select(["location"]) for leaf, rows in zip(leaves, entries, strict=True)}
    written: list[pa.Table] = []
    for rows in _by_spec(writer, deletes):
        for part, affinity in split_by_data_leaf(rows, data_leaves_among(rows, files)):
            written += writer.write_existing(part, ContentType.DELETE_MANIFEST, affinity=affinity)
    return written

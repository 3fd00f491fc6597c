"""Completes the rows of older manifests for a new root (spec: Manifest Lists).

Manifest lists of version 1 need not record file and row counts, and neither do lists that other writers derived from
them. From version 2 on the counts are required, so such manifests are read once to count their entries. Counts that
other writers recorded wrongly are corrected when V4 deletes the first row of a manifest: the number of remaining rows
then decides whether the manifest is kept. A manifest list does not say the format versions of its manifests, which a V4
root does: the first root of V4 gets them from the headers of the manifests.

Data manifests from before a table had row lineage get a first row id, and their files the ids that follow. This needs
the row count of every file. The sums in manifest lists are not reliable, because they may leave out files with unknown
row counts, so such manifests are read once. A manifest of files with unknown row counts is rewritten, with the counts
read from the files.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.manifest_summary import manifest_row
from icefloe.model.entries import (
    MANIFEST_COUNTS,
    MANIFESTS,
    ContentType,
    StatKeys,
    Status,
    choose,
    concat,
    live,
    of_type,
    put,
)
from icefloe.model.metadata.version_rules import CONTENT_ENTRY_VERSIONS, rules
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.root import Leaf, leaves_of, read_leaf, read_leaves, with_status
from icefloe.tree.store import NO_STATISTICS, ManifestStore

_KEPT = ("file_format", "format_version", "status", "key_metadata", "referenced_file", "first_row_id", "ordinal")


def completed(store: ManifestStore, rows: pa.Table) -> pa.Table:
    """The rows of a root, in order, with the counts and, in V4, the format versions that rows of manifests lack.

    Rows of manifests without entries are dropped.
    """
    needed = rules(store.context.format_version)
    if needed.sequence_numbers and rows.num_rows > 0:
        rows = _with_counts(store, rows)
    return _with_versions(store, rows) if needed.root_holds_files else rows


def _with_counts(store: ManifestStore, rows: pa.Table) -> pa.Table:
    missing = pc.is_null(rows["record_count"])
    for field in MANIFEST_COUNTS:
        if rows[field.name].null_count > 0:
            missing = pc.or_(missing, pc.is_null(rows[field.name]))
    missing = pc.and_(missing, of_type(rows, *MANIFESTS))
    if pc.any(missing).as_py() is not True:
        return rows
    incomplete = rows.filter(missing)
    counted = [_counted(store, leaf, incomplete.slice(index, 1)) for index, leaf in enumerate(leaves_of(incomplete))]
    return concat([choose(rows, pc.invert(missing)), *counted]).sort_by("ordinal")


def _with_versions(store: ManifestStore, rows: pa.Table) -> pa.Table:
    """The rows with the format versions of Avro manifests."""
    missing = pc.and_(pc.is_null(rows["format_version"]), pc.equal(rows["file_format"], "avro"))
    missing = pc.and_(missing, of_type(rows, *MANIFESTS))
    if pc.any(missing).as_py() is not True:
        return rows
    chosen = rows.filter(missing)
    found = store.avro_versions(chosen["location"].to_pylist(), chosen["file_size_in_bytes"].to_pylist())
    versions = pc.replace_with_mask(
        rows["format_version"].combine_chunks(), missing.combine_chunks(), pa.array(found, pa.int32())
    )
    return put(rows, "format_version", versions)


def with_exact_counts(store: ManifestStore, rows: pa.Table, leaves: Sequence[str]) -> pa.Table:
    """The rows of a root, in order, with counts of these manifests corrected; counts of V4 manifests are exact."""
    exact = pc.is_in(rows["format_version"], value_set=pa.array(CONTENT_ENTRY_VERSIONS, pa.int32()))
    chosen = pc.and_(of_type(rows, *MANIFESTS), pc.is_in(rows["location"], value_set=pa.array(leaves, pa.string())))
    chosen = pc.and_(chosen, pc.invert(exact))
    if pc.any(chosen).as_py() is not True:
        return rows
    old = rows.filter(chosen)
    corrected: list[pa.Table] = []
    for index, leaf in enumerate(leaves_of(old)):
        row = old.slice(index, 1)
        counted = _counted(store, leaf, row, NO_STATISTICS)
        for name in ("record_count", *(field.name for field in MANIFEST_COUNTS)):
            row = put(row, name, counted[name])
        corrected.append(row)
    return concat([rows.filter(pc.invert(chosen)), *corrected]).sort_by("ordinal")


def _counted(store: ManifestStore, leaf: Leaf, row: pa.Table, wanted: StatKeys | None = None) -> pa.Table:
    """The row of one manifest, with the counts and at least the wanted statistics of its entries."""
    entries = read_leaf(store, leaf, wanted)
    if entries.num_rows == 0:
        return row.slice(0, 0)
    counted = manifest_row(
        entries,
        store.context,
        location=leaf.location,
        size=row["file_size_in_bytes"][0].as_py(),
        content=leaf.content,
        status=Status.EXISTING,
        snapshot_id=leaf.snapshot_id,
        sequence_number=leaf.sequence_number,
    )
    for name in _KEPT:
        counted = put(counted, name, row[name].combine_chunks())
    return counted


def with_first_row_ids(writer: LeafWriter, rows: pa.Table) -> pa.Table:
    """The rows of a root, in order, with first row ids for data manifests that have none."""
    missing = pc.and_(of_type(rows, ContentType.DATA_MANIFEST), pc.is_null(rows["first_row_id"]))
    if writer.ids.next is None or pc.any(missing).as_py() is not True:
        return rows
    chosen = rows.filter(missing)
    leaves = tuple(leaves_of(chosen))
    numbered: list[pa.Table] = []
    for index, entries in enumerate(read_leaves(writer.store, leaves, NO_STATISTICS)):
        row_counts = choose(entries, live(entries))["record_count"]
        row = chosen.slice(index, 1)
        if row_counts.null_count > 0:
            numbered += _rewritten(writer, leaves[index], row)
        else:
            first = writer.ids.take(pc.sum(row_counts, min_count=0).as_py())
            numbered.append(put(row, "first_row_id", first))
    return concat([choose(rows, pc.invert(missing)), *numbered]).sort_by("ordinal")


def _rewritten(writer: LeafWriter, leaf: Leaf, row: pa.Table) -> list[pa.Table]:
    """The root rows of rewritten leaves, whose files have row counts and row ids."""
    entries = read_leaf(writer.store, leaf)
    live_entries = with_status(choose(entries, live(entries)), Status.EXISTING)
    written = writer.write_existing(live_entries, ContentType.DATA_MANIFEST)
    return [put(new, "ordinal", row["ordinal"].combine_chunks()) for new in written]

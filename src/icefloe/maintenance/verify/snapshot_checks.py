"""Checks of a snapshot as a whole: the rows of its root, its live files and deletes, how they came from its parent.

(spec: Snapshots, Manifests, Position Delete Files, Equality Delete Files; V4 proposal)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.deletes.delete_index import DeleteOutcome, attach_deletes
from icefloe.errors import IcefloeError
from icefloe.maintenance.verify.findings import Finding, Rule, Severity, broken, finding, problem_of
from icefloe.model.columns import one_array
from icefloe.model.counts import Counts
from icefloe.model.entries import (
    DELETES,
    MANIFESTS,
    ContentType,
    Measure,
    Status,
    choose,
    column_key,
    count,
    known_measures,
    live,
    of_type,
    partition_key,
    stat,
    stat_keys,
    total,
)
from icefloe.model.location_columns import index_of, respelled
from icefloe.model.metadata.snapshots import Operation, Snapshot, SummaryKey
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.transform_names import IDENTITY
from icefloe.tree.root import Leaf, Root

_CARRIED = ("snapshot_id", "sequence_number", "file_sequence_number", "record_count", "partition_spec_id")
_TOTALS = (
    SummaryKey.TOTAL_DATA_FILES,
    SummaryKey.TOTAL_RECORDS,
    SummaryKey.TOTAL_DELETE_FILES,
    SummaryKey.TOTAL_POSITION_DELETES,
    SummaryKey.TOTAL_EQUALITY_DELETES,
    SummaryKey.TOTAL_FILES_SIZE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A snapshot as it was read: its root, its leaves with all their rows, and its live files.

    ``files`` has a column ``manifest``, the leaf of each file, null for those of the root, and ``key``, by which a
    file, or a deletion vector among others in its file, is known.
    """

    snapshot: Snapshot
    where: str
    root: Root
    leaves: tuple[tuple[Leaf, pa.Table], ...]
    files: pa.Table
    is_whole: bool = True  # whether all leaves could be read

    def of(self, *types: ContentType) -> pa.Table:
        """The live files of some kinds."""
        return choose(self.files, of_type(self.files, *types))


def with_keys(files: pa.Table) -> pa.Table:
    """The rows with the column ``key``."""
    offset = pc.fill_null(files["dv_offset"].cast(pa.string()), "")
    kind = files["content_type"].cast(pa.string())
    return files.append_column("key", pc.binary_join_element_wise(kind, offset, files["location"], " "))


def check_root(view: View, *, files_in_root: bool) -> Iterator[Finding]:
    """Statuses and sequence numbers of a root's rows, and its manifests."""
    rows, snapshot, where = view.root.entries, view.snapshot, view.where
    own = pc.equal(rows["snapshot_id"], snapshot.snapshot_id)
    old = pc.equal(rows["status"], int(Status.EXISTING))
    rule = Rule.STATUS
    if files_in_root:
        stale = pc.and_(pc.invert(old), pc.invert(own))
        yield from broken(rule, where, stale, "ADDED or DELETED by another snapshot, so it must be EXISTING or absent")
        new = pc.and_(pc.and_(old, own), pc.invert(of_type(rows, *MANIFESTS)))
        yield from broken(rule, where, new, "came with this snapshot, so it must be ADDED")
        if snapshot.parent_id is None:
            yield from broken(rule, where, pc.invert(live(rows)), "DELETED in a snapshot that has no parent")
        added = pc.and_(pc.equal(rows["status"], int(Status.ADDED)), pc.invert(of_type(rows, *MANIFESTS)))
        early = pc.and_(added, pc.not_equal(rows["file_sequence_number"], snapshot.sequence_number))
        message = f"ADDED, but not with the snapshot's sequence number {snapshot.sequence_number}"
        yield from broken(Rule.SEQUENCE_NUMBERS, where, early, message)
    yield from _sequence(where, rows, snapshot.sequence_number)
    manifests = rows.filter(pc.and_(of_type(rows, *MANIFESTS), live(rows)))
    yield from _twice(where, manifests["location"], manifests["ordinal"], "a manifest comes twice")
    vectors = rows.filter(pc.and_(of_type(rows, ContentType.MANIFEST_DV), live(rows)))
    specs = {leaf.location: leaf.spec_id for leaf, _ in view.leaves}
    expected = pa.array([specs.get(target) for target in vectors["referenced_file"].to_pylist()], pa.int32())
    other = pc.not_equal(vectors["partition_spec_id"], expected)
    yield from broken(Rule.MANIFEST_VECTORS, where, other, "has another spec than its manifest", vectors["ordinal"])


def _sequence(where: str, rows: pa.Table, latest: int) -> Iterator[Finding]:
    data, file = rows["sequence_number"], rows["file_sequence_number"]
    rule, places = Rule.SEQUENCE_NUMBERS, rows["ordinal"]
    late = pc.or_(pc.greater(data, latest), pc.greater(file, latest))
    yield from broken(rule, where, late, f"its sequence number is later than the snapshot's {latest}", places)
    yield from broken(rule, where, pc.greater(data, file), "sequence_number is later than file_sequence_number", places)


def _twice(where: str, names: pa.ChunkedArray, places: pa.ChunkedArray | None, message: str) -> Iterator[Finding]:
    counts = pc.value_counts(names)
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    if len(twice) > 0:
        yield from broken(Rule.UNIQUE, where, pc.is_in(names, value_set=twice), message, places)


def _contradictory_counts(view: View) -> Iterator[Finding]:
    """Counts that cannot be true together. Filters ignore them here; other programs may skip the files."""
    for key in (key for key in stat_keys(view.files) if not key.is_partition):
        wrong = Counts.of(known_measures(view.files, key)).contradictions(None, whole=False)
        if wrong is None:
            continue
        files = view.files["location"].filter(wrong)
        if len(files) > 0:
            message = f"the counts of column {key} contradict each other, in {len(files)} files"
            rule, location = Rule.VALUE_COUNTS, str(files[0])
            yield finding(rule=rule, location=location, message=message, severity=Severity.WARNING)


def check_files(view: View, metadata: TableMetadata) -> Iterator[Finding]:
    """Check the live files: no file twice, no overlapping row ids, and deletes that fit their data files."""
    where = view.where
    data = view.of(ContentType.DATA)
    yield from _twice(where, data["location"], data["ordinal"], "a data file comes twice")
    deletes = view.of(*DELETES)
    yield from _twice(where, deletes["key"], deletes["ordinal"], "a delete file or deletion vector comes twice")
    yield from _sequence(where, view.files, view.snapshot.sequence_number)
    yield from _row_ids(view, data, metadata)
    orders = pa.array([order.order_id for order in metadata.sort_orders], data["sort_order_id"].type)
    unknown = pc.and_(data["sort_order_id"].is_valid(), pc.invert(pc.is_in(data["sort_order_id"], value_set=orders)))
    yield from broken(Rule.SORT_ORDER, where, unknown, "its sort_order_id is that of no sort order", data["ordinal"])
    yield from _cut_values(view, metadata)
    yield from _contradictory_counts(view)
    yield from _vectors(view, data, metadata)
    yield from _equality(view, metadata)
    yield from _affinity(view, data)


def _row_ids(view: View, data: pa.Table, metadata: TableMetadata) -> Iterator[Finding]:
    snapshot, rule = view.snapshot, Rule.ROW_IDS
    if snapshot.first_row_id is None:
        return
    yield from broken(rule, view.where, pc.is_null(data["first_row_id"]), "a data file has no row ids", data["ordinal"])
    known = data.filter(pc.is_valid(data["first_row_id"])).sort_by("first_row_id")
    first = np.asarray(known["first_row_id"])
    ends = first + np.asarray(pc.fill_null(known["record_count"], 0))
    if len(ends) == 0:
        return
    before = np.concatenate(([0], np.maximum.accumulate(ends)[:-1]))
    yield from broken(
        rule, view.where, pa.array(first < before), "its row ids overlap another file's", known["ordinal"]
    )
    if ends.max() > metadata.next_row_id:
        message = f"row ids up to {ends.max() - 1} are given, next-row-id is {metadata.next_row_id}"
        yield finding(rule=rule, location=view.where, message=message)
    end = snapshot.first_row_id + (snapshot.added_rows or 0)
    own = np.asarray(pc.equal(known["snapshot_id"], snapshot.snapshot_id))
    outside = own & ((first < snapshot.first_row_id) | (ends > end))
    message = f"its row ids are not among those of its snapshot, {snapshot.first_row_id} to {end - 1}"
    yield from broken(rule, view.where, pa.array(outside), message, known["ordinal"])


def _vectors(view: View, data: pa.Table, metadata: TableMetadata) -> Iterator[Finding]:
    """Check the entries of deletion vectors, without reading the bitmaps."""
    rule, where = Rule.DELETION_VECTORS, view.where
    rows = view.of(ContentType.POSITION_DELETES)
    rows = rows.filter(pc.is_valid(rows["dv_offset"]))
    if rows.num_rows == 0:
        return
    named = respelled(rows["referenced_file"], data["location"], metadata.location)
    place = pc.index_in(named, value_set=data["location"].combine_chunks())
    yield from broken(rule, where, pc.is_null(place), "its data file is not live", rows["ordinal"])
    counts = pc.value_counts(named)
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    several = pc.is_in(named, value_set=twice)
    yield from broken(rule, where, several, "its data file has another deletion vector", rows["ordinal"])
    target = data.take(one_array(place))
    for wrong, message in (
        (pc.greater(rows["record_count"], target["record_count"]), "deletes more rows than its data file has"),
        (pc.less(rows["sequence_number"], target["sequence_number"]), "is older than its data file"),
        (pc.not_equal(rows["partition_spec_id"], target["partition_spec_id"]), "has another spec than its data file"),
        (pc.less_equal(rows["record_count"], 0), "deletes nothing"),
    ):
        yield from broken(rule, where, wrong, message, rows["ordinal"])
    for wrong, message in partition_differences(rows, target, place, metadata):
        yield from broken(rule, where, wrong, message, rows["ordinal"])


def partition_differences(
    rows: pa.Table, targets: pa.Table, place: pa.Array, metadata: TableMetadata
) -> Iterator[tuple[pa.Array, str]]:
    """Which delete rows have another partition than their data files, field by field; ``place`` is null without one."""
    for name in (stat(Measure.LOWER, partition_key(f.field_id)) for spec in metadata.specs for f in spec.fields):
        if name in rows.column_names:
            mine, its = rows[name], targets[name]
            differs = pc.or_kleene(pc.not_equal(mine, its), pc.xor(mine.is_null(), its.is_null()))
            yield pc.and_(differs, pc.is_valid(place)), f"{name} is not that of its data file"


def _cut_values(view: View, metadata: TableMetadata) -> Iterator[Finding]:
    """The value of an identity partition is stored as the bounds of its column, and must be whole."""
    for spec in metadata.specs:
        for field in spec.fields:
            name = stat(Measure.TIGHT, column_key(field.source_id))
            if field.transform == IDENTITY and name in view.files.column_names:
                mine = pc.equal(view.files["partition_spec_id"], spec.spec_id)
                cut = pc.and_(mine, pc.fill_null(pc.invert(view.files[name]), False))
                message = f"the value of partition field {field.name!r} is cut: its bounds are not tight"
                yield from broken(Rule.PARTITIONS, view.where, cut, message, view.files["ordinal"])


def _equality(view: View, metadata: TableMetadata) -> Iterator[Finding]:
    rows = view.of(ContentType.EQUALITY_DELETES)
    if rows.num_rows == 0:
        return
    known = pa.array(list(metadata.types), pa.int32())
    ids = rows["equality_ids"].combine_chunks()
    strange = pc.list_parent_indices(ids).filter(pc.invert(pc.is_in(pc.list_flatten(ids), value_set=known)))
    wrong = np.asarray(pc.fill_null(pc.equal(pc.list_value_length(ids), 0), True)).copy()
    wrong[np.asarray(strange)] = True
    message = "its equality_ids are no columns of the table"
    yield from broken(Rule.EQUALITY_DELETES, view.where, pa.array(wrong), message, rows["ordinal"])


def _affinity(view: View, data: pa.Table) -> Iterator[Finding]:
    """A delete leaf that belongs to a data leaf deletes from the files of that leaf alone."""
    leaves = {leaf.location: leaf for leaf, _ in view.leaves}
    for leaf, _ in view.leaves:
        if leaf.affinity is None:
            continue
        other = leaves.get(leaf.affinity)
        if other is None or not other.is_data:
            message = f"{leaf.location} belongs to {leaf.affinity}, which is no data manifest of this root"
            yield finding(rule=Rule.AFFINITY, location=view.where, message=message)
            continue
        mine = view.files.filter(pc.equal(view.files["manifest"], leaf.location))
        targets = data.filter(pc.equal(data["manifest"], leaf.affinity))["location"].combine_chunks()
        strange = pc.invert(pc.is_in(mine["referenced_file"], value_set=targets))
        message = f"its data file is not in {leaf.affinity}, which its manifest belongs to"
        yield from broken(Rule.AFFINITY, leaf.location, strange, message, mine["ordinal"])


def check_summary(view: View, changes: pa.Table | None) -> Iterator[Finding]:
    """Check the summary: totals, and counts of changes; absent keys are not checked."""
    expected = _totals(view)
    if changes is not None:
        expected |= _counts(changes)
    for message in _operation(view.snapshot, expected):
        yield finding(rule=Rule.SUMMARY, location=view.where, message=message)
    for key, number in expected.items():
        recorded = view.snapshot.summary.get(key)
        if recorded is not None and recorded != str(number):
            message = f"snapshot {view.snapshot.snapshot_id}: {key} is {recorded}, the tree says {number}"
            yield finding(rule=Rule.SUMMARY, location=view.where, message=message)


def _operation(snapshot: Snapshot, counts: Mapping[str, int]) -> Iterator[str]:
    """What is wrong with the operation; version 1 may leave out the summary."""
    operation, name = snapshot.summary.get(SummaryKey.OPERATION), f"snapshot {snapshot.snapshot_id}"
    if len(snapshot.summary) > 0 and operation not in [str(known) for known in Operation]:
        yield f"{name}: operation is {operation!r}, which is none of {', '.join(Operation)}"
    if operation == Operation.APPEND and counts.get(SummaryKey.DELETED_DATA_FILES, 0) > 0:
        yield f"{name}: operation is append, and data files were removed"
    if operation == Operation.DELETE and counts.get(SummaryKey.ADDED_DATA_FILES, 0) > 0:
        yield f"{name}: operation is delete, and data files were added"


def _totals(view: View) -> dict[str, int]:
    data, deletes = view.of(ContentType.DATA), view.of(*DELETES)
    positions, values = view.of(ContentType.POSITION_DELETES), view.of(ContentType.EQUALITY_DELETES)
    # Deletion vectors share a file, so each counts with the size of its own blob.
    sizes = pc.coalesce(view.files["dv_size_in_bytes"], view.files["file_size_in_bytes"])
    totals = (
        data.num_rows,
        total(data, "record_count"),
        deletes.num_rows,
        total(positions, "record_count"),
        total(values, "record_count"),
        int(pc.sum(sizes, min_count=0).as_py()),
    )
    return {str(key): number for key, number in zip(_TOTALS, totals, strict=True)}


def _counts(changes: pa.Table) -> dict[str, int]:
    added = pc.equal(changes["status"], int(Status.ADDED))
    data = of_type(changes, ContentType.DATA)
    counts: dict[str, int] = {}
    for key, mask in (
        (SummaryKey.ADDED_DATA_FILES, pc.and_(added, data)),
        (SummaryKey.DELETED_DATA_FILES, pc.and_(pc.invert(added), data)),
        (SummaryKey.ADDED_DELETE_FILES, pc.and_(added, pc.invert(data))),
        (SummaryKey.REMOVED_DELETE_FILES, pc.and_(pc.invert(added), pc.invert(data))),
    ):
        counts[str(key)] = count(mask)
    counts[str(SummaryKey.ADDED_RECORDS)] = total(changes.filter(pc.and_(added, data)), "record_count")
    gone = changes.filter(pc.and_(pc.invert(added), data))
    counts[str(SummaryKey.DELETED_RECORDS)] = total(gone, "record_count")
    return counts


def check_changes(view: View, parent: View | None, changes: pa.Table) -> Iterator[Finding]:
    """Check that the changes in a tree are the difference between its live files and those of its parent."""
    now = view.files["key"].combine_chunks()
    before = now.slice(0, 0) if parent is None else parent.files["key"].combine_chunks()
    keyed = with_keys(changes)
    for status, this, that in ((Status.ADDED, now, before), (Status.DELETED, before, now)):
        said = keyed.filter(pc.equal(keyed["status"], int(status)))["key"].combine_chunks()
        real = this.filter(pc.invert(pc.is_in(this, value_set=that)))
        for keys, others, problem in ((real, said, "does not say"), (said, real, "says wrongly")):
            wrong = keys.filter(pc.invert(pc.is_in(keys, value_set=others))).to_pylist()
            for key in wrong[:3]:
                message = f"snapshot {view.snapshot.snapshot_id} {problem} that it {status.name} {key}"
                yield finding(rule=Rule.CHANGES, location=view.where, message=message)
        if len(said) != len(pc.unique(said)):
            message = f"snapshot {view.snapshot.snapshot_id} says twice that it {status.name} a file"
            yield finding(rule=Rule.CHANGES, location=view.where, message=message)


def check_carried(view: View, parent: View | None) -> Iterator[Finding]:
    """Files that the parent had too keep their numbers; row ids may come, and never change."""
    if parent is None:
        return
    place = pc.index_in(view.files["key"], value_set=parent.files["key"].combine_chunks())
    former = parent.files.take(place.combine_chunks())
    names: Mapping[str, pa.ChunkedArray] = {
        **{name: pc.not_equal(view.files[name], former[name]) for name in _CARRIED},
        "first_row_id": pc.and_(
            pc.is_valid(former["first_row_id"]),
            pc.fill_null(pc.not_equal(view.files["first_row_id"], former["first_row_id"]), True),
        ),
    }
    for name, differs in names.items():
        message = f"{name} is not what it was in snapshot {parent.snapshot.snapshot_id}"
        yield from broken(Rule.CARRIED, view.where, differs, message, view.files["ordinal"])


def check_delete_files(view: View, metadata: TableMetadata, context: ManifestContext) -> Iterator[Finding]:
    """Position delete files fit the data files that they name, and every delete file applies to some data file."""
    deletes = view.of(*DELETES)
    files = deletes.filter(pc.is_null(deletes["dv_offset"]))
    if files.num_rows == 0:
        return
    data = view.of(ContentType.DATA)
    positions = files.filter(pc.equal(files["content_type"], int(ContentType.POSITION_DELETES)))
    yield from _new_positions(view, positions, metadata)
    yield from _targets(view, positions, data, metadata)
    try:
        outcomes = attach_deletes(data, deletes, context).outcomes
    except IcefloeError as error:
        problem_of(error)
        return  # the rules of deletion vectors report it
    dangling = pc.and_(pc.is_null(deletes["dv_offset"]), pc.equal(outcomes, int(DeleteOutcome.NO_FILE)))
    dangling_files = choose(deletes, dangling)
    if dangling_files.num_rows > 0:
        message = f"{dangling_files.num_rows} delete files apply to no live data file, such as "
        message += str(dangling_files["location"][0])
        yield finding(rule=Rule.DANGLING_DELETES, location=view.where, message=message)


def _new_positions(view: View, files: pa.Table, metadata: TableMetadata) -> Iterator[Finding]:
    """A snapshot with row ids is one of version 3 or later, which adds deletion vectors only."""
    if not metadata.rules.deletion_vectors or files.num_rows == 0:
        return
    makers = [metadata.snapshots.find(id_) for id_ in pc.unique(files["snapshot_id"]).to_pylist() if id_ is not None]
    later = [maker.snapshot_id for maker in makers if maker is not None and maker.first_row_id is not None]
    wrong = pc.is_in(files["snapshot_id"], value_set=pa.array(later, pa.int64()))
    message = "a position delete file was added where only deletion vectors are allowed"
    yield from broken(Rule.POSITION_DELETES, view.where, wrong, message, files["ordinal"])


def _targets(view: View, files: pa.Table, data: pa.Table, metadata: TableMetadata) -> Iterator[Finding]:
    named = files.filter(pc.is_valid(files["referenced_file"]))
    if named.num_rows == 0:
        return
    place = index_of(named["referenced_file"], data["location"], metadata.location)
    target = data.take(one_array(place))
    rule, where = Rule.POSITION_DELETES, view.where
    for wrong, message in (
        (pc.not_equal(named["partition_spec_id"], target["partition_spec_id"]), "has another spec than its data file"),
        *partition_differences(named, target, place, metadata),
    ):
        yield from broken(rule, where, wrong, f"{message}, so it does not apply", named["ordinal"])

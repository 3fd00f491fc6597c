"""Conflict checks between concurrent commits (spec: Commit Conflict Resolution and Retry).

An operation was computed from a snapshot. If other commits have changed the branch since, their changes are compared
with the files and rows that the operation read and removes. Each operation calls the checks that it needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.commit.draft import Draft, Work, head_of
from icefloe.deletes.partition_keys import partition_codes
from icefloe.errors import ConflictError, InputError, NoSuchSnapshot
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.model.entries import DELETES, ContentType, Status, choose, of_status, of_type, with_stats
from icefloe.model.location_columns import is_among
from icefloe.model.metadata.properties import Property
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.scan.plan import partition_fields
from icefloe.tree.snapshot_changes import changes_since

_SHOWN = 20  # files and snapshots that an error names


class Isolation(StrEnum):
    """Which changes of concurrent commits an operation may ignore.

    ``serializable``: none; the result is as if the commits had run one after the other. ``snapshot``: rows that were
    added since the operation read the table.
    """

    SERIALIZABLE = "serializable"
    SNAPSHOT = "snapshot"


def isolation_of(setting: Property[str], properties: Mapping[str, str]) -> Isolation:
    """The isolation level of a table, from one of its ``write.*.isolation-level`` properties."""
    text = setting.of(properties)
    known = {str(level): level for level in Isolation}
    if text not in known:
        raise InputError(f"property {setting.name}: expected {' or '.join(known)}, got {text!r}", property=setting.name)
    return known[text]


@dataclass(frozen=True)
class ConflictCheck:
    """Checks the changes that other commits made to a branch since the snapshot that an operation read.

    The operation may have read a snapshot of its own commit, made by an earlier step of the same transaction.
    """

    draft: Draft
    work: Work
    branch: str
    read: Snapshot | None

    def __post_init__(self) -> None:
        """Refuse a branch that no longer contains the commit's own snapshots below the one that was read.

        This happens if the commit created the branch on top of its own snapshots, and another commit has created the
        branch elsewhere.
        """
        metadata, parents = self.draft.metadata, self.work.parents
        own, others_head = self._own_snapshots
        read = _id(self.read)
        while read is not None and read in parents:
            if read not in own and metadata.snapshots.find(read) is not None:  # else this attempt has not made it
                raise ConflictError(
                    f"table {metadata.location}: another commit has created branch {self.branch!r} without snapshot"
                    f" {read}, which an earlier step of this transaction made; repeat the transaction",
                    snapshot_ids=[] if others_head is None else [others_head.snapshot_id],
                )
            read = parents[read]

    @cached_property
    def _own_snapshots(self) -> tuple[frozenset[int], Snapshot | None]:
        """The commit's own snapshots at the head of the branch, and the newest snapshot of other commits below them."""
        head, own = self.draft.head(self.branch), set[int]()
        while head is not None and head.snapshot_id in self.work.snapshot_ids:
            own.add(head.snapshot_id)
            head = None if head.parent_id is None else self.draft.metadata.snapshot(head.parent_id)
        return frozenset(own), head

    @cached_property
    def last_seen(self) -> Snapshot | None:
        """The newest snapshot of other commits that the operation has read."""
        if self.read is not None and self.read.snapshot_id in self.work.snapshot_ids:
            return head_of(self.work.base.metadata, self.branch)
        return self.read

    @cached_property
    def is_unchanged(self) -> bool:
        """Whether no other commit has changed the branch since, so that every check passes."""
        return _id(self._own_snapshots[1]) == _id(self.last_seen)

    @cached_property
    def changes(self) -> pa.Table:
        """The files that other commits added and removed since, with the snapshot that made each change."""
        head, store, metadata = self.draft.head(self.branch), self.draft.store, self.draft.metadata
        if head is None:
            raise ConflictError(
                f"table {metadata.location}: branch {self.branch!r} is empty now; read the table again",
            )
        try:
            changes = changes_since(store, metadata, after=self.last_seen, until=head)
        except NoSuchSnapshot as error:
            raise ConflictError(f"{error}; read the table again and repeat the operation", **error.context) from error
        own = pa.array(self.work.snapshot_ids, pa.int64())
        return choose(changes, pc.invert(pc.is_in(changes["changed_by"], value_set=own)))

    def _changed(self, status: Status, *types: ContentType) -> pa.Table:
        return choose(self.changes, pc.and_(of_status(self.changes, status), of_type(self.changes, *types)))

    def _added(self, *types: ContentType) -> pa.Table:
        """Added files, without those of compaction: it adds files, but no rows and no deletes."""
        return self._without_compaction(self._changed(Status.ADDED, *types))

    def _without_compaction(self, changes: pa.Table) -> pa.Table:
        snapshots = map(self.draft.metadata.snapshot, pc.unique(changes["changed_by"]).to_pylist())
        compactions = [made.snapshot_id for made in snapshots if made.operation is Operation.REPLACE]
        by_compaction = pc.is_in(changes["changed_by"], value_set=pa.array(compactions, pa.int64()))
        return choose(changes, pc.invert(by_compaction))

    def check_no_new_data(self, filter: Expr) -> None:
        """No data file was added that may contain rows that match the filter."""
        if not self.is_unchanged:
            matching = self._matching(self._added(ContentType.DATA), filter)
            self._refuse(matching, "was added by another commit and may contain rows that this operation reads")

    def check_no_new_deletes(self, filter: Expr) -> None:
        """No delete was added that may delete rows that match the filter."""
        if not self.is_unchanged:
            matching = self._in_partitions(self._added(*DELETES), filter)
            self._refuse(matching, "was added by another commit and may delete rows that this operation read")

    def check_no_data_removed(self, filter: Expr) -> None:
        """No data file was removed that may contain rows that match the filter, except by compaction."""
        if not self.is_unchanged:
            removed = self._without_compaction(self._changed(Status.DELETED, ContentType.DATA))
            matching = self._matching(removed, filter)
            self._refuse(matching, "was removed by another commit and may contain rows that this operation read")

    def check_files_live(self, locations: pa.Array) -> None:
        """None of these data files was removed."""
        if not self.is_unchanged and len(locations) > 0:
            removed = self._changed(Status.DELETED, ContentType.DATA)
            chosen = removed.filter(pc.is_in(removed["location"], value_set=locations))
            self._refuse(chosen, "was removed by another commit")

    def check_no_deletes_of(self, files: pa.Table, *, equality: bool = True) -> None:
        """No delete was added that applies to one of these data files, given as tasks.

        Without ``equality``, equality deletes are allowed: they also apply to the files that replace these, if those
        keep the sequence number.
        """
        if self.is_unchanged or files.num_rows == 0:
            return
        added = self._changed(Status.ADDED, *DELETES)
        if not equality:
            added = choose(added, of_type(added, ContentType.POSITION_DELETES))
        if added.num_rows == 0:
            return
        of_file = is_among(added["referenced_file"], files["location"], self.draft.metadata.location)
        of_partition = pc.and_(pc.is_null(added["referenced_file"]), self._may_apply(added, files))
        chosen = added.filter(pc.or_(of_file, of_partition))
        self._refuse(chosen, "was added by another commit and deletes rows of a file that this operation replaces")

    def without_removed(self, deletes: pa.Table) -> pa.Table:
        """These delete files, without those that another commit removed; none of them is a deletion vector."""
        if self.is_unchanged or deletes.num_rows == 0:
            return deletes
        removed = self._changed(Status.DELETED, *DELETES)["location"].combine_chunks()
        return choose(deletes, pc.invert(pc.is_in(deletes["location"], value_set=removed)))

    def check_no_new_vectors(self, locations: pa.ChunkedArray) -> None:
        """No deletion vector was added for one of these data files: a file has at most one."""
        if not self.is_unchanged and len(locations) > 0:
            added = self._changed(Status.ADDED, ContentType.POSITION_DELETES)
            named = added.filter(is_among(added["referenced_file"], locations, self.draft.metadata.location))
            what = "was added by another commit and deletes rows of a file in which this operation deletes rows"
            self._refuse(named, what)

    def check_no_updates(self, filter: Expr) -> None:
        """No commit both deleted rows that may match the filter and added rows: these may be their new versions."""
        if not self.is_unchanged:
            adding = pc.unique(self._added(ContentType.DATA)["changed_by"])
            deletes = self._added(*DELETES)
            updates = deletes.filter(pc.is_in(deletes["changed_by"], value_set=adding))
            matching = self._in_partitions(updates, filter)
            self._refuse(matching, "was added by another commit, which may update rows that this operation read")

    def check_partitions(self, files: pa.Table, *, added_rows: bool) -> None:
        """No rows were deleted from the partitions of these files; with ``added_rows``, none were added to them."""
        if self.is_unchanged:
            return
        removed = self._without_compaction(self._changed(Status.DELETED, ContentType.DATA))
        what = "of a partition that this operation replaces"
        if added_rows:
            self._refuse(
                self._of(files, self._added(ContentType.DATA)), f"was added by another commit and has rows {what}"
            )
        self._refuse(self._of(files, self._added(*DELETES)), f"was added by another commit and deletes rows {what}")
        self._refuse(self._of(files, removed), f"was removed by another commit and had rows {what}")

    def _of(self, files: pa.Table, changes: pa.Table) -> pa.Table:
        """The changes to the partitions of these files."""
        specs = map(self.draft.store.context.spec, pc.unique(files["partition_spec_id"]).to_pylist())
        is_everywhere = changes.num_rows == 0 or not all(spec.is_partitioned for spec in specs)
        return changes if is_everywhere else changes.filter(self._may_apply(changes, files))

    def _matching(self, files: pa.Table, filter: Expr) -> pa.Table:
        metadata = self.draft.metadata
        if files.num_rows == 0:
            return files
        match = evaluate(bind(filter, metadata.schema), files, partition_fields(metadata))
        return files.filter(pc.not_equal(match, int(Match.NONE)))

    def _in_partitions(self, deletes: pa.Table, filter: Expr) -> pa.Table:
        """Deletes whose partition may match; their column statistics describe the deletes, not the deleted rows."""
        return self._matching(with_stats(deletes, lambda column: column.key.is_partition), filter)

    def _may_apply(self, deletes: pa.Table, files: pa.Table) -> pa.Array:
        """Which deletes are unpartitioned, or of a partition of one of the files."""
        unpartitioned = [spec.spec_id for spec in self.draft.metadata.specs if not spec.is_partitioned]
        everywhere = pc.is_in(deletes["partition_spec_id"], value_set=pa.array(unpartitioned, pa.int32()))
        return pc.or_(everywhere, same_partition(deletes, files, self.draft.store.context))

    def _refuse(self, changes: pa.Table, what: str) -> None:
        """Raise ConflictError if there is any such change."""
        if changes.num_rows == 0:
            return
        files, made_by = changes["location"].slice(0, _SHOWN).to_pylist(), pc.unique(changes["changed_by"]).to_pylist()
        more = f" (and {changes.num_rows - 1} more)" if changes.num_rows > 1 else ""
        raise ConflictError(
            f"table {self.draft.metadata.location}: {files[0]}{more} {what} (snapshot"
            f" {', '.join(map(str, made_by[:_SHOWN]))}); read the table again and repeat the operation",
            files=files,
            snapshot_ids=made_by,
        )


def _id(snapshot: Snapshot | None) -> int | None:
    return None if snapshot is None else snapshot.snapshot_id


def same_partition(rows: pa.Table, others: pa.Table, context: ManifestContext) -> pa.Array:
    """Which rows have the spec and partition of one of the others."""
    codes, others_codes = partition_codes([rows, others], context)
    return pc.is_in(pa.array(codes), value_set=pa.array(others_codes))

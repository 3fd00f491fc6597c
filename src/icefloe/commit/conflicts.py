"""Conflicts: what other commits did since an operation read the table (spec: Commit Conflict Resolution and Retry).

An operation was computed from a snapshot. If the head has moved on, the changes since are compared with what the
operation read and removes. Which of these checks an operation needs is said where the operation is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.draft import State
from icefloe.deletes.partition_keys import partition_codes
from icefloe.errors import ConflictError, InputError, NoSuchSnapshot
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.model.entries import DELETES, ContentType, Status, choose, of_type
from icefloe.model.location_columns import is_among
from icefloe.model.metadata.properties import Property
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.scan.plan import partition_fields
from icefloe.tree.diff import changes_since

_SHOWN = 20  # files named in an error


class Isolation(StrEnum):
    """What an operation may miss of commits that ran at the same time.

    ``serializable``: nothing, the outcome is that of running in commit order. ``snapshot``: rows that came meanwhile.
    """

    SERIALIZABLE = "serializable"
    SNAPSHOT = "snapshot"


def isolation_of(setting: Property[str], properties: Mapping[str, str]) -> Isolation:
    """The isolation that a table asks for, by one of the ``write.*.isolation-level`` properties."""
    text = setting.of(properties)
    known = {str(level): level for level in Isolation}
    if text not in known:
        raise InputError(f"property {setting.name}: expected {' or '.join(known)}, got {text!r}", property=setting.name)
    return known[text]


@dataclass(frozen=True)
class Since:
    """The changes of a branch behind the snapshot that an operation read."""

    state: State
    read: Snapshot | None

    def __post_init__(self) -> None:
        """Refuse a branch without what the commit itself did below the snapshot that was read.

        That is so when the commit began the branch upon its own snapshots, and another one has made it elsewhere.
        """
        metadata, parents = self.state.metadata, self.state.parents
        own, before = self._own
        read = _id(self.read)
        while read is not None and read in parents:
            if read not in own and metadata.snapshots.find(read) is not None:  # else it was not made in this attempt
                raise ConflictError(
                    f"table {metadata.location}: another commit has made the branch that this operation changes,"
                    f" without what it read of its own transaction (snapshot {read}); repeat the transaction",
                    snapshot_ids=[] if before is None else [before.snapshot_id],
                )
            read = parents[read]

    @cached_property
    def _own(self) -> tuple[frozenset[int], Snapshot | None]:
        """The snapshots of the commit itself that the head is built on, and the one of others below them."""
        head, own = self.state.head, set[int]()
        while head is not None and head.snapshot_id in self.state.own:
            own.add(head.snapshot_id)
            head = None if head.parent_id is None else self.state.metadata.snapshot(head.parent_id)
        return frozenset(own), head

    @cached_property
    def seen(self) -> Snapshot | None:
        """The last snapshot of others that the operation knew."""
        of_own = self.read is not None and self.read.snapshot_id in self.state.own
        return self.state.origin if of_own else self.read

    @cached_property
    def is_nothing(self) -> bool:
        """Whether nobody else has changed the branch since, so that no check can fail."""
        return _id(self._own[1]) == _id(self.seen)

    @cached_property
    def changes(self) -> pa.Table:
        """Entries of status ADDED or DELETED, with the snapshot that made each change."""
        head, store, metadata = self.state.head, self.state.store, self.state.metadata
        if head is None:
            reason = "the branch that it read is empty now"
            raise ConflictError(f"table {metadata.location}: {reason}; read the table again")
        try:
            changes = changes_since(store, metadata, after=self.seen, until=head)
        except NoSuchSnapshot as error:
            raise ConflictError(f"{error}; read the table again and repeat the operation", **error.context) from error
        own = pa.array(self.state.own, pa.int64())
        return choose(changes, pc.invert(pc.is_in(changes["changed_by"], value_set=own)))

    def _changed(self, status: Status, *types: ContentType) -> pa.Table:
        rows = self.changes
        return choose(rows, pc.and_(pc.equal(rows["status"], int(status)), of_type(rows, *types)))

    def _new(self, *types: ContentType) -> pa.Table:
        """What came and was not there in another form before: compaction adds files, but no rows and no deletes."""
        return self._not_moved(self._changed(Status.ADDED, *types))

    def _not_moved(self, rows: pa.Table) -> pa.Table:
        """Changes but those of compaction, which only moves rows."""
        makers = pc.unique(rows["changed_by"]).to_pylist()
        moved = [m for m in makers if self.state.metadata.snapshot(m).operation is Operation.REPLACE]
        return choose(rows, pc.invert(pc.is_in(rows["changed_by"], value_set=pa.array(moved, pa.int64()))))

    def check_no_new_data(self, filter: Expr) -> None:
        """No data file came that may hold rows the operation meant."""
        if self.is_nothing:
            return
        self._refuse(
            self._matching(self._new(ContentType.DATA), filter),
            "was added by another commit and may hold rows it meant",
        )

    def check_no_new_deletes(self, filter: Expr) -> None:
        """No delete came that may take rows the operation read."""
        if self.is_nothing:
            return
        added = self._new(*DELETES)
        self._refuse(self._in_partitions(added, filter), "deletes rows that it read, and came by another commit")

    def check_no_data_left(self, filter: Expr) -> None:
        """No data file left that may have held rows the operation found, but for compaction."""
        if self.is_nothing:
            return
        gone = self._not_moved(self._changed(Status.DELETED, ContentType.DATA))
        self._refuse(self._matching(gone, filter), "was removed by another commit and may have held rows it found")

    def check_files_live(self, locations: pa.Array) -> None:
        """No data file that the operation points at was removed."""
        if self.is_nothing or len(locations) == 0:
            return
        gone = self._changed(Status.DELETED, ContentType.DATA)
        self._refuse(gone.filter(pc.is_in(gone["location"], value_set=locations)), "was removed by another commit")

    def check_no_deletes_on(self, files: pa.Table, *, equality: bool = True) -> None:
        """No delete came that applies to one of these data files, given as planned tasks or entries.

        ``equality`` says whether equality deletes count; they do not for files that are written again with the
        sequence number they had, because those deletes go on to apply.
        """
        if self.is_nothing or files.num_rows == 0:
            return
        added = self._changed(Status.ADDED, *DELETES)
        if not equality:
            added = choose(added, of_type(added, ContentType.POSITION_DELETES))
        if added.num_rows == 0:
            return
        named = is_among(added["referenced_file"], files["location"], self.state.metadata.location)
        open_ = pc.and_(pc.is_null(added["referenced_file"]), self._may_touch(added, files))
        self._refuse(added.filter(pc.or_(named, open_)), "deletes rows of a file that it replaces, by another commit")

    def check_no_vectors_of(self, locations: pa.ChunkedArray) -> None:
        """No deletion vector came for one of these data files: a file has only one."""
        if self.is_nothing or len(locations) == 0:
            return
        added = self._changed(Status.ADDED, ContentType.POSITION_DELETES)
        named = is_among(added["referenced_file"], locations, self.state.metadata.location)
        self._refuse(added.filter(named), "deletes rows of a file that it deletes from, by another commit")

    def check_nothing_updated(self, filter: Expr) -> None:
        """No commit both deleted rows that the operation read and added some: such a row lives on as its new copy."""
        if self.is_nothing:
            return
        makers = pc.unique(self._new(ContentType.DATA)["changed_by"])
        added = self._new(*DELETES)
        updates = added.filter(pc.is_in(added["changed_by"], value_set=makers))
        self._refuse(self._in_partitions(updates, filter), "belongs to an update of rows that it read")

    def _matching(self, rows: pa.Table, filter: Expr) -> pa.Table:
        metadata = self.state.metadata
        if rows.num_rows == 0:
            return rows
        match = evaluate(bind(filter, metadata.schema), rows, partition_fields(metadata))
        return rows.filter(pc.not_equal(match, int(Match.NONE)))

    def _in_partitions(self, rows: pa.Table, filter: Expr) -> pa.Table:
        """Deletes whose partition may match; their own statistics describe the deletes, not the rows they take."""
        own = [name for name in rows.column_names if ":" in name and not name.partition(":")[2].startswith("p")]
        return self._matching(rows.drop_columns(own), filter)

    def _may_touch(self, deletes: pa.Table, files: pa.Table) -> pa.Array:
        """Which deletes are of a partition that one of the files is in, or of a spec without partitions."""
        metadata = self.state.metadata
        unpartitioned = [spec.spec_id for spec in metadata.specs if not spec.is_partitioned]
        touching = pc.is_in(deletes["partition_spec_id"], value_set=pa.array(unpartitioned, pa.int32()))
        return pc.or_(touching, same_partition(deletes, files, self.state))

    def _refuse(self, rows: pa.Table, what: str) -> None:
        if rows.num_rows == 0:
            return
        files, makers = rows["location"].slice(0, _SHOWN).to_pylist(), pc.unique(rows["changed_by"]).to_pylist()
        more = f" (and {rows.num_rows - 1} more)" if rows.num_rows > 1 else ""
        raise ConflictError(
            f"table {self.state.metadata.location}: {files[0]}{more} {what} (snapshot"
            f" {', '.join(map(str, makers[:_SHOWN]))}); read the table again and repeat the operation",
            files=files,
            snapshot_ids=makers,
        )


def _id(snapshot: Snapshot | None) -> int | None:
    return None if snapshot is None else snapshot.snapshot_id


def same_partition(rows: pa.Table, others: pa.Table, state: State) -> pa.Array:
    """Which rows are of the same spec and partition as one of the others."""
    mine, theirs = partition_codes([rows, others], state.store.context)
    return pc.is_in(pa.array(mine), value_set=pa.array(theirs))

"""Intents: the operations that make a snapshot, as frozen values (spec: Snapshots).

An intent is never changed by an attempt. Each attempt asks it what it means on a fresh state, which may end in a
conflict, and makes a snapshot of the answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.conflicts import Isolation, Since
from icefloe.commit.draft import Draft, State, Work
from icefloe.commit.resolved import Resolved
from icefloe.commit.stage import Purpose, make_snapshot, state_of
from icefloe.errors import ConflictError, InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.model.entries import ContentType, empty, of_type
from icefloe.model.metadata.snapshots import MAIN, Operation, Snapshot
from icefloe.scan.lookup import files_at
from icefloe.scan.tasks import TASK


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent(ABC):
    """An operation that makes a snapshot of a branch; ``properties`` are keys to add to its summary.

    A ``staged`` snapshot belongs to the table but to no branch, until it is published (write, audit, publish).
    """

    operation: Operation
    properties: Mapping[str, str] = field(default_factory=dict)
    branch: str = MAIN
    staged: bool = False

    @property
    def name(self) -> str:
        """The operation of the snapshot."""
        return str(self.operation)

    @property
    def files(self) -> tuple[str, ...]:
        """Files written for this intent, which belong to nobody if it fails."""
        return ()

    @abstractmethod
    def resolve(self, state: State) -> Resolved | None:
        """Check the intent against a state and say what it means there; none if there is nothing to do."""

    def apply(self, draft: Draft, work: Work) -> Draft:
        """The draft with the snapshot."""
        resolved = self.resolve(state_of(draft, self.branch, work))
        if resolved is None:
            return draft
        purpose = Purpose(
            operation=self.operation,
            properties=tuple(self.properties.items()),
            branch=self.branch,
            staged=self.staged,
        )
        return make_snapshot(draft, work, purpose, resolved)


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(Intent):
    """Add data files; valid on any base. A ``fast`` append leaves other manifests as they are."""

    added: pa.Table
    fast: bool = False
    operation: Operation = Operation.APPEND

    @property
    def files(self) -> tuple[str, ...]:
        """The data files."""
        return locations(self.added)

    def resolve(self, state: State) -> Resolved:
        """New files conflict with nothing."""
        return Resolved(added=self.added, merge=not self.fast)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFiles(Intent):
    """Remove data files by location; each must be live."""

    locations: tuple[str, ...]
    operation: Operation = Operation.DELETE

    def __post_init__(self) -> None:
        if len(self.locations) == 0:
            raise InputError("no files to remove")

    def resolve(self, state: State) -> Resolved:
        """Find the files on this base."""
        return Resolved(removed=live_tasks(state, pa.array(self.locations, pa.string())))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDelta(Intent):
    """Delete rows, by deletion vectors, delete files or by removing files, and add rows, as one snapshot.

    It was computed from the files that ``read`` held and that matched ``filter``. A data file has one deletion vector,
    so two commits that delete rows of one file conflict. Delete files of version 2 add up; there only an update, which
    adds rows as well, must not meet other deletes. ``referenced`` are the data files that its position delete files
    point at, where the entries themselves do not name them.
    """

    added: pa.Table  # data files, deletion vectors and delete files
    removed: pa.Table = field(default_factory=TASK.empty_table)
    replaced: pa.Table = field(default_factory=TASK.empty_table)
    dropped: pa.Table = field(default_factory=empty)
    referenced: tuple[str, ...] = ()
    read: Snapshot | None
    filter: Expr = ALWAYS_TRUE
    isolation: Isolation = Isolation.SERIALIZABLE
    operation: Operation = Operation.OVERWRITE

    @property
    def files(self) -> tuple[str, ...]:
        """Data files and delete files."""
        return locations(self.added)

    def resolve(self, state: State) -> Resolved:
        """Nothing it read may have changed, as far as its isolation asks."""
        self._check_kind(state)
        since = Since(state, self.read)
        targets = pa.concat_tables([self.removed, self.replaced], promote_options="permissive")
        since.check_files_live(self._referenced(targets))
        since.check_no_vectors_of(self._one_vector_each(state))
        if self._updates:
            since.check_no_new_deletes(self.filter)
        else:
            since.check_nothing_updated(self.filter)
        if self.isolation is Isolation.SERIALIZABLE:
            since.check_no_new_data(self.filter)
        return Resolved(added=self.added, removed=self.removed, replaced=self.replaced, dropped=self.dropped)

    def _check_kind(self, state: State) -> None:
        """Refuse position delete files where deletion vectors took their place, maybe since they were written."""
        if not state.metadata.rules.deletion_vectors:
            return
        plain = pc.and_(of_type(self.added, ContentType.POSITION_DELETES), pc.is_null(self.added["dv_offset"]))
        files = self.added.filter(plain)["location"].to_pylist()
        if len(files) > 0:
            raise ConflictError(
                f"table {state.metadata.location}: format version {state.metadata.format_version} deletes rows by"
                f" deletion vectors, not by position delete files such as {files[0]}; read the table again and repeat"
                " the operation",
                files=files[:20],
            )

    @property
    def _updates(self) -> bool:
        """Whether it puts rows back in another form."""
        return pc.any(of_type(self.added, ContentType.DATA)).as_py() is True

    def _one_vector_each(self, state: State) -> pa.ChunkedArray:
        """The data files that get a vector, and those that leave, whose vectors would stay without them."""
        named = self.added.filter(pc.is_valid(self.added["dv_offset"]))["referenced_file"]
        leaving = self.removed["location"].chunks if state.metadata.rules.deletion_vectors else []
        return pa.chunked_array([*named.chunks, *leaving], pa.string())

    def _referenced(self, targets: pa.Table) -> pa.Array:
        """The data files that it removes, replaces or deletes from."""
        named = self.added["referenced_file"].drop_null().combine_chunks()
        told = pa.array(self.referenced, pa.string())
        return pa.concat_arrays([targets["location"].combine_chunks(), named, told])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Intent):
    """What an operation read and left as it was, which must be so where its commit lands; it makes no snapshot.

    An operation that finds no rows has read that there are none. With ``present``, rows that are there also decide what
    it does, as for one that adds rows unless there are some like them: then none of these may leave.
    """

    read: Snapshot | None
    filter: Expr
    present: bool = False

    def resolve(self, state: State) -> None:
        """No row came that it would have read, and none left that matters."""
        since = Since(state, self.read)
        since.check_no_new_data(self.filter)
        if self.present:
            since.check_no_new_deletes(self.filter)
            since.check_no_data_left(self.filter)


def live_tasks(state: State, wanted: pa.Array) -> pa.Table:
    """The files at these locations as planned; ConflictError for the first that is not live."""
    tasks = files_at(state.store, state.metadata, state.head, wanted)
    gone = wanted.filter(pc.invert(pc.is_in(wanted, value_set=tasks["location"].combine_chunks())))
    if len(gone) > 0:
        raise ConflictError(
            f"table {state.metadata.location}: {gone[0].as_py()} is not a live data file, so it cannot be removed",
            files=gone.slice(0, 20).to_pylist(),
        )
    return tasks


def locations(added: pa.Table) -> tuple[str, ...]:
    """The files of entries, each once."""
    return tuple(pc.unique(added["location"]).to_pylist())

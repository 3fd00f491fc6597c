"""The methods of a table that create, move and remove branches and tags, main among them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from icefloe.commit.operations.cherry_pick import CherryPick
from icefloe.commit.operations.ref_updates import CURRENT, FastForward, RemoveRef, SetCurrentSnapshot, SetRef
from icefloe.commit.result import CommitResult
from icefloe.errors import InputError
from icefloe.model.metadata.snapshots import MAIN, Ref
from icefloe.scan.select import select_snapshot
from icefloe.table.held_table import HeldTable


class RefChanges(HeldTable):
    """Branches, tags, and the snapshot that is current."""

    def branch(self, name: str, *, snapshot: int | None = None) -> CommitResult:
        """Create a branch at a snapshot, by default at that of main; without one the branch gets an empty snapshot.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.branch", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1]}))
        >>> result = t.branch("dev")
        >>> result = t.append(pa.table({"id": [2]}), branch="dev")
        >>> t.scan().count(), t.at(branch="dev").scan().count()
        (1, 2)
        """
        return self._set_ref(name, "branch", snapshot)

    def tag(self, name: str, *, snapshot: int | None = None) -> CommitResult:
        """Tag a snapshot, by default the current one, with a name.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.tag", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1]}))
        >>> result = t.tag("v1")
        >>> result = t.append(pa.table({"id": [2]}))
        >>> t.at(tag="v1").scan().count()
        1
        """
        return self._set_ref(name, "tag", snapshot)

    def remove_ref(self, name: str) -> CommitResult:
        """Remove a branch or tag."""
        return self._commit(RemoveRef(ref_name=name))

    def publish(self, branch: str) -> CommitResult:
        """Move main to the head of a branch that was created from it.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.publish", schema="id bigint")
        >>> result = t.branch("dev")
        >>> result = t.append(pa.table({"id": [1]}), branch="dev")
        >>> result = t.publish("dev")
        >>> t.scan().count()
        1
        """
        return self.fast_forward(MAIN, to=branch)

    def fast_forward(self, branch: str, *, to: str) -> CommitResult:
        """Move a branch forward to the snapshot of another branch or tag, which must have all snapshots of the branch.

        A branch that does not exist is created there.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.fast_forward", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1]}))
        >>> result = t.branch("test")
        >>> result = t.append(pa.table({"id": [2]}), branch="test")
        >>> result = t.fast_forward("main", to="test")
        >>> t.scan().count()
        2
        """
        return self._commit(FastForward(branch=branch, to=to))

    def cherry_pick(self, snapshot: int) -> CommitResult:
        """Apply the changes of a staged snapshot to main.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.cherry_pick", schema="id bigint")
        >>> staged = t.append(pa.table({"id": [1]}), wap_id="load-7")
        >>> t.scan().count()
        0
        >>> result = t.cherry_pick(staged.snapshot_id)
        >>> t.scan().count()
        1
        """
        return self._commit(CherryPick(snapshot_id=snapshot))

    def rollback(self, *, snapshot: int | None = None, timestamp: datetime | str | None = None) -> CommitResult:
        """Set main to one of its earlier snapshots, by id or by the time at which it was current.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.rollback", schema="id bigint")
        >>> first = t.append(pa.table({"id": [1]}))
        >>> second = t.append(pa.table({"id": [2]}))
        >>> result = t.rollback(snapshot=first.snapshot_id)
        >>> t.scan().count()
        1
        """
        chosen = select_snapshot(self._pointer.load().metadata, snapshot=snapshot, timestamp=timestamp)
        if chosen is None or (snapshot is None and timestamp is None):
            raise InputError("rollback: say where to, by snapshot= or timestamp=")
        return self._commit(SetCurrentSnapshot(snapshot_id=chosen.snapshot_id, rollback=True))

    def set_current_snapshot(self, snapshot: int | None = None, *, ref: str | None = None) -> CommitResult:
        """Set main to any snapshot of the table, or to that of a branch or tag, in its history or not.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.set_current", schema="id bigint")
        >>> first = t.append(pa.table({"id": [1]}))
        >>> second = t.append(pa.table({"id": [2]}))
        >>> result = t.rollback(snapshot=first.snapshot_id)
        >>> result = t.set_current_snapshot(second.snapshot_id)
        >>> t.scan().count()
        2
        """
        if (snapshot is None) == (ref is None):
            raise InputError("set_current_snapshot: give either a snapshot id or ref=, the name of a branch or tag")
        return self._commit(SetCurrentSnapshot(snapshot_id=CURRENT if snapshot is None else snapshot, ref_name=ref))

    def _set_ref(self, name: str, kind: Literal["branch", "tag"], snapshot: int | None) -> CommitResult:
        ref = Ref(snapshot_id=CURRENT if snapshot is None else snapshot, type=kind)
        return self._commit(SetRef(ref_name=name, ref=ref, fresh=True))

"""Writes the same rows to other data files, and the same entries to other manifests (spec: Snapshots, Manifests)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow.compute as pc

from icefloe.commit.conflicts import ConflictCheck
from icefloe.commit.draft import Draft, Work
from icefloe.commit.operations.snapshot_operation import PlannedOperation, SnapshotOperation, file_locations
from icefloe.errors import ConflictError, InputError
from icefloe.model.entries import live, put
from icefloe.model.metadata.snapshots import Operation, Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.rewrite import reasons_to_rewrite
from icefloe.tree.root import read_root


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteFiles(PlannedOperation):
    """Replaces data files by files with the same rows (compaction).

    ``sequence_number`` is that of the snapshot that was read, for the new files: equality deletes that were added since
    then apply to them. Without it such deletes would no longer apply, so they are a conflict. Delete files that another
    commit removed meanwhile need not be removed again.
    """

    sequence_number: int | None = None
    operation: Operation = Operation.REPLACE

    def resolve(self, draft: Draft, work: Work) -> FileChanges:
        """The changes, if the replaced files are live and no rows of them were deleted."""
        conflicts = ConflictCheck(draft, work, self.branch, self.read)
        return resolved_rewrite(conflicts, self.changes, self.sequence_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Files that are replaced together, and the conflict because of which the last attempt left them out, if any."""

    changes: FileChanges
    conflict: list[ConflictError] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteGroups(SnapshotOperation):
    """Replaces the data files of several groups, without the groups that conflict with other commits.

    ``removed_deletes`` maps the groups that land, by number, to the delete files that no other data file needs then. If
    all groups conflict, so does the operation.
    """

    groups: tuple[FileGroup, ...]
    read: Snapshot | None
    sequence_number: int | None = None
    removed_deletes: Callable[[frozenset[int]], FileChanges] = lambda _: FileChanges()
    operation: Operation = Operation.REPLACE

    @property
    def files(self) -> tuple[str, ...]:
        """The new data files of all groups."""
        return tuple(location for group in self.groups for location in file_locations(group.changes.added))

    def resolve(self, draft: Draft, work: Work) -> FileChanges:
        """The changes of the groups whose files are live and had no rows deleted."""
        conflicts = ConflictCheck(draft, work, self.branch, self.read)
        changes, landing = FileChanges(), set()
        for number, group in enumerate(self.groups):
            group.conflict.clear()
            try:
                resolved = resolved_rewrite(conflicts, group.changes, self.sequence_number)
            except ConflictError as error:
                group.conflict.append(error)
                continue
            changes = changes.combined(resolved)
            landing.add(number)
        if len(landing) == 0:
            raise self.groups[0].conflict[0]
        dangling = self.removed_deletes(frozenset(landing))
        return changes.combined(replace(dangling, removed_deletes=conflicts.without_removed(dangling.removed_deletes)))


def resolved_rewrite(conflicts: ConflictCheck, changes: FileChanges, sequence_number: int | None) -> FileChanges:
    """The changes of a rewrite, if the replaced files are live and no rows of them were deleted."""
    conflicts.check_files_live(changes.removed["location"].combine_chunks())
    conflicts.check_no_deletes_of(changes.removed, equality=sequence_number is None)
    changes = replace(changes, removed_deletes=conflicts.without_removed(changes.removed_deletes))
    if sequence_number is None or not conflicts.draft.metadata.rules.sequence_numbers:
        return changes
    return replace(changes, added=put(changes.added, "sequence_number", sequence_number))


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteManifests(SnapshotOperation):
    """Rewrites all manifests, sorted by partition, in the target size of the table. Adds and removes no files.

    ``cluster_by`` are ids of partition fields to sort by first. Nothing is done if the manifests have this form. With
    ``drop_removed`` they have it only if the root of a V4 table lists no removed files.
    """

    cluster_by: tuple[int, ...] = ()
    drop_removed: bool = False
    operation: Operation = Operation.REPLACE

    def resolve(self, draft: Draft, work: Work) -> None:
        """Nothing: files do not change."""

    def apply(self, draft: Draft, work: Work) -> Draft:
        """The draft with a snapshot of the same files."""
        head = draft.head(self.branch)
        if head is None:
            return draft
        root = read_root(draft.store, head)
        has_removed = self.drop_removed and not pc.all(live(root.entries)).as_py()
        reasons = reasons_to_rewrite(draft.store, root, draft.metadata.properties, self.cluster_by)
        if not has_removed and len(reasons) == 0:
            return draft
        return self.with_snapshot(draft, work, None, self.cluster_by)


def partition_field_ids(metadata: TableMetadata, names: Sequence[str]) -> tuple[int, ...]:
    """The ids of partition fields of any spec, by name; InputError if there is none of a name."""
    ids: list[int] = []
    for name in names:
        found = [field.field_id for spec in metadata.specs for field in spec.fields if field.name == name]
        if len(found) == 0:
            known = dict.fromkeys(field.name for spec in metadata.specs for field in spec.fields)
            names_text = "none" if len(known) == 0 else ", ".join(known)
            raise InputError(
                f"table {metadata.location} has no partition field {name!r}; it has {names_text}",
                field=name,
            )
        ids.extend(found)
    return tuple(dict.fromkeys(ids))

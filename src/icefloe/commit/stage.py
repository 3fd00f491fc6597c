"""Writes the files of an attempt: leaves and roots, then the metadata file (spec: Optimistic Concurrency)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from icefloe.codecs.json.table_metadata import encode_metadata
from icefloe.codecs.manifest.manifests import encode_root, extension
from icefloe.commit.draft import Draft, SnapshotPlan, Work
from icefloe.commit.summary import manifest_counts, summarize
from icefloe.env import Env
from icefloe.model.metadata.properties import METADATA_COMPRESSION
from icefloe.model.metadata.snapshots import Snapshot, Snapshots
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.transactions import marked
from icefloe.tree.apply_changes import apply_changes, rewrite_root
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.new_snapshot import SnapshotIdentity
from icefloe.tree.root import read_root

METADATA_FOLDER = "metadata"
_VERSION = re.compile(r"(?:v(\d+)|(\d+)-[0-9a-f-]+)(?:\.gz)?\.metadata\.json(?:\.gz)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt whose files are written, ready for the swap."""

    pointer: str
    metadata: TableMetadata


def make_snapshot(draft: Draft, work: Work, plan: SnapshotPlan) -> Draft:
    """The draft with one more snapshot. Its leaves are written; its root is pending in ``work``.

    Without changes the snapshot has the files of its parent, in rewritten leaves. A staged snapshot becomes part of no
    branch.
    """
    changes = plan.changes
    metadata, parent = draft.metadata, draft.head(plan.branch)
    identity = SnapshotIdentity(
        snapshot_id=work.snapshot_id(),
        sequence_number=metadata.last_sequence_number + 1 if metadata.rules.sequence_numbers else 0,
        first_row_id=metadata.next_row_id if metadata.rules.row_lineage else None,
    )
    before = read_root(draft.store, parent)
    if changes is None:
        root = rewrite_root(draft.store, before, identity, work.staging, metadata.properties, plan.cluster_by)
    else:
        root = apply_changes(draft.store, before, changes, identity, work.staging, metadata.properties)
    if work.attempt == 1:
        work.parents[identity.snapshot_id] = None if parent is None else parent.snapshot_id
    location = f"{work.staging.folder}/{_root_name(draft, identity.snapshot_id, work)}"
    roots = 1 if metadata.rules.root_holds_files else 0  # a manifest list is not counted as a manifest
    counts = manifest_counts(before, root.rows, identity.snapshot_id, roots=roots)
    snapshot = Snapshot(
        snapshot_id=identity.snapshot_id,
        parent_id=None if parent is None else parent.snapshot_id,
        sequence_number=identity.sequence_number,
        timestamp_ms=commit_timestamp(draft, work),
        root=location,
        summary=summarize(plan.operation, changes or FileChanges(), parent, plan.properties, counts),
        schema_id=metadata.current_schema_id,
        first_row_id=identity.first_row_id,
        added_rows=None if identity.first_row_id is None else root.added_rows,
    )
    work.roots[location] = encode_root(
        root.rows,
        draft.store.context,
        snapshot_id=snapshot.snapshot_id,
        parent_id=snapshot.parent_id,
        sequence_number=snapshot.sequence_number,
        first_row_id=snapshot.first_row_id,
    )
    draft.store.remember_root(location, root.rows)
    work.staging.record_root(root.rows)
    after = metadata.with_snapshot(snapshot, branch=None if plan.staged else plan.branch)
    return replace(draft.with_metadata(after), made=(*draft.made, snapshot), plans=(*draft.plans, plan))


def with_manifest_lists(draft: Draft, work: Work) -> Draft:
    """The draft with a manifest list for each snapshot that names its manifests itself, which only version 1 can store.

    The lists are written at once: updates that follow may read them.
    """
    listed: dict[int, Snapshot] = {}
    for snapshot in draft.metadata.snapshots:
        if snapshot.root is None:
            location = f"{work.staging.folder}/{_root_name(draft, snapshot.snapshot_id, work)}"
            work.roots[location] = encode_root(
                read_root(draft.store, snapshot).entries,
                draft.store.context,
                snapshot_id=snapshot.snapshot_id,
                parent_id=snapshot.parent_id,
                sequence_number=snapshot.sequence_number,
            )
            listed[snapshot.snapshot_id] = replace(snapshot, root=location, manifests=())
    if len(listed) == 0:
        return draft
    work.write_roots(draft.store)
    snapshots = tuple(listed.get(snapshot.snapshot_id, snapshot) for snapshot in draft.metadata.snapshots)
    return draft.with_metadata(replace(draft.metadata, snapshots=Snapshots(snapshots)))


def finish(draft: Draft, work: Work) -> Attempt:
    """Write the metadata file of a draft and the pending roots; all are durable on return."""
    # The table gets the timestamp of its newest snapshot.
    timestamp_ms = latest_timestamp(draft) if len(draft.made) > 0 else commit_timestamp(draft, work)
    metadata = _as_one_commit(draft).committed(timestamp_ms=timestamp_ms, former_location=draft.base.pointer)
    # Two writers on one version of a numbered table must try the same name, and the name follows the codec.
    codec = metadata_codec(draft.base.metadata if draft.base.mark is not None else metadata)
    pointer, data = encode_metadata_file(metadata, draft.base.pointer, work.env, codec=codec)
    work.staging.write(draft.store, {**work.roots, pointer: data})
    work.roots = {}
    return Attempt(pointer=pointer, metadata=metadata)


def encode_metadata_file(
    metadata: TableMetadata, former: str | None, env: Env, *, codec: str | None = None
) -> tuple[str, bytes]:
    """A new metadata file: its location and content; ``former`` is the last one, ``codec`` by default the table's."""
    compression = metadata_codec(metadata) if codec is None else codec
    name = metadata_name(former, str(env.new_uuid()), compressed=compression != "none")
    return f"{metadata.location}/{METADATA_FOLDER}/{name}", encode_metadata(metadata, compression=compression)


def metadata_codec(metadata: TableMetadata) -> str:
    """The codec of a table's metadata files, ``none`` or ``gzip``."""
    asked = METADATA_COMPRESSION.of(metadata.properties)
    if asked != "":
        return asked
    return "gzip" if metadata.rules.gzip_metadata else "none"


def commit_timestamp(draft: Draft, work: Work) -> int:
    """The timestamp of a change, never earlier than the last one: time travel relies on an ordered log.

    The clock of this machine may run behind or backwards.
    """
    return max(work.env.now_ms(), latest_timestamp(draft))


def latest_timestamp(draft: Draft) -> int:
    """The latest timestamp of a draft: of the table, of its snapshot log, or of a snapshot that was just made."""
    logged = (entry.timestamp_ms for entry in draft.metadata.snapshot_log[-1:])
    made = (snapshot.timestamp_ms for snapshot in draft.made[-1:])
    return max((draft.metadata.last_updated_ms, *logged, *made))


def _as_one_commit(draft: Draft) -> TableMetadata:
    """The metadata of a draft. If it made several snapshots, they are marked, and have one timestamp.

    Those that were current only within this commit are not in the log: no reader saw them.
    """
    metadata = draft.metadata
    if len(draft.made) < 2:
        return metadata
    passed = {made.snapshot_id for made in draft.made} - {metadata.current_snapshot_id}
    snapshots = metadata.snapshots.without({made.snapshot_id for made in draft.made})
    for snapshot in marked(draft.made, [plan.branch for plan in draft.plans]):
        snapshots = snapshots.add(snapshot)
    log = tuple(entry for entry in metadata.snapshot_log if entry.snapshot_id not in passed)
    return replace(metadata, snapshots=snapshots, snapshot_log=log)


def metadata_name(former: str | None, uuid: str, *, compressed: bool = False) -> str:
    """The file name of the next metadata file: numbered, and unique if two writers choose the same number."""
    match = None if former is None else _VERSION.fullmatch(former.rsplit("/", 1)[-1])
    version = 0 if match is None else int(match[1] or match[2]) + 1
    return f"{version:05d}-{uuid}{'.gz' if compressed else ''}.metadata.json"


def _root_name(draft: Draft, snapshot_id: int, work: Work) -> str:
    """The file name of a root; manifest lists have the usual name ``snap-*``."""
    kind = "root" if draft.metadata.rules.root_holds_files else "snap"
    return f"{kind}-{snapshot_id}-{work.attempt}-{work.env.new_uuid()}.{extension(draft.store.context)}"

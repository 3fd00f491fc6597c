"""What an attempt writes: leaves and roots of snapshots, at the end a metadata file (spec: Optimistic Concurrency)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from icefloe.codecs.json.table_metadata import encode_metadata
from icefloe.codecs.manifest.manifests import encode_root, extension
from icefloe.commit.draft import Draft, State, Work, head_of
from icefloe.commit.resolved import Resolved
from icefloe.commit.summary import manifest_counts, summarize
from icefloe.model.metadata.properties import METADATA_COMPRESSION
from icefloe.model.metadata.snapshots import MAIN, Operation, Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.tree.change import apply_change, rewrite_root
from icefloe.tree.new_snapshot import Moment
from icefloe.tree.root import read_root

METADATA_FOLDER = "metadata"
_VERSION = re.compile(r"(?:v(\d+)|(\d+)-[0-9a-f-]+)(?:\.gz)?\.metadata\.json(?:\.gz)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt that is ready to swap."""

    pointer: str
    metadata: TableMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """What a snapshot is for: its operation, the keys to add to its summary, and where it goes."""

    operation: Operation
    properties: tuple[tuple[str, str], ...] = ()
    branch: str = MAIN
    staged: bool = False  # part of the table but of no branch, until it is published


def state_of(draft: Draft, branch: str, work: Work) -> State:
    """What an update that goes to a branch looks at."""
    return State(
        metadata=draft.metadata,
        store=draft.store,
        head=draft.head(branch),
        origin=head_of(work.base.metadata, branch),
        own=work.snapshot_ids,
        parents=work.parents,
    )


def make_snapshot(draft: Draft, work: Work, purpose: Purpose, resolved: Resolved | None) -> Draft:
    """The draft with one more snapshot; its leaves are written, its root waits in ``work``.

    Without a change the snapshot has the files of its parent, in leaves that are written again.
    """
    metadata, parent = draft.metadata, draft.head(purpose.branch)
    moment = Moment(
        snapshot_id=work.snapshot_id(),
        sequence_number=metadata.last_sequence_number + 1 if metadata.rules.sequence_numbers else 0,
        first_row_id=metadata.next_row_id if metadata.rules.row_lineage else None,
    )
    before, properties = read_root(draft.store, parent), metadata.properties
    if resolved is None:
        root = rewrite_root(draft.store, before, moment, work.staging, properties)
    else:
        root = apply_change(draft.store, before, resolved.change(), moment, work.staging, properties)
    if work.attempt == 1:
        work.parents[moment.snapshot_id] = None if parent is None else parent.snapshot_id
    location = f"{work.staging.folder}/{_root_name(draft, moment.snapshot_id, work)}"
    roots = 1 if metadata.rules.root_holds_files else 0  # elsewhere it is a list of manifests, not one itself
    counts = manifest_counts(before, root.rows, moment.snapshot_id, roots=roots)
    snapshot = Snapshot(
        snapshot_id=moment.snapshot_id,
        parent_id=None if parent is None else parent.snapshot_id,
        sequence_number=moment.sequence_number,
        timestamp_ms=now(draft, work),
        root=location,
        summary=summarize(purpose.operation, resolved or Resolved(), parent, dict(purpose.properties), counts),
        schema_id=metadata.current_schema_id,
        first_row_id=moment.first_row_id,
        added_rows=None if moment.first_row_id is None else root.added_rows,
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
    work.staging.named_by(root.rows)
    after = metadata.with_snapshot(snapshot, branch=None if purpose.staged else purpose.branch)
    return replace(draft.with_metadata(after), made=(*draft.made, snapshot))


def finish(draft: Draft, work: Work) -> Attempt:
    """Write the metadata file of a draft, and the roots that wait, all durable on return."""
    # The time of the last snapshot is that of the table, so that both tell the same.
    moment = latest(draft) if len(draft.made) > 0 else now(draft, work)
    metadata = _seen_at_once(draft).committed(timestamp_ms=moment, former_location=draft.base.pointer)
    compression = METADATA_COMPRESSION.of(metadata.properties)
    name = metadata_name(draft.base.pointer, str(work.env.new_uuid()), compressed=compression != "none")
    pointer = f"{metadata.location}/{METADATA_FOLDER}/{name}"
    data = encode_metadata(metadata, compression=compression)
    work.staging.write(draft.store, {**work.roots, pointer: data})
    work.roots = {}
    return Attempt(pointer=pointer, metadata=metadata)


def now(draft: Draft, work: Work) -> int:
    """The time of a change: a clock that goes back must not, since time travel reads the log in order."""
    return max(work.env.now_ms(), latest(draft))


def latest(draft: Draft) -> int:
    """The latest time that the draft tells: of the table, of its log, or of a snapshot that was just made."""
    logged = (entry.timestamp_ms for entry in draft.metadata.snapshot_log[-1:])
    made = (snapshot.timestamp_ms for snapshot in draft.made[-1:])
    return max((draft.metadata.last_updated_ms, *logged, *made))


def _seen_at_once(draft: Draft) -> TableMetadata:
    """The metadata without log entries of snapshots that the commit itself has left behind: no reader saw them."""
    metadata = draft.metadata
    if len(draft.made) < 2:
        return metadata
    passed = {made.snapshot_id for made in draft.made} - {metadata.current_snapshot_id}
    return replace(metadata, snapshot_log=tuple(e for e in metadata.snapshot_log if e.snapshot_id not in passed))


def metadata_name(former: str | None, uuid: str, *, compressed: bool = False) -> str:
    """The file name of the next metadata file: numbered, and unique even when two writers make the same number."""
    found = None if former is None else _VERSION.fullmatch(former.rsplit("/", 1)[-1])
    version = 0 if found is None else int(found[1] or found[2]) + 1
    return f"{version:05d}-{uuid}{'.gz' if compressed else ''}.metadata.json"


def _root_name(draft: Draft, snapshot_id: int, work: Work) -> str:
    """The file name of a root; other programs expect manifest lists under the name they know."""
    kind = "root" if draft.metadata.rules.root_holds_files else "snap"
    return f"{kind}-{snapshot_id}-{work.attempt}-{work.env.new_uuid()}.{extension(draft.store.context)}"

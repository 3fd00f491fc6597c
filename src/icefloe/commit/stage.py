"""One attempt at a commit: everything written but the pointer (spec: Optimistic Concurrency)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from icefloe.codecs.manifests import encode_root, extension
from icefloe.codecs.metadata_json import encode_metadata
from icefloe.commit.base import Base
from icefloe.commit.intent import Intent, Resolved
from icefloe.commit.summary import summarize
from icefloe.env import Env
from icefloe.model.metadata import TableMetadata
from icefloe.model.snapshots import Snapshot
from icefloe.tree.change import Moment, NewRoot, apply_change
from icefloe.tree.root import read_root
from icefloe.tree.staging import Staging

METADATA_FOLDER = "metadata"
_VERSION = re.compile(r"(\d+)-[0-9a-f-]+\.(gz\.)?metadata\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt that is ready to swap."""

    pointer: str
    metadata: TableMetadata
    snapshot: Snapshot


def stage(base: Base, intent: Intent, staging: Staging, *, snapshot_id: int, number: int, env: Env) -> Attempt:
    """Write the leaves, root and metadata file of ``intent`` on ``base``; a pure function of both but for names."""
    resolved = intent.resolve(base)
    parent = base.metadata.current_snapshot
    moment = Moment(
        snapshot_id=snapshot_id,
        sequence_number=base.metadata.last_sequence_number + 1,
        first_row_id=base.metadata.next_row_id if base.metadata.rules.row_lineage else None,
    )
    root = apply_change(
        base.store, read_root(base.store, parent), resolved.change(), moment, staging, base.metadata.properties
    )
    uuid = env.new_uuid()
    root_location = f"{staging.folder}/{root_name(base, snapshot_id, number, str(uuid))}"
    snapshot = _snapshot(base, intent, resolved, moment, root, root_location, env)
    metadata = base.metadata.with_snapshot(snapshot, former_location=base.pointer)
    pointer = f"{staging.folder}/{metadata_name(base.pointer, str(uuid))}"
    data = encode_root(
        root.rows,
        base.store.context,
        snapshot_id=snapshot_id,
        parent_id=snapshot.parent_id,
        sequence_number=snapshot.sequence_number,
    )
    staging.write(base.store, {root_location: data, pointer: encode_metadata(metadata)})
    base.store.remember(root_location, root.rows)
    return Attempt(pointer=pointer, metadata=metadata, snapshot=snapshot)


def root_name(base: Base, snapshot_id: int, number: int, uuid: str) -> str:
    """The file name of a root; other programs expect manifest lists under the name they know."""
    kind = "root" if base.metadata.rules.root_holds_files else "snap"
    return f"{kind}-{snapshot_id}-{number}-{uuid}.{extension(base.store.context)}"


def metadata_name(former: str | None, uuid: str) -> str:
    """The file name of the next metadata file: numbered, and unique even when two writers make the same number."""
    found = None if former is None else _VERSION.fullmatch(former.rsplit("/", 1)[-1])
    version = 0 if found is None else int(found[1]) + 1
    return f"{version:05d}-{uuid}.metadata.json"


def _snapshot(
    base: Base, intent: Intent, resolved: Resolved, moment: Moment, root: NewRoot, location: str, env: Env
) -> Snapshot:
    parent = base.metadata.current_snapshot
    return Snapshot(
        snapshot_id=moment.snapshot_id,
        parent_id=None if parent is None else parent.snapshot_id,
        sequence_number=moment.sequence_number,
        # A clock that goes back must not make a snapshot older than its parent: time travel reads the log in order.
        timestamp_ms=max(env.now_ms(), base.metadata.last_updated_ms),
        root=location,
        summary=summarize(intent.operation, resolved, parent, intent.properties),
        schema_id=base.metadata.current_schema_id,
        first_row_id=moment.first_row_id,
        added_rows=None if moment.first_row_id is None else root.added_rows,
    )

"""Commits a change once, however often it is repeated: its key is in the summary of its snapshot.

A change with a key looks for it in the snapshots of its branch before it writes anything, and again in every attempt to
commit. Two runs of one job that race therefore commit once. A key is known as long as its snapshot is retained, which
is at least the table property ``history.expire.max-record-age-ms`` (decision 040).

A batch of a stream is identified by the stream and its number, in the keys that Apache Iceberg writes. Numbers grow, so
a batch is committed if the newest batch of its stream has its number or a higher one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from icefloe.errors import InputError
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata, ancestors
from icefloe.model.text.text_checks import check_text

IDEMPOTENCY_KEY = "icefloe.idempotency-key"
STREAM_QUERY = "spark.sql.streaming.queryId"
STREAM_BATCH = "spark.sql.streaming.epochId"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKey:
    """Identifies a run of a job, by a text that the job chooses."""

    key: str

    @property
    def summary(self) -> dict[str, str]:
        """What the summary of the snapshot says."""
        return {IDEMPOTENCY_KEY: self.key}

    def is_committed_by(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot is that of the run."""
        return snapshot.summary.get(IDEMPOTENCY_KEY) == self.key

    def __str__(self) -> str:
        return f"the idempotency key {self.key!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBatch:
    """Identifies a batch of a stream."""

    query: str
    batch: int

    @property
    def summary(self) -> dict[str, str]:
        """What the summary of the snapshot says."""
        return {STREAM_QUERY: self.query, STREAM_BATCH: str(self.batch)}

    def is_committed_by(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot is that of the batch, or of a later batch of its stream."""
        number = snapshot.summary.get(STREAM_BATCH, "")
        return snapshot.summary.get(STREAM_QUERY) == self.query and number.isdecimal() and int(number) >= self.batch

    def __str__(self) -> str:
        return f"batch {self.batch} of query {self.query}"


CommitKey = RunKey | StreamBatch


def commit_key(idempotency_key: str | None, query: str | None = None, batch: int | None = None) -> CommitKey | None:
    """The key of a change, from the arguments of the methods that change rows; InputError if they make no sense.

    >>> commit_key(None, "orders", 7)
    StreamBatch(query='orders', batch=7)
    """
    if idempotency_key is not None and (query is not None or batch is not None):
        raise InputError("give idempotency_key=, or query= and batch=, not both")
    if (query is None) != (batch is None):
        raise InputError("query= and batch= name a batch of a stream together; give both or none")
    if query is not None and batch is not None:
        check_text(query, "query")
        if query == "":
            raise InputError("query is empty; give a text that names the stream, the same after every restart")
        if not isinstance(batch, int) or isinstance(batch, bool) or batch < 0:
            raise InputError(f"batch={batch!r}: give the number of the batch, as foreachBatch passes it", batch=batch)
        return StreamBatch(query=query, batch=batch)
    if idempotency_key is None:
        return None
    check_text(idempotency_key, "idempotency_key")
    if idempotency_key == "":
        raise InputError(
            "idempotency_key is empty; give a text that names this run of the job, such as its id and date"
        )
    return RunKey(key=idempotency_key)


def key_in(summary: Mapping[str, str]) -> CommitKey | None:
    """The key that is stated by the summary of a new snapshot; none if there is none."""
    if IDEMPOTENCY_KEY in summary:
        return RunKey(key=summary[IDEMPOTENCY_KEY])
    if STREAM_QUERY in summary and STREAM_BATCH in summary:
        return StreamBatch(query=summary[STREAM_QUERY], batch=int(summary[STREAM_BATCH]))
    return None


def record_in(snapshot: Snapshot) -> str | None:
    """What a snapshot is a record of, in words; a stream has one record, that of its newest batch.

    >>> record_in(Snapshot(snapshot_id=1, timestamp_ms=0, root=None, summary={IDEMPOTENCY_KEY: "load 7"}))
    "idempotency key 'load 7'"
    """
    if IDEMPOTENCY_KEY in snapshot.summary:
        return f"idempotency key {snapshot.summary[IDEMPOTENCY_KEY]!r}"
    if STREAM_QUERY in snapshot.summary:
        return f"stream {snapshot.summary[STREAM_QUERY]!r}"
    return None


def committed_snapshot(
    metadata: TableMetadata, branch: str, key: CommitKey | None, *, staged: bool = False, ignored: Collection[int] = ()
) -> Snapshot | None:
    """The newest snapshot of a branch with this key, or of the whole table for a ``staged`` one; None if there is none.

    Without a key there is none. Snapshots whose ids are ``ignored`` are made by the same commit.
    """
    if key is None:
        return None
    ref = metadata.refs.get(branch)
    head = metadata.current_snapshot_id if ref is None else ref.snapshot_id
    snapshots = metadata.snapshots if staged else () if head is None else ancestors(metadata, head)
    for snapshot in snapshots:
        if key.is_committed_by(snapshot) and snapshot.snapshot_id not in ignored:
            return snapshot
    return None

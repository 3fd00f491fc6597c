"""Which snapshots and refs expire, and what keeps the others (spec: Snapshot Retention Policy).

The rule is a pure function of the table metadata, a policy and a time, so that every attempt of a commit can apply it
to the state that it has loaded. Three things go beyond the specification. Snapshots in no branch (staged or rolled
back) are kept while they are younger than the cut-off, as in Apache Iceberg. A table can bound the number of snapshots
of a branch. And a branch keeps its snapshots back to the oldest record of a stream or an idempotency key that must
still be kept: a record is found by walking to it from the head, so the snapshots in between are kept too (decision
040).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from icefloe.model.metadata.properties import (
    INT_MAX,
    MAX_RECORD_AGE_MS,
    MAX_SNAPSHOT_AGE_MS,
    MAX_SNAPSHOTS_TO_KEEP,
    MIN_SNAPSHOTS_TO_KEEP,
)
from icefloe.model.metadata.snapshots import MAIN, Ref, Snapshot, retention
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.transactions import by_commit

RecordOf = Callable[[Snapshot], str | None]  # what a snapshot is a record of, in words, such as "query 7"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Reasons = dict[int, list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpirePolicy:
    """What to expire, relative to a time.

    ``older_than_ms`` and ``retain_last`` replace the defaults of the table properties, not the settings of a branch.
    With one of them the table's highest number of snapshots does not apply.
    With ``snapshot_ids`` alone nothing else expires.
    """

    now_ms: int
    older_than_ms: int | None = None
    retain_last: int | None = None
    snapshot_ids: frozenset[int] = frozenset()

    @property
    def only_chosen(self) -> bool:
        """Whether only snapshots that were chosen by id expire."""
        return len(self.snapshot_ids) > 0 and self.older_than_ms is None and self.retain_last is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """The result of a policy, with reasons. Snapshots are in the order of the table."""

    expired: Mapping[int, str]  # the reason of each
    expired_refs: Mapping[str, str]
    kept: Mapping[int, tuple[str, ...]]  # the reasons of each
    needed: Mapping[int, str]  # chosen by id, but a ref or a record needs it


def apply_policy(
    metadata: TableMetadata, policy: ExpirePolicy, record_of: RecordOf, *, keep_refs: bool = False
) -> Retained:
    """Evaluate a policy on a table; with ``keep_refs`` no branch or tag expires.

    A snapshot that was chosen by id stays if a branch, a tag or a record needs it. It expires even if it is younger
    than the cut-off or among the newest snapshots of its branch.
    """
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    refs, expired_refs = _refs(metadata, policy, by_id, keep_all=keep_refs or policy.only_chosen)
    lines = {name: list(_line(by_id, ref.snapshot_id)) for name, ref in refs.items() if ref.type == "branch"}
    firm: _Reasons = {}  # kept even if chosen by id
    for name, ref in refs.items():
        firm.setdefault(ref.snapshot_id, []).append(f"{ref.type} {name}")
    _keep_records(metadata, policy, lines, by_id, record_of, firm)
    by_rule: _Reasons = {}
    crowded: dict[int, str] = {}
    if not policy.only_chosen:
        for name, line in lines.items():
            _keep_newest(metadata, policy, name, refs[name], line, by_rule)
            crowded |= _beyond_most(metadata, policy, name, refs[name], line)
        _keep_unreferenced(_cutoff(metadata, policy), lines, by_id, by_rule)
    expired: dict[int, str] = {}
    branches = _branches(lines)
    for snapshot_id in by_id:
        if snapshot_id in firm:
            continue
        if snapshot_id in policy.snapshot_ids:
            expired[snapshot_id] = "chosen by its id"
        elif not policy.only_chosen and snapshot_id not in by_rule:
            on = branches.get(snapshot_id, ())
            reason = "in no branch or tag" if len(on) == 0 else f"too old for branch {', '.join(on)}"
            expired[snapshot_id] = crowded.get(snapshot_id, reason)
    kept = {key: (*firm.get(key, ()), *by_rule.get(key, ())) or ("not chosen",) for key in by_id if key not in expired}
    needed = {key: firm[key][0] for key in by_id if key in policy.snapshot_ids and key in firm}
    return Retained(expired=expired, expired_refs=expired_refs, kept=kept, needed=needed)


def _refs(
    metadata: TableMetadata, policy: ExpirePolicy, by_id: Mapping[int, Snapshot], *, keep_all: bool
) -> tuple[dict[str, Ref], dict[str, str]]:
    """The branches and tags that are kept, with main, and those that exceed their maximum age."""
    every = dict(metadata.refs)
    if metadata.current_snapshot_id is not None and MAIN not in every:
        every[MAIN] = Ref(snapshot_id=metadata.current_snapshot_id)
    kept: dict[str, Ref] = {}
    expired: dict[str, str] = {}
    for name, ref in every.items():
        most = retention(name, ref, metadata.properties).max_ref_age_ms
        age = policy.now_ms - by_id[ref.snapshot_id].timestamp_ms
        if keep_all or most is None or age <= most:
            kept[name] = ref
        else:
            expired[name] = f"its snapshot is {_duration(age)} old, and it is kept for {_duration(most)}"
    return kept, expired


def _line(by_id: Mapping[int, Snapshot], head: int) -> Iterator[Snapshot]:
    """A snapshot and its ancestors, newest first, as far as the table still has them."""
    seen: set[int] = set()
    following: int | None = head
    while following is not None and following in by_id and following not in seen:
        seen.add(following)
        yield by_id[following]
        following = by_id[following].parent_id


def _branches(lines: Mapping[str, list[Snapshot]]) -> dict[int, list[str]]:
    """The branches that each snapshot is in."""
    names: dict[int, list[str]] = {}
    for name, line in lines.items():
        for snapshot in line:
            names.setdefault(snapshot.snapshot_id, []).append(name)
    return names


def _keep_newest(
    metadata: TableMetadata, policy: ExpirePolicy, name: str, ref: Ref, line: list[Snapshot], reasons: _Reasons
) -> None:
    """Keep the snapshots of a branch until one is too old and not among the newest ones; a transaction stays whole."""
    fewest = ref.min_snapshots_to_keep
    if fewest is None:
        fewest = MIN_SNAPSHOTS_TO_KEEP.of(metadata.properties) if policy.retain_last is None else policy.retain_last
    cutoff, most = _branch_cutoff(metadata, policy, ref), _most(metadata, policy, ref)
    for number, snapshot in enumerate(line):
        if number < fewest:
            reason = f"among the newest {fewest} of branch {name}"
        elif snapshot.timestamp_ms >= cutoff and number < most:
            reason = f"not older than {at_time(cutoff)}, branch {name}"
        elif number > 0 and len(by_commit((snapshot, line[number - 1]))) == 1:
            reason = f"of the transaction of snapshot {line[number - 1].snapshot_id}"
        else:
            return
        reasons.setdefault(snapshot.snapshot_id, []).append(reason)


def _beyond_most(
    metadata: TableMetadata, policy: ExpirePolicy, name: str, ref: Ref, line: list[Snapshot]
) -> dict[int, str]:
    """The snapshots of a branch that are young but exceed the number that the table keeps, with the reason."""
    cutoff, most = _branch_cutoff(metadata, policy, ref), _most(metadata, policy, ref)
    reason = f"not among the newest {most} of branch {name}"
    return {snapshot.snapshot_id: reason for snapshot in line[most:] if snapshot.timestamp_ms >= cutoff}


def _branch_cutoff(metadata: TableMetadata, policy: ExpirePolicy, ref: Ref) -> int:
    age = ref.max_snapshot_age_ms
    return _cutoff(metadata, policy) if age is None else policy.now_ms - age


def _most(metadata: TableMetadata, policy: ExpirePolicy, ref: Ref) -> int:
    """How many snapshots a branch keeps at most, unless its own settings or the policy say what it keeps."""
    own = (ref.max_snapshot_age_ms, policy.older_than_ms, policy.retain_last)
    return MAX_SNAPSHOTS_TO_KEEP.of(metadata.properties) if own == (None, None, None) else INT_MAX


def _keep_unreferenced(
    cutoff: int, lines: Mapping[str, list[Snapshot]], by_id: Mapping[int, Snapshot], reasons: _Reasons
) -> None:
    """Keep young snapshots that are in no branch: staged ones, and those before a rollback."""
    in_branches = _branches(lines)
    for snapshot_id, snapshot in by_id.items():
        if snapshot_id not in in_branches and snapshot.timestamp_ms >= cutoff:
            reason = f"not older than {at_time(cutoff)}, in no branch (staged or rolled back)"
            reasons.setdefault(snapshot_id, []).append(reason)


def _keep_records(
    metadata: TableMetadata,
    policy: ExpirePolicy,
    lines: Mapping[str, list[Snapshot]],
    by_id: Mapping[int, Snapshot],
    record_of: RecordOf,
    reasons: _Reasons,
) -> None:
    """Keep the newest snapshot of each record that must be kept, and the snapshots between it and the branch head."""
    oldest = policy.now_ms - MAX_RECORD_AGE_MS.of(metadata.properties)
    for name, line in lines.items():
        found: dict[str, int] = {}
        for number, snapshot in enumerate(line):
            record = record_of(snapshot)
            if record is not None and record not in found:
                found[record] = number
                if snapshot.timestamp_ms > oldest:
                    reasons.setdefault(snapshot.snapshot_id, []).append(f"newest record of {record}, branch {name}")
        promised = {record: number for record, number in found.items() if line[number].timestamp_ms > oldest}
        if len(promised) > 0:
            last = max(promised, key=lambda record: promised[record])
            for snapshot in line[: promised[last]]:
                reason = f"between branch {name} and the record of {last}"
                reasons.setdefault(snapshot.snapshot_id, []).append(reason)
    in_branches = _branches(lines)
    for snapshot_id, snapshot in by_id.items():  # a staged change looks for its key in the whole table
        record = record_of(snapshot)
        if snapshot_id not in in_branches and record is not None and snapshot.timestamp_ms > oldest:
            reasons.setdefault(snapshot_id, []).append(f"record of {record}, in no branch")


def _cutoff(metadata: TableMetadata, policy: ExpirePolicy) -> int:
    if policy.older_than_ms is not None:
        return policy.older_than_ms
    return policy.now_ms - MAX_SNAPSHOT_AGE_MS.of(metadata.properties)


def at_time(timestamp_ms: int) -> str:
    """A time for people, in UTC.

    >>> at_time(0), at_time(-(10**18))
    ('1970-01-01 00:00:00 UTC', '-1000000000000000000 ms')
    """
    try:
        return f"{_EPOCH + timedelta(milliseconds=timestamp_ms // 1000 * 1000):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return f"{timestamp_ms} ms"


def _duration(milliseconds: int) -> str:
    return (
        f"{milliseconds // 86_400_000} days" if milliseconds >= 2 * 86_400_000 else f"{milliseconds / 3_600_000:.1f} h"
    )

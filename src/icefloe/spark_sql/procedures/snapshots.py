"""Procedures of CALL about snapshots: the one of main, branches and tags, and the history."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from pyspark.sql import SparkSession

from icefloe.commit.operations.ref_updates import CURRENT, SetRef
from icefloe.errors import InputError
from icefloe.expr.text.spark_sql import quoted
from icefloe.model.metadata.snapshots import Ref, Snapshot
from icefloe.spark_sql.options.changelog import in_capitals, point
from icefloe.spark_sql.options.known_options import ENDS, STARTS
from icefloe.spark_sql.options.session_names import columns
from icefloe.spark_sql.procedures.procedure import Int, Row, procedure
from icefloe.table.table import Table

_MOVED = "previous_snapshot_id bigint, current_snapshot_id bigint"
_PICKED = "source_snapshot_id bigint, current_snapshot_id bigint"
_REF = "name string, snapshot_id bigint"
_WAP_ID = "wap.id"
_RefKind = Literal["branch", "tag"]
_AGE = re.compile(r"\s*(\d{1,9})\s*(minute|hour|day)s?\s*", re.IGNORECASE)
_MILLISECONDS = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}


@procedure(_MOVED)
def rollback_to_snapshot(table: Table, snapshot_id: int) -> list[Row]:
    """Set main to an earlier snapshot."""
    before = _current(table)
    table.rollback(snapshot=snapshot_id)
    return [(before, _current(table.refresh()))]


@procedure(_MOVED)
def rollback_to_timestamp(table: Table, timestamp: datetime) -> list[Row]:
    """Set main to the snapshot that was current at a time."""
    before = _current(table)
    table.rollback(timestamp=timestamp)
    return [(before, _current(table.refresh()))]


@procedure(_MOVED)
def set_current_snapshot(table: Table, snapshot_id: int | None = None, ref: str | None = None) -> list[Row]:
    """Set main to any snapshot, branch or tag."""
    if (snapshot_id is None) == (ref is None):
        raise InputError("set_current_snapshot: give either snapshot_id or ref")
    before = _current(table)
    table.set_current_snapshot(snapshot_id, ref=ref)
    return [(before, _current(table.refresh()))]


@procedure(_PICKED)
def cherrypick_snapshot(table: Table, snapshot_id: int) -> list[Row]:
    """Apply the changes of a staged snapshot to main."""
    table.cherry_pick(snapshot_id)
    return [(snapshot_id, _current(table.refresh()))]


@procedure(_PICKED)
def publish_changes(table: Table, wap_id: str) -> list[Row]:
    """Apply the changes that were staged with an id to main."""
    staged = [snapshot for snapshot in table.snapshots if snapshot.summary.get(_WAP_ID) == wap_id]
    if len(staged) == 0:
        raise InputError(f"publish_changes: no snapshot was staged with wap_id {wap_id!r}", wap_id=wap_id)
    if len(staged) > 1:
        raise InputError(
            f"publish_changes: {len(staged)} snapshots were staged with wap_id {wap_id!r}; publish one of them with"
            " cherrypick_snapshot",
            wap_id=wap_id,
        )
    table.cherry_pick(staged[0].snapshot_id)
    return [(staged[0].snapshot_id, _current(table.refresh()))]


@procedure("branch_updated string, previous_ref bigint, updated_ref bigint")
def fast_forward(table: Table, branch: str, to: str) -> list[Row]:
    """Move a branch forward to the snapshot of another one."""
    before = table.refs.get(branch)
    table.fast_forward(branch, to=to)
    after = table.refresh().refs[branch].snapshot_id
    return [(branch, None if before is None else before.snapshot_id, after)]


@procedure(_REF)
def create_branch(
    table: Table,
    branch: str,
    snapshot_id: int | None = None,
    retain: str | None = None,
    min_snapshots_to_keep: Int | None = None,
    max_snapshot_age: str | None = None,
    if_not_exists: bool = False,
    or_replace: bool = False,
) -> list[Row]:
    """Create or replace a branch.

    ``retain`` is the age at which the branch itself expires. ``min_snapshots_to_keep`` and ``max_snapshot_age`` say
    which of its snapshots are kept. Ages are texts such as ``30 days``: Spark does not convert the intervals of CALL.
    """
    if _is_kept(table, branch, "branch", if_not_exists=if_not_exists, or_replace=or_replace):
        return [(branch, table.refs[branch].snapshot_id)]
    retention = {
        "max_ref_age_ms": _age_ms("retain", retain),
        "min_snapshots_to_keep": min_snapshots_to_keep,
        "max_snapshot_age_ms": _age_ms("max_snapshot_age", max_snapshot_age),
    }
    return _set_ref(table, branch, "branch", snapshot_id, retention, or_replace=or_replace)


@procedure(_REF)
def create_tag(
    table: Table,
    tag: str,
    snapshot_id: int | None = None,
    retain: str | None = None,
    if_not_exists: bool = False,
    or_replace: bool = False,
) -> list[Row]:
    """Create or replace a tag."""
    if _is_kept(table, tag, "tag", if_not_exists=if_not_exists, or_replace=or_replace):
        return [(tag, table.refs[tag].snapshot_id)]
    return _set_ref(
        table, tag, "tag", snapshot_id, {"max_ref_age_ms": _age_ms("retain", retain)}, or_replace=or_replace
    )


@procedure(_REF)
def drop_branch(table: Table, branch: str) -> list[Row]:
    """Drop a branch."""
    return _drop_ref(table, branch, "branch")


@procedure(_REF)
def drop_tag(table: Table, tag: str) -> list[Row]:
    """Drop a tag."""
    return _drop_ref(table, tag, "tag")


def _is_kept(table: Table, name: str, kind: _RefKind, *, if_not_exists: bool, or_replace: bool) -> bool:
    """Whether a branch or tag is there that must not be replaced; without ``if_not_exists`` it is an error later."""
    if if_not_exists and or_replace:
        raise InputError("give if_not_exists or or_replace, not both", ref=name)
    return if_not_exists and name in table.refs and table.refs[name].type == kind


def _set_ref(
    table: Table,
    name: str,
    kind: _RefKind,
    snapshot_id: int | None,
    retention: Mapping[str, int | None],
    *,
    or_replace: bool,
) -> list[Row]:
    """Create a branch or tag, or replace it; a replaced one keeps the retention that is not stated."""
    known = table.refs.get(name)
    former = known if or_replace and known is not None else Ref(snapshot_id=CURRENT)
    stated: dict[str, Any] = {setting: value for setting, value in retention.items() if value is not None}
    ref = replace(former, type=kind, snapshot_id=CURRENT if snapshot_id is None else snapshot_id, **stated)
    table._commit(SetRef(ref_name=name, ref=ref, fresh=not or_replace))
    return [(name, table.refresh().refs[name].snapshot_id)]


def _age_ms(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    found = _AGE.fullmatch(text)
    if found is None:
        raise InputError(f"{name} {text!r}: give an age in days, hours or minutes, such as '30 days'", value=text)
    return int(found[1]) * _MILLISECONDS[found[2].lower()]


def _drop_ref(table: Table, name: str, kind: _RefKind) -> list[Row]:
    ref = table.metadata.ref(name)
    if ref.type != kind:
        raise InputError(f"{name!r} is a {ref.type}, not a {kind}", ref=name)
    table.remove_ref(name)
    return [(name, ref.snapshot_id)]


@procedure("snapshot_id bigint, timestamp bigint")
def ancestors_of(table: Table, snapshot_id: int | None = None) -> list[Row]:
    """A snapshot and those that it was made from."""
    known = {snapshot.snapshot_id: snapshot for snapshot in table.snapshots}
    if snapshot_id is not None and snapshot_id not in known:
        raise InputError(f"ancestors_of: the table has no snapshot {snapshot_id}", snapshot_id=snapshot_id)
    next_id = _current(table) if snapshot_id is None else snapshot_id
    found: list[Snapshot] = []
    while next_id is not None and next_id in known:
        found.append(known[next_id])
        next_id = known[next_id].parent_id
    return [(snapshot.snapshot_id, snapshot.timestamp_ms) for snapshot in found]


@procedure("changelog_view string")
def create_changelog_view(
    table: Table,
    changelog_view: str | None = None,
    options: dict[str, str] | None = None,
    compute_updates: bool | None = None,
    identifier_columns: list[str] | None = None,
    net_changes: bool = False,
) -> list[Row]:
    """Create a temporary view of the rows that changed between two snapshots."""
    ends, known = options or {}, (*STARTS, *ENDS)
    for name in ends:
        if name not in known:
            raise InputError(f"create_changelog_view: there is no option {name!r}; there are: {', '.join(known)}")
    keys = None if identifier_columns is None else columns(identifier_columns, table.refresh().schema)
    images = keys is not None if compute_updates is None else compute_updates
    since, until = point(ends, STARTS), point(ends, ENDS)
    changes = table.changes(since, until, net=net_changes, images=images, keys=keys if images else None)
    view = f"{table.name.rpartition('.')[2]}_changes" if changelog_view is None else changelog_view
    in_capitals(changes.to_spark(SparkSession.active())).createOrReplaceTempView(quoted(view))
    return [(view,)]


def _current(table: Table) -> int | None:
    return table.metadata.current_snapshot_id

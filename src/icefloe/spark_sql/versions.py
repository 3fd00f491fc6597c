"""States of a table by name: snapshot id, branch, tag or time, in SQL, in names of tables and in reader options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from icefloe.errors import InputError
from icefloe.model.metadata.snapshots import MAIN
from icefloe.spark_sql.options.known_options import ENDS, OF_STATE, STARTS
from icefloe.table.table_at import TableAt

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SELECTOR = re.compile(r"(branch|tag|snapshot_id|at_timestamp)_(.+)", re.DOTALL)
_AFTER, _UNTIL = STARTS[0], ENDS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A state of a table, by at most one of these; ``ref`` is a branch or a tag. Without any, the current state."""

    snapshot: int | None = None
    branch: str | None = None
    tag: str | None = None
    ref: str | None = None
    timestamp: datetime | None = None

    def of(self, at: TableAt) -> TableAt:
        """The state that this names in the metadata of another state."""
        if self.ref is not None:
            is_branch = at.metadata.ref(self.ref).type == "branch"
            return at.at(branch=self.ref) if is_branch else at.at(tag=self.ref)
        return at.at(snapshot=self.snapshot, branch=self.branch, tag=self.tag, timestamp=self.timestamp)

    def branch_of(self, at: TableAt) -> str | None:
        """The branch that writes to this state go to; none if it is a state of the past."""
        if self == CURRENT:
            return MAIN
        if self.ref is not None:
            return self.ref if at.metadata.ref(self.ref).type == "branch" else None
        return self.branch


CURRENT = Version()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendRange:
    """The appends after a snapshot, up to another one; by default up to the newest one."""

    after: int
    until: int | None = None


def version_in_sql(version: str | None, timestamp_us: int | None) -> Version:
    """The state of VERSION AS OF or TIMESTAMP AS OF; a version that is a number is a snapshot id.

    >>> version_in_sql("12", None), version_in_sql("audit", None).ref
    (Version(snapshot=12, branch=None, tag=None, ref=None, timestamp=None), 'audit')
    """
    if timestamp_us is not None:
        return Version(timestamp=_EPOCH + timedelta(microseconds=timestamp_us))
    if version is None:
        return CURRENT
    return Version(snapshot=int(version)) if version.isdecimal() else Version(ref=version)


def version_in_name(name: str) -> Version | None:
    """The state that the last part of a name selects, such as ``branch_audit``; none if it is no selector.

    >>> version_in_name("tag_v1").tag, version_in_name("orders")
    ('v1', None)
    """
    found = _SELECTOR.fullmatch(name)
    return None if found is None else _version(found[1].replace("_", "-").replace("at-", "as-of-"), found[2])


def version_in_options(options: Mapping[str, str]) -> Version | None:
    """The state that reader options select, by the option names of Apache Iceberg; none if they select none."""
    named = [(name, value) for name, value in options.items() if name.lower() in OF_STATE]
    if len(named) > 1:
        raise InputError(f"give one of the options {', '.join(name for name, _ in named)}, not several")
    return None if len(named) == 0 else _version(named[0][0].lower(), named[0][1])


def appends_in_options(options: Mapping[str, str]) -> AppendRange | None:
    """The appends that reader options select, by the option names of Apache Iceberg; none if they select none.

    >>> appends_in_options({"start-snapshot-id": "7", "End-Snapshot-Id": "9"}), appends_in_options({"tag": "v1"})
    (AppendRange(after=7, until=9), None)
    """
    given = {name.lower(): value for name, value in options.items()}
    if _AFTER not in given:
        if _UNTIL in given:
            raise InputError(f"give the option {_AFTER} too: {_UNTIL} alone does not say which appends to read")
        return None
    others = [name for name in OF_STATE if name in given]
    if len(others) > 0:
        raise InputError(f"the options {_AFTER} and {others[0]} cannot be combined; give one of them")
    until = given.get(_UNTIL)
    return AppendRange(after=_number(_AFTER, given[_AFTER]), until=None if until is None else _number(_UNTIL, until))


def _version(kind: str, value: str) -> Version:
    if kind == "branch":
        return Version(branch=value)
    if kind == "tag":
        return Version(tag=value)
    number = _number(kind, value)
    return (
        Version(snapshot=number)
        if kind == "snapshot-id"
        else Version(timestamp=_EPOCH + timedelta(milliseconds=number))
    )


def _number(kind: str, value: str) -> int:
    if not value.isdecimal():
        raise InputError(f"{kind} {value!r} is not a number", value=value)
    return int(value)

"""Verbs that check tables and keep them healthy."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Protocol

import typer

from icefloe.cli.arguments import Execute, OnSpark, TableName, pairs
from icefloe.cli.output import Record
from icefloe.cli.session import Session
from icefloe.errors import InputError
from icefloe.progress import Progress


class _Shown(Protocol):
    """A value with fields for programs and a text for people."""

    def as_dict(self) -> dict[str, Any]: ...


class _Plan(_Shown, Protocol):
    """Planned work."""

    def execute(self, progress: Progress) -> _Shown: ...


def _shown(value: _Shown, *, findings: bool = False) -> Record:
    return Record(fields=value.as_dict(), text=repr(value), findings=findings)


def _planned(
    session: Session, plan: _Plan, *, execute: bool, is_finding: Callable[[Any], bool] = lambda result: False
) -> Record:
    """The plan, or what its execution did."""
    if not execute:
        return Record(fields=plan.as_dict(), text=f"{plan!r}\nnothing was changed; --execute does it")
    with session.progress() as progress:
        result = plan.execute(progress=progress)
    return _shown(result, findings=is_finding(result))


class Snapshots(StrEnum):
    """Which snapshots are checked."""

    CURRENT = "current"
    ALL = "all"


def verify(
    session: Session,
    table: TableName,
    snapshots: Annotated[Snapshots, typer.Option(help="The heads of branches and tags, or all snapshots.")] = (
        Snapshots.CURRENT
    ),
    files: Annotated[bool, typer.Option("--files", help="Look up every file in storage.")] = False,
    rows: Annotated[bool, typer.Option("--rows", help="Read the data files and compare them with statistics.")] = False,
    on_spark: OnSpark = False,
) -> Record:
    """Check that a table is sound. Exit code 3 if it is not; each finding says what to do."""
    opened = session.table(table)
    with session.progress() as progress:
        result = opened.verify(
            snapshots=snapshots.value, files=files, rows=rows, progress=progress, spark=session.spark(on_spark)
        )
    return _shown(result, findings=any(found.severity != "info" for found in result.findings))


def health(
    session: Session,
    table: TableName,
    storage: Annotated[bool, typer.Option("--storage", help="List the folder for unreferenced files too.")] = False,
    on_spark: OnSpark = False,
) -> Record:
    """Measure what makes a table slow or large, and say which command improves it. Exit code 3 with findings."""
    result = session.table(table).health(storage=storage, spark=session.spark(on_spark))
    return _shown(result, findings=len(result.findings) > 0)


def maintain(
    session: Session,
    table: TableName,
    max_bytes: Annotated[int | None, typer.Option(help="Bytes of data files that compaction may read.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="No step begins after this time.")] = None,
    orphans: Annotated[bool, typer.Option("--orphans", help="Remove files that nothing references too.")] = False,
    on_spark: OnSpark = False,
    execute: Execute = False,
) -> Record:
    """Do what the health of a table calls for, within a budget. Safe to run from a scheduler on every table."""
    limits = {"bytes": max_bytes, "seconds": max_seconds}
    budget = {name: limit for name, limit in limits.items() if limit is not None}
    plan = session.table(table).maintain(budget, orphans=orphans, spark=session.spark(on_spark))
    return _planned(session, plan, execute=execute)


def rewrite_deletes(
    session: Session,
    table: TableName,
    where: Annotated[
        str | None, typer.Option(help="Only data files that may have rows that match this filter.")
    ] = None,
    branch: Annotated[str, typer.Option(help="Branch to change.")] = "main",
    on_spark: OnSpark = False,
    execute: Execute = False,
) -> Record:
    """Convert equality and position delete files to deletion vectors. No row changes."""
    plan = session.table(table).rewrite_deletes(where, branch=branch, spark=session.spark(on_spark))
    return _planned(session, plan, execute=execute)


class Strategy(StrEnum):
    """How compaction orders rows."""

    BINPACK = "binpack"
    SORT = "sort"
    ZORDER = "zorder"


def compact(
    session: Session,
    table: TableName,
    where: Annotated[str | None, typer.Option(help="Only files that may have rows that match this filter.")] = None,
    strategy: Annotated[Strategy, typer.Option(help="Keep the order of rows, sort them, or z-order them.")] = (
        Strategy.BINPACK
    ),
    sort_by: Annotated[list[str] | None, typer.Option(help='Such as "id desc"; by default the table\'s order.')] = None,
    zorder_by: Annotated[list[str] | None, typer.Option(help="A column; give it again for each.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of Apache Iceberg's rewrite_data_files.")
    ] = None,
    branch: Annotated[str, typer.Option(help="Branch to compact.")] = "main",
    on_spark: OnSpark = False,
    execute: Execute = False,
) -> Record:
    """Rewrite small files, large files and files with many deleted rows."""
    plan = session.table(table).compact(
        where,
        strategy.value,
        sort_by=sort_by or None,
        zorder_by=zorder_by or None,
        options=pairs(option or (), "--option"),
        branch=branch,
        spark=session.spark(on_spark),
    )
    return _planned(session, plan, execute=execute)


def rewrite_manifests(
    session: Session,
    table: TableName,
    cluster_by: Annotated[list[str] | None, typer.Option(help="Partition field to sort by first.")] = None,
    execute: Execute = False,
) -> Record:
    """Rewrite the manifests, sorted by partition and with the target size of the table. No row changes."""
    return _planned(session, session.table(table).rewrite_manifests(cluster_by or None), execute=execute)


def analyze(
    session: Session,
    table: TableName,
    column: Annotated[
        list[str] | None, typer.Option(help="A column to analyze; give it again for each. By default all.")
    ] = None,
    partitions: Annotated[
        bool, typer.Option("--partitions", help="Sum up the files of each partition instead; reads no rows.")
    ] = False,
    snapshot: Annotated[int | None, typer.Option(help="Snapshot to analyze, by default the current one.")] = None,
) -> Record:
    """Count the distinct values of columns, and store them as statistics of a snapshot. No row changes."""
    opened = session.table(table)
    if partitions and column is not None:
        raise InputError("--partitions sums up files, not columns; leave --column out")
    if partitions:
        return _shown(opened.analyze_partitions(snapshot=snapshot))
    with session.progress() as progress:
        return _shown(opened.analyze(column, snapshot=snapshot, progress=progress))


def expire(
    session: Session,
    table: TableName,
    older_than: Annotated[str | None, typer.Option(help="Time with a zone, such as 2026-11-15T09:00:00+01:00.")] = None,
    retain_last: Annotated[int | None, typer.Option(help="Snapshots that each branch keeps.")] = None,
    snapshot: Annotated[
        list[int] | None, typer.Option(help="Expire this snapshot and no others; give it again for each.")
    ] = None,
    keep_files: Annotated[bool, typer.Option("--keep-files", help="Delete no files.")] = False,
    on_spark: OnSpark = False,
    execute: Execute = False,
) -> Record:
    """Remove old snapshots by the retention rules, and delete the files that only they needed."""
    plan = session.table(table).expire(
        older_than,
        retain_last=retain_last,
        snapshots=snapshot or None,
        clean=not keep_files,
        spark=session.spark(on_spark),
    )
    return _planned(session, plan, execute=execute)


def orphans(
    session: Session,
    table: TableName,
    older_than: Annotated[str | None, typer.Option(help="Time with a zone; by default three days ago.")] = None,
    location: Annotated[str | None, typer.Option(help="Only this folder of the table.")] = None,
    allow_recent: Annotated[
        bool, typer.Option("--allow-recent", help="Also files of the last 24 hours; no writer may be running.")
    ] = False,
    max_share: Annotated[float, typer.Option(help="Refuse if a larger share of the files would be deleted.")] = 0.2,
    on_spark: OnSpark = False,
    execute: Execute = False,
) -> Record:
    """Delete files in the folder of a table that no metadata references."""
    plan = session.table(table).remove_orphans(
        older_than,
        location=location,
        spark=session.spark(on_spark),
        allow_recent=allow_recent,
        max_share=max_share,
    )
    return _planned(session, plan, execute=execute)


def erase(
    session: Session,
    table: TableName,
    where: Annotated[str, typer.Argument(metavar="FILTER", help='The rows to erase, such as "customer_id = 5".')],
    on_spark: OnSpark = False,
    execute: Execute = False,
) -> Record:
    """Erase rows for good, older snapshots and files included, and prove it. Exit code 3 if something blocks it."""
    plan = session.table(table).erase(where, spark=session.spark(on_spark))
    return _planned(session, plan, execute=execute, is_finding=lambda report: not report.complete)


class Outside(StrEnum):
    """What happens to files outside the table."""

    REFUSE = "refuse"
    KEEP = "keep"


def relocate(
    session: Session,
    table: TableName,
    location: Annotated[str, typer.Argument(metavar="LOCATION", help="The new folder of the table.")],
    copy: Annotated[
        bool, typer.Option("--copy/--no-copy", help="Copy the files, or only check that another program did.")
    ] = True,
    snapshots: Annotated[Snapshots, typer.Option(help="All snapshots, or the heads of branches and tags.")] = (
        Snapshots.ALL
    ),
    outside: Annotated[Outside, typer.Option(help="Refuse files outside the table, or keep them there.")] = (
        Outside.REFUSE
    ),
    switch: Annotated[
        bool, typer.Option("--switch/--no-switch", help="Let the catalog entry name the table at the new location.")
    ] = True,
    execute: Execute = False,
) -> Record:
    """Move a table to another folder or bucket. The files at the old location stay."""
    plan = session.table(table).relocate(
        location, copy=copy, snapshots=snapshots.value, outside=outside.value, switch=switch
    )
    return _planned(session, plan, execute=execute)

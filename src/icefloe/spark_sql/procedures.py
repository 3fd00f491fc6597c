"""The procedures of ``CALL demo.system.*``: actions on tables, with the names and arguments of Apache Iceberg.

What Apache Iceberg says by a grammar of its own (partition fields, branches, tags, write order, identifier fields) is a
procedure here too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from icefloe.commit.operations.ref_updates import FastForward, SetCurrentSnapshot
from icefloe.commit.result import CommitResult
from icefloe.errors import InputError
from icefloe.model.metadata.snapshots import Snapshot, SummaryKey
from icefloe.spark_sql.options.cleanup_options import expire_snapshots, remove_orphan_files
from icefloe.spark_sql.options.ref_options import RefKind, set_ref
from icefloe.table.catalog import Catalog
from icefloe.table.table import Table

Row = tuple[object, ...]
Arguments = Mapping[str, Any]  # texts, tuples of texts, and the table as an identifier; null ones are left out
Run = Callable[[Catalog, Arguments], list[Row]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WAP_ID = "wap.id"
_SOURCE = re.compile(r"`?(parquet|orc|avro)`?\.`(.+)`", re.IGNORECASE)
_NULL = "NULL"
_MOVED = "previous_snapshot_id bigint, current_snapshot_id bigint"
_PICKED = "source_snapshot_id bigint, current_snapshot_id bigint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter: its type, and the SQL of its default; without one it must be given."""

    name: str
    type: str = "string"
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure; ``result`` are the columns of the rows that it returns."""

    description: str
    parameters: tuple[Parameter, ...]
    result: str
    run: Run


def _on_table(run: Callable[[Table, Arguments], list[Row]]) -> Run:
    return lambda catalog, arguments: run(catalog.load_table(arguments["table"]), arguments)


def _current(table: Table) -> int | None:
    return table.metadata.current_snapshot_id


def _rollback_to_snapshot(table: Table, arguments: Arguments) -> list[Row]:
    before = _current(table)
    table.rollback(snapshot=int(arguments["snapshot_id"]))
    return [(before, _current(table.refresh()))]


def _rollback_to_timestamp(table: Table, arguments: Arguments) -> list[Row]:
    before = _current(table)
    table.rollback(timestamp=_EPOCH + timedelta(microseconds=int(arguments["timestamp"])))
    return [(before, _current(table.refresh()))]


def _set_current_snapshot(table: Table, arguments: Arguments) -> list[Row]:
    if ("snapshot_id" in arguments) == ("ref" in arguments):
        raise InputError("set_current_snapshot: give either snapshot_id or ref")
    before = _current(table)
    named = arguments.get("ref")
    snapshot = int(arguments["snapshot_id"]) if named is None else table.metadata.ref(named).snapshot_id
    table._commit(SetCurrentSnapshot(snapshot_id=snapshot))
    return [(before, _current(table.refresh()))]


def _cherrypick_snapshot(table: Table, arguments: Arguments) -> list[Row]:
    source = int(arguments["snapshot_id"])
    table.cherry_pick(source)
    return [(source, _current(table.refresh()))]


def _publish_changes(table: Table, arguments: Arguments) -> list[Row]:
    wap_id = arguments["wap_id"]
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


def _fast_forward(table: Table, arguments: Arguments) -> list[Row]:
    branch = arguments["branch"]
    before = table.refs.get(branch)
    table._commit(FastForward(branch=branch, to=arguments["to"]))
    after = table.refresh().refs[branch].snapshot_id
    return [(branch, None if before is None else before.snapshot_id, after)]


def _ancestors_of(table: Table, arguments: Arguments) -> list[Row]:
    known = {snapshot.snapshot_id: snapshot for snapshot in table.snapshots}
    given = arguments.get("snapshot_id")
    next_id = _current(table) if given is None else int(given)
    if given is not None and next_id not in known:
        raise InputError(f"ancestors_of: the table has no snapshot {given}", snapshot_id=given)
    found: list[Snapshot] = []
    while next_id is not None and next_id in known:
        found.append(known[next_id])
        next_id = known[next_id].parent_id
    return [(snapshot.snapshot_id, snapshot.timestamp_ms) for snapshot in found]


def _rewrite_manifests(table: Table, arguments: Arguments) -> list[Row]:
    """Rewrite the manifests, unless there is only one; the row has the numbers of replaced and new ones."""
    before = table.at().snapshot
    if before is None or _manifests(before) == 1:
        return [(0, 0)]
    made = _made(table, table.rewrite_manifests())
    return [(_count(made, SummaryKey.MANIFESTS_REPLACED), _count(made, SummaryKey.MANIFESTS_CREATED))]


def _manifests(snapshot: Snapshot) -> int | None:
    """The number of manifests of a snapshot, if its summary has it; the root of version 4 is one."""
    created, kept = (_count(snapshot, key) for key in (SummaryKey.MANIFESTS_CREATED, SummaryKey.MANIFESTS_KEPT))
    return None if created is None or kept is None else created + kept


def _made(table: Table, result: CommitResult) -> Snapshot | None:
    """The snapshot that a commit made."""
    return None if result.snapshot_id is None else table.refresh().metadata.snapshots.find(result.snapshot_id)


def _count(snapshot: Snapshot | None, key: SummaryKey) -> int | None:
    """A count in the summary of a snapshot, if it is there."""
    text = "" if snapshot is None else snapshot.summary.get(key, "")
    return int(text) if text.isdecimal() else None


def _add_files(table: Table, arguments: Arguments) -> list[Row]:
    source = arguments["source_table"]
    found = _SOURCE.fullmatch(source)
    if found is None:
        raise InputError(f"add_files: source_table {source!r} is no folder, such as parquet.`file:///data/orders`")
    is_partitioned = table.spec.is_partitioned
    result = table.add_files(found[2], partition="hive" if is_partitioned else None, file_format=found[1].lower())
    return [(result.files_added, _count(_made(table, result), SummaryKey.CHANGED_PARTITION_COUNT))]


def _register_table(catalog: Catalog, arguments: Arguments) -> list[Row]:
    snapshot = catalog.register_table(arguments["table"], arguments["metadata_file"]).at().snapshot
    if snapshot is None:
        return [(None, None, None)]
    counts = (_count(snapshot, key) for key in (SummaryKey.TOTAL_RECORDS, SummaryKey.TOTAL_DATA_FILES))
    return [(snapshot.snapshot_id, *counts)]


def _set_ref(kind: RefKind) -> Callable[[Table, Arguments], list[Row]]:
    return lambda table, arguments: [set_ref(table, kind, arguments)]


def _drop_ref(kind: str) -> Callable[[Table, Arguments], list[Row]]:
    def run(table: Table, arguments: Arguments) -> list[Row]:
        name = arguments[kind]
        ref = table.metadata.ref(name)
        if ref.type != kind:
            raise InputError(f"{name!r} is a {ref.type}, not a {kind}", ref=name)
        table.remove_ref(name)
        return [(name, ref.snapshot_id)]

    return run


def _upgrade(table: Table, arguments: Arguments) -> list[Row]:
    before = table.format_version
    table.upgrade(int(arguments["format_version"]))
    return [(before, table.refresh().format_version)]


def _spec(table: Table) -> list[Row]:
    return [(field.name, field.transform) for field in table.refresh().spec.fields if not field.is_void]


def _add_partition_field(table: Table, arguments: Arguments) -> list[Row]:
    with table.update_partitioning() as edit:
        edit.add(arguments["field"], arguments.get("name"))
    return _spec(table)


def _drop_partition_field(table: Table, arguments: Arguments) -> list[Row]:
    with table.update_partitioning() as edit:
        edit.remove(arguments["field"])
    return _spec(table)


def _replace_partition_field(table: Table, arguments: Arguments) -> list[Row]:
    with table.update_partitioning() as edit:
        edit.remove(arguments["field"])
        edit.add(arguments["with"], arguments.get("name"))
    return _spec(table)


def _write_ordered_by(table: Table, arguments: Arguments) -> list[Row]:
    table.set_sort_order(*arguments["order"])
    return [(table.refresh().metadata.sort_order.order_id,)]


def _set_identifier_fields(table: Table, arguments: Arguments) -> list[Row]:
    with table.update_schema() as edit:
        edit.set_identifiers(*arguments["fields"])
    schema = table.refresh().schema
    return [(schema.names[field_id],) for field_id in sorted(schema.identifier_field_ids)]


_TABLE = Parameter(name="table")
_SNAPSHOT = Parameter(name="snapshot_id", type="bigint")
_MAYBE_SNAPSHOT = Parameter(name="snapshot_id", type="bigint", default=_NULL)
_NAME = Parameter(name="name", default=_NULL)
_RETAIN = Parameter(name="retain", default=_NULL)
_REF_EXISTS = (
    Parameter(name="if_not_exists", type="boolean", default="false"),
    Parameter(name="or_replace", type="boolean", default="false"),
)
_OLDER_THAN = Parameter(name="older_than", type="timestamp", default=_NULL)
_CONCURRENCY = Parameter(name="max_concurrent_deletes", type="int", default=_NULL)  # without effect
_DRY_RUN = Parameter(name="dry_run", type="boolean", default="false")
_EXPIRED = (
    "deleted_data_files_count bigint, deleted_position_delete_files_count bigint,"
    " deleted_equality_delete_files_count bigint, deleted_manifest_files_count bigint,"
    " deleted_manifest_lists_count bigint, deleted_statistics_files_count bigint"
)
_REF = "name string, snapshot_id bigint"
_FIELDS = "field string, transform string"


def _procedure(run: Callable[[Table, Arguments], list[Row]], text: str, result: str, *more: Parameter) -> Procedure:
    return Procedure(description=text, parameters=(_TABLE, *more), result=result, run=_on_table(run))


PROCEDURES: Mapping[str, Procedure] = {
    "add_files": _procedure(
        _add_files,
        "Add data files of a folder without copying them",
        "added_files_count bigint, changed_partition_count bigint",
        Parameter(name="source_table"),
    ),
    "add_partition_field": _procedure(
        _add_partition_field, "Partition new files by a further field", _FIELDS, Parameter(name="field"), _NAME
    ),
    "ancestors_of": _procedure(
        _ancestors_of,
        "A snapshot and those that it was made from",
        "snapshot_id bigint, timestamp bigint",
        _MAYBE_SNAPSHOT,
    ),
    "cherrypick_snapshot": _procedure(
        _cherrypick_snapshot, "Apply the changes of a staged snapshot to main", _PICKED, _SNAPSHOT
    ),
    "create_branch": _procedure(
        _set_ref("branch"),
        "Create or replace a branch",
        _REF,
        Parameter(name="branch"),
        _MAYBE_SNAPSHOT,
        _RETAIN,
        Parameter(name="min_snapshots_to_keep", type="int", default=_NULL),
        Parameter(name="max_snapshot_age", default=_NULL),
        *_REF_EXISTS,
    ),
    "create_tag": _procedure(
        _set_ref("tag"),
        "Create or replace a tag",
        _REF,
        Parameter(name="tag"),
        _MAYBE_SNAPSHOT,
        _RETAIN,
        *_REF_EXISTS,
    ),
    "drop_branch": _procedure(_drop_ref("branch"), "Drop a branch", _REF, Parameter(name="branch")),
    "drop_partition_field": _procedure(
        _drop_partition_field, "Do not partition new files by a field any more", _FIELDS, Parameter(name="field")
    ),
    "drop_tag": _procedure(_drop_ref("tag"), "Drop a tag", _REF, Parameter(name="tag")),
    "expire_snapshots": _procedure(
        expire_snapshots,
        "Expire snapshots and delete the files that only they need",
        _EXPIRED,
        _OLDER_THAN,
        Parameter(name="retain_last", type="int", default=_NULL),
        _CONCURRENCY,
        Parameter(name="stream_results", type="boolean", default="false"),
        Parameter(name="snapshot_ids", type="array<string>", default=_NULL),  # arrays are passed as texts
        Parameter(name="clean_expired_metadata", type="boolean", default="false"),
        _DRY_RUN,
    ),
    "fast_forward": _procedure(
        _fast_forward,
        "Move a branch forward to the snapshot of another one",
        "branch_updated string, previous_ref bigint, updated_ref bigint",
        Parameter(name="branch"),
        Parameter(name="to"),
    ),
    "publish_changes": _procedure(
        _publish_changes, "Apply the changes that were staged with an id to main", _PICKED, Parameter(name="wap_id")
    ),
    "register_table": Procedure(
        description="Add an existing table to the catalog by its metadata file",
        parameters=(_TABLE, Parameter(name="metadata_file")),
        result="current_snapshot_id bigint, total_records_count bigint, total_data_files_count bigint",
        run=_register_table,
    ),
    "remove_orphan_files": _procedure(
        remove_orphan_files,
        "Delete files in the table's location that no metadata references",
        "orphan_file_location string",
        _OLDER_THAN,
        Parameter(name="location", default=_NULL),
        _DRY_RUN,
        _CONCURRENCY,
        Parameter(name="max_share", type="double", default=_NULL),
    ),
    "replace_partition_field": _procedure(
        _replace_partition_field,
        "Partition new files by another field instead of one",
        _FIELDS,
        Parameter(name="field"),
        Parameter(name="with"),
        _NAME,
    ),
    "rewrite_manifests": _procedure(
        _rewrite_manifests,
        "Write the manifests again, sorted by partition",
        "rewritten_manifests_count int, added_manifests_count int",
        Parameter(name="use_caching", type="boolean", default="false"),  # nothing is cached
    ),
    "rollback_to_snapshot": _procedure(_rollback_to_snapshot, "Set main to an earlier snapshot", _MOVED, _SNAPSHOT),
    "rollback_to_timestamp": _procedure(
        _rollback_to_timestamp,
        "Set main to the snapshot that was current at a time",
        _MOVED,
        Parameter(name="timestamp", type="timestamp"),
    ),
    "set_current_snapshot": _procedure(
        _set_current_snapshot,
        "Set main to any snapshot, branch or tag",
        _MOVED,
        _MAYBE_SNAPSHOT,
        Parameter(name="ref", default=_NULL),
    ),
    "set_identifier_fields": _procedure(
        _set_identifier_fields,
        "Say which columns identify a row",
        "field string",
        Parameter(name="fields", type="array<string>"),
    ),
    "upgrade": _procedure(
        _upgrade,
        "Upgrade a table to a newer format version",
        "previous_format_version int, current_format_version int",
        Parameter(name="format_version", type="int"),
    ),
    "write_ordered_by": _procedure(
        _write_ordered_by,
        "Sort the rows of new files",
        "sort_order_id int",
        Parameter(name="order", type="array<string>"),
    ),
}

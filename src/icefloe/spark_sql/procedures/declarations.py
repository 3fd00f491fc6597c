"""The procedures of ``CALL demo.system.*``: actions on tables, with the names and arguments of Apache Iceberg.

What Apache Iceberg says by a grammar of its own (partition fields, branches, tags, write order, identifier fields) is a
procedure here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from icefloe.spark_sql.options.changelog import create_changelog_view
from icefloe.spark_sql.options.cleanup_options import expire_snapshots, remove_orphan_files
from icefloe.spark_sql.options.rewrite_options import (
    DATA_FILES_RESULT,
    DELETE_FILES_RESULT,
    rewrite_data_files,
    rewrite_delete_files,
)
from icefloe.spark_sql.procedures.definitions import (
    add_partition_field,
    drop_partition_field,
    drop_ref,
    replace_partition_field,
    set_identifier_fields,
    set_ref_of,
    upgrade,
    write_ordered_by,
)
from icefloe.spark_sql.procedures.files import add_files, register_table, rewrite_manifests
from icefloe.spark_sql.procedures.shape import Arguments, Parameter, Procedure, Row, Run
from icefloe.spark_sql.procedures.snapshots import (
    ancestors_of,
    cherrypick_snapshot,
    fast_forward,
    publish_changes,
    rollback_to_snapshot,
    rollback_to_timestamp,
    set_current_snapshot,
)
from icefloe.spark_sql.procedures.statistics import compute_partition_stats, compute_table_stats
from icefloe.table.table import Table

_NULL = "NULL"
_MOVED = "previous_snapshot_id bigint, current_snapshot_id bigint"
_PICKED = "source_snapshot_id bigint, current_snapshot_id bigint"


def _on_table(run: Callable[[Table, Arguments], list[Row]]) -> Run:
    return lambda catalog, arguments: run(catalog.load_table(arguments["table"]), arguments)


_TABLE = Parameter(name="table")
_SNAPSHOT = Parameter(name="snapshot_id", type="bigint")
_MAYBE_SNAPSHOT = Parameter(name="snapshot_id", type="bigint", default=_NULL)
_NAME = Parameter(name="name", default=_NULL)
_RETAIN = Parameter(name="retain", default=_NULL)
_OPTIONS = Parameter(name="options", type="map<string, string>", default=_NULL)
_WHERE = Parameter(name="where", default=_NULL)
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
        add_files,
        "Add data files of a folder without copying them",
        "added_files_count bigint, changed_partition_count bigint",
        Parameter(name="source_table"),
    ),
    "add_partition_field": _procedure(
        add_partition_field, "Partition new files by a further field", _FIELDS, Parameter(name="field"), _NAME
    ),
    "ancestors_of": _procedure(
        ancestors_of,
        "A snapshot and those that it was made from",
        "snapshot_id bigint, timestamp bigint",
        _MAYBE_SNAPSHOT,
    ),
    "cherrypick_snapshot": _procedure(
        cherrypick_snapshot, "Apply the changes of a staged snapshot to main", _PICKED, _SNAPSHOT
    ),
    "compute_partition_stats": _procedure(
        compute_partition_stats,
        "Sum up the files of each partition",
        "partition_statistics_file string",
        _MAYBE_SNAPSHOT,
    ),
    "compute_table_stats": _procedure(
        compute_table_stats,
        "Count the distinct values of columns",
        "statistics_file string",
        _MAYBE_SNAPSHOT,
        Parameter(name="columns", type="array<string>", default=_NULL),
    ),
    "create_branch": _procedure(
        set_ref_of("branch"),
        "Create or replace a branch",
        _REF,
        Parameter(name="branch"),
        _MAYBE_SNAPSHOT,
        _RETAIN,
        Parameter(name="min_snapshots_to_keep", type="int", default=_NULL),
        Parameter(name="max_snapshot_age", default=_NULL),
        *_REF_EXISTS,
    ),
    "create_changelog_view": _procedure(
        create_changelog_view,
        "Create a temporary view of the rows that changed between two snapshots",
        "changelog_view string",
        Parameter(name="changelog_view", default=_NULL),
        _OPTIONS,
        Parameter(name="compute_updates", type="boolean", default=_NULL),
        Parameter(name="identifier_columns", type="array<string>", default=_NULL),
        Parameter(name="net_changes", type="boolean", default="false"),
    ),
    "create_tag": _procedure(
        set_ref_of("tag"),
        "Create or replace a tag",
        _REF,
        Parameter(name="tag"),
        _MAYBE_SNAPSHOT,
        _RETAIN,
        *_REF_EXISTS,
    ),
    "drop_branch": _procedure(drop_ref("branch"), "Drop a branch", _REF, Parameter(name="branch")),
    "drop_partition_field": _procedure(
        drop_partition_field, "Do not partition new files by a field any more", _FIELDS, Parameter(name="field")
    ),
    "drop_tag": _procedure(drop_ref("tag"), "Drop a tag", _REF, Parameter(name="tag")),
    "expire_snapshots": _procedure(
        expire_snapshots,
        "Expire snapshots and delete the files that only they need",
        _EXPIRED,
        _OLDER_THAN,
        Parameter(name="retain_last", type="int", default=_NULL),
        _CONCURRENCY,
        Parameter(name="stream_results", type="boolean", default="false"),
        Parameter(name="snapshot_ids", type="array<bigint>", default=_NULL),
        Parameter(name="clean_expired_metadata", type="boolean", default="false"),
        _DRY_RUN,
    ),
    "fast_forward": _procedure(
        fast_forward,
        "Move a branch forward to the snapshot of another one",
        "branch_updated string, previous_ref bigint, updated_ref bigint",
        Parameter(name="branch"),
        Parameter(name="to"),
    ),
    "publish_changes": _procedure(
        publish_changes, "Apply the changes that were staged with an id to main", _PICKED, Parameter(name="wap_id")
    ),
    "register_table": Procedure(
        description="Add an existing table to the catalog by its metadata file",
        parameters=(_TABLE, Parameter(name="metadata_file")),
        result="current_snapshot_id bigint, total_records_count bigint, total_data_files_count bigint",
        run=register_table,
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
        replace_partition_field,
        "Partition new files by another field instead of one",
        _FIELDS,
        Parameter(name="field"),
        Parameter(name="with"),
        _NAME,
    ),
    "rewrite_data_files": _procedure(
        rewrite_data_files,
        "Write small data files, large ones and those with many deleted rows again",
        DATA_FILES_RESULT,
        Parameter(name="strategy", default=_NULL),
        Parameter(name="sort_order", default=_NULL),
        _OPTIONS,
        _WHERE,
        Parameter(name="branch", default=_NULL),
    ),
    "rewrite_manifests": _procedure(
        rewrite_manifests,
        "Write the manifests again, sorted by partition",
        "rewritten_manifests_count int, added_manifests_count int",
        Parameter(name="use_caching", type="boolean", default="false"),  # nothing is cached
        Parameter(name="sort_by", type="array<string>", default=_NULL),
    ),
    "rewrite_position_delete_files": _procedure(
        rewrite_delete_files,
        "Write delete files again, as deletion vectors if the table may have them",
        DELETE_FILES_RESULT,
        _OPTIONS,
        _WHERE,
    ),
    "rollback_to_snapshot": _procedure(rollback_to_snapshot, "Set main to an earlier snapshot", _MOVED, _SNAPSHOT),
    "rollback_to_timestamp": _procedure(
        rollback_to_timestamp,
        "Set main to the snapshot that was current at a time",
        _MOVED,
        Parameter(name="timestamp", type="timestamp"),
    ),
    "set_current_snapshot": _procedure(
        set_current_snapshot,
        "Set main to any snapshot, branch or tag",
        _MOVED,
        _MAYBE_SNAPSHOT,
        Parameter(name="ref", default=_NULL),
    ),
    "set_identifier_fields": _procedure(
        set_identifier_fields,
        "Say which columns identify a row",
        "field string",
        Parameter(name="fields", type="array<string>"),
    ),
    "upgrade": _procedure(
        upgrade,
        "Upgrade a table to a newer format version",
        "previous_format_version int, current_format_version int",
        Parameter(name="format_version", type="int"),
    ),
    "write_ordered_by": _procedure(
        write_ordered_by,
        "Sort the rows of new files",
        "sort_order_id int",
        Parameter(name="order", type="array<string>"),
    ),
}

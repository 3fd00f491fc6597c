"""What each format version allows, requires and forbids.

Layers above the codecs never compare version numbers; they use the facts of ``VersionRules`` by name. Codecs look up
the field tables: one row per field, one column per version (spec: Appendix E: Format version changes; V4 proposal). The
tables say what a version writes; a table upgraded from an older version still holds what that version wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from icefloe.errors import InputError, UnsupportedError

VERSIONS = (1, 2, 3, 4)
DEFAULT_FORMAT_VERSION = 2
WRITABLE = (1, 2, 3, 4)
LATEST_FORMAT_VERSION = VERSIONS[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRules:
    """The differences between format versions, as facts."""

    version: int
    sequence_numbers: bool  # v2+: snapshots and files are numbered in order of commit
    partition_ids: bool  # v2+: partition fields keep their ids, so specs may lose and reorder fields
    content_entries: bool  # V4: manifests consist of content entries, and their root rows have exact counts
    root_holds_files: bool  # V4: small changes live in the root itself
    manifest_deletion_vectors: bool  # V4: a leaf is never rewritten because a file left it
    deletion_vectors: bool  # v3+: rows are deleted by bitmaps in Puffin files
    row_lineage: bool  # v3+: snapshots carry first-row-id, files first_row_id
    column_defaults: bool  # v3+: columns may have an initial and a write default
    source_ids: bool  # v3+: transforms of several columns
    relative_locations: bool  # V4: locations under the table are stored relative
    gzip_metadata: bool  # V4: metadata files are gzipped unless a property says otherwise
    expressions: bool  # V4: derived partition values have ids in the column id space


_RULES = {
    version: VersionRules(
        version=version,
        sequence_numbers=version >= 2,
        partition_ids=version >= 2,
        content_entries=version >= 4,
        root_holds_files=version >= 4,
        manifest_deletion_vectors=version >= 4,
        deletion_vectors=version >= 3,
        row_lineage=version >= 3,
        column_defaults=version >= 3,
        source_ids=version >= 3,
        relative_locations=version >= 4,
        gzip_metadata=version >= 4,
        expressions=version >= 4,
    )
    for version in VERSIONS
}

CONTENT_ENTRY_VERSIONS = tuple(version for version, rules in _RULES.items() if rules.content_entries)


def rules(version: int) -> VersionRules:
    """The rules of a format version."""
    version_rules = _RULES.get(version)
    if version_rules is None:
        raise UnsupportedError(f"format version {version} is not one of 1, 2, 3, 4", version=version)
    return version_rules


def is_manifest_list(root: str, version: int) -> bool:
    """Whether the root of a snapshot is a manifest list; in an upgraded V4 table, those of older snapshots are.

    >>> is_manifest_list("s3://b/t/snap-1.avro", 4), is_manifest_list("s3://b/t/root-2.parquet", 4)
    (True, False)
    """
    return not rules(version).root_holds_files or root.endswith(".avro")


def check_writable(version: int) -> None:
    """Refuse to create or change tables of versions that are only read, and values that are no version."""
    if type(version) is not int:
        raise InputError(f"format version: expected a whole number, got {version!r}", version=version)
    rules(version)
    if version not in WRITABLE:
        known = ", ".join(map(str, WRITABLE))
        raise InputError(f"writing format version {version} is not supported; use one of {known}", version=version)


class Presence(Enum):
    """Whether a version writes a field: always, where there is something to say, or never."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    ABSENT = "absent"


PerVersion: TypeAlias = tuple[Presence, Presence, Presence, Presence]
FieldTable: TypeAlias = Mapping[str, PerVersion]

_YES, _MAY, _NO = Presence.REQUIRED, Presence.OPTIONAL, Presence.ABSENT

# Keys of table metadata (spec: Table Metadata Fields).
METADATA_FIELDS: FieldTable = MappingProxyType(
    {
        # field                      v1    v2    v3    v4
        "format-version":           (_YES, _YES, _YES, _YES),
        "table-uuid":               (_MAY, _YES, _YES, _YES),
        "location":                 (_YES, _YES, _YES, _MAY),  # v4: else the table is where its metadata is
        "last-sequence-number":     (_NO,  _YES, _YES, _YES),
        "last-updated-ms":          (_YES, _YES, _YES, _YES),
        "last-column-id":           (_YES, _YES, _YES, _YES),
        "schema":                   (_YES, _NO,  _NO,  _NO),
        "schemas":                  (_MAY, _YES, _YES, _YES),
        "current-schema-id":        (_MAY, _YES, _YES, _YES),
        "partition-spec":           (_YES, _NO,  _NO,  _NO),
        "partition-specs":          (_MAY, _YES, _YES, _YES),
        "default-spec-id":          (_MAY, _YES, _YES, _YES),
        "last-partition-id":        (_MAY, _YES, _YES, _YES),
        "properties":               (_MAY, _MAY, _MAY, _MAY),
        "current-snapshot-id":      (_MAY, _MAY, _MAY, _MAY),
        "snapshots":                (_MAY, _MAY, _MAY, _MAY),
        "snapshot-log":             (_MAY, _MAY, _MAY, _MAY),
        "metadata-log":             (_MAY, _MAY, _MAY, _MAY),
        "sort-orders":              (_MAY, _YES, _YES, _YES),
        "default-sort-order-id":    (_MAY, _YES, _YES, _YES),
        "refs":                     (_MAY, _MAY, _MAY, _MAY),  # v1: not in its table, but writers keep branches so
        "statistics":               (_MAY, _MAY, _MAY, _MAY),
        "partition-statistics":     (_MAY, _MAY, _MAY, _MAY),
        "next-row-id":              (_NO,  _NO,  _YES, _YES),
        "encryption-keys":          (_NO,  _NO,  _MAY, _MAY),
        "expressions":              (_NO,  _NO,  _NO,  _MAY),
    }
)  # fmt: skip

# Keys of a snapshot (spec: Snapshots).
SNAPSHOT_FIELDS: FieldTable = MappingProxyType(
    {
        # field                      v1    v2    v3    v4
        "snapshot-id":              (_YES, _YES, _YES, _YES),
        "parent-snapshot-id":       (_MAY, _MAY, _MAY, _MAY),
        "sequence-number":          (_NO,  _YES, _YES, _YES),
        "timestamp-ms":             (_YES, _YES, _YES, _YES),
        "root-manifest":            (_NO,  _NO,  _NO,  _YES),
        "manifest-list":            (_MAY, _YES, _YES, _MAY),  # v4: only snapshots from before the upgrade
        "manifests":                (_MAY, _NO,  _NO,  _NO),   # v1: only without a manifest list
        "summary":                  (_MAY, _YES, _YES, _YES),
        "schema-id":                (_MAY, _MAY, _MAY, _MAY),
        "first-row-id":             (_NO,  _NO,  _YES, _YES),
        "added-rows":               (_NO,  _NO,  _YES, _YES),
        "key-id":                   (_NO,  _NO,  _MAY, _MAY),
    }
)  # fmt: skip

# Fields of a manifest list (spec: Manifest Lists); v4 has none: its roots hold content entries.
MANIFEST_LIST_FIELDS: FieldTable = MappingProxyType(
    {
        # field                      v1    v2    v3    v4
        "manifest_path":            (_YES, _YES, _YES, _NO),
        "manifest_length":          (_YES, _YES, _YES, _NO),
        "partition_spec_id":        (_YES, _YES, _YES, _NO),
        "content":                  (_NO,  _YES, _YES, _NO),
        "sequence_number":          (_NO,  _YES, _YES, _NO),
        "min_sequence_number":      (_NO,  _YES, _YES, _NO),
        "added_snapshot_id":        (_YES, _YES, _YES, _NO),
        "added_files_count":        (_MAY, _YES, _YES, _NO),
        "existing_files_count":     (_MAY, _YES, _YES, _NO),
        "deleted_files_count":      (_MAY, _YES, _YES, _NO),
        "added_rows_count":         (_MAY, _YES, _YES, _NO),
        "existing_rows_count":      (_MAY, _YES, _YES, _NO),
        "deleted_rows_count":       (_MAY, _YES, _YES, _NO),
        "partitions":               (_MAY, _MAY, _MAY, _NO),
        "key_metadata":             (_MAY, _MAY, _MAY, _NO),
        "first_row_id":             (_NO,  _NO,  _MAY, _NO),
    }
)  # fmt: skip

# Key-value metadata of a manifest (spec: Manifests).
MANIFEST_KEYS: FieldTable = MappingProxyType(
    {
        # key                        v1    v2    v3    v4
        "schema":                   (_YES, _YES, _YES, _NO),
        "schema-id":                (_MAY, _YES, _YES, _NO),
        "partition-spec":           (_YES, _YES, _YES, _NO),
        "partition-spec-id":        (_MAY, _YES, _YES, _NO),
        "format-version":           (_MAY, _YES, _YES, _YES),
        "content":                  (_NO,  _YES, _YES, _YES),
    }
)  # fmt: skip

# Fields of manifest_entry (spec: Manifests); v4 has content entries instead.
MANIFEST_ENTRY_FIELDS: FieldTable = MappingProxyType(
    {
        # field                      v1    v2    v3    v4
        "status":                   (_YES, _YES, _YES, _NO),
        "snapshot_id":              (_YES, _MAY, _MAY, _NO),
        "sequence_number":          (_NO,  _MAY, _MAY, _NO),
        "file_sequence_number":     (_NO,  _MAY, _MAY, _NO),
        "data_file":                (_YES, _YES, _YES, _NO),
    }
)  # fmt: skip

# Fields of data_file (spec: Manifests); v4 has content entries instead.
DATA_FILE_FIELDS: FieldTable = MappingProxyType(
    {
        # field                      v1    v2    v3    v4
        "content":                  (_NO,  _YES, _YES, _NO),
        "file_path":                (_YES, _YES, _YES, _NO),
        "file_format":              (_YES, _YES, _YES, _NO),
        "partition":                (_YES, _YES, _YES, _NO),
        "record_count":             (_YES, _YES, _YES, _NO),
        "file_size_in_bytes":       (_YES, _YES, _YES, _NO),
        "block_size_in_bytes":      (_YES, _NO,  _NO,  _NO),  # v1: a default that no reader uses
        "column_sizes":             (_MAY, _MAY, _MAY, _NO),
        "value_counts":             (_MAY, _MAY, _MAY, _NO),
        "null_value_counts":        (_MAY, _MAY, _MAY, _NO),
        "nan_value_counts":         (_MAY, _MAY, _MAY, _NO),
        "distinct_counts":          (_MAY, _MAY, _MAY, _NO),
        "lower_bounds":             (_MAY, _MAY, _MAY, _NO),
        "upper_bounds":             (_MAY, _MAY, _MAY, _NO),
        "key_metadata":             (_MAY, _MAY, _MAY, _NO),
        "split_offsets":            (_MAY, _MAY, _MAY, _NO),
        "equality_ids":             (_NO,  _MAY, _MAY, _NO),
        "sort_order_id":            (_MAY, _MAY, _MAY, _NO),
        "first_row_id":             (_NO,  _NO,  _MAY, _NO),
        "referenced_data_file":     (_NO,  _MAY, _MAY, _NO),
        "content_offset":           (_NO,  _NO,  _MAY, _NO),
        "content_size_in_bytes":    (_NO,  _NO,  _MAY, _NO),
        "file_ordinal":             (_NO,  _NO,  _NO,  _NO),  # v1: "do not write"
        "sort_columns":             (_NO,  _NO,  _NO,  _NO),  # v1: "do not write"
    }
)  # fmt: skip


def presence(table: FieldTable, field: str, version: int) -> Presence:
    """Whether a version writes a field of one of the tables above.

    >>> presence(SNAPSHOT_FIELDS, "manifest-list", 1)
    <Presence.OPTIONAL: 'optional'>
    """
    rules(version)
    by_version = table.get(field)
    if by_version is None:
        raise InputError(f"{field!r} is not a field of the format; there are {', '.join(table)}", field=field)
    return by_version[version - 1]


def written(table: FieldTable, field: str, version: int) -> bool:
    """Whether a version may write a field.

    >>> written(METADATA_FIELDS, "schema", 1), written(METADATA_FIELDS, "schema", 2)
    (True, False)
    """
    return presence(table, field, version) is not Presence.ABSENT


def fields(table: FieldTable, version: int) -> tuple[str, ...]:
    """The fields of a table that a version may write, in the table's order."""
    return tuple(field for field in table if written(table, field, version))


def required(table: FieldTable, version: int) -> tuple[str, ...]:
    """The fields of a table that a version always writes, in the table's order.

    >>> required(MANIFEST_ENTRY_FIELDS, 2)
    ('status', 'data_file')
    """
    return tuple(field for field in table if presence(table, field, version) is Presence.REQUIRED)

"""What each format version may, must and must not do: the one place that compares version numbers.

Layers above the codecs ask these rules by name and never look at a version number themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

from icefloe.errors import InputError, UnsupportedError

DEFAULT_FORMAT_VERSION = 2
WRITABLE = (2, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRules:
    """The differences between format versions, as facts."""

    version: int
    sequence_numbers: bool  # v2+: snapshots and files are numbered in order of commit
    root_holds_files: bool  # V4: small changes live in the root itself
    manifest_deletion_vectors: bool  # V4: a leaf is never rewritten because a file left it
    deletion_vectors: bool  # v3+: rows are deleted by bitmaps in Puffin files
    row_lineage: bool  # v3+: snapshots carry first-row-id, files first_row_id
    column_defaults: bool  # v3+: columns may have an initial and a write default
    relative_locations: bool  # V4: locations under the table are stored relative
    expressions: bool  # V4: derived partition values have ids in the column id space


_RULES = {
    version: VersionRules(
        version=version,
        sequence_numbers=version >= 2,
        root_holds_files=version >= 4,
        manifest_deletion_vectors=version >= 4,
        deletion_vectors=version >= 3,
        row_lineage=version >= 3,
        column_defaults=version >= 3,
        relative_locations=version >= 4,
        expressions=version >= 4,
    )
    for version in (1, 2, 3, 4)
}


def rules(version: int) -> VersionRules:
    """The rules of a format version."""
    found = _RULES.get(version)
    if found is None:
        raise UnsupportedError(f"format version {version} is not one of 1, 2, 3, 4", version=version)
    return found


def check_writable(version: int) -> None:
    """Refuse to create or change tables of versions whose writing is not complete yet."""
    rules(version)
    if version not in WRITABLE:
        raise InputError(f"writing format version {version} is not supported yet; use 2 or 4", version=version)

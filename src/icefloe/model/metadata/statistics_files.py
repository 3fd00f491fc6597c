"""The entries of statistics files and encryption keys in table metadata (spec: Table statistics).

Statistics are informational: readers may ignore them, writers must keep their entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from icefloe.model.schema.types import Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobMetadata:
    """One blob of a statistics file: what it is, and which columns of which snapshot it was computed from."""

    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    extra: Unknown = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsFile:
    """A Puffin file with statistics of a snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    blob_metadata: tuple[BlobMetadata, ...] = ()
    key_metadata: str | None = None  # base64, as the metadata holds it
    extra: Unknown = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatisticsFile:
    """A table file with the statistics of each partition at a snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    extra: Unknown = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionKey:
    """A key of an encrypted table (v3+), itself encrypted; base64 as the metadata holds it."""

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    extra: Unknown = ()

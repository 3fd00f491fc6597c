"""Table properties that this library acts on, with Iceberg's names and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from icefloe.errors import InputError

V = TypeVar("V", int, str)


@dataclass(frozen=True, slots=True)
class Property(Generic[V]):
    """A named setting; its default tells its type."""

    name: str
    default: V

    def of(self, properties: Mapping[str, str]) -> V:
        """The value in a table's properties, or the default."""
        text = properties.get(self.name)
        if text is None:
            return self.default
        try:
            return type(self.default)(text)
        except ValueError as error:
            kind = type(self.default).__name__
            raise InputError(f"property {self.name}: expected {kind}, got {text!r}", property=self.name) from error


FORMAT_VERSION = Property("format-version", 2)
TARGET_FILE_SIZE = Property("write.target-file-size-bytes", 512 * 1024 * 1024)
PARQUET_ROW_GROUP_SIZE = Property("write.parquet.row-group-size-bytes", 128 * 1024 * 1024)
PARQUET_COMPRESSION = Property("write.parquet.compression-codec", "zstd")
COMMIT_RETRIES = Property("commit.retry.num-retries", 20)
COMMIT_MIN_WAIT_MS = Property("commit.retry.min-wait-ms", 20)
COMMIT_MAX_WAIT_MS = Property("commit.retry.max-wait-ms", 2_000)
PREVIOUS_VERSIONS_MAX = Property("write.metadata.previous-versions-max", 100)

# What expiry keeps, unless a branch or tag says otherwise.
MIN_SNAPSHOTS_TO_KEEP = Property("history.expire.min-snapshots-to-keep", 1)
MAX_SNAPSHOT_AGE_MS = Property("history.expire.max-snapshot-age-ms", 5 * 24 * 60 * 60 * 1000)
MAX_REF_AGE_MS = Property("history.expire.max-ref-age-ms", 2**63 - 1)

# V4 only. Row cost differs tenfold between data files and deletion vectors, hence two limits.
ROOT_MAX_DATA_FILES = Property("commit.root.max-data-files", 1000)
ROOT_MAX_DVS = Property("commit.root.max-dvs", 10_000)

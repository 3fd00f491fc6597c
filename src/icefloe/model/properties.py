"""Table properties that this library acts on, with Iceberg's names and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from icefloe.errors import InputError

V = TypeVar("V", int, str, bool)


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
        if isinstance(self.default, bool):
            return self._flag(text)
        try:
            return type(self.default)(text)
        except ValueError as error:
            kind = type(self.default).__name__
            raise InputError(f"property {self.name}: expected {kind}, got {text!r}", property=self.name) from error

    def _flag(self, text: str) -> V:
        if text.lower() not in ("true", "false"):
            raise InputError(f"property {self.name}: expected true or false, got {text!r}", property=self.name)
        return type(self.default)(text.lower() == "true")


FORMAT_VERSION = Property("format-version", 2)
TARGET_FILE_SIZE = Property("write.target-file-size-bytes", 512 * 1024 * 1024)
FILE_FORMAT = Property("write.format.default", "parquet")
PARQUET_ROW_GROUP_SIZE = Property("write.parquet.row-group-size-bytes", 128 * 1024 * 1024)
PARQUET_PAGE_SIZE = Property("write.parquet.page-size-bytes", 1024 * 1024)
PARQUET_PAGE_ROWS = Property("write.parquet.page-row-limit", 20_000)
PARQUET_DICT_SIZE = Property("write.parquet.dict-size-bytes", 2 * 1024 * 1024)
PARQUET_COMPRESSION = Property("write.parquet.compression-codec", "zstd")
PARQUET_COMPRESSION_LEVEL = Property("write.parquet.compression-level", "")  # a number; none: the codec's own level
PARQUET_BLOOM_MAX_BYTES = Property("write.parquet.bloom-filter-max-bytes", 1024 * 1024)
PARQUET_BLOOM_COLUMN = "write.parquet.bloom-filter-enabled.column."  # and the name of a column
PARQUET_BLOOM_FPP_COLUMN = "write.parquet.bloom-filter-fpp.column."
AVRO_COMPRESSION = Property("write.avro.compression-codec", "gzip")
AVRO_COMPRESSION_LEVEL = Property("write.avro.compression-level", "")  # empty: the codec's own default
ORC_STRIPE_SIZE = Property("write.orc.stripe-size-bytes", 64 * 1024 * 1024)
ORC_COMPRESSION = Property("write.orc.compression-codec", "zlib")
ORC_STRATEGY = Property("write.orc.compression-strategy", "speed")
ORC_BLOOM_COLUMNS = Property("write.orc.bloom.filter.columns", "")  # names with commas between
ORC_BLOOM_FPP = Property("write.orc.bloom.filter.fpp", "0.05")

# How much the metadata tells of each column.
METRICS_DEFAULT = Property("write.metadata.metrics.default", "truncate(16)")
METRICS_COLUMN = "write.metadata.metrics.column."  # and the name of a column
METRICS_MAX_INFERRED = Property("write.metadata.metrics.max-inferred-column-defaults", 100)

COMMIT_RETRIES = Property("commit.retry.num-retries", 20)
COMMIT_MIN_WAIT_MS = Property("commit.retry.min-wait-ms", 20)
COMMIT_MAX_WAIT_MS = Property("commit.retry.max-wait-ms", 2_000)
DELETE_AFTER_COMMIT = Property("write.metadata.delete-after-commit.enabled", False)
DELETE_ISOLATION = Property("write.delete.isolation-level", "serializable")
UPDATE_ISOLATION = Property("write.update.isolation-level", "serializable")
MERGE_ISOLATION = Property("write.merge.isolation-level", "serializable")
# How rows leave the files that hold them; none: as the format version does it best.
DELETE_MODE = Property("write.delete.mode", "")
UPDATE_MODE = Property("write.update.mode", "")
MERGE_MODE = Property("write.merge.mode", "")
UPSERT_DELETES = Property("write.upsert.deletes", "position")  # or equality: nothing is read, and readers do the work
# A position delete file is about one partition, or about one data file ("file").
DELETE_GRANULARITY = Property("write.delete.granularity", "partition")
DELETE_FORMAT = Property("write.delete.format.default", "")  # none: that of data files
DELETE_TARGET_FILE_SIZE = Property("write.delete.target-file-size-bytes", 64 * 1024 * 1024)
METADATA_COMPRESSION = Property("write.metadata.compression-codec", "none")
PREVIOUS_VERSIONS_MAX = Property("write.metadata.previous-versions-max", 100)

# Small manifests are merged in passing: in v1-v3 each commit adds one, in V4 those that the root was emptied into.
MERGE_ENABLED = Property("commit.manifest-merge.enabled", True)
MERGE_TARGET_SIZE = Property("commit.manifest.target-size-bytes", 8 * 1024 * 1024)
MERGE_MIN_COUNT = Property("commit.manifest.min-count-to-merge", 100)

# What expiry keeps, unless a branch or tag says otherwise.
MIN_SNAPSHOTS_TO_KEEP = Property("history.expire.min-snapshots-to-keep", 1)
MAX_SNAPSHOT_AGE_MS = Property("history.expire.max-snapshot-age-ms", 5 * 24 * 60 * 60 * 1000)
MAX_REF_AGE_MS = Property("history.expire.max-ref-age-ms", 2**63 - 1)

# V4 only, chosen by measurement (decision 010). A vector takes a tenth of the bytes of a data file, hence two limits;
# the limit of bytes is for wide tables, whose rows are larger than most. Leaves are smaller and merged sooner than the
# manifests of older versions: plans open them one by one, and few commits write one.
ROOT_MAX_DATA_FILES = Property("commit.root.max-data-files", 300)
ROOT_MAX_DVS = Property("commit.root.max-dvs", 3000)
ROOT_MAX_BYTES = Property("commit.root.max-bytes", 1024 * 1024)
LEAF_TARGET_SIZE = Property("commit.manifest.target-size-bytes", 4 * 1024 * 1024)
LEAF_MIN_COUNT = Property("commit.manifest.min-count-to-merge", 10)
# A leaf with this share of removed rows, and no fewer of them than that, is written again by a later commit.
LEAF_MAX_DEAD_PERCENT = Property("commit.leaf.max-dead-percent", 50)
LEAF_MIN_DEAD_ROWS = Property("commit.leaf.min-dead-rows", 100)
UPKEEP_MAX_BYTES = Property("commit.upkeep.max-bytes", 32 * 1024 * 1024)  # of leaves that one commit reads for it
# Snapshots name their root under manifest-list too, for programs that look for nothing else.
MIRROR_MANIFEST_LIST = Property("write.metadata.mirror-manifest-list", False)
MANIFEST_DV_INLINE_MAX_BYTES = Property("write.manifest-dv.inline-max-bytes", 16 * 1024)  # a larger one is a file

# How readers that work side by side share the files of a scan.
SPLIT_TARGET_SIZE = Property("read.split.target-size", 128 * 1024 * 1024)
SPLIT_LOOKBACK = Property("read.split.planning-lookback", 10)
SPLIT_OPEN_FILE_COST = Property("read.split.open-file-cost", 4 * 1024 * 1024)

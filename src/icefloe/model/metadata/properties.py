"""Table properties that this library acts on, with Iceberg's names and defaults, and what each may be.

They are checked when they are set. Other programs store what they like: what an operation of its own needs, such as
the codec of new files, is refused when it is needed, and what every commit or every plan needs is ``lenient``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from icefloe.errors import InputError
from icefloe.model.metadata.property_values import ANY, FLAG, INT_MAX, LEVEL, METRICS, SHARE, Rule, one_of, whole
from icefloe.model.text.text_checks import check_property_texts, text_problem

V = TypeVar("V", int, str, bool)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Property(Generic[V]):
    """A named setting; its default tells its type. ``any_case``: other programs take its words in any case.

    ``rule`` is what its text may be, by default all that its type takes. With ``lenient`` another text is like none, so
    that it cannot stop the very commit that would mend it.
    """

    name: str
    default: V
    any_case: bool = False
    rule: Rule | None = None
    lenient: bool = False

    def of(self, properties: Mapping[str, str]) -> V:
        """The value in a table's properties, or the default."""
        text = properties.get(self.name)
        if text is None:
            return self.default
        problem = self.problem(text)
        if problem is not None and self.lenient:
            logger.warning("property %s: %s; taken for %r", self.name, problem, self.default)
            return self.default
        if problem is not None:
            raise InputError(f"property {self.name}: {problem}", property=self.name)
        if isinstance(self.default, bool):
            return type(self.default)(text.lower() == "true")
        return type(self.default)(text.lower() if self.any_case else text)

    def problem(self, text: str) -> str | None:
        """Why a text cannot be the value; ``None`` if it can."""
        rule, problem = self._rule, text_problem(text)
        if problem is None and not rule.accepts(text):
            return f"expected {rule.allowed}, got {text!r}"
        return problem

    @property
    def _rule(self) -> Rule:
        if self.rule is not None:
            return self.rule
        return FLAG if isinstance(self.default, bool) else _NUMBER if isinstance(self.default, int) else ANY


_NUMBER, _SIZE = whole(), whole(1)
_FORMAT, _OWN_FORMAT = one_of("parquet", "orc", "avro"), one_of("", "parquet", "orc", "avro")
_ISOLATION = one_of("serializable", "snapshot")
_MODE = one_of("", "copy-on-write", "merge-on-read")

FORMAT_VERSION = Property("format-version", 2, rule=_SIZE)  # which no table stores: setting it is an upgrade
# Names under which other programs tell what a table is; they store none of them, and ours would hide the truth.
TOLD = frozenset(
    {
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
TARGET_FILE_SIZE = Property("write.target-file-size-bytes", 512 * 1024 * 1024, rule=_SIZE)
FILE_FORMAT = Property("write.format.default", "parquet", any_case=True, rule=_FORMAT)
PARQUET_ROW_GROUP_SIZE = Property("write.parquet.row-group-size-bytes", 128 * 1024 * 1024, rule=_SIZE)
PARQUET_PAGE_SIZE = Property("write.parquet.page-size-bytes", 1024 * 1024, rule=_SIZE)
PARQUET_PAGE_ROWS = Property("write.parquet.page-row-limit", 20_000, rule=_SIZE)
PARQUET_DICT_SIZE = Property("write.parquet.dict-size-bytes", 2 * 1024 * 1024, rule=_SIZE)
PARQUET_COMPRESSION = Property(
    "write.parquet.compression-codec",
    "zstd",
    any_case=True,
    rule=one_of("brotli", "gzip", "lz4", "snappy", "uncompressed", "zstd"),
)
PARQUET_COMPRESSION_LEVEL = Property("write.parquet.compression-level", "", rule=LEVEL)  # none: the codec's own level
PARQUET_BLOOM_MAX_BYTES = Property("write.parquet.bloom-filter-max-bytes", 1024 * 1024, rule=_SIZE)
PARQUET_BLOOM_COLUMN = "write.parquet.bloom-filter-enabled.column."  # and the name of a column
PARQUET_BLOOM_FPP_COLUMN = "write.parquet.bloom-filter-fpp.column."
AVRO_COMPRESSION = Property(
    "write.avro.compression-codec", "gzip", any_case=True, rule=one_of("gzip", "snappy", "uncompressed", "zstd")
)
AVRO_COMPRESSION_LEVEL = Property("write.avro.compression-level", "", rule=LEVEL)  # empty: the codec's own default
ORC_STRIPE_SIZE = Property("write.orc.stripe-size-bytes", 64 * 1024 * 1024, rule=_SIZE)
ORC_COMPRESSION = Property(
    "write.orc.compression-codec", "zlib", any_case=True, rule=one_of("lz4", "none", "snappy", "zlib", "zstd")
)
ORC_STRATEGY = Property("write.orc.compression-strategy", "speed", any_case=True, rule=one_of("compression", "speed"))
ORC_BLOOM_COLUMNS = Property("write.orc.bloom.filter.columns", "")  # names with commas between
ORC_BLOOM_FPP = Property("write.orc.bloom.filter.fpp", "0.05", rule=SHARE)

# How much the metadata tells of each column.
METRICS_DEFAULT = Property("write.metadata.metrics.default", "truncate(16)", rule=METRICS)
METRICS_COLUMN = "write.metadata.metrics.column."  # and the name of a column
METRICS_MAX_INFERRED = Property("write.metadata.metrics.max-inferred-column-defaults", 100, lenient=True)

COMMIT_RETRIES = Property("commit.retry.num-retries", 20, rule=whole(0, INT_MAX), lenient=True)
COMMIT_MIN_WAIT_MS = Property("commit.retry.min-wait-ms", 20, rule=whole(0, INT_MAX), lenient=True)
COMMIT_MAX_WAIT_MS = Property("commit.retry.max-wait-ms", 2_000, rule=whole(0, INT_MAX), lenient=True)
DELETE_AFTER_COMMIT = Property("write.metadata.delete-after-commit.enabled", False, lenient=True)
DELETE_ISOLATION = Property("write.delete.isolation-level", "serializable", any_case=True, rule=_ISOLATION)
UPDATE_ISOLATION = Property("write.update.isolation-level", "serializable", any_case=True, rule=_ISOLATION)
MERGE_ISOLATION = Property("write.merge.isolation-level", "serializable", any_case=True, rule=_ISOLATION)
# How rows leave the files that hold them; none: as the format version does it best.
DELETE_MODE = Property("write.delete.mode", "", any_case=True, rule=_MODE)
UPDATE_MODE = Property("write.update.mode", "", any_case=True, rule=_MODE)
MERGE_MODE = Property("write.merge.mode", "", any_case=True, rule=_MODE)
# With equality deletes nothing is read, and readers do the work.
UPSERT_DELETES = Property("write.upsert.deletes", "position", any_case=True, rule=one_of("position", "equality"))
# A position delete file is about one partition, or about one data file ("file").
DELETE_GRANULARITY = Property("write.delete.granularity", "partition", any_case=True, rule=one_of("partition", "file"))
# None: that of data files.
DELETE_FORMAT = Property("write.delete.format.default", "", any_case=True, rule=_OWN_FORMAT)
DELETE_TARGET_FILE_SIZE = Property("write.delete.target-file-size-bytes", 64 * 1024 * 1024, rule=_SIZE)
METADATA_COMPRESSION = Property(
    "write.metadata.compression-codec", "none", any_case=True, rule=one_of("none", "gzip"), lenient=True
)
# One is kept in any case, and as in other programs a number below that means one.
PREVIOUS_VERSIONS_MAX = Property(
    "write.metadata.previous-versions-max", 100, rule=whole(-INT_MAX, INT_MAX), lenient=True
)

# Small manifests are merged in passing: in v1-v3 each commit adds one, in V4 those that the root was emptied into.
MERGE_ENABLED = Property("commit.manifest-merge.enabled", True, lenient=True)
MERGE_TARGET_SIZE = Property("commit.manifest.target-size-bytes", 8 * 1024 * 1024, rule=_SIZE, lenient=True)
MERGE_MIN_COUNT = Property("commit.manifest.min-count-to-merge", 100, lenient=True)

# What expiry keeps, unless a branch or tag says otherwise.
MIN_SNAPSHOTS_TO_KEEP = Property("history.expire.min-snapshots-to-keep", 1)
MAX_SNAPSHOT_AGE_MS = Property("history.expire.max-snapshot-age-ms", 5 * 24 * 60 * 60 * 1000)
MAX_REF_AGE_MS = Property("history.expire.max-ref-age-ms", 2**63 - 1)

# V4 only, chosen by measurement (decision 010). A vector takes a tenth of the bytes of a data file, hence two limits;
# the limit of bytes is for wide tables, whose rows are larger than most. Leaves are smaller and merged sooner than the
# manifests of older versions: plans open them one by one, and few commits write one.
ROOT_MAX_DATA_FILES = Property("commit.root.max-data-files", 300, lenient=True)
ROOT_MAX_DVS = Property("commit.root.max-dvs", 3000, lenient=True)
ROOT_MAX_BYTES = Property("commit.root.max-bytes", 1024 * 1024, lenient=True)
LEAF_TARGET_SIZE = Property("commit.manifest.target-size-bytes", 4 * 1024 * 1024, rule=_SIZE, lenient=True)
LEAF_MIN_COUNT = Property("commit.manifest.min-count-to-merge", 10, lenient=True)
# A leaf with this share of removed rows, and no fewer of them than that, is written again by a later commit.
LEAF_MAX_DEAD_PERCENT = Property("commit.leaf.max-dead-percent", 50, lenient=True)
LEAF_MIN_DEAD_ROWS = Property("commit.leaf.min-dead-rows", 100, lenient=True)
# How much of leaves one commit reads for that, in bytes.
UPKEEP_MAX_BYTES = Property("commit.upkeep.max-bytes", 32 * 1024 * 1024, lenient=True)
# Snapshots name their root under manifest-list too, for programs that look for nothing else.
MIRROR_MANIFEST_LIST = Property("write.metadata.mirror-manifest-list", False, lenient=True)
# A larger vector of a leaf is a file.
MANIFEST_DV_INLINE_MAX_BYTES = Property("write.manifest-dv.inline-max-bytes", 16 * 1024, lenient=True)

# How readers that work side by side share the files of a scan.
SPLIT_TARGET_SIZE = Property("read.split.target-size", 128 * 1024 * 1024, rule=_SIZE, lenient=True)
SPLIT_LOOKBACK = Property("read.split.planning-lookback", 10, rule=_SIZE, lenient=True)
SPLIT_OPEN_FILE_COST = Property("read.split.open-file-cost", 4 * 1024 * 1024, lenient=True)

_BY_NAME: Mapping[str, Property[Any]] = {each.name: each for each in [*globals().values()] if type(each) is Property}
# And those that end with the name of a column.
_OF_COLUMNS: Mapping[str, Property[Any]] = {
    PARQUET_BLOOM_COLUMN: Property(PARQUET_BLOOM_COLUMN, False),
    PARQUET_BLOOM_FPP_COLUMN: Property(PARQUET_BLOOM_FPP_COLUMN, "", rule=SHARE),
    METRICS_COLUMN: Property(METRICS_COLUMN, "", rule=METRICS),
}


def version_asked(properties: Mapping[str, str]) -> int | None:
    """The format version that properties ask for, if they do."""
    return FORMAT_VERSION.of(properties) if FORMAT_VERSION.name in properties else None


def check_settable(properties: Mapping[str, str]) -> None:
    """InputError for properties that are not text, that tell a table's state, or that make no sense to this library.

    >>> check_settable({"commit.manifest-merge.enabled": "yes"})
    Traceback (most recent call last):
    icefloe.errors.InputError: property commit.manifest-merge.enabled: expected true or false, got 'yes'
    """
    check_property_texts(properties)
    told = next((name for name in properties if name in TOLD), None)
    if told is not None:
        raise InputError(
            f"property {told!r} is the name by which a table's own state is told, so it cannot be set; pick another",
            property=told,
        )
    for name, text in properties.items():
        known = _known(name)
        problem = None if known is None else known.problem(text)
        if problem is not None:
            raise InputError(f"property {name}: {problem}", property=name)


def _known(name: str) -> Property[Any] | None:
    """The property of this name, if this library acts on it; delete files have settings of their own."""
    own = next((kind for kind in ("parquet", "orc", "avro") if name.startswith(f"write.delete.{kind}.")), None)
    plain = name if own is None else name.replace("write.delete.", "write.", 1)
    column = next((prefix for prefix in _OF_COLUMNS if plain.startswith(prefix)), None)
    return _BY_NAME.get(plain) if column is None else _OF_COLUMNS[column]


def storable(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that a new table stores: all but its format version; InputError for those that tell its state."""
    check_settable(properties)
    return {name: value for name, value in properties.items() if name != FORMAT_VERSION.name}

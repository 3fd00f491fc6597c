"""Table properties that this library acts on: Iceberg's names and defaults, and the values that each may have.

Values are checked when they are set. Other programs may store any text. An invalid value that only some operations
need, such as the codec of new files, is refused by those operations. For what every commit or plan needs, which is
``lenient``, an invalid value is replaced by the default.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from icefloe.errors import FormatError, InputError
from icefloe.model.locations import parse_location
from icefloe.model.text.text_checks import check_property_texts, text_problem

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_METRICS = re.compile(r"none|counts|full|truncate\((?=[0-9]*[1-9])[0-9]{1,9}\)")


@dataclass(frozen=True, slots=True)
class Rule:
    """Which texts are valid values; ``allowed`` describes them, for errors."""

    allowed: str
    accepts: Callable[[str], bool]


def whole(least: int = 0, most: int = LONG_MAX) -> Rule:
    """A whole number of a range, as other programs write it.

    >>> whole(1).allowed, whole(1).accepts("0"), whole(1).accepts("1_000"), whole(1).accepts("1000")
    ('a whole number of 1 or more', False, False, True)
    """
    words = "a whole number" if least < 0 else f"a whole number from {least} to {most}"
    if most == LONG_MAX:
        words = f"a whole number of {least} or more"
    return Rule(words, lambda text: _WHOLE.fullmatch(text) is not None and least <= int(text) <= most)


def one_of(*words: str) -> Rule:
    """One of some words, in any case; no text at all is like no property, and is good where it is among them."""
    shown = [word for word in words if word != ""]
    return Rule(" or ".join((", ".join(shown[:-1]), shown[-1])), lambda text: text.lower() in words)


def _is_share(text: str) -> bool:
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False


def _is_location(text: str) -> bool:
    try:
        return text == "" or parse_location(text).is_plain
    except FormatError:
        return False


ANY = Rule("text", lambda text: True)
FLAG = one_of("true", "false")
LEVEL = Rule("a whole number", lambda text: text == "" or whole(-INT_MAX, INT_MAX).accepts(text))
LOCATION = Rule("an absolute location such as s3://bucket/folder, without . or .. in it", _is_location)
SHARE = Rule("a number between 0 and 1", _is_share)
METRICS = Rule(
    "none, counts, truncate(n) with n of 1 or more, or full",
    lambda text: _METRICS.fullmatch(text.strip().lower()) is not None,
)


V = TypeVar("V", int, str, bool)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Property(Generic[V]):
    """A named setting; the type of its default is its type. ``any_case``: values are case-insensitive.

    ``rule`` says which texts are valid, by default all that the type can parse. With ``lenient`` an invalid text counts
    as the default, so that it cannot stop the commit that would correct it.
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


class PropertyRegistry:
    """The properties by key. No key has two properties, and no property is hidden by another one."""

    def __init__(self) -> None:
        self._by_key: dict[str, Property[Any]] = {}
        self._by_prefix: dict[str, Property[Any]] = {}

    def add(self, new: Property[V]) -> Property[V]:
        """Register a property and return it; InputError if its key has one."""
        self._check_free(new.name, is_prefix=False)
        self._by_key[new.name] = new
        return new

    def add_prefix(self, new: Property[V]) -> str:
        """Register a property for all keys that begin with its name and end with a column; returns its name."""
        self._check_free(new.name, is_prefix=True)
        self._by_prefix[new.name] = new
        return new.name

    def find(self, key: str) -> Property[Any] | None:
        """The property of a key. Delete files have settings of their own, with the rules of data files."""
        kind = next((kind for kind in _DELETE_FILE_KEYS if key.startswith(kind)), None)
        plain = key if kind is None else key.replace("write.delete.", "write.", 1)
        prefix = next((prefix for prefix in self._by_prefix if plain.startswith(prefix)), None)
        return self._by_key.get(plain) if prefix is None else self._by_prefix[prefix]

    @property
    def names(self) -> tuple[str, ...]:
        """All keys and prefixes, in the order of registration."""
        return (*self._by_key, *self._by_prefix)

    def _check_free(self, name: str, *, is_prefix: bool) -> None:
        """``find`` must return the new property for its keys, and the properties before it for theirs."""
        below = (known for key, known in (*self._by_key.items(), *self._by_prefix.items()) if key.startswith(name))
        taken = next(below, None) if is_prefix else None
        taken = self.find(name) if taken is None else taken
        if taken is not None:
            raise InputError(f"property {name}: the key belongs to property {taken.name}", property=name)
        if name.startswith(_DELETE_FILE_KEYS):
            raise InputError(f"property {name}: delete files have the properties of data files", property=name)


_DELETE_FILE_KEYS = tuple(f"write.delete.{kind}." for kind in ("parquet", "orc", "avro"))
REGISTRY = PropertyRegistry()


def _property(
    name: str, default: V, *, any_case: bool = False, rule: Rule | None = None, lenient: bool = False
) -> Property[V]:
    """A new property, registered."""
    return REGISTRY.add(Property(name, default, any_case=any_case, rule=rule, lenient=lenient))


def _column_prefix(name: str, default: V, rule: Rule | None = None) -> str:
    """A new property of columns, registered; returns the prefix of its keys."""
    return REGISTRY.add_prefix(Property(name, default, rule=rule))


_NUMBER, _SIZE = whole(), whole(1)
_FORMAT, _OWN_FORMAT = one_of("parquet", "orc", "avro"), one_of("", "parquet", "orc", "avro")
_ISOLATION = one_of("serializable", "snapshot")
_MODE = one_of("", "copy-on-write", "merge-on-read")

FORMAT_VERSION = _property("format-version", 2, rule=_SIZE)  # never stored: setting it upgrades the table
# Names under which other programs show the state of a table. They are never stored: a stored value would hide it.
STATE_PROPERTIES = frozenset(
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
# Where new data and delete files are written; none: the folder "data" in the table's location.
DATA_PATH = _property("write.data.path", "", rule=LOCATION)
TARGET_FILE_SIZE = _property("write.target-file-size-bytes", 512 * 1024 * 1024, rule=_SIZE)
# How rows are distributed over the tasks that write them; none: by the sort order and the partitions of the table.
DISTRIBUTION_MODE = _property("write.distribution-mode", "", any_case=True, rule=one_of("", "none", "hash", "range"))
# What Spark SQL allows: rows with other columns, which an option then adds; MERGE WITH SCHEMA EVOLUTION.
ACCEPT_ANY_SCHEMA = _property("write.spark.accept-any-schema", False, lenient=True)
AUTO_SCHEMA_EVOLUTION = _property("write.spark.auto-schema-evolution.enabled", True, lenient=True)
# Whether a task that writes to many partitions keeps a file open for each of them (true), or sorts rows by partition
# (false); none: by its memory.
FANOUT = _property("write.spark.fanout.enabled", "", any_case=True, rule=one_of("", "true", "false"))
FILE_FORMAT = _property("write.format.default", "parquet", any_case=True, rule=_FORMAT)
PARQUET_ROW_GROUP_SIZE = _property("write.parquet.row-group-size-bytes", 128 * 1024 * 1024, rule=_SIZE)
PARQUET_PAGE_SIZE = _property("write.parquet.page-size-bytes", 1024 * 1024, rule=_SIZE)
PARQUET_PAGE_ROWS = _property("write.parquet.page-row-limit", 20_000, rule=_SIZE)
PARQUET_DICT_SIZE = _property("write.parquet.dict-size-bytes", 2 * 1024 * 1024, rule=_SIZE)
PARQUET_COMPRESSION = _property(
    "write.parquet.compression-codec",
    "zstd",
    any_case=True,
    rule=one_of("brotli", "gzip", "lz4", "snappy", "uncompressed", "zstd"),
)
PARQUET_COMPRESSION_LEVEL = _property("write.parquet.compression-level", "", rule=LEVEL)  # none: the codec's own level
PARQUET_BLOOM_MAX_BYTES = _property("write.parquet.bloom-filter-max-bytes", 1024 * 1024, rule=_SIZE)
# Keys that end with the name of a column.
PARQUET_BLOOM_COLUMN = _column_prefix("write.parquet.bloom-filter-enabled.column.", False)
PARQUET_BLOOM_FPP_COLUMN = _column_prefix("write.parquet.bloom-filter-fpp.column.", "", SHARE)
AVRO_COMPRESSION = _property(
    "write.avro.compression-codec", "gzip", any_case=True, rule=one_of("gzip", "snappy", "uncompressed", "zstd")
)
AVRO_COMPRESSION_LEVEL = _property("write.avro.compression-level", "", rule=LEVEL)  # empty: the codec's own default
ORC_STRIPE_SIZE = _property("write.orc.stripe-size-bytes", 64 * 1024 * 1024, rule=_SIZE)
ORC_COMPRESSION = _property(
    "write.orc.compression-codec", "zlib", any_case=True, rule=one_of("lz4", "none", "snappy", "zlib", "zstd")
)
ORC_STRATEGY = _property("write.orc.compression-strategy", "speed", any_case=True, rule=one_of("compression", "speed"))
ORC_BLOOM_COLUMNS = _property("write.orc.bloom.filter.columns", "")  # names with commas between
ORC_BLOOM_FPP = _property("write.orc.bloom.filter.fpp", "0.05", rule=SHARE)

# How much of each column is recorded in the metadata.
METRICS_DEFAULT = _property("write.metadata.metrics.default", "truncate(16)", rule=METRICS)
METRICS_COLUMN = _column_prefix("write.metadata.metrics.column.", "", METRICS)
METRICS_MAX_INFERRED = _property("write.metadata.metrics.max-inferred-column-defaults", 100, lenient=True)

COMMIT_RETRIES = _property("commit.retry.num-retries", 20, rule=whole(0, INT_MAX), lenient=True)
OPERATION_RETRIES = _property("commit.operation.num-retries", 0, rule=whole(0, INT_MAX), lenient=True)
COMMIT_MIN_WAIT_MS = _property("commit.retry.min-wait-ms", 20, rule=whole(0, INT_MAX), lenient=True)
COMMIT_MAX_WAIT_MS = _property("commit.retry.max-wait-ms", 2_000, rule=whole(0, INT_MAX), lenient=True)
DELETE_AFTER_COMMIT = _property("write.metadata.delete-after-commit.enabled", False, lenient=True)
WAP_ENABLED = _property("write.wap.enabled", False)  # whether Spark's setting spark.wap.branch applies to the table
DELETE_ISOLATION = _property("write.delete.isolation-level", "serializable", any_case=True, rule=_ISOLATION)
UPDATE_ISOLATION = _property("write.update.isolation-level", "serializable", any_case=True, rule=_ISOLATION)
MERGE_ISOLATION = _property("write.merge.isolation-level", "serializable", any_case=True, rule=_ISOLATION)
# How rows are removed from their files; none: the best way of the format version.
DELETE_MODE = _property("write.delete.mode", "", any_case=True, rule=_MODE)
UPDATE_MODE = _property("write.update.mode", "", any_case=True, rule=_MODE)
MERGE_MODE = _property("write.merge.mode", "", any_case=True, rule=_MODE)
# With equality deletes, the writer reads no rows, and readers do the work.
UPSERT_DELETES = _property("write.upsert.deletes", "position", any_case=True, rule=one_of("position", "equality"))
# A position delete file is about one partition, or about one data file ("file").
DELETE_GRANULARITY = _property("write.delete.granularity", "partition", any_case=True, rule=one_of("partition", "file"))
# None: that of data files.
DELETE_FORMAT = _property("write.delete.format.default", "", any_case=True, rule=_OWN_FORMAT)
DELETE_TARGET_FILE_SIZE = _property("write.delete.target-file-size-bytes", 64 * 1024 * 1024, rule=_SIZE)
# None: gzip in V4, no compression before.
METADATA_COMPRESSION = _property(
    "write.metadata.compression-codec", "", any_case=True, rule=one_of("none", "gzip"), lenient=True
)
# One is kept in any case, and as in other programs a number below that means one.
PREVIOUS_VERSIONS_MAX = _property(
    "write.metadata.previous-versions-max", 100, rule=whole(-INT_MAX, INT_MAX), lenient=True
)

# Commits merge small manifests: in v1-v3 each commit adds one, in V4 each flush of the root does.
MERGE_ENABLED = _property("commit.manifest-merge.enabled", True, lenient=True)
MERGE_TARGET_SIZE = _property("commit.manifest.target-size-bytes", 8 * 1024 * 1024, rule=_SIZE, lenient=True)
MERGE_MIN_COUNT = _property("commit.manifest.min-count-to-merge", 100, lenient=True)

# What expiry keeps, unless a branch or tag has its own settings.
MIN_SNAPSHOTS_TO_KEEP = _property("history.expire.min-snapshots-to-keep", 1)
# Of any age; without a bound by default. Apache Iceberg has no such property.
MAX_SNAPSHOTS_TO_KEEP = _property("history.expire.max-snapshots-to-keep", INT_MAX, rule=whole(1, INT_MAX), lenient=True)
MAX_SNAPSHOT_AGE_MS = _property("history.expire.max-snapshot-age-ms", 5 * 24 * 60 * 60 * 1000)
MAX_REF_AGE_MS = _property("history.expire.max-ref-age-ms", 2**63 - 1)
# How long the record of a stream or an idempotency key is kept at least, even if its snapshot expires (decision 040).
MAX_RECORD_AGE_MS = _property("history.expire.max-record-age-ms", 5 * 24 * 60 * 60 * 1000)
# Whether files may be deleted: other tables may use them.
GC_ENABLED = _property("gc.enabled", True)

# V4 only, chosen by measurement (decision 010). A vector takes a tenth of the bytes of a data file, hence two limits;
# the limit of bytes is for wide tables, whose rows are larger than most. Leaves have the keys of manifests, with other
# defaults: they are smaller and merged sooner, as plans open them one by one, and few commits write one.
ROOT_MAX_DATA_FILES = _property("commit.root.max-data-files", 300, lenient=True)
ROOT_MAX_DVS = _property("commit.root.max-dvs", 3000, lenient=True)
ROOT_MAX_BYTES = _property("commit.root.max-bytes", 1024 * 1024, lenient=True)
# How many times the bytes of a leaf may be spent on copying its data files from root to root before it is written.
ROOT_MAX_COPIES = _property("commit.root.max-copies", 4, lenient=True)
LEAF_TARGET_SIZE = replace(MERGE_TARGET_SIZE, default=4 * 1024 * 1024)
LEAF_MIN_COUNT = replace(MERGE_MIN_COUNT, default=10)
# A leaf with this share of removed rows, and no fewer of them than that, is written again by a later commit.
LEAF_MAX_DEAD_PERCENT = _property("commit.leaf.max-dead-percent", 50, lenient=True)
LEAF_MIN_DEAD_ROWS = _property("commit.leaf.min-dead-rows", 100, lenient=True)
# How many bytes of leaves one commit reads for that.
UPKEEP_MAX_BYTES = _property("commit.upkeep.max-bytes", 32 * 1024 * 1024, lenient=True)
# Snapshots name their root under manifest-list too, for programs that look for nothing else.
MIRROR_MANIFEST_LIST = _property("write.metadata.mirror-manifest-list", False, lenient=True)
# If the inline vectors of a root take more together, the largest are written to a file.
MANIFEST_DV_INLINE_MAX_BYTES = _property("write.manifest-dv.inline-max-bytes", 64 * 1024, lenient=True)

# How readers that work side by side share the files of a scan.
SPLIT_TARGET_SIZE = _property("read.split.target-size", 128 * 1024 * 1024, rule=_SIZE, lenient=True)
SPLIT_LOOKBACK = _property("read.split.planning-lookback", 10, rule=_SIZE, lenient=True)
SPLIT_OPEN_FILE_COST = _property("read.split.open-file-cost", 4 * 1024 * 1024, lenient=True)


def version_asked(properties: Mapping[str, str], argument: int | None = None, *, table: str = "") -> int | None:
    """The format version that an argument or a property asks for, if any; InputError if they contradict each other."""
    stated = FORMAT_VERSION.of(properties) if FORMAT_VERSION.name in properties else None
    if argument is not None and stated not in (None, argument):
        raise InputError(
            f"table {table}: format_version is {argument}, the property {FORMAT_VERSION.name} {stated};"
            " give one of them",
            property=FORMAT_VERSION.name,
        )
    return stated if argument is None else argument


def check_settable(properties: Mapping[str, str]) -> None:
    """InputError for properties that are not text, that show a table's state, or that have an invalid value.

    >>> check_settable({"commit.manifest-merge.enabled": "yes"})
    Traceback (most recent call last):
    icefloe.errors.InputError: property commit.manifest-merge.enabled: expected true or false, got 'yes'
    """
    check_property_texts(properties)
    state_property = next((name for name in properties if name in STATE_PROPERTIES), None)
    if state_property is not None:
        raise InputError(
            f"property {state_property!r} shows the state of a table and cannot be set; choose another name",
            property=state_property,
        )
    for name, text in properties.items():
        known = REGISTRY.find(name)
        problem = None if known is None else known.problem(text)
        if problem is not None:
            raise InputError(f"property {name}: {problem}", property=name)


def storable(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that a new table stores: all but its format version; InputError for those that show its state."""
    check_settable(properties)
    return {name: value for name, value in properties.items() if name != FORMAT_VERSION.name}

"""The fields of manifests of every version: ids, names, entry columns (spec: Manifests, Manifest Lists; V4 proposal).

The ids of the V4 content entry come as one block from the proposal: Apache's draft gives some of the same numbers
other meanings, so single ids must never be mixed. v1-v3 manifests share most ids with it, under other names. Which
version writes which field is in ``icefloe.model.metadata.version_rules``; readers accept all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from icefloe.model.entries import BOUNDS, ENTRY, Measure

# -- tracking: V4 version_info, and the top level of v1-v3 manifests
STATUS = 0
DATA_FILE = 2  # v1-v3 only
VERSION_INFO = 5

# -- files
LOCATION = 100
FILE_FORMAT = 101
PARTITION = 102  # v1-v3 only
RECORD_COUNT = 103
FILE_SIZE_IN_BYTES = 104
BLOCK_SIZE_IN_BYTES = 105  # v1 only; 108 to 130 and 137 to 139 are those of MEASURE_MAPS
LOWER_BOUNDS = 125
UPPER_BOUNDS = 128
KEY_METADATA = 131
SPLIT_OFFSETS, SPLIT_OFFSETS_ELEMENT = 132, 133
CONTENT_TYPE = 134
EQUALITY_IDS, EQUALITY_IDS_ELEMENT = 135, 136
SORT_ORDER_ID = 140
FIRST_ROW_ID = 142
REFERENCED_FILE = 143
CONTENT_OFFSET = 144
CONTENT_SIZE_IN_BYTES = 145
DELETION_VECTOR = 147
CONTENT_STATS = 149

# -- manifests: rows of a manifest list, and V4 manifest_stats
MANIFEST_PATH = 500
MANIFEST_LENGTH = 501
PARTITIONS, PARTITIONS_ELEMENT = 507, 508
CONTAINS_NULL = 509
SUMMARY_LOWER_BOUND = 510
SUMMARY_UPPER_BOUND = 511
CONTAINS_NAN = 518
MANIFEST_KEY_METADATA = 519

# -- content statistics (V4): a struct per column or expression, followed by its members
STATS_BASE = 10_000
STATS_STRIDE = 200
STATS_FIELD_LIMIT = 999_950
MEASURE_OFFSETS = {
    Measure.LOWER: 1,
    Measure.UPPER: 2,
    Measure.TIGHT: 3,
    Measure.VALUES: 4,
    Measure.NULLS: 5,
    Measure.NANS: 6,
    Measure.AVERAGE_SIZE: 7,
}
CORNER_OFFSETS = {Measure.LOWER: 10, Measure.UPPER: 14}  # of x in a bound of a shape; y, z and m follow


def stats_id(owner_id: int) -> int:
    """The id of the statistics struct of a column or expression.

    >>> stats_id(5)
    11000
    """
    return STATS_BASE + STATS_STRIDE * owner_id


def stats_owner(struct_id: int) -> int | None:
    """The column or expression that a statistics struct belongs to, if it is one."""
    owner, rest = divmod(struct_id - STATS_BASE, STATS_STRIDE)
    return owner if rest == 0 and 0 <= owner < STATS_FIELD_LIMIT else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A stored value: its id and name in the file, and the entry column that holds it in memory."""

    id: int
    name: str
    entry: str
    required: bool = False
    element_id: int | None = None

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the entry column."""
        return ENTRY.field(self.entry).type


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Stored values that are null together."""

    id: int
    name: str
    slots: tuple[Slot, ...]


def _slot(id_: int, entry: str, *, name: str | None = None, required: bool = False, element: int | None = None) -> Slot:
    return Slot(id=id_, name=entry if name is None else name, entry=entry, required=required, element_id=element)


def _counts(*, required: bool) -> tuple[Slot, ...]:
    return (
        _slot(504, "added_files_count", required=required),
        _slot(505, "existing_files_count", required=required),
        _slot(506, "deleted_files_count", required=required),
        _slot(512, "added_rows_count", required=required),
        _slot(513, "existing_rows_count", required=required),
        _slot(514, "deleted_rows_count", required=required),
        _slot(516, "min_sequence_number", required=required),
    )


# What tracks an entry: version_info of V4, the top level of v1-v3 manifests.
ENTRY_FIELDS = (
    _slot(STATUS, "status", required=True),
    _slot(1, "snapshot_id"),
    _slot(3, "sequence_number"),
    _slot(4, "file_sequence_number"),
)
CONTENT_ENTRY: tuple[Slot | Group, ...] = (
    _slot(CONTENT_TYPE, "content_type", required=True),
    _slot(LOCATION, "location"),
    _slot(FILE_FORMAT, "file_format", required=True),
    _slot(157, "format_version"),
    Group(
        id=VERSION_INFO,
        name="version_info",
        slots=ENTRY_FIELDS,
    ),
    Group(
        id=DELETION_VECTOR,
        name="deletion_vector",
        slots=(
            _slot(CONTENT_OFFSET, "dv_offset", name="offset"),
            _slot(CONTENT_SIZE_IN_BYTES, "dv_size_in_bytes", name="size_in_bytes"),
            _slot(146, "dv_inline_content", name="inline_content"),
        ),
    ),
    _slot(148, "partition_spec_id", required=True),
    _slot(SORT_ORDER_ID, "sort_order_id"),
    _slot(RECORD_COUNT, "record_count", required=True),
    _slot(FILE_SIZE_IN_BYTES, "file_size_in_bytes"),
    Group(id=CONTENT_STATS, name="content_stats", slots=()),  # what is inside depends on the table
    Group(
        id=521,
        name="manifest_stats",
        slots=_counts(required=True),
    ),
    _slot(REFERENCED_FILE, "referenced_file"),
    _slot(KEY_METADATA, "key_metadata"),
    _slot(SPLIT_OFFSETS, "split_offsets", element=SPLIT_OFFSETS_ELEMENT),
    _slot(EQUALITY_IDS, "equality_ids", element=EQUALITY_IDS_ELEMENT),
    _slot(FIRST_ROW_ID, "first_row_id"),
)

# The fields of v1-v3: of data_file in the entries of manifests, and of manifest lists.
FILE_FIELDS = (
    _slot(CONTENT_TYPE, "content_type", name="content"),
    _slot(LOCATION, "location", name="file_path", required=True),
    _slot(FILE_FORMAT, "file_format", required=True),
    _slot(RECORD_COUNT, "record_count", required=True),
    _slot(FILE_SIZE_IN_BYTES, "file_size_in_bytes", required=True),
    _slot(KEY_METADATA, "key_metadata"),
    _slot(SPLIT_OFFSETS, "split_offsets", element=SPLIT_OFFSETS_ELEMENT),
    _slot(EQUALITY_IDS, "equality_ids", element=EQUALITY_IDS_ELEMENT),
    _slot(SORT_ORDER_ID, "sort_order_id"),
    _slot(FIRST_ROW_ID, "first_row_id"),
    _slot(REFERENCED_FILE, "referenced_file", name="referenced_data_file"),
    _slot(CONTENT_OFFSET, "dv_offset", name="content_offset"),
    _slot(CONTENT_SIZE_IN_BYTES, "dv_size_in_bytes", name="content_size_in_bytes"),
)
MANIFEST_FIELDS = (
    _slot(MANIFEST_PATH, "location", name="manifest_path", required=True),
    _slot(MANIFEST_LENGTH, "file_size_in_bytes", name="manifest_length", required=True),
    _slot(502, "partition_spec_id", required=True),
    _slot(517, "content_type", name="content"),
    _slot(515, "sequence_number"),
    _slot(503, "snapshot_id", name="added_snapshot_id", required=True),
    *_counts(required=False),
    _slot(MANIFEST_KEY_METADATA, "key_metadata"),
    _slot(520, "first_row_id"),
)


@dataclass(frozen=True, slots=True)
class MeasureMap:
    """A map of v1-v3 entries, from column ids to one measure of the columns."""

    measure: Measure
    name: str
    id: int
    key_id: int
    value_id: int

    @property
    def has_bounds(self) -> bool:
        """Whether the values are bounds, which are stored as bytes; counts and sizes are numbers."""
        return self.measure in BOUNDS

    @property
    def value_type(self) -> pa.DataType:
        """The Arrow type of the values."""
        return pa.binary() if self.has_bounds else pa.int64()

    @property
    def arrow(self) -> pa.DataType:
        """The map as its file stores it: a list of pairs."""
        return pa.list_(pa.struct([pa.field("key", pa.int32()), pa.field("value", self.value_type)]))


MEASURE_MAPS = (
    MeasureMap(Measure.COLUMN_SIZE, "column_sizes", 108, 117, 118),
    MeasureMap(Measure.VALUES, "value_counts", 109, 119, 120),
    MeasureMap(Measure.NULLS, "null_value_counts", 110, 121, 122),
    MeasureMap(Measure.NANS, "nan_value_counts", 137, 138, 139),
    MeasureMap(Measure.LOWER, "lower_bounds", LOWER_BOUNDS, 126, 127),
    MeasureMap(Measure.UPPER, "upper_bounds", UPPER_BOUNDS, 129, 130),
)

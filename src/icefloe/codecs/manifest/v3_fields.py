"""The fields of v1-v3 manifests: ids, names in the spec and the entry columns they become (spec: Manifests).

Which version writes which of them is in ``icefloe.model.metadata.version_rules``; readers take what is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from icefloe.codecs.manifest import field_ids as ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A field of a manifest: its id, its name in the spec, the entry column it becomes."""

    id: int
    name: str
    entry: str
    type: pa.DataType
    required: bool = False


def _stored(id_: int, name: str, type_: pa.DataType, entry: str | None = None, *, required: bool = False) -> Stored:
    return Stored(id=id_, name=name, entry=name if entry is None else entry, type=type_, required=required)


ENTRY_FIELDS = (
    _stored(ids.STATUS, "status", pa.int32(), required=True),
    _stored(ids.SNAPSHOT_ID, "snapshot_id", pa.int64()),
    _stored(ids.SEQUENCE_NUMBER, "sequence_number", pa.int64()),
    _stored(ids.FILE_SEQUENCE_NUMBER, "file_sequence_number", pa.int64()),
)
FILE_FIELDS = (
    _stored(ids.CONTENT_TYPE, "content", pa.int32(), "content_type"),
    _stored(ids.LOCATION, "file_path", pa.string(), "location", required=True),
    _stored(ids.FILE_FORMAT, "file_format", pa.string(), required=True),
    _stored(ids.RECORD_COUNT, "record_count", pa.int64(), required=True),
    _stored(ids.FILE_SIZE_IN_BYTES, "file_size_in_bytes", pa.int64(), required=True),
    _stored(ids.KEY_METADATA, "key_metadata", pa.binary()),
    _stored(ids.SPLIT_OFFSETS, "split_offsets", pa.list_(pa.int64())),
    _stored(ids.EQUALITY_IDS, "equality_ids", pa.list_(pa.int32())),
    _stored(ids.SORT_ORDER_ID, "sort_order_id", pa.int32()),
    _stored(ids.FIRST_ROW_ID, "first_row_id", pa.int64()),
    _stored(ids.REFERENCED_FILE, "referenced_data_file", pa.string(), "referenced_file"),
    _stored(ids.CONTENT_OFFSET, "content_offset", pa.int64(), "dv_offset"),
    _stored(ids.CONTENT_SIZE_IN_BYTES, "content_size_in_bytes", pa.int64(), "dv_size_in_bytes"),
)

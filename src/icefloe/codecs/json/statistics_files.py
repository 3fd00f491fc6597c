"""Statistics files and encryption keys as JSON (spec: Table statistics).

Readers may ignore statistics, but a writer must keep their entries, and the keys of an encrypted table.
"""

from __future__ import annotations

from typing import Any

from icefloe.codecs.json.input import Count, Extensible, Int, Long, Reading, with_unknown
from icefloe.codecs.json.relative_locations import TableLocations
from icefloe.errors import FormatError
from icefloe.model.metadata.statistics_files import BlobMetadata, EncryptionKey, PartitionStatisticsFile, StatisticsFile

_LONG_DIGITS = 19


class BlobRecord(Extensible, frozen=True):
    """One blob of a statistics file."""

    type: str
    snapshot_id: Long
    sequence_number: Count
    fields: list[Int]
    properties: dict[str, str] | None = None


class StatisticsRecord(Extensible, frozen=True):
    """A statistics file; the text of the specification has the id as a string, and writers write a long."""

    snapshot_id: Long | str
    statistics_path: str
    file_size_in_bytes: Count
    file_footer_size_in_bytes: Count
    blob_metadata: list[BlobRecord]
    key_metadata: str | None = None


class PartitionStatisticsRecord(Extensible, frozen=True):
    """A partition statistics file."""

    snapshot_id: Long | str
    statistics_path: str
    file_size_in_bytes: Count


class EncryptionKeyRecord(Extensible, frozen=True):
    """A key of an encrypted table (v3 and later)."""

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: dict[str, str] | None = None


def _snapshot_id(value: int | str, path: str) -> int:
    if isinstance(value, int):
        return value
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _LONG_DIGITS and -(2**63) <= int(value) < 2**63):
        at = f"{path}.snapshot-id"
        raise FormatError(f"{at}: expected a long, or its digits as a string, got {value[:20]!r}", field=at)
    return int(value)


def statistics_from_record(
    record: StatisticsRecord, path: str, reading: Reading, locations: TableLocations
) -> StatisticsFile:
    """The statistics file of a decoded record."""
    blobs = enumerate(record.blob_metadata)
    return StatisticsFile(
        snapshot_id=_snapshot_id(record.snapshot_id, path),
        statistics_path=locations.absolute(record.statistics_path),
        file_size_in_bytes=record.file_size_in_bytes,
        file_footer_size_in_bytes=record.file_footer_size_in_bytes,
        blob_metadata=tuple(_blob(blob, f"{path}.blob-metadata[{index}]", reading) for index, blob in blobs),
        key_metadata=record.key_metadata,
        extra=reading.unknown(path),
    )


def _blob(record: BlobRecord, path: str, reading: Reading) -> BlobMetadata:
    return BlobMetadata(
        type=record.type,
        snapshot_id=record.snapshot_id,
        sequence_number=record.sequence_number,
        fields=tuple(record.fields),
        properties={} if record.properties is None else record.properties,
        extra=reading.unknown(path),
    )


def statistics_to_json(file: StatisticsFile, locations: TableLocations) -> dict[str, Any]:
    """A statistics file as a JSON object."""
    written: dict[str, Any] = {
        "snapshot-id": file.snapshot_id,
        "statistics-path": locations.stored(file.statistics_path),
        "file-size-in-bytes": file.file_size_in_bytes,
        "file-footer-size-in-bytes": file.file_footer_size_in_bytes,
    }
    if file.key_metadata is not None:
        written["key-metadata"] = file.key_metadata
    return with_unknown({**written, "blob-metadata": [_blob_to_json(b) for b in file.blob_metadata]}, file.extra)


def _blob_to_json(blob: BlobMetadata) -> dict[str, Any]:
    written: dict[str, Any] = {
        "type": blob.type,
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "fields": list(blob.fields),
    }
    if len(blob.properties) > 0:
        written["properties"] = dict(blob.properties)
    return with_unknown(written, blob.extra)


def partition_statistics_from_record(
    record: PartitionStatisticsRecord, path: str, reading: Reading, locations: TableLocations
) -> PartitionStatisticsFile:
    """The partition statistics file of a decoded record."""
    return PartitionStatisticsFile(
        snapshot_id=_snapshot_id(record.snapshot_id, path),
        statistics_path=locations.absolute(record.statistics_path),
        file_size_in_bytes=record.file_size_in_bytes,
        extra=reading.unknown(path),
    )


def partition_statistics_to_json(file: PartitionStatisticsFile, locations: TableLocations) -> dict[str, Any]:
    """A partition statistics file as a JSON object."""
    written = {
        "snapshot-id": file.snapshot_id,
        "statistics-path": locations.stored(file.statistics_path),
        "file-size-in-bytes": file.file_size_in_bytes,
    }
    return with_unknown(written, file.extra)


def encryption_key_from_record(record: EncryptionKeyRecord, path: str, reading: Reading) -> EncryptionKey:
    """The encryption key of a decoded record."""
    return EncryptionKey(
        key_id=record.key_id,
        encrypted_key_metadata=record.encrypted_key_metadata,
        encrypted_by_id=record.encrypted_by_id,
        properties={} if record.properties is None else record.properties,
        extra=reading.unknown(path),
    )


def encryption_key_to_json(key: EncryptionKey) -> dict[str, Any]:
    """An encryption key as a JSON object."""
    written: dict[str, Any] = {"key-id": key.key_id, "encrypted-key-metadata": key.encrypted_key_metadata}
    if key.encrypted_by_id is not None:
        written["encrypted-by-id"] = key.encrypted_by_id
    if len(key.properties) > 0:
        written["properties"] = dict(key.properties)
    return with_unknown(written, key.extra)

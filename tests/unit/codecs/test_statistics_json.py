"""Statistics files and encryption keys as JSON objects."""

from __future__ import annotations

import pytest

from icefloe.codecs.json.input import Reading, convert_extensible
from icefloe.codecs.json.relative_locations import TableLocations
from icefloe.codecs.json.statistics_files import (
    EncryptionKeyRecord,
    PartitionStatisticsRecord,
    StatisticsRecord,
    encryption_key_from_record,
    encryption_key_to_json,
    partition_statistics_from_record,
    partition_statistics_to_json,
    statistics_from_record,
    statistics_to_json,
)
from icefloe.errors import FormatError
from icefloe.model.metadata.statistics_files import EncryptionKey, PartitionStatisticsFile, StatisticsFile

ABSOLUTE = TableLocations(None)
BLOB = {
    "type": "apache-datasketches-theta-v1",
    "snapshot-id": 7,
    "sequence-number": 1,
    "fields": [1, 2],
    "properties": {"ndv": "12"},
}
STATISTICS = {
    "snapshot-id": 7,
    "statistics-path": "s3://b/s.puffin",
    "file-size-in-bytes": 413,
    "file-footer-size-in-bytes": 42,
    "key-metadata": "a2V5",
    "blob-metadata": [BLOB],
}
PARTITIONS = {"snapshot-id": 7, "statistics-path": "s3://b/p.parquet", "file-size-in-bytes": 43}
KEY = {"key-id": "k", "encrypted-key-metadata": "a2V5", "encrypted-by-id": "m", "properties": {"a": "b"}}


def statistics(value: object, locations: TableLocations = ABSOLUTE) -> StatisticsFile:
    record, extras = convert_extensible(value, StatisticsRecord, "at")
    return statistics_from_record(record, "at", Reading(extras=extras), locations)


def partitions(value: object) -> PartitionStatisticsFile:
    record, extras = convert_extensible(value, PartitionStatisticsRecord, "at")
    return partition_statistics_from_record(record, "at", Reading(extras=extras), ABSOLUTE)


def key(value: object) -> EncryptionKey:
    record, extras = convert_extensible(value, EncryptionKeyRecord, "at")
    return encryption_key_from_record(record, "at", Reading(extras=extras))


def test_every_entry_is_read_and_written_back():
    assert statistics_to_json(statistics(STATISTICS), ABSOLUTE) == STATISTICS
    assert partition_statistics_to_json(partitions(PARTITIONS), ABSOLUTE) == PARTITIONS
    assert encryption_key_to_json(key(KEY)) == KEY


def test_what_is_optional_may_be_absent():
    bare = {name: KEY[name] for name in ("key-id", "encrypted-key-metadata")}
    blob = {name: inner for name, inner in BLOB.items() if name != "properties"}
    file = {**{name: inner for name, inner in STATISTICS.items() if name != "key-metadata"}, "blob-metadata": [blob]}

    assert encryption_key_to_json(key(bare)) == bare
    assert statistics_to_json(statistics(file), ABSOLUTE) == file


@pytest.mark.parametrize(("given", "read"), [("7", 7), (7, 7), ("-1", -1), (str(2**63 - 1), 2**63 - 1)])
def test_the_snapshot_id_is_a_long_or_its_digits(given, read):
    file = statistics({**STATISTICS, "snapshot-id": given})

    assert file.snapshot_id == partitions({**PARTITIONS, "snapshot-id": given}).snapshot_id == read
    assert statistics_to_json(file, ABSOLUTE)["snapshot-id"] == read


@pytest.mark.parametrize("given", ["", "-", "x", "1.0", "--1", " 1", "1_0", "٣", str(2**63), "9" * 5000, None, 1.5])
def test_anything_else_is_no_snapshot_id(given):
    with pytest.raises(FormatError, match=r"at\.snapshot-id: expected a long"):
        statistics({**STATISTICS, "snapshot-id": given})
    with pytest.raises(FormatError, match=r"at\.snapshot-id: expected a long"):
        partitions({**PARTITIONS, "snapshot-id": given})


def test_locations_are_relative_where_the_version_has_it_so():
    relative = {**STATISTICS, "statistics-path": "metadata/s.puffin"}
    locations = TableLocations("s3://b/t")

    file = statistics(relative, locations)

    assert file.statistics_path == "s3://b/t/metadata/s.puffin"
    assert statistics_to_json(file, locations) == relative
    assert statistics_to_json(file, ABSOLUTE)["statistics-path"] == "s3://b/t/metadata/s.puffin"
    assert statistics(relative).statistics_path == "metadata/s.puffin"

"""Table metadata: files of Apache Iceberg and pyiceberg, snapshots that stay text, and random tables."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.metadata import TableMetadataUtil

from icefloe.codecs.json import snapshots as snapshot_json
from icefloe.codecs.json.snapshots import LazySnapshots
from icefloe.codecs.json.table_metadata import decode_metadata, encode_metadata
from icefloe.errors import CorruptFile, FormatError, InputError, LimitError, NoSuchSnapshot, UnsupportedError
from icefloe.limits import DEFAULT
from icefloe.model.metadata.snapshots import MAIN, Ref, Snapshot, Snapshots
from icefloe.model.metadata.statistics_files import BlobMetadata, EncryptionKey, PartitionStatisticsFile, StatisticsFile
from icefloe.model.metadata.table_metadata import MetadataLogEntry, SnapshotLogEntry, TableMetadata
from icefloe.model.partition.sort_order import SortField, SortOrder
from icefloe.model.partition.spec import Expression, PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DATE, LONG, STRING, TIMESTAMP_NS, Decimal, Field, List, Map, Struct
from support.metadata_documents import LOCATION, WHERE, decode, document, encoded, plain, snapshot, value
from support.selection import examples
from support.shared_files import shared

# Files of other programs

VALID = [
    "TableMetadataPartitionStatisticsFiles",
    "TableMetadataStatisticsFiles",
    "TableMetadataV1Valid",
    "TableMetadataV2Valid",
    "TableMetadataV2ValidMinimal",
    "TableMetadataV3ValidMinimal",
]
INVALID = {
    "TableMetadataV1MissingSchemaType": "schema: missing type",
    "TableMetadataV2CurrentSchemaNotFound": "last-partition-id",
    "TableMetadataV2MissingLastPartitionId": "last-partition-id",
    "TableMetadataV2MissingPartitionSpecs": "partition-specs",
    "TableMetadataV2MissingSchemas": "schemas",
    "TableMetadataV2MissingSortOrder": "sort-orders",
}
# What our writer writes though the file it read may have left it out.
ALWAYS_WRITTEN = {
    "schemas": None,
    "current-schema-id": None,
    "partition-specs": None,
    "default-spec-id": None,
    "last-partition-id": None,
    "sort-orders": None,
    "default-sort-order-id": None,
    "properties": {},
    "current-snapshot-id": None,
    "refs": None,
    "snapshots": [],
    "snapshot-log": [],
    "metadata-log": [],
    "statistics": [],
    "partition-statistics": [],
}


def as_written(original: dict[str, object]) -> dict[str, object]:
    """A parsed document as a rewrite is allowed to change it, which is little."""
    allowed = dict(original)
    if original["format-version"] > 1:  # version 1's keys, which some writers repeat
        allowed = {key: inner for key, inner in allowed.items() if key not in ("schema", "partition-spec")}
    else:  # a plain main is implied
        plain_main = {"main": {"snapshot-id": original.get("current-snapshot-id"), "type": "branch"}}
        allowed = {key: inner for key, inner in allowed.items() if key != "refs" or inner not in ({}, plain_main)}
    for schema in (*allowed.get("schemas", ()), *([allowed["schema"]] if "schema" in allowed else ())):
        schema.setdefault("schema-id", 0)
        if schema.get("identifier-field-ids") == []:
            del schema["identifier-field-ids"]
    return allowed


def check_rewrite(data: bytes, where: str) -> TableMetadata:
    """Read and write the file; all of it must be there again, and nothing but the keys above may be added."""
    metadata = decode_metadata(data, where=where)
    data_again = encode_metadata(metadata)
    written, original = json.loads(data_again), as_written(json.loads(data))
    assert {key: written[key] for key in original} == original, where
    for key in written.keys() - original.keys():
        assert ALWAYS_WRITTEN[key] is None or ALWAYS_WRITTEN[key] == written[key], (where, key)
    again = decode_metadata(data_again, where=where)
    assert plain(again) == plain(metadata), where
    assert encode_metadata(plain(again)) == encode_metadata(plain(metadata))
    return metadata


@pytest.mark.parametrize("name", VALID)
def test_apaches_valid_files_are_written_again_as_they_were(name):
    check_rewrite(shared(f"golden/apache/metadata/{name}.json").read_bytes(), WHERE)


@pytest.mark.parametrize(("name", "field"), INVALID.items())
def test_apaches_invalid_files_are_refused_by_the_field(name, field):
    data = shared(f"golden/apache/metadata/{name}.json").read_bytes()

    with pytest.raises(FormatError, match=field) as caught:
        decode_metadata(data, where=WHERE)
    assert WHERE in str(caught.value)


def test_apaches_current_schema_is_missing_even_where_nothing_else_is():
    data = json.loads(shared("golden/apache/metadata/TableMetadataV2CurrentSchemaNotFound.json").read_bytes())

    with pytest.raises(FormatError, match="current-schema-id: there is no 2, only 0, 1"):
        decode({**data, "last-partition-id": 1000})


def test_a_version_to_come_is_unsupported():
    data = shared("golden/apache/metadata/TableMetadataUnsupportedVersion.json").read_bytes()

    with pytest.raises(UnsupportedError, match="42"):
        decode_metadata(data, where=WHERE)
    with pytest.raises(UnsupportedError, match="5"):
        decode({"format-version": 5, "schemas": "something else altogether"})


def test_every_golden_table_is_written_again_as_it_was():
    files = sorted(shared("golden/tables").rglob("*.metadata.json"))
    assert len(files) > 50
    for file in files:
        metadata = check_rewrite(file.read_bytes(), str(file))
        original = json.loads(file.read_bytes())
        assert len(list(metadata.snapshots)) == len(metadata.snapshots) == len(original.get("snapshots", []))


def test_statistics_of_apaches_files_are_values():
    statistics = shared("golden/apache/metadata/TableMetadataStatisticsFiles.json").read_bytes()
    partitions = shared("golden/apache/metadata/TableMetadataPartitionStatisticsFiles.json").read_bytes()
    snapshot_id = 3055729675574597004

    blob = BlobMetadata(type="ndv", snapshot_id=snapshot_id, sequence_number=1, fields=(1,))
    assert decode_metadata(statistics, where=WHERE).statistics == (
        StatisticsFile(
            snapshot_id=snapshot_id,
            statistics_path="s3://a/b/stats.puffin",
            file_size_in_bytes=413,
            file_footer_size_in_bytes=42,
            blob_metadata=(blob,),
        ),
    )
    assert decode_metadata(partitions, where=WHERE).partition_statistics == (
        PartitionStatisticsFile(
            snapshot_id=snapshot_id, statistics_path="s3://a/b/partition-stats.parquet", file_size_in_bytes=43
        ),
    )


def test_pyicebergs_metadata_is_read_and_ours_is_read_by_pyiceberg(tmp_path):
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/wh")
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "tags": [["a"], None]})
    table = catalog.create_table("db.t", schema=rows.schema, properties={"owner": "me"})
    table.append(rows)
    table.append(rows)
    path = table.metadata_location.removeprefix("file://")
    with open(path, "rb") as file:
        metadata = decode_metadata(file.read(), where=table.metadata_location)

    assert metadata.table_uuid == str(table.metadata.table_uuid)
    assert [s.snapshot_id for s in metadata.snapshots] == [s.snapshot_id for s in table.metadata.snapshots]
    assert metadata.current_snapshot.root == table.current_snapshot().manifest_list
    assert metadata.current_snapshot.summary["total-records"] == "4"
    assert metadata.schema.names == {1: "id", 2: "tags", 3: "tags.element"}
    assert len(metadata.snapshot_log) == len(metadata.metadata_log) == 2
    theirs = TableMetadataUtil.parse_raw(encode_metadata(metadata).decode())
    assert theirs == table.metadata


# Snapshots stay text


def test_a_commit_never_parses_the_snapshots_it_does_not_need():
    broken = snapshot(1, timestamp_ms="x")
    metadata = decode(document(snapshots=[broken, snapshot(7)]))

    written = encoded(metadata.with_snapshot(value(8)))

    assert written["snapshots"][0] == broken
    assert metadata.snapshot(7).timestamp_ms == 5
    with pytest.raises(FormatError, match=r'metadata.json: snapshots\[0\]\.timestamp-ms: expected a long, got "x"'):
        list(metadata.snapshots)


@pytest.mark.parametrize("is_text", [True, False])
def test_metadata_with_a_snapshot_id_twice_is_never_written(is_text):
    """A commit that was made twice wrote it, and no program could open the table."""
    metadata = decode(document(snapshots=[snapshot(7)])).with_snapshot(value(8))
    again = metadata.with_snapshot(value(8))
    if not is_text:
        again = replace(again, snapshots=Snapshots(tuple(again.snapshots)))
    with pytest.raises(FormatError, match=f"{LOCATION}: refused to write metadata with snapshot 8 twice"):
        encode_metadata(again)


def test_ten_thousand_snapshots_are_loaded_with_one_snapshot_object(monkeypatch):
    made: list[int] = []

    def counting(**given: object) -> Snapshot:
        made.append(given["snapshot_id"])
        return Snapshot(**given)

    monkeypatch.setattr(snapshot_json, "Snapshot", counting)
    snapshots = [snapshot(i) for i in range(1, 10_001)]
    refs = {"main": {"snapshot-id": 10_000, "type": "branch"}, "old": {"snapshot-id": 1, "type": "tag"}}

    metadata = decode(document(snapshots=snapshots, current_snapshot_id=10_000, refs=refs))
    assert made == [10_000]
    assert metadata.snapshot(5_000).snapshot_id == 5_000
    assert metadata.snapshots.find(20_000) is None
    assert made == [10_000, 5_000]
    encode_metadata(metadata.without_snapshots([3, 4]))
    assert made == [10_000, 5_000]


def test_lazy_snapshots_are_found_added_and_removed():
    log = decode(document(snapshots=[snapshot(7), snapshot(3, sequence_number=2)])).snapshots

    assert isinstance(log, LazySnapshots)
    assert log.find(3).sequence_number == 2
    assert log.find(4) is None
    grown = log.add(value(9)).add(value(5))
    assert isinstance(grown, LazySnapshots)
    assert [s.snapshot_id for s in grown] == [7, 3, 9, 5]
    assert grown.find(5) == value(5)
    assert len(log) == 2
    fewer = grown.without([3, 5, 1000])
    assert [s.snapshot_id for s in fewer] == [7, 9]
    assert fewer.find(9) == value(9)
    assert fewer.find(3) is None
    assert [s.snapshot_id for s in fewer.add(value(3))] == [7, 9, 3]


def test_a_snapshot_that_is_not_there_is_named():
    with pytest.raises(NoSuchSnapshot, match="4"):
        decode(document()).snapshot(4)


def test_a_snapshot_added_while_the_table_is_upgraded_loses_nothing():
    metadata = replace(decode(document(2, next_row_id=None)), format_version=4)
    new = value(8, sequence_number=2, first_row_id=0, added_rows=5, key_id="k")

    upgraded = metadata.with_snapshot(new)

    assert tuple(upgraded.snapshots) == (metadata.snapshot(7), new)
    assert plain(decode(encoded(upgraded))) == plain(upgraded)


# Compression


def test_gzipped_metadata_is_known_by_its_first_bytes():
    data = json.dumps(document()).encode()

    assert plain(decode_metadata(gzip.compress(data), where=WHERE)) == plain(decode_metadata(data, where=WHERE))


def test_metadata_of_several_gzip_members_is_read():
    """Only the first was taken, and the others for bytes behind the end."""
    data = json.dumps(document()).encode()
    parts = [data[at : at + 100] for at in range(0, len(data), 100)]
    zipped = b"".join(map(gzip.compress, parts))
    assert plain(decode_metadata(zipped, where=WHERE)) == plain(decode_metadata(data, where=WHERE))
    for damaged in (zipped[:-1], zipped + b"x", zipped + zipped[:12]):
        with pytest.raises(CorruptFile, match="damaged gzip"):
            decode_metadata(damaged, where=WHERE)
    bomb = gzip.compress(bytes(10**6)) * 3
    with pytest.raises(LimitError, match="larger than 2000000 bytes"):
        decode_metadata(bomb, where=WHERE, limits=replace(DEFAULT, metadata_bytes=2 * 10**6))


def test_metadata_is_gzipped_into_the_same_bytes_every_time():
    metadata = decode(document())

    zipped = encode_metadata(metadata, compression="gzip")

    assert gzip.decompress(zipped) == encode_metadata(metadata) == encode_metadata(metadata, compression="none")
    assert zipped[4:8] == bytes(4)  # the time in its header
    assert zipped == encode_metadata(metadata, compression="gzip")
    assert plain(decode_metadata(zipped, where=WHERE)) == plain(metadata)
    with pytest.raises(InputError, match="compression-codec: 'lz4' is not one of none, gzip"):
        encode_metadata(metadata, compression="lz4")


# Random metadata

longs = st.integers(0, 2**63 - 1)
positive = st.integers(1, 2**63 - 1)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
maps = st.dictionaries(names, names, max_size=3)
unknowns = st.lists(
    st.tuples(st.sampled_from(["x-a", "x-b"]), st.just('{"y":[1.50,null]}')), max_size=2, unique=True
).map(tuple)
TYPES = [
    LONG,
    STRING,
    DATE,
    Decimal(9, 2),
    List(20, STRING, True),
    Map(21, STRING, 22, Struct((Field(23, "a", LONG),))),
]


@st.composite
def snapshots(draw, version):
    roots = st.sampled_from([f"{LOCATION}/metadata/r.parquet", "s3://b/r.parquet", f"{LOCATION}/snap.avro"])
    lineage = st.none() if version < 3 else st.none() | longs
    return tuple(
        Snapshot(
            snapshot_id=i,
            parent_id=draw(st.none() | longs),
            sequence_number=0 if version == 1 else draw(longs),
            timestamp_ms=draw(longs),
            root=draw(roots),
            summary=draw(maps),
            schema_id=draw(st.sampled_from([None, 0])),
            first_row_id=draw(lineage),
            added_rows=draw(lineage),
            key_id=None if version < 3 else draw(st.none() | names),
            extra=draw(unknowns),
        )
        for i in draw(st.lists(longs, max_size=4, unique=True))
    )


@st.composite
def statistics(draw):
    blob = st.builds(
        BlobMetadata,
        type=names,
        snapshot_id=longs,
        sequence_number=longs,
        fields=st.just((1, 2)),
        properties=maps,
        extra=unknowns,
    )
    return StatisticsFile(
        snapshot_id=draw(longs),
        statistics_path=draw(st.sampled_from([f"{LOCATION}/metadata/s.puffin", "s3://b/s.puffin"])),
        file_size_in_bytes=draw(longs),
        file_footer_size_in_bytes=draw(longs),
        blob_metadata=tuple(draw(st.lists(blob, max_size=2))),
        key_metadata=draw(st.none() | names),
        extra=draw(unknowns),
    )


@st.composite
def metadata_values(draw):
    version = draw(st.sampled_from([1, 2, 3, 4]))
    types = TYPES if version < 3 else [*TYPES, TIMESTAMP_NS]
    columns = draw(st.lists(st.sampled_from(types), min_size=1, max_size=len(types), unique=True))
    fields = tuple(
        Field(i, f"c{i}", type_, True, draw(st.none() | names), extra=draw(unknowns))
        for i, type_ in enumerate(columns, 1)
    )
    log = draw(snapshots(version))
    ids = [s.snapshot_id for s in log]
    current = draw(st.sampled_from(ids)) if len(ids) > 0 else None
    main = {} if current is None else {MAIN: Ref(snapshot_id=current, max_ref_age_ms=draw(st.none() | positive))}
    tags = (
        st.builds(Ref, snapshot_id=st.sampled_from(ids), type=st.just("tag"), extra=unknowns) if len(ids) > 0 else None
    )
    others = {} if tags is None else draw(st.dictionaries(names.filter(lambda name: name != MAIN), tags, max_size=2))
    sources = {} if version < 3 else {"other_source_ids": draw(st.sampled_from([(), (2, 3)]))}
    field = PartitionField(source_id=1, field_id=1000, name="p", transform="bucket[4]", extra=draw(unknowns), **sources)
    order = SortField(source_id=1, direction="desc", null_order="nulls-last", extra=draw(unknowns), **sources)
    expression = Expression(
        expr_id=90, source_ids=(1,), transform="bucket[4]", name="p", partition_field_id=1000, extra=draw(unknowns)
    )
    key = st.builds(EncryptionKey, key_id=names, encrypted_key_metadata=names, properties=maps, extra=unknowns)
    return TableMetadata(
        format_version=version,
        table_uuid="" if version == 1 and draw(st.booleans()) else str(draw(st.uuids())),
        location=LOCATION,
        last_updated_ms=draw(longs),
        last_column_id=90,
        schemas=(Schema(fields=fields, extra=draw(unknowns)),),
        last_sequence_number=0 if version == 1 else draw(longs),
        specs=draw(st.sampled_from([(PartitionSpec(),), (PartitionSpec(fields=(field,), extra=draw(unknowns)),)])),
        last_partition_id=1000,
        sort_orders=(SortOrder(), SortOrder(order_id=1, fields=(order,), extra=draw(unknowns))),
        properties=draw(maps),
        current_snapshot_id=current,
        snapshots=Snapshots(log),
        snapshot_log=tuple(SnapshotLogEntry(timestamp_ms=1, snapshot_id=i) for i in ids),
        metadata_log=(MetadataLogEntry(timestamp_ms=1, metadata_file=WHERE),),
        refs={**main, **others},
        statistics=tuple(draw(st.lists(statistics(), max_size=2))),
        encryption_keys=() if version < 3 else tuple(draw(st.lists(key, max_size=2))),
        next_row_id=0 if version < 3 else draw(longs),
        expressions=(expression,) if version == 4 else (),
        extra={"x": draw(st.lists(st.integers(-9, 9)))},
    )


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(metadata_values())
def test_metadata_survives_writing_and_reading(metadata):
    data = encode_metadata(metadata)
    again = decode_metadata(data, where=WHERE)

    assert plain(again) == metadata
    assert json.loads(encode_metadata(again)) == json.loads(data)

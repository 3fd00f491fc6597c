"""Table metadata against Apache's own files, against pyiceberg's, and against input made to break it."""

from __future__ import annotations

import contextlib
import gzip
import json
import tracemalloc
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.metadata import TableMetadataUtil

from icefloe.codecs.metadata_json import decode_metadata, encode_metadata
from icefloe.codecs.snapshot_json import LazySnapshots
from icefloe.errors import CorruptFile, FormatError, LimitError, NoSuchSnapshot, UnsupportedError
from icefloe.limits import Limits
from icefloe.model.metadata import MetadataLogEntry, SnapshotLogEntry, TableMetadata
from icefloe.model.partitioning import Expression, PartitionField, PartitionSpec
from icefloe.model.schema import Schema
from icefloe.model.snapshots import MAIN, Ref, Snapshot, Snapshots
from icefloe.model.sorting import SortField, SortOrder
from icefloe.model.types import DATE, LONG, STRING, Decimal, Field, List, Map, Struct
from shared import shared

LOCATION = "file:///wh/db/t"
WHERE = f"{LOCATION}/metadata/00001.metadata.json"


def document(version: int = 2, **changes: object) -> dict[str, object]:
    """A small valid document; changes are given with underscores, and None removes a key."""
    base = {
        "format-version": version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": LOCATION,
        "last-sequence-number": 1,
        "last-updated-ms": 10,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [
            {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "x", "required": True, "type": "long"}]}
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "next-row-id": 0,
        "current-snapshot-id": 7,
        "snapshots": [snapshot(7)],
    }
    base |= {key.replace("_", "-"): value for key, value in changes.items()}
    return {key: value for key, value in base.items() if value is not None}


def snapshot(snapshot_id: int, **changes: object) -> dict[str, object]:
    base = {"snapshot-id": snapshot_id, "sequence-number": 1, "timestamp-ms": 5, "manifest-list": "file:///m.avro"}
    base |= {key.replace("_", "-"): value for key, value in changes.items()}
    return {key: value for key, value in base.items() if value is not None}


def decode(value: object, **options: object) -> TableMetadata:
    return decode_metadata(json.dumps(value).encode(), where=WHERE, **options)


def encoded(metadata: TableMetadata) -> dict[str, object]:
    return json.loads(encode_metadata(metadata))


def plain(metadata: TableMetadata) -> TableMetadata:
    """The metadata with its snapshots as values, for comparison."""
    return replace(metadata, snapshots=Snapshots(tuple(metadata.snapshots)))


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
    "TableMetadataV1MissingSchemaType": "schema: .*type",
    "TableMetadataV2CurrentSchemaNotFound": "last-partition-id",
    "TableMetadataV2MissingLastPartitionId": "last-partition-id",
    "TableMetadataV2MissingPartitionSpecs": "partition-specs",
    "TableMetadataV2MissingSchemas": "schemas",
    "TableMetadataV2MissingSortOrder": "sort-orders",
}


@pytest.mark.parametrize("name", VALID)
def test_apaches_valid_files_are_written_again_as_they_were(name):
    data = shared(f"golden/apache/metadata/{name}.json").read_bytes()
    original = json.loads(data)

    written = encoded(decode_metadata(data, where=WHERE))

    if "schema" in original:
        original["schema"]["schema-id"] = 0  # implied in version 1
    assert {key: written[key] for key in original} == original


@pytest.mark.parametrize(("name", "field"), INVALID.items())
def test_apaches_invalid_files_are_refused_by_the_field(name, field):
    data = shared(f"golden/apache/metadata/{name}.json").read_bytes()

    with pytest.raises(FormatError, match=field) as caught:
        decode_metadata(data, where=WHERE)
    assert WHERE in str(caught.value)


def test_a_version_to_come_is_unsupported():
    data = shared("golden/apache/metadata/TableMetadataUnsupportedVersion.json").read_bytes()

    with pytest.raises(UnsupportedError, match="42"):
        decode_metadata(data, where=WHERE)


def test_every_golden_table_is_written_again_as_it_was():
    files = sorted(shared("golden/tables").rglob("*.metadata.json"))
    assert len(files) > 50
    for file in files:
        original = json.loads(file.read_bytes())
        metadata = decode_metadata(file.read_bytes(), where=str(file))
        assert len(list(metadata.snapshots)) == len(metadata.snapshots) == len(original.get("snapshots", []))
        written = encoded(metadata)
        for schema in (*original["schemas"], original.get("schema", {})):
            if schema.get("identifier-field-ids") == []:
                del schema["identifier-field-ids"]
        if original["format-version"] > 1:  # version 1's keys, which some writers repeat
            original = {key: value for key, value in original.items() if key not in ("schema", "partition-spec")}
        assert {key: written[key] for key in original} == original, file


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


# What is kept, resolved, implied


def test_unknown_keys_are_kept_at_the_top_and_in_snapshots():
    original = document(
        encryption_keys=[{"key-id": "k"}], x_new={"a": [1.5, None]}, snapshots=[snapshot(7, key_id="k")]
    )

    metadata = decode(original)
    written = encoded(metadata.with_snapshot(value(8), former_location=WHERE))

    assert metadata.extra == {"encryption-keys": [{"key-id": "k"}], "x-new": {"a": [1.5, None]}}
    assert written["encryption-keys"] == [{"key-id": "k"}]
    assert written["x-new"] == {"a": [1.5, None]}
    assert written["snapshots"][0] == snapshot(7, key_id="k")
    assert written["snapshots"][1]["snapshot-id"] == 8


def value(snapshot_id: int, **changes: object) -> Snapshot:
    base = {"snapshot_id": snapshot_id, "timestamp_ms": 20, "root": f"{LOCATION}/metadata/root.parquet"}
    return Snapshot(**{**base, **changes})


def test_a_commit_never_parses_the_snapshots_it_does_not_need():
    broken = snapshot(1, timestamp_ms="x")
    metadata = decode(document(snapshots=[broken, snapshot(7)]))

    written = encoded(metadata.with_snapshot(value(8), former_location=WHERE))

    assert written["snapshots"][0] == broken
    assert metadata.snapshot(7).timestamp_ms == 5
    with pytest.raises(FormatError, match=r"metadata.json: snapshots\[0\]\.timestamp-ms: expected int, got str"):
        list(metadata.snapshots)


def test_lazy_snapshots_are_found_by_id_newest_first():
    metadata = decode(document(snapshots=[snapshot(7, sequence_number=1), snapshot(3), snapshot(7, sequence_number=2)]))

    log = metadata.snapshots
    assert isinstance(log, LazySnapshots)
    assert log.find(7).sequence_number == 2
    assert log.find(4) is None
    grown = log.add(value(9)).add(value(3))
    assert [s.snapshot_id for s in grown] == [7, 3, 7, 9, 3]
    assert len(grown) == 5
    assert grown.find(3).root == value(3).root
    assert len(log) == 3
    with pytest.raises(NoSuchSnapshot, match="4"):
        metadata.snapshot(4)


def test_v4_locations_are_relative_in_the_file_and_absolute_in_memory():
    metadata = decode(document(4, snapshots=[], current_snapshot_id=None))
    committed = metadata.with_snapshot(value(8, first_row_id=0, added_rows=5), former_location=WHERE)

    written = encoded(committed)
    assert written["snapshots"][0]["root-manifest"] == "metadata/root.parquet"
    assert "manifest-list" not in written["snapshots"][0]
    assert written["metadata-log"] == [{"timestamp-ms": 10, "metadata-file": "metadata/00001.metadata.json"}]
    assert written["next-row-id"] == 5
    assert plain(decode(written)) == plain(committed)


def test_a_v4_file_without_a_location_belongs_to_the_table_it_lies_in():
    metadata = decode(
        document(4, location=None, snapshots=[snapshot(7, manifest_list=None, root_manifest="r.parquet")])
    )

    assert metadata.location == LOCATION
    assert metadata.current_snapshot.root == f"{LOCATION}/r.parquet"
    with pytest.raises(FormatError, match="location"):
        decode(document(2, location=None))


@pytest.mark.parametrize(
    ("stored", "expected"), [("s3://b/t//", "s3://b/t"), ("/", "/"), ("s3://", "s3://"), ("/wh/t", "/wh/t")]
)
def test_the_location_of_a_table_ends_without_a_slash(stored, expected):
    assert decode(document(location=stored)).location == expected


def test_relative_snapshots_are_written_anew_when_the_table_moved():
    metadata = decode(document(4, snapshots=[snapshot(7, manifest_list=None, root_manifest="metadata/r.parquet")]))

    moved = encoded(replace(metadata, location="file:///elsewhere"))

    assert moved["snapshots"][0]["root-manifest"] == f"{LOCATION}/metadata/r.parquet"


def test_a_table_upgraded_to_v4_keeps_the_manifest_lists_of_its_old_snapshots():
    metadata = decode(document(4))
    values = replace(metadata, snapshots=Snapshots(tuple(metadata.snapshots)))

    assert encoded(metadata)["snapshots"] == [snapshot(7)]
    assert encoded(values)["snapshots"] == [snapshot(7)]


def test_a_v2_location_is_never_taken_as_relative_to_the_table():
    assert decode(document(snapshots=[snapshot(7, manifest_list="data/m.avro")])).current_snapshot.root == "data/m.avro"


def test_a_mirror_of_the_root_manifest_is_accepted_and_a_different_one_is_not():
    same = snapshot(7, root_manifest="metadata/r.parquet", manifest_list=f"{LOCATION}/metadata/r.parquet")
    other = snapshot(7, root_manifest="metadata/r.parquet", manifest_list="metadata/s.parquet")

    assert decode(document(4, snapshots=[same])).current_snapshot.root == f"{LOCATION}/metadata/r.parquet"
    with pytest.raises(FormatError, match="root-manifest and manifest-list differ"):
        decode(document(4, snapshots=[other]))


def test_a_v1_snapshot_that_lists_its_manifests_is_unsupported():
    old = document(1, snapshots=[snapshot(7, manifest_list=None, manifests=["a.avro"])])

    with pytest.raises(UnsupportedError, match=r"snapshots\[0\]\.manifests"):
        decode(old)


@pytest.mark.parametrize("stored", [-1, None])
def test_a_table_without_snapshots_has_no_current_one(stored):
    metadata = decode({**document(snapshots=[], current_snapshot_id=None), "current-snapshot-id": stored})

    assert metadata.current_snapshot is None
    assert metadata.refs == {}
    assert encoded(metadata)["current-snapshot-id"] == -1
    assert encoded(replace(metadata, format_version=4))["current-snapshot-id"] is None


def test_a_table_older_than_refs_has_a_main_branch():
    assert decode(document()).refs == {MAIN: Ref(snapshot_id=7)}


def test_the_arrays_that_other_readers_ask_for_are_always_written():
    written = encoded(decode(document(snapshots=[], current_snapshot_id=None)))

    for key in ("snapshots", "statistics", "partition-statistics", "snapshot-log", "metadata-log"):
        assert written[key] == []
    assert written["refs"] == written["properties"] == {}
    assert written["sort-orders"] == [{"order-id": 0, "fields": []}]


def test_v4_partition_fields_name_their_expressions_and_may_be_nothing_else():
    expression = {"expr-id": 12, "expr": {"source-id": 1, "transform": "bucket[4]", "name": "x_b"}}
    expression["partition-field-id"] = 1000
    bare = document(4, expressions=[expression], partition_specs=[{"spec-id": 0, "fields": [{"expr-id": 12}]}])

    metadata = decode(bare)

    assert metadata.expressions[0].source_ids == (1,)
    assert metadata.spec.fields == (PartitionField(source_id=1, field_id=1000, name="x_b", transform="bucket[4]"),)
    full = {"source-id": 1, "field-id": 1000, "name": "x_b", "transform": "bucket[4]", "expr-id": 12}
    assert encoded(metadata)["partition-specs"] == [{"spec-id": 0, "fields": [full]}]
    assert encoded(metadata)["expressions"] == [expression]


# Hostile input

BROKEN = [
    ({"location": 5}, "location: expected str"),
    ({"last_updated_ms": "now"}, "last-updated-ms: expected int"),
    ({"last_updated_ms": 2**63}, "last-updated-ms: "),
    ({"last_column_id": 1.5}, "last-column-id: "),
    ({"current_schema_id": 3}, "current-schema-id: there is no 3"),
    ({"default_spec_id": 3}, "default-spec-id: there is no 3"),
    ({"default_sort_order_id": 3}, "default-sort-order-id: there is no 3"),
    ({"current_snapshot_id": 3}, "current-snapshot-id: there is no snapshot 3"),
    ({"table_uuid": "NULL"}, "missing table-uuid"),
    ({"schemas": []}, "missing schemas"),
    ({"schemas": [{}]}, r"schemas\[0\]: .*type"),
    ({"schemas": [{"type": "struct", "fields": [{"id": "1"}]}]}, r"schemas\[0\].fields\[0\].id: expected int"),
    ({"partition_specs": [{"spec-id": 0, "fields": [{"source-id": 1}]}]}, r"specs\[0\].fields\[0\]: missing name"),
    ({"partition_specs": [{"spec-id": 0, "fields": [{"name": "a", "transform": "day"}]}]}, "missing source-id"),
    ({"sort_orders": [{"order-id": 0, "fields": [{"transform": "a"}]}]}, r"sort-orders\[0\].fields\[0\]"),
    ({"properties": {"a": 1}}, r"properties\[...\]: expected str"),
    ({"refs": {"main": {"snapshot-id": 7, "type": "fork"}}}, "refs.*type"),
    ({"snapshots": {}}, "snapshots: expected array"),
    ({"snapshots": [5]}, r"snapshots\[0\]: expected object"),
    ({"snapshots": [snapshot(7, manifest_list=None)]}, r"snapshots\[0\]: missing root-manifest or manifest-list"),
    ({"snapshot_log": [{"timestamp-ms": 1}]}, r"snapshot-log\[0\].*snapshot-id"),
    ({"format_version": "2"}, "format-version: expected int"),
    ({"format_version": None}, "missing format-version"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN, ids=[m for _, m in BROKEN])
def test_a_broken_field_is_named(change, message):
    text = json.dumps(document(**change)).replace('"NULL"', "null")

    with pytest.raises(FormatError, match=message) as caught:
        decode_metadata(text.encode(), where=WHERE)
    assert str(caught.value).startswith(WHERE)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"not json", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"a": \xff}', b"[" * 10**6]
)
def test_what_is_not_an_object_of_json_is_a_format_error(data):
    with pytest.raises(FormatError):
        decode_metadata(data, where=WHERE)


def test_a_key_nested_too_deeply_is_a_format_error():
    deep = json.dumps(document()).encode()[:-1] + b', "x": ' + b"[" * 10**5 + b"]" * 10**5 + b"}"

    with pytest.raises(FormatError):
        decode_metadata(deep, where=WHERE)


@pytest.mark.parametrize("depth", [11, 5_000])
def test_types_nested_deeper_than_the_limit_are_refused(depth):
    inner = '"long"'
    for _ in range(depth):
        inner = '{"type":"list","element-id":1,"element":' + inner + ',"element-required":false}'
    fields = '[{"id":9,"name":"x","required":false,"type":' + inner + "}]"
    text = json.dumps(document(schemas="@")).replace('"@"', '[{"type":"struct","schema-id":0,"fields":' + fields + "}]")

    with pytest.raises(LimitError):
        decode_metadata(text.encode(), where=WHERE, limits=Limits(type_depth=10))


def test_gzipped_metadata_is_known_by_its_first_bytes():
    data = json.dumps(document()).encode()

    assert plain(decode_metadata(gzip.compress(data), where=WHERE)) == plain(decode_metadata(data, where=WHERE))


def test_a_gzip_bomb_is_refused_without_inflating_it():
    bomb = gzip.compress(bytes(50_000_000))

    tracemalloc.start()
    try:
        with pytest.raises(LimitError, match="1000 bytes"):
            decode_metadata(bomb, where=WHERE, limits=Limits(metadata_bytes=1000))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_metadata_larger_than_the_limit_is_refused():
    with pytest.raises(LimitError, match="100 bytes"):
        decode(document(), limits=Limits(metadata_bytes=100))


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-9], lambda b: b[:40], lambda b: b + b"x", lambda b: b[:20] + b"\0" + b[21:]]
)
def test_damaged_gzip_is_a_corrupt_file(damage):
    with pytest.raises(CorruptFile, match="gzip"):
        decode_metadata(damage(gzip.compress(json.dumps(document()).encode())), where=WHERE)


def test_two_columns_of_one_name_are_named():
    field = {"id": 1, "name": "x", "required": True, "type": "long"}
    schemas = [{"type": "struct", "schema-id": 0, "fields": [field, {**field, "id": 2}]}]

    with pytest.raises(FormatError, match=r"schemas\[0\]: .*named 'x'"):
        decode(document(schemas=schemas))


@settings(max_examples=300)
@given(st.data())
def test_changed_bytes_never_crash(data):
    text = bytearray(json.dumps(document(4)).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(FormatError, UnsupportedError):
        metadata = decode_metadata(bytes(text), where=WHERE)
        list(metadata.snapshots)
        encode_metadata(metadata)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200)
@given(st.sampled_from(sorted(document(4))), json_values)
def test_a_value_of_any_type_never_crashes(key, anything):
    text = json.dumps({**document(4), key: anything}).encode()
    with contextlib.suppress(FormatError, UnsupportedError):
        metadata = decode_metadata(text, where=WHERE)
        list(metadata.snapshots)
        encode_metadata(metadata)


# Random metadata

longs = st.integers(0, 2**63 - 1)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
maps = st.dictionaries(names, names, max_size=3)
TYPES = [
    LONG,
    STRING,
    DATE,
    Decimal(9, 2),
    List(20, STRING, True),
    Map(21, STRING, 22, Struct((Field(23, "a", LONG),))),
]


@st.composite
def metadata_values(draw):
    version = draw(st.sampled_from([1, 2, 3, 4]))
    columns = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=len(TYPES), unique=True))
    optional = {"doc": st.none() | names, "initial_default": st.none() | st.integers(0, 5)}
    fields = tuple(
        Field(i, f"c{i}", t, draw(st.booleans()), **{k: draw(s) for k, s in optional.items()})
        for i, t in enumerate(columns, 1)
    )
    roots = st.sampled_from([f"{LOCATION}/metadata/r.parquet", "s3://b/r.parquet", f"{LOCATION}/snap.avro"])
    snapshots = tuple(
        Snapshot(
            snapshot_id=i,
            parent_id=draw(st.none() | longs),
            sequence_number=0 if version == 1 else draw(longs),
            timestamp_ms=draw(longs),
            root=draw(roots),
            summary=draw(maps),
            schema_id=draw(st.sampled_from([None, 0])),
            first_row_id=draw(st.none() | longs),
            added_rows=draw(st.none() | longs),
        )
        for i in draw(st.lists(longs, max_size=4, unique=True))
    )
    current = draw(st.sampled_from([s.snapshot_id for s in snapshots])) if len(snapshots) > 0 else None
    main = {} if current is None else {MAIN: Ref(snapshot_id=current, max_ref_age_ms=draw(st.none() | longs))}
    spec = PartitionSpec(fields=(PartitionField(source_id=1, field_id=1000, name="p", transform="bucket[4]"),))
    order = SortOrder(order_id=1, fields=(SortField(source_id=1, direction="desc", null_order="nulls-last"),))
    expression = Expression(expr_id=90, source_ids=(1,), transform="bucket[4]", name="p", partition_field_id=1000)
    return TableMetadata(
        format_version=version,
        table_uuid=draw(names),
        location=LOCATION,
        last_updated_ms=draw(longs),
        last_column_id=90,
        schemas=(Schema(fields=fields, identifier_field_ids=draw(st.sampled_from([(), (1,)]))),),
        last_sequence_number=0 if version == 1 else draw(longs),
        specs=draw(st.sampled_from([(PartitionSpec(),), (spec,)])),
        last_partition_id=1000,
        sort_orders=draw(st.sampled_from([(SortOrder(),), (SortOrder(), order)])),
        properties=draw(maps),
        current_snapshot_id=current,
        snapshots=Snapshots(snapshots),
        snapshot_log=tuple(SnapshotLogEntry(timestamp_ms=1, snapshot_id=s.snapshot_id) for s in snapshots),
        metadata_log=(MetadataLogEntry(timestamp_ms=1, metadata_file=WHERE),),
        refs={
            **main,
            **draw(st.dictionaries(names, st.builds(Ref, snapshot_id=longs, type=st.just("tag")), max_size=2)),
        },
        next_row_id=0 if version < 3 else draw(longs),
        expressions=(expression,) if version == 4 else (),
        extra={"statistics": [{"snapshot-id": 1}], "x": draw(st.lists(st.integers(-9, 9)))},
    )


@settings(max_examples=60)
@given(metadata_values())
def test_metadata_survives_writing_and_reading(metadata):
    data = encode_metadata(metadata)
    again = decode_metadata(data, where=WHERE)

    assert plain(again) == metadata
    assert json.loads(encode_metadata(again)) == json.loads(data)

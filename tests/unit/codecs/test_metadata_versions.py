"""What each format version writes into its metadata, what it leaves out, and what older files imply."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from icefloe.codecs.json import table_metadata as metadata_json
from icefloe.codecs.json.snapshots import ref_to_json
from icefloe.errors import FormatError, UnsupportedError
from icefloe.model.metadata.snapshots import MAIN, Ref, Snapshots
from icefloe.model.metadata.statistics_files import EncryptionKey
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.version_rules import METADATA_FIELDS, VERSIONS, fields, required
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.json_values import value_from_json
from icefloe.model.schema.types import parse_type
from support.metadata_documents import LOCATION, WHERE, decode, document, encoded, plain, schema, snapshot, value

V1_ONLY = {"schema", "partition-spec"}


def test_the_codec_has_exactly_the_keys_of_the_field_table():
    assert list(metadata_json.WRITERS) == list(METADATA_FIELDS)
    assert set(metadata_json._Document.__struct_encode_fields__) == set(METADATA_FIELDS)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_writes_what_it_must_and_nothing_it_must_not(version):
    keys = [EncryptionKey(key_id="k", encrypted_key_metadata="a2V5")]
    metadata = replace(decode(document(4)), format_version=version, encryption_keys=tuple(keys))

    written = encoded(metadata)

    assert set(required(METADATA_FIELDS, version)) <= written.keys()
    assert written.keys() <= set(fields(METADATA_FIELDS, version))
    assert (written.keys() >= V1_ONLY) == (version == 1)
    assert ("encryption-keys" in written) == (version >= 3)


def test_a_key_that_the_version_requires_is_never_left_out():
    with pytest.raises(FormatError, match="missing table-uuid"):
        encoded(replace(decode(document()), table_uuid=""))


def test_the_arrays_that_other_readers_ask_for_are_always_written():
    written = encoded(decode(document(snapshots=[], current_snapshot_id=None)))

    for key in ("snapshots", "statistics", "partition-statistics", "snapshot-log", "metadata-log"):
        assert written[key] == []
    assert written["refs"] == written["properties"] == {}
    assert written["sort-orders"] == [{"order-id": 0, "fields": []}]


# Version 1

V1 = {
    "format-version": 1,
    "location": LOCATION,
    "last-updated-ms": 10,
    "last-column-id": 2,
    "schema": {"type": "struct", "fields": [{"id": 1, "name": "x", "required": True, "type": "long"}]},
    "partition-spec": [{"source-id": 1, "name": "x", "transform": "identity"}],
}


def test_the_oldest_metadata_has_one_schema_one_spec_and_no_ids():
    metadata = decode(V1)

    assert metadata.table_uuid == ""
    assert metadata.last_sequence_number == metadata.current_schema_id == metadata.default_spec_id == 0
    assert metadata.spec.fields == (PartitionField(source_id=1, field_id=1000, name="x", transform="identity"),)
    assert metadata.last_partition_id == 1000
    assert metadata.current_snapshot is None
    assert metadata.refs == {}


def test_version_1_is_written_with_both_forms_and_without_sequence_numbers():
    metadata = decode({**V1, "snapshots": [snapshot(7, sequence_number=None)], "current-snapshot-id": 7})
    committed = metadata.with_snapshot(value(8, sequence_number=3))

    written = encoded(committed)

    field = {"source-id": 1, "field-id": 1000, "transform": "identity", "name": "x"}
    assert written["schema"] == written["schemas"][0] == {**V1["schema"], "schema-id": 0}
    assert written["partition-spec"] == written["partition-specs"][0]["fields"] == [field]
    assert "table-uuid" not in written
    assert "last-sequence-number" not in written
    assert written["snapshots"][0] == snapshot(7, sequence_number=None)
    assert all("sequence-number" not in each for each in written["snapshots"])


def test_a_version_1_snapshot_may_list_its_manifests_itself():
    old = snapshot(7, manifest_list=None, sequence_number=None, manifests=["s3://b/a.avro", "s3://b/b.avro"])
    metadata = decode({**V1, "snapshots": [old], "current-snapshot-id": 7})

    assert metadata.current_snapshot.root is None
    assert metadata.current_snapshot.manifests == ("s3://b/a.avro", "s3://b/b.avro")
    with pytest.raises(UnsupportedError, match="snapshot 7 names its manifests itself"):
        _ = metadata.current_snapshot.root_location
    assert encoded(metadata)["snapshots"] == encoded(plain(metadata))["snapshots"] == [old]
    upgraded = replace(metadata, format_version=2, table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1")
    assert encoded(upgraded)["snapshots"] == [{**old, "sequence-number": 0}]


# Rising versions


def test_snapshots_are_written_anew_when_the_version_rose():
    metadata = decode({**V1, "snapshots": [snapshot(7, sequence_number=None)], "current-snapshot-id": 7})

    upgraded = replace(metadata, format_version=2, table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1")

    assert encoded(upgraded)["snapshots"] == [snapshot(7, sequence_number=0)]
    assert plain(decode(encoded(upgraded))) == plain(upgraded)


def test_an_upgrade_to_v4_makes_locations_under_the_table_relative():
    inside = snapshot(7, manifest_list=f"{LOCATION}/metadata/m.avro")

    upgraded = encoded(replace(decode(document(3, snapshots=[inside])), format_version=4))

    assert upgraded["snapshots"] == [{**inside, "manifest-list": "metadata/m.avro"}]
    assert decode(upgraded).current_snapshot.root == f"{LOCATION}/metadata/m.avro"


def test_a_table_upgraded_to_v4_keeps_the_manifest_lists_of_its_old_snapshots():
    metadata = decode(document(4))
    values = replace(metadata, snapshots=Snapshots(tuple(metadata.snapshots)))

    assert encoded(metadata)["snapshots"] == [snapshot(7)]
    assert encoded(values)["snapshots"] == [snapshot(7)]


@pytest.mark.parametrize(("stored", "version"), [(-1, 1), (-1, 2), (None, 2), (None, 3), (-1, 4)])
def test_a_table_without_snapshots_has_no_current_one(stored, version):
    given = {**document(version, snapshots=[], current_snapshot_id=None), "current-snapshot-id": stored}
    metadata = decode({**given, **V1} if version == 1 else given)

    assert metadata.current_snapshot is None
    assert metadata.refs == {}
    assert encoded(metadata)["current-snapshot-id"] == (-1 if version < 3 else None)


def test_a_table_older_than_refs_has_a_main_branch():
    assert decode(document()).refs == {MAIN: Ref(snapshot_id=7)}


# Version 3


def test_version_3_has_row_ids_keys_and_defaults():
    key = {"key-id": "k", "encrypted-key-metadata": "a2V5", "encrypted-by-id": "root", "properties": {"a": "b"}}
    column = {"initial-default": 1, "write-default": 2}
    stored = snapshot(7, first_row_id=0, added_rows=5, key_id="k")
    given = document(3, next_row_id=5, encryption_keys=[key], snapshots=[stored], schemas=[schema(**column)])

    metadata = decode(given)

    assert metadata.next_row_id == 5
    assert metadata.encryption_keys[0].encrypted_by_id == "root"
    assert metadata.current_snapshot.key_id == "k"
    assert (metadata.current_snapshot.first_row_id, metadata.current_snapshot.added_rows) == (0, 5)
    assert (metadata.schema.fields[0].initial_default, metadata.schema.fields[0].write_default) == (1, 2)
    for written in (encoded(metadata), encoded(plain(metadata))):
        assert {key: written[key] for key in given} == given


V3_COLUMNS = [
    ("timestamp_ns", "2017-11-16T22:31:08.123456789"),
    ("timestamptz_ns", "2017-11-16T22:31:08.123456789+00:00"),
    ("unknown", None),
    ("variant", None),
    ("geometry(OGC:CRS84)", None),
    ("geometry(EPSG:3857)", None),
    ("geography(OGC:CRS84, spherical)", None),
    ("geography(OGC:CRS84, karney)", None),
    ("decimal(9, 2)", "14.20"),
    ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    ("binary", "000102ff"),
    ("boolean", False),
    ("double", 0.0),
    ({"type": "struct", "fields": [{"id": 20, "name": "x", "required": True, "type": "int", "write-default": 7}]}, {}),
    ({"type": "list", "element-id": 21, "element": "variant", "element-required": False}, None),
    ({"type": "map", "key-id": 22, "key": "date", "value-id": 23, "value": "unknown", "value-required": False}, None),
]


@pytest.mark.parametrize("version", [3, 4])
def test_types_defaults_and_transforms_of_version_3_are_read_and_written_again(version):
    columns = [
        {"id": number, "name": f"c{number}", "required": False, "type": type_}
        | ({} if default is None else {"initial-default": default, "write-default": default})
        for number, (type_, default) in enumerate(V3_COLUMNS, start=1)
    ]
    several = {"source-ids": [1, 10], "field-id": 1000, "transform": "zorder[2]", "name": "z"}
    given = document(
        version,
        next_row_id=0,
        last_column_id=23,
        schemas=[{"type": "struct", "schema-id": 0, "fields": columns}],
        partition_specs=[{"spec-id": 0, "fields": [several]}],
        last_partition_id=1000,
    )

    metadata = decode(given)

    assert [str(field.type) for field in metadata.schema.fields[:13]] == [text for text, _ in V3_COLUMNS[:13]]
    assert metadata.spec.fields[0].source_ids == (1, 10)
    first, nested = metadata.schema.fields[0], metadata.schema.fields[13]
    assert value_from_json(first.write_default, first.type) == 1_510_871_468_123_456_789
    assert value_from_json(nested.write_default, nested.type, defaults="write") == {"x": 7}
    for written in (encoded(metadata), encoded(plain(metadata)), encoded(decode(encoded(metadata)))):
        assert {key: written[key] for key in given} == given


@pytest.mark.parametrize("type_", ["timestamp_ns", "timestamptz_ns", "unknown", "variant", "geometry", "geography"])
def test_a_type_of_a_later_version_is_refused_by_column_and_version(type_):
    nested = {"type": "list", "element-id": 2, "element": type_, "element-required": False}
    for changes in ({"type": type_}, {"type": nested}):
        given = [schema(required=False, **changes)]
        place, full = r"schemas\[0\].fields\[0\].type(.element)?", re.escape(str(parse_type(type_)))
        message = f"{place}: column 'x' has type {full} of format version 3"
        with pytest.raises(FormatError, match=message):
            decode(document(2, schemas=given, last_column_id=2))
        decode(document(3, schemas=given, last_column_id=2))


# Version 4


def test_v4_locations_are_relative_in_the_file_and_absolute_in_memory():
    metadata = decode(document(4, snapshots=[], current_snapshot_id=None))
    committed = metadata.with_snapshot(value(8, first_row_id=0, added_rows=5))
    committed = committed.committed(timestamp_ms=20, former_location=WHERE)

    written = encoded(committed)
    assert written["snapshots"][0]["root-manifest"] == "metadata/root.parquet"
    assert "manifest-list" not in written["snapshots"][0]
    assert written["metadata-log"] == [{"timestamp-ms": 10, "metadata-file": "metadata/00001.metadata.json"}]
    assert written["next-row-id"] == 5
    assert plain(decode(written)) == plain(committed)


def test_v4_statistics_are_stored_relative_to_the_table():
    file = {"snapshot-id": 7, "statistics-path": "metadata/p.parquet", "file-size-in-bytes": 43}
    metadata = decode(document(4, partition_statistics=[file]))

    assert metadata.partition_statistics[0].statistics_path == f"{LOCATION}/metadata/p.parquet"
    assert encoded(metadata)["partition-statistics"] == [file]
    moved = encoded(replace(metadata, location="file:///elsewhere"))
    assert moved["partition-statistics"][0]["statistics-path"] == f"{LOCATION}/metadata/p.parquet"


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


def test_a_v2_location_is_never_taken_as_relative_to_the_table():
    assert decode(document(snapshots=[snapshot(7, manifest_list="data/m.avro")])).current_snapshot.root == "data/m.avro"


def test_a_mirror_of_the_root_manifest_is_accepted_and_a_different_one_is_not():
    same = snapshot(7, root_manifest="metadata/r.parquet", manifest_list=f"{LOCATION}/metadata/r.parquet")
    other = snapshot(7, root_manifest="metadata/r.parquet", manifest_list="metadata/s.parquet")

    assert decode(document(4, snapshots=[same])).current_snapshot.root == f"{LOCATION}/metadata/r.parquet"
    with pytest.raises(FormatError, match="root-manifest and manifest-list differ"):
        decode(document(4, snapshots=[other]))


def bare_v4() -> tuple[TableMetadata, dict[str, object]]:
    expression = {"expr-id": 12, "expr": {"source-id": 1, "transform": "bucket[4]", "name": "x_b"}}
    expression["partition-field-id"] = 1000
    spec = {"spec-id": 0, "fields": [{"expr-id": 12}]}
    return decode(document(4, expressions=[expression], partition_specs=[spec])), expression


def test_v4_partition_fields_name_their_expressions_and_may_be_nothing_else():
    metadata, expression = bare_v4()

    assert metadata.expressions[0].source_ids == (1,)
    assert metadata.spec.fields == (PartitionField(source_id=1, field_id=1000, name="x_b", transform="bucket[4]"),)
    full = {"source-id": 1, "field-id": 1000, "name": "x_b", "transform": "bucket[4]", "expr-id": 12}
    assert encoded(metadata)["partition-specs"] == [{"spec-id": 0, "fields": [full]}]
    assert encoded(metadata)["expressions"] == [expression]


MIRROR = "write.metadata.mirror-manifest-list"


def roots(metadata: TableMetadata) -> list[tuple[object, object]]:
    return [(s.get("root-manifest"), s.get("manifest-list")) for s in encoded(metadata)["snapshots"]]


def test_a_property_mirrors_every_root_under_manifest_list_and_takes_the_mirrors_away_again():
    own = snapshot(7, root_manifest="metadata/r.parquet", manifest_list=None)
    before = snapshot(6, manifest_list="metadata/snap-6.avro")
    metadata = decode(document(4, snapshots=[before, own]))
    old, plain_root = (None, "metadata/snap-6.avro"), "metadata/r.parquet"
    assert roots(metadata) == [old, (plain_root, None)]

    mirrored = metadata.with_properties({MIRROR: "true"})
    assert roots(mirrored) == [old, (plain_root, plain_root)]
    again = decode(encoded(mirrored)).with_snapshot(value(8, first_row_id=0, added_rows=0))
    assert roots(again) == [old, (plain_root, plain_root), ("metadata/root.parquet", "metadata/root.parquet")]
    assert [s.root for s in decode(encoded(again)).snapshots] == [s.root for s in again.snapshots]
    assert roots(again.with_properties({}, [MIRROR])) == [old, (plain_root, None), ("metadata/root.parquet", None)]


def test_the_mirror_is_a_matter_of_v4_and_its_property_true_or_false():
    assert roots(decode(document(3, properties={MIRROR: "true"}))) == [(None, "file:///m.avro")]
    unsure = decode(document(4, properties={MIRROR: "perhaps"}))  # as another program may have stored it
    assert roots(plain(unsure)) == roots(plain(unsure.with_properties({MIRROR: "false"})))


def test_a_root_that_only_manifest_list_names_is_a_root():
    only = decode(document(4, snapshots=[snapshot(7, manifest_list="metadata/r.parquet")]))
    assert only.current_snapshot.root == f"{LOCATION}/metadata/r.parquet"
    assert roots(only.with_properties({"a": "b"})) == [(None, "metadata/r.parquet")]  # text that nobody touched
    assert roots(plain(only)) == [("metadata/r.parquet", None)]  # and written anew


def test_format_version_5_is_refused_whatever_else_the_file_holds():
    for given in (document(5), document(5, schemas="of another shape"), {"format-version": 5}):
        with pytest.raises(UnsupportedError, match="format version 5"):
            decode(given)


@pytest.mark.parametrize("location", [None, LOCATION, "file:///former"])
def test_a_v4_table_is_where_it_is_known_to_be_and_states_no_location_then(location):
    own = snapshot(7, root_manifest="metadata/r.parquet", manifest_list=None)
    metadata = decode(document(4, location=location, snapshots=[own]), table_location="s3://b/copy/")
    assert (metadata.location, metadata.states_location) == ("s3://b/copy", False)
    assert metadata.current_snapshot.root == "s3://b/copy/metadata/r.parquet"
    assert "location" not in encoded(metadata)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_older_table_is_nowhere_but_where_it_says(version):
    with pytest.raises(UnsupportedError, match=f"at {LOCATION}, not at s3://b/copy"):
        decode(document(version, schema=schema(), partition_spec=[]), table_location="s3://b/copy")


def test_version_1_has_refs_only_where_a_reader_cannot_know_them():
    """The key is not in the specification's table of version 1; every table of it had the key."""
    ref, tag = Ref(snapshot_id=7), Ref(snapshot_id=7, type="tag")
    metadata = replace(decode(document()), format_version=1, current_snapshot_id=7)
    for refs, kept in (({"main": ref}, False), ({"main": ref, "eom": tag}, True)):
        before = replace(metadata, refs=refs)
        assert ("refs" in encoded(before)) == kept
        assert decode(encoded(before)).refs == refs
    assert "refs" in encoded(replace(metadata, refs={"main": replace(ref, min_snapshots_to_keep=5)}))
    assert "refs" not in encoded(replace(metadata, current_snapshot_id=None, refs={}))
    assert encoded(replace(metadata, format_version=2, refs={"main": ref}))["refs"] == {"main": ref_to_json(ref)}

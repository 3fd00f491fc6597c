"""The model of the format as values: types, schemas, locations, version rules, snapshots, metadata."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.schema import assign_fresh_schema_ids

from icefloe.codecs.json.schema import schema_from_json, schema_to_json
from icefloe.errors import FormatError, InputError, NoSuchSnapshot, UnsupportedError
from icefloe.model.locations import is_absolute, relativize, resolve
from icefloe.model.metadata.properties import PREVIOUS_VERSIONS_MAX, Property
from icefloe.model.metadata.snapshots import MAIN, Operation, Ref, Snapshot, Snapshots
from icefloe.model.metadata.table_metadata import MetadataLogEntry, SnapshotLogEntry, TableMetadata
from icefloe.model.metadata.version_rules import check_writable, rules
from icefloe.model.partition.spec import UNPARTITIONED, PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema, assign_ids
from icefloe.model.schema.types import (
    DATE,
    INT,
    LONG,
    STRING,
    Field,
    List,
    Map,
    Struct,
    walk,
)

# Schemas

NESTED = Schema(
    fields=(
        Field(10, "a", Struct((Field(11, "x", INT), Field(12, "y", List(13, Struct((Field(14, "z", DATE),))))))),
        Field(20, "b", Map(21, STRING, 22, Struct((Field(23, "v", LONG),)))),
        Field(30, "c", LONG, True, "key"),
    ),
    identifier_field_ids=(30,),
)


def test_fresh_ids_are_given_level_by_level_as_iceberg_does():
    fresh = assign_ids(NESTED)

    assert {name: field.id for name, field in walk(fresh.fields)} == {
        "a": 1,
        "b": 2,
        "c": 3,
        "a.x": 4,
        "a.y": 5,
        "a.y.element": 6,
        "a.y.element.z": 7,
        "b.key": 8,
        "b.value": 9,
        "b.value.v": 10,
    }
    assert fresh.identifier_field_ids == (3,)
    assert fresh.fields[2] == Field(3, "c", LONG, True, "key")
    assert min(assign_ids(NESTED, start=100).by_id) == 100


def test_pyiceberg_gives_the_same_fresh_ids():
    theirs = assign_fresh_schema_ids(PeerSchema.model_validate(schema_to_json(NESTED)))

    assert schema_from_json(theirs.model_dump(by_alias=True)) == assign_ids(NESTED)


def test_fresh_ids_keep_defaults():
    schema = Schema(fields=(Field(5, "a", LONG, initial_default=1, write_default=2),))

    assert assign_ids(schema).fields == (Field(1, "a", LONG, initial_default=1, write_default=2),)


def test_fields_are_found_by_name_and_by_id_at_every_depth():
    assert NESTED.field("a.y.element.z").id == 14
    assert NESTED.by_id[23].name == "v"
    assert NESTED.names[22] == "b.value"
    assert NESTED.highest_id == 30
    assert Schema(fields=()).highest_id == 0


def test_statistics_are_for_primitives_outside_lists_and_maps():
    assert list(NESTED.measured) == [11, 30]


def test_a_missing_column_is_an_error_that_lists_what_there_is():
    with pytest.raises(InputError, match=r"no column 'nope'; the table has: a, a\.x"):
        NESTED.field("nope")


def test_selected_columns_come_in_the_order_asked_for():
    assert [f.name for f in NESTED.select(("c", "a")).fields] == ["c", "a"]
    with pytest.raises(InputError, match="top-level"):
        NESTED.select(("a.x",))
    with pytest.raises(InputError, match="twice"):
        NESTED.select(("c", "c"))


def test_two_fields_of_one_name_or_id_and_unknown_identifiers_break_the_format():
    with pytest.raises(FormatError, match="named 'a'"):
        Schema(fields=(Field(1, "a", LONG), Field(2, "a", LONG)))
    with pytest.raises(FormatError, match="id 1"):
        Schema(fields=(Field(1, "a", List(1, LONG)),))
    with pytest.raises(FormatError, match="identifier field 9"):
        Schema(fields=(Field(1, "a", LONG),), identifier_field_ids=(9,))


def test_a_spec_of_void_fields_does_not_partition():
    void = PartitionField(source_id=1, field_id=1000, name="a", transform="void")
    day = PartitionField(source_id=1, field_id=1001, name="d", transform="day")

    assert not UNPARTITIONED.is_partitioned
    assert not PartitionSpec(fields=(void,)).is_partitioned
    assert PartitionSpec(fields=(void, day)).is_partitioned


# Locations

TABLE = "file:///wh/t"


@pytest.mark.parametrize("location", ["/a", "file:///a", "s3://b/k", "abfss+x://a", "file:/a"])
def test_absolute_locations_stay_as_they_are(location):
    assert is_absolute(location)
    assert resolve(location, TABLE) == location
    assert relativize(location, TABLE) == location


def test_locations_under_the_table_are_stored_relative():
    assert relativize(f"{TABLE}/data/a=1:2/f.parquet", TABLE) == "data/a=1:2/f.parquet"
    assert resolve("data/a=1:2/f.parquet", TABLE) == f"{TABLE}/data/a=1:2/f.parquet"
    assert relativize("file:///wh/table2/f", TABLE) == "file:///wh/table2/f"


@pytest.mark.parametrize("inner", ["", "/x", "a:b", "../x", "x/./y", "x/.."])
def test_a_location_that_would_read_back_as_another_is_stored_whole(inner):
    assert relativize(f"{TABLE}/{inner}", TABLE) == f"{TABLE}/{inner}"


@pytest.mark.parametrize("location", ["", ".", "..", "../x", "a/../b", "a/."])
def test_relative_locations_that_climb_are_refused(location):
    with pytest.raises(FormatError, match="plain relative path"):
        resolve(location, TABLE)


@given(st.text("ab:/.=", max_size=8))
def test_what_is_stored_resolves_to_what_it_was(inner):
    location = f"{TABLE}/{inner}"

    assert resolve(relativize(location, TABLE), TABLE) == location


# Version rules


def test_rules_follow_the_versions():
    assert [rules(v).sequence_numbers for v in (1, 2, 3, 4)] == [False, True, True, True]
    assert [rules(v).deletion_vectors for v in (1, 2, 3, 4)] == [False, False, True, True]
    assert [rules(v).row_lineage for v in (1, 2, 3, 4)] == [False, False, True, True]
    assert [rules(v).root_holds_files for v in (1, 2, 3, 4)] == [False, False, False, True]
    assert [rules(v).relative_locations for v in (1, 2, 3, 4)] == [False, False, False, True]


@pytest.mark.parametrize("version", [0, 5, -1])
def test_an_unknown_version_is_unsupported(version):
    with pytest.raises(UnsupportedError):
        rules(version)
    with pytest.raises(UnsupportedError):
        check_writable(version)


def test_every_version_is_written():
    for version in (1, 2, 3, 4):
        check_writable(version)


# Properties


def test_a_property_has_the_type_of_its_default():
    size = Property("size", 5)

    assert size.of({}) == 5
    assert size.of({"size": "0"}) == 0
    with pytest.raises(InputError, match="size: expected a whole number of 0 or more, got 'big'"):
        size.of({"size": "big"})


# Snapshots and metadata


def snapshot(snapshot_id: int, **changes: object) -> Snapshot:
    base = {"snapshot_id": snapshot_id, "timestamp_ms": 100 + snapshot_id, "root": f"{TABLE}/r{snapshot_id}"}
    return Snapshot(**{**base, **changes})


def metadata(**changes: object) -> TableMetadata:
    base = {"format_version": 4, "table_uuid": "u", "location": TABLE, "last_updated_ms": 50, "last_column_id": 1}
    return TableMetadata(**{**base, "schemas": (Schema(fields=(Field(1, "a", LONG),)),), **changes})


def test_an_operation_is_known_implied_or_a_format_error():
    assert snapshot(1).operation is Operation.APPEND
    assert snapshot(1, summary={"operation": "delete"}).operation is Operation.DELETE
    with pytest.raises(FormatError, match="snapshot 1: unknown operation 'explode'"):
        _ = snapshot(1, summary={"operation": "explode"}).operation


def test_snapshots_are_found_newest_first_and_added_at_the_end():
    log = Snapshots((snapshot(1), snapshot(2))).add(snapshot(1, sequence_number=9))

    assert [s.snapshot_id for s in log] == [1, 2, 1]
    assert len(log) == 3
    assert log.find(1).sequence_number == 9
    assert log.find(5) is None


def test_a_new_snapshot_becomes_the_head_of_main():
    base = metadata(refs={MAIN: Ref(snapshot_id=0, max_ref_age_ms=9), "tag": Ref(snapshot_id=0, type="tag")})

    first, second = snapshot(7, sequence_number=3, added_rows=10), snapshot(8, sequence_number=4, added_rows=5)
    after = base.with_snapshot(first).committed(timestamp_ms=first.timestamp_ms, former_location="m0")
    again = after.with_snapshot(second).committed(timestamp_ms=second.timestamp_ms, former_location="m1")

    assert after.current_snapshot == snapshot(7, sequence_number=3, added_rows=10)
    assert after.refs[MAIN] == Ref(snapshot_id=7, max_ref_age_ms=9)
    assert after.refs["tag"] == Ref(snapshot_id=0, type="tag")
    assert after.last_updated_ms == 107
    assert again.last_sequence_number == 4
    assert again.next_row_id == 15
    assert again.snapshot_log == (
        SnapshotLogEntry(timestamp_ms=107, snapshot_id=7),
        SnapshotLogEntry(timestamp_ms=108, snapshot_id=8),
    )
    assert again.metadata_log == (
        MetadataLogEntry(timestamp_ms=50, metadata_file="m0"),
        MetadataLogEntry(timestamp_ms=107, metadata_file="m1"),
    )
    assert base.current_snapshot is None
    assert len(base.snapshots) == 0


@pytest.mark.parametrize(("kept", "expected"), [("2", ["m1", "m2"]), ("1", ["m2"]), ("0", ["m2"]), ("-3", ["m2"])])
def test_the_metadata_log_keeps_as_many_files_as_asked_but_never_none(kept, expected):
    table = metadata(properties={PREVIOUS_VERSIONS_MAX.name: kept})
    for i in range(3):
        table = table.with_snapshot(snapshot(i + 1)).committed(timestamp_ms=i, former_location=f"m{i}")

    assert [entry.metadata_file for entry in table.metadata_log] == expected


def test_what_the_metadata_lacks_is_named():
    table = metadata(current_schema_id=5, default_spec_id=6)

    with pytest.raises(FormatError, match="no schema 5"):
        _ = table.schema
    with pytest.raises(FormatError, match="no partition spec 6"):
        _ = table.spec
    with pytest.raises(NoSuchSnapshot, match="no snapshot 9"):
        table.snapshot(9)


def test_a_snapshot_is_read_with_its_own_schema_and_types_with_the_current_one():
    old = Schema(fields=(Field(1, "a", INT), Field(2, "gone", STRING)), schema_id=0)
    new = Schema(fields=(Field(1, "a", LONG),), schema_id=1)
    for schemas in ((old, new), (new, old)):
        table = metadata(schemas=schemas, current_schema_id=1)

        assert table.schema_of(snapshot(1, schema_id=0)) == old
        assert table.schema_of(snapshot(1)) == new
        assert table.types == {1: LONG, 2: STRING}

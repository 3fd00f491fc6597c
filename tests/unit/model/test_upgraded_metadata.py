"""Tables in a later format version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icefloe.errors import InputError, UnsupportedError
from icefloe.model.metadata.snapshots import Snapshot, Snapshots
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.upgrade import upgraded
from icefloe.model.partition.spec import PartitionSpec
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.partition_text import partition_spec

SCHEMA = parse_ddl("id bigint, ts timestamp")
SNAPSHOT = Snapshot(snapshot_id=1, timestamp_ms=5, root="file:///t/list.avro")


def table(version: int, **changes: object) -> TableMetadata:
    spec = partition_spec(["day(ts)", "id"], SCHEMA)
    void = PartitionSpec(spec_id=1, fields=(replace(spec.fields[0], transform="void"), spec.fields[1]))
    made = TableMetadata(
        format_version=version,
        table_uuid="u",
        location="file:///t",
        last_updated_ms=0,
        last_column_id=20,
        schemas=(SCHEMA,),
        specs=(spec, void),
        default_spec_id=1,
        last_partition_id=1001,
        snapshots=Snapshots((SNAPSHOT,)),
        current_snapshot_id=1,
    )
    return replace(made, **changes)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_the_version_a_table_has_changes_nothing(version):
    before = table(version)

    assert upgraded(before, version) is before


@pytest.mark.parametrize(("before", "after"), [(2, 1), (3, 2), (4, 1), (4, 3)])
def test_no_table_goes_back(before, after):
    with pytest.raises(InputError, match=f"format version {before} and cannot go back to {after}"):
        upgraded(table(before), after)
    with pytest.raises(UnsupportedError):
        upgraded(table(before), 5)


@pytest.mark.parametrize("before", [1, 2, 3])
def test_version_4_gives_derived_values_of_every_spec_an_expression(before):
    after = upgraded(table(before), 4)

    assert [(e.expr_id, e.transform, e.partition_field_id) for e in after.expressions] == [(21, "day", 1000)]
    assert after.last_column_id == 21
    assert after.format_version == 4
    assert after.specs == table(before).specs
    assert list(after.snapshots) == [SNAPSHOT]


def test_versions_before_4_have_no_expressions():
    assert upgraded(table(1), 3).expressions == ()


@pytest.mark.parametrize("after", [2, 3, 4])
def test_sequence_numbers_of_version_1_are_0_whatever_it_says(after):
    stray = table(1, last_sequence_number=9, snapshots=Snapshots((replace(SNAPSHOT, sequence_number=9),)))

    found = upgraded(stray, after)

    assert found.last_sequence_number == 0
    assert [s.sequence_number for s in found.snapshots] == [0]


def test_sequence_numbers_of_version_2_are_kept():
    assert upgraded(table(2, last_sequence_number=9), 4).last_sequence_number == 9


def test_row_ids_start_at_0_and_go_on_from_version_3():
    assert upgraded(table(2, next_row_id=7), 3).next_row_id == 0
    assert upgraded(table(3, next_row_id=7), 4).next_row_id == 7


def test_a_table_of_version_1_needs_a_uuid():
    nameless = table(1, table_uuid="")

    assert upgraded(nameless, 2, table_uuid="new").table_uuid == "new"
    assert upgraded(table(1), 2, table_uuid="new").table_uuid == "u"
    with pytest.raises(InputError, match="has no UUID"):
        upgraded(nameless, 2)


def test_snapshots_without_a_manifest_list_stop_the_upgrade():
    inline = replace(SNAPSHOT, snapshot_id=2, root=None, manifests=("m",))

    with pytest.raises(UnsupportedError, match="snapshot 2 names its manifests itself"):
        upgraded(table(1, snapshots=Snapshots((SNAPSHOT, inline))), 2)

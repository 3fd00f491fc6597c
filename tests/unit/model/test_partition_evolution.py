"""Partition evolution step by step, in version 1 and in versions that track field ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import IcefloeError, InputError
from icefloe.model.partition.spec import UNPARTITIONED, PartitionField, PartitionSpec, partition_name
from icefloe.model.partition.spec_evolution import (
    AddPartitionField,
    EvolvedSpec,
    PartitionChange,
    RemovePartitionField,
    RemovePartitionValue,
    RenamePartitionField,
    evolve_spec,
)
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, STRING, TIMESTAMP, VARIANT, Field, Geometry, List

SCHEMA = Schema(
    fields=(
        Field(1, "id", LONG),
        Field(2, "ts", TIMESTAMP),
        Field(3, "name", STRING),
        Field(4, "tags", List(5, STRING)),
        Field(6, "shape", Geometry()),
        Field(7, "any", VARIANT),
        Field(8, "ts_year", LONG),
    )
)
ID = PartitionField(source_id=1, field_id=1000, name="id", transform="identity")
DAY = PartitionField(source_id=2, field_id=1001, name="ts_day", transform="day")
BUCKET = PartitionField(source_id=1, field_id=1002, name="id_bucket", transform="bucket[4]")
SPEC = PartitionSpec(spec_id=3, fields=(ID, DAY, BUCKET))


def add(transform: str, *columns: str, name: str | None = None) -> AddPartitionField:
    return AddPartitionField(transform=transform, columns=columns, name=name)


def remove(field: str) -> RemovePartitionField:
    return RemovePartitionField(field=field)


def rename(field: str, name: str) -> RenamePartitionField:
    return RenamePartitionField(field=field, name=name)


def evolved(
    *steps: PartitionChange,
    spec: PartitionSpec = SPEC,
    specs: tuple[PartitionSpec, ...] = (),
    last: int = 1002,
    v: int = 2,
) -> EvolvedSpec:
    return evolve_spec(spec, steps, schema=SCHEMA, specs=specs, last_partition_id=last, format_version=v)


def shape(outcome: EvolvedSpec) -> list[tuple[int, str, str]]:
    return [(f.field_id, f.name, f.transform) for f in outcome.spec.fields]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_new_field_comes_last_with_the_next_id_and_icebergs_name(version):
    outcome = evolved(add("truncate[3]", "name"), v=version)

    assert shape(outcome)[:3] == shape(evolved(v=version))
    assert shape(outcome)[3:] == [(1003, "name_trunc_3", "truncate[3]")]
    assert outcome.last_partition_id == 1003
    assert outcome.spec.spec_id == 3


def test_ids_go_on_after_the_last_one_ever_used():
    assert shape(evolved(add("day", "ts"), spec=UNPARTITIONED, last=1009)) == [(1010, "ts_day", "day")]
    with pytest.raises(InputError, match="last partition id 1001 is below id 1002"):
        evolved(last=1001)


def test_a_removed_field_is_gone_where_ids_are_tracked():
    assert shape(evolved(remove("ts_day"))) == [(1000, "id", "identity"), (1002, "id_bucket", "bucket[4]")]


def test_a_removed_field_turns_void_in_version_1():
    outcome = evolved(remove("ts_day"), remove("id"), v=1)

    assert shape(outcome) == [(1000, "id", "void"), (1001, "ts_day", "void"), (1002, "id_bucket", "bucket[4]")]
    assert [f.source_id for f in outcome.spec.fields] == [1, 2, 1]
    assert outcome.last_partition_id == 1002


def test_a_void_field_gives_up_its_name_to_a_field_that_wants_it():
    swapped = evolved(remove("ts_day"), add("month", "ts", name="ts_day"), v=1)
    again = evolved(add("day", "ts"), spec=evolved(remove("ts_day"), v=1).spec, v=1)
    renamed = evolved(remove("ts_day"), rename("id_bucket", "ts_day"), v=1)

    assert shape(swapped)[1:] == [
        (1001, "ts_day_1001", "void"),
        (1002, "id_bucket", "bucket[4]"),
        (1003, "ts_day", "month"),
    ]
    assert shape(again)[1] == (1001, "ts_day_1001", "void")
    assert shape(again)[3] == (1003, "ts_day", "day")
    assert shape(renamed)[1:] == [(1001, "ts_day_1001", "void"), (1002, "ts_day", "bucket[4]")]


def test_version_1_refuses_to_remove_a_field_twice():
    with pytest.raises(InputError, match="'ts_day' was removed before"):
        evolved(remove("ts_day"), spec=evolved(remove("ts_day"), v=1).spec, v=1)


def test_void_fields_of_version_1_can_go_after_an_upgrade():
    former = evolved(remove("ts_day"), v=1).spec

    assert shape(evolved(remove("ts_day"), spec=former)) == shape(evolved(remove("ts_day")))


@pytest.mark.parametrize("version", [1, 2])
def test_removing_and_adding_the_same_value_leaves_the_field_where_it_was(version):
    assert evolved(remove("ts_day"), add("day", "ts"), v=version).spec == SPEC
    assert shape(evolved(remove("ts_day"), add("day", "ts", name="d"), v=version))[1] == (1001, "d", "day")


def test_a_field_that_an_earlier_spec_had_gets_its_id_and_name_back():
    former = PartitionSpec(spec_id=0, fields=(PartitionField(source_id=2, field_id=1007, name="d", transform="day"),))
    now = PartitionSpec(spec_id=1, fields=(ID,))

    assert shape(evolved(add("day", "ts"), spec=now, specs=(former, now), last=1007)) == [
        (1000, "id", "identity"),
        (1007, "d", "day"),
    ]
    given_name = evolved(add("day", "ts", name="other"), spec=now, specs=(former, now), last=1007)
    assert shape(given_name)[1] == (1007, "other", "day")
    assert given_name.last_partition_id == 1007
    assert shape(evolved(add("month", "ts"), spec=now, specs=(former,), last=1007))[1] == (1008, "ts_month", "month")
    assert shape(evolved(add("day", "ts"), spec=now, specs=(former,), last=1007, v=1))[1] == (1008, "ts_day", "day")


def test_an_id_that_the_spec_uses_for_something_else_does_not_come_back():
    """Specs of version 1 numbered their fields afresh, so an upgraded table may have one id for two values."""
    former = PartitionSpec(spec_id=0, fields=(PartitionField(source_id=2, field_id=1000, name="d", transform="day"),))
    now = PartitionSpec(spec_id=1, fields=(ID,))
    void = PartitionSpec(spec_id=1, fields=(PartitionField(source_id=2, field_id=1000, name="d", transform="void"),))

    assert shape(evolved(add("day", "ts"), spec=now, specs=(former,), last=1000))[1] == (1001, "ts_day", "day")
    assert shape(evolved(add("day", "ts"), spec=void, specs=(former,), last=1000)) == [
        (1000, "d", "void"),
        (1001, "ts_day", "day"),
    ]


def test_renaming_keeps_the_id_and_the_place():
    assert shape(evolved(rename("ts_day", "d"), rename("d", "e")))[1] == (1001, "e", "day")
    assert shape(evolved(rename("id", "x"), rename("id_bucket", "id_b"), rename("x", "id"))) == [
        (1000, "id", "identity"),
        (1001, "ts_day", "day"),
        (1002, "id_b", "bucket[4]"),
    ]


def test_steps_see_what_the_former_ones_left():
    outcome = evolved(add("truncate[3]", "name"), rename("name_trunc_3", "n"), remove("n"), add("bucket[8]", "name"))

    assert shape(outcome)[3:] == [(1004, "name_bucket_8", "bucket[8]")]


def test_a_time_unit_may_be_replaced_in_either_order_of_steps():
    wanted = [(1000, "id", "identity"), (1002, "id_bucket", "bucket[4]"), (1003, "ts_hour", "hour")]

    assert shape(evolved(add("hour", "ts"), remove("ts_day"))) == wanted
    assert shape(evolved(remove("ts_day"), add("hour", "ts"))) == wanted
    assert shape(evolved(RemovePartitionValue(transform="day", columns=("ts",)), add("hour", "ts"))) == wanted


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([add("hour", "ts")], "'ts_hour': it is redundant beside 'ts_day'"),
        ([remove("ts_day"), add("year", "ts", name="y"), add("month", "ts")], "redundant beside"),
        ([add("day", "ts", name="d")], "'d': it has the same values as 'ts_day'"),
        ([add("day", "ts")], "another partition field of this name"),
        ([add("identity", "name", name="ts_day")], "another partition field of this name"),
        ([rename("id", "ts_day")], "another partition field of this name"),
        ([add("year", "ts")], "name is that of a column"),
        ([add("identity", "name", name="ts")], "name is that of a column"),
        ([rename("ts_day", "ts")], "name is that of a column"),
        ([rename("ts_day", "")], "its name is empty"),
        ([add("identity", "tags.element")], "not a primitive outside of lists and maps"),
        ([add("identity", "shape")], "cannot partition a table"),
        ([add("identity", "any")], "not a primitive"),
        ([add("identity", "nope")], "no column 'nope'"),
        ([add("identity")], "name the column"),
        ([add("zorder", "id", "name")], "several columns need format version 3"),
        ([remove("nope")], r"no partition field 'nope'; the fields are: id \(identity\), ts_day"),
        ([remove("id"), remove("id")], "no partition field 'id'"),
        ([remove("id"), rename("id", "x")], "no partition field 'id'"),
        ([RemovePartitionValue(transform="hour", columns=("ts",))], "no partition field of hour of ts"),
    ],
)
def test_steps_that_the_format_does_not_allow_are_refused_with_the_reason(steps, reason):
    with pytest.raises(InputError, match=reason):
        evolved(*steps)


def test_an_empty_spec_says_so():
    with pytest.raises(InputError, match="the table is not partitioned"):
        evolved(remove("x"), spec=UNPARTITIONED)


def test_transforms_of_several_columns_keep_all_their_sources():
    outcome = evolved(add("zorder", "id", "name"), v=3)

    assert outcome.spec.fields[3].source_ids == (1, 3)
    assert outcome.spec.fields[3].name == partition_name("zorder", "id", "name") == "id_name_zorder"
    without = PartitionSpec(spec_id=4, fields=SPEC.fields)
    back = evolved(add("zorder", "id", "name"), spec=without, specs=(outcome.spec,), last=1003, v=3)
    assert back.spec.fields == outcome.spec.fields
    other_way = evolved(add("zorder", "name", "id"), spec=without, specs=(outcome.spec,), last=1003, v=3)
    assert other_way.spec.fields[3].field_id == 1004


def test_redundant_fields_of_other_writers_may_stay():
    both = PartitionSpec(fields=(DAY, PartitionField(source_id=2, field_id=1005, name="h", transform="hour")))

    assert len(evolved(add("identity", "id"), spec=both, last=1005).spec.fields) == 3


step = st.one_of(
    st.builds(
        add,
        st.sampled_from(["identity", "bucket[4]", "bucket[8]", "void", "day", "hour"]),
        st.sampled_from(["id", "ts", "name"]),
        name=st.sampled_from([None, "x", "y"]),
    ),
    st.builds(remove, st.sampled_from(["id", "ts_day", "x", "y", "name", "id_bucket"])),
    st.builds(rename, st.sampled_from(["id", "ts_day", "x"]), st.sampled_from(["x", "y", "ts_day"])),
)


@given(st.sampled_from([1, 2]), st.lists(st.lists(step, max_size=3), max_size=8))
def test_any_history_keeps_ids_names_and_places(version, changes):
    history, last = [UNPARTITIONED], 999
    meaning: dict[int, object] = {}
    for steps in changes:
        try:
            outcome = evolved(*steps, spec=history[-1], specs=tuple(history), last=last, v=version)
        except IcefloeError:
            continue
        fields = outcome.spec.fields
        assert len({f.name for f in fields}) == len({f.field_id for f in fields}) == len(fields)
        assert last <= outcome.last_partition_id
        assert all(f.field_id <= outcome.last_partition_id for f in fields)
        for field in fields:
            if not field.is_void:
                assert meaning.setdefault(field.field_id, field.derivation) == field.derivation
        if version == 1:
            before = [(f.field_id, f.source_ids) for f in history[-1].fields]
            assert [(f.field_id, f.source_ids) for f in fields][: len(before)] == before
        else:
            derivations = [f.derivation for spec in history for f in spec.fields if not f.is_void]
            new = [f for f in fields if f.field_id > last and not f.is_void]
            assert all(f.derivation not in derivations for f in new)
        history.append(PartitionSpec(spec_id=len(history), fields=fields))
        last = outcome.last_partition_id

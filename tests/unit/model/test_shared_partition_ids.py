"""Partition field ids that mean other values in other specs, as writers of version 1 gave them out.

Values kept by such an id alone were those of whichever spec came last: rows that matched a filter were not found.
"""

from __future__ import annotations

import pytest

from icefloe.errors import InputError
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec import (
    FIRST_ID_APART,
    Expression,
    PartitionField,
    PartitionSpec,
    expression_ids,
    expressions_for,
    spec_problem,
    with_distinct_ids,
)
from icefloe.model.partition.spec_evolution import PartitionUpdate
from icefloe.model.partition.spec_history import add_spec
from icefloe.model.text.ddl import parse_ddl

SCHEMA = parse_ddl("a int, b string, c date")
COLUMNS = {"a": 1, "b": 2, "c": 3}


def part(source: str, field_id: int = 1000, transform: str = "identity") -> PartitionField:
    return PartitionField(source_id=COLUMNS[source], field_id=field_id, name=f"p_{source}", transform=transform)


def spec(spec_id: int, *fields: PartitionField) -> PartitionSpec:
    return PartitionSpec(spec_id=spec_id, fields=fields)


def ids(specs: tuple[PartitionSpec, ...]) -> list[list[tuple[int, int]]]:
    return [[(field.field_id, field.stored_id) for field in each.fields] for each in specs]


def table(*specs: PartitionSpec, version: int = 1) -> TableMetadata:
    return TableMetadata(
        format_version=version,
        table_uuid="u",
        location="file:///t",
        last_updated_ms=0,
        last_column_id=SCHEMA.highest_id,
        schemas=(SCHEMA,),
        specs=with_distinct_ids(specs),
        default_spec_id=specs[-1].spec_id,
        last_partition_id=1000,
    )


def test_the_oldest_spec_keeps_an_id_and_other_values_get_one_of_their_own():
    day, month = part("c", transform="day"), part("c", transform="month")

    found = with_distinct_ids(
        [spec(0, part("a")), spec(1, part("b"), part("a", 1001)), spec(2, part("a")), spec(3, part("b"))]
    )

    assert ids(found) == [
        [(1000, 1000)],
        [(FIRST_ID_APART, 1000), (1001, 1001)],
        [(1000, 1000)],
        [(FIRST_ID_APART, 1000)],
    ]
    assert ids(with_distinct_ids([spec(0, day), spec(1, month)]))[1] == [(FIRST_ID_APART, 1000)]


def test_specs_without_such_ids_stay_as_they_are():
    plain = (spec(0, part("a"), part("b", 1001)), spec(1, part("a", transform="void"), part("b", 1001)))

    assert with_distinct_ids(plain) == plain


def test_later_specs_and_another_order_of_the_list_change_no_id():
    specs = [spec(0, part("a")), spec(1, part("b")), spec(2, part("c")), spec(3, part("b"), part("c", 1001))]
    whole = with_distinct_ids(specs)

    assert all(with_distinct_ids(specs[:size]) == whole[:size] for size in range(5))
    assert with_distinct_ids(reversed(specs)) == tuple(reversed(whole))
    assert with_distinct_ids(whole) == whole


def test_an_id_that_a_file_has_is_not_given_out():
    (_, second) = with_distinct_ids([spec(0, part("a"), part("c", FIRST_ID_APART)), spec(1, part("b"))])

    assert second.fields[0].field_id == FIRST_ID_APART + 1


@pytest.mark.parametrize("version", [1, 2, 4])
def test_a_value_never_comes_back_under_an_id_that_another_field_of_the_spec_has_in_files(version):
    before = table(spec(0, part("a")), spec(1, part("b")), version=version)

    after = PartitionUpdate(metadata=before).add("a", name="p_a").apply()

    assert [field.stored_id for field in after.spec.fields] == [1000, 1001]
    assert after.last_partition_id == 1001
    assert after.specs[:2] == before.specs


@pytest.mark.parametrize("version", [2, 4])
def test_a_value_comes_back_under_its_shared_id_when_that_is_free(version):
    before = table(spec(0, part("a")), spec(1, part("b")), spec(2), version=version)

    after = PartitionUpdate(metadata=before).add("b", name="p_b").apply()

    assert after.spec == before.specs[1]
    assert after.last_partition_id == 1000


def test_a_field_that_version_1_keeps_as_void_has_the_id_of_the_files():
    before = table(spec(0, part("a")), spec(1, part("b")))

    after = PartitionUpdate(metadata=before).remove("p_b").add("c").apply()

    assert ids((after.spec,)) == [[(1000, 1000), (1001, 1001)]]
    assert after.spec.fields[0].is_void


def test_a_spec_that_is_added_is_told_apart_from_the_others():
    """Version 1 takes a spec with any ids, as long as fields keep their places."""
    after = add_spec(table(spec(0, part("a")), spec(1)), spec(0, part("b")))

    assert ids(after.specs) == [[(1000, 1000)], [], [(FIRST_ID_APART, 1000)]]
    assert after.last_partition_id == 1000


def test_two_fields_of_one_id_in_files_make_no_spec():
    twice = with_distinct_ids([spec(0, part("a")), spec(1, part("b"))])
    both = spec(2, *(field for each in twice for field in each.fields))

    assert spec_problem(both, SCHEMA) == "two partition fields have id 1000"


def test_an_id_that_was_used_for_another_value_is_still_refused_where_ids_are_tracked():
    before = table(spec(0, part("a")), spec(1, part("b")), version=2)

    with pytest.raises(InputError, match="has id 1000, which was used before; give it 1001"):
        add_spec(before, spec(0, part("c")))


def test_a_shared_id_links_no_expression():
    """The link would say of one expression that it is the value of both fields."""
    fields = [
        field
        for each in with_distinct_ids(
            [spec(0, part("a", transform="bucket[4]")), spec(1, part("b", transform="bucket[4]"))]
        )
        for field in each.fields
    ]

    found = expressions_for(fields, last_id=3)

    assert [(e.expr_id, e.source_ids, e.partition_field_id) for e in found] == [(4, (1,), 1000), (5, (2,), None)]
    assert expressions_for(fields, found, last_id=5) == found
    assert expression_ids(fields, found) == {1000: 4, FIRST_ID_APART: 5}


def test_of_two_expressions_that_link_one_field_the_one_of_its_value_is_used():
    field = part("a", transform="bucket[4]")
    of_b, of_a = (
        Expression(expr_id=i, source_ids=(s,), transform="bucket[4]", name="x", partition_field_id=1000)
        for i, s in ((4, 2), (5, 1))
    )

    assert expression_ids([field], [of_b, of_a]) == {1000: 5}

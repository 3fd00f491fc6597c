"""Specs and orders over the life of a table, and the texts that change them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icefloe.errors import InputError
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import UNSORTED, SortField, SortOrder, same_order
from icefloe.model.partition.spec import (
    UNPARTITIONED,
    Expression,
    PartitionField,
    PartitionSpec,
    compatible,
    expressions_for,
    same_partitioning,
)
from icefloe.model.partition.spec_evolution import PartitionUpdate
from icefloe.model.partition.spec_history import add_order, add_spec, with_expressions
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.partition_text import partition_spec, sort_field, sort_order

SCHEMA = parse_ddl("id bigint, ts timestamp, name string, tags array<string>, s struct<x: int>")


def table(*partitions: str, version: int = 2) -> TableMetadata:
    spec = partition_spec(partitions, SCHEMA)
    made = TableMetadata(
        format_version=version,
        table_uuid="u",
        location="file:///t",
        last_updated_ms=0,
        last_column_id=SCHEMA.highest_id,
        schemas=(SCHEMA,),
        specs=(spec,),
        last_partition_id=999 + len(spec.fields),
    )
    return with_expressions(made) if version == 4 else made


def part(transform: str, source: str, field_id: int, name: str) -> PartitionField:
    return PartitionField(source_id=SCHEMA.field(source).id, field_id=field_id, name=name, transform=transform)


# Equivalence


def test_specs_are_compared_by_sources_transforms_names_and_order():
    a = PartitionSpec(spec_id=1, fields=(part("day", "ts", 1000, "d"), part("identity", "id", 1001, "id")))
    renumbered = PartitionSpec(fields=tuple(replace(f, field_id=f.field_id + 5) for f in a.fields))

    assert same_partitioning(a, replace(a, spec_id=9))
    assert compatible(a, renumbered)
    assert not same_partitioning(a, renumbered)
    for change in ({"name": "e"}, {"transform": "hour"}, {"source_id": 1}, {"other_source_ids": (1,)}):
        assert not compatible(a, replace(a, fields=(replace(a.fields[0], **change), a.fields[1])))
    assert not compatible(a, replace(a, fields=a.fields[::-1]))
    assert not compatible(a, replace(a, fields=a.fields[:1]))


# Specs of a table


def test_a_new_spec_gets_the_next_id_and_becomes_the_default():
    before = table("day(ts)")
    hours = PartitionSpec(spec_id=77, fields=(part("hour", "ts", 1001, "h"),))

    after = add_spec(before, hours)

    assert after.spec == replace(hours, spec_id=1)
    assert after.specs == (before.spec, after.spec)
    assert after.last_partition_id == 1001
    assert after.expressions == ()
    assert before.default_spec_id == 0


@pytest.mark.parametrize("version", [1, 2])
def test_a_spec_that_the_table_has_is_used_again(version):
    wide = add_spec(
        table("day(ts)", version=version),
        PartitionSpec(fields=(part("day", "ts", 1000, "ts_day"), part("identity", "id", 1001, "id"))),
    )
    renumbered = PartitionSpec(spec_id=5, fields=(part("day", "ts", 1009, "ts_day"),))

    back = add_spec(wide, renumbered)

    assert back.default_spec_id == 0
    assert back.specs == wide.specs
    assert back.last_partition_id == 1001


def test_an_id_that_meant_something_else_is_refused():
    before = replace(table("day(ts)"), last_partition_id=1005)
    for field in (part("hour", "ts", 1000, "h"), part("hour", "ts", 1003, "h")):
        with pytest.raises(InputError, match="which was used before; give it 1006"):
            add_spec(before, PartitionSpec(fields=(field,)))
    assert add_spec(before, PartitionSpec(fields=(part("day", "ts", 1000, "again"),))).spec.spec_id == 1
    assert add_spec(before, PartitionSpec(fields=(part("void", "ts", 1000, "ts_day"),))).spec.spec_id == 1


def test_version_1_keeps_fields_in_their_places():
    before = table("day(ts)", "id", version=1)
    day, key = before.spec.fields
    for fields in ((key, day), (day,), (day, replace(key, transform="bucket[4]", name="b"))):
        with pytest.raises(InputError, match="must keep its position in version 1"):
            add_spec(before, PartitionSpec(fields=fields))
    void = PartitionSpec(fields=(replace(day, transform="void"), key, part("hour", "ts", 1002, "h")))
    assert add_spec(before, void).spec.fields == void.fields


def test_a_spec_with_a_wrong_name_or_source_is_refused():
    with pytest.raises(InputError, match="name is that of a column"):
        add_spec(table(), PartitionSpec(fields=(part("day", "ts", 1000, "id"),)))
    with pytest.raises(InputError, match="lists and maps"):
        add_spec(table(), PartitionSpec(fields=(part("identity", "tags.element", 1000, "t"),)))


# Expressions of V4


def test_every_derived_field_gets_an_expression_after_the_columns():
    before = table("day(ts)", "id", version=4)
    last = SCHEMA.highest_id
    wider = (*before.spec.fields, part("bucket[4]", "id", 1002, "b"), part("void", "name", 1003, "gone"))

    after = add_spec(before, PartitionSpec(fields=wider))

    assert [(e.expr_id, e.source_ids, e.transform, e.partition_field_id) for e in after.expressions] == [
        (last + 1, (2,), "day", 1000),
        (last + 2, (1,), "bucket[4]", 1002),
    ]
    assert after.last_column_id == last + 2
    assert add_spec(after, before.spec).expressions == after.expressions


def test_an_expression_of_the_same_value_is_linked_rather_than_made_again():
    free = Expression(expr_id=30, source_ids=(2,), transform="hour", name="virtual")
    fields = (part("hour", "ts", 1000, "h"), part("bucket[4]", "id", 1001, "b"))

    found = expressions_for(fields, (free,), last_id=20)

    assert found[0] == replace(free, partition_field_id=1000)
    assert (found[1].expr_id, found[1].partition_field_id) == (31, 1001)
    assert expressions_for(fields, found, last_id=31) == found
    assert expressions_for((part("hour", "ts", 1009, "h"),), found, last_id=31) == found


def test_a_field_that_comes_back_uses_its_expression_again():
    first = table("day(ts)", version=4)
    without = PartitionUpdate(metadata=first).remove("ts_day").add("bucket(4, id)").apply()
    again = PartitionUpdate(metadata=without).add("day(ts)").apply()

    assert again.spec.fields[1].field_id == 1000
    assert again.expressions == without.expressions
    assert len(again.expressions) == 2


# Updates as people write them


def test_an_update_is_carried_out_in_one_spec():
    update = PartitionUpdate(metadata=table("day(ts)", "bucket(4, id)"))

    after = update.add("month(ts)").remove("ts_day").rename("id_bucket", "b").add("s.x").apply()

    assert [(f.field_id, f.name, f.transform) for f in after.spec.fields] == [
        (1001, "b", "bucket[4]"),
        (1002, "ts_month", "month"),
        (1003, "s.x", "identity"),
    ]
    assert (after.default_spec_id, after.last_partition_id) == (1, 1003)
    assert update.steps == ()


def test_a_field_can_be_removed_by_name_or_by_value():
    before = PartitionUpdate(metadata=table("day(ts)", "id"))

    assert before.remove("days(ts)").apply().specs == before.remove("ts_day").apply().specs
    assert [f.name for f in before.remove("id").apply().spec.fields] == ["ts_day"]
    with pytest.raises(InputError, match="no partition field 'month'"):
        before.remove("month").apply()
    with pytest.raises(InputError, match="no transform 'nope'"):
        before.remove("nope(ts)")


def test_an_update_without_effect_changes_nothing():
    before = table("day(ts)")

    assert PartitionUpdate(metadata=before).apply() == before
    assert PartitionUpdate(metadata=before).remove("ts_day").add("day(ts)").apply() == before


def test_removing_all_fields_gives_the_unpartitioned_spec_again():
    partitioned = PartitionUpdate(metadata=table()).add("id").apply()

    assert PartitionUpdate(metadata=partitioned).remove("id").apply().spec == UNPARTITIONED
    void = PartitionUpdate(metadata=replace(partitioned, format_version=1)).remove("id").apply().spec
    assert [(f.name, f.transform) for f in void.fields] == [("id", "void")]


# Sort orders


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("id", ("identity", 1, "asc", "nulls-first")),
        ("id asc", ("identity", 1, "asc", "nulls-first")),
        ("ID".lower() + " DESC", ("identity", 1, "desc", "nulls-last")),
        ("ts desc nulls first", ("identity", 2, "desc", "nulls-first")),
        ("ts asc nulls last", ("identity", 2, "asc", "nulls-last")),
        ("ts NULLS LAST", ("identity", 2, "asc", "nulls-last")),
        ("ts desc nulls last", ("identity", 2, "desc", "nulls-last")),
        ("  bucket(16, id)  asc ", ("bucket[16]", 1, "asc", "nulls-first")),
        ("days(ts)\tdesc", ("day", 2, "desc", "nulls-last")),
        ("s.x", ("identity", SCHEMA.field("s.x").id, "asc", "nulls-first")),
    ],
)
def test_a_sort_key_is_read_from_text(text, key):
    field = sort_field(text, SCHEMA)

    assert (field.transform, field.source_id, field.direction, field.null_order) == key


def test_columns_may_be_called_like_the_words_of_a_sort_key():
    schema = parse_ddl("desc bigint, asc bigint")

    assert [(f.source_id, f.direction) for f in sort_order(["desc", "asc desc"], schema).fields] == [
        (1, "asc"),
        (2, "desc"),
    ]


@pytest.mark.parametrize("text", ["", "  ", "nope", "id sideways", "id desc asc", "id nulls", "id nulls last desc"])
def test_a_misspelled_sort_key_is_an_input_error(text):
    with pytest.raises(InputError, match="sort key"):
        sort_order([text], SCHEMA)


def test_an_order_without_texts_is_unsorted_and_bad_keys_are_refused():
    assert sort_order([], SCHEMA) == UNSORTED
    assert not UNSORTED.is_sorted
    with pytest.raises(InputError, match="identity of id is there twice"):
        sort_order(["id", "id desc"], SCHEMA)
    with pytest.raises(InputError, match="'tags' of type list<string> cannot be sorted by"):
        sort_order(["tags"], SCHEMA)


def test_orders_are_numbered_kept_and_used_again():
    first, second = sort_order(["id"], SCHEMA), sort_order(["id desc"], SCHEMA)

    one = add_order(table(), replace(first, order_id=40))
    two = add_order(one, second)
    back = add_order(two, first)
    none = add_order(back, UNSORTED)

    assert one.sort_order == replace(first, order_id=1)
    assert two.sort_order == replace(second, order_id=2)
    assert back.default_sort_order_id == 1
    assert back.sort_orders == two.sort_orders == none.sort_orders == (UNSORTED, one.sort_order, two.sort_order)
    assert none.sort_order == UNSORTED


def test_unsorted_is_order_0_even_in_tables_that_do_not_list_it():
    listless = replace(table(), sort_orders=(), default_sort_order_id=0)

    assert listless.sort_order == UNSORTED
    assert add_order(listless, UNSORTED).sort_orders == (UNSORTED,)
    assert add_order(listless, sort_order(["id"], SCHEMA)).default_sort_order_id == 1
    with pytest.raises(InputError, match="sort order 3 has no keys"):
        add_order(listless, SortOrder(order_id=3))
    with pytest.raises(InputError, match="no column of id 99"):
        add_order(listless, SortOrder(order_id=1, fields=(SortField(source_id=99),)))


def test_orders_differ_in_every_part_of_a_key_but_not_in_their_number():
    order = sort_order(["id"], SCHEMA)

    assert same_order(order, replace(order, order_id=8))
    for change in (
        {"source_id": 2},
        {"transform": "bucket[4]"},
        {"direction": "desc"},
        {"null_order": "nulls-last"},
        {"other_source_ids": (2,)},
    ):
        assert not same_order(order, replace(order, fields=(replace(order.fields[0], **change),)))

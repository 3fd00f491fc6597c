"""What a new spec or order must fulfil before a table gets it."""

from __future__ import annotations

import pytest

from icefloe.errors import InputError
from icefloe.model.partition.sort_order import UNSORTED, SortField, SortOrder
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, STRING, TIMESTAMP, VARIANT, Field, Geometry, List, Struct
from icefloe.transforms import BucketOfColumns, Day, UnknownTransform, Void, transform_of
from icefloe.transforms.compatibility import check_order, check_spec

SCHEMA = Schema(
    fields=(
        Field(1, "id", LONG),
        Field(2, "ts", TIMESTAMP),
        Field(3, "name", STRING),
        Field(4, "shape", Geometry()),
        Field(5, "any", VARIANT),
        Field(6, "tags", List(7, STRING)),
        Field(8, "in", Struct((Field(9, "deep", LONG),))),
    )
)


def part(transform: str, source_id: int, name: str = "p", field_id: int = 1000, **more: object) -> PartitionField:
    return PartitionField(source_id=source_id, field_id=field_id, name=name, transform=transform, **more)


def spec(*fields: PartitionField) -> PartitionSpec:
    return PartitionSpec(fields=fields)


@pytest.mark.parametrize(
    "fields",
    [
        (),
        (part("identity", 1, "id"),),
        (part("bucket[4]", 1), part("identity", 1, "id", 1001)),
        (part("day", 2), part("bucket[4]", 2, "b", 1001)),
        (part("bucket[4]", 1), part("bucket[8]", 1, "b", 1001)),
        (part("truncate[3]", 9),),
        (part("void", 77),),
        (part("void", 1, "id"),),
    ],
)
def test_specs_that_writers_can_use_are_accepted(fields):
    check_spec(spec(*fields), SCHEMA, 2)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ((part("day", 1),), "day does not take column 'id' of type long"),
        ((part("zorder", 1),), "zorder of 'id' is not a transform that can be computed"),
        ((part("identity", 4),), "cannot partition a table"),
        ((part("identity", 5),), "not a primitive"),
        ((part("identity", 7),), "not a primitive outside of lists and maps"),
        ((part("identity", 8),), "not a primitive"),
        ((part("identity", 77),), "no column of id 77"),
        ((part("day", 2), part("hour", 2, "h", 1001)), "redundant beside 'h'"),
        ((part("bucket[4]", 1), part("bucket[4]", 1, "b", 1001)), "the same values as 'b'"),
        ((part("day", 2, "id"),), "name is that of a column"),
        ((part("identity", 1, "name"),), "name is that of a column"),
        ((part("day", 2, ""),), "its name is empty"),
        ((part("day", 2), part("identity", 3, "p", 1001)), "another partition field of this name"),
        ((part("day", 2), part("identity", 3, "q")), "two partition fields have id 1000"),
        ((part("bucket[4]", 1, other_source_ids=(3,)),), "need format version 3"),
    ],
)
def test_specs_that_writers_cannot_use_are_refused_with_the_rule(fields, reason):
    with pytest.raises(InputError, match=reason):
        check_spec(spec(*fields), SCHEMA, 2)


def test_only_buckets_of_several_columns_can_be_computed():
    check_spec(spec(part("bucket[4]", 1, other_source_ids=(3,))), SCHEMA, 3)
    with pytest.raises(InputError, match="of 'id', 'name' is not a transform that can be computed"):
        check_spec(spec(part("truncate[4]", 1, other_source_ids=(3,))), SCHEMA, 3)


def test_redundant_fields_that_the_table_had_may_stay_but_not_grow():
    old = spec(part("day", 2), part("hour", 2, "h", 1001))

    check_spec(spec(*old.fields, part("identity", 1, "id", 1002)), SCHEMA, 2, former=old)
    with pytest.raises(InputError, match="partition field 'm': it is redundant"):
        check_spec(spec(*old.fields, part("month", 2, "m", 1002)), SCHEMA, 2, former=old)


def test_orders_are_checked_like_specs():
    check_order(UNSORTED, SCHEMA, 2)
    check_order(SortOrder(order_id=1, fields=(SortField(source_id=2, transform="day"),)), SCHEMA, 2)
    for field, reason in (
        (SortField(source_id=1, transform="day"), "day does not take column 'id'"),
        (SortField(source_id=1, transform="zorder"), "not a transform that can be computed"),
        (SortField(source_id=4), "cannot be sorted by"),
        (SortField(source_id=5), "cannot be sorted by"),
        (SortField(source_id=7), "cannot be sorted by"),
        (SortField(source_id=77), "no column of id 77"),
        (SortField(source_id=1, other_source_ids=(2,)), "need format version 3"),
    ):
        with pytest.raises(InputError, match=reason):
            check_order(SortOrder(order_id=1, fields=(field,)), SCHEMA, 2)


def test_the_transform_of_a_field_with_several_columns_is_unknown_except_buckets_of_partitions():
    assert transform_of(part("bucket[4]", 1, other_source_ids=(3,))) == BucketOfColumns(4)
    assert transform_of(SortField(source_id=1, transform="bucket[4]", other_source_ids=(2,))) == UnknownTransform(
        "bucket[4]"
    )
    assert transform_of(part("day", 2)) == Day()
    assert transform_of(part("day", 2, other_source_ids=(3,))) == UnknownTransform("day")
    assert transform_of(SortField(source_id=1, transform="void", other_source_ids=(2,))) == Void()

from __future__ import annotations

import datetime
import decimal
import math
import pickle
from decimal import Decimal as Dec
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icefloe.errors import FormatError
from icefloe.formats.column_stats import truncate_bytes_down, truncate_bytes_up, truncate_text_down, truncate_text_up
from icefloe.formats.parquet.stats import group_stats
from icefloe.formats.write.entries import WrittenFile, entries_of
from icefloe.formats.write.measure import Measures
from icefloe.model.partition.spec import UNPARTITIONED, PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Decimal,
    Field,
    Struct,
)


def ids(id_: int) -> dict[str, str]:
    return {"PARQUET:field_id": str(id_)}


def footer_of(table: pa.Table, **options: Any) -> Any:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return pq.read_metadata(pa.BufferReader(sink.getvalue()))


def column(values: list[Any], type_: pa.DataType, id_: int = 1) -> pa.Table:
    return pa.table([pa.array(values, type_)], schema=pa.schema([pa.field("x", type_, metadata=ids(id_))]))


def entry(footer: Any, schema: Schema, **options: Any) -> Any:
    file = WrittenFile(location="file:///f.parquet", size=7, footer=footer, **options)
    [found] = entries_of([file], schema=schema, spec=UNPARTITIONED).to_pylist()
    return found


def one(type_: Any) -> Schema:
    return Schema(fields=(Field(1, "x", type_),))


DEC = decimal.Decimal


@pytest.mark.parametrize(
    ("values", "stored", "type_", "options", "lower", "upper"),
    [
        ([DEC("1.50"), DEC("-2.25")], pa.decimal128(9, 2), Decimal(9, 2), {}, DEC("-2.25"), DEC("1.50")),
        (
            [DEC("1.50"), DEC("-2.25")],
            pa.decimal128(9, 2),
            Decimal(12, 2),
            {"store_decimal_as_integer": True},
            DEC("-2.25"),
            DEC("1.50"),
        ),
        ([1, -5], pa.int32(), LONG, {}, -5, 1),
        ([1.5, -5.0], pa.float32(), DOUBLE, {}, -5.0, 1.5),
        ([3, -1], pa.date32(), DATE, {}, datetime.date(1969, 12, 31), datetime.date(1970, 1, 4)),
        (
            [-1, 1],
            pa.timestamp("ms"),
            TIMESTAMP,
            {},
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999000),
            datetime.datetime(1970, 1, 1, 0, 0, 0, 1000),
        ),
        ([1, 2], pa.time32("ms"), TIME, {}, datetime.time(0, 0, 0, 1000), datetime.time(0, 0, 0, 2000)),
        ([1, 2], pa.timestamp("ns", "UTC"), TIMESTAMPTZ, {}, None, None),  # not a type of the format: unknown
        ([1, 2], pa.timestamp("us"), TIMESTAMPTZ, {}, None, None),
    ],
)
def test_bounds_come_out_in_the_tables_type(
    values: list[Any], stored: pa.DataType, type_: Any, options: Any, lower: Any, upper: Any
) -> None:
    found = entry(footer_of(column(values, stored), **options), one(type_))
    assert (found["lower_bound:1"], found["upper_bound:1"]) == (lower, upper)
    assert (found["value_count:1"], found["null_value_count:1"]) == (2, 0)


def test_row_groups_are_joined_and_all_null_ones_do_not_hide_bounds() -> None:
    footer = footer_of(column([None, None, 3, 9, None, -4], pa.int64()), row_group_size=2)
    found = entry(footer, one(LONG))
    assert (found["lower_bound:1"], found["upper_bound:1"]) == (-4, 9)
    assert (found["record_count"], found["value_count:1"], found["null_value_count:1"]) == (6, 6, 3)
    assert len(found["split_offsets"]) == 3
    groups = group_stats(footer, one(LONG))
    assert groups["record_count"].to_pylist() == [2, 2, 2]
    assert groups["lower_bound:1"].to_pylist() == [None, 3, -4]
    assert groups["null_value_count:1"].to_pylist() == [2, 0, 1]


def test_one_row_group_without_statistics_makes_bounds_and_null_count_unknown() -> None:
    footer = footer_of(column([1, 2], pa.int64()), write_statistics=False)
    found = entry(footer, one(LONG))
    assert (found["value_count:1"], found["null_value_count:1"]) == (2, None)
    assert (found["lower_bound:1"], found["upper_bound:1"]) == (None, None)


def test_group_bounds_are_not_cut() -> None:
    footer = footer_of(column(["a" * 40], pa.string()))
    assert group_stats(footer, one(STRING))["upper_bound:1"].to_pylist() == ["a" * 40]
    assert entry(footer, one(STRING))["upper_bound:1"] == "a" * 15 + "b"


def by_another_writer(footer: Any) -> Any:
    """The same footer as another program would write it."""
    names = ("num_rows", "num_columns", "num_row_groups", "row_group", "schema")
    same = {name: getattr(footer, name) for name in names}
    return SimpleNamespace(created_by="parquet-rs version 55.0.0", **same)


@pytest.mark.parametrize(
    ("values", "type_", "table_type", "own", "foreign"),
    [
        ([3, 9], pa.int64(), LONG, True, True),
        (["a", "b"], pa.string(), STRING, True, None),
        (["a", "b" * 17], pa.string(), STRING, False, False),
        ([1.5, 2.5], pa.float64(), DOUBLE, True, True),
        ([0.0, 2.5], pa.float64(), DOUBLE, None, None),
        ([Dec("1.50"), Dec("2.50")], pa.decimal128(30, 2), Decimal(30, 2), True, True),
    ],
)
def test_bounds_of_texts_are_known_to_be_tight_only_if_their_writer_does_not_cut_them(
    values: list[Any], type_: pa.DataType, table_type: Any, own: bool | None, foreign: bool | None
) -> None:
    footer = footer_of(column(values, type_))
    assert entry(footer, one(table_type)).get("tight_bounds:1") == own
    assert entry(by_another_writer(footer), one(table_type)).get("tight_bounds:1") == foreign


def test_split_offsets_ascend_whatever_the_order_of_row_groups_in_the_footer() -> None:
    footer = footer_of(column([1, 2, 3], pa.int64()), row_group_size=1)
    turned = by_another_writer(footer)
    turned.row_group = lambda i: footer.row_group(footer.num_row_groups - 1 - i)
    expected = entry(footer, one(LONG))["split_offsets"]
    assert entry(turned, one(LONG))["split_offsets"] == expected == sorted(expected)


def fake_footer(*groups: tuple[float | None, float | None, int]) -> Any:
    """A footer of a writer that puts anything into bounds, NaN too, or leaves them out."""

    def group(low: float | None, high: float | None, nulls: int) -> Any:
        stats = SimpleNamespace(
            has_min_max=low is not None, min_raw=low, max_raw=high, has_null_count=True, null_count=nulls
        )
        at = {"has_dictionary_page": False, "data_page_offset": 4, "total_compressed_size": 50}
        chunk = SimpleNamespace(num_values=10, statistics=stats, **at)
        return SimpleNamespace(num_rows=10, column=lambda _: chunk)

    schema = pa.schema([pa.field("x", pa.float64(), metadata=ids(1))])
    return SimpleNamespace(
        created_by="another writer",
        num_rows=10 * len(groups),
        num_columns=1,
        num_row_groups=len(groups),
        row_group=lambda i: group(*groups[i]),
        schema=SimpleNamespace(to_arrow_schema=lambda: schema),
    )


@pytest.mark.parametrize("bad", [(math.nan, 1.0, 0), (1.0, math.nan, 0), (math.nan, math.nan, 0)])
def test_a_nan_bound_in_any_row_group_makes_the_bounds_unknown(bad: tuple[float, float, int]) -> None:
    for groups in ([bad], [(0.0, 5.0, 0), bad], [bad, (0.0, 5.0, 0)]):
        found = entry(fake_footer(*groups), one(DOUBLE))
        assert (found["lower_bound:1"], found["upper_bound:1"], found["nan_value_count:1"]) == (None, None, None)


def test_a_row_group_with_values_and_without_bounds_makes_the_bounds_unknown() -> None:
    groups = [(0.0, 5.0, 0), (None, None, 3), (1.0, 2.0, 0)]
    unknown = entry(fake_footer(*groups), one(DOUBLE))
    assert (unknown["lower_bound:1"], unknown["upper_bound:1"], unknown["null_value_count:1"]) == (None, None, 3)
    by_writer = {1: Measures(values=30, nulls=4, nans=7, lower=pa.scalar(-1.0), upper=pa.scalar(9.0))}
    told = entry(fake_footer(*groups), one(DOUBLE), nan_counts={1: 7}, measures=by_writer)
    assert (told["lower_bound:1"], told["upper_bound:1"], told["null_value_count:1"]) == (-1.0, 9.0, 4)
    empty = entry(fake_footer((0.0, 5.0, 0), (None, None, 10)), one(DOUBLE))
    assert (empty["lower_bound:1"], empty["upper_bound:1"]) == (0.0, 5.0)


def test_zeros_get_the_sign_that_makes_them_bounds() -> None:
    found = entry(fake_footer((0.0, -0.0, 1)), one(DOUBLE), nan_counts={1: 4})
    assert (math.copysign(1, found["lower_bound:1"]), math.copysign(1, found["upper_bound:1"])) == (-1, 1)
    assert (found["null_value_count:1"], found["nan_value_count:1"]) == (1, 4)


def test_columns_inside_structs_are_measured_and_those_inside_lists_are_not() -> None:
    stored = pa.schema(
        [
            pa.field("l", pa.list_(pa.field("element", pa.int32(), metadata=ids(2))), metadata=ids(1)),
            pa.field("m", pa.map_(pa.string(), pa.int32()), metadata=ids(3)),
            pa.field("s", pa.struct([pa.field("x", pa.int32(), metadata=ids(5))]), metadata=ids(4)),
            pa.field("y", pa.int32(), metadata=ids(6)),
        ]
    )
    rows = [{"l": [7, 8], "m": [("k", 9)], "s": {"x": 1}, "y": 3}, {"l": [], "m": [], "s": None, "y": 4}]
    schema = Schema(fields=(Field(4, "s", Struct((Field(5, "x", INT),))), Field(6, "y", INT), Field(9, "new", INT)))
    found = entry(footer_of(pa.Table.from_pylist(rows, schema=stored)), schema)
    assert (found["lower_bound:5"], found["value_count:5"], found["null_value_count:5"]) == (1, 2, 1)
    assert (found["lower_bound:6"], found["upper_bound:6"]) == (3, 4)
    assert (found["value_count:9"], found["lower_bound:9"]) == (None, None)  # not in the file: nothing is known


def test_a_footer_without_field_ids_is_refused() -> None:
    with pytest.raises(FormatError, match=r"file:///f.parquet.*field id"):
        entry(footer_of(pa.table({"x": [1]})), one(LONG))


def test_many_files_with_partition_values_and_no_files_at_all() -> None:
    day = PartitionField(source_id=1, field_id=1000, name="x_day", transform="day")
    spec = PartitionSpec(spec_id=5, fields=(day,))
    footer = footer_of(column([0, 1], pa.timestamp("us")))
    files = [
        WrittenFile(location=f"file:///{n}", size=n, footer=footer, partition=(value,))
        for n, value in enumerate([datetime.date(2020, 1, 1), 3, None])
    ]
    table = entries_of(files, schema=one(TIMESTAMP), spec=spec)
    assert table["lower_bound:p1000"].to_pylist() == [datetime.date(2020, 1, 1), datetime.date(1970, 1, 4), None]
    assert table["null_value_count:p1000"].to_pylist() == [0, 0, 2]
    assert table["partition_spec_id"].to_pylist() == [5, 5, 5]
    assert entries_of([], schema=one(TIMESTAMP), spec=spec).num_rows == 0


def test_written_files_can_be_sent_to_another_process() -> None:
    file = WrittenFile(location="file:///f", size=1, footer=footer_of(column([1], pa.int64())), nan_counts={})
    back = pickle.loads(pickle.dumps(file))
    assert entry(back.footer, one(LONG)) == entry(file.footer, one(LONG))


texts = st.text(st.sampled_from("a\x7f\u07ff\ud7ff\ue000\uffff\U0010ffff"), min_size=14, max_size=20)


@given(texts)
@example("\U0010ffff" * 17)
def test_cut_text_is_a_bound_of_the_whole_text(text: str) -> None:
    raw = text.encode()
    lower, upper = truncate_text_down(raw), truncate_text_up(raw)
    assert lower == text[:16]
    if upper is None:
        assert text[:16] == "\U0010ffff" * 16
    else:
        assert len(upper) <= 16
        assert upper.encode() >= raw
        assert upper == text or upper > text[:16]


@given(st.binary(min_size=14, max_size=20) | st.integers(14, 20).map(lambda n: b"\xff" * n))
def test_cut_bytes_are_a_bound_of_the_whole(raw: bytes) -> None:
    lower, upper = truncate_bytes_down(raw), truncate_bytes_up(raw)
    assert lower == raw[:16]
    assert (upper is None) == (len(raw) > 16 and raw[:16] == b"\xff" * 16)
    assert upper is None or (upper >= raw and len(upper) <= 16)


def test_text_that_a_writer_cut_inside_a_character_is_no_bound() -> None:
    assert truncate_text_up("ü".encode()[:1]) is None
    assert truncate_text_down("ü".encode()[:1]) is None


@given(st.text(st.sampled_from("a\ud7ff\U0010ffff"), max_size=6), st.integers(1, 5))
def test_bounds_may_be_cut_to_any_length(text: str, length: int) -> None:
    raw = text.encode()
    lower, upper = truncate_text_down(raw, length), truncate_text_up(raw, length)
    assert lower == text[:length]
    assert upper is None or (upper >= text and len(upper) <= length)
    assert (upper is None) == (len(text) > length and set(text[:length]) == {"\U0010ffff"})
    cut, raised = truncate_bytes_down(raw, length), truncate_bytes_up(raw, length)
    assert cut == raw[:length]
    assert raised is None or (raised >= raw and len(raised) <= length)


def test_the_shortest_upper_bound_skips_characters_that_no_text_has() -> None:
    assert truncate_text_up("\ud7ffzz".encode(), 1) == "\ue000"
    assert truncate_text_up("a\U0010ffffz".encode(), 2) == "b"

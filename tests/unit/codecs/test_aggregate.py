from __future__ import annotations

import datetime as dt
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.manifest.manifest_summary import manifest_row
from icefloe.codecs.manifest.manifests import decode_root, encode_root
from icefloe.errors import InputError
from icefloe.model.entries import ContentType, Status
from support.manifests.random_entries import Row, data_dv, every_type
from support.manifests.sample import IDS, TYPES, VALUES, column_stats, context, data_file, mixed_partition, table

PRICE = IDS["price"]


def row_of(
    rows: list[Row],
    *,
    content: ContentType = ContentType.DATA_MANIFEST,
    version: int = 4,
    first_row_id: int | None = 100,
) -> Row:
    made = manifest_row(
        table(rows),
        context(version),
        location="file:///m.parquet",
        size=99,
        content=content,
        status=Status.ADDED,
        snapshot_id=7,
        sequence_number=9,
        first_row_id=first_row_id,
    )
    (row,) = made.to_pylist()
    found: Row = row
    return found


def test_counts_are_by_status_and_rows_of_every_status_are_recorded() -> None:
    row = row_of([data_file(n, status=status, record_count=10**n) for n, status in enumerate((0, 1, 2, 1))])
    assert (row["existing_files_count"], row["added_files_count"], row["deleted_files_count"]) == (1, 2, 1)
    assert (row["existing_rows_count"], row["added_rows_count"], row["deleted_rows_count"]) == (1, 1010, 100)
    assert row["record_count"] == 4


def test_the_row_tells_where_and_when() -> None:
    row = row_of([data_file()])
    assert (row["content_type"], row["location"], row["file_size_in_bytes"]) == (3, "file:///m.parquet", 99)
    assert (row["snapshot_id"], row["sequence_number"], row["file_sequence_number"]) == (7, 9, 9)
    assert (row["file_format"], row["format_version"], row["first_row_id"]) == ("parquet", 4, 100)
    assert row_of([data_file()], version=2)["file_format"] == "avro"


def test_a_delete_manifest_has_no_row_ids() -> None:
    row = row_of([data_dv()], content=ContentType.DELETE_MANIFEST)
    assert (row["content_type"], row["first_row_id"]) == (4, None)


@pytest.mark.parametrize(("numbers", "least"), [((5, 3), 3), ((None, None), 9), ((None, 3), 3), ((None, 12), 9)])
def test_the_least_sequence_number_counts_inherited_ones(numbers: tuple[int | None, ...], least: int) -> None:
    rows = [data_file(n, sequence_number=number) for n, number in enumerate(numbers)]
    assert row_of(rows)["min_sequence_number"] == least


def test_deleted_rows_do_not_count_for_statistics_or_least_number() -> None:
    rows = [
        data_file(0, sequence_number=5, **column_stats("id", 5, 6)),
        data_file(1, status=2, sequence_number=1, **column_stats("id", -100, 100)),
    ]
    row = row_of(rows)
    assert (row["lower_bound:3"], row["upper_bound:3"], row["value_count:3"]) == (5, 6, 10)
    assert row["min_sequence_number"] == 5


def test_a_manifest_with_no_live_row_has_no_bounds() -> None:
    row = row_of([data_file(status=2, **column_stats("id", 1, 2))])
    assert (row["lower_bound:3"], row["value_count:3"], row["min_sequence_number"]) == (None, 0, 9)


def test_bounds_of_every_type_are_aggregated() -> None:
    row = row_of([every_type(), every_type()])
    for name, _ in TYPES:
        assert row[f"lower_bound:{IDS[name]}"] == row[f"upper_bound:p{1100 + IDS[name]}"] == VALUES[name]


def test_an_unknown_bound_of_one_file_makes_the_aggregate_unknown() -> None:
    rows = [data_file(0, **column_stats("id", 1, 2)), data_file(1)]
    row = row_of(rows)
    assert (row["lower_bound:3"], row["upper_bound:3"], row["value_count:3"]) == (None, None, None)


def test_a_column_of_nulls_does_not_make_bounds_unknown() -> None:
    rows = [data_file(0, **column_stats("id", 1, 2)), data_file(1, **column_stats("id", None, None, nulls=10))]
    row = row_of(rows)
    assert (row["lower_bound:3"], row["upper_bound:3"], row["null_value_count:3"]) == (1, 2, 10)


def test_counts_of_nulls_are_unknown_if_a_number_of_rows_is() -> None:
    """Four nulls in a manifest whose files have three rows, as far as that is known, do not mean that all are null."""
    unknown = data_file(1, record_count=None, **column_stats("id", 1, 5, count=9, nulls=4))
    known = data_file(2, record_count=3, **column_stats("id", 6, 8, count=3))
    row = row_of([unknown, known])
    assert (row["added_rows_count"], row[f"null_value_count:{IDS['id']}"]) == (3, None)
    assert (row[f"lower_bound:{IDS['id']}"], row[f"upper_bound:{IDS['id']}"]) == (1, 8)


def test_counts_that_contradict_each_other_make_the_aggregate_unknown() -> None:
    """Twelve nulls of ten values and eight of ten add up to a manifest of nulls, which filters skip."""
    known = data_file(0, **column_stats("id", 1, 2, count=10, nulls=8))
    for values, nulls in ((10, 12), (-1, -1), (20, 12)):
        row = row_of([known, data_file(1, **column_stats("id", None, None, count=values, nulls=nulls))])
        measures = ("lower_bound", "upper_bound", "value_count", "null_value_count")
        assert [row[f"{measure}:{IDS['id']}"] for measure in measures] == [None] * 4


def test_zeros_keep_their_signs() -> None:
    rows = [data_file(n, **column_stats("price", *b)) for n, b in enumerate([(0.0, 0.0), (-0.0, -0.0)])]
    for order in (rows, rows[::-1]):
        row = row_of(order)
        assert math.copysign(1, row[f"lower_bound:{PRICE}"]) == -1  # type: ignore[arg-type]
        assert math.copysign(1, row[f"upper_bound:{PRICE}"]) == 1  # type: ignore[arg-type]


def test_nan_partitions_are_counted_and_do_not_bound() -> None:
    rows = [data_file(0, **mixed_partition(price=math.nan)), data_file(1, **mixed_partition(price=2.0))]
    row = row_of(rows)
    assert (row["lower_bound:p1003"], row["upper_bound:p1003"], row["nan_value_count:p1003"]) == (2.0, 2.0, 10)


def test_bounds_of_a_manifest_are_never_called_tight() -> None:
    row = row_of([data_file(**column_stats("id", 1, 2)) | {"tight_bounds:3": True}])
    assert "tight_bounds:3" not in row


def test_files_of_two_specs_are_no_manifest() -> None:
    with pytest.raises(InputError, match="one partition spec"):
        row_of([data_file(0), data_file(1, **mixed_partition())])


def test_the_row_can_be_stored_in_a_root() -> None:
    made = manifest_row(
        table([data_file(0, **mixed_partition()), data_file(1, **mixed_partition("b", dt.date(2027, 1, 1), 7, None))]),
        context(),
        location="file:///m.parquet",
        size=99,
        content=ContentType.DATA_MANIFEST,
        status=Status.EXISTING,
        snapshot_id=7,
        sequence_number=9,
        first_row_id=0,
    )
    data = encode_root(made, context(), snapshot_id=7, parent_id=None, sequence_number=9)
    after = decode_root(data, context(), where="here")
    for name in made.column_names:
        if name != "ordinal":
            known = after[name].to_pylist() if name in after.column_names else [None]
            assert known == made[name].to_pylist(), name


@st.composite
def files(draw: st.DrawFn) -> list[tuple[list[float | None], Row]]:
    """Files as the values of one column, and entries with honest statistics that may say less than is known."""
    values = st.lists(st.one_of(st.none(), st.floats(), st.sampled_from([0.0, -0.0])), max_size=4)
    found = []
    for number, column in enumerate(draw(st.lists(values, min_size=1, max_size=4))):
        plain = [v for v in column if v is not None and not math.isnan(v)]
        nan = sum(v is not None and math.isnan(v) for v in column)
        low, high = (min(plain), max(plain)) if len(plain) > 0 and draw(st.booleans()) else (None, None)
        if low == 0 and any(v == 0 and math.copysign(1, v) < 0 for v in plain):
            low = -0.0
        if high == 0 and any(v == 0 and math.copysign(1, v) > 0 for v in plain):
            high = 0.0
        stats = column_stats("price", low, high, count=len(column), nulls=column.count(None))
        stats[f"nan_value_count:{PRICE}"] = nan if draw(st.booleans()) else None
        found.append((column, data_file(number, record_count=len(column), **stats)))
    return found


def total(value: float) -> tuple[float, float]:
    return value, math.copysign(1, value)


@given(files())
def test_an_aggregate_is_missing_or_right(made: list[tuple[list[float | None], Row]]) -> None:
    row = row_of([entry for _, entry in made])
    every = [value for column, _ in made for value in column]
    plain = [v for v in every if v is not None and not math.isnan(v)]
    low, high = row[f"lower_bound:{PRICE}"], row[f"upper_bound:{PRICE}"]
    assert row[f"value_count:{PRICE}"] == len(every)
    assert row[f"null_value_count:{PRICE}"] == every.count(None)
    told = [entry[f"lower_bound:{PRICE}"] is not None for _, entry in made]
    holding = [any(v is not None and not math.isnan(v) for v in column) for column, _ in made]
    if low is not None:
        assert total(low) == min(map(total, plain))  # type: ignore[arg-type]
        assert total(high) == max(map(total, plain))  # type: ignore[arg-type]
    elif all(t or not h for t, h in zip(told, holding, strict=True)) and all(told):
        raise AssertionError("every file told its bounds")


def test_entries_in_many_chunks_are_aggregated() -> None:
    pieces = pa.concat_tables([table([data_file(n, **column_stats("id", n, n))]) for n in range(3)])
    made = manifest_row(
        pieces,
        context(),
        location="x",
        size=1,
        content=ContentType.DATA_MANIFEST,
        status=Status.ADDED,
        snapshot_id=1,
        sequence_number=1,
    )
    assert (made["lower_bound:3"].to_pylist(), made["upper_bound:3"].to_pylist()) == ([0], [2])

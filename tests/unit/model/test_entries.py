"""Entries as Arrow columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.model.entries import (
    ENTRY,
    ContentType,
    Measure,
    StatColumn,
    Status,
    column_key,
    concat,
    empty,
    entries,
    known_measures,
    live,
    of_type,
    parse_stat,
    partition_key,
    put,
    stat,
    stat_keys,
    with_stats,
)

LOWER = stat(Measure.LOWER, column_key(5))
NULLS = stat(Measure.NULLS, partition_key(1000))
ROWS = entries(
    [
        {"location": "a", "status": Status.ADDED, "content_type": ContentType.DATA, LOWER: "x", NULLS: 0},
        {"location": "b", "status": Status.DELETED, "content_type": ContentType.DATA_MANIFEST, LOWER: None},
        {"location": "c", "status": Status.EXISTING, "content_type": ContentType.MANIFEST_DV},
    ],
    {column_key(5): pa.string()},
)


def test_rows_have_the_fixed_columns_and_typed_statistics():
    assert ROWS.column_names == [*ENTRY.names, "lower_bound:5", "null_value_count:p1000"]
    assert ROWS[LOWER].type == pa.string()
    assert ROWS[NULLS].to_pylist() == [0, None, None]
    assert ROWS["record_count"].null_count == 3
    assert stat_keys(ROWS) == [column_key(5), partition_key(1000)]


def test_a_bound_needs_its_type():
    with pytest.raises(KeyError):
        entries([{LOWER: "x"}])


def test_deleted_rows_are_not_live():
    assert live(ROWS).to_pylist() == [True, False, True]


def test_rows_are_told_apart_by_content_type():
    chosen = of_type(ROWS, ContentType.DATA, ContentType.MANIFEST_DV)

    assert chosen.to_pylist() == [True, False, True]


def test_statistics_that_one_table_lacks_are_null_in_its_rows():
    other = entries([{"location": "d", stat(Measure.VALUES, column_key(7)): 3}])

    joined = concat([ROWS, other])

    assert joined["location"].to_pylist() == ["a", "b", "c", "d"]
    assert joined[LOWER].to_pylist() == ["x", None, None, None]
    assert joined["value_count:7"].to_pylist() == [None, None, None, 3]
    assert concat([]).schema == empty().schema == ENTRY


def test_a_column_is_replaced_by_one_value_or_by_many_in_its_own_type():
    assert put(ROWS, "sequence_number", 4)["sequence_number"].to_pylist() == [4, 4, 4]
    assert put(ROWS, "location", None)["location"].null_count == 3
    assert put(ROWS, "status", pa.array([0, 1, 2], pa.int32()))["status"].to_pylist() == [0, 1, 2]
    assert put(ROWS, "sequence_number", 4).schema == ROWS.schema


def test_a_column_that_is_not_there_cannot_be_replaced():
    with pytest.raises(KeyError):
        put(ROWS, "lower_bound:99", 1)


def test_the_name_of_a_statistics_column_is_parsed_to_its_measure_and_key():
    for measure in Measure:
        for key in (column_key(5), partition_key(1000)):
            assert parse_stat(stat(measure, key)) == StatColumn(measure, key)
    assert column_key(1000) != partition_key(1000)
    assert [parse_stat(name) for name in (*ENTRY.names, "manifest", "other:5")] == [None] * (len(ENTRY) + 2)


def test_statistics_are_chosen_without_the_other_columns():
    assert with_stats(ROWS, lambda column: column.key.is_partition).column_names == [*ENTRY.names, NULLS]
    assert with_stats(ROWS, lambda column: True) is ROWS
    assert known_measures(ROWS, column_key(5)) == {Measure.LOWER: ROWS[LOWER]}

"""Updates on Spark: the tests of updates on Arrow, and what only Spark can do."""

from __future__ import annotations

import pytest

from e2e.test_update import (  # noqa: F401  # tests that run here with the fixture below
    test_a_branch_is_updated_alone,
    test_a_parsed_value_will_do,
    test_a_row_moves_to_the_partition_of_its_new_value,
    test_an_update_does_not_miss_rows_that_came_meanwhile,
    test_an_update_of_an_update_and_of_deleted_rows,
    test_an_updated_row_keeps_its_id_and_the_others_their_number,
    test_figures_tell_updated_rows_from_copied_ones,
    test_isolation_of_updates_is_what_the_table_says,
    test_rows_for_which_the_condition_is_null_stay_as_they_are,
    test_two_updates_of_one_row_do_not_both_land,
    test_values_are_computed_from_the_old_row,
    test_values_that_could_fail_are_computed_for_matching_rows_alone,
    test_without_matches_there_is_no_snapshot,
)
from icefloe.engines.spark.change import rewrite
from icefloe.errors import InputError
from support.on_spark import TableOnSpark
from support.people import COPY, EACH_MODE, MERGE, check, new_table, people, rows_of, stored
from support.selection import thorough

pytestmark = pytest.mark.spark
MODES = [(2, COPY), (4, MERGE), thorough((1, COPY)), thorough((2, MERGE)), thorough((3, COPY)), thorough((3, MERGE))]


@pytest.fixture(params=EACH_MODE)
def table(request, spark, tmp_path) -> TableOnSpark:
    version, mode = request.param
    return TableOnSpark(new_table(tmp_path, version, mode, partition_by=("city",)), spark)


@pytest.mark.parametrize(("version", "mode"), MODES)
def test_conditions_and_values_are_any_spark_sql(spark, tmp_path, version, mode):
    table = new_table(tmp_path, version, mode, schema="id bigint not null, city string, amount int, x double")
    table.append(people(*range(6)))
    table.append(people(*range(6, 9), city="Rome"))
    changes = {"city": "reverse(city)", "amount": "bit_count(id) + (SELECT count(*) FROM range(3))", "x": "0.5"}
    result = table.update(changes, where="pmod(id, 3) = 0 AND soundex(city) = 'O240'", spark=spark)
    assert (result.rows_added, result.rows_deleted, result.rows_copied) == (2, 2, 4 if mode == COPY else 0)
    expected = [
        (i, "olsO" if i in (0, 3) else "Oslo", {0: 3, 3: 5}.get(i, 1), 0.5 if i % 3 == 0 else None) for i in range(6)
    ]
    assert rows_of(table) == [*expected, *((i, "Rome", 1, None) for i in range(6, 9))]
    assert table.update({"amount": "amount + 1"}, spark=spark).rows_added == 9
    assert sum(row[2] for row in rows_of(table)) == 3 + 5 + 7 + 9
    check(table)


def test_rows_that_are_not_kept_are_read_twice(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(rewrite, "KEPT_BYTES_MAX", 0)
    table = new_table(tmp_path, 4)
    table.append(people(1, 2, 3))
    table.update({"amount": "amount + id"}, where="id > 1", spark=spark)
    assert rows_of(table) == [(1, "Oslo", 1), (2, "Oslo", 3), (3, "Oslo", 4)]


def test_fields_inside_structs_are_set_one_by_one(spark, tmp_path):
    table = new_table(tmp_path, 4, schema="id bigint, at struct<city: string, of: struct<zip: int, n: int>>")
    table.append(
        spark.sql("SELECT id, if(id = 1, null, struct('c' AS city, struct(5 AS zip, 6 AS n) AS of)) at FROM range(3)")
    )
    table.update({"at.of.zip": "id + 1", "at.city": "upper(at.city)"}, where="id < 2", spark=spark)
    assert [row["at"] for row in table.scan().to_arrow().sort_by("id").to_pylist()] == [
        {"city": "C", "of": {"zip": 1, "n": 6}},
        {"city": None, "of": {"zip": 2, "n": None}},
        {"city": "c", "of": {"zip": 5, "n": 6}},
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "update: say what to set"),
        ({"colour": "1"}, "update: the table has no column colour; it has: amount, city, id"),
        ({"amount": "colour + 1"}, "Spark cannot evaluate 'colour . 1': .*`colour`"),
        ({"amount": "reverse(city)"}, "column 'amount' is int, the DataFrame has string"),
        ({"amount": "3000000000"}, "'amount' is int; the bigint value 3000000000 does not fit"),
        ({"id": "null"}, "column 'id' is required and has a null"),
        ({"amount": 5}, "a value is SQL text, not int"),
    ],
)
def test_wrong_changes_are_named_and_leave_nothing_behind(spark, tmp_path, changes, message):
    table = new_table(tmp_path, 4)
    table.append(people(1, 2))
    before = stored(tmp_path)
    with pytest.raises(InputError, match=message):
        table.update(changes, where="id = 1", spark=spark)
    assert stored(tmp_path) == before
    assert rows_of(table) == [(1, "Oslo", 1), (2, "Oslo", 1)]

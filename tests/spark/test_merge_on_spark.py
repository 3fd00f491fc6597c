"""Merges of DataFrames: the tests of merges on Arrow, and what only Spark can do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from e2e.test_merge import (  # noqa: F401  # tests that run here with the fixture below
    notes,
    source,
    test_a_column_that_the_source_lacks_keeps_its_value_or_gets_its_default,
    test_a_merge_in_a_transaction_sees_what_came_before_it_and_keeps_final_ids,
    test_a_merge_into_a_branch_leaves_main_alone,
    test_a_merge_into_an_empty_table_inserts,
    test_a_merge_sets_fields_inside_structs_and_refuses_what_it_cannot_set,
    test_a_merge_that_changes_nothing_makes_no_snapshot,
    test_a_row_of_the_table_that_two_source_rows_match_is_refused,
    test_an_updated_row_is_new_to_those_who_ask_what_changed,
    test_many_keys_prune_by_their_range,
    test_nested_columns_take_part_in_conditions_and_stay_whole,
    test_null_keys_match_nothing_and_are_inserted,
    test_rows_that_only_the_table_has_can_be_updated_and_deleted,
    test_the_result_says_what_happened_and_which_files_were_not_read,
    test_values_are_checked_against_the_column_that_takes_them,
    version,
)
from icefloe.errors import InputError
from icefloe.table.table import Table
from support.on_spark import TableOnSpark
from support.people import COPY, MERGE, check, new_table, people, rows_of, stored
from support.selection import thorough
from support.tables import new_catalog

pytestmark = pytest.mark.spark
SOURCE = [(1, 5, "D"), (2, 0, None), (12, 9, "X"), (None, 7, "a"), (40, 2, "a"), (41, 3, None)]
CASES: list[tuple[Any, list[tuple[str, Any, str | None]]]] = [
    (
        "t.id = s.id",
        [
            ("when_matched_delete", None, "s.op = 'D'"),
            ("when_matched_update", {"n": "t.n + s.n", "note": "upper(t.note) || '!'"}, None),
            ("when_not_matched_insert_all", None, "s.op = 'a'"),
            ("when_not_matched_insert", {"id": "s.id * 2", "note": "'new'"}, None),
            ("when_not_matched_by_source_update", {"note": "'gone'", "n": "n * 2"}, "note = 'c'"),
            ("when_not_matched_by_source_delete", None, "t.id > 11"),
        ],
    ),
    (["id"], [("when_matched_update_all", None, "s.n > 4"), ("when_not_matched_insert_all", None, None)]),
    ("target.id = source.id and t.n < s.n", [("when_matched_update", {"n": "source.n - target.n"}, "op is not null")]),
    ("t.id + 10 = s.id", [("when_matched_delete", None, None), ("when_not_matched_insert_all", None, "s.n > 2")]),
    ("t.id <=> s.id and t.note = 'a'", [("when_not_matched_insert_all", None, None)]),
    (["id"], [("when_not_matched_by_source_delete", None, None)]),
]
BOTH_MODES = [(2, COPY), (4, MERGE)]
OTHER_MODES = [(1, COPY), (2, MERGE), (3, COPY), (3, MERGE), (4, COPY)]
COMPARED = [
    *((case, *BOTH_MODES[case % 2]) for case in range(len(CASES))),
    *(thorough((case, *mode)) for case in range(len(CASES)) for mode in (*OTHER_MODES, BOTH_MODES[1 - case % 2])),
]


@pytest.fixture
def create(spark: SparkSession, tmp_path: Path) -> Callable[..., Any]:
    """Makes a table whose changes run on Spark."""
    return lambda **options: TableOnSpark(new_catalog(tmp_path).create_table("db.t", **options), spark)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path, version: int) -> Any:  # noqa: F811
    """Two files, ids 1 to 3 and 11 to 13."""
    made = new_catalog(tmp_path).create_table("db.t", schema="id bigint, n int, note string", format_version=version)
    for first in (1, 11):
        ids = pa.array(range(first, first + 3), pa.int64())
        made.append(pa.table({"id": ids, "n": pa.array([1, 2, 3], pa.int32()), "note": ["a", "b", "c"]}))
    return TableOnSpark(made, spark)


def new_tables(folder: Path, version: int, mode: str) -> list[Table]:  # noqa: F811
    """Two tables with the same rows."""
    made = []
    for name in ("arrow", "spark"):
        schema = "id bigint, n int, note string"
        made.append(new_table(folder / name, version, mode, ("truncate(10, id)",), schema=schema))
        for first in (1, 11):
            ids = pa.array([*range(first, first + 3), None], pa.int64())
            made[-1].append(pa.table({"id": ids, "n": pa.array([1, 2, 3, 4], pa.int32()), "note": list("abcd")}))
        made[-1].delete("id = 3")
    return made


@pytest.mark.parametrize(("case", "version", "mode"), COMPARED)
def test_both_engines_leave_the_same_rows(
    spark: SparkSession,
    tmp_path: Path,
    case: int,
    version: int,  # noqa: F811
    mode: str,
) -> None:
    on, clauses = CASES[case]
    schema = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("op", pa.string())])
    rows = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in SOURCE], schema=schema)
    results: list[Any] = []
    skipped: list[int] = []
    tables = new_tables(tmp_path, version, mode)
    for changed in (tables[0], TableOnSpark(tables[1], spark)):
        merge = changed.merge(rows, on)
        for method, values, condition in clauses:
            merge = getattr(merge, method)(*([] if values is None else [values]), condition)
        result = merge.execute().as_dict()
        columns = [] if version < 3 else ["_row_id", "_last_updated_sequence_number"]
        found = changed.scan(columns=["id", "n", "note", *columns]).to_arrow().to_pylist()
        counts = {key: result[key] for key in ("rows_inserted", "rows_updated", "rows_deleted")}
        skipped.append(result["files_skipped"])
        kept = [row for row in found if row["note"] not in ("new", None)]  # new rows get ids in the order of writing
        plain = sorted((tuple(row.values())[:3] for row in found), key=repr)
        results.append((counts, plain, sorted((tuple(row.values()) for row in kept), key=repr)))
    for changed in tables:
        check(changed)
    assert results[1] == results[0]
    assert skipped[1] >= skipped[0]  # Spark's optimiser implies more filters


@pytest.mark.parametrize("clauses", ["insert", "upsert", "sync"])
def test_a_source_that_is_not_broadcast_changes_the_same_rows(
    spark: SparkSession, tmp_path: Path, clauses: str
) -> None:
    table = new_table(tmp_path, 4)
    table.append(people(1, 2, 3, 4))
    frame = spark.sql("SELECT * FROM VALUES (2L, 'Rome', 7), (3L, 'Bern', 8), (9L, 'Lima', 9) AS v(id, city, amount)")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        merge = table.merge(frame, on=["id"]).when_not_matched_insert_all()
        if clauses != "insert":
            merge = merge.when_matched_update_all("s.id > 2")
        if clauses == "sync":
            merge = merge.when_not_matched_by_source_delete("t.id < 4")
        result = merge.execute()
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    expected = {1: "Oslo", 2: "Oslo", 3: "Oslo", 4: "Oslo", 9: "Lima"}
    expected |= {} if clauses == "insert" else {3: "Bern"}
    if clauses == "sync":
        del expected[1]
    assert {row[0]: row[1] for row in rows_of(table)} == expected
    counts = (result.rows_inserted, result.rows_updated, result.rows_deleted)
    assert counts == (1, int(clauses != "insert"), int(clauses == "sync"))
    check(table)


def test_conditions_and_values_are_any_spark_sql(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, 4, schema="id bigint, city string, amount int, price double, day date")
    rows = {"id": [1, 2, 3], "city": ["Oslo", "Rome", "Bern"], "amount": pa.array([1, 2, 3], pa.int32())}
    table.append(pa.table({**rows, "price": [1.0, 2.0, 3.0]}))
    frame = spark.sql("SELECT * FROM VALUES ('OSLO', 5), ('rome', 6), ('paris', 7) AS v(City, K)")
    merge = table.merge(frame, on="sha2(lower(t.city), 256) = sha2(lower(s.city), 256)")
    merge = merge.when_matched_update(
        {"amount": "(SELECT max(id) FROM range(9)) + length(reverse(t.city))", "price": "1.5", "day": "'2026-01-02'"},
        "soundex(s.City) = soundex('Oslo')",
    ).when_matched_delete("levenshtein(lower(t.city), s.city) = 0")
    result = merge.when_not_matched_insert({"id": "crc32(s.city) % 10 + k", "city": "initcap(city)"}).execute()
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (1, 1, 1)
    assert [row[1:4] for row in rows_of(table)] == [("Oslo", 12, 1.5), ("Paris", None, None), ("Bern", 3, 3.0)]
    assert str(table.scan("id = 1").to_arrow()["day"][0]) == "2026-01-02"
    check(table)


def test_a_write_default_fills_columns_that_an_insert_does_not_name(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, 3, schema="id bigint, n int")
    with table.update_schema() as schema:
        schema.set_default("n", 7)
    frame = spark.range(2)
    table.merge(frame, on=["id"]).when_not_matched_insert_all().execute()
    table.append(spark.range(2, 3))
    assert rows_of(table) == [(0, 7), (1, 7), (2, 7)]


def test_maps_in_the_joining_condition_do_not_matter(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, 4)
    table.append(people(1, 2))
    frame = spark.sql("SELECT map('id', 2L) m, 5 amount UNION ALL SELECT map('id', 3L), 6")
    merge = table.merge(frame, on="t.id = s.m['id']").when_matched_update_all()
    assert merge.when_not_matched_insert({"id": "m['id']", "amount": "s.amount"}).execute().rows_inserted == 1
    assert rows_of(table) == [(1, "Oslo", 1), (2, "Oslo", 5), (3, None, 6)]


@pytest.mark.parametrize(
    ("on", "condition", "values", "message"),
    [
        ("id = s.id", None, {"amount": "1"}, "Spark cannot evaluate 'id = s.id': .*AMBIGUOUS_REFERENCE"),
        ("t.id = s.key", None, {"amount": "1"}, "Spark cannot evaluate 't.id = s.key': .*`key`"),
        ("t.id = s.id", "t.amount", {"amount": "1"}, "Spark cannot evaluate 't.amount': .*BOOLEAN"),
        ("t.id = s.id", None, {"amount": "nofunction(1)"}, "Spark cannot evaluate 'nofunction.1.'"),
        ("t.id = s.id", None, {"colour": "1"}, "the table has no column 'colour'"),
        ("t.id = s.id", None, {"amount": "upper(city)"}, "column 'amount' is int, the DataFrame has string"),
        ("t.id = s.id", None, {"amount": "'x'"}, "column 'amount' is int; the text x does not fit"),
        ("t.id = s.id", None, {"id": "null"}, "column 'id' is required and has a null"),
        ("t.id = s.id", None, {"amount": "s.id + 3000000000"}, "'amount' is int; the bigint value 3000000001 does not"),
    ],
)
def test_texts_and_values_that_do_not_fit_are_refused_and_leave_nothing_behind(
    spark: SparkSession, tmp_path: Path, on: str, condition: str | None, values: dict[str, str], message: str
) -> None:
    table = new_table(tmp_path, 4)
    table.append(people(1, 2))
    before = stored(tmp_path)
    with pytest.raises(InputError, match=message):
        table.merge(spark.range(1, 2), on=on).when_matched_update(values, condition).execute()
    assert stored(tmp_path) == before
    assert rows_of(table) == [(1, "Oslo", 1), (2, "Oslo", 1)]
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == 0

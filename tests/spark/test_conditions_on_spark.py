"""Conditions of changes on Spark: any Spark SQL, of which filters prune files and find conflicts."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyroaring import BitMap64
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.spark.change import positions as position_bitmaps
from icefloe.engines.spark.change.conditions import condition_of
from icefloe.engines.spark.change.positions import positions_of
from icefloe.engines.spark.read.read import FILE, POSITION, FileNumbers
from icefloe.engines.work import Condition
from icefloe.errors import ConflictError, InputError
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.text.ddl import parse_ddl
from support.people import COPY, MERGE, check, ids_of, new_table, people, stored

pytestmark = pytest.mark.spark
SCHEMA = parse_ddl("id bigint not null, n int, note string, ts timestamp, d date, who struct<age: int>")
MODES = [(2, COPY), (4, MERGE), (1, COPY), (3, MERGE), (2, MERGE)]


@pytest.mark.parametrize(
    ("text", "filter_", "is_exact"),
    [
        ("ID > 5 AND who.AGE = 3", "who.age is not null and id > 5 and who.age = 3", True),
        ("id > 5 AND upper(note) = 'X'", "note is not null and id > 5", False),
        ("d >= '2026-01-01'", "d is not null and d >= date '2026-01-01'", True),
        ("note LIKE 'a%'", "note is not null and startswith(note, 'a')", True),
        ("id IN (SELECT 1L) AND n > 2", "n is not null and n > 2", False),
        ("id > (SELECT max(n) FROM VALUES (1) v(n))", "true", False),
        ("bucket(16, id) = 3", "bucket(16, id) = 3", True),
        ("rand() < 0.5", "true", False),
        ("true", "true", True),
        ("id = 1 AND id = 2", "false", True),
    ],
)
def test_what_filters_can_express_of_a_text_is_a_filter(spark, text, filter_, is_exact):
    expected = Condition(filter=parse_filter(filter_), sql=None if is_exact else text)
    assert condition_of(spark, text, SCHEMA) == expected


def test_local_times_are_those_of_the_session(spark):
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        found = condition_of(spark, "ts >= '2026-01-01 09:00:00'", SCHEMA)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert found.filter == parse_filter("ts is not null and ts >= timestamp_ltz '2026-01-01 00:00:00Z'")


def test_filters_as_values_need_no_text(spark):
    assert condition_of(spark, None, SCHEMA) == Condition(filter=ALWAYS_TRUE)
    assert condition_of(spark, ALWAYS_FALSE, SCHEMA) == Condition(filter=ALWAYS_FALSE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour = 1", "Spark cannot evaluate 'colour = 1': .*UNRESOLVED_COLUMN.*`colour`"),
        ("id = ", "Spark cannot evaluate 'id = ': .*PARSE_SYNTAX_ERROR"),
        ("n + 1", "Spark cannot evaluate 'n . 1': .*BOOLEAN"),
        ("nofunction(id) = 1", "nofunction"),
    ],
)
def test_a_text_that_spark_refuses_is_refused_with_its_message(spark, text, message):
    with pytest.raises(InputError, match=message):
        condition_of(spark, text, SCHEMA)


@pytest.mark.parametrize(("version", "mode"), MODES)
def test_deletes_and_overwrites_take_any_condition(spark, tmp_path, version, mode):
    table = new_table(tmp_path, version, mode, partition_by=("city",))
    table.append(people(*range(20)))
    table.append(people(*range(20, 30), city="Rome"))
    spark.createDataFrame([(3,), (21,), (99,)], "k long").createOrReplaceTempView("gone")
    assert table.delete("id IN (SELECT k FROM gone) -- all of them", spark=spark).rows_deleted == 2
    assert table.delete("length(city) = 4 AND pmod(id, 10) = 5 AND city <> 'Rome'", spark=spark).rows_deleted == 2
    assert table.delete("substr(city, 1, 1) = 'X'", spark=spark).snapshot_id is None
    whole = table.delete("CITY = 'Rome' AND id < 100", spark=spark)
    assert (whole.rows_deleted, whole.files_removed, whole.files_added) == (9, 1, 0)
    frame = spark.createDataFrame([(100, "Oslo", 1)], "id bigint, city string, amount int")
    assert table.overwrite(frame, where="sqrt(id) = 4 OR id = 17").rows_deleted == 2
    assert ids_of(table) == [*(i for i in range(20) if i not in (3, 5, 15, 16, 17)), 100]
    before = stored(tmp_path)
    with pytest.raises(InputError, match="Spark cannot evaluate 'colour = 1'"):
        table.delete("colour = 1", spark=spark)
    assert stored(tmp_path) == before
    check(table)


def test_the_filter_of_a_condition_finds_conflicts(spark, tmp_path):
    table = new_table(tmp_path, 4, partition_by=("city",))
    table.append(people(*range(10)))
    late, beside = table.transaction(), table.transaction()
    late.delete("city = 'Oslo' AND pmod(id, 5) = 0", spark=spark)
    beside.delete("city = 'Bern' AND pmod(id, 5) = 0", spark=spark)
    beside.append(people(70))
    table.append(people(50, city="Rome"))
    assert late.commit().rows_deleted == 2
    table.append(people(60, city="Bern"))
    with pytest.raises(ConflictError):
        beside.commit()
    frame = spark.createDataFrame([(7, "Oslo", 1)], "id bigint, city string, amount int")
    replaced = table.transaction()
    replaced.overwrite(frame, where="id > 1000 AND pmod(id, 2) = 0")
    table.append(people(1001, 1002))
    with pytest.raises(ConflictError):
        replaced.commit()
    assert ids_of(table) == [1, 2, 3, 4, 6, 7, 8, 9, 50, 60, 1001, 1002]


@pytest.mark.parametrize("limit", [10**9, 0], ids=["words", "ranges"])
def test_positions_are_packed_by_tasks(spark, monkeypatch, limit):
    monkeypatch.setattr(position_bitmaps, "WORDS_MAX_ROWS", limit)
    files = FileNumbers()
    files.number(pa.chunked_array([["a", "b", "c"]]))
    wanted = {
        "a": BitMap64(range(100_000)),
        "b": BitMap64([0, 63, 64, 32_767, 32_768, 5_000_000_000]),
        "c": BitMap64(range(7, 90_000, 11)),
    }
    frame = spark.sql(
        f"""SELECT 0L AS {FILE}, id AS {POSITION} FROM range(100000)
        UNION ALL SELECT 1L, p FROM VALUES (0L), (63L), (64L), (32767L), (32768L), (5000000000L) v(p)
        UNION ALL SELECT 2L, id FROM range(7, 90000, 11)"""
    )
    found = positions_of(frame, files, planned_rows=1)
    assert (found.positions, found.has_repeated) == (wanted, False)
    twice = frame.union(frame.where(F.col(POSITION) == 32_768))
    again = positions_of(twice, files, planned_rows=1)
    assert (again.positions, again.has_repeated) == (wanted, True)
    few = positions_of(frame.where(f"{FILE} = 1"), files, planned_rows=1)
    assert few.positions == {"b": wanted["b"]}
    assert positions_of(frame.where("false"), files, planned_rows=1).positions == {}

"""Tables with the same buckets of their keys are joined without a shuffle."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.spark_plans import nodes_below, plan_nodes

VERSIONS = pytest.mark.parametrize("version", [1, 2, 3, 4])
NEWEST = pytest.mark.parametrize("version", [4])
JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
BROADCAST, BUCKETING = "spark.sql.autoBroadcastJoinThreshold", "spark.sql.sources.v2.bucketing.enabled"
READ_BYTES = "spark.sql.files.maxPartitionBytes"


@contextmanager
def configured(spark: Any, settings_: dict[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in settings_}
    for name, value in settings_.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@pytest.fixture(autouse=True)
def no_broadcasts(spark: Any) -> Iterator[None]:
    with configured(spark, {BROADCAST: "-1"}):
        yield


@pytest.fixture
def db(demo):
    demo.create_namespace("db")
    return demo


def table(
    db: Any, name: str, ids: list[list[Any]], *, version: int, by: str = "bucket(4, id)", type_: Any = None
) -> Any:
    """A table with a file for each list of ids; ``value`` says where the row comes from."""
    schema = pa.schema([("id", type_ or pa.int64()), ("value", pa.string())])
    created = db.create_table(f"db.{name}", schema, partition_by=[by] if by else [], format_version=version)
    for number, part in enumerate(ids):
        created.append(
            pa.table({"id": part, "value": [f"{name} {number} {i}" for i in range(len(part))]}, schema=schema)
        )
    return created


@pytest.fixture
def tables(db, version):
    """``a`` and ``b`` have some ids in common, nulls, and a bucket without rows."""
    return (
        table(db, "a", [[1, 2, 3, 4, None], [5, 6, 2]], version=version),
        table(db, "b", [[2, 4, 6, None], [8, 10, 2]], version=version),
    )


def joined(spark: Any, query: str) -> bool:
    """Whether a query, which has the same rows with shuffles, joins buckets; such a join has no shuffle below it."""
    frame = spark.sql(query)
    rows = sorted(map(repr, frame.collect()))
    with configured(spark, {BUCKETING: "false"}):
        whole = spark.sql(query)
        assert sorted(map(repr, whole.collect())) == rows
        assert joins(whole) == []
    for join in joins(frame):
        assert "Exchange" not in {kind(node) for node in nodes_below(join)}
    return len(joins(frame)) > 0


def joins(frame: Any) -> list[Any]:
    return [node for node in plan_nodes(frame) if kind(node) == "BucketedJoin"]


def kind(node: Any) -> str:
    return str(node.nodeName())


@VERSIONS
@pytest.mark.parametrize("kind", JOINS)
def test_joins_of_the_same_buckets_have_no_shuffle(spark, tables, kind):
    columns = "a.*" if "SEMI" in kind or "ANTI" in kind else "*"
    assert joined(spark, f"SELECT {columns} FROM demo.db.a {kind} demo.db.b ON a.id = b.id")
    assert joined(spark, f"SELECT {columns} FROM demo.db.a {kind} demo.db.b ON a.id = b.id AND a.value < b.value")


@NEWEST
@pytest.mark.parametrize(
    "query",
    [
        "SELECT x.key, y.value FROM (SELECT id AS key FROM {0}.a WHERE id > 1) x JOIN {0}.b y ON y.id = x.key",
        "SELECT a.id FROM {0}.a JOIN {0}.b ON a.id = b.id AND a.value = b.value",
        "SELECT a.id, count(*) FROM {0}.a JOIN {0}.b ON a.id = b.id GROUP BY a.id",
        "SELECT * FROM {0}.a JOIN {0}.b ON a.id = b.id WHERE a.value <> 'a 0 1' AND b.id IN (2, 4)",
        "SELECT * FROM {0}.a x JOIN {0}.a y ON x.id = y.id",
        "SELECT * FROM {0}.a WHERE id IN (SELECT id FROM {0}.b)",
        "SELECT * FROM {0}.a JOIN {0}.b ON a.id = b.id LIMIT 100",
    ],
)
def test_queries_around_such_joins(spark, tables, query):
    assert joined(spark, query.format("demo.db"))


@NEWEST
def test_joins_above_such_a_join_have_their_rows(spark, db, tables):
    """Their shuffles make as many partitions as there are buckets, by another function."""
    table(db, "c", [[2, 3, 4], [6, None]], version=4, by="")
    with configured(spark, {"spark.sql.shuffle.partitions": "4"}):
        assert joined(spark, "SELECT * FROM demo.db.a JOIN demo.db.b ON a.id = b.id JOIN demo.db.c ON a.id = c.id")
        assert joined(
            spark,
            "SELECT * FROM demo.db.c LEFT JOIN (SELECT a.id FROM demo.db.a JOIN demo.db.b USING (id)) x USING (id)",
        )
        assert not joined(spark, "SELECT * FROM demo.db.a JOIN demo.db.c ON a.id = c.id")
        assert joined(
            spark,
            "SELECT * FROM (SELECT a.id FROM demo.db.a JOIN demo.db.b USING (id)) x"
            " JOIN (SELECT a.id FROM demo.db.a JOIN demo.db.b USING (id)) y ON x.id = y.id",
        )


@VERSIONS
@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.int32(), [1, -2, 3]),
        (pa.string(), ["", "a", "a longer text of more than sixteen characters"]),
        (pa.binary(), [b"", b"ab"]),
        (pa.date32(), [dt.date(1969, 1, 1), dt.date(2026, 5, 1)]),
        (pa.timestamp("us", "UTC"), [dt.datetime(1969, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 5, 1, tzinfo=dt.UTC)]),
        (pa.decimal128(9, 2), [Decimal("1.25"), Decimal("-3.00")]),
    ],
    ids=str,
)
def test_keys_of_all_types_that_have_buckets(spark, db, version, type_, values):
    for name in ("a", "b"):
        table(db, name, [values, [None, values[0]]], version=version, type_=type_)
    assert joined(spark, "SELECT * FROM demo.db.a LEFT JOIN demo.db.b ON a.id = b.id")


@VERSIONS
def test_after_deletes_and_changed_columns(spark, tables, version):
    a, b = tables
    a.set_properties({"write.delete.mode": "merge-on-read"} if version > 1 else {})
    a.delete("value = 'a 0 1'")
    with b.update_schema() as schema:
        schema.rename_column("id", "number")
    assert joined(spark, "SELECT * FROM demo.db.a JOIN demo.db.b ON a.id = b.number")


@VERSIONS
def test_what_is_left_to_spark(spark, db, tables, version):
    _a, b = tables
    on_id = "SELECT * FROM demo.db.a JOIN demo.db.b ON a.id = b.id"
    with configured(spark, {BROADCAST: "10MB"}):
        assert not joined(spark, on_id)
    with configured(spark, {READ_BYTES: "10"}):
        assert not joined(spark, on_id)
    assert not joined(spark, "SELECT * FROM demo.db.a JOIN demo.db.b ON a.id = b.id + 1")
    assert not joined(spark, "SELECT * FROM demo.db.a JOIN demo.db.b ON a.value = b.value")
    table(db, "eight", [[2, 4]], version=version, by="bucket(8, id)")
    assert not joined(spark, "SELECT * FROM demo.db.a JOIN demo.db.eight c ON a.id = c.id")
    table(db, "ints", [[2, 4]], version=version, type_=pa.int32())
    assert not joined(spark, "SELECT * FROM demo.db.a JOIN demo.db.ints c ON a.id = c.id")
    with b.update_partitioning() as partitioning:
        partitioning.add("truncate(2, value)")
    assert joined(spark, on_id)
    with b.update_partitioning() as partitioning:
        partitioning.remove("id_bucket")
    b.append(pa.table({"id": [2]}))
    assert not joined(spark, on_id)


@NEWEST
def test_runtime_filters_and_buckets_work_together(spark, db, tables):
    table(db, "chosen", [[2, 6]], version=4, by="")
    query = (
        "SELECT /*+ BROADCAST(c) */ a.value, b.value FROM demo.db.a JOIN demo.db.b ON a.id = b.id"
        " JOIN demo.db.chosen c ON a.id = c.id WHERE c.value LIKE '%1' ORDER BY 1"
    )
    assert joined(spark, query)
    (plan,) = spark.sql(f"EXPLAIN {query}").first()
    assert "overlap dynamicpruning" in plan


@NEWEST
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_merges_and_writes_of_such_joins(spark, tables, mode):
    a, _ = tables
    a.set_properties({"write.merge.mode": mode})
    spark.sql("DELETE FROM demo.db.b WHERE id = 2 AND value LIKE 'b 1%'")
    spark.sql(
        "MERGE INTO demo.db.a USING demo.db.b ON a.id = b.id WHEN MATCHED THEN UPDATE SET value = 'merged'"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    assert spark.sql("SELECT count(*) FROM demo.db.a WHERE value = 'merged'").collect() == [(4,)]
    spark.sql("CREATE TABLE demo.db.c AS SELECT a.id FROM demo.db.a JOIN demo.db.b ON a.id = b.id")
    assert sorted(row.id for row in spark.table("demo.db.c").collect()) == [2, 2, 4, 6, 8, 10]


IDS = st.lists(st.lists(st.one_of(st.none(), st.integers(-5, 5)), min_size=1, max_size=4), max_size=3)


@pytest.mark.parametrize("version", [2, 4])
@given(first=IDS, second=IDS, deleted=st.integers(-6, 5), kind=st.sampled_from(JOINS), buckets=st.integers(1, 5))
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_joins_of_any_tables_have_the_rows_of_a_shuffle(spark, db, version, first, second, deleted, kind, buckets):
    made = [
        table(db, name, ids, version=version, by=f"bucket({buckets}, id)")
        for name, ids in (("f", first), ("s", second))
    ]
    try:
        made[0].delete(f"id = {deleted}")
        columns = "f.*" if "SEMI" in kind or "ANTI" in kind else "*"
        joined(spark, f"SELECT {columns} FROM demo.db.f {kind} demo.db.s ON f.id = s.id")
    finally:
        db.drop_table("db.f")
        db.drop_table("db.s")

"""Joins skip files by the keys of their other side, which are known when the query runs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.spark_plans import file_scans

FILES = 10
ROWS_OF_FILE = 100
VERSIONS = pytest.mark.parametrize("version", [1, 2, 3, 4])
OFF = "spark.sql.optimizer.dynamicPartitionPruning.enabled"


def run(spark, query: str) -> tuple[list[tuple[Any, ...]], list[int]]:
    """The rows of a query in order, and how many files each scan read that had a filter at run time."""
    frame = spark.sql(query)
    rows = sorted(map(tuple, frame.collect()), key=repr)
    metrics = [scan.metrics() for scan in file_scans(frame)]
    return rows, [one.apply("numFiles").value() for one in metrics if one.contains("staticFilesNum")]


@pytest.fixture
def facts(spark, demo, version):
    """``facts`` has ids, days and texts that rise from file to file; ``names`` names every thousandth id."""
    demo.create_namespace("db")
    ids = range(FILES * ROWS_OF_FILE)
    rows = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "part": pa.array([i // ROWS_OF_FILE for i in ids], pa.int32()),
            "at": pa.array([i * 864 * 10**6 for i in ids], pa.timestamp("us")),  # a file for each day
            "code": [f"{i:06d} is the beginning of a text" for i in ids],  # bounds are truncated
            "at_least": pa.array([i // ROWS_OF_FILE * 1.5 for i in ids], pa.float64()),
        }
    )
    table = demo.create_table("db.facts", rows.schema, partition_by=["part"], format_version=version)
    table.append(rows)
    chosen = rows.filter(pa.compute.equal(pa.compute.bit_wise_and(rows["id"], 511), 450))
    names = demo.create_table("db.names", chosen.schema.append(pa.field("name", pa.string())), format_version=version)
    names.append(chosen.append_column("name", pa.array([f"n{i}" for i in chosen["id"].to_pylist()])))
    return table


@VERSIONS
@pytest.mark.parametrize("key", ["part", "id", "at", "code"])
def test_a_join_reads_the_files_that_may_have_a_key_of_its_other_side(spark, facts, key):
    query = f"SELECT f.id FROM demo.db.facts f JOIN demo.db.names n ON f.{key} = n.{key} WHERE n.name = 'n450'"
    rows, files = run(spark, query)
    assert len(rows) == (ROWS_OF_FILE if key == "part" else 1)
    assert files == [1]


@pytest.mark.parametrize("version", [4])
@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("SELECT id FROM demo.db.facts WHERE id IN (SELECT id FROM demo.db.names WHERE name > 'n4')", [2]),
        (
            "SELECT f.id FROM demo.db.facts f JOIN demo.db.names n ON f.id = n.id AND f.part = n.part"
            " WHERE n.name LIKE '%0'",
            [1],
        ),
        ("SELECT f.id FROM demo.db.facts f JOIN demo.db.names n ON f.at_least = n.at_least WHERE n.name = 'n450'", []),
        ("SELECT f.id FROM demo.db.facts f LEFT JOIN demo.db.names n ON f.id = n.id AND n.name = 'n450'", []),
        ("SELECT f.id FROM demo.db.facts f LEFT ANTI JOIN demo.db.names n ON f.id = n.id AND n.name = 'n450'", []),
        ("SELECT f.id FROM demo.db.facts f JOIN demo.db.names n ON f.id + 1 = n.id WHERE n.name = 'n450'", []),
    ],
    ids=["IN", "two keys", "a key of type double", "left join", "anti join", "an expression"],
)
def test_only_joins_that_drop_rows_without_a_match_skip_files(spark, facts, query, files):
    rows, read = run(spark, query)
    spark.conf.set(OFF, "false")
    try:
        assert run(spark, query) == (rows, [])
    finally:
        spark.conf.unset(OFF)
    assert sorted(set(read)) == files


@VERSIONS
def test_renamed_columns_several_specs_and_deletes_skip_files_too(spark, facts, version):
    with facts.update_schema() as schema:
        schema.rename_column("id", "number")
    with facts.update_partitioning() as partitioning:
        partitioning.remove("part")
        partitioning.add("days(at)")
    facts.append(pa.table({"number": pa.array([7], pa.int64()), "part": pa.array([None], pa.int32())}))
    facts.delete("number IN (450, 7)") if version == 1 else spark.sql(
        "DELETE FROM demo.db.facts WHERE number % 1000 IN (450, 7)"
    )
    query = "SELECT f.number FROM demo.db.facts f JOIN demo.db.names n ON f.number = n.id WHERE n.name < 'n96'"
    assert run(spark, query) == ([], [1])
    query = "SELECT f.number FROM demo.db.facts f JOIN demo.db.names n ON f.number = n.id"
    assert run(spark, query)[0] == [(962,)]


@pytest.mark.parametrize("version", [4])
def test_explain_shows_what_is_compared_with_the_keys(spark, facts):
    query = "SELECT f.id FROM demo.db.facts f JOIN demo.db.names n ON f.{0} = n.{0} WHERE n.name = 'n450'"
    [(by_bounds,)] = spark.sql("EXPLAIN EXTENDED " + query.format("id")).collect()
    assert "bounds(_lower_bound_id" in by_bounds
    [(by_partition,)] = spark.sql("EXPLAIN EXTENDED " + query.format("part")).collect()
    assert "dynamicpruningexpression(part" in by_partition
    assert "_lower_bound" not in by_partition


@pytest.mark.parametrize("version", [4])
def test_files_without_bounds_are_read(spark, facts):
    facts.set_properties({"write.metadata.metrics.default": "counts"})
    facts.append(pa.table({"id": pa.array([450], pa.int64()), "part": pa.array([100], pa.int32())}))
    query = "SELECT f.part FROM demo.db.facts f JOIN demo.db.names n ON f.id = n.id WHERE n.name = 'n450'"
    assert run(spark, query) == ([(100,), (4,)], [2])


@pytest.mark.parametrize("version", [4])
def test_other_tables_of_a_query_keep_their_filters(spark, facts, tmp_path):
    plain = spark.table("demo.db.facts").select("id", "part").repartition(1)
    plain.write.partitionBy("part").parquet(str(tmp_path / "plain"))
    spark.read.parquet(str(tmp_path / "plain")).createOrReplaceTempView("plain")
    query = "SELECT f.id FROM plain f JOIN demo.db.names n ON f.part = n.part WHERE n.name = 'n450'"
    rows, files = run(spark, query)
    assert (len(rows), files) == (ROWS_OF_FILE, [1])
    query = "SELECT f.id FROM demo.db.facts f JOIN plain p ON f.id = p.id AND f.part = p.part WHERE p.id = 450"
    assert run(spark, query)[0] == [(450,)]


@pytest.mark.parametrize("version", [4])
def test_a_join_with_orc_files_and_equality_deletes_has_its_rows(spark, facts):
    new = {"id": pa.array([450], pa.int64()), "part": pa.array([4], pa.int32()), "code": ["new"]}
    facts.upsert(pa.table(new), on=["id", "part"], deletes="equality")
    facts.set_properties({"write.format.default": "orc"})
    facts.append(pa.table({"id": pa.array([450], pa.int64()), "code": ["orc"]}))
    query = "SELECT f.code FROM demo.db.facts f JOIN demo.db.names n ON f.id = n.id WHERE n.name = 'n450'"
    rows, files = run(spark, query)
    assert rows == [("new",), ("orc",)]
    assert sum(files) <= 3


@pytest.mark.parametrize("version", [4])
def test_an_update_and_a_merge_of_rows_with_chosen_keys_change_these_rows(spark, facts):
    spark.sql(
        "UPDATE demo.db.facts SET code = 'updated' WHERE id IN (SELECT id FROM demo.db.names WHERE name = 'n450')"
    )
    spark.sql(
        "MERGE INTO demo.db.facts f USING (SELECT id FROM demo.db.names WHERE name > 'n9') n ON f.id = n.id"
        " WHEN MATCHED THEN UPDATE SET code = 'merged'"
    )
    changed = spark.sql("SELECT id, code FROM demo.db.facts WHERE code NOT LIKE '%text' ORDER BY id").collect()
    assert changed == [(450, "updated"), (962, "merged")]


@pytest.mark.parametrize("version", [4])
def test_rows_are_sorted_above_such_a_join(spark, facts):
    """Scar: a sort sends the plan below it to executors, and the comparison of bounds could not be sent."""
    query = "SELECT f.id FROM demo.db.facts f JOIN demo.db.names n ON f.id = n.id WHERE n.name > 'n4' ORDER BY f.code"
    assert run(spark, query) == ([(450,), (962,)], [2])


@pytest.mark.parametrize("version", [4])
def test_a_key_may_have_a_line_break_or_a_backslash_in_its_name(spark, facts):
    """Scar: names are sent to the planner as lines of text."""
    with facts.update_schema() as schema:
        schema.rename_column("id", "a\nb\\n")
    query = "SELECT f.part FROM demo.db.facts f JOIN demo.db.names n ON f.`a\nb\\n` = n.id WHERE n.name = 'n450'"
    assert run(spark, query) == ([(4,)], [1])


KEYS = st.one_of(st.none(), st.integers(-5, 5))


@pytest.fixture
def db(demo):
    demo.create_namespace("db")
    return demo


@pytest.mark.parametrize("version", [2, 4])
@given(
    files=st.lists(st.lists(st.tuples(KEYS, KEYS), min_size=1, max_size=4), min_size=1, max_size=4),
    others=st.lists(st.tuples(KEYS, KEYS), max_size=4),
    kind=st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "FULL JOIN"]),
    condition=st.sampled_from(["f.a = o.a", "f.b = o.b", "f.a = o.a AND f.b = o.b", "f.a = o.b", "f.a <=> o.a"]),
    deleted=st.integers(-6, 5),
)
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_joins_of_any_tables_have_the_rows_that_they_have_without_skipping(
    spark, db, version, files, others, kind, condition, deleted
):
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    for name, parts, by in (("f", files, ["b"]), ("o", [others], [])):
        table = db.create_table(f"db.{name}", schema, partition_by=by, format_version=version)
        for part in parts:
            table.append(pa.table({"a": [a for a, _ in part], "b": [b for _, b in part]}, schema=schema))
    db.load_table("db.f").delete(f"a = {deleted}")
    columns = "f.a, f.b" if "SEMI" in kind or "ANTI" in kind else "f.a, f.b, o.a, o.b"
    query = f"SELECT {columns} FROM demo.db.f f {kind} (SELECT * FROM demo.db.o WHERE a > -4) o ON {condition}"
    rows, _ = run(spark, query)
    spark.conf.set(OFF, "false")
    try:
        assert run(spark, query) == (rows, [])
    finally:
        spark.conf.unset(OFF)
        db.drop_table("db.f")
        db.drop_table("db.o")

"""Row lineage of version 3 between icefloe and Apache Iceberg: the same ids, whoever wrote the rows and reads them."""

from __future__ import annotations

import pyarrow as pa
import pytest

pytestmark = pytest.mark.interop
COLUMNS = ["id", "_row_id", "_last_updated_sequence_number"]
Lineage = dict[int, tuple[int | None, int | None]]


def lineage(rows: pa.Table) -> Lineage:
    assert rows.num_rows == len(set(rows["id"].to_pylist()))
    return {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in rows.to_pylist()}


def read_alike(table, spark) -> Lineage:
    """The lineage by id, as Apache Iceberg and both engines of icefloe read it."""
    theirs = lineage(spark.table(f"lake.{table.name}").select(*COLUMNS).toArrow())
    assert lineage(table.refresh().scan(columns=COLUMNS).to_arrow()) == theirs
    assert lineage(table.scan(columns=COLUMNS).to_spark(spark).toArrow()) == theirs
    return theirs


def notes(*ids: int, note: str = "old") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "note": pa.array([note] * len(ids), pa.string())})


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("partitions", ["", "PARTITIONED BY (bucket(2, id))"], ids=["plain", "partitioned"])
def test_lineage_that_apache_iceberg_wrote(mode, partitions, catalog, spark):
    if "lineage" not in catalog.list_namespaces():
        catalog.create_namespace("lineage")
    name = f"lineage.theirs_{mode.replace('-', '_')}_{len(partitions)}"
    modes = ", ".join(f"'write.{kind}.mode' = '{mode}'" for kind in ("delete", "update", "merge"))
    spark.sql(
        f"CREATE TABLE lake.{name} (id bigint, note string) USING iceberg {partitions}"
        f" TBLPROPERTIES ('format-version' = '3', {modes})"
    )
    for start in (0, 10, 20):
        spark.createDataFrame(notes(*range(start, start + 5))).coalesce(1).writeTo(f"lake.{name}").append()
    table = catalog.load_table(name)
    first = read_alike(table, spark)
    assert sorted(row_id for row_id, _ in first.values()) == list(range(15))
    spark.sql(f"DELETE FROM lake.{name} WHERE id = 11")
    spark.sql(f"UPDATE lake.{name} SET note = 'new' WHERE id IN (2, 22)")
    spark.sql(
        f"MERGE INTO lake.{name} t USING (SELECT * FROM VALUES (3L, 'x'), (100L, 'y') AS v(id, note)) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    second = read_alike(table, spark)
    changed = {2: (first[2][0], 5), 22: (first[22][0], 5), 3: (first[3][0], 6)}
    added = second.pop(100)
    assert added[1] == 6
    assert second == {**{key: value for key, value in first.items() if key != 11}, **changed}
    spark.sql(f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    assert read_alike(table, spark) == {**second, 100: added}


@pytest.mark.parametrize("partitions", [[], ["bucket(2, id)"]], ids=["plain", "partitioned"])
def test_lineage_that_icefloe_wrote(partitions, catalog, spark):
    name = f"db.lineage_{len(partitions)}"
    table = catalog.create_table(name, schema="id bigint, note string", partition_by=partitions, format_version=3)
    for start in (0, 10, 20):
        table.append(notes(*range(start, start + 5)))
    first = read_alike(table, spark)
    table.delete("id = 11")
    table.upsert(notes(2, 22, 100, note="new"), on=["id"])
    table.upsert(spark.createDataFrame(notes(100, 3, 101, note="newer")), on=["id"])
    second = read_alike(table, spark)
    expected = {key: value for key, value in first.items() if key not in (11, 100, 101)}
    expected |= {2: (first[2][0], 5), 22: (first[22][0], 5), 3: (first[3][0], 6)}
    assert {key: value for key, value in second.items() if key < 100} == expected
    assert second[100][1] == second[101][1] == 6
    assert len({row_id for row_id, _ in second.values()}) == len(second)
    table.rewrite_manifests().execute()
    assert read_alike(table, spark) == second
    spark.sql(f"UPDATE lake.{name} SET note = 'theirs' WHERE id IN (2, 4)")
    number = table.refresh().metadata.last_sequence_number
    third = {**second, 2: (second[2][0], number), 4: (second[4][0], number)}
    assert read_alike(table, spark) == third
    table.append(notes(200))
    found = read_alike(table, spark)
    assert found.pop(200) == (table.metadata.next_row_id - 1, number + 1)
    assert found == third


def test_a_table_that_icefloe_upgraded_from_version_2(catalog, spark):
    table = catalog.create_table("db.lineage_upgraded", schema="id bigint, note string", format_version=2)
    table.append(notes(1, 2))
    table.append(notes(3))
    table.upgrade(3)
    assert read_alike(table, spark) == dict.fromkeys((1, 2, 3), (None, None))
    table.append(notes(4))
    found = read_alike(table, spark)
    assert sorted(row_id for row_id, _ in found.values()) == [0, 1, 2, 3]
    spark.sql("INSERT INTO lake.db.lineage_upgraded VALUES (5, 'theirs')")
    assert read_alike(table, spark) == {**found, 5: (4, 4)}

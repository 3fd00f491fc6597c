"""Rows that Apache Iceberg and pyiceberg wrote, in every format and version, evolved and deleted: read by icefloe."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from interop.plain_rows import plain
from interop.test_rows_of_icefloe import ARROW, arrow, some

pytestmark = pytest.mark.interop

DDL = (
    "id bigint NOT NULL, ts timestamp, city string, n int, f float, price decimal(9,2), day date, ok boolean,"
    " place struct<street: string, zip: int>, tags array<string>, attrs map<string, int>"
)
MODES = ", ".join(f"'write.{kind}.mode' = 'merge-on-read'" for kind in ("delete", "update", "merge"))
WRITTEN = [(1, "parquet"), (2, "parquet"), (2, "orc"), (2, "avro"), (3, "parquet"), (3, "orc"), (3, "avro")]
FILTERS = ("id >= 10 and id < 33", "town = 'Oslo'", "n is null", "price > 3.5", "day < '1970-01-10'", "place.zip = 7")


@pytest.fixture(scope="module")
def namespace(catalog):
    if "written" not in catalog.list_namespaces():
        catalog.create_namespace("written")
    return "written"


@pytest.mark.parametrize(("version", "file_format"), WRITTEN, ids=[f"{f} v{v}" for v, f in WRITTEN])
def test_a_table_of_apache_iceberg(version, file_format, namespace, catalog, spark, duck):
    name = f"{namespace}.by_iceberg_{version}_{file_format}"
    modes = f", {MODES}" if version > 1 else ""
    spark.sql(
        f"CREATE TABLE lake.{name} ({DDL}) USING iceberg PARTITIONED BY (days(ts), bucket(2, id))"
        f" TBLPROPERTIES ('format-version' = '{version}', 'write.format.default' = '{file_format}'{modes})"
    )
    spark.createDataFrame(arrow(some(range(30)))).coalesce(1).writeTo(f"lake.{name}").append()
    for change in (
        "RENAME COLUMN city TO town",
        "ALTER COLUMN n TYPE bigint",
        "ALTER COLUMN f TYPE double",
        "ADD COLUMNS (note string, place.country string)",
        "DROP COLUMN attrs",
        "ADD PARTITION FIELD town",
    ):
        spark.sql(f"ALTER TABLE lake.{name} {change}")
    table = catalog.load_table(name)
    columns = [field.name for field in table.schema.fields]
    more = arrow(some(range(30, 50))).drop_columns(["attrs"]).rename_columns([*columns[:2], "town", *columns[3:-1]])
    frame = spark.createDataFrame(more.drop_columns(["place"])).selectExpr(
        "*", "named_struct('street', town, 'zip', int(id), 'country', 'NO') AS place", "string(id) AS note"
    )
    frame.select(*columns).coalesce(1).writeTo(f"lake.{name}").append()
    spark.sql(f"DELETE FROM lake.{name} WHERE id IN (3, 14, 37)")
    spark.sql(f"UPDATE lake.{name} SET note = concat('new ', id), n = n + 1 WHERE id % 10 = 5")

    theirs = spark.table(f"lake.{name}").toArrow()
    table = catalog.load_table(name)
    assert set(table.scan().plan().tasks["file_format"].to_pylist()) == {file_format}
    assert theirs.num_rows == 47
    assert plain(table.scan().to_arrow()) == plain(theirs)
    chosen = ["note", "place", "id"]
    assert plain(table.scan(columns=chosen).to_arrow()) == plain(theirs.select(chosen))
    duck.register("theirs", theirs)
    for where in FILTERS:
        found = plain(table.scan(where).to_arrow())
        assert 0 < len(found) < 47, where
        assert found == plain(duck.execute(f"SELECT * FROM theirs WHERE {where}").to_arrow_table()), where
    for snapshot in (table.snapshots[0], table.snapshots[-2]):
        past = spark.sql(f"SELECT * FROM lake.{name} VERSION AS OF {snapshot.snapshot_id}").toArrow()
        assert plain(table.at(snapshot=snapshot.snapshot_id).scan().to_arrow()) == plain(past)
    if version > 1:
        plan = table.scan().plan()
        vectors = plan.files - plan.tasks["dv_location"].null_count
        assert (vectors > 0, plan.deletes.num_rows > 0) == (version == 3, version == 2)
    # And icefloe goes on where they ended.
    table.delete("id = 40")
    table.update({"note": "'ours'"}, where="id = 41")
    expected = spark.table(f"lake.{name}").toArrow()
    assert expected.num_rows == 46
    assert plain(table.scan().to_arrow()) == plain(expected)


def test_types_of_apache_iceberg_in_every_format(namespace, catalog, spark):
    values = (
        "true AS b, 7 AS i, -9L AS l, float(1.5) AS f, 2.25D AS d, CAST(12.34 AS decimal(9,2)) AS s,"
        " CAST('12345678901234567.8901' AS decimal(21,4)) AS w, DATE '1969-12-31' AS day,"
        " TIMESTAMP '2026-11-15 01:02:03.456789 UTC' AS ts, TIMESTAMP_NTZ '1960-01-01 00:00:00.000001' AS ntz,"
        " 'tëxt' AS t, X'00FF10' AS raw, array(1, NULL) AS a, map('k', array(1.5D)) AS m,"
        " map(1, 'x') AS numbered, named_struct('x', named_struct('y', 1)) AS nested, array(map('q', 1L)) AS am"
    )
    for file_format in ("parquet", "orc", "avro"):
        name = f"{namespace}.types_{file_format}"
        spark.sql(
            f"CREATE TABLE lake.{name} USING iceberg TBLPROPERTIES ('write.format.default' = '{file_format}')"
            f" AS SELECT {values} UNION ALL SELECT {', '.join(['NULL'] * 17)}"
        )
        theirs = spark.table(f"lake.{name}").toArrow()
        assert plain(catalog.load_table(name).scan().to_arrow()) == plain(theirs), file_format
        assert theirs.num_rows == 2


def test_files_that_pyiceberg_added_by_reference(tmp_path, namespace, catalog, pyiceberg):
    rows = arrow(some(range(20)))
    pq.write_table(rows, tmp_path / "old.parquet")
    theirs = pyiceberg.create_table(f"{namespace}.added", rows.schema)
    theirs.add_files([str(tmp_path / "old.parquet")])
    theirs.append(arrow(some(range(20, 30))))
    with theirs.update_schema() as edit:
        edit.rename_column("city", "town")
    theirs.delete("id >= 25")
    table = catalog.load_table(f"{namespace}.added")
    expected = arrow(some(range(25))).rename_columns(["town" if n == "city" else n for n in ARROW.names])
    assert plain(table.scan().to_arrow()) == plain(expected) == plain(theirs.refresh().scan().to_arrow())
    assert plain(table.scan("town = 'Oslo'").to_arrow()) == plain(expected.filter(pa.compute.field("town") == "Oslo"))
    more = tmp_path / "more.parquet"
    pq.write_table(arrow(some(range(40, 45))), more)
    table.add_files(str(more))
    assert plain(theirs.refresh().scan().to_arrow()) == plain(table.scan().to_arrow())
    assert table.scan().count() == 30

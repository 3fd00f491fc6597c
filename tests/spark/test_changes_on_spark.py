"""Changes of rows on Spark in both modes, upon deletes of either engine, and equality deletes written by tasks."""

from __future__ import annotations

import pytest

from icefloe.errors import InputError
from icefloe.table.table import Table
from support.people import COPY, MERGE, check, ids_of, lineage_of, new_table, people, rows_of, stored

pytestmark = pytest.mark.spark
MODES = [(3, COPY), (4, MERGE), (1, COPY), (2, MERGE)]


@pytest.fixture(params=MODES, ids=lambda mode: f"v{mode[0]}-{mode[1]}")
def table(request, tmp_path) -> Table:
    version, mode = request.param
    return new_table(tmp_path, version, mode, partition_by=("city",))


def spark_ids(spark, table: Table, where: str = "true") -> list[int]:
    return sorted(row[0] for row in table.scan().to_spark(spark).where(where).select("id").collect())


def test_both_modes_give_the_same_rows_on_both_engines(spark, table):
    table.append(people(*range(10)))
    table.append(people(*range(10, 20), city="Rome"))
    table.delete("id in (1, 11, 12)")  # in this process
    assert table.delete("id in (2, 12, 13)", spark=spark).rows_deleted == 2
    kept = [i for i in range(20) if i not in (1, 2, 11, 12, 13)]
    assert spark_ids(spark, table) == ids_of(table) == kept
    assert spark_ids(spark, table, "city = 'Rome' and id < 15") == [10, 14]
    frame = spark.createDataFrame([(3, "Bern", 7), (30, "Bern", 7)], "id bigint, city string, amount int")
    result = table.upsert(frame, on=["id"])
    assert (result.rows_added, result.rows_deleted) == (2, 1)
    assert spark_ids(spark, table) == ids_of(table) == sorted([*kept, 30])
    check(table)


def test_frames_take_the_place_of_rows_that_match(spark, table):
    table.append(people(1, 2, 3))
    table.append(people(4, city="Rome"))
    frame = spark.createDataFrame([(10, "Oslo", 1)], "id bigint, city string, amount int")
    assert table.overwrite(frame, where="id = 2").rows_deleted == 1
    assert spark_ids(spark, table) == ids_of(table) == [1, 3, 4, 10]
    table.overwrite_partitions(frame)
    assert ids_of(table) == [4, 10]
    table.overwrite(frame, overwrite_all=True)
    assert ids_of(table) == [10]


def test_lineage_that_is_not_final_is_left_out(spark, tmp_path):
    table = new_table(tmp_path, 3, COPY)
    table.append(people(1, 2, 3))
    late = table.transaction()
    late.append(people(10, 11))
    late.delete("id in (1, 10)", spark=spark)
    table.append(people(20, 21), branch="other", create_branch=True)
    late.commit()
    lineage = lineage_of(table)
    assert {key: lineage[key] for key in (2, 3)} == {2: (1, 1), 3: (2, 1)}
    assert lineage[11][0] < table.metadata.next_row_id
    assert len({row_id for row_id, _ in lineage.values()}) == 3


@pytest.mark.parametrize("version", [2, 4])
def test_upserts_write_equality_deletes_by_tasks(spark, tmp_path, version):
    table = new_table(tmp_path, version, partition_by=("city",))
    table.append(people(1, 2, 3))
    table.append(people(4, city="Rome"))
    frame = spark.createDataFrame(
        [(1, "Oslo", 7), (4, "Rome", 8), (5, None, 9)], "id bigint, city string, amount int"
    ).repartition(3)
    result = table.upsert(frame, on=["id", "city"], deletes="equality")
    assert result.delete_files_added >= 2
    assert rows_of(table) == [(1, "Oslo", 7), (2, "Oslo", 1), (3, "Oslo", 1), (4, "Rome", 8), (5, None, 9)]
    assert spark_ids(spark, table) == [1, 2, 3, 4, 5]
    before = stored(tmp_path)
    with pytest.raises(InputError, match="do not determine the partition of a row"):
        table.upsert(frame, on=["id"], deletes="equality")
    assert stored(tmp_path) == before
    check(table)

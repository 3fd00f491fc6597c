"""Statement 75: roots and leaves are plain Parquet to other programs, which count rows as manifest vectors do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from support.tables import new_catalog
from version_4.scenes import MANIFEST_DV, TO_LEAVES, TO_ROOT, Stage

GONE = ("D3", "D7", "D8", "D29", "D30")  # positions 2, 6, 7, 28 and 29: in the first, second and last row groups


def in_row_groups(path: Path, size: int) -> None:
    """Write a manifest again with many row groups, as another writer may have made it."""
    file = pq.ParquetFile(path)
    table, words = file.read(), {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
    with pq.ParquetWriter(path, table.schema, store_schema=False, compression="zstd") as writer:
        writer.write_table(table, row_group_size=size)
        writer.add_key_value_metadata(words)
    assert pq.ParquetFile(path).metadata.num_row_groups > 4


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A leaf of 30 files in five row groups, some of them removed, and files and vectors in the root."""
    folder = tmp_path_factory.mktemp("plain")
    stage = Stage(folder, **TO_LEAVES)
    stage.append(*(f"D{n}" for n in range(1, 31)))
    stage.call("M1")
    in_row_groups(stage.path("M1"), 7)
    stage.table = new_catalog(folder).load_table("db.t")  # nothing decoded yet
    stage.settings(TO_ROOT)
    stage.upsert(10, 41)
    stage.append("D31")
    stage.remove(*GONE)
    return stage


def hidden(stage: Stage) -> list[int]:
    """The positions that the root's manifest vector hides."""
    (row,) = (row for row in stage.root_rows() if row["content_type"] == MANIFEST_DV)
    return stage.dead(row)


def expected(stage: Stage) -> list[str]:
    return [stage.stored_location(stage.location(name)) for name in GONE]


def test_75_the_vector_counts_the_rows_of_all_row_groups(stage: Stage) -> None:
    assert hidden(stage) == [2, 6, 7, 28, 29]
    gone = {id_ for name in GONE for id_ in range(int(name[1:]) * 10, int(name[1:]) * 10 + 10)}
    assert gone.isdisjoint(stage.ids())
    assert len(stage.ids()) == 31 * 10 - len(gone)


def test_75_pyarrow_reads_roots_and_leaves_as_plain_parquet(stage: Stage) -> None:
    root = pq.ParquetFile(stage.root_path()).read()
    assert sorted(root["content_type"].to_pylist()) == [0, 0, 1, 1, 3, 5]
    leaf = pq.ParquetFile(stage.path("M1")).read()
    assert leaf.take(pa.array(hidden(stage)))["location"].to_pylist() == expected(stage)
    scanned = ds.dataset(stage.path("M1"), format="parquet").to_table(filter=pc.field("record_count") == 10)
    assert scanned.num_rows == 30


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect()
    yield connection
    connection.close()


def test_75_duckdb_reads_roots_and_leaves_and_numbers_their_rows_alike(
    stage: Stage, duck: duckdb.DuckDBPyConnection
) -> None:
    kinds = duck.execute("SELECT content_type FROM read_parquet(?)", [str(stage.root_path())]).fetchall()
    assert sorted(kinds) == [(0,), (0,), (1,), (1,), (3,), (5,)]
    status = "SELECT version_info.status FROM read_parquet(?) WHERE content_type = 3"
    assert duck.execute(status, [str(stage.root_path())]).fetchall() == [(0,)]
    query = "SELECT location FROM read_parquet(?, file_row_number = true) WHERE list_contains(?, file_row_number)"
    found = duck.execute(f"{query} ORDER BY file_row_number", [str(stage.path("M1")), hidden(stage)]).fetchall()
    assert [location for (location,) in found] == expected(stage)
    bounds = "SELECT min(content_stats.id.lower_bound), max(content_stats.id.upper_bound) FROM read_parquet(?)"
    assert duck.execute(bounds, [str(stage.path("M1"))]).fetchall() == [(10, 309)]


@pytest.mark.spark
def test_75_spark_reads_roots_and_leaves_and_numbers_their_rows_alike(stage: Stage, spark: Any) -> None:
    root = spark.read.parquet(str(stage.root_path()))
    assert sorted(row.content_type for row in root.collect()) == [0, 0, 1, 1, 3, 5]
    assert [row.status for row in root.where("content_type = 3").select("version_info.status").collect()] == [0]
    leaf = spark.read.parquet(str(stage.path("M1"))).select("location", "_metadata.row_index")
    chosen = leaf.where(f"row_index in ({', '.join(map(str, hidden(stage)))})").orderBy("row_index")
    assert [row.location for row in chosen.collect()] == expected(stage)

"""Compaction on Spark: the same rows, row lineage and old snapshots as on Arrow."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icefloe.errors import ConflictError
from support.compacted import HISTORIES, SMALL, check_same, contents, data_files, exists_in, made, rows, snapshots
from support.people import MERGE, new_table
from support.tables import VERSIONS, new_catalog

CASES = [
    (version, history, partitioned)
    for version in VERSIONS
    for history in HISTORIES
    for partitioned in (False, True)
    if exists_in(history, version)
]


@pytest.mark.parametrize(("version", "history", "partitioned"), CASES)
def test_rows_lineage_and_old_snapshots_stay(
    spark: SparkSession, tmp_path: Path, version: int, history: str, partitioned: bool
) -> None:
    table = made(tmp_path, version, history, partitioned=partitioned)
    before, old, files = contents(table), snapshots(table), data_files(table)
    result = table.compact(options={**SMALL, "rewrite-all": True}, spark=spark).execute()
    assert (result.files_removed, result.failed) == (files, ())
    assert data_files(table) == result.files_added
    assert result.files_added < files or (history == "evolved" and partitioned)
    check_same(table, before, old)
    assert table.metadata.current_snapshot.summary["engine-name"] == "spark"
    assert table.compact(options=SMALL).groups.num_rows == 0 or history == "evolved"


def test_groups_are_rewritten_side_by_side_and_conflicts_fail_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path, 4, "plain", partitioned=True)
    plan = table.compact(options={**SMALL, "partial-progress.enabled": True}, spark=spark)
    table.delete("id = 5")  # in Oslo
    before, old = contents(table), snapshots(table)
    result = plan.execute()
    assert [group.partition["city"] for group in result.failed] == ["Oslo"]
    assert result.files_removed == 3
    check_same(table, before, old)
    plan = table.compact(options=SMALL, spark=spark)
    table.delete("id = 6")
    with pytest.raises(ConflictError):
        plan.execute()


@pytest.mark.parametrize("files", [1, 3])
def test_rows_are_sorted_across_files(spark: SparkSession, tmp_path: Path, files: int) -> None:
    table = new_table(tmp_path, 4, MERGE)
    numbers = np.random.default_rng(7).permutation(60_000)
    for part in np.split(numbers, 6):
        table.append(pa.table({"id": part, "city": ["Oslo"] * len(part), "amount": pa.array(part % 97, pa.int32())}))
    before, old = contents(table), snapshots(table)
    size = sum(table.scan().plan().tasks["file_size_in_bytes"].to_pylist())
    options = {"target-file-size-bytes": size // files + 1, "rewrite-all": True}
    table.compact(strategy="sort", sort_by=["id desc"], options=options, spark=spark).execute()
    check_same(table, before, old)
    ranges = []
    for location in table.refresh().scan().plan().tasks["location"].to_pylist():
        ids = table.scan(f"_file = '{location}'", columns=["id"]).to_arrow()["id"].to_pylist()
        assert ids == sorted(ids, reverse=True)
        ranges.append((min(ids), max(ids)))
    ranges.sort()
    assert all(one[1] < other[0] for one, other in pairwise(ranges))


def first_bytes(value: object) -> object:
    """What the z-order depends on."""
    if isinstance(value, str):
        return value.encode()[:8]
    return value[:8] if isinstance(value, bytes) else repr(value)


ZORDERED = "a bigint, b int, c double, d string, e date, f timestamp_ntz, g boolean, h binary, i timestamp"


@pytest.mark.parametrize(
    "columns", [["a"], ["a", "d"], ["c", "e", "f"], ["i", "b"], ["a", "b", "c", "d", "e", "f", "g", "h"]]
)
def test_spark_and_arrow_have_the_same_z_order(spark: SparkSession, tmp_path: Path, columns: list[str]) -> None:
    dice = np.random.default_rng(11)
    count = 400
    values = pa.table(
        {
            "a": pa.array(dice.integers(-(2**63), 2**63 - 1, count), mask=dice.random(count) < 0.1),
            "b": pa.array(dice.integers(-50, 50, count).astype(np.int32)),
            "c": pa.array([float(x) for x in dice.normal(0, 1e6, count - 4)] + [0.0, -0.0, float("inf"), float("nan")]),
            "d": pa.array([None if n % 9 == 0 else "né" * (n % 7) + str(n) for n in range(count)]),
            "e": pa.array(dice.integers(-9000, 20000, count).astype(np.int32)).cast(pa.date32()),
            "f": pa.array(dice.integers(-(10**15), 10**15, count)).cast(pa.timestamp("us")),
            "g": pa.array(dice.random(count) < 0.5),
            "i": pa.array(dice.integers(-(10**15), 10**15, count)).cast(pa.timestamp("us", "UTC")),
            "h": pa.array([bytes([n % 256, 255 - n % 256] * (n % 6)) for n in range(count)]),
        }
    )
    read = []
    for name, session in (("db.arrow", None), ("db.spark", spark)):
        table = new_catalog(tmp_path).create_table(name, schema=ZORDERED, format_version=4)
        for start in range(0, count, 100):
            table.append(values.slice(start, 100))
        table.compact(strategy="zorder", zorder_by=columns, options=SMALL, spark=session).execute()
        assert table.refresh().scan().plan().files == 1
        read.append(table.scan(columns=columns).to_arrow())
    # Rows whose columns have the same first bytes may come in any order.
    on_arrow, on_spark = ([tuple(map(first_bytes, row.values())) for row in each.to_pylist()] for each in read)
    assert on_arrow == on_spark


def test_deleted_rows_of_large_files_do_not_return(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, 3, MERGE)
    table.append(rows(0, 5000))
    table.delete("id >= 1000 and id < 4000")
    before, old = contents(table), snapshots(table)
    plan = table.compact(spark=spark)
    assert plan.files["reason"].to_pylist() == ["deleted rows above delete-ratio-threshold"]
    assert plan.execute().rows_dropped == 3000
    check_same(table, before, old)

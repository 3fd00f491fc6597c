"""Rows in the table's sort order inside every file."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icefloe.formats.write.write_files import Memory, write_files
from icefloe.io.local import LocalFileIO
from icefloe.model.partition.sort_order import SortField, SortOrder
from icefloe.model.partition.spec import UNPARTITIONED, PartitionField, PartitionSpec
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.partition_text import sort_order

SCHEMA = parse_ddl("a bigint, b double, s struct<t: string>")
ORDER = replace(sort_order(["a desc nulls last", "s.t"], SCHEMA), order_id=4)


def write(folder: Path, rows: Any, order: SortOrder = ORDER, **options: Any) -> list[tuple[dict[str, Any], pa.Table]]:
    made = write_files(
        LocalFileIO(), rows, schema=SCHEMA, sort_order=order, data_location=f"file://{folder}/data", **options
    )
    return [(entry, pq.read_table(entry["location"].removeprefix("file://"))) for entry in made.to_pylist()]


def shuffled(count: int) -> pa.Table:
    numbers = np.random.default_rng(5).permutation(count)
    texts = [{"t": f"{n % 13:02}"} for n in range(count)]
    return pa.table({"a": numbers, "b": numbers / 2, "s": texts})


def test_a_file_is_sorted_and_its_entry_says_by_what(tmp_path: Path) -> None:
    rows = [{"a": 1, "s": {"t": "z"}}, {"a": None, "s": None}, {"a": 5, "s": {"t": "b"}}, {"a": 5, "s": None}]
    [(entry, made)] = write(tmp_path, pa.Table.from_pylist(rows))
    assert entry["sort_order_id"] == 4
    assert made["a"].to_pylist() == [5, 5, 1, None]
    assert made["s"].to_pylist() == [None, {"t": "b"}, {"t": "z"}, None]


def test_rows_at_hand_are_sorted_as_a_whole_across_files(tmp_path: Path) -> None:
    small = {"write.target-file-size-bytes": "20000"}
    made = write(tmp_path, shuffled(20_000), properties=small)
    assert len(made) > 2
    numbers = [n for _, table in made for n in table["a"].to_pylist()]
    assert numbers == list(range(19_999, -1, -1))


def test_a_stream_is_sorted_run_by_run_and_no_file_spans_two_runs(tmp_path: Path) -> None:
    batches = shuffled(30_000).to_batches(max_chunksize=2_000)
    made = write(tmp_path, iter(batches), memory=Memory(sort_bytes=200_000))
    assert len(made) > 2
    for entry, table in made:
        numbers = table["a"].to_pylist()
        assert numbers == sorted(numbers, reverse=True)
        assert entry["sort_order_id"] == 4
    assert sorted(n for _, table in made for n in table["a"].to_pylist()) == list(range(30_000))


def test_files_of_partitions_are_sorted_too(tmp_path: Path) -> None:
    spec = PartitionSpec(
        spec_id=1, fields=(PartitionField(source_id=1, field_id=1000, name="a_b", transform="bucket[3]"),)
    )
    made = write(tmp_path, shuffled(1_000), spec=spec)
    assert len(made) == 3
    for _, table in made:
        assert table["a"].to_pylist() == sorted(table["a"].to_pylist(), reverse=True)


def test_rows_without_an_order_stay_as_they_came(tmp_path: Path) -> None:
    rows = shuffled(100)
    [(entry, made)] = write(tmp_path, rows, SortOrder())
    assert entry["sort_order_id"] is None
    assert made["a"].to_pylist() == rows["a"].to_pylist()


def test_an_order_that_is_not_known_is_no_reason_to_refuse_rows(tmp_path: Path) -> None:
    for field in (SortField(source_id=1, transform="zorder[4]"), SortField(source_id=77)):
        [(entry, made)] = write(tmp_path, shuffled(100), SortOrder(order_id=9, fields=(field,)))
        assert entry["sort_order_id"] is None
        assert made["a"].to_pylist() == shuffled(100)["a"].to_pylist()


def test_sorted_columns_have_bounds_even_if_others_do_not(tmp_path: Path) -> None:
    [(entry, _)] = write(tmp_path, shuffled(10), properties={"write.metadata.metrics.default": "none"})
    text = SCHEMA.field("s.t").id
    assert (entry["lower_bound:1"], entry["upper_bound:1"], entry[f"lower_bound:{text}"]) == (0, 9, "00")
    assert "lower_bound:2" not in entry


def test_no_rows_make_no_files_whatever_the_order(tmp_path: Path) -> None:
    assert write(tmp_path, shuffled(0)) == []
    assert write(tmp_path, iter(shuffled(0).to_batches())) == []


def place(value: float | None) -> tuple[int, float, float]:
    """Where a number stands in the order of the spec, nulls first."""
    if value is None:
        return (0, 0.0, 0.0)
    if math.isnan(value):
        return (2 if math.copysign(1, value) > 0 else 1, 0.0, 0.0) if math.copysign(1, value) < 0 else (3, 0.0, 0.0)
    return (2, value, math.copysign(1, value))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | st.floats(), min_size=1, max_size=20))
def test_numbers_are_in_the_total_order_of_the_format(tmp_path: Path, values: list[float | None]) -> None:
    rows = pa.table({"a": pa.nulls(len(values), pa.int64()), "b": pa.array(values, pa.float64())})
    rows = rows.append_column("s", pa.nulls(len(values), pa.struct({"t": pa.string()})))
    made = write(tmp_path, rows, replace(sort_order(["b"], SCHEMA), order_id=2), spec=UNPARTITIONED)
    stored = [value for _, table in made for value in table["b"].to_pylist()]
    assert [place(value) for value in stored] == sorted(place(value) for value in values)

"""What rows inherit from where they lie, over files that store some of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.expr.filter.bind import bind
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.formats.read.file_read import FileDeletes, FileRead
from icefloe.formats.read.inherited_columns import NO_LINEAGE, Lineage
from icefloe.formats.read.reader import read_file
from icefloe.io.local import LocalFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.metadata_columns import FILE, LAST_UPDATED, POS, ROW_ID
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, Field

ID = Field(1, "id", LONG)
STORED = Schema(fields=(ID, ROW_ID, LAST_UPDATED))
WANTED = Schema(fields=(POS, ROW_ID, ID, LAST_UPDATED, FILE))


def write(path: Path, columns: dict[str, list[int | None]], group: int = 100) -> str:
    fields = [field for field in arrow_schema(STORED) if field.name in columns]
    pq.write_table(pa.table(columns, pa.schema(fields)), path, store_schema=False, row_group_size=group)
    return str(path)


def read(location: str, lineage: Lineage, **options) -> list[dict[str, object]]:
    batches = read_file(LocalFileIO(), FileRead(location=location, schema=WANTED, lineage=lineage, **options))
    return [row for batch in batches for row in batch.to_pylist()]


def test_stored_values_win_and_nulls_are_inherited(tmp_path: Path) -> None:
    columns = {"id": [5, 6, 7], "_row_id": [900, None, 3], "_last_updated_sequence_number": [None, 8, None]}
    location = write(tmp_path / "f.parquet", columns)
    assert read(location, Lineage(first_row_id=100, sequence_number=42)) == [
        {"_pos": 0, "_row_id": 900, "id": 5, "_last_updated_sequence_number": 42, "_file": location},
        {"_pos": 1, "_row_id": 101, "id": 6, "_last_updated_sequence_number": 8, "_file": location},
        {"_pos": 2, "_row_id": 3, "id": 7, "_last_updated_sequence_number": 42, "_file": location},
    ]


def test_a_file_may_store_one_of_the_columns(tmp_path: Path) -> None:
    location = write(tmp_path / "f.parquet", {"id": [5, 6], "_row_id": [None, 9]})
    found = read(location, Lineage(first_row_id=0, sequence_number=2))
    assert [(row["_row_id"], row["_last_updated_sequence_number"]) for row in found] == [(0, 2), (9, 2)]


@pytest.mark.parametrize("lineage", [NO_LINEAGE, Lineage(sequence_number=42)])
def test_without_a_first_row_id_rows_have_no_lineage_whatever_their_file_says(tmp_path: Path, lineage) -> None:
    columns = {"id": [5], "_row_id": [900], "_last_updated_sequence_number": [7]}
    (row,) = read(write(tmp_path / "f.parquet", columns), lineage)
    assert (row["_row_id"], row["_last_updated_sequence_number"], row["_pos"]) == (None, None, 0)


def test_the_schema_of_batches_is_that_of_the_columns_asked_for(tmp_path: Path) -> None:
    location = write(tmp_path / "f.parquet", {"id": [5]})
    (batch,) = read_file(
        LocalFileIO(), FileRead(location=location, schema=WANTED, lineage=Lineage(first_row_id=0, sequence_number=1))
    )
    assert batch.schema.equals(arrow_schema(WANTED), check_metadata=True)


_NUMBERS = st.none() | st.integers(0, 1000)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.integers(0, 9), _NUMBERS, _NUMBERS), min_size=1, max_size=30),
    group=st.integers(1, 8),
    batch_rows=st.integers(1, 9),
    deleted=st.sets(st.integers(0, 29)),
    low=st.integers(0, 10),
    first=_NUMBERS,
)
def test_lineage_agrees_with_brute_force(tmp_path: Path, rows, group, batch_rows, deleted, low, first) -> None:
    names = ("id", "_row_id", "_last_updated_sequence_number")
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    location = write(tmp_path / "f.parquet", columns, group)
    found = read(
        location,
        Lineage(first_row_id=first, sequence_number=77),
        filter=bind(parse_filter(f"id >= {low}"), Schema(fields=(ID,))),
        deletes=FileDeletes(positions=BitMap64(p for p in deleted if p < len(rows))),
        batch_rows=batch_rows,
    )
    expected = [
        {
            "_pos": position,
            "_row_id": None if first is None else first + position if row_id is None else row_id,
            "id": id_,
            "_last_updated_sequence_number": None if first is None else 77 if number is None else number,
            "_file": location,
        }
        for position, (id_, row_id, number) in enumerate(rows)
        if id_ >= low and position not in deleted
    ]
    assert found == expected

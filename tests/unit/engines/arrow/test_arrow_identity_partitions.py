"""Files that lack a column they are partitioned by, read and changed in this process."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.table.table import Table
from support.tables import VERSIONS, append_without, new_catalog

pytestmark = pytest.mark.parametrize("version", VERSIONS)

CITIES = ("Oslo", "", "a/b=c d%20", None)
ROWS = [(id_, city) for id_, city in enumerate(CITIES * 3)]


def new_table(folder: Path, version: int) -> Table:
    catalog = new_catalog(folder)
    catalog.create_namespace("db")
    return catalog.create_table(
        "db.t", schema="city string, id bigint not null", partition_by=["city"], format_version=version
    )


def arrow(rows: list[tuple[int, str | None]]) -> pa.Table:
    schema = pa.schema([("city", pa.string()), pa.field("id", pa.int64(), nullable=False)])
    return pa.Table.from_pylist([{"city": city, "id": id_} for id_, city in rows], schema=schema)


def rows_of(table: Table, where: str | None = None) -> list[tuple[int, str | None]]:
    return sorted((row["id"], row["city"]) for row in table.scan(where).to_arrow().to_pylist())


@pytest.fixture
def table(tmp_path: Path, version: int) -> Table:
    found = new_table(tmp_path, version)
    append_without(found, arrow(ROWS), "city")
    return found


def test_the_partition_value_is_read_in_place_of_the_column(table: Table) -> None:
    assert table.scan().to_arrow().column_names == ["city", "id"]
    assert rows_of(table) == ROWS
    alone = table.scan(columns=["city"]).to_arrow()["city"].to_pylist()
    assert sorted(alone, key=str) == sorted((city for _, city in ROWS), key=str)


def test_files_with_and_without_the_column_are_read_together(table: Table) -> None:
    table.append(arrow([(100, "Oslo"), (101, "Rome")]))
    assert rows_of(table, "city = 'Oslo' or city = 'Rome'") == [
        *((id_, city) for id_, city in ROWS if city == "Oslo"),
        (100, "Oslo"),
        (101, "Rome"),
    ]


@pytest.mark.parametrize(
    "where", ["city = 'Oslo' and id > 4", "city = ''", "city is null", "city = 'a/b=c d%20'", "city <> '' or id < 3"]
)
def test_filters_on_it_are_exact(table: Table, where: str) -> None:
    whole = new_table(Path(table.location.removeprefix("file://")).parent / "whole", table.format_version)
    whole.append(arrow(ROWS))
    assert rows_of(table, where) == rows_of(whole, where)
    assert table.scan(where).count() == len(rows_of(whole, where))


def test_rows_are_deleted_by_it_and_the_others_keep_it(table: Table) -> None:
    table.delete("city = 'Oslo' and id > 4 or city is null and id = 3")
    kept = [(i, c) for i, c in ROWS if not (c == "Oslo" and i > 4) and not (c is None and i == 3)]
    assert rows_of(table) == kept
    table.delete("city = ''")
    assert rows_of(table) == [(i, c) for i, c in kept if c != ""]


def test_upserts_match_by_it(table: Table) -> None:
    table.upsert(arrow([(4, "Oslo"), (4, "Rome")]), on=["city", "id"])
    assert rows_of(table) == sorted([*ROWS, (4, "Rome")], key=lambda row: (row[0], str(row[1])))
    table.upsert(arrow([(0, "Rome")]), on=["id"])
    assert rows_of(table, "id = 0") == [(0, "Rome")]


def test_nan_is_a_partition_value(tmp_path: Path, version: int) -> None:
    catalog = new_catalog(tmp_path)
    catalog.create_namespace("db")
    made = catalog.create_table("db.x", schema="id int, x double", partition_by=["x"], format_version=version)
    append_without(made, pa.table({"id": pa.array([1, 2, 3], pa.int32()), "x": [math.nan, 1.5, None]}), "x")
    found = {row["id"]: row["x"] for row in made.scan().to_arrow().to_pylist()}
    assert math.isnan(found.pop(1))
    assert found == {2: 1.5, 3: None}
    made.delete("x > 100")
    assert sorted(made.scan().to_arrow()["id"].to_pylist()) == [2, 3]


def test_the_column_may_be_required_and_renamed_files_are_found_by_id(tmp_path: Path, version: int) -> None:
    catalog = new_catalog(tmp_path)
    catalog.create_namespace("db")
    made = catalog.create_table("db.r", schema="day date not null, n int", partition_by=["day"], format_version=version)
    days = pa.array([0, 1, 1], pa.int32()).cast(pa.date32())
    fields = [pa.field("day", pa.date32(), nullable=False), pa.field("n", pa.int32())]
    append_without(made, pa.table([days, pa.array([1, 2, 3], pa.int32())], schema=pa.schema(fields)), "day")
    assert sorted(made.scan("day > '1970-01-01'").to_arrow()["n"].to_pylist()) == [2, 3]
    made.delete("n = 2")
    assert made.scan().to_arrow().sort_by("n")["day"].cast(pa.int32()).to_pylist() == [0, 1]

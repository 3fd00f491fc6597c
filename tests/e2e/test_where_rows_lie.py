"""Columns that a table has without storing them: where a row lies, its partition, and whether it was deleted."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefloe
from icefloe.errors import InputError
from icefloe.model.metadata.version_rules import WRITABLE

VERSIONS = pytest.mark.parametrize("version", WRITABLE)
FORMATS = pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])


def new_table(folder: Path, version: int, partition_by: tuple[str, ...] = ("city",), **properties: str) -> Any:
    catalog = icefloe.catalog("t", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")
    schema = "id bigint, city string, day date"
    return catalog.create_table(
        "db.t", schema=schema, partition_by=list(partition_by), format_version=version, properties=properties
    )


def rows(*ids: int, city: str | None = "Oslo", day: int = 1) -> pa.Table:
    days = pa.array([dt.date(2026, 3, day)] * len(ids))
    return pa.table({"id": pa.array(ids, pa.int64()), "city": pa.array([city] * len(ids), pa.string()), "day": days})


def by_id(table: Any, *columns: str, where: str | None = None) -> dict[int, Any]:
    found = table.scan(where, columns=["id", *columns]).to_arrow().to_pylist()
    return {row["id"]: tuple(row[name] for name in columns) for row in found}


@VERSIONS
def test_rows_tell_the_partition_and_the_spec_of_their_file(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version)
    table.append(rows(1, 2))
    table.append(rows(3, city=None))
    with table.update_partitioning() as edit:
        edit.add("month(day)")
    table.append(rows(4, city="Rome"))
    old = {"city": "Oslo", "day_month": None}
    assert by_id(table, "_spec_id", "_partition") == {
        1: (0, old),
        2: (0, old),
        3: (0, {"city": None, "day_month": None}),
        4: (1, {"city": "Rome", "day_month": (2026 - 1970) * 12 + 2}),
    }
    assert by_id(table, "_partition", where="id = 2") == {2: (old,)}


@VERSIONS
def test_partition_fields_of_one_name_are_told_apart(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version, partition_by=("bucket(4, id)",))
    table.append(rows(1))
    with table.update_partitioning() as edit:
        edit.remove("id_bucket")
    with table.update_partitioning() as edit:
        edit.add("bucket(8, id)", name="id_bucket")
    table.append(rows(2))
    type_ = table.scan(columns=["_partition"]).to_arrow().schema.field("_partition").type
    assert len(type_) == 2
    assert "id_bucket" in [field.name for field in type_]
    for (found,) in by_id(table, "_partition").values():
        assert sum(value is not None for value in found.values()) == 1


@FORMATS
@VERSIONS
def test_deleted_rows_come_back_marked_when_that_is_asked_for(tmp_path: Path, version: int, file_format: str) -> None:
    modes = {} if version == 1 else {"write.delete.mode": "merge-on-read"}
    table = new_table(tmp_path, version, (), **modes, **{"write.format.default": file_format})
    table.append(rows(*range(6)))
    table.delete("id = 2 or id = 4")
    if version > 1:
        table.upsert(rows(5, city="Bern"), on=["id"], deletes="equality")
    marked = [(row["id"], row["city"], row["_deleted"]) for row in everything(table, None)]
    gone = [] if version == 1 else [(2, "Oslo", True), (4, "Oslo", True), (5, "Oslo", True)]
    left = [(0, "Oslo", False), (1, "Oslo", False), (3, "Oslo", False)]
    last = (5, "Oslo", False) if version == 1 else (5, "Bern", False)
    assert sorted(marked) == sorted([*left, *gone, last])
    assert [row["id"] for row in everything(table, "id > 3 and city = 'Oslo'")] == ([5] if version == 1 else [4, 5])
    assert table.scan(columns=["id", "_deleted"]).count() == len(marked)
    assert table.scan(columns=["_deleted"]).to_arrow().num_rows == len(marked)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 3, 5]


def everything(table: Any, where: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan(where, columns=["id", "city", "_deleted"]).to_arrow().to_pylist()
    return found


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_file_without_a_row_left_still_tells_what_was_deleted(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version, (), **{"write.delete.mode": "merge-on-read"})
    table.append(rows(1, 2, 3))
    table.delete("id between 1 and 2")
    table.upsert(rows(3, city="Bern"), on=["id"], deletes="equality")
    found = table.scan(columns=["id", "_deleted", "_pos"]).to_arrow()
    assert sorted(map(tuple, (row.values() for row in found.to_pylist()))) == [
        *((1, True, 0), (2, True, 1), (3, False, 0), (3, True, 2))
    ]


def test_a_table_without_partitions_has_no_partition_column(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2, ())
    table.append(rows(1))
    with pytest.raises(InputError, match="no column '_partition': the table is not partitioned"):
        table.scan(columns=["_partition"]).to_arrow()
    assert by_id(table, "_spec_id") == {1: (0,)}

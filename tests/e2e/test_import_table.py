"""A folder of data files becomes a table: by reference, or with its rows written anew (spec: Column Projection)."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

import icefloe
from icefloe.formats.importing.stated_partitions import HIVE_NULL
from support.tables import new_catalog

MODES = ("reference", "rewrite")


@pytest.fixture
def cat(tmp_path: Path) -> icefloe.Catalog:
    return new_catalog(tmp_path)


def written(folder: Path, files: Mapping[str, pa.Table]) -> str:
    """Write one Parquet file for each path in the folder."""
    for name, rows in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, folder / name)
    return str(folder)


def rows_of(table: icefloe.Table, key: str = "id") -> list[dict[str, object]]:
    return table.scan().to_arrow().sort_by(key).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_the_columns_of_all_files_are_in_the_table(
    cat: icefloe.Catalog, tmp_path: Path, mode: str, version: int
) -> None:
    folder = written(
        tmp_path / "in",
        {
            "a.parquet": pa.table({"id": pa.array([1, 2], pa.int32()), "note": ["a", "b"]}),
            "b.parquet": pa.table({"id": pa.array([3], pa.int64()), "size": [1.5]}),
        },
    )
    table = cat.import_table("db.t", folder, mode=mode, format_version=version)  # type: ignore[arg-type]
    assert [(field.name, str(field.type)) for field in table.schema.fields] == [
        ("id", "long"),
        ("note", "string"),
        ("size", "double"),
    ]
    assert rows_of(table) == [
        {"id": 1, "note": "a", "size": None},
        {"id": 2, "note": "b", "size": None},
        {"id": 3, "note": None, "size": 1.5},
    ]
    assert len(table.snapshots) == 1
    inside = [location.startswith(table.location) for location in table.scan().plan().tasks["location"].to_pylist()]
    assert all(inside) if mode == "rewrite" else not any(inside)


@pytest.mark.parametrize("mode", MODES)
def test_the_columns_of_paths_partition_the_table(cat: icefloe.Catalog, tmp_path: Path, mode: str) -> None:
    rows = pa.table({"id": [1]})
    paths = ("year=2025/day=2025-11-15/code=01/a.parquet", f"year=2026/day={HIVE_NULL}/code=x/b.parquet")
    folder = written(tmp_path / "in", dict.fromkeys(paths, rows))
    table = cat.import_table("db.t", folder, mode=mode)  # type: ignore[arg-type]
    assert [field.name for field in table.spec.fields] == ["year", "day", "code"]
    assert rows_of(table, "year") == [
        {"id": 1, "year": 2025, "day": datetime.date(2025, 11, 15), "code": "01"},
        {"id": 1, "year": 2026, "day": None, "code": "x"},
    ]


def test_rewritten_rows_can_have_another_partitioning_and_order(cat: icefloe.Catalog, tmp_path: Path) -> None:
    folder = written(tmp_path / "in", {"year=2025/a.parquet": pa.table({"id": [3, 1, 2]})})
    table = cat.import_table("db.t", folder, mode="rewrite", partition_by=["truncate(2, id)"], sort_by=["id"])
    assert [field.name for field in table.spec.fields] == ["id_trunc"]
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == [1, 2, 3]
    assert table.scan("id = 1").plan().files == 1


@pytest.mark.parametrize("mode", MODES)
def test_orc_folders_are_imported(cat: icefloe.Catalog, tmp_path: Path, mode: str) -> None:
    (tmp_path / "in").mkdir()
    po.write_table(pa.table({"id": [1, 2], "note": ["a", None]}), tmp_path / "in/a.orc")
    table = cat.import_table("db.t", str(tmp_path / "in"), mode=mode)  # type: ignore[arg-type]
    assert rows_of(table) == [{"id": 1, "note": "a"}, {"id": 2, "note": None}]


def test_a_stated_schema_is_used(cat: icefloe.Catalog, tmp_path: Path) -> None:
    folder = written(tmp_path / "in", {"a.parquet": pa.table({"id": pa.array([1], pa.int32())})})
    table = cat.import_table("db.t", folder, schema="id bigint, note string")
    assert rows_of(table) == [{"id": 1, "note": None}]


def test_a_folder_that_does_not_fit_creates_no_table(cat: icefloe.Catalog, tmp_path: Path) -> None:
    folder = written(tmp_path / "in", {"a.parquet": pa.table({"id": [1]}), "b.parquet": pa.table({"id": ["x"]})})
    with pytest.raises(icefloe.InputError, match="have columns of different types"):
        cat.import_table("db.t", folder)
    assert not cat.table_exists("db.t")


def test_folders_with_different_partition_names_are_refused(cat: icefloe.Catalog, tmp_path: Path) -> None:
    folder = written(tmp_path / "in", dict.fromkeys(("year=1/a.parquet", "month=1/b.parquet"), pa.table({"id": [1]})))
    with pytest.raises(icefloe.InputError, match="must have the same names"):
        cat.import_table("db.t", folder)


def test_files_of_two_formats_are_refused(cat: icefloe.Catalog, tmp_path: Path) -> None:
    folder = written(tmp_path / "in", {"a.parquet": pa.table({"id": [1]})})
    po.write_table(pa.table({"id": [1]}), tmp_path / "in/b.orc")
    with pytest.raises(icefloe.InputError, match="several formats, orc, parquet"):
        cat.import_table("db.t", folder)


def test_an_empty_folder_and_an_unknown_mode_are_refused(cat: icefloe.Catalog, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(icefloe.NoSuchFile, match="there is no file at"):
        cat.import_table("db.t", str(tmp_path / "none"))
    folder = written(tmp_path / "in", {"a.parquet": pa.table({"id": [1]})})
    with pytest.raises(icefloe.InputError, match="give 'reference' or 'rewrite'"):
        cat.import_table("db.t", folder, mode="copy")  # type: ignore[arg-type]
    assert not cat.table_exists("db.t")


def test_equal_signs_above_the_folder_are_no_partition_columns(cat: icefloe.Catalog, tmp_path: Path) -> None:
    folder = written(tmp_path / "run=7" / "in", {"year=2025/a.parquet": pa.table({"id": [1]})})
    assert rows_of(cat.import_table("db.t", folder)) == [{"id": 1, "year": 2025}]


def test_files_of_an_iceberg_table_are_refused(cat: icefloe.Catalog, tmp_path: Path) -> None:
    table = cat.create_table("db.t", schema="id bigint, note string", data=pa.table({"id": [1], "note": ["a"]}))
    with pytest.raises(icefloe.InputError, match="has field ids, so it was written for an Iceberg table"):
        cat.import_table("db.copy", f"{table.location}/data", mode="rewrite")

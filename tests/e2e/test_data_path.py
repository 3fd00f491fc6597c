"""The property ``write.data.path``: new data and delete files are written there and read back."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.errors import InputError
from icefloe.table.catalog import catalog
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from support.tables import VERSIONS, new_catalog, stored_by_others

PATH = "write.data.path"


def new_table(folder: Path, version: int = 2) -> Table:
    return new_catalog(folder).create_table("db.t", "id bigint, note string", format_version=version)


def rows(*ids: int, note: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "note": [note] * len(ids)})


def read(table: Table) -> list[tuple[int, str]]:
    return sorted((row["id"], row["note"]) for row in table.scan().to_arrow().to_pylist())


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("slash", ["", "/"])
def test_rows_written_under_the_data_path_are_read_back(tmp_path: Path, version: int, slash: str) -> None:
    table, elsewhere = new_table(tmp_path, version), tmp_path / "elsewhere"
    table.append(rows(1, 2))
    before = files_below(tmp_path / "warehouse/db/t/data")
    table.set_properties({PATH: f"file://{elsewhere}{slash}", "write.delete.mode": "merge-on-read"})
    table.append(rows(3, 4, 5))
    table.delete("id = 3")
    table.update({"note": "'b'"}, where="id = 4")
    merge = table.merge(rows(5, 6, note="c"), on="t.id = s.id").when_matched_update_all()
    merge.when_not_matched_insert_all().execute()
    if version > 1:
        table.upsert(rows(6, note="d"), on=["id"], deletes="equality")
    seen = new_catalog(tmp_path).load_table("db.t")
    assert read(seen) == [(1, "a"), (2, "a"), (4, "b"), (5, "c"), (6, "d" if version > 1 else "c")]
    assert files_below(tmp_path / "warehouse/db/t/data") == before
    assert all("/" not in file for file in files_below(elsewhere))
    assert len(files_below(elsewhere)) >= 4
    assert check_table(seen) == []


def test_a_data_path_inside_a_transaction_holds_for_the_steps_after_it(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with table.transaction() as work:
        work.set_properties({PATH: f"file://{tmp_path}/elsewhere"})
        work.append(rows(1))
    assert read(new_catalog(tmp_path).load_table("db.t")) == [(1, "a")]
    assert len(files_below(tmp_path / "elsewhere")) == 1


def test_files_under_the_data_path_are_deleted_when_the_operation_fails(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    table.set_properties({PATH: f"file://{tmp_path}/elsewhere"})
    bad = pa.table({"id": [1, 2], "note": ["x", "y"], "n": [0, 1]})
    merge = table.merge(bad, on="t.id = s.id").when_matched_update({"note": "cast(1 / s.n AS string)"})
    with pytest.raises(InputError, match="division by zero"):
        merge.when_not_matched_insert_all().execute()
    assert files_below(tmp_path / "elsewhere") == set()


def test_purge_leaves_the_files_under_a_data_path_and_lists_them(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.set_properties({PATH: f"file://{tmp_path}/elsewhere"})
    table.append(rows(1))
    dropped = new_catalog(tmp_path).drop_table("db.t", purge=True)
    assert {location.rsplit("/", 1)[1] for location in dropped.left} == files_below(tmp_path / "elsewhere")


def test_a_data_path_that_is_not_absolute_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for path in ("data2", "../elsewhere", "file://x/../y"):
        with pytest.raises(InputError, match=r"write\.data\.path: expected an absolute location"):
            table.set_properties({PATH: path})
    stored_by_others(table, {PATH: "data2"})
    with pytest.raises(InputError, match=r"write\.data\.path: expected an absolute location"):
        table.append(rows(1))
    assert read(table) == []


def test_a_catalog_with_allowed_roots_writes_only_below_them(tmp_path: Path) -> None:
    new_table(tmp_path).set_properties({PATH: f"file://{tmp_path}/elsewhere"})
    names = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    strict = catalog("lake", **names, properties={"allowed-roots": f"file://{tmp_path}/other"})
    with pytest.raises(InputError, match="refused to"):
        strict.load_table("db.t").append(rows(1))
    assert files_below(tmp_path / "elsewhere") == set()
    open_ = catalog("lake", **names, properties={"allowed-roots": f"file://{tmp_path}/elsewhere"})
    open_.load_table("db.t").append(rows(1))
    assert read(open_.load_table("db.t")) == [(1, "a")]

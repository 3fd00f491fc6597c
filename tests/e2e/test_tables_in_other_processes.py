"""Tables and scans that are pickled: for multiprocessing, and for functions that Spark runs in its tasks."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import icefloe
from icefloe.catalogs.sql import SqlCatalog
from icefloe.errors import UnsupportedError
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.tables import VERSIONS, new_catalog

pytestmark = pytest.mark.slow


def table_in_database(folder: Path, version: int) -> Table:
    return new_catalog(folder).create_table("db.t", schema="id bigint", format_version=version)


def table_in_folder(folder: Path, version: int) -> Table:
    catalog = icefloe.catalog("files", uri=f"file://{folder}/wh")
    catalog.create_table("db.t", schema="id bigint", format_version=version)
    return icefloe.open_table(f"{folder}/wh/db/t")


def numbers(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def copied(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("made", [table_in_database, table_in_folder])
def test_a_pickled_table_has_its_state_and_can_be_refreshed_and_changed(
    tmp_path: Path, made: Callable[[Path, int], Table], version: int
) -> None:
    """TypeError: cannot pickle '_thread.lock' object."""
    table = made(tmp_path, version)
    table.append(numbers(1, 2, 3))
    table.delete("id = 2")
    other, scan, at, changes = map(copied, (table, table.scan("id > 1"), table.at(), table.changes()))
    table.append(numbers(4))
    assert sorted(other.scan().to_arrow()["id"].to_pylist()) == [1, 3]
    assert scan.to_arrow()["id"].to_pylist() == [3]
    assert (scan.plan().files, at.scan().count(), changes.count()) == (table.scan("id = 3").plan().files, 2, 4)
    assert other.refresh().scan().count() == 3
    other.append(numbers(5))
    assert table.refresh().scan().count() == 4
    assert pickle.loads(cloudpickle.dumps(lambda: other.scan().count()))() == 4, "as a function of Spark's tasks"
    assert copied(table.inspect).files().num_rows == table.inspect.files().num_rows


def count_of(scan: icefloe.Scan) -> int:
    return scan.count()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_scans_are_read_by_other_processes(tmp_path: Path) -> None:
    table = table_in_database(tmp_path, 4)
    table.append(numbers(*range(10)))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(count_of, [table.scan("id < 3"), table.scan("id >= 3")]) == [3, 7]


def test_tables_in_memory_say_that_they_belong_to_one_process() -> None:
    table = icefloe.catalog("pickles", uri="memory://pickles").create_table("db.t", schema="id bigint")
    for value in (table, table.scan(), table.at()):
        with pytest.raises(UnsupportedError, match=r"belongs? to one process and cannot be opened by another"):
            pickle.dumps(value)


def test_a_pickle_reaches_the_storage_with_the_keys_that_the_catalog_has(tmp_path: Path) -> None:
    """The page on reading says that a pickle contains them; nothing shows them."""
    catalog = icefloe.catalog(
        "keys",
        uri=f"sqlite:///{tmp_path}/cat.db",
        warehouse=f"file://{tmp_path}/wh",
        properties={"s3.secret-access-key": "hidden"},
    )
    table = catalog.create_table("db.t", schema="id bigint")
    other = copied(table)
    assert pointer_of(other).settings["s3.secret-access-key"] == "hidden"
    assert isinstance(pointer_of(other).catalog, SqlCatalog)
    assert "hidden" not in repr(other) + repr(other.scan()) + repr(pointer_of(other).catalog)

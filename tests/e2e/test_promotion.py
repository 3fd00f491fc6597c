"""A column promoted by another program while icefloe was writing: old bounds, old files and new ones get along."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import LongType

from icefloe.commit.intent import Append
from icefloe.commit.loop import commit
from icefloe.engines.arrow.engine import ArrowEngine
from tables import new_catalog


def rows(number: int, type_: pa.DataType) -> pa.Table:
    return pa.table({"id": pa.array([number], type_), "note": [str(number)]})


def test_files_written_before_a_promotion_are_committed_after_it(tmp_path):
    table = new_catalog(tmp_path).create_table("db.t", schema="id int, note string", partition_by=["id"])
    table.append(rows(1, pa.int32()))
    late = Append(added=ArrowEngine().write(table._pointer.io, rows(2, pa.int32()), table.metadata))
    warehouse = f"file://{tmp_path}/warehouse"
    other = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=warehouse).load_table("db.t")
    with other.update_schema() as update:
        update.update_column("id", LongType())

    commit(table._pointer, late)
    table.append(rows(2**40, pa.int64()))

    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 2**40]
    assert table.scan("id > 5").plan().files == 1
    assert table.delete("id = 1").rows_deleted == 1
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 2**40]
    other.refresh()
    assert sorted(other.scan().to_arrow()["id"].to_pylist()) == [2, 2**40]

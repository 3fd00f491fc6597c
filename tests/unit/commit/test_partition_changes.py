"""Changes of the partitioning in a transaction that writes files for it, while other commits change the table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.errors import ConflictError
from icefloe.table.table import Table
from icefloe.table.transaction import Transaction
from icefloe.testing.check import check_table
from support.tables import VERSIONS, new_catalog

pytestmark = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def table(tmp_path, version) -> Table:
    made = new_catalog(tmp_path).create_table(
        "db.t",
        schema="id bigint, a bigint, b bigint",
        format_version=version,
        properties={"commit.root.max-data-files": "0"},
    )
    made.append(pa.table({"id": [0], "a": [0], "b": [0]}))
    return made


def partitioned(table: Table, by: str) -> Transaction:
    """A transaction that partitions the table and adds two rows in the new partitions."""
    tx = table.transaction()
    with tx.update_partitioning() as edit:
        edit.add(by)
    tx.append(pa.table({"id": [1, 2], "a": [10, 20], "b": [1, 2]}))
    return tx


def ids(table: Table, where: str | None = None) -> list[int]:
    return sorted(table.scan(where).to_arrow()["id"].to_pylist())


def test_files_keep_their_meaning_when_a_field_came_and_went_meanwhile(table):
    """The default spec was the same again, but its successor's id was taken: the files were under the spec of another
    column, and filters on that column lost their rows."""
    tx = partitioned(table, "a")
    with table.update_partitioning() as edit:
        edit.add("b")
    with table.update_partitioning() as edit:
        edit.remove("b")
    with pytest.raises(ConflictError, match="partition spec"):
        tx.commit()
    assert ids(table) == [0]


def test_a_new_partition_never_moves_to_a_column_that_took_the_name(table):
    """Another commit exchanged the names of two columns: the spec was made of the other one, and filters lost rows."""
    tx = partitioned(table, "a")
    with table.update_schema() as edit:
        edit.rename_column("a", "x")
    with table.update_schema() as edit:
        edit.rename_column("b", "a")
    with pytest.raises(ConflictError, match="partition spec"):
        tx.commit()
    assert ids(table) == [0]


def test_a_change_of_the_schema_meanwhile_is_a_conflict(table):
    """The new spec was committed over a change of the schema, and a dropped source was no conflict to try again."""
    for change in (
        lambda schema: schema.add_column("c", "int"),
        lambda schema: schema.set_doc("a", "another text"),
        lambda schema: schema.drop_column("a"),
    ):
        edit = table.update_partitioning()
        edit.add("truncate(10, a)")
        with table.update_schema() as schema:
            change(schema)
        with pytest.raises(ConflictError, match=r"changed the schema from \d to \d, so the partition spec"):
            edit.commit()
        assert table.spec.fields == ()


def test_leaves_are_written_again_when_their_expression_gets_another_id(table):
    """A column that came and went meanwhile took the id of the new expression: the leaf of the first attempt stayed as
    it was, and nobody could scan the V4 table any more."""
    tx = partitioned(table, "bucket(4, id)")
    with table.update_schema() as edit:
        edit.add_column("c", "int")
    with table.update_schema() as edit:
        edit.drop_column("c")
    assert tx.commit().attempts == 2
    assert ids(table) == [0, 1, 2]
    assert [ids(table, f"id = {i}") for i in range(3)] == [[0], [1], [2]]
    assert check_table(table) == []

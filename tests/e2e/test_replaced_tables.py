"""A table is created with its first rows, and replaced with other columns, partitioning and rows, as one commit."""

from __future__ import annotations

from itertools import count

import pyarrow as pa
import pytest

import icefloe
from icefloe.errors import AlreadyExists, ConflictError, UnsupportedError
from icefloe.table import new_rows
from icefloe.table.transaction import Transaction

NUMBERS = count()  # catalogs in memory of one name have the same tables
ROWS = pa.table({"id": [1, 2], "city": ["Oslo", "Rome"]})


def catalog() -> icefloe.Catalog:
    return icefloe.catalog(f"replaced {next(NUMBERS)}", uri="memory://")


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_table_is_created_with_its_first_rows(version: int) -> None:
    cat = catalog()
    table = cat.create_table(
        "db.t", schema="id bigint, city string", partition_by=["city"], format_version=version, data=ROWS
    )
    assert table.scan().count() == 2
    assert len(table.snapshots) == 1
    with pytest.raises(AlreadyExists):
        cat.create_table("db.t", schema="id bigint, city string", data=ROWS)
    assert cat.load_table("db.t").scan().count() == 2


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_replaced_table_keeps_its_history(version: int) -> None:
    cat = catalog()
    table = cat.create_table(
        "db.t", schema="id bigint, city string", partition_by=["city"], format_version=version, data=ROWS
    )
    table.set_properties({"owner": "me"})
    uuid, first = table.metadata.table_uuid, table.snapshots[0].snapshot_id
    replaced = cat.replace_table(
        "db.t",
        schema="city int not null, n double",
        partition_by=["bucket(2, city)"],
        properties={"team": "sales"},
        data=pa.table(
            {"city": pa.array([7], pa.int32()), "n": [0.5]},
            schema=pa.schema([pa.field("city", pa.int32(), nullable=False), pa.field("n", pa.float64())]),
        ),
    )
    assert replaced.scan("city = 7").to_arrow().to_pylist() == [{"city": 7, "n": 0.5}]
    assert replaced.at(snapshot=first).scan("city = 'Oslo'").to_arrow().to_pylist() == [{"id": 1, "city": "Oslo"}]
    assert replaced.metadata.table_uuid == uuid
    assert (replaced.properties["owner"], replaced.properties["team"]) == ("me", "sales")
    assert [snapshot.operation.value for snapshot in replaced.snapshots] == ["append", "overwrite"]
    again = cat.load_table("db.t")
    assert again.scan().count() == 1
    assert (
        again.append(
            pa.table(
                {"city": pa.array([8], pa.int32())}, schema=pa.schema([pa.field("city", pa.int32(), nullable=False)])
            )
        ).rows_added
        == 1
    )


def test_columns_of_the_same_name_and_type_keep_their_ids_and_partitioning() -> None:
    cat = catalog()
    before = cat.create_table("db.t", schema="id bigint, city string", partition_by=["city"], data=ROWS)
    after = cat.replace_table("db.t", schema="city string, extra int, id int", partition_by=["city"])
    assert after.scan().count() == 0
    assert {column.name: column.id for column in after.schema.fields} == {"city": 2, "extra": 3, "id": 4}
    assert after.spec.fields == before.spec.fields


def test_a_partitioned_table_of_version_1_is_not_replaced() -> None:
    cat = catalog()
    cat.create_table("db.t", schema="id bigint, city string", partition_by=["city"], format_version=1, data=ROWS)
    with pytest.raises(UnsupportedError, match="version 1 cannot be replaced"):
        cat.replace_table("db.t", schema="id bigint")
    assert cat.load_table("db.t").scan().count() == 2


def test_a_replacement_conflicts_with_another_change_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    cat = catalog()
    cat.create_table("db.t", schema="id bigint, city string", data=ROWS)

    class Interrupted(Transaction):
        def commit(self) -> icefloe.CommitResult:
            with cat.load_table("db.t").update_schema() as edit:
                edit.add_column("late", "int")
            return super().commit()

    monkeypatch.setattr(new_rows, "Transaction", Interrupted)
    with pytest.raises(ConflictError, match="another commit changed columns"):
        cat.replace_table("db.t", schema="other int")
    assert [field.name for field in cat.load_table("db.t").schema.fields] == ["id", "city", "late"]

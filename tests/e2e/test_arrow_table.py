"""A table through the public surface on Arrow: every format version that can be written, both catalogs."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from icefloe.errors import AlreadyExists, InputError, NoSuchSnapshot, NoSuchTable
from support.tables import VERSIONS, new_catalog, sorted_rows

pytestmark = pytest.mark.parametrize("version", VERSIONS)
SCHEMA = "id bigint not null, ts timestamp, city string, amount double"
PARTITIONS = ["day(ts)", "bucket(4, id)", "city"]


def orders(*ids: int, city: str | None = "Oslo", day: int = 1) -> pa.Table:
    moment = datetime(2026, 11, day, 12, tzinfo=UTC)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "ts": pa.array([moment] * len(ids), pa.timestamp("us", tz="UTC")),
            "city": pa.array([city] * len(ids), pa.string()),
            "amount": pa.array([i / 2 for i in ids], pa.float64()),
        }
    )


@pytest.fixture
def table(version, tmp_path):
    return new_catalog(tmp_path).create_table(
        "db.orders", schema=SCHEMA, partition_by=PARTITIONS, format_version=version
    )


def ids(scan) -> list[int]:
    return sorted(scan.to_arrow()["id"].to_pylist())


def test_a_new_table_is_empty(table):
    assert table.scan().to_arrow().num_rows == 0
    assert table.scan().count() == 0
    assert table.scan().to_arrow().column_names == ["id", "ts", "city", "amount"]


def test_rows_come_back_as_they_went_in(table):
    table.append(orders(1, 2, 3))
    table.append(orders(4, city=None, day=2))
    found = table.scan().to_arrow()
    assert sorted_rows(found) == sorted_rows(pa.concat_tables([orders(1, 2, 3), orders(4, city=None, day=2)]))


def test_an_append_says_what_it_did(table):
    result = table.append(orders(1, 2, 3))
    assert (result.rows_added, result.operation, result.attempts) == (3, "append", 1)
    tasks = table.scan().plan().tasks
    assert result.files_added == tasks.num_rows > 0
    assert result.data_bytes_written == sum(tasks["file_size_in_bytes"].to_pylist())
    assert str(result.snapshot_id) in repr(result)


def test_an_empty_append_makes_no_snapshot(table):
    assert table.append(orders()).snapshot_id is None
    assert table.snapshots == ()


def test_a_filter_and_a_projection_return_what_was_asked_for(table):
    table.append(orders(1, 2, 3))
    table.append(orders(7, 8, city="Rome", day=3))
    found = table.scan("id >= 3 and city = 'Rome'", columns=["amount"]).to_arrow()
    assert found.column_names == ["amount"]
    assert sorted(found["amount"].to_pylist()) == [3.5, 4.0]


@pytest.mark.parametrize(
    ("where", "files"),
    [("id = 20", 1), ("amount > 100", 0), ("ts >= '2026-11-03T00:00:00+00:00'", 2), ("city = 'Rome'", 1)],
)
def test_files_that_cannot_match_are_not_planned(version, tmp_path, where, files):
    table = new_catalog(tmp_path).create_table("db.t", schema=SCHEMA, partition_by=["day(ts)"], format_version=version)
    table.append(orders(1, 2, day=1))
    table.append(orders(10, 20, day=3))
    table.append(orders(100, 150, city="Rome", day=4))
    plan = table.scan(where).plan()
    assert plan.files == files
    assert plan.files + plan.files_skipped + plan.manifests_skipped == 3  # one file per append, and per manifest in v2


def test_a_delete_removes_matching_rows_and_keeps_nulls(table):
    table.append(orders(1, 2, 3))
    table.append(orders(4, 5, city=None))
    result = table.delete("city = 'Oslo' and id < 3")
    assert result.rows_deleted == 2
    assert ids(table.scan()) == [3, 4, 5]
    table.delete("city != 'Paris'")
    assert ids(table.scan()) == [4, 5]


def test_deleting_twice_merges(table):
    table.append(orders(*range(20)))
    table.delete("id < 5")
    result = table.delete("id < 8")
    assert result.rows_deleted == 3
    assert ids(table.scan()) == list(range(8, 20))
    assert table.scan().count() == 12


def test_a_file_leaves_the_table_with_its_last_row(version, tmp_path):
    table = new_catalog(tmp_path).create_table("db.t", schema=SCHEMA, format_version=version)
    table.append(orders(1, 2, 3))
    table.delete("id = 2")
    result = table.delete("id = 1 or id = 3")
    assert (result.files_removed, result.rows_deleted, result.vectors_added) == (1, 2, 0)
    assert table.scan().plan().files == 0


def test_a_delete_without_matches_makes_no_snapshot(table):
    table.append(orders(1))
    assert table.delete("id = 99").snapshot_id is None
    assert len(table.snapshots) == 1


def test_deleting_everything_leaves_an_empty_table(table):
    table.append(orders(1, 2))
    table.delete("true")
    assert table.scan().to_arrow().num_rows == 0
    table.append(orders(3))
    assert ids(table.scan()) == [3]


def test_the_past_can_be_read(table):
    first = table.append(orders(1)).snapshot_id
    table.append(orders(2))
    table.delete("id = 1")
    assert ids(table.at(snapshot=first).scan()) == [1]
    assert ids(table.at(branch="main").scan()) == [2]
    taken = datetime.fromtimestamp(table.snapshots[1].timestamp_ms / 1000, UTC)
    assert 2 in ids(table.at(timestamp=taken).scan())
    with pytest.raises(NoSuchSnapshot, match="42"):
        table.at(snapshot=42)
    with pytest.raises(InputError, match="time zone"):
        table.at(timestamp=datetime(2026, 1, 1))
    with pytest.raises(NoSuchSnapshot):
        table.at(timestamp="1999-01-01T00:00:00+00:00")


def test_a_scan_keeps_its_snapshot(table):
    table.append(orders(1))
    scan = table.scan()
    table.append(orders(2))
    assert ids(scan) == [1]


def test_another_handle_sees_the_same_table(table, tmp_path):
    table.append(orders(1, 2))
    other = new_catalog(tmp_path).load_table("db.orders")
    other.append(orders(3))
    assert ids(table.refresh().scan()) == ids(other.scan()) == [1, 2, 3]


def test_summaries_carry_the_totals(table):
    table.append(orders(1, 2, 3))
    table.append(orders(4, 5))
    table.delete("id = 5")
    summary = table.snapshots[1].summary
    assert summary["operation"] == "append"
    assert (summary["added-records"], summary["total-records"]) == ("2", "5")
    last = table.snapshots[2].summary
    assert int(last["total-records"]) - int(last["total-position-deletes"]) == 4


def test_removing_a_file_removes_its_rows(table):
    table.append(orders(1))
    table.append(orders(2))
    (doomed,) = table.scan("id = 1").plan().tasks["location"].to_pylist()
    table.remove_files([doomed])
    assert ids(table.scan()) == [2]


def test_wrong_rows_are_refused_by_name(table):
    with pytest.raises(InputError, match="colour"):
        table.append(orders(1).append_column("colour", pa.array(["red"])))
    with pytest.raises(InputError, match="id"):
        table.append(orders(1).set_column(0, "id", pa.array([None], pa.int64())))
    with pytest.raises(InputError, match="no column 'size'"):
        table.scan("size > 1").to_arrow()
    assert table.snapshots == ()


def test_names_are_checked(table, tmp_path):
    catalog = new_catalog(tmp_path)
    with pytest.raises(AlreadyExists):
        catalog.create_table("db.orders", schema="id int")
    with pytest.raises(NoSuchTable, match=r"db\.orders"):
        catalog.load_table("db.order")
    assert catalog.list_tables("db") == ["db.orders"]


def test_lists_maps_and_structs_round_trip(version, tmp_path):
    schema = "id int, tags array<string>, scores map<string, double>, place struct<city: string, zip: int>"
    table = new_catalog(tmp_path).create_table("db.nested", schema=schema, format_version=version)
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "tags": pa.array([["a", None], None], pa.list_(pa.string())),
            "scores": pa.array([[("x", 1.5)], []], pa.map_(pa.string(), pa.float64())),
            "place": pa.array(
                [{"city": "Oslo", "zip": None}, None], pa.struct([("city", pa.string()), ("zip", pa.int32())])
            ),
        }
    )
    table.append(rows)
    assert table.scan().to_arrow().to_pylist() == rows.to_pylist()
    assert table.scan("place.city = 'Oslo'", columns=["id"]).to_arrow()["id"].to_pylist() == [1]


def test_a_new_table_never_shares_the_folder_of_an_old_one(version, tmp_path):
    catalog = new_catalog(tmp_path)
    old = catalog.create_table("db.t", schema=SCHEMA, format_version=version)
    old.append(orders(1))
    place = old.location
    catalog.drop_table("db.t")
    new = catalog.create_table("db.t", schema=SCHEMA, format_version=version)
    assert new.location != place
    assert new.scan().count() == 0

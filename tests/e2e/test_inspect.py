"""Metadata tables of whole tables, compared with data files that are read one by one."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from icefloe.errors import InputError, NoSuchSnapshot
from icefloe.inspect.metadata_tables.tables import METADATA_TABLES
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.people import COPY, EACH_MODE, MERGE, new_table, people
from support.tables import VERSIONS, reopened

SMALL_ROOTS = {"commit.root.max-data-files": "3"}  # so that version 4 writes leaves and manifest deletion vectors


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


@pytest.fixture(params=EACH_MODE)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """Files of two specs, removed and changed rows, a branch and a tag."""
    version, mode = request.param
    table = new_table(tmp_path, version, mode, partition_by=("city",))
    table.set_properties(SMALL_ROOTS)
    for number in range(6):
        table.append(people(10 * number, 10 * number + 1, city=("Oslo", None)[number % 2], amount=number))
    table.tag("v1")
    table.delete("id in (0, 20, 21)")
    with table.update_partitioning() as edit:
        edit.add("bucket(2, id)", name="shard")
    table.append(people(100, 101, 102, city="Rome"))
    table.append(people(200, city="Bern"), branch="side", create_branch=True)
    table.update({"amount": "7"}, where="id = 101")
    return table


def planned(table: Table, **point: Any) -> set[str]:
    return set(table.at(**point).scan().plan().tasks["location"].to_pylist())


def test_every_table_has_the_columns_that_its_schema_names(table: Table) -> None:
    for name in METADATA_TABLES:
        rows = getattr(table.inspect, name)()
        assert rows.schema.equals(table.inspect.schema(name)), name
        rows.validate(full=True)
        for field in rows.schema:
            assert field.nullable or rows[field.name].null_count == 0, f"{name}.{field.name}"


def test_data_files_are_the_files_of_a_scan_with_what_is_in_them(table: Table) -> None:
    for point in ({}, {"tag": "v1"}, {"branch": "side"}, *({"snapshot": s.snapshot_id} for s in table.snapshots)):
        files = table.inspect.data_files(**point).to_pylist(maps_as_pydicts="strict")
        assert {file["file_path"] for file in files} == planned(table, **point)
        assert len(files) == len(planned(table, **point))
        for file in files:
            check_file(file, table)


def check_file(file: dict[str, Any], table: Table) -> None:
    stored = pq.ParquetFile(path_of(file["file_path"])).read()
    assert (file["content"], file["file_format"]) == (0, "PARQUET")
    assert file["record_count"] == stored.num_rows
    assert file["file_size_in_bytes"] == path_of(file["file_path"]).stat().st_size
    assert set(file["partition"]) == {"city", "shard"}
    assert pc.unique(stored["city"]).to_pylist() == [file["partition"]["city"]]
    assert (file["partition"]["shard"] is None) == (file["spec_id"] == 0)
    for name in ("id", "city", "amount"):
        metrics, id_ = file["readable_metrics"][name], table.schema.field(name).id
        least = pc.min_max(stored[name]).as_py()
        assert (metrics["lower_bound"], metrics["upper_bound"]) == (least["min"], least["max"])
        assert (metrics["value_count"], metrics["null_value_count"]) == (stored.num_rows, stored[name].null_count)
        assert metrics["nan_value_count"] is None
        assert file["value_counts"][id_] == stored.num_rows
        assert (id_ in (file["lower_bounds"] or {})) == (least["min"] is not None)
    assert int.from_bytes(file["lower_bounds"][1], "little") == file["readable_metrics"]["id"]["lower_bound"]


def test_entries_say_what_each_snapshot_added_and_removed(table: Table) -> None:
    for snapshot in table.snapshots:
        entries = table.inspect.entries(snapshot=snapshot.snapshot_id).to_pylist()
        files = table.inspect.files(snapshot=snapshot.snapshot_id).to_pylist()
        live = [entry for entry in entries if entry["status"] != 2]
        key = ("content", "file_path", "content_offset", "record_count")
        assert Counter(tuple(e["data_file"][k] for k in key) for e in live) == Counter(
            tuple(f[k] for k in key) for f in files
        )
        before = set() if snapshot.parent_id is None else planned(table, snapshot=snapshot.parent_id)
        after = planned(table, snapshot=snapshot.snapshot_id)
        data = [entry for entry in entries if entry["data_file"]["content"] == 0]
        added = {
            e["data_file"]["file_path"] for e in data if e["snapshot_id"] == snapshot.snapshot_id and e["status"] == 1
        }
        assert added == after - before
        removed = {entry["data_file"]["file_path"] for entry in data if entry["status"] == 2}
        assert before - after <= removed
        assert removed.isdisjoint(after)
        for entry in live:
            assert entry["sequence_number"] is not None
            assert entry["file_sequence_number"] is not None


def test_partitions_have_the_totals_of_their_files(table: Table) -> None:
    for point in ({}, {"tag": "v1"}):
        files = table.inspect.files(**point).to_pylist()
        rows = table.inspect.partitions(**point).to_pylist()
        expected: dict[tuple[object, ...], Counter[str]] = {}
        kinds = ("", "position_delete_", "equality_delete_")
        for file in files:
            totals = expected.setdefault(tuple(file["partition"].values()), Counter())
            totals[f"{kinds[file['content']]}record_count"] += file["record_count"]
            totals[f"{kinds[file['content']]}file_count"] += 1
            totals["total_data_file_size_in_bytes"] += file["file_size_in_bytes"] if file["content"] == 0 else 0
        assert len(rows) == len(expected)
        for row in rows:
            totals = expected[tuple(row["partition"].values())]
            assert {name: row[name] for name in totals} == totals
            snapshot = table.metadata.snapshot(row["last_updated_snapshot_id"])
            assert row["last_updated_at"] == dt.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, dt.UTC)


def test_position_deletes_are_the_rows_that_scans_do_not_return(table: Table) -> None:
    for point in ({}, {"tag": "v1"}, *({"snapshot": s.snapshot_id} for s in table.snapshots)):
        stored = {
            (location, pos)
            for location in planned(table, **point)
            for pos in range(pq.ParquetFile(path_of(location)).metadata.num_rows)
        }
        scanned = table.at(**point).scan(columns=["_file", "_pos"]).to_arrow().to_pylist()
        deletes = table.inspect.position_deletes(**point).to_pylist()
        found = {(row["file_path"], row["pos"]) for row in deletes}
        assert found & stored == stored - {(row["_file"], row["_pos"]) for row in scanned}
        files = {(f["file_path"], f.get("content_offset")): f for f in table.inspect.delete_files(**point).to_pylist()}
        for row in deletes:
            file = files[row["delete_file_path"], row.get("content_offset")]
            assert (row["partition"], row["spec_id"]) == (file["partition"], file["spec_id"])
            assert row["row"] is None
        assert len(deletes) == sum(file["record_count"] for file in files.values())


def test_manifests_count_their_files(table: Table) -> None:
    every = table.inspect.all_manifests().to_pylist()
    for snapshot in table.snapshots:
        rows = table.inspect.manifests(snapshot=snapshot.snapshot_id).to_pylist()
        of_all = [row for row in every if row["reference_snapshot_id"] == snapshot.snapshot_id]
        more = {"reference_snapshot_id": snapshot.snapshot_id, "key_metadata": None}
        assert [{**row, **more} for row in rows] == of_all
        entries = table.inspect.entries(snapshot=snapshot.snapshot_id).to_pylist()
        for kind, contents in (("data", {0}), ("delete", {1, 2})):
            counts = [
                sum(row[f"{status}_{kind}_files_count"] for row in rows) for status in ("existing", "added", "deleted")
            ]
            assert sum(counts) == sum(entry["data_file"]["content"] in contents for entry in entries)
        for row in rows:
            assert row["length"] == path_of(row["path"]).stat().st_size
            assert len(row["partition_summaries"]) == row["partition_spec_id"] + 1
            other = "delete" if row["content"] == 0 else "data"
            assert all(row[f"{status}_{other}_files_count"] == 0 for status in ("existing", "added", "deleted"))


def test_tables_of_all_snapshots_have_the_files_of_each(table: Table) -> None:
    for name in ("files", "data_files", "delete_files"):
        of_each = {
            (file["file_path"], file["content_offset"])
            for snapshot in table.snapshots
            for file in getattr(table.inspect, name)(snapshot=snapshot.snapshot_id).to_pylist()
        }
        of_all = getattr(table.inspect, f"all_{name}")().to_pylist()
        assert {(file["file_path"], file["content_offset"]) for file in of_all} == of_each
    entries = {entry["data_file"]["file_path"] for entry in table.inspect.all_entries().to_pylist()}
    assert entries == {file["file_path"] for file in table.inspect.all_files().to_pylist()}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_logs_are_those_of_the_metadata(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version)
    created = table.metadata_location
    first = table.append(people(1))
    second = table.append(people(2))
    table.rollback(snapshot=first.snapshot_id)
    table.tag("v1")
    assert table.inspect.snapshots()["snapshot_id"].to_pylist() == [first.snapshot_id, second.snapshot_id]
    assert table.inspect.history()["is_current_ancestor"].to_pylist() == [True, False, True]
    refs = {row["name"]: (row["type"], row["snapshot_id"]) for row in table.inspect.refs().to_pylist()}
    assert refs == {"main": ("BRANCH", first.snapshot_id), "v1": ("TAG", first.snapshot_id)}
    log = table.inspect.metadata_log_entries().to_pylist()
    assert (log[0]["file"], log[-1]["file"]) == (created, table.metadata_location)
    ids = [row["latest_snapshot_id"] for row in log]
    assert ids == [None, first.snapshot_id, second.snapshot_id, first.snapshot_id, first.snapshot_id]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_without_partitions_and_without_rows_has_its_tables(tmp_path: Path, version: int) -> None:
    table = new_table(tmp_path, version)
    for name in METADATA_TABLES:
        rows = getattr(table.inspect, name)()
        assert rows.schema.equals(table.inspect.schema(name))
        assert "partition" not in rows.schema.names
        assert rows.num_rows == (1 if name == "metadata_log_entries" else 0), name
    table.append(people(1, 2))
    (partition,) = table.inspect.partitions().to_pylist()
    assert (partition["record_count"], partition["file_count"]) == (2, 1)
    assert "spec_id" not in partition


def test_a_snapshot_is_chosen_in_one_way(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2, COPY)
    first = table.append(people(1))
    table.tag("v1")
    table.append(people(2))
    time = dt.datetime.fromtimestamp(table.snapshots[0].timestamp_ms / 1000, dt.UTC)
    for point in ({"snapshot": first.snapshot_id}, {"tag": "v1"}, {"timestamp": time}):
        assert table.inspect.files(**point).num_rows == 1
        assert table.at(**point).inspect.files().num_rows == 1
    with pytest.raises(InputError, match="give one of snapshot, tag"):
        table.inspect.files(snapshot=first.snapshot_id, tag="v1")
    with pytest.raises(NoSuchSnapshot, match="no tag 'v2'"):
        table.inspect.manifests(tag="v2")


def test_leaves_that_snapshots_share_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(tmp_path, 2, MERGE)
    for number in range(5):
        table.append(people(number))
    read: Counter[str] = Counter()
    fresh = reopened(table)
    original = type(pointer_of(fresh).io).read

    def counted(self: object, location: str, *more: object, **named: object) -> bytes:
        read[location] += 1
        return original(self, location, *more, **named)

    monkeypatch.setattr(type(pointer_of(fresh).io), "read", counted)
    assert fresh.inspect.all_entries().num_rows == 5
    assert max(read.values()) == 1

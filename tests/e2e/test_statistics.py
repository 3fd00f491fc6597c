"""Statistics of snapshots: distinct values of columns and totals of partitions, in every format version."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.catalogs.catalog import Stale
from icefloe.codecs.puffin.theta_sketch import decode_sketch
from icefloe.errors import CommitFailed, InputError, NoSuchSnapshot, UnsupportedError
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.statistics_files import decode_partition_statistics, decode_statistics
from support.tables import VERSIONS, new_catalog

LATER = "2100-01-01T00:00:00+00:00"


def new_table(folder: Path, version: int = 4, **options: object) -> Table:
    return new_catalog(folder).create_table("db.t", schema="id bigint, city string", format_version=version, **options)


def rows(*ids: int, city: str | None = "Oslo") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "city": pa.array([city] * len(ids), pa.string())})


def metadata_files(table: Table, pattern: str) -> list[str]:
    return sorted(path.name for path in Path(table.location.removeprefix("file://"), "metadata").glob(pattern))


@pytest.mark.parametrize("version", VERSIONS)
def test_distinct_values_of_live_rows_are_stored_with_the_snapshot(tmp_path: Path, version: int) -> None:
    table = new_table(
        tmp_path, version, properties={"write.delete.mode": "merge-on-read" if version > 1 else "copy-on-write"}
    )
    table.append(rows(1, 2, 3))
    head = table.append(rows(3, 4, 5, city="Rome")).snapshot_id
    head = table.delete("id = 5").snapshot_id
    snapshots = len(table.snapshots)
    result = table.analyze()
    assert (result.snapshot_id, dict(result.distinct_values)) == (head, {"id": 4, "city": 2})
    assert len(table.snapshots) == snapshots
    (entry,) = table.metadata.statistics
    data = pointer_of(table).io.read(entry.statistics_path)
    assert (entry.statistics_path, entry.file_size_in_bytes) == (result.statistics_file, result.bytes_written)
    assert entry.statistics_path.startswith(f"{table.location}/metadata/")
    blobs = decode_statistics(data, entry)
    sequence = table.metadata.snapshot(head).sequence_number
    for blob, listed, count in zip(blobs, entry.blob_metadata, (4, 2), strict=True):
        assert (blob.type, blob.snapshot_id, blob.sequence_number) == ("apache-datasketches-theta-v1", head, sequence)
        assert blob.properties == listed.properties == {"ndv": str(count)}
        assert decode_sketch(blob.data, where="here").distinct_values == count
    assert [blob.fields for blob in blobs] == [(1,), (2,)]
    assert table.verify(snapshots="all", files=True, rows=True).findings == ()


def test_columns_are_named_and_may_be_inside_structs(tmp_path: Path) -> None:
    schema = "id bigint, who struct<name: string, `a.b`: int>, tags array<string>, at timestamp"
    table = new_catalog(tmp_path).create_table("db.nested", schema=schema)
    who = [{"name": "Ada", "a.b": 1}, None, {"name": None, "a.b": 2}, {"name": "Ada", "a.b": 3}]
    type_ = pa.struct([("name", pa.string()), ("a.b", pa.int32())])
    table.append(pa.table({"id": [1, 2, 3, 4], "who": pa.array(who, type_), "tags": [["a"]] * 4}))
    assert table.analyze().distinct_values == {"id": 4, "at": 0}
    assert table.analyze(["who.a.b", "who.name"]).distinct_values == {"who.a.b": 3, "who.name": 1}
    for name, reason in {
        "tags": "is of type list",
        "who": "is of type struct",
        "tags.element": "inside a list",
    }.items():
        with pytest.raises(UnsupportedError, match=f"analyze db.nested: column '{name}' .*{reason}"):
            table.analyze([name])
    with pytest.raises(InputError, match=r"no column 'none' in table db\.nested"):
        table.analyze(["none"])
    with pytest.raises(InputError, match="columns is empty"):
        table.analyze([])
    with pytest.raises(InputError, match="and a list is expected"):
        table.analyze("id")


def test_every_type_of_single_values_is_counted(tmp_path: Path) -> None:
    schema = (
        "b boolean, i int, l bigint, f float, x double, p decimal(30,2), d date, t time, ts timestamp_ntz,"
        " tz timestamp, ns timestamp_ns, s string, u uuid, x3 fixed(3), raw binary"
    )
    table = new_catalog(tmp_path).create_table("db.types", schema=schema, format_version=3)
    now = dt.datetime(2026, 11, 17, 9, 30)
    columns = {
        "b": pa.array([True, False, None, True]),
        "i": pa.array([-1, 1, None, 1], pa.int32()),
        "l": pa.array([-1, 1, None, 1], pa.int64()),
        "f": pa.array([0.0, -0.0, None, float("nan")], pa.float32()),
        "x": pa.array([0.0, -0.0, None, float("nan")], pa.float64()),
        "p": pa.array([Decimal("1.00"), Decimal(-(10**25)), None, Decimal("1.00")], pa.decimal128(30, 2)),
        "d": pa.array([dt.date(1960, 1, 1), dt.date(2026, 1, 1), None, dt.date(1960, 1, 1)]),
        "t": pa.array([dt.time(1), dt.time(2), None, dt.time(1)], pa.time64("us")),
        "ts": pa.array([now, now + dt.timedelta(microseconds=1), None, now], pa.timestamp("us")),
        "tz": pa.array([now, now + dt.timedelta(microseconds=1), None, now], pa.timestamp("us", "UTC")),
        "ns": pa.array([1, 2, None, 1], pa.timestamp("ns")),
        "s": pa.array(["a", "b", None, ""]),
        "u": pa.array([uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes, None, uuid.UUID(int=1).bytes], pa.binary(16)),
        "x3": pa.array([b"abc", b"abd", None, b"abc"], pa.binary(3)),
        "raw": pa.array([b"\0", b"\0\0", None, b""], pa.binary()),
    }
    table.append(pa.table(columns))
    expected = dict.fromkeys(columns, 2) | {"f": 3, "x": 3}  # both zeros are values, as they are other bytes
    assert table.analyze().distinct_values == expected


def test_an_earlier_snapshot_is_analyzed_with_its_columns(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    first = table.append(rows(1, 2)).snapshot_id
    with table.update_schema() as edit:
        edit.rename_column("city", "town")
        edit.add_column("more", "int")
    table.append(rows(3, 4).rename_columns(["id", "town"]))
    assert table.analyze(snapshot=first).distinct_values == {"id": 2, "city": 1}
    assert table.analyze().distinct_values == {"id": 4, "town": 1, "more": 0}
    assert len(table.metadata.statistics) == 2
    with pytest.raises(NoSuchSnapshot):
        table.analyze(snapshot=7)


def test_new_statistics_replace_those_of_the_same_snapshot(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by=["city"])
    table.append(rows(1, 2))
    before = (table.analyze().statistics_file, table.analyze_partitions().partition_statistics_file)
    after = (table.analyze(["id"]).statistics_file, table.analyze_partitions().partition_statistics_file)
    (statistics,), (partitions,) = table.metadata.statistics, table.metadata.partition_statistics
    assert (statistics.statistics_path, partitions.statistics_path) == after
    plan = table.remove_orphans(older_than=LATER, allow_recent=True)
    assert sorted(plan.files["location"].to_pylist()) == sorted(before)


def test_a_table_without_snapshots_gets_no_statistics(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by=["city"])
    assert (table.analyze().statistics_file, table.analyze_partitions().partition_statistics_file) == (None, None)
    assert table.metadata.statistics == table.metadata.partition_statistics == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_totals_of_partitions_are_stored_with_the_snapshot(tmp_path: Path, version: int) -> None:
    mode = "merge-on-read" if version > 1 else "copy-on-write"
    table = new_table(tmp_path, version, partition_by=["city"], properties={"write.delete.mode": mode})
    first = table.append(rows(1, 2, 3)).snapshot_id
    second = table.append(rows(4, city="Rome")).snapshot_id
    table.append(rows(5, city=None))
    last = table.delete("id = 2").snapshot_id
    result = table.analyze_partitions()
    assert (result.snapshot_id, result.partitions) == (last, 3)
    (entry,) = table.metadata.partition_statistics
    data = pointer_of(table).io.read(entry.statistics_path)
    assert (entry.statistics_path, entry.file_size_in_bytes) == (result.partition_statistics_file, len(data))
    context = pointer_of(table).held().store.context
    found = decode_partition_statistics(data, context)
    assert found["p1000"].to_pylist() == [None, "Oslo", "Rome"]
    deletes = 0 if version == 1 else 1
    assert found["data_record_count"].to_pylist() == [1, 3 - (1 - deletes), 1]
    assert found["position_delete_record_count"].to_pylist() == [0, deletes, 0]
    assert found["dv_count"].to_pylist() == [0, deletes if version > 2 else 0, 0]
    assert found["last_updated_snapshot_id"].to_pylist()[1:] == [last, second]
    assert first not in found["last_updated_snapshot_id"].to_pylist()
    assert table.verify(snapshots="all", files=True).findings == ()


def test_partition_statistics_need_partitions(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.append(rows(1))
    with pytest.raises(InputError, match=r"analyze partitions of db\.t: the table has no partitions"):
        table.analyze_partitions()


def test_a_commit_that_fails_leaves_no_statistics_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(tmp_path, partition_by=["city"], properties={"commit.retry.min-wait-ms": "1"})
    table.append(rows(1))
    before = metadata_files(table, "*")
    monkeypatch.setattr(type(pointer_of(table).catalog), "swap", lambda *arguments: Stale())
    with pytest.raises(CommitFailed):
        table.analyze()
    with pytest.raises(CommitFailed):
        table.analyze_partitions()
    assert metadata_files(table, "*") == before


def test_statistics_are_added_to_what_another_commit_made_meanwhile(tmp_path: Path) -> None:
    table, other = new_table(tmp_path), new_catalog(tmp_path)
    first = table.append(rows(1, 2)).snapshot_id
    steps: list[int] = []

    def meanwhile(done: int, total: int, step: str) -> None:
        steps.append(done)
        other.load_table("db.t").append(rows(3))

    assert table.analyze(progress=meanwhile).distinct_values == {"id": 2, "city": 1}
    assert steps == [2]
    assert (table.metadata.statistics[0].snapshot_id, table.scan().count()) == (first, 3)


def test_expiry_removes_the_statistics_of_snapshots(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by=["city"])
    table.append(rows(1))
    table.analyze()
    table.analyze_partitions()
    table.append(rows(2))
    kept = table.analyze().statistics_file
    assert table.expire(older_than=LATER).execute().statistics_files == 2
    assert [file.statistics_path for file in table.metadata.statistics] == [kept]
    assert table.metadata.partition_statistics == ()
    assert metadata_files(table, "*stat*") == [kept.rsplit("/", 1)[-1]]
    assert table.verify(files=True).ok


def test_verify_reports_statistics_files_that_are_missing_or_of_another_size(tmp_path: Path) -> None:
    table = new_table(tmp_path, partition_by=["city"])
    table.append(rows(1))
    longer, missing = table.analyze().statistics_file, table.analyze_partitions().partition_statistics_file
    assert longer is not None
    assert missing is not None
    with Path(longer.removeprefix("file://")).open("ab") as file:
        file.write(b"more")
    Path(missing.removeprefix("file://")).unlink()
    assert table.verify().ok
    found = table.verify(files=True).findings
    size = table.metadata.statistics[0].file_size_in_bytes
    assert {finding.message for finding in found} == {
        f"{longer} has {size + 4} bytes, not {size}",
        f"{missing} is missing",
    }
    assert {(finding.rule, finding.severity) for finding in found} == {("files", "warning")}
    assert all("t.analyze(snapshot=...)" in finding.remedy for finding in found)

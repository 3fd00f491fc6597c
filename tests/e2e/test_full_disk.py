"""A disk that is full: errors say so, nothing of a failed write stays, and maintenance makes room."""

from __future__ import annotations

import errno
import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.catalogs.memory import MemoryCatalog
from icefloe.commit.base import TablePointer
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.env import SYSTEM
from icefloe.errors import StorageError
from icefloe.model.partition.spec import UNPARTITIONED
from icefloe.model.text.ddl import parse_ddl
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.small_disk import SmallDisk, mounted

FORMATS = ("parquet", "orc", "avro")


def rows(count: int) -> pa.Table:
    noise = random.Random(count)
    return pa.table(
        {"id": pa.array(range(count), pa.int64()), "note": [noise.randbytes(8).hex() for _ in range(count)]}
    )


def table_on(disk: SmallDisk, file_format: str, version: int) -> Table:
    catalog = MemoryCatalog("test", warehouse="memory://wh")
    metadata = new_metadata(
        location="memory://wh/t",
        schema=parse_ddl("id bigint, note string"),
        spec=UNPARTITIONED,
        properties={"write.format.default": file_format},
        format_version=version,
    )
    catalog.create_namespace("db")
    create_table(catalog, ("db", "t"), disk, metadata)
    return Table(TablePointer(catalog, ("db", "t"), disk))


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_write_to_a_full_disk_says_so_and_leaves_nothing_behind(file_format: str, version: int) -> None:
    """Parquet: "file metadata is only available after writer close", and the file stayed. ORC ended the process."""
    disk = SmallDisk()
    table = table_on(disk, file_format, version)
    table.append(rows(3))
    before = disk.names
    errors: list[StorageError] = []
    for free in range(0, 40_000, 450):
        disk.capacity = disk.used + free
        try:
            table.append(rows(200))
            break
        except StorageError as error:
            errors.append(error)
        assert disk.names == before
    assert {(error.errno, error.retryable) for error in errors} == {(errno.ENOSPC, False)}
    assert {file_format, "json"} <= {error.context["location"].rsplit(".", 1)[-1] for error in errors}
    assert table.scan().count() == 203


def test_snapshots_expire_where_the_new_metadata_fits_and_a_journal_does_not() -> None:
    """The journal failed, or took the space of the metadata, so that expiry could not make room."""
    disk = SmallDisk()
    table = table_on(disk, "parquet", 2)
    for _ in range(6):
        table.overwrite(rows(100), overwrite_all=True)
    errors: list[StorageError] = []
    for free in range(0, 20_000, 100):
        disk.capacity = disk.used + free
        try:
            result = table.expire(older_than="2100-01-01T00:00:00Z", retain_last=1).execute()
            break
        except StorageError as error:
            errors.append(error)
    assert all(error.errno == errno.ENOSPC and ".metadata.json" in str(error) for error in errors)
    assert (result.snapshots, result.data_files) == (5, 5)
    assert free < disk.size(table.metadata_location) + 100
    assert not [name for name in disk.names if "/deletions/" in name]
    assert table.verify(files=True).ok


def test_orphans_are_removed_from_a_disk_without_any_space() -> None:
    disk = SmallDisk()
    table = table_on(disk, "parquet", 2)
    table.append(rows(3))
    disk.write_new("memory://wh/t/data/lost.parquet", bytes(1000))
    disk.capacity = disk.used
    later = replace(SYSTEM, now_ms=lambda: SYSTEM.now_ms() + 10**9)
    assert Table(pointer_of(table), later).remove_orphans().execute().files == 1
    assert "memory://wh/t/data/lost.parquet" not in disk.names


@pytest.mark.parametrize("catalog", ["sqlite", "folders"])
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_real_disk_that_is_full_can_be_cleaned_and_written_again(
    tmp_path: Path, file_format: str, catalog: str
) -> None:
    with mounted(tmp_path / "disk", 1024) as disk:
        uri = f"sqlite:///{disk}/catalog.db" if catalog == "sqlite" else f"file://{disk}/wh"
        lake = icefloe.catalog("small", uri=uri, warehouse=f"file://{disk}/wh")
        properties = {"write.format.default": file_format}
        table = lake.create_table("db.t", schema="id bigint, note string", properties=properties)
        for _ in range(4):
            table.overwrite(rows(6_000), overwrite_all=True)
        before = {path for path in disk.rglob("*") if path.is_file()}
        with pytest.raises(StorageError) as caught:
            table.append(rows(300_000))
        assert (caught.value.errno, caught.value.retryable) == (errno.ENOSPC, False)
        assert {path for path in disk.rglob("*") if path.is_file()} == before
        assert table.expire(older_than="2100-01-01T00:00:00Z", retain_last=1).execute().snapshots == 3
        table.append(rows(6_000))
        assert table.scan().count() == 12_000
        assert table.verify(files=True).ok

"""Whole tables in an S3 store, on a real server: written, read, changed, and how much is asked of the store."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.errors import InputError, NoSuchFile
from icefloe.io.contained import Contained
from icefloe.io.object_store import ObjectStoreFileIO
from icefloe.io.select import file_io
from icefloe.table.catalog import Catalog
from icefloe.table.table import Table
from icefloe.testing.counting_io import CountingFileIO
from support.servers.s3 import S3Server
from support.tables import VERSIONS, reopened


@pytest.fixture
def warehouse(s3: S3Server) -> str:
    return f"s3://{s3.new_bucket()}/wh"


@pytest.fixture
def lake(s3: S3Server, warehouse: str, tmp_path: Path) -> Catalog:
    return icefloe.catalog(
        "lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=warehouse, properties=s3.properties
    )


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "region": [f"r{n % 2}" for n in ids]})


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def counted(lake: Catalog, s3: S3Server) -> tuple[Table, CountingFileIO]:
    """The table ``db.t``, with every storage call on record."""
    io = CountingFileIO(ObjectStoreFileIO("s3", s3.properties))
    return reopened(lake.load_table("db.t"), io), io


@pytest.mark.parametrize("partition_by", [[], ["region"], ["bucket(4, id)"]])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_lives_in_an_object_store(lake: Catalog, warehouse: str, version: int, partition_by: list[str]) -> None:
    table = lake.create_table(
        "db.t", schema="id bigint, region string", format_version=version, partition_by=partition_by
    )
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5, 6))
    table.delete("id = 2 or id = 5")
    table.upsert(rows(6, 7), on=["id"])
    assert ids(lake.load_table("db.t")) == [1, 3, 4, 6, 7]
    assert lake.load_table("db.t").scan("id > 3").to_arrow().num_rows == 3
    locations = table.scan().plan().tasks["location"].to_pylist()
    assert all(location.startswith(f"{warehouse}/db/t/data/") for location in locations)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_file_of_a_table_is_in_the_store(lake: Catalog, s3: S3Server, warehouse: str, version: int) -> None:
    lake.create_table("db.t", schema="id bigint, region string", format_version=version).append(rows(1))
    found = {file.location for file in file_io(warehouse, s3.properties).list(warehouse)}
    assert {location.split("/")[6] for location in found} == {"data", "metadata"}
    assert all(file.startswith(f"{warehouse}/db/t/") for file in found)


def test_a_v4_append_to_a_store_writes_a_root_and_a_pointer(lake: Catalog, s3: S3Server) -> None:
    lake.create_table("db.t", schema="id bigint, region string", format_version=4)
    table, io = counted(lake, s3)
    table.append(rows(1))
    io.reset()
    table.append(rows(2))
    assert io.count("write_new") == 2  # the root and metadata.json
    assert io.count("arrow_path", "sync") == 2  # the data file
    assert io.count("read", "read_range", "list", "exists", "delete", "put_if_absent") == 0


def test_a_v2_append_to_a_store_reads_nothing_back(lake: Catalog, s3: S3Server) -> None:
    lake.create_table("db.t", schema="id bigint, region string", format_version=2)
    table, io = counted(lake, s3)
    table.append(rows(1))
    io.reset()
    table.append(rows(2))
    assert io.count("write_new") == 3  # a manifest, the list and metadata.json
    assert io.count("read", "read_range", "list", "exists", "delete", "put_if_absent") == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_filter_spares_the_store_files_it_does_not_need(lake: Catalog, s3: S3Server, version: int) -> None:
    table = lake.create_table("db.t", schema="id bigint, region string", format_version=version)
    for n in range(4):
        table.append(rows(10 * n, 10 * n + 1))
    fresh, io = counted(lake, s3)
    assert fresh.scan("id = 20").to_arrow()["id"].to_pylist() == [20]
    assert io.count("arrow_path") == 1


def test_a_data_file_that_is_gone_is_named(lake: Catalog, s3: S3Server) -> None:
    table = lake.create_table("db.t", schema="id bigint, region string")
    table.append(rows(1))
    (location,) = table.scan().plan().tasks["location"].to_pylist()
    file_io(location, s3.properties).delete([location])
    with pytest.raises(NoSuchFile, match=location):
        table.scan().to_arrow()


def test_a_contained_table_works_and_stays_at_home(lake: Catalog, s3: S3Server, warehouse: str) -> None:
    lake.create_table("db.t", schema="id bigint, region string")
    io = Contained(ObjectStoreFileIO("s3", s3.properties), f"{warehouse}/db/t", read_roots=())
    table = reopened(lake.load_table("db.t"), io)
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    assert ids(table) == [1, 3]
    with pytest.raises(InputError, match="refused to delete"):
        io.delete([f"{warehouse}/db/t2/x"])


def test_two_catalogs_reach_two_stores(s3: S3Server, tmp_path: Path) -> None:
    for name in ("one", "two"):
        settings = {**s3.properties, "s3.access-key-id": name}
        lake = icefloe.catalog(
            name, uri=f"sqlite:///{tmp_path}/{name}.db", warehouse=f"s3://{s3.new_bucket()}", properties=settings
        )
        lake.create_table("db.t", schema="id bigint, region string").append(rows(len(name)))
        assert ids(lake.load_table("db.t")) == [3]

"""A table that was dropped and made again under its name is another table, for every catalog and every storage."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

import icefloe
from icefloe.catalogs.file_versions import FileVersions
from icefloe.catalogs.folders import FolderPointer
from icefloe.commit.base import TablePointer
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.errors import ConflictError, NoSuchTable
from icefloe.io.arrow_fs import ArrowFileIO
from icefloe.io.exclusive import ExclusivePut
from icefloe.io.file_io import FileIO
from icefloe.io.local import LocalFileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.io.object_store import ObjectStoreFileIO
from icefloe.model.text.ddl import as_schema
from icefloe.model.text.partition_text import partition_spec
from icefloe.table.catalog import Catalog
from icefloe.table.table import Table
from icefloe.testing.counting_io import CountingFileIO
from support.servers.s3 import S3Server
from support.tables import VERSIONS

pytestmark = pytest.mark.slow

KINDS = ("sqlite", "postgres", "files", "memory")
STORAGES = ("local", "memory", "arrow", "s3", "counted")


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def catalog(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Catalog:
    warehouse = f"file://{tmp_path}/warehouse"
    if kind == "memory":
        return icefloe.catalog(str(uuid.uuid4()), uri="memory://")  # its name is all that tells it from others
    if kind == "files":
        return icefloe.catalog("lake", type="files", warehouse=warehouse)
    uri = f"sqlite:///{tmp_path}/c.db" if kind == "sqlite" else request.getfixturevalue("postgres_uri")
    return icefloe.catalog("lake", uri=uri, warehouse=warehouse)


def check_is_another(old: Table, new: Table, reopened: Callable[[], Table]) -> None:
    """The old handle says so for every change and for a refresh, and the new table stays as it is."""
    attempts: tuple[Callable[[], object], ...] = (
        lambda: old.append(rows(2)),
        lambda: old.delete("id = 1"),
        lambda: old.set_properties({"a": "b"}),
        lambda: old.refresh(),
        lambda: old.transaction(),
        lambda: old.update_schema(),
    )
    expected = reopened().metadata.table_uuid
    for attempt in attempts:
        with pytest.raises(ConflictError, match=r"dropped.*load the table again"):
            attempt()
    assert (reopened().metadata.table_uuid, ids(reopened()), ids(new)) == (expected, [100], [100])
    new.append(rows(101))
    assert ids(reopened()) == [100, 101]


@pytest.mark.parametrize("purge", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_handle_of_a_dropped_table_never_touches_the_one_made_again(catalog: Catalog, purge: bool) -> None:
    """In a catalog of folders its append succeeded, put the old table back and lost the new one with all its rows."""
    old = catalog.create_table("db.t", schema="id bigint")
    old.append(rows(1))
    catalog.drop_table("db.t", purge=purge)
    with pytest.raises(NoSuchTable):
        old.append(rows(2))
    new = catalog.create_table("db.t", schema="id bigint, note string")
    new.append(rows(100))
    check_is_another(old, new, lambda: catalog.load_table("db.t"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_transaction_begun_on_a_dropped_table_conflicts(catalog: Catalog) -> None:
    old = catalog.create_table("db.t", schema="id bigint")
    old.append(rows(1))
    with pytest.raises(ConflictError, match="load the table again"), old.transaction() as tx:  # noqa: PT012
        tx.append(rows(2))
        catalog.drop_table("db.t")
        catalog.create_table("db.t", schema="id bigint").append(rows(100))
    assert ids(catalog.load_table("db.t")) == [100]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["files"])
def test_a_table_opened_by_its_folder_notices_too(catalog: Catalog, version: int) -> None:
    catalog.create_table("db.t", schema="id bigint", format_version=version)
    old = icefloe.open_table(catalog.load_table("db.t").location)
    old.append(rows(1))
    catalog.drop_table("db.t", purge=True)
    new = catalog.create_table("db.t", schema="id bigint", format_version=version)
    new.append(rows(100))
    check_is_another(old, new, lambda: icefloe.open_table(new.location))


@pytest.mark.parametrize("kind", ["files"])
def test_a_handle_follows_a_table_that_was_registered_again(catalog: Catalog) -> None:
    """It is the same table with other numbers: an append from what had the number once lost the rows since then."""
    old = catalog.create_table("db.t", schema="id bigint")
    others = catalog.load_table("db.t")
    others.append(rows(1))
    others.append(rows(2))
    last = catalog.drop_table("db.t").metadata_location
    assert last is not None
    catalog.register_table("db.t", last)
    assert ids(old.refresh()) == [1, 2]
    old.append(rows(3))
    assert ids(old) == [1, 2, 3]
    assert ids(catalog.load_table("db.t")) == [1, 2, 3]


@pytest.fixture
def place(storage: str, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[FileIO, str]:
    """A storage with an exclusive put, and a folder of it."""
    if storage == "s3":
        s3: S3Server = request.getfixturevalue("s3")
        return ObjectStoreFileIO("s3", s3.properties), f"s3://{s3.new_bucket()}/t"
    if storage == "local":
        return LocalFileIO(), f"file://{tmp_path}/t"
    if storage == "arrow":
        return ArrowFileIO(fs.LocalFileSystem(), root="file:///"), f"file://{tmp_path}/t"
    memory = MemoryFileIO()
    return CountingFileIO(memory) if storage == "counted" else memory, f"memory://{uuid.uuid4()}/t"


class OneTable(FolderPointer):
    """The folder as a catalog that makes its one table."""

    def __init__(self, io: FileIO, folder: str) -> None:
        super().__init__(io, folder)
        self.versions = FileVersions(io, folder, ExclusivePut(io))

    def create(self, identifier: object, metadata_location: str) -> None:
        self.versions.create(metadata_location, keep=False)


@pytest.mark.parametrize("storage", STORAGES)
def test_every_storage_tells_a_table_made_again(place: tuple[FileIO, str]) -> None:
    io, folder = place
    one = OneTable(io, folder)

    def opened() -> Table:
        return Table(TablePointer(FolderPointer(io, folder), ("t",), io, location=folder))

    def made(row: int) -> Table:
        schema = as_schema("id bigint")
        metadata = new_metadata(
            location=folder, schema=schema, spec=partition_spec((), schema), properties={}, format_version=2
        )
        create_table(one, ("t",), io, metadata)  # type: ignore[arg-type]  # all that it asks for
        table = opened()
        table.append(rows(row))
        return table

    old = made(1)
    one.versions.forget()
    check_is_another(old, made(100), opened)

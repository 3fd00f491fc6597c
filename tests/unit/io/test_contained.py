"""A table's storage: everything inside of its location, and outside of it nothing but reading."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.errors import InputError
from icefloe.io.contained import Contained, contain
from icefloe.io.file_io import FileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.io.object_store import ObjectStoreFileIO

TABLE = "memory://wh/db/t"
OUTSIDE = (
    "memory://wh/db/t2/a",
    "memory://wh/db/other",
    "memory://other/db/t/a",
    "file:///wh/db/t/a",
    "memory://wh/db/t",
    "memory://wh/db/t/../t2/a",
    "memory://wh/db/t/%2e%2e/t2/a",
    "db/t/a",
    "",
)


@pytest.fixture
def store() -> MemoryFileIO:
    io = MemoryFileIO()
    io.write_many([(f"{TABLE}/data/a", b"inside"), ("memory://wh/db/t2/a", b"outside")])
    return io


@pytest.mark.parametrize("location", OUTSIDE)
def test_nothing_outside_is_changed(store: MemoryFileIO, location: str) -> None:
    io = Contained(store, TABLE)
    before = list(store.list("memory://wh"))
    changes: tuple[Callable[[], object], ...] = (
        lambda: io.write_new(location, b"x"),
        lambda: io.write_many([(f"{TABLE}/new", b"x"), (location, b"x")]),
        lambda: io.put_if_absent(location, b"x"),
        lambda: io.link_if_absent(f"{TABLE}/data/a", location),
        lambda: io.link_if_absent(location, f"{TABLE}/new"),
        lambda: io.delete([f"{TABLE}/data/a", location]),
    )
    for change in changes:
        with pytest.raises(InputError, match=r"refused to (write|delete) .* outside of memory://wh/db/t") as caught:
            change()
        assert caught.value.context["location"] == location
    assert list(store.list("memory://wh")) == before


def test_the_table_itself_is_read_and_changed(store: MemoryFileIO) -> None:
    io = Contained(store, f"{TABLE}/")
    io.write_new(f"{TABLE}/metadata/m", b"1")
    io.write_many([(f"{TABLE}/metadata/n", b"1")])
    assert io.put_if_absent(f"{TABLE}/metadata/v1", b"1")
    io.delete([f"{TABLE}/metadata/m"])
    assert io.read(f"{TABLE}/data/a") == b"inside"
    assert sorted(file.location for file in io.list(TABLE)) == [
        f"{TABLE}/data/a",
        f"{TABLE}/metadata/n",
        f"{TABLE}/metadata/v1",
    ]


def test_files_elsewhere_are_read_unless_roots_are_given(store: MemoryFileIO) -> None:
    assert Contained(store, TABLE).read("memory://wh/db/t2/a") == b"outside"
    assert Contained(store, TABLE, read_roots=("memory://wh/db/t2",)).read("memory://wh/db/t2/a") == b"outside"


@pytest.mark.parametrize("roots", [(), ("memory://wh/db/t", "memory://wh/db/t2x", "memory://wh/db/t2/b")])
def test_files_outside_of_every_root_are_not_even_looked_at(store: MemoryFileIO, roots: tuple[str, ...]) -> None:
    io, location = Contained(store, TABLE, read_roots=roots), "memory://wh/db/t2/a"
    reads: tuple[Callable[[], object], ...] = (
        lambda: io.read(location),
        lambda: io.read_range(location, 0, 1),
        lambda: io.size(location),
        lambda: io.exists(location),
        lambda: io.sync([location]),
        lambda: io.list("memory://wh/db/t2"),
        lambda: io.list("memory://wh/db"),
        lambda: io.arrow_path(location),
    )
    for read in reads:
        with pytest.raises(InputError, match="refused to read"):
            read()
    assert io.read(f"{TABLE}/data/a") == b"inside"
    assert [file.location for file in io.list(f"{TABLE}/")] == [f"{TABLE}/data/a"]


def test_arrow_reads_elsewhere_and_writes_only_inside(store: MemoryFileIO) -> None:
    io, rows = Contained(store, TABLE), pa.table({"id": [1, 2]})
    files, path = io.arrow_path(f"{TABLE}/data/b.parquet")
    pq.write_table(rows, path, filesystem=files)
    store.write_new("memory://wh/old/b.parquet", store.read(f"{TABLE}/data/b.parquet"))
    files, path = io.arrow_path("memory://wh/old/b.parquet")
    with files.open_input_file(path) as file:
        assert pq.read_table(file).equals(rows)
    assert files.get_file_info(path).size == store.size("memory://wh/old/b.parquet")
    changes: tuple[Callable[[], object], ...] = (
        lambda: files.open_output_stream(path),
        lambda: files.delete_file(path),
        lambda: files.move(path, "wh/old/c"),
        lambda: files.copy_file(path, "wh/old/c"),
        lambda: files.create_dir("wh/old/d"),
        lambda: files.delete_dir("wh/old"),
    )
    for change in changes:
        with pytest.raises(InputError, match=r"refused to .* outside of memory://wh/db/t"):
            change()
    assert [file.location for file in store.list("memory://wh/old")] == ["memory://wh/old/b.parquet"]


def test_the_schemes_of_s3_clients_name_one_table() -> None:
    io: FileIO = Contained(ObjectStoreFileIO("s3", {}), "s3://b/t", read_roots=())
    assert io.arrow_path("s3a://b/t/x")[1] == "b/t/x"
    with pytest.raises(InputError, match="refused to read"):
        io.arrow_path("s3a://b/t2/x")


def test_allowed_roots_are_a_property(store: MemoryFileIO) -> None:
    location = "memory://wh/db/t2/a"
    assert contain(store, TABLE, {}).read(location) == b"outside"
    assert contain(store, TABLE, {"allowed-roots": " memory://x , memory://wh/db/t2"}).read(location) == b"outside"
    for roots in ("", "memory://wh/db/t2x", "memory://wh/db/t"):
        with pytest.raises(InputError, match="refused to read"):
            contain(store, TABLE, {"allowed-roots": roots}).read(location)
    with pytest.raises(InputError, match="not absolute"):
        contain(store, TABLE, {"allowed-roots": "db/t2"})

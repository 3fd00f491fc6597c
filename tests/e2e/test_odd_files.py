"""Files that are no files, and files that are far larger than they should be: refused before they are read."""

from __future__ import annotations

import bz2
import gzip
import os
import resource
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.codecs.avro.block_index import MAGIC
from icefloe.codecs.avro.encode import encode_metadata, number
from icefloe.errors import CorruptFile, IcefloeError, LimitError, StorageError
from icefloe.io.local import LocalFileIO
from icefloe.limits import MIB, Limits
from icefloe.table.table import Table
from support.tables import new_catalog

pytestmark = pytest.mark.broken_tables

MEMORY_MIB = 1500  # that a program has which opens such files
TIB = 1 << 40
MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}


def make(folder: Path, version: int = 2) -> Table:
    """A table with a data file, a manifest and a delete file."""
    table = new_catalog(folder).create_table(
        "db.t", schema="id bigint", format_version=version, properties=MERGE_ON_READ
    )
    table.append(pa.table({"id": list(range(10))}))
    table.delete("id = 3")
    return table


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def kinds(table: Table) -> dict[str, Path]:
    """One file of each kind that the newest snapshot of a table names."""
    files = {row["content"]: path_of(row["file_path"]) for row in table.inspect.files().to_pylist()}
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    assert snapshot.root is not None
    found = {
        "metadata": path_of(table.metadata_location),
        "root": path_of(snapshot.root),
        "data": files[0],
        "deletes": files[1],
    }
    manifests = [path_of(row["path"]) for row in table.inspect.manifests().to_pylist()]
    return found | ({"manifest": manifests[0]} if len(manifests) > 0 else {})


READ = """
import icefloe, sys
for path in sys.argv[1:]:
    try:
        print("read", icefloe.open_table(path).scan().to_arrow().num_rows)
    except BaseException as error:
        print(type(error).__name__)
"""


def read(*paths: Path) -> list[str]:
    """What a program with little memory finds in tables: a number of rows, or an error."""
    limit = MEMORY_MIB * MIB
    done = subprocess.run(
        [sys.executable, "-c", READ, *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
    )
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 4])
def test_a_pipe_is_refused_and_a_sparse_file_is_not_read(tmp_path: Path, version: int) -> None:
    """A named pipe blocked for ever, a sparse file was read until memory was exhausted."""
    made: list[Path] = []
    for kind in ("metadata", "root", "manifest", "data", "deletes"):
        for what in ("pipe", "sparse"):
            table = make(tmp_path / kind / what, version)
            found = kinds(table)
            if kind in found:
                made.append(path_of(table.metadata_location))
                found[kind].unlink()
                if what == "pipe":
                    os.mkfifo(found[kind])
                else:
                    found[kind].touch()
                    os.truncate(found[kind], TIB)
    said = read(*made)
    assert said[::2] == ["StorageError"] * (len(made) // 2)
    assert set(said[1::2]) <= {"LimitError", "CorruptFile"}


@pytest.mark.parametrize("what", ["pipe", "device", "socket folder"])
def test_only_regular_files_are_opened(tmp_path: Path, what: str) -> None:
    path = tmp_path / "x"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    io, location = LocalFileIO(), f"file://{path}"
    for verb in (io.read, lambda place: io.read_range(place, 0, 1), io.size):
        with pytest.raises(IcefloeError):
            verb(location)  # type: ignore[operator]
    assert not io.exists(location)
    if what != "socket folder":
        with pytest.raises(StorageError, match="not a regular file"):
            io.arrow_path(location)


def test_a_read_beyond_its_limit_reads_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    assert LocalFileIO().read(f"file://{path}", 5) == b"12345"
    with pytest.raises(LimitError, match="has 5 bytes, more than the limit of 4"):
        LocalFileIO().read(f"file://{path}", 4)


@pytest.mark.parametrize("members", [1, 40])
def test_small_metadata_that_inflates_to_much_is_refused(tmp_path: Path, members: int) -> None:
    """Metadata of 500 kB took 12.8 GB of memory."""
    table = make(tmp_path)
    text = path_of(table.metadata_location).read_bytes()
    hostile = text[:-1] + b',"x":[' + b"{}," * (20 * MIB) + b"{}]}"
    bomb = gzip.compress(hostile) if members == 1 else gzip.compress(b" " * 12 * MIB) * members + gzip.compress(text)
    path = tmp_path / "00009-a.gz.metadata.json"
    path.write_bytes(bomb)
    assert len(bomb) < MIB
    assert read(path) == ["LimitError"]


def avro_bomb(codec: str, size: int) -> bytes:
    """An Avro file of one block that claims one record, and inflates to a size."""
    squeeze: dict[str, Callable[[bytes], bytes]] = {
        "deflate": lambda data: _deflated(data),
        "bzip2": bz2.compress,
        "zstandard": lambda data: bytes(pa.Codec("zstd").compress(data, asbytes=True)),
    }
    schema = b'{"type":"record","name":"r","fields":[{"name":"a","type":"string"}]}'
    header = MAGIC + encode_metadata({"avro.schema": schema, "avro.codec": codec.encode()})
    block = squeeze[codec](bytes(size))
    return header + b"s" * 16 + number(1) + number(len(block)) + block + b"s" * 16


def _deflated(data: bytes) -> bytes:
    engine = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    return engine.compress(data) + engine.flush()


@pytest.mark.parametrize("codec", ["deflate", "bzip2", "zstandard"])
def test_a_small_manifest_that_inflates_to_much_is_refused(tmp_path: Path, codec: str) -> None:
    table = make(tmp_path)
    kinds(table)["root"].write_bytes(avro_bomb(codec, 24 * MIB))
    with pytest.raises(LimitError, match="inflate"):
        icefloe.open_table(table.metadata_location).scan().to_arrow()


def test_limits_leave_small_files_alone_and_grow_with_the_file() -> None:
    limits = Limits()
    assert limits.inflated(1, 512 * MIB) == 16 * MIB
    assert limits.inflated(MIB, 512 * MIB) == 100 * MIB
    assert limits.inflated(100 * MIB, 512 * MIB) == 512 * MIB


def test_a_footer_that_claims_to_be_very_long_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    path = kinds(table)["data"]
    with open(path, "wb") as file:
        file.write(b"PAR1")
        file.truncate(TIB)
        file.seek(0, os.SEEK_END)
        file.write((3 << 30).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(LimitError, match="a footer of 3221225472 bytes"):
        table.scan().to_arrow()


@pytest.mark.parametrize("hint", ["pipe", "sparse"])
def test_an_odd_version_hint_is_ignored(tmp_path: Path, hint: str) -> None:
    lake = icefloe.catalog("odd", uri=f"file://{tmp_path}")
    lake.create_table("db.t", schema="id bigint").append(pa.table({"id": [1]}))
    path = tmp_path / "db/t/metadata/version-hint.text"
    path.unlink()
    if hint == "pipe":
        os.mkfifo(path)
    else:
        path.touch()
        os.truncate(path, TIB)
    assert icefloe.open_table(str(tmp_path / "db/t")).scan().count() == 1


def test_a_vector_that_claims_to_be_very_long_is_not_read(tmp_path: Path) -> None:
    table = make(tmp_path, version=3)
    path = kinds(table)["deletes"]
    os.truncate(path, TIB)
    assert table.scan().count() == 9
    findings = table.verify(files=True).findings
    assert any(str(path) in finding.message for finding in findings)
    assert not any(isinstance(finding, CorruptFile) for finding in findings)

"""Too little memory is no damage: reading a sound file never says that it should be restored, and verify says nothing.

It was ``CorruptFile`` with the advice to roll back, and ``verify`` called the table unsound.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from icefloe.codecs.json.gzip_members import decompressed
from icefloe.errors import CorruptFile, OutOfMemory
from icefloe.formats.read.storage_errors import reading
from icefloe.table.table import Table
from support.tables import new_catalog

FAILURES = [
    MemoryError(),
    pa.ArrowMemoryError("malloc of size 4096 failed"),
    pa.ArrowMemoryError("realloc of size 67108864 failed"),
    OSError("Couldn't deserialize thrift: std::bad_alloc"),
    OSError("ZSTD decompression failed: Allocation error : not enough memory"),
    OSError(12, "Cannot allocate memory"),
]
STARVED = textwrap.dedent("""
    import resource, sys
    import pyarrow as pa
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    from icefloe.errors import CorruptFile
    from support.tables import new_catalog
    from pathlib import Path
    table, actions = new_catalog(Path(sys.argv[1])).load_table("db.t"), ("scan", "verify")
    small = table.at(snapshot=table.snapshots[0].snapshot_id)  # loads what reading takes
    assert small.scan().to_arrow().num_rows == 10 and table.verify().ok
    with open("/proc/self/statm") as sizes:
        used = int(sizes.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 64 * 2**20, used + 64 * 2**20))
    for action in actions:
        try:
            table.scan().to_arrow() if action == "scan" else table.verify(rows=True)
        except (MemoryError, RuntimeError) as error:
            assert isinstance(error, MemoryError) or "thread" in str(error), repr(error)
            assert not isinstance(error, CorruptFile)
        else:
            raise SystemExit(f"{action} had memory enough")
""")
INSIDE = [  # what decodes one kind of file, and the version and format of a table that has it
    ("icefloe.codecs.json.gzip_members._decompress_member", 4, "parquet", MemoryError),
    ("icefloe.codecs.avro.container._read", 2, "parquet", OutOfMemory),
    ("icefloe.codecs.manifest.manifest_list._decode", 2, "parquet", OutOfMemory),
    ("icefloe.codecs.manifest.avro._stored", 2, "parquet", OutOfMemory),
    ("icefloe.codecs.manifest.parquet._decode", 4, "parquet", OutOfMemory),
    ("icefloe.codecs.orc.tail.stripes._stripes", 4, "orc", OutOfMemory),
    ("icefloe.formats.orc.file._as_type", 4, "orc", OutOfMemory),
    ("icefloe.formats.parquet.file.ParquetFile.read", 4, "parquet", OutOfMemory),
    ("icefloe.formats.avro.file.read_header", 4, "avro", OutOfMemory),
    ("icefloe.codecs.puffin.deletion_vector._vector_of", 4, "parquet", MemoryError),
]


def made(folder: Path, version: int, file_format: str, rows: int = 10) -> Table:
    properties = {"write.format.default": file_format, "write.delete.mode": "merge-on-read"}
    catalog = new_catalog(folder)
    table = catalog.create_table("db.t", schema="id bigint, s string", format_version=version, properties=properties)
    table.append(pa.table({"id": np.arange(rows), "s": [f"text {i}" * 20 for i in range(rows)]}))
    table.delete("id = 3")
    return new_catalog(folder).load_table("db.t")


@pytest.mark.parametrize(("inside", "version", "file_format", "kind"), INSIDE, ids=[each[0] for each in INSIDE])
def test_an_allocation_that_fails_while_a_file_is_decoded_ends_a_check(
    tmp_path, monkeypatch, inside, version, file_format, kind
):
    table = made(tmp_path, version, file_format)

    def fail(*_: object, **__: object) -> None:
        raise MemoryError("malloc of size 4096 failed")

    monkeypatch.setattr(inside, fail)
    with pytest.raises(kind, match="malloc of size 4096 failed") as raised:
        table.verify(rows=True)
    assert not isinstance(raised.value, CorruptFile)


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
def test_every_way_to_say_that_memory_is_missing_is_understood(failure):
    with (
        pytest.raises(OutOfMemory, match="too little memory: cannot read data file memory://t/f") as raised,
        reading("memory://t/f"),
    ):
        raise failure
    assert "may be sound" in raised.value.next_step
    assert isinstance(raised.value, MemoryError)


@pytest.mark.parametrize(
    "text", ["malloc of size 9223372036854775807 failed", "Unable to allocate 7.28 TiB for an array"]
)
def test_a_size_that_no_machine_has_comes_from_damaged_bytes(text):
    with pytest.raises(CorruptFile), reading("memory://t/f"):
        raise pa.ArrowMemoryError(text)


def test_zlib_without_memory_does_not_call_metadata_damaged(monkeypatch):
    class Starved:
        eof = False

        def decompress(self, *_: object) -> bytes:
            raise zlib.error("Error -4 while decompressing data")

    monkeypatch.setattr("icefloe.codecs.json.gzip_members.zlib.decompressobj", lambda **_: Starved())
    with pytest.raises(OutOfMemory):
        decompressed(b"any bytes", 100)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
@pytest.mark.parametrize("file_format", ["parquet", "avro"])  # the ORC library uses memory that it did not get
def test_a_process_without_memory_says_so(tmp_path, file_format):
    table = made(tmp_path, 4, file_format)
    table.append(pa.table({"id": np.arange(1_500), "s": [f"{i:05d}".ljust(100_000) for i in range(1_500)]}))
    # Little enough for the texts, and enough for Arrow's threads, which end the process where they get no memory.
    settings = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "PYTHONPATH": "tests"}
    done = subprocess.run([sys.executable, "-c", STARVED, tmp_path], env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]

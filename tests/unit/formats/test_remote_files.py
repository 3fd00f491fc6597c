"""Data files in an object store: few requests, and failures of the store told apart from broken files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from icefloe.errors import CorruptFile, NoSuchFile, StorageError
from icefloe.formats.read.file_read import FileRead
from icefloe.formats.read.reader import read_file
from icefloe.formats.write.write_files import write_files
from icefloe.io.object_store import ObjectStoreFileIO
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, Field
from support.servers.faulty_s3 import Fault, ScriptedS3, scripted_s3

WIDE = Schema(fields=tuple(Field(n, f"c{n}", DOUBLE) for n in range(1, 21)))
ROWS = 5_000


@pytest.fixture
def server() -> Iterator[ScriptedS3]:
    with scripted_s3() as server:
        yield server


@pytest.fixture
def io(server: ScriptedS3) -> ObjectStoreFileIO:
    return ObjectStoreFileIO("s3", server.properties)


def written(io: ObjectStoreFileIO) -> str:
    """One file with more bytes than the reader gets with its footer."""
    numbers = np.random.default_rng(1)
    columns = [pa.array(numbers.random(ROWS)) for _ in WIDE.fields]
    table = pa.Table.from_arrays(columns, schema=arrow_schema(WIDE))
    entries = write_files(io, table, schema=WIDE, data_location="s3://b/t/data")
    return str(entries["location"][0].as_py())


def test_a_data_file_is_written_with_one_request_and_looked_for_with_another(
    io: ObjectStoreFileIO, server: ScriptedS3
) -> None:
    written(io)
    assert server.requests == ["PUT", "HEAD"]


def test_the_columns_of_a_row_group_come_together(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    location = written(io)
    server.requests.clear()
    batches = list(read_file(io, FileRead(location=location, schema=WIDE)))
    assert sum(batch.num_rows for batch in batches) == ROWS
    assert server.requests == ["GET", "GET"]  # the footer, then the rows


def test_a_store_that_fails_does_not_make_the_file_corrupt(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    location = written(io)
    server.faults = [Fault(method="GET", status=503)] * 20
    with pytest.raises(StorageError, match="could not"):
        list(read_file(io, FileRead(location=location, schema=WIDE)))
    server.faults = []
    reader = read_file(io, FileRead(location=location, schema=WIDE, batch_rows=100))
    next(reader)
    server.faults = [Fault(method="GET", status=503)] * 20
    assert sum(batch.num_rows for batch in reader) == ROWS - 100


def test_a_file_that_is_cut_short_is_corrupt(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    location = written(io)
    key = location.removeprefix("s3:/")
    server.objects[key] = server.objects[key][:-1000]
    with pytest.raises(CorruptFile, match=location):
        list(read_file(io, FileRead(location=location, schema=WIDE)))
    del server.objects[key]
    with pytest.raises(NoSuchFile, match=location):
        list(read_file(io, FileRead(location=location, schema=WIDE)))


def test_a_store_that_refuses_a_data_file_is_named(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    server.faults = [Fault(method="PUT", status=403)]
    with pytest.raises(StorageError, match="could not write s3://b/t/data/"):
        written(io)
    assert server.objects == {}

"""Object stores that fail: what is tried again, what is known afterwards, and what is only said to be unknown."""

from __future__ import annotations

import os
import pickle
import random
import signal
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.env import Env
from icefloe.errors import AlreadyExists, CommitStateUnknown, CorruptFile, NoSuchFile, StorageError, UnsupportedError
from icefloe.io import object_store
from icefloe.io.exclusive import check_exclusive
from icefloe.io.object_store import ObjectStoreFileIO
from icefloe.limits import MIB
from support.servers.faulty_s3 import HANG_UP, SILENCE, Fault, ScriptedS3, scripted_s3
from support.servers.s3 import S3Server

FAILURES = (500, 503, HANG_UP, SILENCE)


@pytest.fixture
def server() -> Iterator[ScriptedS3]:
    with scripted_s3() as server:
        yield server


@pytest.fixture
def io(server: ScriptedS3) -> ObjectStoreFileIO:
    return ObjectStoreFileIO("s3", server.properties, Env(sleep=lambda seconds: None))


@pytest.mark.parametrize("status", FAILURES)
def test_a_put_without_an_answer_is_unknown_and_never_sent_again(
    io: ObjectStoreFileIO, server: ScriptedS3, status: int
) -> None:
    server.faults = [Fault(method="PUT", status=status)]
    with pytest.raises(CommitStateUnknown, match="may or may not"):
        io.put_if_absent("s3://b/v1", b"1")
    assert server.requests == ["PUT", "GET"]
    assert "/b/v1" not in server.objects


@pytest.mark.parametrize("status", [409, 412, *FAILURES])
def test_a_put_that_was_stored_has_won_whatever_the_answer(
    io: ObjectStoreFileIO, server: ScriptedS3, status: int
) -> None:
    """A gateway that repeats requests answers 412 to the second one; the commit was taken for lost and made again."""
    server.faults = [Fault(method="PUT", status=status, after=True)]
    assert io.put_if_absent("s3://b/v1", b"1") is True
    assert server.requests == ["PUT", "GET"]


@pytest.mark.parametrize("other", [b"1", b"2", b"other"])
@pytest.mark.parametrize("status", [409, 412, *FAILURES])
def test_a_put_that_finds_the_object_of_another_writer_has_lost(
    io: ObjectStoreFileIO, server: ScriptedS3, status: int, other: bytes
) -> None:
    assert ObjectStoreFileIO("s3", server.properties).put_if_absent("s3://b/v1", other) is True
    server.faults = [Fault(method="PUT", status=status)]
    assert io.put_if_absent("s3://b/v1", b"1") is False
    assert server.objects == {"/b/v1": other}


@pytest.mark.parametrize("status", [409, 412])
def test_a_put_that_meets_an_object_which_is_not_there_is_unknown(
    io: ObjectStoreFileIO, server: ScriptedS3, status: int
) -> None:
    server.faults = [Fault(method="PUT", status=status)]
    with pytest.raises(CommitStateUnknown, match="may or may not"):
        io.put_if_absent("s3://b/v1", b"1")
    assert server.requests == ["PUT", *["GET"] * 4]


@pytest.mark.parametrize("fault", ["the store keeps no metadata", "the object cannot be read"])
def test_a_put_that_cannot_be_recognized_is_unknown(io: ObjectStoreFileIO, server: ScriptedS3, fault: str) -> None:
    server.faults = [Fault(method="PUT", status=412, after=True)]
    if fault == "the object cannot be read":
        server.faults += [Fault(method="GET", status=500)] * 4
    else:
        server.keeps_marks = False
    with pytest.raises(CommitStateUnknown, match="may or may not"):
        io.put_if_absent("s3://b/v1", b"1")
    server.objects["/b/v1"] = b"2"
    assert io.put_if_absent("s3://b/v1", b"1") is False


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("status", [409, 412])
def test_a_new_file_is_written_although_the_store_says_that_it_exists(
    io: ObjectStoreFileIO, server: ScriptedS3, status: int, after: bool
) -> None:
    """The commit of a SQL catalog failed with AlreadyExists for a name with a new uuid in it."""
    server.faults = [Fault(method="PUT", status=status, after=after)]
    io.write_new("s3://b/new", b"bytes")
    assert server.objects == {"/b/new": b"bytes"}


def test_a_new_file_that_the_store_never_has_is_a_storage_error(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    server.faults = [Fault(method="PUT", status=412)] * 4
    with pytest.raises(StorageError, match="says that it exists") as caught:
        io.write_new("s3://b/new", b"bytes")
    assert caught.value.retryable


def test_a_check_of_the_storage_that_fails_is_no_commit_of_unknown_outcome(
    io: ObjectStoreFileIO, server: ScriptedS3
) -> None:
    """The files of the commit stayed, and its user had to look for a snapshot that never was."""
    server.faults = [Fault(method="PUT", status=503)] * 4
    with pytest.raises(StorageError, match="could not check that only one writer") as caught:
        check_exclusive(io, "s3://b/wh/t/metadata")
    assert caught.value.retryable
    server.faults = []  # writers that had not begun yet were cancelled
    check_exclusive(io, "s3://b/wh/t/metadata")
    assert server.objects == {}


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_put_that_is_not_allowed_is_a_definite_failure(
    io: ObjectStoreFileIO, server: ScriptedS3, status: int
) -> None:
    server.faults = [Fault(method="PUT", status=status)]
    with pytest.raises(StorageError, match="could not write s3://b/v1"):
        io.put_if_absent("s3://b/v1", b"1")
    assert server.requests == ["PUT"]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("status", FAILURES)
def test_a_new_file_is_written_in_spite_of_failures(
    io: ObjectStoreFileIO, server: ScriptedS3, status: int, after: bool
) -> None:
    server.faults = [Fault(method="PUT", status=status, after=after)] * 2
    io.write_new("s3://b/new", b"bytes")
    assert server.objects == {"/b/new": b"bytes"}
    assert server.requests.count("PUT") == 3


def test_a_name_found_taken_after_a_failure_is_still_taken(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    server.objects["/b/new"] = b"other"
    server.faults = [Fault(method="PUT", status=500)]
    with pytest.raises(AlreadyExists):
        io.write_new("s3://b/new", b"bytes")
    assert server.objects == {"/b/new": b"other"}


def test_a_name_is_taken_also_when_the_bytes_are_the_same(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    server.objects["/b/new"] = b"bytes"
    with pytest.raises(AlreadyExists):
        io.write_new("s3://b/new", b"bytes")
    assert server.requests == ["PUT", "GET"]


@pytest.mark.parametrize("after", [False, True])
def test_a_new_file_that_cannot_be_written_is_gone(io: ObjectStoreFileIO, server: ScriptedS3, after: bool) -> None:
    server.objects["/b/old"] = b"old"
    answers = [412, 500, 500, 500] if after else [500] * 4
    server.faults = [Fault(method="PUT", status=500, after=after), *(Fault(method="PUT", status=s) for s in answers)]
    server.faults += [Fault(method="GET", status=500)] * 4 if after else []
    with pytest.raises(StorageError, match="s3://b/new"):
        io.write_new("s3://b/new", b"bytes")
    assert server.objects == {"/b/old": b"old"}


def test_a_refused_file_is_not_tried_again(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    server.faults = [Fault(method="PUT", status=403)]
    with pytest.raises(StorageError, match="could not write"):
        io.write_new("s3://b/new", b"bytes")
    assert server.requests.count("PUT") == 1


@pytest.mark.parametrize("status", FAILURES)
def test_a_read_is_tried_again(io: ObjectStoreFileIO, server: ScriptedS3, status: int) -> None:
    server.objects["/b/a"] = b"0123456789"
    server.faults = [Fault(method="GET", status=status)] * 2
    assert io.read("s3://b/a") == b"0123456789"
    server.faults = [Fault(method="GET", status=status)] * 2
    assert io.read_range("s3://b/a", 2, 3) == b"234"
    server.faults = [Fault(method="HEAD", status=status)] * 2
    assert io.size("s3://b/a") == 10


def test_a_read_that_keeps_failing_is_a_storage_error(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    server.objects["/b/a"] = b"0123456789"
    server.faults = [Fault(method="GET", status=503)] * 10
    with pytest.raises(StorageError, match="could not read s3://b/a"):
        io.read_range("s3://b/a", 0, 3)
    with pytest.raises(StorageError):
        io.read("s3://b/a")


def test_a_missing_file_is_asked_for_once(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    with pytest.raises(NoSuchFile):
        io.read("s3://b/none")
    assert server.requests == ["GET"]


def test_a_file_that_is_shorter_than_promised_is_told_by_what_came(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    server.objects["/b/a"] = b"0123456789"
    with pytest.raises(CorruptFile, match="got 2"):
        io.read_range("s3://b/a", 8, 5)
    assert server.requests == ["GET"]


def test_files_that_cannot_be_deleted_do_not_spare_the_others(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    server.objects = {f"/b/{name}": b"" for name in "abcd"}
    server.protected = {"/b/b", "/b/c"}
    with pytest.raises(StorageError, match="2 of 5 files, first s3://b/b") as caught:
        io.delete([f"s3://b/{name}" for name in "abcde"])
    assert caught.value.context["locations"] == ("s3://b/b", "s3://b/c")
    assert sorted(server.objects) == ["/b/b", "/b/c"]


def test_many_files_are_deleted_with_one_request(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    server.objects = {f"/b/{n}": b"" for n in range(1500)} | {"/c/x": b""}
    io.delete([*(f"s3://b/{n}" for n in range(1500)), "s3://c/x"])
    assert server.objects == {}
    assert server.requests == ["POST"] * 3


def test_files_written_beside_one_that_fails_are_gone(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    server.objects["/b/b"] = b"here before"
    with pytest.raises(AlreadyExists):
        io.write_many([("s3://b/a", b"1"), ("s3://b/b", b"2"), ("s3://b/c", b"3")])
    assert server.objects == {"/b/b": b"here before"}


def test_a_small_data_file_is_read_with_one_request(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    rows = pa.table({"id": list(range(100))})
    files, path = io.arrow_path("s3://b/data.parquet")
    pq.write_table(rows, path, filesystem=files)
    assert server.requests == ["PUT"]
    server.requests.clear()
    with files.open_input_file(path) as file:
        assert pq.ParquetFile(file).read().equals(rows)
    assert server.requests == ["GET"]


def test_a_large_data_file_is_read_by_range(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    rows = pa.table({"id": list(range(100_000)), "other": list(range(100_000))})
    files, path = io.arrow_path("s3://b/data.parquet")
    pq.write_table(rows, path, filesystem=files, compression="none", use_dictionary=False)
    with files.open_input_file(path) as file:
        assert file.size() == len(server.objects["/b/data.parquet"])
        read = pq.ParquetFile(file).read(columns=["id"])
    assert read.equals(rows.select(["id"]))


def test_errors_keep_their_type_on_the_way_through_arrow(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    files, path = io.arrow_path("s3://b/data.parquet")
    with pytest.raises(FileNotFoundError):
        files.open_input_file(path)
    server.objects["/b/data.parquet"] = bytes(200_000)
    with files.open_input_file(path) as file:
        server.faults = [Fault(method="GET", status=500)] * 9
        with pytest.raises(StorageError, match=r"could not read s3://b/data\.parquet"):
            file.read(10)
    server.faults = [Fault(method="PUT", status=403)]
    with (
        pytest.raises(StorageError, match=r"could not write s3://b/data\.parquet"),
        files.open_output_stream(path) as out,
    ):
        out.write(b"x")


def test_a_large_file_never_replaces_another(
    io: ObjectStoreFileIO, server: ScriptedS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "PARTS_FROM", 10)
    server.objects["/b/old"] = b"old"
    with pytest.raises(AlreadyExists):
        io.write_new("s3://b/old", bytes(20))
    assert server.requests == ["HEAD"]
    assert server.objects == {"/b/old": b"old"}


def test_a_large_file_is_uploaded_in_parts(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "PARTS_FROM", 10 * MIB)
    monkeypatch.setattr(object_store, "PART_BYTES", 5 * MIB)
    io, root, data = ObjectStoreFileIO("s3", s3.properties), f"s3://{s3.new_bucket()}", random.randbytes(12 * MIB)
    io.write_new(f"{root}/large", data)
    assert io.read(f"{root}/large") == data
    files, path = io.arrow_path(f"{root}/streamed")
    with files.open_output_stream(path) as out:
        for start in range(0, len(data), MIB):
            out.write(data[start : start + MIB])
        assert not io.exists(f"{root}/streamed")
    assert io.read(f"{root}/streamed") == data
    with files.open_input_file(path) as file:
        assert file.read_at(3 * MIB, 4 * MIB) == data[4 * MIB : 7 * MIB]
        file.seek(-10, 2)
        assert file.read() == data[-10:]


def test_storage_travels_to_other_processes(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    server.objects["/b/a"] = b"1"
    assert pickle.loads(pickle.dumps(io)).read("s3://b/a") == b"1"


def test_a_forked_process_is_told_instead_of_left_waiting(io: ObjectStoreFileIO, server: ScriptedS3) -> None:
    server.objects["/b/a"] = b"1"
    io.read("s3://b/a")
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that waits forever ends all the same
        try:
            io.read("s3://b/a")
        except UnsupportedError as error:
            os._exit(42 if "'spawn'" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    assert io.read("s3://b/a") == b"1"

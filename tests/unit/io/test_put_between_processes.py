"""``put_if_absent`` between processes: one winner for each name, with a broken scheme as the control."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.context import BaseContext
from pathlib import Path

import pytest
from pyarrow import fs
from racing import work

from icefloe.errors import UnsupportedError
from icefloe.io.arrow_fs import ArrowFileIO
from icefloe.io.exclusive import check_exclusive
from icefloe.io.local import LocalFileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.io.object_store import ObjectStoreFileIO
from support.servers.s3 import S3Server

PROCESSES, PUTS = 6, 25
FORK = multiprocessing.get_context("fork")
# The client of object stores does not survive a fork, so these processes come from one that never used it.
FORK_SERVER = multiprocessing.get_context("forkserver")
FORK_SERVER.set_forkserver_preload(["icefloe.io.object_store"])


def exists_then_rename(location: str, data: bytes) -> bool:
    """The scheme of file-system tables elsewhere, which loses commits; the pause makes it lose them for certain."""
    if os.path.exists(location):
        return False
    temporary = f"{location}.{os.getpid()}"
    Path(temporary).write_bytes(data)
    time.sleep(0.002)
    os.rename(temporary, location)
    return True


def winners(put: Callable[[str, bytes], bool], folder: object, context: BaseContext = FORK) -> dict[int, int]:
    """How many processes were told that they won, by number of the file."""
    queue, start = context.SimpleQueue(), context.Barrier(PROCESSES)
    processes = [
        context.Process(target=work, args=(put, str(folder), PUTS, worker, start, queue))  # type: ignore[attr-defined]
        for worker in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    won = [number for _ in processes for number in queue.get()]
    for process in processes:
        process.join()
    return {number: won.count(number) for number in range(PUTS)}


def test_every_name_has_one_winner(tmp_path: Path) -> None:
    assert set(winners(LocalFileIO().put_if_absent, tmp_path).values()) == {1}


def test_every_name_has_one_winner_through_arrow(tmp_path: Path) -> None:
    io = ArrowFileIO(fs.LocalFileSystem(), root="file:///")
    assert set(winners(io.put_if_absent, tmp_path).values()) == {1}


def test_every_name_has_one_winner_in_an_object_store(s3: S3Server) -> None:
    io, folder = ObjectStoreFileIO("s3", s3.properties), f"s3://{s3.new_bucket()}/race"
    assert set(winners(io.put_if_absent, folder, FORK_SERVER).values()) == {1}
    assert len(list(io.list(folder))) == PUTS


def test_the_harness_catches_a_scheme_that_loses(tmp_path: Path) -> None:
    assert max(winners(exists_then_rename, tmp_path).values()) > 1


class Careless(MemoryFileIO):
    """Storage that checks and writes in two steps."""

    def put_if_absent(self, location: str, data: bytes) -> bool:
        absent = not self.exists(location)
        time.sleep(0.02)
        if absent:
            self.replace(location, data)
        return absent


class Deaf(MemoryFileIO):
    """Storage that ignores the condition."""

    def put_if_absent(self, location: str, data: bytes) -> bool:
        self.replace(location, data)
        return True


class Forgetful(MemoryFileIO):
    """Storage that has one winner but keeps the bytes of another."""

    def put_if_absent(self, location: str, data: bytes) -> bool:
        won = super().put_if_absent(location, data)
        self.replace(location, data)
        return won


@pytest.mark.parametrize("storage", [Careless, Deaf, Forgetful])
def test_storage_whose_put_is_not_exclusive_is_refused(storage: type[MemoryFileIO]) -> None:
    io = storage()
    with pytest.raises(UnsupportedError, match="commits by file name would be lost"):
        check_exclusive(io, "memory://wh/t/metadata")
    assert list(io.list("memory://wh")) == []

"""``put_if_absent`` between processes: one winner for each name, with a broken scheme as the control."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path

from icefloe.io.local import LocalFileIO

PROCESSES, PUTS = 6, 25
FORK = multiprocessing.get_context("fork")


def exists_then_rename(location: str, data: bytes) -> bool:
    """The scheme of file-system tables elsewhere, which loses commits; the pause makes it lose them for certain."""
    if os.path.exists(location):
        return False
    temporary = f"{location}.{os.getpid()}"
    Path(temporary).write_bytes(data)
    time.sleep(0.002)
    os.rename(temporary, location)
    return True


def winners(put: Callable[[str, bytes], bool], folder: Path) -> dict[int, int]:
    """How many processes were told that they won, by number of the file."""
    queue, start = FORK.SimpleQueue(), FORK.Barrier(PROCESSES)

    def work(worker: int) -> None:
        start.wait()
        queue.put([number for number in range(PUTS) if put(f"{folder}/v{number}", b"%d" % worker)])

    processes = [FORK.Process(target=work, args=(worker,)) for worker in range(PROCESSES)]
    for process in processes:
        process.start()
    won = [number for _ in processes for number in queue.get()]
    for process in processes:
        process.join()
    return {number: won.count(number) for number in range(PUTS)}


def test_every_name_has_one_winner(tmp_path: Path) -> None:
    assert set(winners(LocalFileIO().put_if_absent, tmp_path).values()) == {1}


def test_the_harness_catches_a_scheme_that_loses(tmp_path: Path) -> None:
    assert max(winners(exists_then_rename, tmp_path).values()) > 1

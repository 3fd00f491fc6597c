"""Streams that are killed and restarted, and two drivers on one checkpoint: every row is there once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

import icefloe

PROGRAM = Path(__file__).with_name("chained_streams.py")
KILLS = int(os.environ.get("ICEFLOE_STREAM_KILLS", "20"))
SECONDS = 600
KEYS, ROWS = 40, 10


class Feed:
    """The table ``source`` and what it should become: each append has distinct keys."""

    def __init__(self, folder: Path) -> None:
        self.catalog = icefloe.catalog("demo", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")
        schema = "key bigint, n bigint"
        self._source = self.catalog.create_table("db.source", schema=schema, format_version=3)
        self.catalog.create_table("db.copy", schema=schema, format_version=2)
        self.catalog.create_table("db.newest", schema=schema, format_version=4)
        self._numbers = count()
        self._random = random.Random(7)
        self.rows: list[tuple[int, int]] = []

    def append(self, times: int) -> None:
        for _ in range(times):
            keys = self._random.sample(range(KEYS), ROWS)
            added = [(key, next(self._numbers)) for key in keys]
            self.rows += added
            self._source.append(pa.table({"key": [key for key, _ in added], "n": [n for _, n in added]}))

    def contents(self, name: str) -> list[tuple[int, int]]:
        found = self.catalog.load_table(name).scan().to_arrow().to_pylist()
        return sorted((row["key"], row["n"]) for row in found)


def started(folder: Path, kind: str, swaps: int = 0) -> subprocess.Popen[str]:
    with (folder / "errors.txt").open("a", encoding="utf-8") as errors:
        return subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder), kind, str(swaps)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )


def kill(process: subprocess.Popen[str]) -> None:
    """End a process and its JVM."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    process.stdout.readline()  # "ready", or nothing if the process ended


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path)


def check_finished(feed: Feed, folder: Path) -> None:
    done = started(folder, "finish")
    assert done.wait(SECONDS) == 0, (folder / "errors.txt").read_text(encoding="utf-8")[-4000:]
    assert feed.contents("db.copy") == sorted(feed.rows)
    assert feed.contents("db.newest") == sorted(dict(feed.rows).items())


@pytest.mark.timeout(1800)
def test_streams_that_are_killed_and_restarted_have_every_row_once(feed: Feed, tmp_path: Path) -> None:
    """At random moments, and just before and after commits of both streams."""
    chosen = random.Random(11)
    for number in range(KILLS):
        feed.append(3)
        kind = ("run", "run", "before", "after")[number % 4]
        process = started(tmp_path, kind, chosen.randint(1, 4))
        wait_until_ready(process)
        if kind == "run":
            time.sleep(chosen.uniform(0, 3))
        else:
            deadline = time.monotonic() + SECONDS
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
        end = process.poll()
        kill(process)
        errors = (tmp_path / "errors.txt").read_text(encoding="utf-8")
        assert end in (None, -signal.SIGKILL), f"program {number} ({kind}) ended by itself with {end}: {errors[-4000:]}"
    check_finished(feed, tmp_path)


@pytest.mark.timeout(1800)
def test_of_two_drivers_on_one_checkpoint_one_fails_and_nothing_is_doubled(feed: Feed, tmp_path: Path) -> None:
    feed.append(2)
    drivers = [started(tmp_path, "run") for _ in range(2)]
    for driver in drivers:
        wait_until_ready(driver)
    deadline = time.monotonic() + SECONDS
    while all(driver.poll() is None for driver in drivers) and time.monotonic() < deadline:
        feed.append(1)
        time.sleep(1)
    ends = [driver.poll() for driver in drivers]
    for driver in drivers:
        kill(driver)
    assert any(end not in (None, 0) for end in ends)
    check_finished(feed, tmp_path)

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from icefloe.engines.arrow.streams import in_order


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_items_keep_the_order_of_their_sources(threads: int) -> None:
    def source(n: int) -> Iterator[int]:
        time.sleep(0.002 * (n % 3))
        yield from range(n * 100, n * 100 + n)

    sources = [lambda n=n: source(n) for n in range(12)]
    assert list(in_order(sources, threads=threads)) == [n * 100 + i for n in range(12) for i in range(n)]


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_comes_where_its_item_would_have(threads: int) -> None:
    def broken() -> Iterator[int]:
        yield 2
        raise ValueError("no more")

    stream = in_order([lambda: iter([1]), broken, lambda: iter([3])], threads=threads)
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(ValueError, match="no more"):
        next(stream)


def test_a_source_waits_when_nobody_reads_and_ends_when_nobody_will() -> None:
    produced: list[int] = []
    ended = threading.Event()

    def endless() -> Iterator[int]:
        try:
            n = 0
            while True:
                produced.append(n)
                yield n
                n += 1
        finally:
            ended.set()

    stream = in_order([lambda: iter([7]), endless], threads=2)
    assert next(stream) == 7
    time.sleep(0.2)
    assert len(produced) < 20
    stream.close()  # type: ignore[attr-defined]
    assert ended.wait(5)


def test_sources_are_begun_only_when_a_thread_is_free() -> None:
    begun: list[int] = []

    def source(n: int) -> Iterator[int]:
        begun.append(n)
        yield n

    stream = in_order((lambda n=n: source(n) for n in range(50)), threads=2)
    assert next(stream) == 0
    assert max(begun) <= 2
    assert list(stream) == list(range(1, 50))


def test_a_program_can_end_with_a_stream_half_read() -> None:
    program = """
from itertools import count
from icefloe.engines.arrow.streams import in_order
stream = in_order([count, count], threads=2)
print(next(stream))
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"

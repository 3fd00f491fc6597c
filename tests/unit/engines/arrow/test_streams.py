from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from icefloe.engines.arrow.read.parallel_streams import in_order


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

    stream = in_order([lambda: iter([7]), endless], threads=2, ahead=10)
    assert next(stream) == 7
    time.sleep(0.2)
    assert len(produced) < 20
    stream.close()  # type: ignore[attr-defined]
    assert ended.wait(5)


def test_sources_are_begun_only_a_little_ahead_of_the_reader() -> None:
    begun: list[int] = []

    def source(n: int) -> Iterator[int]:
        begun.append(n)
        yield n

    stream = in_order((lambda n=n: source(n) for n in range(500)), threads=2)
    assert next(stream) == 0
    time.sleep(0.1)
    assert max(begun) <= 20  # also where they yield nothing heavy
    assert list(stream) == list(range(1, 500))


@dataclass(frozen=True)
class Heavy:
    name: str
    nbytes: int


def test_what_waits_is_bounded_by_weight_whatever_the_number_of_sources() -> None:
    alive, most, lock = 0, 0, threading.Lock()

    def source(n: int) -> Iterator[Heavy]:
        nonlocal alive, most
        for i in range(10):
            with lock:
                alive += 1
                most = max(most, alive)
            yield Heavy(f"{n}.{i}", 100)

    names = []
    for item in in_order([lambda n=n: source(n) for n in range(8)], threads=4, ahead=500):
        time.sleep(0.001)
        names.append(item.name)
        with lock:
            alive -= 1
    assert names == [f"{n}.{i}" for n in range(8) for i in range(10)]
    assert most <= 5 + 1 + 4 + 1  # those that wait, one of the first line, one in the hands of each thread, one in ours


def test_the_source_whose_turn_it_is_goes_on_when_others_have_filled_the_store() -> None:
    others_are_full = threading.Event()

    def first() -> Iterator[Heavy]:
        assert others_are_full.wait(5)
        for i in range(5):
            yield Heavy(f"first {i}", 100)

    def second() -> Iterator[Heavy]:
        yield Heavy("second", 1000)
        others_are_full.set()

    found = [item.name for item in in_order([first, second], threads=2, ahead=500)]
    assert found == [*(f"first {i}" for i in range(5)), "second"]


def test_a_thread_that_is_done_with_its_source_takes_another_while_the_first_goes_on() -> None:
    third_began = threading.Event()

    def slow() -> Iterator[int]:
        assert third_began.wait(5)
        yield 0

    def third() -> Iterator[int]:
        third_began.set()
        yield 2

    assert list(in_order([slow, lambda: iter([1]), third], threads=2)) == [0, 1, 2]


def test_an_error_of_the_list_of_sources_comes_behind_those_before_it() -> None:
    def sources() -> Iterator[Callable[[], Iterator[int]]]:
        yield lambda: iter([1])
        raise ValueError("no list")

    stream = in_order(sources(), threads=3)
    assert next(stream) == 1
    with pytest.raises(ValueError, match="no list"):
        next(stream)


def test_no_sources_are_no_items() -> None:
    assert list(in_order([], threads=3)) == []


def output_of(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("daemon", [True, False])
def test_a_program_can_end_with_a_stream_half_read(daemon: bool) -> None:
    program = f"""
import threading
from itertools import count
from icefloe.engines.arrow.read.parallel_streams import in_order
stream = in_order([count, count], threads=2)
print(next(stream))
other = in_order([count, count], threads=2)
thread = threading.Thread(target=lambda: print(next(other)), daemon={daemon})
thread.start()
thread.join()
"""
    assert output_of(program) == "0\n0\n"


def test_a_stream_of_a_daemon_is_read_by_threads_that_the_program_waits_for() -> None:
    """A daemon's threads were daemons: killed at the end of a program with a lock held, which then waited for ever."""
    seen: list[bool] = []

    def source() -> Iterator[int]:
        seen.append(threading.current_thread().daemon)
        return iter([1])

    reader = threading.Thread(target=lambda: list(in_order([source, source], threads=2)), daemon=True)
    reader.start()
    reader.join()
    assert seen == [False, False]


@pytest.mark.slow
def test_a_thread_that_outlives_the_main_one_reads_to_the_end() -> None:
    program = """
import threading
import time
from icefloe.engines.arrow.read.parallel_streams import in_order

def slow():
    for n in range(3):
        time.sleep(0.1)
        yield n

threading.Thread(target=lambda: print(list(in_order([slow] * 4, threads=2, ahead=1)))).start()
"""
    assert output_of(program) == f"{[0, 1, 2] * 4}\n"

"""Values that threads ask for at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from icefloe.deletes.deleted_rows import ComputeOnce


def test_a_value_is_made_once_whichever_threads_ask() -> None:
    made: list[int] = []
    gate = threading.Barrier(8)

    def make(key: int) -> int:
        made.append(key)
        return key * 10

    values = ComputeOnce(make)

    def ask(number: int) -> int:
        gate.wait()
        return values(number % 2)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert found == [0, 10] * 4
    assert sorted(made) == [0, 1]


def test_threads_that_ask_for_different_values_do_not_wait_for_each_other() -> None:
    meet = threading.Barrier(2, timeout=20)
    values = ComputeOnce(lambda key: (meet.wait(), key)[1])
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(values, ["a", "b"])) == ["a", "b"]


def test_what_failed_is_tried_again() -> None:
    answers = iter([ValueError("not yet"), 5])

    def make(key: str) -> int:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    values = ComputeOnce(make)
    with pytest.raises(ValueError, match="not yet"):
        values("a")
    assert values("a") == 5


def test_what_was_not_asked_for_lately_is_made_again_when_there_is_too_much() -> None:
    made: list[str] = []

    def make(key: str) -> str:
        made.append(key)
        return key

    values = ComputeOnce(make, size_of=len, limit=5)
    for key in ("aa", "bb", "aa", "cc", "aa", "bb"):
        assert values(key) == key
    assert made == ["aa", "bb", "cc", "bb"]
    assert values("far too long") == "far too long"
    assert values("far too long") == "far too long"
    assert made[4:] == ["far too long"]

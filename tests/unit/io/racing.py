"""What each process of a race does; it imports little, as each process imports it anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def work(put: Callable[[str, bytes], bool], folder: str, puts: int, worker: int, start: Any, queue: Any) -> None:
    """Wait for the others, then try every name; the numbers of those that were won go to the queue."""
    start.wait()
    queue.put([number for number in range(puts) if put(f"{folder}/v{number}", b"%d" % worker)])

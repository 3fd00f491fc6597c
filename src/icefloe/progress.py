"""Progress of long operations: a function that callers pass, such as the progress bar of the command line."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called during the work with ``done`` of ``total`` steps, and what a step is, such as ``"files deleted"``.

    >>> def show(done, total, step):
    ...     print(f"{done} of {total} {step}")
    >>> import icefloe.progress
    >>> progress: icefloe.progress.Progress = show
    >>> progress(3, 10, "files deleted")
    3 of 10 files deleted
    """

    def __call__(self, done: int, total: int, step: str) -> None:
        """Report the progress."""
        ...


def silent(done: int, total: int, step: str) -> None:
    """Report nothing."""

"""Carries icefloe errors through the JVM: as text inside Spark's own exceptions, and back.

The planner that Spark calls, tasks and expressions can pass on only the text of an error. It begins with its kind, and
ends where Spark adds something: ``translated`` finds it, and people read a plain message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from icefloe import errors
from icefloe.errors import IcefloeError, StorageError, UnsupportedError

_KINDS = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, IcefloeError)
}
_ADDED = (  # what Spark adds to a message
    r" SQLSTATE: \w{5}",
    r"\s*\n\tat ",
    r"\s*\n(?:Driver|JVM) stacktrace:",
    r"\s*\n=== Streaming Query ===",
    r"\s*\n\n(?:The above exception was|During handling of)",  # in a task, another error because of this one
    r"\s*\Z",
)
_MARKED = re.compile(rf"\bicefloe ({'|'.join(_KINDS)}): (.*?)(?={'|'.join(_ADDED)})", re.DOTALL)

_NO_ICEFLOE = "ModuleNotFoundError: No module named 'icefloe'"
_WORKER_PYTHON = (
    "the Python that Spark starts for its tasks does not have icefloe; install it there, or set PYSPARK_PYTHON to one"
    " that has it before the session starts"
)
_NO_BLOCK = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
_LOST_ROWS = (
    "an executor was lost with rows that cannot be computed again, because their query is not deterministic (rand(),"
    " uuid() and the like); nothing was changed: run the change again, or write these rows to a table first"
)


def marked(kind: type[IcefloeError], message: str) -> str:
    """The text of an error that ``translated`` will raise as ``kind``."""
    return f"icefloe {kind.__name__}: {message}"


@contextmanager
def marking() -> Iterator[None]:
    """Raise an icefloe error of a task as a RuntimeError with the marked text, which Spark passes on."""
    try:
        yield
    except IcefloeError as error:
        raise RuntimeError(marked(type(error), str(error))) from error


def recovered(text: str) -> IcefloeError | None:
    """The error that a text carries, if any.

    >>> recovered("Job aborted: " + marked(errors.InputError, "column 'x' is required") + "\\n\\tat java.lang...")
    InputError("column 'x' is required")
    """
    match = _MARKED.search(text)
    if match is None:
        return _known(text)
    return _KINDS[match[1]](match[2])


def _known(text: str) -> IcefloeError | None:
    """The error for an exception of Spark whose own message does not say what to do."""
    if _NO_ICEFLOE in text:
        return UnsupportedError(_WORKER_PYTHON, feature="python workers")
    return StorageError(_LOST_ROWS) if _NO_BLOCK in text else None


@contextmanager
def translated() -> Iterator[None]:
    """Raise the icefloe error inside a Spark exception in its place; other exceptions pass unchanged."""
    try:
        yield
    except (PySparkException, Py4JError) as failure:
        error = recovered(str(failure))
        if error is None:
            raise
        raise error from failure

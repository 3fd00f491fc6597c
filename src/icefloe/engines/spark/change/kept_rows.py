"""Rows that a change reads more than once, evaluated once and kept in memory or on disk.

A change finds rows first and writes rows later. If an executor is lost in between, Spark computes the kept rows that it
had again. That gives the same rows for a query of deterministic expressions. For others, such as ``rand()`` or
``monotonically_increasing_id()``, the rows that are found and those that are written could differ. These are kept
without the query that computed them, so the change fails instead.
"""

from __future__ import annotations

from contextlib import ExitStack

from pyspark.sql import DataFrame
from pyspark.storagelevel import StorageLevel

_LEVEL = StorageLevel.MEMORY_AND_DISK


def keep_rows(frame: DataFrame, until: ExitStack, *, is_deterministic: bool = True) -> DataFrame:
    """The rows of a frame, kept until ``until`` is closed; evaluated now if Spark could not compute them again.

    ``is_deterministic`` says so of the query behind a frame that has only its rows.
    """
    if is_deterministic and bool(frame._jdf.queryExecution().analyzed().deterministic()):
        kept = frame.persist(_LEVEL)
        until.callback(kept.unpersist)
        return kept
    kept = frame.localCheckpoint(eager=False, storageLevel=_LEVEL)
    blocks = kept._jdf.queryExecution().analyzed().rdd()
    until.callback(lambda: blocks.unpersist(False))  # before they are evaluated: a failure leaves none behind
    blocks.count()
    return kept

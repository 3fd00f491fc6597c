"""Random histories of rows on Spark against a plain-Python model, in every version, file format and write mode.

Operations run on Spark, except that a transaction mixes both engines. Thirty short histories run in ``make test``, the
others of 300 in ``make thorough`` (``HISTORIES=...`` for another number).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.schema.metadata_columns import LAST_UPDATED, ROW_ID
from support.row_histories.history import RowHistory, random_steps
from support.row_histories.model import Start
from support.row_histories.spark_engine import OnSpark
from support.selection import first

HISTORIES, SHORT, LENGTH = int(os.environ.get("ICEFLOE_HISTORIES", "300")), 30, 4
COMPARED = 12  # histories that run on both engines
GROUPS = 12  # seeds that are equal in this have the same version and format
SEEDS = {
    "short": tuple(range(SHORT)),
    **{f"group {group}": tuple(range(SHORT + group, HISTORIES, GROUPS)) for group in range(GROUPS)},
}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seeds", first(1, SEEDS))
def test_every_snapshot_of_a_history_on_spark_has_the_rows_of_the_model(
    spark: SparkSession, tmp_path: Path, seeds: str
) -> None:
    for seed in SEEDS[seeds]:
        history = RowHistory(Start.drawn(seed), OnSpark(spark, tmp_path / str(seed)))
        history.run(random_steps(seed, 3 if seed < SHORT else LENGTH), check_each=seed >= SHORT)
        history.finish()


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(3))
def test_a_history_has_the_same_rows_and_ids_on_both_engines(spark: SparkSession, tmp_path: Path, part: int) -> None:
    """Which new row of a commit gets which of its new ids is left to the order of files, which engines choose."""
    for seed in range(part, COMPARED, 3):
        here = RowHistory(Start.drawn(seed))
        there = RowHistory(Start.drawn(seed), OnSpark(spark, tmp_path / str(seed)))
        ids: set[tuple[object, object]] = set()
        for history in (here, there):
            history.run(random_steps(seed, LENGTH))
        for one, other in zip(here.table.snapshots, there.table.snapshots, strict=True):
            assert here.expected[one.snapshot_id] == there.expected[other.snapshot_id], f"seed {seed}, rows of {one}"
            first, second = _lineage(here, one), _lineage(there, other)
            assert [row[::2] for row in first] == [row[::2] for row in second], f"seed {seed}, changes of {one}"
            ids |= {(row[1], same[1]) for row, same in zip(first, second, strict=True)}
        assert len(ids) == len({pair[0] for pair in ids}) == len({pair[1] for pair in ids}), f"seed {seed}: {ids}"


def _lineage(history: RowHistory, snapshot: Snapshot) -> list[tuple[object, ...]]:
    """The unique number, the id and the last change of every row, by number; none of snapshots without ids."""
    if snapshot.first_row_id is None:
        return []
    names = ["uid", ROW_ID.name, LAST_UPDATED.name]
    rows = history.engine.rows(history.table.at(snapshot=snapshot.snapshot_id).scan(columns=names))
    return sorted(tuple(row[name] for name in names) for row in rows)

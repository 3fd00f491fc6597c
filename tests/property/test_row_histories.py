"""Random histories of rows against a plain-Python model, in every version and file format.

A hundred seeded ones run in groups by version and format: one of each group in ``make test``, the others in ``make
thorough``. ``make property`` runs 3,000 longer ones, and some that hypothesis makes up and cuts down to what matters
when they fail.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icefloe.formats.parquet import file as parquet_file
from support.row_histories.history import VERBS, RowHistory, random_steps
from support.row_histories.model import FORMATS, Start, Step
from support.selection import first

LONG = os.environ.get("ICEFLOE_PROFILE") == "property"
SEED = int(os.environ.get("ICEFLOE_SEED", "0"))
HISTORIES, LENGTH = (3_000, 16) if LONG else (100, 6)
GROUPS = 12  # seeds that are equal in this have the same version and format
SEEDS = {
    **{f"group {group}, first": range(SEED + group, SEED + group + 1) for group in range(GROUPS)},
    **{f"group {group}": range(SEED + group + GROUPS, SEED + HISTORIES, GROUPS) for group in range(GROUPS)},
}
STEPS = st.lists(st.tuples(st.sampled_from(sorted(VERBS)), st.integers(0, 2**32 - 1)), min_size=1, max_size=12)


@pytest.mark.hypothesis
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("seeds", first(4, SEEDS))
def test_every_snapshot_of_a_history_has_the_rows_of_the_model(seeds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    large = parquet_file.MANY_BYTES
    for seed in SEEDS[seeds]:
        # Files of a few rows are read by pages in two histories of three.
        monkeypatch.setattr(parquet_file, "MANY_BYTES", large if seed // GROUPS % 3 == 0 else 0)
        history = RowHistory(Start.drawn(seed))
        history.run(random_steps(seed, LENGTH))
        history.finish()


@settings(max_examples=max(1, settings().max_examples // 10), suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32 - 1), steps=STEPS)
def test_every_snapshot_of_a_short_history_has_the_rows_of_the_model(seed: int, steps: list[Step]) -> None:
    history = RowHistory(Start.drawn(seed))
    history.run(steps)
    history.finish()


def test_the_seeded_histories_have_every_version_format_and_verb() -> None:
    assert sorted(seed for seeds in SEEDS.values() for seed in seeds) == list(range(SEED, SEED + HISTORIES))
    starts = [Start.drawn(seed) for seed in range(SEED, SEED + HISTORIES)]
    made = {(start.version, start.properties["write.format.default"]) for start in starts}
    assert made == {(version, name) for version in (1, 2, 3, 4) for name in FORMATS}
    verbs = {verb for seed in range(SEED, SEED + HISTORIES) for verb, _ in random_steps(seed, LENGTH)}
    assert verbs == set(VERBS)


def test_a_history_can_be_run_again_step_by_step() -> None:
    """By which a failure is looked into: the same steps give the same rows."""
    steps = random_steps(5, 6)
    rows: list[list[str]] = []
    for _ in range(2):
        history = RowHistory(Start.drawn(5))
        history.run(steps)
        rows.append([repr(row) for row in history.rows["main"]])
    assert rows[0] == rows[1]
    assert steps == random_steps(5, 9)[:6]

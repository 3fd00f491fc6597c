"""Random histories of tables in several format versions at once: the same rows, the same row ids, and sound trees.

The beginning of a seeded one runs in ``make test``, the whole in ``make thorough``. ``make property`` runs one of 2,000
steps, and short ones that hypothesis makes up and cuts down to what matters when they fail.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icefloe.model.entries import DELETES, MANIFESTS, ContentType, Status
from icefloe.table.held_table import pointer_of
from icefloe.tree.root import read_root
from support.table_histories import LIMITS, VERBS, History, random_steps

LONG = os.environ.get("ICEFLOE_PROFILE") == "property"
STEPS = st.lists(st.tuples(st.sampled_from(sorted(VERBS)), st.integers(0, 2**32 - 1)), min_size=1, max_size=12)
SEED = int(os.environ.get("ICEFLOE_SEED", "7"))
SHORT, WHOLE = 20, 2_000
LENGTHS = [WHOLE] if LONG else [6, SHORT]


@pytest.mark.hypothesis
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("length", LENGTHS)
def test_every_snapshot_of_a_history_is_right_in_every_version(length):
    history = History(SEED)
    history.run(random_steps(SEED, length))
    history.finish()


@settings(max_examples=max(1, settings().max_examples // 25), suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_every_snapshot_of_a_short_history_is_right_in_every_version(steps):
    history = History(lanes=((2,), (4,), (3, 4)))
    history.run(steps)
    history.finish()


def test_the_seeded_history_has_all_that_a_tree_of_version_4_may_have():
    """Else it would prove little: leaves of both kinds, vectors of manifests, inline and in files."""
    history = History(SEED, lanes=((4,),))
    seen: set[str] = set()
    for step in (*random_steps(SEED, SHORT), *(("limits", n) for n in range(len(LIMITS))), *random_steps(1, SHORT)):
        history.step(step)
        seen |= shapes(history)
        if seen >= SHAPES:
            return
    assert seen == SHAPES


SHAPES = {
    "data in the root",
    "deletes in the root",
    "new data leaf",
    "moved data leaf",
    "delete leaf",
    "hidden rows",
    "more hidden rows",
    "vector in a file",
}


def shapes(history: History) -> set[str]:
    """What there is in the root of the head."""
    (lane,) = history.lanes
    base = pointer_of(lane.table).load()
    rows = read_root(base.store, base.metadata.current_snapshot).entries.to_pylist()
    head = base.metadata.current_snapshot_id
    found = set()
    for row in rows:
        kind, status = row["content_type"], row["status"]
        if kind == ContentType.DATA:
            found.add("data in the root")
        elif kind in DELETES:
            found.add("deletes in the root")
        elif kind == ContentType.MANIFEST_DV:
            found.add("more hidden rows" if status == Status.DELETED else "hidden rows")
            found |= set() if row["location"] is None else {"vector in a file"}
        elif kind in MANIFESTS and row["snapshot_id"] == head:
            new, data = status == Status.ADDED, kind == ContentType.DATA_MANIFEST
            found.add("delete leaf" if not data else "new data leaf" if new else "moved data leaf")
    return found


def test_a_history_can_be_run_again_step_by_step():
    """By which a failure is looked into: the same steps give the same rows, and each step stands for itself."""
    steps = random_steps(3, 6)
    rows = []
    for _ in range(2):
        history = History(3, lanes=((2,),))
        history.run(steps)
        rows.append(history.shown(history.model.rows))
    assert rows[0] == rows[1]
    assert steps == random_steps(3, 9)[:6]

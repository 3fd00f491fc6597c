"""Two operations on one table, in every order of their meetings: each outcome is that of some serial order.

Under serializable isolation it is the order of the commits. ``ICEFLOE_LONG=1`` (``make long``) runs all pairs; without
it a few of them run, the same each time: every fourth in ``make test``, the others in ``make thorough``. That every
check of the library is needed is tried by taking it out.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache, partial
from itertools import combinations_with_replacement

import pytest

from icefloe.commit.conflicts import Isolation
from icefloe.commit.operations.overwrite import OverwriteFiles
from icefloe.commit.operations.read_check import ReadCheck
from icefloe.commit.operations.rewrite import RewriteFiles, RewriteGroups
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.commit.operations.snapshot_operation import SnapshotOperation
from icefloe.errors import FormatError
from icefloe.maintenance.verify.findings import Finding
from icefloe.model.metadata.version_rules import WRITABLE
from icefloe.testing.check import check_table
from icefloe.testing.scheduler import Baton, explore
from support.crashes import LONG
from support.interleavings import Setting, World, anomalies, checks_of, kinds, new_world, run_pair, without

pytestmark = pytest.mark.slow

SETTINGS = [
    Setting(version=version, isolation=isolation, partitioned=partitioned)
    for version in WRITABLE
    if version > 1  # which has no row-level deletes
    for isolation in Isolation
    for partitioned in (False, True)
]
DEEP = [replace(setting, deep=True) for setting in SETTINGS if setting.version == 4]


def pairs(settings: list[Setting]) -> list[tuple[Setting, tuple[str, str]]]:
    return [(setting, pair) for setting in settings for pair in combinations_with_replacement(kinds(setting), 2)]


CASES = pairs([*SETTINGS, *DEEP])
FEW = [*random.Random(7).sample(pairs(SETTINGS), 12), *random.Random(7).sample(pairs(DEEP), 4)]


@cache
def start(setting: Setting) -> World:
    return new_world(setting)


@pytest.mark.parametrize(("setting", "pair"), CASES if LONG else FEW, ids=str)
def test_two_operations_in_any_order_come_to_what_a_serial_order_does(setting, pair):
    found = list(anomalies(start(setting), pair))
    assert len(found) >= 4  # even a reader and a writer meet in more than one way
    assert [str(anomaly) for anomaly in found if anomaly is not None] == []


SNAPSHOT, SERIALIZABLE = Isolation.SNAPSHOT, Isolation.SERIALIZABLE
WITNESSES: dict[tuple[type[SnapshotOperation], str], tuple[int, Isolation, tuple[str, str]]] = {
    (RowDelta, "check_files_live"): (2, SNAPSHOT, ("delete merge", "update copy")),
    (RowDelta, "check_no_new_vectors"): (4, SNAPSHOT, ("delete merge", "delete merge")),
    (RowDelta, "check_no_new_deletes"): (2, SNAPSHOT, ("update merge", "delete merge")),
    (RowDelta, "check_no_updates"): (2, SNAPSHOT, ("delete merge", "update merge")),
    (RowDelta, "check_no_new_data"): (2, SERIALIZABLE, ("delete-red merge", "append")),
    (OverwriteFiles, "check_files_live"): (2, SNAPSHOT, ("delete copy", "compact")),
    (OverwriteFiles, "check_no_deletes_of"): (2, SNAPSHOT, ("delete copy", "delete-red merge")),
    (OverwriteFiles, "check_no_new_data"): (2, SERIALIZABLE, ("delete-red copy", "append")),
    (RewriteFiles, "check_files_live"): (2, SNAPSHOT, ("compact", "delete copy")),
    (RewriteFiles, "check_no_deletes_of"): (2, SNAPSHOT, ("compact", "delete merge")),
    (RewriteGroups, "check_files_live"): (2, SNAPSHOT, ("compact groups", "delete copy")),
    (RewriteGroups, "check_no_deletes_of"): (2, SNAPSHOT, ("compact groups", "delete merge")),
    (ReadCheck, "check_no_new_data"): (2, SERIALIZABLE, ("reload", "reload")),
    (ReadCheck, "check_no_new_deletes"): (2, SERIALIZABLE, ("fill", "delete merge")),
    (ReadCheck, "check_no_data_removed"): (2, SERIALIZABLE, ("fill", "delete copy")),
}


def test_every_check_of_every_operation_has_a_witness():
    operations = (RowDelta, OverwriteFiles, RewriteFiles, RewriteGroups, ReadCheck)
    assert set(WITNESSES) == {(operation, check) for operation in operations for check in checks_of(operation)}


@pytest.mark.broken_tables
@pytest.mark.parametrize(("operation", "check"), WITNESSES, ids=str)
def test_an_operation_without_one_of_its_checks_shows_an_anomaly(operation, check):
    version, isolation, pair = WITNESSES[(operation, check)]
    setting = Setting(version=version, isolation=isolation)
    with without(operation, check):
        assert is_wrong(start(setting), pair)
    assert not is_wrong(start(setting), pair)


def is_wrong(world: World, pair: tuple[str, str]) -> bool:
    """Whether some order of a pair shows an anomaly, a table that cannot be read, or a refusal that does not say why.

    Where a check is out, the tree may still find that a file is gone, but not who took it.
    """
    try:
        return any(anomaly is not None for anomaly in anomalies(world, pair))
    except (FormatError, AssertionError):
        return True


def test_deletes_of_the_same_rows_do_not_conflict_where_delete_files_add_up():
    world = start(Setting(version=2, isolation=SNAPSHOT))
    run = run_pair(world, ("delete merge", "delete-red merge"), Baton((0, 1)))
    assert run.ended == {0: "landed", 1: "landed"}
    assert run.rows == ((5, "blue", "-"),)


@pytest.mark.parametrize(
    ("one", "other"), [("append", "delete merge"), ("delete copy", "append"), ("compact", "append")]
)
def test_the_trees_of_deep_tables_are_sound_after_two_operations_at_once(one, other):
    world = start(Setting(version=4, isolation=SNAPSHOT, deep=True))
    for explored in explore(partial(run_and_check, world, (one, other))):
        assert explored.outcome == []


def run_and_check(world: World, pair: tuple[str, str], baton: Baton) -> list[Finding]:
    run = run_pair(world, pair, baton)
    base = run.world.pointer().load()
    return check_table((base.store, base.metadata), data=False)

"""The life of a table: commits, refs, rollback, compaction, expiry, erasure, upgrades, writers in flight and so on.

Time is a number that steps move forward. After each clean-up, every retained snapshot reads as the model says, no file
that is needed is gone, and no unreferenced file is left that is older than the cut-off. ``make test`` runs 100
lives of up to 30 steps; ``ICEFLOE_PROFILE=property`` or ``ICEFLOE_LONG=1`` runs 2,000 of up to 50. ``ICEFLOE_LIVES`` is
another number of lives, and ``ICEFLOE_LIFE_PART=3/10`` runs the fourth of ten parts of them: a tenth of the lives, with
a seed of its own, so that the parts are different ones.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from icefloe.catalogs.memory import MemoryCatalog
from icefloe.commit.base import TablePointer
from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.env import SYSTEM
from icefloe.errors import ConflictError, NoSuchFile
from icefloe.io.memory import MemoryFileIO
from icefloe.maintenance.compact.compaction_plan import CompactPlan
from icefloe.maintenance.deletions import journal_folder
from icefloe.maintenance.reachable import reachable_files
from icefloe.model.metadata.snapshots import MAIN
from icefloe.model.metadata.table_metadata import ancestors
from icefloe.model.partition.spec import UNPARTITIONED
from icefloe.model.text.ddl import parse_ddl
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from support.conformance import nonconformities
from support.engine_work import write_entries
from support.memory_files import files_in
from support.selection import CHOICE

LONG = os.environ.get("ICEFLOE_LONG", "") == "1" or os.environ.get("ICEFLOE_PROFILE") == "property"
LIVES, LENGTH = (2_000, 50) if LONG else (100 if CHOICE == "test" else 30, 30)
PART, PARTS = (int(number) for number in os.environ.get("ICEFLOE_LIFE_PART", "0/1").split("/"))
EXAMPLES = -(-int(os.environ.get("ICEFLOE_LIVES", LIVES)) // PARTS)
NAME, LOCATION = ("db", "t"), "memory://wh/t"
HOUR = 3_600_000
DAY = 24 * HOUR
ORPHAN_AGE = 3 * DAY
PROPERTIES = {
    "commit.root.max-data-files": "2",
    "commit.root.max-dvs": "2",
    "commit.leaf.max-dead-percent": "30",
    "commit.leaf.min-dead-rows": "1",
    "commit.manifest.min-count-to-merge": "3",
    "write.manifest-dv.inline-max-bytes": "0",
    "write.metadata.previous-versions-max": "5",
}


@dataclass(kw_only=True)
class Life:
    """A table, the rows of each of its snapshots, and the writers that have not committed yet."""

    version: int
    io: MemoryFileIO = field(default_factory=MemoryFileIO)
    now: int = 1_800_000_000_000
    rows: dict[int, list[int]] = field(default_factory=dict)  # by snapshot
    staged: dict[int, list[int]] = field(default_factory=dict)  # rows that they add
    writers: list[tuple[int, pa.Table, list[int]]] = field(default_factory=list)  # since when, entries, rows
    compactions: list[CompactPlan] = field(default_factory=list)  # planned, and not executed yet
    next_id: int = 0
    seen: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        catalog = MemoryCatalog("test", warehouse="memory://wh")
        catalog.create_namespace("db")
        metadata = new_metadata(
            location=LOCATION,
            schema=parse_ddl("id bigint"),
            spec=UNPARTITIONED,
            properties=PROPERTIES,
            format_version=self.version,
        )
        create_table(catalog, NAME, self.io, replace(metadata, last_updated_ms=self.now))
        self.env = replace(SYSTEM, now_ms=lambda: self.now, sleep=lambda seconds: None)
        self.table = Table(TablePointer(catalog, NAME, self.io), self.env)
        self.tick()

    def tick(self) -> None:
        """Give the files of the last step the time of the model."""
        self.now += 1000
        for name, file in list(files_in(self.io).items()):
            if name not in self.seen:
                files_in(self.io)[name] = replace(file, modified_ms=self.now)
                self.seen.add(name)

    def step(self, verb: str, seed: int) -> None:
        VERBS[verb](self, random.Random(seed))
        self.counts[verb] = self.counts.get(verb, 0) + 1
        self.tick()

    def new_rows(self, count: int) -> list[int]:
        self.next_id += count
        return list(range(self.next_id - count, self.next_id))

    def head(self, branch: str = MAIN) -> list[int]:
        ref = self.table.refs.get(branch, self.table.refs.get(MAIN))
        return [] if ref is None else self.rows[ref.snapshot_id]

    def made(self, rows: list[int], branch: str = MAIN) -> None:
        """The head of a branch has these rows now."""
        self.rows[self.table.refs[branch].snapshot_id] = sorted(rows)

    def check(self) -> None:
        """Every snapshot that the table has reads equal to the model, and has all its files."""
        base = pointer_of(self.table.refresh()).held()
        needed = set(reachable_files(base)["location"].to_pylist())
        assert needed <= set(files_in(self.io)), "a live file was deleted"
        for snapshot in self.table.snapshots:
            found = self.table.at(snapshot=snapshot.snapshot_id).scan().to_arrow()["id"].to_pylist()
            assert sorted(found) == self.rows[snapshot.snapshot_id]

    def unreferenced(self) -> dict[str, int]:
        """The files that no metadata names, with their times."""
        needed = set(reachable_files(pointer_of(self.table.refresh()).held())["location"].to_pylist())
        journals = journal_folder(LOCATION)
        return {
            name: file.modified_ms
            for name, file in files_in(self.io).items()
            if name not in needed and not name.startswith(journals)
        }


def column(rows: list[int]) -> pa.Table:
    return pa.table({"id": pa.array(rows, pa.int64())})


def branch_of(life: Life, rng: random.Random) -> str:
    branches = sorted(name for name, ref in life.table.refs.items() if ref.type == "branch")
    return rng.choice(branches) if len(branches) > 0 else MAIN


def append(life: Life, rng: random.Random) -> None:
    branch, before, rows = branch_of(life, rng), [], life.new_rows(rng.randint(1, 4))
    before = life.head(branch)
    life.table.append(column(rows), branch=branch)
    life.made([*before, *rows], branch)


def delete(life: Life, rng: random.Random) -> None:
    before = life.head()
    if len(before) == 0:
        return
    gone = rng.sample(before, rng.randint(1, max(1, len(before) // 2)))
    life.table.delete(f"id in ({', '.join(map(str, gone))})")
    life.made([row for row in before if row not in gone])


def update(life: Life, rng: random.Random) -> None:
    before = life.head()
    if len(before) > 0:
        old, (new,) = rng.choice(before), life.new_rows(1)
        life.table.update({"id": str(new)}, where=f"id = {old}")
        life.made([*(row for row in before if row != old), new])


def upsert(life: Life, rng: random.Random) -> None:
    before, rows = life.head(), life.new_rows(1)
    again = rng.sample(before, min(len(before), 2))
    life.table.upsert(column([*again, *rows]), on=["id"])
    life.made([*before, *rows])


def upsert_by_equality(life: Life, rng: random.Random) -> None:
    if life.table.metadata.rules.sequence_numbers:
        before, rows = life.head(), life.new_rows(1)
        again = rng.sample(before, min(len(before), 2))
        life.table.upsert(column([*again, *rows]), on=["id"], deletes="equality")
        life.made([*before, *rows])


def keeps_rows(life: Life, action: Callable[[], object]) -> None:
    """Run an action whose snapshots have the rows of the head before it."""
    before, known = life.head(), {snapshot.snapshot_id for snapshot in life.table.refresh().snapshots}
    action()
    new = [snapshot.snapshot_id for snapshot in life.table.refresh().snapshots if snapshot.snapshot_id not in known]
    life.rows.update(dict.fromkeys(new, before))


def rewrite(life: Life, rng: random.Random) -> None:
    if life.table.metadata.current_snapshot_id is not None:
        keeps_rows(life, lambda: life.table.rewrite_manifests().execute())


def rewrite_deletes(life: Life, rng: random.Random) -> None:
    keeps_rows(life, lambda: life.table.rewrite_deletes().execute())


def compact(life: Life, rng: random.Random) -> None:
    options = rng.choice([{"rewrite-all": "true"}, {"min-input-files": "2"}, {"partial-progress.enabled": "true"}])
    keeps_rows(life, lambda: life.table.compact(options=options).execute())


def plan_compaction(life: Life, rng: random.Random) -> None:
    life.compactions.append(life.table.compact(options={"rewrite-all": "true"}))


def run_compaction(life: Life, rng: random.Random) -> None:
    """Execute a plan that may be old: if rows have changed or files are gone since, it is refused."""
    if len(life.compactions) > 0:
        plan = life.compactions.pop(rng.randrange(len(life.compactions)))
        with contextlib.suppress(ConflictError, NoSuchFile):
            keeps_rows(life, plan.execute)


def change_modes(life: Life, rng: random.Random) -> None:
    """Rows are deleted from then on in new files or by delete files; the latter exist from version 2."""
    mode = rng.choice(["copy-on-write", "merge-on-read"])
    if life.table.metadata.rules.sequence_numbers:
        life.table.set_properties({"write.delete.mode": mode, "write.update.mode": mode})


def upgrade(life: Life, rng: random.Random) -> None:
    if life.table.format_version < 4 and rng.random() < 0.5:  # else few steps would be left for early versions
        life.table.upgrade(life.table.format_version + 1)


def erase(life: Life, rng: random.Random) -> None:
    """Erase rows from every branch: no retained snapshot has them any more, except those that are reported."""
    known = sorted({row for rows in life.rows.values() for row in rows})
    if len(known) == 0 or len(life.table.refs) == 0:
        return
    gone = set(rng.sample(known, min(len(known), 2)))
    branches = [name for name, ref in life.table.refs.items() if ref.type == "branch"]
    heads = {branch: [row for row in life.head(branch) if row not in gone] for branch in branches}
    old, before = {snapshot.snapshot_id for snapshot in life.table.snapshots}, set(life.unreferenced())
    report = life.table.erase(f"id in ({', '.join(map(str, sorted(gone)))})").execute()
    metadata = life.table.refresh().metadata
    for branch in branches:
        for snapshot in ancestors(metadata, metadata.refs[branch].snapshot_id):
            if snapshot.snapshot_id in old:
                break
            life.rows[snapshot.snapshot_id] = heads[branch]
    with_rows = {s.snapshot_id for s in metadata.snapshots if not gone.isdisjoint(life.rows[s.snapshot_id])}
    assert with_rows <= {each.snapshot_id for each in report.remaining}
    assert report.complete == (len(report.blockers) + len(report.remaining) == 0)
    left = {name for name in set(life.unreferenced()) - before if not name.endswith(".metadata.json")}
    assert left == set(), "the erasure left files"  # besides metadata files that its commits pushed out of the log
    life.check()


def maintain(life: Life, rng: random.Random) -> None:
    budget = rng.choice([None, {"bytes": 2_000}, {"seconds": 0}])
    keeps_rows(life, lambda: life.table.maintain(budget).execute())
    life.check()


def make_ref(life: Life, rng: random.Random) -> None:
    if len(life.table.snapshots) > 0 and len(life.table.refs) < 5:
        snapshot = rng.choice(life.table.snapshots).snapshot_id
        name = f"ref{life.next_id}-{life.now}"
        make = life.table.tag if rng.random() < 0.5 else life.table.branch
        make(name, snapshot=snapshot)


def remove_ref(life: Life, rng: random.Random) -> None:
    names = sorted(name for name in life.table.refs if name != MAIN)
    if len(names) > 0:
        life.table.remove_ref(rng.choice(names))


def rollback(life: Life, rng: random.Random) -> None:
    head = life.table.metadata.current_snapshot_id
    if head is not None:
        line = [snapshot.snapshot_id for snapshot in ancestors(life.table.metadata, head)]
        life.table.rollback(snapshot=rng.choice(line[:4]))


def stage(life: Life, rng: random.Random) -> None:
    before, rows = life.head(), life.new_rows(2)
    snapshot = life.table.append(column(rows), wap_id=f"w{life.next_id}").snapshot_id
    life.rows[snapshot] = sorted([*before, *rows])
    life.staged[snapshot] = rows


def cherry_pick(life: Life, rng: random.Random) -> None:
    there = [key for key in life.staged if life.table.metadata.snapshots.find(key) is not None]
    if len(there) > 0:
        chosen, before = rng.choice(there), life.head()
        life.table.cherry_pick(chosen)
        life.made([*before, *life.staged.pop(chosen)])


def start_writer(life: Life, rng: random.Random) -> None:
    rows = life.new_rows(2)
    entries = write_entries(life.io, column(rows), life.table.metadata)
    life.writers.append((life.now, entries, rows))


def finish_writer(life: Life, rng: random.Random) -> None:
    """A writer commits what it has written, unless it took so long that its files count as orphans."""
    if len(life.writers) > 0:
        since, entries, rows = life.writers.pop(rng.randrange(len(life.writers)))
        if life.now - since < ORPHAN_AGE - HOUR:
            before = life.head()
            commit(pointer_of(life.table), Append(added=entries), life.env)
            life.made([*before, *rows])


def wait(life: Life, rng: random.Random) -> None:
    life.now += rng.choice([HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY])


def expire(life: Life, rng: random.Random) -> None:
    arguments: dict[str, object] = {}
    if rng.random() < 0.7:
        ago = rng.choice([timedelta(0), timedelta(hours=1), timedelta(days=1)])
        arguments["older_than"] = datetime.fromtimestamp(life.now / 1000, UTC) - ago
    if rng.random() < 0.3:
        arguments["retain_last"] = rng.randint(1, 3)
    heads = {ref.snapshot_id for ref in life.table.refs.values()}
    others = [snapshot.snapshot_id for snapshot in life.table.snapshots if snapshot.snapshot_id not in heads]
    if rng.random() < 0.2 and len(others) > 0:
        arguments = {"snapshots": rng.sample(others, rng.randint(1, len(others)))}
    plan = life.table.expire(**arguments)
    names = list(life.table.refs)
    if rng.random() < 0.3:
        VERBS[rng.choice(["append", "make ref", "start writer"])](life, rng)  # between the plan and its execution
        life.tick()
        names = list(life.table.refs)
    before = set(life.unreferenced())
    result = plan.execute()
    assert (result.problem, result.failed, result.left) == (None, (), ())
    assert list(life.table.refresh().refs) == names
    assert set(life.unreferenced()) <= before, "the expiry left files"
    life.check()


def remove_orphans(life: Life, rng: random.Random) -> None:
    plan, at_plan = life.table.remove_orphans(max_share=1.0), life.unreferenced()
    if rng.random() < 0.3:
        VERBS[rng.choice(["finish writer", "start writer", "append"])](life, rng)
        life.tick()
    plan.execute()
    left = life.unreferenced().items()
    old = [name for name, modified in left if modified < plan.older_than_ms and name in at_plan]
    assert old == [], "old files were left"
    for since, entries, _ in life.writers:
        if life.now - since < ORPHAN_AGE:
            assert set(entries["location"].to_pylist()) <= set(files_in(life.io)), "a writer in flight lost its files"
    life.check()


VERBS: dict[str, Callable[[Life, random.Random], None]] = {
    "append": append,
    "change modes": change_modes,
    "cherry-pick": cherry_pick,
    "compact": compact,
    "delete": delete,
    "erase": erase,
    "expire": expire,
    "finish writer": finish_writer,
    "maintain": maintain,
    "make ref": make_ref,
    "plan compaction": plan_compaction,
    "remove orphans": remove_orphans,
    "remove ref": remove_ref,
    "rewrite": rewrite,
    "rewrite deletes": rewrite_deletes,
    "rollback": rollback,
    "run compaction": run_compaction,
    "stage": stage,
    "start writer": start_writer,
    "update": update,
    "upgrade": upgrade,
    "upsert": upsert,
    "upsert by equality": upsert_by_equality,
    "wait": wait,
}
STEPS = st.lists(
    st.tuples(st.sampled_from(sorted(VERBS)), st.integers(0, 2**32 - 1)), min_size=LENGTH // 2, max_size=LENGTH
)


def live(version: int, steps: list[tuple[str, int]]) -> Life:
    """Run steps on a new table, then clean up, and check everything."""
    life = Life(version=version)
    for verb, number in steps:
        life.step(verb, number)
    life.check()
    life.now += 10 * DAY
    life.writers.clear()
    life.step("remove orphans", 1)
    assert [*check_table(life.table), *nonconformities(life.table)] == []
    life.table.expire(older_than=datetime.fromtimestamp(life.now / 1000, UTC)).execute()
    life.check()
    assert life.unreferenced() == {}
    heads = {ref.snapshot_id for ref in life.table.refs.values()}
    assert {snapshot.snapshot_id for snapshot in life.table.snapshots} == heads
    assert [*check_table(life.table), *nonconformities(life.table)] == []
    return life


@pytest.mark.timeout(8 * 3600 if LONG else 1800)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@(seed(PART) if PARTS > 1 else lambda test: test)
@given(version=st.sampled_from([1, 2, 3, 4]), steps=STEPS)
def test_no_live_file_is_ever_deleted_and_nothing_unreachable_and_old_remains(version, steps):
    live(version, steps)


def test_random_lives_run_every_step_many_times():
    """Else they would prove little."""
    rng = random.Random(7)
    counts: dict[str, int] = {}
    for version in (1, 2, 3, 4):
        steps = [(rng.choice(sorted(VERBS)), rng.getrandbits(32)) for _ in range(60)]
        for verb, count in live(version, steps).counts.items():
            counts[verb] = counts.get(verb, 0) + count
    assert set(counts) == set(VERBS)

"""Random histories of tables, side by side in several format versions, against a list of rows.

A step is a verb and a number from which all that it does is drawn, so that any part of a history can be run again. The
tables have small limits: leaves, flushes, merges, rewrites and vectors in Puffin files come all the time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.commit.operations.overwrite import OverwriteFiles, ReplacePartitions
from icefloe.commit.operations.rewrite import RewriteFiles
from icefloe.engines.arrow.engine import ArrowEngine
from icefloe.engines.work import Condition
from icefloe.errors import InputError
from icefloe.expr.prune.stats_eval import Match
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.schema.metadata_columns import ROW_ID
from icefloe.scan.plan import plan_scan
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from icefloe.tree.file_changes import FileChanges
from support.conformance import nonconformities
from support.engine_work import planned_for_engine, write_entries
from support.history_lanes import Lane, in_order

SIDE = "side"
CITIES = ("Oslo", "Rome", "", None)
AMOUNTS = (-1.0, 0.0, 2.5, None)
FIELDS = ("part", "bucket(3, id)", "truncate(2, city)", "city")
MANY_FILES = 16  # a history with more files compacts first
LIMITS = {
    "commit.root.max-data-files": ("1", "2", "3", "5"),
    "commit.root.max-dvs": ("1", "2", "4"),
    "commit.leaf.max-dead-percent": ("30", "50", "100"),
    "commit.manifest.min-count-to-merge": ("2", "3", "100"),
    "write.manifest-dv.inline-max-bytes": ("0", "131072"),
}
LANES = ((2,), (3,), (4,), (1, 2, 3, 4), (3, 4))
SAME_IDS = ("v3", "v4", "v3 to 4")  # tables that have had row ids from the beginning
Row = dict[str, object]
Step = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column that came later; ``key`` stays when the name changes."""

    key: str
    name: str
    type: str


@dataclass
class Model:
    """What all tables must hold: the rows of main and of a branch beside it, and the columns."""

    rows: list[Row] = field(default_factory=list)
    side: list[Row] | None = None
    side_from: int = 0  # how many states main had when the branch began
    columns: list[Column] = field(default_factory=list)
    states: list[tuple[list[Row], dict[str, int]]] = field(default_factory=list)  # rows, and heads by lane


class History:
    """Tables of several versions, to which the same is done."""

    def __init__(self, seed: int = 0, lanes: Sequence[Sequence[int]] = LANES) -> None:
        self.lanes = [Lane(versions, seed) for versions in lanes]
        self.model = Model()
        self.done: list[Step] = []
        self._uids = count()
        self._names = count()

    def run(self, steps: Iterable[Step]) -> None:
        """Do the steps, checking everything after each; an AssertionError names the last step."""
        for step in steps:
            self.done.append(step)
            try:
                self.step(step)
                self.check(random.Random(step[1]))
            except BaseException as error:
                error.add_note(f"after {len(self.done)} steps, the last ones being {self.done[-8:]}")
                raise

    def finish(self) -> None:
        """Check every snapshot of every table again, as a new process reads them."""
        for lane in self.lanes:
            lane.table = lane.open()
            findings = [*check_table(lane.table, rows=True), *nonconformities(lane.table)]
            assert findings == [], f"{lane}: {'; '.join(map(str, findings[:5]))}"
            for snapshot_id, expected in lane.expected.items():
                if snapshot_id != lane.table.metadata.current_snapshot_id:
                    assert lane.rows(snapshot_id) == expected, f"{lane}: snapshot {snapshot_id}"

    # -- what must hold

    def shown(self, rows: Iterable[Row]) -> list[tuple[object, ...]]:
        """Rows as the present schema shows them."""
        keys = ["uid", "id", "part", "city", "amount", *(column.key for column in self.model.columns)]
        return in_order(tuple(row.get(key) for key in keys) for row in rows)

    def check(self, rng: random.Random) -> None:
        expected = self.shown(self.model.rows)
        side = None if self.model.side is None else self.shown(self.model.side)
        for lane in self.lanes:
            self._check_rows(lane, expected, side, rng)
            self._check_snapshots(lane, rng)
        self._check_row_ids(rng)

    def _check_rows(self, lane: Lane, expected: list[Any], side: list[Any] | None, rng: random.Random) -> None:
        metadata = lane.table.metadata
        assert lane.rows() == expected, f"{lane}: rows of main"
        if metadata.current_snapshot_id is not None:
            lane.expected.setdefault(metadata.current_snapshot_id, expected)
        if side is not None and (head := lane.head(SIDE)) is not None and head.snapshot_id not in lane.expected:
            lane.expected[head.snapshot_id] = side
            assert lane.rows(head.snapshot_id) == side, f"{lane}: rows of the branch"
        older = [i for i in lane.expected if i != metadata.current_snapshot_id]
        if len(older) > 0 and rng.random() < 0.3:
            chosen = rng.choice(older)
            assert lane.rows(chosen) == lane.expected[chosen], f"{lane}: rows of snapshot {chosen}"

    def _check_snapshots(self, lane: Lane, rng: random.Random) -> None:
        metadata = lane.table.metadata
        lane.check.follow(metadata)
        found = [
            finding
            for snapshot in metadata.snapshots
            if snapshot.snapshot_id not in lane.seen
            for finding in lane.check.of_snapshot(snapshot)
        ]
        found += lane.check.of_files() if rng.random() < 0.1 else []  # which lists all files
        assert found == [], f"{lane}: {'; '.join(map(str, found[:5]))}"
        lane.seen.update(snapshot.snapshot_id for snapshot in metadata.snapshots)

    def _check_row_ids(self, rng: random.Random) -> None:
        found: dict[str, dict[object, object]] = {}
        for lane in self.lanes:
            head = lane.table.metadata.current_snapshot
            if head is None or head.first_row_id is None:
                continue
            ids = lane.ids(head)
            assert None not in ids.values(), f"{lane}: a row has no id"
            assert len(set(ids.values())) == len(ids), f"{lane}: two rows have the same id"
            if rng.random() < 0.3:
                read = lane.table.scan(columns=["uid", ROW_ID.name]).to_arrow()
                assert dict(zip(*(column.to_pylist() for column in read.columns), strict=True)) == ids, f"{lane}: ids"
            for uid, row_id in ids.items():
                assert lane.row_ids.setdefault(uid, row_id) == row_id, f"{lane}: row {uid} has another id than before"
            if lane.label in SAME_IDS:
                found[lane.label] = ids
        assert len({repr(sorted(ids.items())) for ids in found.values()}) <= 1, f"row ids differ: {found}"

    # -- what is done

    def step(self, step: Step) -> None:
        verb, number = step
        rng = random.Random(number)
        heads_now = (lane.table.metadata.current_snapshot for lane in self.lanes)
        if any(head is not None and int(head.summary["total-data-files"]) > MANY_FILES for head in heads_now):
            self.compact(rng)
            self.check(random.Random(number))  # a change of columns that comes next is none of this snapshot's
        VERBS[verb](self, rng)
        heads = {lane.label: lane.table.metadata.current_snapshot_id for lane in self.lanes}
        if None not in heads.values() and (len(self.model.states) == 0 or self.model.states[-1][1] != heads):
            self.model.states.append((self.model.rows, heads))  # type: ignore[arg-type]

    def new_rows(self, rng: random.Random, most: int, parts: int = 3) -> list[Row]:
        rows = []
        for _ in range(rng.randint(1, most)):
            row: Row = {
                "uid": next(self._uids),
                "id": rng.randrange(12),
                "part": rng.randrange(parts),
                "city": rng.choice(CITIES),
                "amount": rng.choice(AMOUNTS),
            }
            for column in self.model.columns:
                row[column.key] = rng.choice((None, 7, 8)) if column.type != "string" else rng.choice((None, "x", "yy"))
            rows.append(row)
        return rows

    def arrow(self, rows: list[Row], table: Table) -> pa.Table:
        keys = {column.name: column.key for column in self.model.columns}
        schema = arrow_schema(table.schema)
        return pa.Table.from_pylist([{n: row.get(keys.get(n, n)) for n in schema.names} for row in rows], schema=schema)

    def each(self, act: Callable[[Lane], object]) -> None:
        for lane in self.lanes:
            act(lane)

    def append(self, rng: random.Random, *, most: int, parts: int = 3) -> None:
        rows = self.new_rows(rng, most, parts)
        self.each(lambda lane: lane.table.append(self.arrow(rows, lane.table)))
        self.model.rows = [*self.model.rows, *rows]

    def upsert(self, rng: random.Random) -> None:
        rows = list({row["id"]: row for row in self.new_rows(rng, 4)}.values())
        self.each(lambda lane: lane.table.upsert(self.arrow(rows, lane.table), on=["id"]))
        keys = {row["id"] for row in rows}
        self.model.rows = [*(row for row in self.model.rows if row["id"] not in keys), *rows]

    def predicate(self, rng: random.Random) -> tuple[str, Callable[[Row], bool]]:
        """A filter, and what it says of a row."""
        number = rng.randrange(12)
        city, amount = rng.choice(("Oslo", "Rome", "")), rng.choice((-1.0, 0.0, 2.5))
        return rng.choice(
            [
                (f"id = {number}", lambda row: row["id"] == number),
                (f"id < {number % 4}", lambda row: row["id"] < number % 4),
                (f"part = {number % 3}", lambda row: row["part"] == number % 3),
                (f"city = '{city}'", lambda row: row["city"] == city),
                (f"amount = {amount} and id > 6", lambda row: row["amount"] == amount and row["id"] > 6),
                (f"city is null and part = {number % 3}", lambda r: r["city"] is None and r["part"] == number % 3),
            ]
        )

    def delete(self, rng: random.Random) -> None:
        where, goes = self.predicate(rng)
        self.each(lambda lane: lane.table.delete(where))
        self.model.rows = [row for row in self.model.rows if not goes(row)]

    def remove(self, rng: random.Random) -> None:
        """Take whole files away where all their rows go, and rows where not all do."""
        where, goes = self.predicate(rng)
        self.each(lambda lane: self._remove(lane, where))
        self.model.rows = [row for row in self.model.rows if not goes(row)]

    def _remove(self, lane: Lane, where: str) -> None:
        tasks = lane.table.scan(where).plan().tasks
        whole = tasks.filter(pc.equal(tasks["match"], int(Match.ALL)))["location"].to_pylist()
        if len(whole) > 0:
            lane.table.remove_files(whole)
        lane.table.delete(where)

    def overwrite(self, rng: random.Random) -> None:
        """Write the files that hold some rows again without them, and with others."""
        where, goes = self.predicate(rng)
        rows = self.new_rows(rng, 3)
        self.each(lambda lane: self._rewrite(lane, where, rows))
        self.model.rows = [*(row for row in self.model.rows if not goes(row)), *rows]

    def compact(self, rng: random.Random) -> None:
        where, keep = f"part = {rng.randrange(3)}", rng.random() < 0.5
        self.each(lambda lane: self._rewrite(lane, where, None, keep=keep))

    def _rewrite(self, lane: Lane, where: str, rows: list[Row] | None, *, keep: bool = False) -> None:
        """Without ``rows`` all rows of the files stay."""
        base, engine = pointer_of(lane.table).load(), ArrowEngine()
        io, head, filter_ = base.store.io, base.metadata.current_snapshot, parse_filter(where)
        plan = plan_scan(base.store, base.metadata, head, filter=filter_)
        if plan.files == 0 and rows is None:
            return
        files = planned_for_engine(io, base.metadata, plan)
        found = engine.find_rows(files, Condition(filter=filter_)) if rows is not None else {}
        gone = {name: found.get(name, BitMap64()) for name in plan.tasks["location"].to_pylist()}
        every = plan_scan(base.store, base.metadata, head)
        touched = pc.is_in(every.tasks["location"], value_set=plan.tasks["location"].combine_chunks())
        whole = every.with_tasks(every.tasks.filter(touched))
        parts = [] if plan.files == 0 else [engine.write_survivors(files.with_tasks(whole.tasks), gone)]
        if rows is None:
            number = head.sequence_number if keep and head is not None else None
            lane.commit(
                RewriteFiles(changes=FileChanges(added=parts[0], removed=plan.tasks), read=head, sequence_number=number)
            )
            return
        parts.append(write_entries(io, self.arrow(rows, lane.table), base.metadata))
        added = pa.concat_tables(parts, promote_options="permissive")
        lane.commit(OverwriteFiles(changes=FileChanges(added=added, removed=plan.tasks), read=head, filter=filter_))

    def replace_partitions(self, rng: random.Random) -> None:
        """Replace all rows of some parts, where every table is partitioned by part and by nothing else."""
        for lane in self.lanes:
            spec = lane.table.spec
            tasks = lane.table.scan().plan().tasks
            if [f.transform for f in spec.fields] != ["identity"] or spec.fields[0].name != "part":
                return self.append(rng, most=3)
            if pc.all(pc.equal(tasks["partition_spec_id"], spec.spec_id)).as_py() is False:
                return self.append(rng, most=3)
        rows = self.new_rows(rng, 3)

        def act(lane: Lane) -> None:
            base = pointer_of(lane.table).load()
            added = write_entries(base.store.io, self.arrow(rows, lane.table), base.metadata)
            lane.commit(ReplacePartitions(added=added))

        self.each(act)
        parts = {row["part"] for row in rows}
        self.model.rows = [*(row for row in self.model.rows if row["part"] not in parts), *rows]
        return None

    def transaction(self, rng: random.Random) -> None:
        rows, more = self.new_rows(rng, 3), self.new_rows(rng, 6, parts=6)
        where, goes = self.predicate(rng)

        def act(lane: Lane) -> None:
            with lane.table.transaction() as tx:
                tx.append(self.arrow(rows, lane.table))
                tx.delete(where)
                tx.append(self.arrow(more, lane.table))

        self.each(act)
        self.model.rows = [*(row for row in (*self.model.rows, *rows) if not goes(row)), *more]

    def stage(self, rng: random.Random) -> None:
        """Stage rows and publish them, with or without other commits in between."""
        rows, name = self.new_rows(rng, 2), f"load-{next(self._names)}"
        between = self.new_rows(rng, 2) if rng.random() < 0.5 else []

        def act(lane: Lane) -> None:
            staged = lane.table.append(self.arrow(rows, lane.table), wap_id=name).snapshot_id
            if len(between) > 0:
                lane.table.append(self.arrow(between, lane.table))
            assert staged is not None
            lane.table.cherry_pick(staged)

        self.each(act)
        self.model.rows = [*self.model.rows, *between, *rows]

    def branch(self, rng: random.Random) -> None:
        """Create a branch, change it, publish or remove it."""
        model = self.model
        if len(model.states) == 0:
            return
        if model.side is None:
            self.each(lambda lane: lane.table.branch(SIDE))
            model.side, model.side_from = model.rows, len(model.states)
        match rng.choice(("append", "append", "delete", "publish", "remove")):
            case "append":
                rows = self.new_rows(rng, 5, parts=5)
                self.each(lambda lane: lane.table.append(self.arrow(rows, lane.table), branch=SIDE))
                model.side = [*model.side, *rows]
            case "delete":
                where, goes = self.predicate(rng)
                self.each(lambda lane: lane.table.delete(where, branch=SIDE))
                model.side = [row for row in model.side if not goes(row)]
            case "publish" if len(model.states) == model.side_from:
                self.each(lambda lane: lane.table.publish(SIDE))
                model.rows = model.side
                self._end_branch()
            case _:
                self._end_branch()

    def _end_branch(self) -> None:
        if self.model.side is not None:
            self.each(lambda lane: lane.table.remove_ref(SIDE))
            self.model.side = None

    def rollback(self, rng: random.Random) -> None:
        states = self.model.states
        if len(states) < 2:
            return
        kept = len(states) - rng.randint(1, min(5, len(states) - 1))
        self.model.rows, heads = states[kept - 1]
        self.each(lambda lane: lane.table.rollback(snapshot=heads[lane.label]))
        del states[kept:]
        self._end_branch()

    def columns(self, rng: random.Random) -> None:
        columns = self.model.columns
        verb = rng.choice(("add", "add", "rename", "drop", "widen"))
        if verb == "add" or len(columns) == 0:
            if len(columns) >= 4:
                return
            name = f"c{next(self._names)}"
            new = Column(key=name, name=name, type=rng.choice(("int", "string")))
            self._edit(lambda edit: edit.add_column(new.name, new.type))
            columns.append(new)
            return
        chosen = rng.randrange(len(columns))
        old = columns[chosen]
        if verb == "drop":
            self._edit(lambda edit: edit.drop_column(old.name))
            del columns[chosen]
        elif verb == "widen" and old.type == "int":
            self._edit(lambda edit: edit.update_column(old.name, type="bigint"))
            columns[chosen] = replace(old, type="bigint")
        else:
            name = f"c{next(self._names)}"
            self._edit(lambda edit: edit.rename_column(old.name, name))
            columns[chosen] = replace(old, name=name)

    def _edit(self, change: Callable[[Any], object]) -> None:
        for lane in self.lanes:
            with lane.table.update_schema() as edit:
                change(edit)

    def partitioning(self, rng: random.Random) -> None:
        text = rng.choice(FIELDS)
        for lane in self.lanes:
            has = {f"{f.transform} {f.source_id}": f.name for f in lane.table.spec.fields if f.transform != "void"}
            with lane.table.update_partitioning() as edit:
                names = {"part": "identity 3", "bucket(3, id)": "bucket[3] 2", "city": "identity 4"}
                name = has.get(names.get(text, "truncate[2] 4"))
                if name is not None:
                    edit.remove(name)
                else:
                    try:
                        edit.add(text)
                    except InputError:
                        assert lane.table.format_version == 1, f"{lane}: {text}"  # which cannot forget a name

    def limits(self, rng: random.Random) -> None:
        name = rng.choice(tuple(LIMITS))
        value = rng.choice(LIMITS[name])
        self.each(lambda lane: lane.table.set_properties({name: value}))

    def upgrade(self, rng: random.Random) -> None:
        """Upgrade a table to its next version; rollbacks to before would lose row ids."""
        waiting = [lane for lane in self.lanes if len(lane.versions) > 1]
        if len(waiting) == 0:
            return
        self._end_branch()
        lane = rng.choice(waiting)
        lane.versions.pop(0)
        lane.table.upgrade(lane.versions[0])
        self.append(rng, most=2)
        self.model.states.clear()

    def rewrite_manifests(self, rng: random.Random) -> None:
        self.each(lambda lane: lane.table.rewrite_manifests().execute())


VERBS: dict[str, Callable[[History, random.Random], None]] = {
    "append": partial(History.append, most=2),
    "append many": partial(History.append, most=12, parts=8),
    "upsert": History.upsert,
    "delete": History.delete,
    "remove files": History.remove,
    "overwrite": History.overwrite,
    "compact": History.compact,
    "replace partitions": History.replace_partitions,
    "transaction": History.transaction,
    "stage": History.stage,
    "branch": History.branch,
    "rollback": History.rollback,
    "columns": History.columns,
    "partitioning": History.partitioning,
    "limits": History.limits,
    "upgrade": History.upgrade,
    "rewrite manifests": History.rewrite_manifests,
}
WEIGHTS = {"append": 6, "append many": 3, "upsert": 5, "delete": 6, "remove files": 4, "overwrite": 3, "branch": 3}


def random_steps(seed: int, length: int) -> list[Step]:
    """A history of a length."""
    rng = random.Random(seed)
    verbs, weights = list(VERBS), [WEIGHTS.get(verb, 1) for verb in VERBS]
    return [(rng.choices(verbs, weights)[0], rng.getrandbits(32)) for _ in range(length)]

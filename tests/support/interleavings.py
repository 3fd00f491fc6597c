"""Two operations on one table in every order: planning and commits are real, the rows of files are kept in a model.

Data files and delete files are entries without bytes. Which rows a snapshot has follows from its plan: the rows of the
planned files, less those at positions in the vectors and delete files that the plan names, less those that its equality
deletes name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, permutations
from types import FunctionType
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.catalogs.catalog import Pointers
from icefloe.catalogs.memory import MemoryCatalog
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.conflicts import ConflictCheck, Isolation
from icefloe.commit.draft import Draft, Update, Work
from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.commit.operations.overwrite import OverwriteFiles, OverwriteWhere, ReplacePartitions
from icefloe.commit.operations.read_check import ReadCheck
from icefloe.commit.operations.remove_files import RemoveFiles
from icefloe.commit.operations.rewrite import FileGroup, RewriteFiles, RewriteGroups
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.commit.operations.snapshot_operation import SnapshotOperation
from icefloe.env import SYSTEM
from icefloe.errors import ConflictError
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.io.memory import MemoryFileIO
from icefloe.model.entries import ContentType, StatKey, Status, column_key, concat, empty, entries, partition_key
from icefloe.model.metadata.snapshots import Operation
from icefloe.model.metadata.table_metadata import ancestors
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.partition_text import partition_spec
from icefloe.scan.plan import plan_scan
from icefloe.testing.scheduler import Baton, BatonPointers, Choices, explore
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.store import ManifestCache
from support.memory_files import files_in

NAME = ("db", "t")
LOCATION = "memory://wh/t"
ENV = replace(SYSTEM, sleep=lambda seconds: None)
Row = tuple[int, str, str]  # id, color, note
Rows = tuple[Row, ...]
FIRST_ROWS: Rows = ((1, "red", "-"), (2, "red", "-"), (5, "blue", "-"))
FILTERS: dict[str, Callable[[Row], bool]] = {
    "id = 1": lambda row: row[0] == 1,
    "color = 'red'": lambda row: row[1] == "red",
    "color = 'green'": lambda row: row[1] == "green",
}
_NUMBERS = count()


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The table and the isolation level of a pair of operations."""

    version: int
    isolation: Isolation
    partitioned: bool = False
    deep: bool = False  # with limits so small that every commit moves rows of the tree as well

    def __str__(self) -> str:
        words = (f"v{self.version}", self.isolation, "partitioned" * self.partitioned, "deep" * self.deep)
        return " ".join(word for word in words if word != "")


@dataclass
class Model:
    """The rows of data files, the positions in delete files and vectors, and the ids of equality deletes."""

    rows: dict[str, Rows] = field(default_factory=dict)
    positions: dict[str, dict[str, frozenset[int]]] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A live row, and where it is."""

    file: str
    position: int
    row: Row


class World:
    """A table of modelled files; ``copy`` gives one that can be changed."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.io = MemoryFileIO()
        self.catalog = MemoryCatalog("test", warehouse="memory://wh")
        self.catalog.create_namespace("db")
        self.model = Model()
        self.cache = ManifestCache()  # shared by all copies: a file is what its name says

    def copy(self) -> World:
        other = World(self.setting)
        files_in(other.io).update(files_in(self.io))
        other.catalog.create(NAME, self.catalog.load(NAME))
        other.cache = self.cache
        other.model = Model(dict(self.model.rows), dict(self.model.positions), dict(self.model.ids))
        return other

    def pointer(self, pointers: Pointers | None = None) -> TablePointer:
        return TablePointer(self.catalog if pointers is None else pointers, NAME, self.io, cache=self.cache)

    def table(self) -> Rows:
        """The rows of the head, in order."""
        return tuple(sorted(found.row for found in self.live(self.pointer().load())[0]))

    def live(self, base: Base) -> tuple[list[Found], pa.Table]:
        """The live rows of the head of a base, and the planned files."""
        plan = plan_scan(base.store, base.metadata, base.metadata.current_snapshot)
        deletes = plan.deletes["location"].to_pylist()
        found: list[Found] = []
        for task in plan.tasks.select(["location", "dv_location", "deletes"]).to_pylist():
            file = task["location"]
            applied = [deletes[n] for n in task["deletes"] or ()]
            applied += [] if task["dv_location"] is None else [task["dv_location"]]
            gone = {p for name in applied for p in self.model.positions.get(name, {}).get(file, ())}
            ids = {self.model.ids[name] for name in applied if name in self.model.ids}
            rows = enumerate(self.model.rows[file])
            found.extend(Found(file, p, row) for p, row in rows if p not in gone and row[0] not in ids)
        return found, plan.tasks

    def data(self, base: Base, rows: list[Row]) -> pa.Table:
        """New data files of rows: one, or one for each partition."""
        colors = sorted({row[1] for row in rows}) if self.setting.partitioned else [None]
        parts = [tuple(row for row in rows if color in (None, row[1])) for color in colors]
        return concat([self._data_file(base, part) for part in parts if len(part) > 0])

    def _data_file(self, base: Base, rows: Rows) -> pa.Table:
        location = f"{LOCATION}/data/f{next(_NUMBERS)}.parquet"
        self.model.rows[location] = rows
        stats: dict[str, object] = {}
        for place, column in enumerate(base.metadata.schema.fields):
            values = [row[place] for row in rows]
            stats[f"lower_bound:{column.id}"], stats[f"upper_bound:{column.id}"] = min(values), max(values)
            stats[f"value_count:{column.id}"], stats[f"null_value_count:{column.id}"] = len(rows), 0
        return self._entry(base, ContentType.DATA, location, len(rows), rows[0][1], stats)

    def vectors(self, base: Base, hits: list[Found], tasks: pa.Table) -> pa.Table:
        """Deletes of rows by position, one entry for each data file: vectors, or delete files where there are none."""
        vectors = base.metadata.rules.deletion_vectors
        old = dict(zip(tasks["location"].to_pylist(), tasks["dv_location"].to_pylist(), strict=True))
        found = []
        for file in sorted({hit.file for hit in hits}):
            positions = frozenset(hit.position for hit in hits if hit.file == file)
            location = f"{LOCATION}/data/d{next(_NUMBERS)}.{'puffin' if vectors else 'parquet'}"
            if vectors and old[file] is not None:
                positions |= self.model.positions[old[file]][file]
            self.model.positions[location] = {file: positions}
            more: dict[str, object] = {"referenced_file": file}
            more |= {"dv_offset": 4, "dv_size_in_bytes": 40} if vectors else {}
            color = self.model.rows[file][0][1]
            found.append(self._entry(base, ContentType.POSITION_DELETES, location, len(positions), color, more))
        return concat(found)

    def equality(self, base: Base, id_: int, color: str) -> pa.Table:
        """A delete of the rows with an id."""
        location = f"{LOCATION}/data/e{next(_NUMBERS)}.parquet"
        self.model.ids[location] = id_
        more: dict[str, object] = {"equality_ids": [base.metadata.schema.field("id").id]}
        return self._entry(base, ContentType.EQUALITY_DELETES, location, 1, color, more)

    def _entry(
        self, base: Base, kind: ContentType, location: str, rows: int, color: str, more: dict[str, object]
    ) -> pa.Table:
        entry: dict[str, object] = {
            "content_type": int(kind),
            "location": location,
            "file_format": location.rsplit(".", 1)[-1],
            "status": int(Status.ADDED),
            "partition_spec_id": base.metadata.spec.spec_id,
            "record_count": rows,
            "file_size_in_bytes": 100,
            **more,
        }
        types: dict[StatKey, Any] = {column_key(1): pa.int64(), column_key(2): pa.string(), column_key(3): pa.string()}
        for part in base.metadata.spec.fields:
            key = partition_key(part.field_id)
            types[key] = pa.string()
            entry |= {f"lower_bound:{key}": color, f"upper_bound:{key}": color}
            entry |= {f"value_count:{key}": rows, f"null_value_count:{key}": 0}
        return entries([entry], types)


# Files go to leaves at once, leaves are merged and written again, and vectors of manifests are in Puffin files.
DEEP = {
    "commit.root.max-data-files": "0",
    "commit.root.max-dvs": "0",
    "commit.leaf.max-dead-percent": "1",
    "commit.leaf.min-dead-rows": "1",
    "commit.manifest.min-count-to-merge": "2",
    "write.manifest-dv.inline-max-bytes": "0",
}


def new_world(setting: Setting) -> World:
    """A table of three rows, in one file or in one for each partition."""
    world = World(setting)
    schema = parse_ddl("id bigint, color string, note string")
    metadata = new_metadata(
        location=LOCATION,
        schema=schema,
        spec=partition_spec(["color"] if setting.partitioned else [], schema),
        properties=DEEP if setting.deep else {},
        format_version=setting.version,
    )
    create_table(world.catalog, NAME, world.io, metadata)
    pointer = world.pointer()
    commit(pointer, Append(added=world.data(pointer.load(), list(FIRST_ROWS))), ENV)
    if setting.deep:  # a leaf of which a row has left, which the next commits write again
        for number in range(2):
            commit(pointer, Append(added=world.data(pointer.load(), [(90 + number, "gray", "-")])), ENV)
        tasks = world.live(pointer.load())[1]
        gray = [name for name in tasks["location"].to_pylist() if world.model.rows[name][0][1] == "gray"]
        commit(pointer, RemoveFiles(locations=tuple(gray)), ENV)
    return world


def operation_of(world: World, base: Base, kind: str, who: int) -> SnapshotOperation | None:
    """The operation that a base leads to, or none if no row of the base is to be changed."""
    name, _, how = kind.partition(" ")
    head, isolation = base.metadata.current_snapshot, world.setting.isolation
    live, tasks = world.live(base)
    match name:
        case "append":
            return Append(added=world.data(base, [(30 + who, "red", "-")]))
        case "replace":
            return ReplacePartitions(added=world.data(base, [(40 + who, "red", "-")]))
        case "overwrite":
            where = parse_filter("color = 'red'")
            return OverwriteWhere(filter=where, added=world.data(base, [(50 + who, "red", "-")]))
        case "compact":
            chosen = [found for found in live if found.row[1] == "red" or not world.setting.partitioned]
            return _compaction(world, base, chosen, tasks, keep=how != "", in_groups=how == "groups")
    text = "color = 'red'" if name == "delete-red" else "id = 1"
    hits = [found for found in live if FILTERS[text](found.row)]
    if how == "by key":
        deletes = world.equality(base, 1, "red")
        return RowDelta(changes=FileChanges(added=deletes), read=head, filter=parse_filter(text), isolation=isolation)
    if len(hits) == 0:
        return None
    touched = tasks.filter(pc.is_in(tasks["location"], value_set=pa.array([hit.file for hit in hits], pa.string())))
    again = [(hit.row[0], hit.row[1], f"new{who}") for hit in hits] if name == "update" else []
    options: dict[str, Any] = {"read": head, "filter": parse_filter(text), "isolation": isolation}
    if how in ("merge", "bare"):
        added = concat([world.vectors(base, hits, tasks), world.data(base, again)])
        # A bare one leaves it to the vectors themselves to say which files they are for.
        named = base.metadata.rules.deletion_vectors and how == "merge"
        replaced = touched if named else touched.slice(0, 0)
        return RowDelta(changes=FileChanges(added=added, revectored=replaced), **options)
    files = set(touched["location"].to_pylist())
    kept = [found.row for found in live if found.file in files and found not in hits]
    added = world.data(base, [*kept, *again]) if len(kept) + len(again) > 0 else empty()
    if how == "copy":
        return OverwriteFiles(changes=FileChanges(added=added, removed=touched), **options)
    return RowDelta(changes=FileChanges(added=added, removed=touched), **options)


def _compaction(
    world: World, base: Base, chosen: list[Found], tasks: pa.Table, *, keep: bool, in_groups: bool = False
) -> SnapshotOperation | None:
    head = base.metadata.current_snapshot
    files = pa.array(sorted({found.file for found in chosen}), pa.string())
    if head is None or len(files) == 0:
        return None

    def group(file: str) -> FileGroup:
        added = world.data(base, [found.row for found in chosen if found.file == file])
        return FileGroup(changes=FileChanges(added=added, removed=tasks.filter(pc.equal(tasks["location"], file))))

    number = head.sequence_number if keep else None
    if in_groups:
        return RewriteGroups(groups=tuple(group(file) for file in files.to_pylist()), read=head, sequence_number=number)
    return RewriteFiles(
        changes=FileChanges(
            added=world.data(base, [found.row for found in chosen]),
            removed=tasks.filter(pc.is_in(tasks["location"], value_set=files)),
        ),
        read=head,
        sequence_number=number,
    )


def steps_of(world: World, base: Base, kind: str, who: int) -> tuple[Update, ...]:
    """The steps of an operation; the first step of a transaction may have nothing to do."""
    if kind not in TRANSACTIONS:
        operation = operation_of(world, base, kind, who)
        return () if operation is None else (operation,)
    where = "color = 'green'" if kind == "reload" else "id = 1"
    live, tasks = world.live(base)
    hits = [found for found in live if FILTERS[where](found.row)]
    options: dict[str, Any] = {"read": base.metadata.current_snapshot, "filter": parse_filter(where)}
    first: SnapshotOperation = ReadCheck(**options, existing_rows=kind == "fill", operation=Operation.DELETE)
    if kind == "reload":  # the rows of a color, in the place of those that there were
        if len(hits) > 0:
            named = pc.is_in(tasks["location"], value_set=pa.array([hit.file for hit in hits], pa.string()))
            first = RowDelta(changes=FileChanges(removed=tasks.filter(named)), **options)
        return (first, Append(added=world.data(base, [(60 + who, "green", "-")])))
    if len(hits) == 0:  # a row unless there is one of its id, and another one in any case
        first = RowDelta(changes=FileChanges(added=world.data(base, [(1, "red", "absent")])), **options)
    return (first, Append(added=world.data(base, [(1, "red", f"always{who}")])))


TRANSACTIONS = ("reload", "fill")
MERGES = ("delete merge", "update merge", "delete-red merge")
COPIES = ("delete copy", "update copy", "delete-red copy")
ROWS = ("delete rows", "update rows", "delete-red rows")  # copies as tables without vectors make them
KINDS = ("append", *MERGES, *COPIES, *ROWS, "delete by key", "compact", "compact keeping", "compact groups", "replace")


def kinds(setting: Setting) -> tuple[str, ...]:
    """The operations that are tried; the others of a transaction may be in any order under snapshot isolation."""
    of_partitions = ("overwrite",) if setting.partitioned else ()
    return (*KINDS, *of_partitions, *(TRANSACTIONS if setting.isolation is Isolation.SERIALIZABLE else ()))


@dataclass(frozen=True, kw_only=True)
class Run:
    """The result of two operations: the rows, the outcome of each, and the snapshots of each."""

    rows: Rows
    ended: dict[int, str]  # "landed", "nothing" or "refused"
    order: tuple[int, ...]  # who landed, in the order of the snapshots
    world: World = field(repr=False, compare=False)


def operate(world: World, pointer: TablePointer, kind: str, who: int) -> tuple[str, int | None]:
    """Read, decide and commit; returns the outcome and the snapshot."""
    steps = steps_of(world, pointer.load(), kind, who)
    if len(steps) == 0:
        return "nothing", None
    try:
        return "landed", commit(pointer, steps, ENV).snapshot_id
    except ConflictError as error:
        if len(error.context.get("snapshot_ids", ())) == 0:
            raise AssertionError("a refusal names the commits that it met") from error
        return "refused", None


def run_pair(start: World, pair: tuple[str, str], baton: Baton) -> Run:
    world = start.copy()
    ended: dict[int, tuple[str, int | None]] = {}

    def writer(who: int) -> Callable[[], None]:
        def body() -> None:
            pointer = world.pointer(BatonPointers(world.catalog, baton))
            ended[who] = operate(world, pointer, pair[who], who)

        return body

    baton.run([writer(0), writer(1)])
    metadata = world.pointer().load().metadata
    assert metadata.current_snapshot_id is not None
    made = {snapshot_id: who for who, (_, snapshot_id) in ended.items() if snapshot_id is not None}
    chain = [snapshot.snapshot_id for snapshot in ancestors(metadata, metadata.current_snapshot_id)]
    assert set(made) <= set(chain), "a commit that landed is not in the history"
    order = tuple(made[snapshot_id] for snapshot_id in reversed(chain) if snapshot_id in made)
    return Run(rows=world.table(), ended={who: how for who, (how, _) in ended.items()}, order=order, world=world)


class Serial:
    """The rows after operations one after another, each run once."""

    def __init__(self, start: World, pair: tuple[str, str]) -> None:
        self._start = start
        self._pair = pair
        self._known: dict[tuple[int, ...], Rows] = {}

    def rows(self, order: tuple[int, ...]) -> Rows:
        if order not in self._known:
            world = self._start.copy()
            for who in order:
                how, _ = operate(world, world.pointer(), self._pair[who], who)
                assert how != "refused", "alone, nothing can be refused"
            self._known[order] = world.table()
        return self._known[order]


@dataclass(frozen=True, kw_only=True)
class Anomaly:
    """A run that no serial order explains."""

    setting: Setting
    pair: tuple[str, str]
    choices: Choices
    run: Run

    def __str__(self) -> str:
        return f"{self.setting}: {self.pair[0]} | {self.pair[1]}, choices {self.choices}: {self.run}"


def anomalies(start: World, pair: tuple[str, str]) -> Iterator[Anomaly | None]:
    """Each interleaving of two operations: the anomaly that it shows, or none."""
    serial = Serial(start, pair)
    for explored in explore(lambda baton: run_pair(start, pair, baton)):
        run = explored.outcome
        if run.rows in (serial.rows(order) for order in allowed(start.setting, run)):
            yield None
        else:
            yield Anomaly(setting=start.setting, pair=pair, choices=explored.choices, run=run)


def allowed(setting: Setting, run: Run) -> list[tuple[int, ...]]:
    """The serial orders that may explain a run; one that had nothing to do may be at any place."""
    done = sorted(who for who, how in run.ended.items() if how != "refused")
    orders = list(permutations(done))
    if setting.isolation is Isolation.SNAPSHOT:
        return orders
    return [order for order in orders if tuple(who for who in order if who in run.order) == run.order]


def checks_of(operation: type[SnapshotOperation]) -> set[str]:
    """The checks that the code of an operation names, and that of the functions of its module that it calls."""
    resolve = operation.resolve
    called = [resolve.__globals__.get(name) for name in resolve.__code__.co_names]
    own = [each for each in called if isinstance(each, FunctionType) and each.__module__ == operation.__module__]
    codes = [resolve.__code__, *(function.__code__ for function in own)]
    return {name for code in codes for name in code.co_names if name.startswith("check_")}


@contextmanager
def without(operation: type[SnapshotOperation], check: str) -> Iterator[None]:
    """The library without one check of one operation."""
    resolve = operation.resolve

    def careless(self: Any, draft: Draft, work: Work) -> FileChanges | None:
        with patch.object(ConflictCheck, check, lambda *arguments, **options: None):
            return resolve(self, draft, work)

    with patch.object(operation, "resolve", careless):
        yield

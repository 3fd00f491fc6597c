"""Operations of processes that fail at one call: tables that are copied for each run, and the checks after the run."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefloe.catalogs.catalog import Pointers, Swap
from icefloe.catalogs.memory import MemoryCatalog
from icefloe.catalogs.names import NameLike
from icefloe.commit.base import TablePointer
from icefloe.commit.draft import Update
from icefloe.commit.loop import commit
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.commit.operations.overwrite import OverwriteFiles, ReplacePartitions
from icefloe.env import SYSTEM
from icefloe.errors import CommitStateUnknown, IcefloeError
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.io.file_io import FileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.model.entries import MANIFESTS, ContentType, live
from icefloe.model.metadata.version_rules import WRITABLE
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.partition_text import partition_spec
from icefloe.scan.plan import plan_scan
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from icefloe.testing.crash_io import CrashFileIO, CrashPointers, Died, Fuse, Kind, Strike
from icefloe.testing.intercepted_io import Effect
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import read_live_leaf, read_root
from support.engine_work import write_entries
from support.memory_files import files_in

LONG = os.environ.get("ICEFLOE_LONG", "") == "1"  # everything, instead of what matters most
VERSIONS = WRITABLE
NAME = ("db", "t")
LOCATION = "memory://wh/t"
FOREIGN_FILE = f"{LOCATION}/landing/given.parquet"  # another program's, in no snapshot at first
ENV = replace(SYSTEM, sleep=lambda seconds: None)
RIVAL_ROW, NEXT_ROW = 888, 777
MANY = 400  # more calls than any operation makes
PROPERTIES = {
    "commit.retry.num-retries": "2",
    "commit.root.max-data-files": "2",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "4",
}
# All that a root of V4 may leave to later commits comes at once: flushes, merges, leaves written again, Puffin files.
STRIKES = [
    (Kind.ERROR, Effect.NONE),
    (Kind.ERROR, Effect.HALF),
    (Kind.DEATH, Effect.NONE),
    (Kind.DEATH, Effect.HALF),
    (Kind.DEATH, Effect.ALL),
    (Kind.UNKNOWN, Effect.NONE),
    (Kind.UNKNOWN, Effect.ALL),
]
DEEP = {
    "commit.root.max-data-files": "1",
    "commit.root.max-dvs": "1",
    "commit.leaf.max-dead-percent": "20",
    "commit.leaf.min-dead-rows": "1",
    "commit.manifest.min-count-to-merge": "3",
    "write.manifest-dv.inline-max-bytes": "0",
}
View = tuple[dict[str, list[tuple[int, int]]], tuple[str, ...], int]


def rows(*ids: int, part: int = 1) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "part": pa.array([part] * len(ids), pa.int32())})


def parquet_bytes(data: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(data, sink)
    return sink.getvalue()


@dataclass(eq=False)
class World:
    """Files and a catalog, as all processes see them."""

    io: MemoryFileIO = field(default_factory=MemoryFileIO)
    catalog: MemoryCatalog = field(default_factory=lambda: MemoryCatalog("test", warehouse="memory://wh"))

    def copy(self) -> World:
        other = World()
        files_in(other.io).update(files_in(self.io))
        other.catalog.create_namespace("db")
        other.catalog.create(NAME, self.catalog.load(NAME))
        return other

    def table(self, io: FileIO | None = None, pointers: Pointers | None = None) -> Table:
        """The table as a new process opens it."""
        catalog = self.catalog if pointers is None else pointers
        return Table(TablePointer(catalog, NAME, self.io if io is None else io), ENV)

    def files(self) -> set[str]:
        return {info.location for info in self.io.list(LOCATION)}

    def view(self) -> View:
        """What readers see: the rows of every branch and tag, the columns, and how many snapshots there are."""
        table = self.table()
        metadata = table.metadata
        return (
            {name: ids_at(table, ref.snapshot_id) for name, ref in sorted(metadata.refs.items())},
            tuple(column.name for column in metadata.schema.fields),
            len(metadata.snapshots),
        )

    def named(self) -> set[str]:
        """Every file that the table's metadata, or a snapshot of it, names."""
        base = pointer_of(self.table()).load()
        found = {base.pointer, *(entry.metadata_file for entry in base.metadata.metadata_log)}
        for snapshot in base.metadata.snapshots:
            root = read_root(base.store, snapshot)
            found.add(snapshot.root_location)
            # Vectors of manifests are needed as long as their root is, also those that others replaced.
            vectors = pc.equal(root.entries["content_type"], int(ContentType.MANIFEST_DV))
            shown = root.entries.filter(pc.or_(live(root.entries), vectors))
            found.update(shown["location"].drop_null().to_pylist())
            for leaf in root.leaves(*MANIFESTS):
                found.update(read_live_leaf(base.store, root, leaf)["location"].to_pylist())
        return found


def ids_at(table: Table, snapshot_id: int) -> list[tuple[int, int]]:
    found = table.at(snapshot=snapshot_id).scan(columns=["id", "part"]).to_arrow()
    return sorted(zip(found["id"].to_pylist(), found["part"].to_pylist(), strict=True))


@cache
def start_world(version: int, *, deep: bool = False) -> World:
    """A table with a history: leaves, deletes, a branch, a staged snapshot, and metadata files that fall out.

    With ``deep``, the limits are so small that every commit also moves entries between manifests.
    """
    world = World()
    schema = parse_ddl("id bigint, part int")
    metadata = new_metadata(
        location=LOCATION,
        schema=schema,
        spec=partition_spec(["part"], schema),
        properties={**PROPERTIES, **(DEEP if deep else {})},
        format_version=version,
    )
    world.catalog.create_namespace("db")
    create_table(world.catalog, NAME, world.io, metadata)
    world.io.write_new(FOREIGN_FILE, parquet_bytes(rows(90, 91, part=9)))
    table = world.table()
    table.append(rows(0, 1, 2, part=0))
    table.append(rows(3, 4, 5))
    table.branch("side")
    table.delete("id = 1")
    table.append(rows(50), wap_id="audit")
    table.append(rows(6, 7, part=2))
    if deep:
        for number in range(3):
            table.append(rows(number, part=30 + number))
        table.delete("id = 7")
        table.remove_files(table.scan("part < 32 and part > 2").plan().tasks["location"].to_pylist())
    return world


Act = Callable[[Table], object]


def _commit(table: Table, update: Update) -> None:
    commit(pointer_of(table), update, ENV)


def _write(table: Table, data: pa.Table) -> pa.Table:
    return write_entries(pointer_of(table).io, data, table.metadata)


def overwrite_files(table: Table) -> None:
    where = parse_filter("id < 100 and part = 1")
    base = pointer_of(table).load()
    head = base.metadata.current_snapshot
    plan = plan_scan(base.store, base.metadata, head, filter=where)
    added = write_entries(pointer_of(table).io, rows(3, 40), base.metadata)
    _commit(table, OverwriteFiles(changes=FileChanges(added=added, removed=plan.tasks), read=head, filter=where))


def replace_partitions(table: Table) -> None:
    _commit(table, ReplacePartitions(added=_write(table, rows(60, part=0))))


def compact(table: Table) -> None:
    """All files of partitions 0 and 1 as one each."""
    table.compact("part < 2 and id < 100", options={"min-input-files": 2, "rewrite-all": True}).execute()


def transaction(table: Table) -> None:
    with table.transaction() as tx:
        tx.append(rows(70, 71))
        tx.delete("id = 4")


def change_schema(table: Table) -> None:
    with table.update_schema() as edit:
        edit.add_column("note", "string")


def cherry_pick(table: Table) -> None:
    (staged,) = [s for s in table.snapshots if s.summary.get("wap.id") == "audit"]
    table.cherry_pick(staged.snapshot_id)


def expire_staged(table: Table) -> None:
    (staged,) = [s for s in table.snapshots if s.summary.get("wap.id") == "audit"]
    table.expire(snapshots=[staged.snapshot_id], clean=False).execute()


FIRST: dict[str, Act] = {
    "append": lambda table: table.append(rows(9)),
    "overwrite files": overwrite_files,
    "delete": lambda table: table.delete("id = 3 or id = 6"),
    "compact": compact,
}
OTHERS: dict[str, Act] = {
    "upsert": lambda table: table.upsert(rows(2, 40), on=["id"]),
    "upsert by equality": lambda table: table.upsert(rows(3, 40), on=["id", "part"], deletes="equality"),
    "add files": lambda table: table.add_files([FOREIGN_FILE]),
    "replace partitions": replace_partitions,
    "rewrite manifests": lambda table: table.rewrite_manifests().execute(),
    "rewrite deletes": lambda table: table.rewrite_deletes().execute(),
    "remove files": lambda table: table.remove_files(table.scan("part = 2").plan().tasks["location"].to_pylist()),
    "transaction": transaction,
    "schema": change_schema,
    "branch commit": lambda table: table.append(rows(80), branch="side", create_branch=True),
    "cherry-pick": cherry_pick,
    "rollback": lambda table: table.rollback(snapshot=table.snapshots[0].snapshot_id),
    "expire": expire_staged,
}
ACTS = {**FIRST, **OTHERS}


def exists_in(name: str, version: int) -> bool:
    """Whether tables of a version have an operation: version 1 has no delete files."""
    return version > 1 or name != "upsert by equality"


class Rival(CrashPointers):
    """A process whose first swap fails: another process, whose result is given, has just committed."""

    def __init__(self, world: World, fuse: Fuse, work: World) -> None:
        super().__init__(world.catalog, fuse)
        self.came = False
        self._world = world
        self._before = world.catalog.load(NAME)
        self._work = work
        self._dropped = world.files() - work.files()

    def swap(self, identifier: NameLike, expected: str, new: str) -> Swap:
        if not self.came:
            self.came = True
            files_in(self._world.io).update(files_in(self._work.io))
            self._world.io.delete(sorted(self._dropped))
            self._world.catalog.swap(NAME, self._before, self._work.catalog.load(NAME))
        return super().swap(identifier, expected, new)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a run ended: with the error that it raised, if any."""

    world: World
    error: BaseException | None
    strike: Strike | None
    hit: str | None
    rival_came: bool
    swaps: tuple[tuple[str, str], ...]  # that were tried: from where to where
    deleted: tuple[str, ...]

    @property
    def is_definite(self) -> bool:
        """Whether the error proves that nothing was committed."""
        return isinstance(self.error, IcefloeError) and not isinstance(self.error, CommitStateUnknown)

    @property
    def may_leave_nothing(self) -> bool:
        """Whether only the process itself may have prevented its clean-up."""
        strike = self.strike
        if strike is None or self.hit is None:
            return True
        if self.error is not None and not self.is_definite:
            return False
        return self.hit != "delete" and strike.effect is Effect.NONE


def run(start: World, act: Act, strike: Strike | None = None, *, rival: World | None = None) -> Ended:
    """Run an operation on a copy of a world, in a process that may fail at one call."""
    world, fuse = start.copy(), Fuse(strike)
    pointers = CrashPointers(world.catalog, fuse) if rival is None else Rival(world, fuse, rival)
    storage = CrashFileIO(world.io, fuse)
    error: BaseException | None = None
    try:
        act(world.table(storage, pointers))
    except (IcefloeError, KeyboardInterrupt, Died) as caught:
        error = caught
    if fuse.dead:
        error = Died("the process is dead")
        storage.power_cut()
    return Ended(
        world=world,
        error=error,
        strike=strike,
        hit=fuse.hit,
        rival_came=isinstance(pointers, Rival) and pointers.came,
        swaps=tuple(pointers.swaps),
        deleted=tuple(storage.deleted),
    )


def landed(ended: Ended) -> bool:
    """Whether an operation with an unknown outcome was committed, as a user would look it up."""
    base = pointer_of(ended.world.table()).load()
    known = {base.pointer, *(entry.metadata_file for entry in base.metadata.metadata_log)}
    there = ended.swaps[-1][1] in known
    if isinstance(ended.error, CommitStateUnknown):
        assert ended.error.context["location"] == ended.swaps[-1][1]
        made = ended.error.context["snapshot_ids"]
        assert isinstance(made, tuple)
        assert len(made) == 0 or there == all(base.metadata.snapshots.find(one) is not None for one in made)
    return there


class Expected:
    """What readers may see after an operation: all of its changes or none, and the rival's row if it committed."""

    def __init__(self, start: World, act: Act, *, rival: World | None = None) -> None:
        done = run(start, act, rival=rival)
        assert done.error is None
        self.whole = done.world.view()
        self._left = done.world.files() - done.world.named()  # of snapshots that the operation forgets
        self._unchanged = {False: state_of(start), True: state_of(start if rival is None else rival)}

    def unchanged(self, ended: Ended) -> State:
        """The expected world if nothing was committed."""
        return self._unchanged[ended.rival_came]

    def check(self, ended: Ended) -> None:
        """Everything that must hold after a run."""
        world, none = ended.world, self.unchanged(ended)
        if none.is_still(world):
            seen, named = none.view, none.named
        else:
            seen, named = world.view(), world.named()
        if ended.error is None:
            assert seen == self.whole
        elif ended.is_definite:
            assert seen == none.view
        else:
            assert seen in (none.view, self.whole)
        assert named <= world.files(), "a file that a snapshot names is gone"
        assert FOREIGN_FILE in world.files(), "a file that another program wrote is gone"
        if ended.may_leave_nothing:
            assert world.files() - named - none.loose - self._left == set(), "unreferenced files were left behind"


class State:
    """The state of a world, to see without reading the table whether it has changed."""

    def __init__(self, world: World) -> None:
        self.view = world.view()
        self.named = world.named()
        self.loose = world.files() - self.named
        self._pointer = world.catalog.load(NAME)
        self._files = {name: world.io.read(name) for name in self.named}

    def is_still(self, world: World) -> bool:
        """Whether the pointer and all files of the table are unchanged."""
        if world.catalog.load(NAME) != self._pointer:
            return False
        return all(world.io.exists(name) and world.io.read(name) == data for name, data in self._files.items())


@cache
def state_of(world: World) -> State:
    return State(world)


@cache
def with_rival(start: World) -> World:
    """The world after another process has added a row."""
    world = start.copy()
    world.table().append(rows(RIVAL_ROW))
    return world


def check_goes_on(world: World) -> None:
    """The next writer succeeds, and adds just its row."""
    before = world.view()
    assert not LONG or check_table(world.table()) == []
    world.table().append(rows(NEXT_ROW))
    after = world.view()
    assert after[0]["main"] == sorted([*before[0]["main"], (NEXT_ROW, 1)])
    assert {n: r for n, r in after[0].items() if n != "main"} == {n: r for n, r in before[0].items() if n != "main"}

"""A table in memory whose catalog answers by script, changed by entries of files that need not exist.

``audit`` checks all metadata of the table, and the files in its metadata folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.catalogs.catalog import Stale, Swap, Unknown
from icefloe.catalogs.memory import MemoryCatalog
from icefloe.catalogs.names import NameLike
from icefloe.commit.base import Base, TablePointer
from icefloe.commit.draft import Update
from icefloe.commit.loop import commit
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.commit.result import CommitResult
from icefloe.env import SYSTEM
from icefloe.errors import NoSuchTable
from icefloe.io.memory import MemoryFileIO
from icefloe.model.entries import (
    DELETES,
    MANIFESTS,
    ContentType,
    Status,
    column_key,
    concat,
    entries,
    of_type,
    partition_key,
)
from icefloe.model.metadata.snapshots import Snapshot, SummaryKey
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.partition_text import partition_spec
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import Plan
from icefloe.table.table import Table
from icefloe.testing.counting_io import CountingFileIO
from icefloe.tree.root import Leaf, leaves_of, read_live_leaf, read_root, with_manifest
from support.conformance import nonconformities
from support.metadata_tree import stored_leaf

NAME = ("db", "t")
LOCATION = "memory://wh/t"
ENV = replace(SYSTEM, sleep=lambda seconds: None)
CITY = partition_key(1000)
TYPES = {column_key(1): pa.int64(), CITY: pa.string()}


@dataclass
class Scripted:
    """A catalog whose next swaps answer by script; ``between`` runs before a swap, as another writer would.

    "lost" and "landed" are unknown outcomes of a swap that did not move the pointer, and of one that did. "broken" and
    "moved and broken" raise an error that no catalog should raise.
    """

    inner: MemoryCatalog = field(default_factory=lambda: MemoryCatalog("test", warehouse="memory://wh"))
    script: list[str] = field(default_factory=list)
    between: list[Callable[[], object]] = field(default_factory=list)
    swaps: int = 0
    blind: bool = False  # after a swap, no pointer can be loaded

    def load(self, identifier: NameLike) -> str:
        if self.blind and self.swaps > 0:
            raise TimeoutError("no answer")
        return self.inner.load(identifier)

    def swap(self, identifier: NameLike, expected: str, new: str) -> Swap:
        if len(self.between) > 0:
            self.between.pop(0)()
        self.swaps += 1
        step = self.script.pop(0) if len(self.script) > 0 else "swap"
        match step:
            case "stale":
                return Stale()
            case "gone":
                raise NoSuchTable("the table was dropped")
            case "lost":
                return Unknown(cause=TimeoutError("no answer"))
            case "interrupt":
                return Unknown(cause=KeyboardInterrupt())
            case "broken":
                raise OSError("out of sockets")
        outcome = self.inner.swap(identifier, expected, new)
        match step:
            case "moved and broken":
                raise OSError("out of sockets")
            case "moved and stale":
                return Stale()
            case "landed":
                return Unknown(cause=TimeoutError("answer lost"))
        return outcome


@dataclass
class World:
    """A table partitioned by city, with short ways to change it and to look at it."""

    catalog: Scripted
    io: CountingFileIO

    def pointer(self) -> TablePointer:
        return TablePointer(self.catalog, NAME, self.io)

    def table(self) -> Table:
        return Table(self.pointer(), ENV)

    def base(self) -> Base:
        return self.pointer().load()

    @property
    def metadata(self) -> TableMetadata:
        return self.base().metadata

    @property
    def head(self) -> Snapshot | None:
        return self.metadata.current_snapshot

    def commit(self, *updates: Update) -> CommitResult:
        return commit(self.pointer(), updates, ENV)

    def plan(self, snapshot: Snapshot | None = None, **options: Any) -> Plan:
        base = self.base()
        chosen = base.metadata.current_snapshot if snapshot is None else snapshot
        return plan_scan(base.store, base.metadata, chosen, **options)

    def tasks(self, *names: str) -> pa.Table:
        """The planned files of these names."""
        tasks = self.plan().tasks
        return tasks.filter(pc.is_in(tasks["location"], value_set=pa.array([at(name) for name in names])))

    def deletes(self) -> pa.Table:
        """The live delete entries of the head, with the leaf of each."""
        base = self.base()
        root = read_root(base.store, base.metadata.current_snapshot)
        found = [with_manifest(root.rows(*DELETES), None)]
        found += [
            with_manifest(read_live_leaf(base.store, root, leaf), leaf)
            for leaf in root.leaves(ContentType.DELETE_MANIFEST)
        ]
        return concat(found)

    def names(self, snapshot: Snapshot | None = None) -> list[str]:
        """The data files of a snapshot, or of the head."""
        if snapshot is None and self.head is None:
            return []
        return sorted(short(location) for location in self.plan(snapshot).tasks["location"].to_pylist())

    def entries(self, snapshot: Snapshot | None = None) -> pa.Table:
        """All live entries of a snapshot, or of the head, in its root and its leaves."""
        base = self.base()
        root = read_root(base.store, base.metadata.current_snapshot if snapshot is None else snapshot)
        inside = [read_live_leaf(base.store, root, leaf) for leaf in root.leaves(*MANIFESTS)]
        return concat([root.rows(ContentType.DATA, *DELETES), *inside])

    def leaves(self) -> list[Leaf]:
        base = self.base()
        return list(leaves_of(read_root(base.store, base.metadata.current_snapshot).rows(*MANIFESTS)))

    def files(self) -> set[str]:
        return {info.location for info in self.io.inner.list(LOCATION)}


def new_world(version: int, partition_by: tuple[str, ...] = ("city",), **properties: str) -> World:
    """A new table with these properties."""
    catalog, io = Scripted(), CountingFileIO(MemoryFileIO())
    schema = parse_ddl("id bigint, city string")
    settings = {"commit.retry.num-retries": "3", **properties}
    metadata = new_metadata(
        location=LOCATION,
        schema=schema,
        spec=partition_spec(partition_by, schema),
        properties=settings,
        format_version=version,
    )
    catalog.inner.create_namespace("db")
    create_table(catalog.inner, NAME, io, metadata)
    return World(catalog, io)


def at(name: str) -> str:
    return f"{LOCATION}/data/{name}.parquet"


def short(location: str) -> str:
    return location.rsplit("/", 1)[-1].split(".")[0]


def data(name: str, city: str | None = "Oslo", low: int = 0, high: int = 9, rows: int = 10) -> dict[str, object]:
    """The entry of a data file."""
    return {
        "content_type": int(ContentType.DATA),
        "location": at(name),
        "file_format": "parquet",
        "partition_spec_id": 0,
        "record_count": rows,
        "file_size_in_bytes": 100,
        "lower_bound:1": low,
        "upper_bound:1": high,
        "value_count:1": rows,
        "null_value_count:1": 0,
        **_partition(city, rows),
    }


def _partition(city: str | None, rows: int) -> dict[str, object]:
    return {
        f"lower_bound:{CITY}": city,
        f"upper_bound:{CITY}": city,
        f"value_count:{CITY}": rows,
        f"null_value_count:{CITY}": rows if city is None else 0,
    }


def vector(name: str, target: str, city: str | None = "Oslo", rows: int = 1) -> dict[str, object]:
    """The entry of a deletion vector."""
    kind = {"file_format": "puffin", "dv_offset": 4, "dv_size_in_bytes": 40}
    return {**position_deletes(name, target, city, rows), **kind}


def position_deletes(name: str, target: str | None, city: str | None = "Oslo", rows: int = 1) -> dict[str, object]:
    """The entry of a position delete file, of one data file or of a partition."""
    return {
        "content_type": int(ContentType.POSITION_DELETES),
        "location": f"{LOCATION}/data/{name}.deletes",
        "file_format": "parquet",
        "partition_spec_id": 0,
        "record_count": rows,
        "file_size_in_bytes": 60,
        "referenced_file": None if target is None else at(target),
        **_partition(city, rows),
    }


def equality_deletes(name: str, city: str | None = "Oslo", rows: int = 1) -> dict[str, object]:
    """The entry of an equality delete file by id."""
    kind = {"content_type": int(ContentType.EQUALITY_DELETES), "equality_ids": [1]}
    return {**position_deletes(name, None, city, rows), **kind}


def rows(*dicts: dict[str, object]) -> pa.Table:
    return entries(list(dicts), TYPES)


def audit(world: World, *, folder: bool = True) -> None:
    """Check what holds after any operation: totals, sequence numbers, row ids, logs, and no unreferenced files."""
    fresh = world.base()
    metadata, reachable = fresh.metadata, {fresh.pointer}
    ids: dict[str, int] = {}
    for snapshot in metadata.snapshots:
        root = read_root(fresh.store, snapshot)
        assert snapshot.root is not None
        reachable |= {snapshot.root, *(leaf.location for leaf in leaves_of(root.rows(*MANIFESTS)))}
        reachable |= set(root.rows(ContentType.MANIFEST_DV)["location"].drop_null().to_pylist())
        for leaf in leaves_of(root.rows(*MANIFESTS)):
            stored = stored_leaf(fresh.store, leaf.location, content=leaf.content)
            news = stored.filter(pc.not_equal(stored["status"], int(Status.EXISTING)))
            assert set(news["snapshot_id"].to_pylist()) <= {leaf.snapshot_id}, "news of another snapshot"
        inside = world.entries(snapshot)
        files = inside.filter(of_type(inside, ContentType.DATA))
        deletes = inside.filter(of_type(inside, *DELETES))
        assert pc.count_distinct(files["location"]).as_py() == files.num_rows
        _check_totals(snapshot, files, deletes)
        assert (pc.max(inside["sequence_number"]).as_py() or 0) <= snapshot.sequence_number
        assert inside["sequence_number"].null_count == 0
        if metadata.rules.row_lineage and snapshot.first_row_id is not None:
            for location, first in zip(files["location"].to_pylist(), files["first_row_id"].to_pylist(), strict=True):
                assert first is not None, location
                assert ids.setdefault(location, first) == first, f"{location} has other row ids than before"
            _check_ranges(files, metadata.next_row_id)
    times = [entry.timestamp_ms for entry in metadata.snapshot_log]
    assert times == sorted(times)
    assert all(snapshot.timestamp_ms <= metadata.last_updated_ms for snapshot in metadata.snapshots)
    assert all(world.io.exists(location) for location in reachable)
    assert nonconformities(fresh, data=False) == []  # its data files do not exist
    if folder:
        reachable |= {entry.metadata_file for entry in metadata.metadata_log}
        assert {file for file in world.files() if "/metadata/" in file} == reachable


def _check_totals(snapshot: Snapshot, files: pa.Table, deletes: pa.Table) -> None:
    by_position = deletes.filter(of_type(deletes, ContentType.POSITION_DELETES))
    by_value = deletes.filter(of_type(deletes, ContentType.EQUALITY_DELETES))
    vectors = pc.sum(pc.if_else(pc.is_valid(deletes["dv_offset"]), deletes["dv_size_in_bytes"], 0)).as_py() or 0
    plain = deletes.filter(pc.is_null(deletes["dv_offset"]))
    expected = {
        SummaryKey.TOTAL_DATA_FILES: files.num_rows,
        SummaryKey.TOTAL_RECORDS: _sum(files, "record_count"),
        SummaryKey.TOTAL_DELETE_FILES: deletes.num_rows,
        SummaryKey.TOTAL_POSITION_DELETES: _sum(by_position, "record_count"),
        SummaryKey.TOTAL_EQUALITY_DELETES: _sum(by_value, "record_count"),
        SummaryKey.TOTAL_FILES_SIZE: _sum(files, "file_size_in_bytes") + vectors + _sum(plain, "file_size_in_bytes"),
    }
    assert {key: int(snapshot.summary[key]) for key in expected} == expected


def _check_ranges(files: pa.Table, next_row_id: int) -> None:
    pairs = sorted(zip(files["first_row_id"].to_pylist(), files["record_count"].to_pylist(), strict=True))
    end = 0
    for first, count in pairs:
        assert first >= end
        end = first + count
    assert end <= next_row_id


def _sum(table: pa.Table, name: str) -> int:
    return pc.sum(table[name]).as_py() or 0


def changed(world: World, snapshot: Snapshot, status: Status) -> list[str]:
    """Names of the entries whose status this snapshot has set, in its leaves and root."""
    base = world.base()
    root = read_root(base.store, snapshot)
    inside = [stored_leaf(base.store, leaf.location, content=leaf.content) for leaf in leaves_of(root.rows(*MANIFESTS))]
    found = concat([root.entries.filter(of_type(root.entries, ContentType.DATA, *DELETES)), *inside])
    mine = pc.and_(pc.equal(found["status"], int(status)), pc.equal(found["snapshot_id"], snapshot.snapshot_id))
    return sorted(short(location) for location in found.filter(mine)["location"].to_pylist())

"""One of the tables of a history, in memory; it is upgraded through its format versions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.catalogs.memory import MemoryCatalog
from icefloe.commit.base import TablePointer
from icefloe.commit.loop import commit
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.deletes.vectors import load_vectors
from icefloe.env import SYSTEM
from icefloe.io.memory import MemoryFileIO
from icefloe.limits import MIB
from icefloe.maintenance.verify.check import Check
from icefloe.model.metadata.snapshots import MAIN, Snapshot
from icefloe.model.partition.spec import UNPARTITIONED
from icefloe.model.schema.metadata_columns import ROW_ID
from icefloe.model.text.ddl import parse_ddl
from icefloe.scan.plan import plan_scan
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.tree.store import ManifestCache

NAME = ("db", "t")
LOCATION = "memory://wh/t"
SCHEMA = "uid bigint, id bigint, part int, city string, amount double"
FIRST_LIMITS = {
    "commit.root.max-data-files": "3",
    "commit.root.max-dvs": "2",
    "commit.leaf.max-dead-percent": "50",
    "commit.leaf.min-dead-rows": "1",
    "commit.manifest.min-count-to-merge": "3",
    "write.manifest-dv.inline-max-bytes": "0",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "2",
}


class Lane:
    """One of the tables; ``versions`` are its format versions in order, also shown by ``label``."""

    def __init__(self, versions: Sequence[int], seed: int) -> None:
        self.versions = list(versions)
        self.label = "v" + " to ".join(map(str, (versions[0], versions[-1]) if len(versions) > 1 else versions))
        self.io = MemoryFileIO()
        catalog = MemoryCatalog("test", warehouse="memory://wh")
        catalog.create_namespace("db")
        metadata = new_metadata(
            location=LOCATION,
            schema=parse_ddl(SCHEMA),
            spec=UNPARTITIONED,
            properties=FIRST_LIMITS,
            format_version=versions[0],
        )
        create_table(catalog, NAME, self.io, metadata)
        bits, clock = random.Random(seed), count(1_000_000)
        self.env = replace(
            SYSTEM,
            sleep=lambda seconds: None,
            now_ms=lambda: next(clock),
            new_uuid=lambda: UUID(int=bits.getrandbits(128), version=4),
        )
        self._catalog = catalog
        self.table = self.open()
        base = pointer_of(self.table).load()
        self.check = Check(base.store, base.metadata)
        self.seen: set[int] = set()
        self.expected: dict[int, list[tuple[object, ...]]] = {}  # rows by snapshot
        self.row_ids: dict[object, object] = {}  # by uid, for ever
        self._files: dict[str, tuple[list[object], list[object]]] = {}

    def __str__(self) -> str:
        return self.label

    def open(self) -> Table:
        """The table as a new process opens it; a small cache, as long histories have many manifests."""
        return Table(TablePointer(self._catalog, NAME, self.io, cache=ManifestCache(32 * MIB)), self.env)

    def commit(self, update: object) -> None:
        commit(pointer_of(self.table), update, self.env)  # type: ignore[arg-type]

    def head(self, branch: str = MAIN) -> Snapshot | None:
        ref = self.table.metadata.refs.get(branch)
        return None if ref is None else self.table.metadata.snapshot(ref.snapshot_id)

    def rows(self, snapshot_id: int | None = None) -> list[tuple[object, ...]]:
        found = self.table.at(snapshot=snapshot_id).scan().to_arrow()
        return in_order(tuple(row.values()) for row in found.to_pylist())

    def ids(self, snapshot: Snapshot | None) -> dict[object, object]:
        """Row ids by uid, from the entries and the bytes of files alone."""
        base = pointer_of(self.table).load()
        tasks = plan_scan(base.store, base.metadata, snapshot).tasks
        dead = load_vectors(base.store.io, tasks)
        found: dict[object, object] = {}
        names = ["location", "first_row_id"]
        for location, first in zip(*(tasks[name].to_pylist() for name in names), strict=True):
            uids, stored = self._file(location)
            for position, (uid, own) in enumerate(zip(uids, stored, strict=True)):
                if position not in dead.get(location, ()):
                    found[uid] = own if own is not None else None if first is None else first + position
        return found

    def _file(self, location: str) -> tuple[list[object], list[object]]:
        """The uids and the row ids that a file holds, which never change."""
        if location not in self._files:
            file = pq.read_table(pa.BufferReader(self.io.read(location)))
            ids = {field.metadata[b"PARQUET:field_id"]: field.name for field in file.schema}
            uids = file[ids[b"1"]].to_pylist()
            name = ids.get(str(ROW_ID.id).encode())
            self._files[location] = (uids, [None] * len(uids) if name is None else file[name].to_pylist())
        return self._files[location]


def in_order(rows: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted(rows, key=repr)

"""Writes the tables of the kit with icefloe, in memory and always the same: ids, times and names are counted.

Snapshot ids are small numbers, one second lies between two commits, and data files have the names that the proposal
gives them: ``data/D4.parquet`` has the ids 40 to 42.
"""

from __future__ import annotations

import gzip
import itertools
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from icefloe.catalogs.memory import MemoryCatalog
from icefloe.commit.base import TablePointer
from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.commit.operations.overwrite import OverwriteFiles
from icefloe.engines.arrow.engine import ArrowEngine
from icefloe.engines.work import TableFiles
from icefloe.env import Env
from icefloe.formats.write.write_files import write_files
from icefloe.io.memory import MemoryFileIO
from icefloe.model.entries import concat, put
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.partition_text import partition_spec
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.tree.file_changes import FileChanges

WAREHOUSE = "memory://conformance"
NAME = ("kit", "t")
START_MS = 1_750_000_000_000
TO_LEAVES = {"commit.root.max-data-files": "0", "commit.root.max-dvs": "0"}
TO_ROOT = {"commit.root.max-data-files": "1000", "commit.root.max-dvs": "10000"}
KEPT = {"commit.leaf.max-dead-percent": "1000", "commit.manifest-merge.enabled": "false"}
METADATA = "metadata/v1.metadata.json"


def counted_env() -> Env:
    """A world in which every uuid and every time is the next one; the snapshot id of the n-th uuid is n."""
    ids, times = itertools.count(1), itertools.count()

    def new_uuid() -> uuid.UUID:
        number = next(ids)
        return uuid.UUID(int=number << 65 | number)

    return Env(
        now_ms=lambda: START_MS + 1000 * next(times), new_uuid=new_uuid, sleep=lambda _: None, jitter=lambda: 0.5
    )


class Stage:
    """A table in memory, with short ways to change it."""

    def __init__(
        self,
        name: str,
        schema: str = "id bigint",
        *,
        version: int = 4,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] = {},
    ) -> None:
        self.location = f"{WAREHOUSE}/{name}"
        self.io, self.env = MemoryFileIO(), counted_env()
        columns = parse_ddl(schema)
        metadata = new_metadata(
            location=self.location,
            schema=columns,
            spec=partition_spec(tuple(partition_by), columns),
            properties=properties,
            format_version=version,
            env=self.env,
        )
        catalog = MemoryCatalog("kit", warehouse=WAREHOUSE)
        catalog.create_namespace(NAME[0])
        create_table(catalog, NAME, self.io, metadata, self.env)
        self.table = Table(TablePointer(catalog, NAME, self.io), self.env)
        # Engines name data files by a uuid that no caller can choose.
        write_files.__kwdefaults__["new_uuid"] = self.env.new_uuid  # type: ignore[index]

    def settings(self, *properties: Mapping[str, str]) -> None:
        """Set properties of the table."""
        for each in properties:
            self.table.set_properties(each)

    def write(self, *names: str, **rows: pa.Table) -> pa.Table:
        """Write data files: ``D4`` with the ids 40 to 42, or with the given rows; their entries."""
        base = pointer_of(self.table).load()
        given = {name: pa.table({"id": pa.array(ids(name), pa.int64())}) for name in names} | rows
        entries = []
        for name, data in given.items():
            entry = ArrowEngine().write(TableFiles(io=self.io, metadata=base.metadata), data)
            old, new = entry["location"][0].as_py(), self.place(name)
            self.io.write_new(new, self.io.read(old))
            self.io.delete([old])
            entries.append(put(entry, "location", pa.array([new])))
        return concat(entries)

    def append(self, *names: str, branch: str = "main", **rows: pa.Table) -> None:
        """Add data files in one commit."""
        commit(pointer_of(self.table), Append(added=self.write(*names, **rows), branch=branch), self.env)

    def remove(self, *names: str) -> None:
        """Remove data files."""
        self.table.remove_files([self.place(name) for name in names])

    def overwrite(self, removed: str, added: str) -> None:
        """Replace a data file."""
        tasks = self.table.scan().plan().tasks
        chosen = tasks.filter(pa.array([place == self.place(removed) for place in tasks["location"].to_pylist()]))
        changes = FileChanges(added=self.write(added), removed=chosen)
        read = self.table.metadata.current_snapshot
        commit(pointer_of(self.table), OverwriteFiles(changes=changes, read=read), self.env)

    def upsert(self, *numbers: int, deletes: str | None = None) -> None:
        """Replace the rows with these ids."""
        rows = pa.table({"id": pa.array(numbers, pa.int64())})
        self.table.upsert(rows, on=["id"], deletes=deletes)  # type: ignore[arg-type]

    def place(self, name: str) -> str:
        return f"{self.location}/data/{name}.parquet"

    def files(self) -> dict[str, bytes]:
        """All files by their place in the table; of the metadata files only the last, without the log of the others."""
        prefix = len(self.location) + 1
        found = {info.location[prefix:]: self.io.read(info.location) for info in self.io.list(self.location)}
        metadata = json.loads(gzip.decompress(found[self.table.refresh().metadata_location[prefix:]]))
        metadata["metadata-log"] = []
        kept = {place: data for place, data in found.items() if not place.endswith(".metadata.json")}
        return {**dict(sorted(kept.items())), METADATA: encoded(metadata)}


def ids(name: str) -> Iterator[int]:
    """The ids of the rows of a data file."""
    number = int(name[1:]) * 10
    return iter(range(number, number + 3))


def encoded(document: Mapping[str, Any]) -> bytes:
    """A JSON document as stored in the kit."""
    return json.dumps(document, indent=1).encode() + b"\n"

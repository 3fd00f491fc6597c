"""The table that users hold: every method delegates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from icefloe.commit.base import Base, TablePointer
from icefloe.commit.intent import RemoveFiles
from icefloe.commit.loop import commit
from icefloe.commit.result import CommitResult
from icefloe.engines.arrow.engine import ArrowEngine
from icefloe.engines.engine import Engine, is_spark, spark_engine
from icefloe.env import SYSTEM, Env
from icefloe.errors import InputError
from icefloe.expr.nodes import Expr
from icefloe.expr.text import parse_filter
from icefloe.model.metadata import TableMetadata
from icefloe.model.partitioning import PartitionSpec
from icefloe.model.schema import Schema
from icefloe.model.snapshots import Snapshot
from icefloe.scan.select import select_snapshot
from icefloe.table import rows
from icefloe.table.scan import Scan


class Table:
    """A table in a catalog. Reads see its current state; each change is one snapshot.

    >>> import icefloe, tempfile, pyarrow as pa
    >>> folder = tempfile.mkdtemp()
    >>> cat = icefloe.catalog("demo", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")
    >>> t = cat.create_table("db.orders", schema="id bigint, note string", format_version=4)
    >>> t.append(pa.table({"id": [1, 2], "note": ["a", "b"]})).rows_added
    2
    >>> result = t.upsert(pa.table({"id": [2, 3], "note": ["B", "c"]}), on=["id"])
    >>> result.rows_added, result.rows_deleted, result.metadata_files_written
    (2, 1, 1)
    >>> t.delete("note = 'a'").rows_deleted
    1
    >>> sorted(t.scan(columns=["note"]).to_arrow()["note"].to_pylist())
    ['B', 'c']
    """

    def __init__(self, pointer: TablePointer, env: Env = SYSTEM) -> None:
        self._pointer = pointer
        self._env = env

    def __repr__(self) -> str:
        metadata = self.metadata
        head = metadata.current_snapshot_id
        return f"Table({self.name}, format version {metadata.format_version}, snapshot {head}, at {metadata.location})"

    @property
    def name(self) -> str:
        """The name in the catalog."""
        return str(self._pointer)

    @property
    def metadata(self) -> TableMetadata:
        """The current metadata."""
        return self._pointer.load().metadata

    @property
    def metadata_location(self) -> str:
        """The location of the current metadata file, which other Iceberg programs can open."""
        return self._pointer.load().pointer

    @property
    def location(self) -> str:
        """The table's folder."""
        return self.metadata.location

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema

    @property
    def spec(self) -> PartitionSpec:
        """The current partition spec."""
        return self.metadata.spec

    @property
    def format_version(self) -> int:
        """The version of the format: 1 to 4."""
        return self.metadata.format_version

    @property
    def properties(self) -> Mapping[str, str]:
        """The table properties."""
        return self.metadata.properties

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """All snapshots, oldest first."""
        return tuple(self.metadata.snapshots)

    def append(self, data: Any) -> CommitResult:
        """Add rows: a Spark DataFrame, or anything that speaks Arrow."""
        return rows.append(self._pointer, data, _engine_of(data), self._env)

    def delete(self, where: str | Expr, *, spark: Any = None) -> CommitResult:
        """Delete the rows that match; Spark does it when a session is given, this process otherwise."""
        engine = ArrowEngine() if spark is None else _spark(spark)
        return rows.delete(self._pointer, parse_filter(where), engine, self._env)

    def upsert(self, data: Any, on: Sequence[str]) -> CommitResult:
        """Replace the rows whose key columns equal those of a row in ``data``, and add the others."""
        if isinstance(on, str) or len(on) == 0:
            raise InputError("upsert: give the key columns as a list, such as on=['id']")
        return rows.upsert(self._pointer, data, tuple(on), _engine_of(data), self._env)

    def remove_files(self, locations: Iterable[str]) -> CommitResult:
        """Take data files out of the table by location; their bytes stay until the snapshots that hold them expire."""
        return commit(self._pointer, RemoveFiles(locations=tuple(locations)), self._env)

    def scan(self, where: str | Expr | None = None, columns: Iterable[str] | None = None) -> Scan:
        """Read the current snapshot."""
        return self.at().scan(where, columns)

    def at(
        self,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        branch: str | None = None,
        timestamp: datetime | str | None = None,
    ) -> TableAt:
        """The table as it was at a snapshot, tag, branch or time, for reading."""
        base = self._pointer.load()
        chosen = select_snapshot(base.metadata, snapshot=snapshot, tag=tag, branch=branch, timestamp=timestamp)
        return TableAt(base, chosen)


class TableAt:
    """A table at one point of its history, for reading.

    >>> import icefloe, tempfile, pyarrow as pa
    >>> folder = tempfile.mkdtemp()
    >>> cat = icefloe.catalog("demo", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")
    >>> t = cat.create_table("db.orders", schema="id bigint")
    >>> first = t.append(pa.table({"id": [1, 2]})).snapshot_id
    >>> t.delete("id = 1").operation
    'overwrite'
    >>> t.at(snapshot=first).scan().count(), t.scan().count()
    (2, 1)
    """

    def __init__(self, base: Base, snapshot: Snapshot | None) -> None:
        self._base = base
        self._snapshot = snapshot

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read; none for a table that was never written."""
        return self._snapshot

    def scan(self, where: str | Expr | None = None, columns: Iterable[str] | None = None) -> Scan:
        """Read this point of the history."""
        return Scan(self._base, self._snapshot, where, columns)


def _engine_of(data: object) -> Engine:
    return _spark(data.sparkSession) if is_spark(data) else ArrowEngine()  # type: ignore[attr-defined]  # a DataFrame


def _spark(session: Any) -> Engine:
    engine: Engine = spark_engine().SparkEngine(session)
    return engine

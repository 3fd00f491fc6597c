"""A table at one point of its history, for reading."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from icefloe.commit.base import Base
from icefloe.expr.filter.nodes import Expr
from icefloe.inspect.node import Node
from icefloe.inspect.outline import SHOWN, outline_metadata
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.schema import Schema
from icefloe.scan.select import select_snapshot
from icefloe.table.inspect import Inspect
from icefloe.table.scan import Scan


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

    def __init__(self, base: Base, snapshot: Snapshot | None, schema: Schema) -> None:
        self._base = base
        self._snapshot = snapshot
        self._schema = schema

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read; none for a table that was never written."""
        return self._snapshot

    @property
    def schema(self) -> Schema:
        """The columns that are read."""
        return self._schema

    @property
    def metadata(self) -> TableMetadata:
        """The metadata of the state from which this point was chosen."""
        return self._base.metadata

    @property
    def metadata_location(self) -> str:
        """The location of the metadata file."""
        return self._base.pointer

    @property
    def inspect(self) -> Inspect:
        """The metadata tables at this point of the history."""
        return Inspect(self._base, self._snapshot)

    def at(
        self,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        branch: str | None = None,
        timestamp: datetime | str | None = None,
    ) -> TableAt:
        """Another point of the history, by the same metadata."""
        return table_at(self._base, snapshot=snapshot, tag=tag, branch=branch, timestamp=timestamp)

    def with_schema(self, schema: Schema) -> TableAt:
        """The same snapshot, read with the columns of another schema of the table; columns are matched by field id."""
        return TableAt(self._base, self._snapshot, schema)

    def outline(self, *, shown: int = SHOWN) -> Node:
        """The metadata tree of the snapshot, which prints itself; ``shown`` siblings of a kind are in it.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.outline", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1, 2]}))
        >>> print(t.at().outline())  # doctest: +ELLIPSIS
        00001-....metadata.json  format version 2, 1 snapshot, ...
        └── snap-....avro  manifest list, ..., 1 row: 1 data manifest
            └── ....avro  manifest, 1 of 1 live, ...
                └── ....parquet  data, ADDED, 2 rows, ...
        """
        base, location = self._base, self._base.pointer
        size = base.store.io.size(location)
        return outline_metadata(base.store.io, base.metadata, self._snapshot, location, size, shown=shown)

    def scan(self, where: str | Expr | None = None, columns: Iterable[str] | None = None) -> Scan:
        """Read this point of the history."""
        return Scan(self._base, self._snapshot, where, columns, self._schema)


def table_at(
    base: Base,
    *,
    snapshot: int | None = None,
    tag: str | None = None,
    branch: str | None = None,
    timestamp: datetime | str | None = None,
) -> TableAt:
    """A point of the history of a state; a branch has the current columns, other points those of their snapshot."""
    chosen = select_snapshot(base.metadata, snapshot=snapshot, tag=tag, branch=branch, timestamp=timestamp)
    is_past = snapshot is not None or tag is not None or timestamp is not None
    schema = base.metadata.schema_of(chosen) if is_past and chosen is not None else base.metadata.schema
    return TableAt(base, chosen, schema)

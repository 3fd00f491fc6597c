"""What tests of whole tables share: catalogs in a folder, and rows in an order that can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.catalogs.catalog import Catalog as Pointers
from icefloe.commit.base import TablePointer
from icefloe.commit.draft import Work
from icefloe.commit.loop import commit
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.metadata_update import MetadataUpdate
from icefloe.io.file_io import FileIO
from icefloe.model.entries import column_key, parse_stat, put
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.table.catalog import Catalog, catalog
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.engine_work import write_entries

VERSIONS = (1, 2, 3, 4)


def new_catalog(folder: Path, name: str = "lake") -> Catalog:
    """A SQLite catalog with its warehouse beside it; the same folder gives the same catalog."""
    return catalog(name, uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse", create=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unchecked(MetadataUpdate):
    properties: Mapping[str, str]
    name: str = "set unchecked"

    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        return metadata.with_properties(self.properties)


def stored_by_others(table: Table, properties: Mapping[str, str]) -> Table:
    """The table with properties that another program has set without checking them."""
    commit(pointer_of(table), _Unchecked(properties=properties))
    return table


def pointers_of(catalog: Catalog) -> Pointers:
    """The pointers of a catalog, for tests that create tables from metadata."""
    return catalog._pointers


def reopened(table: Table, io: FileIO | None = None) -> Table:
    """The same table without the state and the cache of this object, by another storage if one is given."""
    held = pointer_of(table)
    return Table(TablePointer(held.catalog, held.identifier, held.io if io is None else io))


def sorted_rows(table: pa.Table) -> list[tuple[object, ...]]:
    """Rows as tuples, in an order that does not depend on files."""
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def append_without(table: Table, rows: pa.Table, *names: str) -> list[str]:
    """Add rows in files that lack columns, as files taken over from Hive lack those they are partitioned by.

    Their entries have no statistics of these columns either; the locations are in the order of the files.
    """
    entries = write_entries(pointer_of(table).io, rows, table.metadata)
    locations: list[str] = entries["location"].to_pylist()
    paths = [Path(location.removeprefix("file://")) for location in locations]
    for path in paths:
        pq.write_table(pq.ParquetFile(path).read().drop_columns(list(names)), path, store_schema=False)
    entries = put(entries, "file_size_in_bytes", pa.array([path.stat().st_size for path in paths]))
    gone = {column_key(table.schema.field(name).id) for name in names}
    unmeasured = [
        name for name in entries.column_names if (column := parse_stat(name)) is not None and column.key in gone
    ]
    commit(pointer_of(table), Append(added=entries.drop_columns(unmeasured)))
    return locations


def table_of_two_specs(folder: Path) -> Table:
    """Two files of partition spec 0, one of spec 1; id 12 was updated, id 3 deleted."""
    made = new_catalog(folder).create_table(
        "db.t", schema="id bigint, s struct<a: int, b: string>, day int", partition_by=["day"], format_version=3
    )
    made.append(rows_of_day(0, 6, day=1))
    made.append(rows_of_day(10, 16, day=2))
    with made.update_partitioning() as change:
        change.add("truncate(10, id)", name="tens")
    made.append(rows_of_day(20, 23, day=2))
    made.update({"day": "2"}, where="id = 12")
    made.delete("id = 3")
    return made


def rows_of_day(start: int, stop: int, *, day: int) -> pa.Table:
    """Rows of that table, with ids from ``start`` to before ``stop``."""
    ids = range(start, stop)
    inner = pa.array([{"a": n, "b": str(n)} for n in ids], pa.struct({"a": pa.int32(), "b": pa.string()}))
    return pa.table({"id": pa.array(ids, pa.int64()), "s": inner, "day": pa.array([day] * len(ids), pa.int32())})

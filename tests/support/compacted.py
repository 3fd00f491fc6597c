"""Tables with deletes, evolved schemas and evolved partitions, and what compaction must not change about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa

from icefloe.table.table import Table
from icefloe.testing.check import check_table
from support.people import COPY, MERGE, SCHEMA, new_table
from support.tables import sorted_rows

LINEAGE = ("_row_id", "_last_updated_sequence_number")
SMALL = {"target-file-size-bytes": 1_000_000, "min-input-files": 2}  # every file of a test is small

Make = Callable[[Table], None]


def rows(start: int, stop: int, city: str = "Oslo") -> pa.Table:
    """Rows of people."""
    count = stop - start
    return pa.table(
        {
            "id": pa.array(range(start, stop), pa.int64()),
            "city": pa.array([city] * count, pa.string()),
            "amount": pa.array([number % 7 for number in range(count)], pa.int32()),
        }
    )


def _fill(table: Table) -> None:
    for start in range(0, 60, 10):
        table.append(rows(start, start + 10, "Oslo" if start % 20 == 0 else "Rome"))


def plain(table: Table) -> None:
    """Rows in six files."""
    _fill(table)


def deleted(table: Table) -> None:
    """Rows deleted by position or by copies of files, and rows updated."""
    _fill(table)
    table.delete("id = 3 or id = 13 or id = 23")
    table.update({"amount": "amount + 100"}, where="id = 5 or id = 35")
    table.delete("id >= 40 and id < 50")


def upserted(table: Table) -> None:
    """Rows replaced by equality deletes, and rows added after them."""
    _fill(table)
    table.upsert(rows(5, 10), on=["city", "id"], deletes="equality")
    table.append(rows(60, 65))
    table.upsert(rows(61, 63), on=["city", "id"], deletes="equality")


def mixed(table: Table) -> None:
    """Every kind of delete."""
    deleted(table)
    table.upsert(rows(5, 10), on=["city", "id"], deletes="equality")
    table.delete("id = 7 or id = 55")


def evolved(table: Table) -> None:
    """Columns and partition fields changed between appends and deletes."""
    _fill(table)
    table.delete("id = 4 or id = 14")
    with table.update_schema() as edit:
        edit.rename_column("city", "town")
        edit.add_column("note", "string")
    with table.update_partitioning() as change:
        change.add("truncate(20, id)", name="twenties")
    late = rows(60, 70).rename_columns(["id", "town", "amount"])
    table.append(late.append_column("note", pa.array(["late"] * 10)))
    table.delete("id = 61 or id = 24")


HISTORIES: Mapping[str, Make] = {
    "plain": plain,
    "deleted": deleted,
    "upserted": upserted,
    "mixed": mixed,
    "evolved": evolved,
}


def exists_in(history: str, version: int) -> bool:
    """Whether tables of a version can have a history: version 1 has no delete files."""
    return version > 1 or history not in ("upserted", "mixed")


def made(folder: Path, version: int, history: str, *, partitioned: bool, mode: str = MERGE) -> Table:
    """A table with a history."""
    mode = COPY if version == 1 else mode
    table = new_table(folder, version, mode, ("city",) if partitioned else (), schema=SCHEMA)
    HISTORIES[history](table)
    return table


def contents(table: Table) -> list[tuple[object, ...]]:
    """All rows, with their ids and last changes if the table has row lineage."""
    names = [field.name for field in table.schema.fields]
    more = LINEAGE if table.metadata.rules.row_lineage else ()
    return sorted_rows(table.refresh().scan(columns=[*names, *more]).to_arrow())


def snapshots(table: Table) -> dict[int, list[tuple[object, ...]]]:
    """The rows of every snapshot."""
    known = [snapshot.snapshot_id for snapshot in table.refresh().snapshots]
    return {known_id: sorted_rows(table.at(snapshot=known_id).scan().to_arrow()) for known_id in known}


def data_files(table: Table) -> int:
    """The number of data files."""
    return table.refresh().scan().plan().files


def check_same(table: Table, before: list[tuple[object, ...]], old: Mapping[int, list[tuple[object, ...]]]) -> None:
    """The rows and their lineage are as before, old snapshots read the same, and the table is sound."""
    assert contents(table) == before
    now = snapshots(table)
    assert {known_id: now[known_id] for known_id in old} == old
    assert check_table(table) == []

"""What tests of row changes share: tables of people in every version and mode, and what is in them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.table.table import Table
from icefloe.testing.check import check_table
from support.tables import VERSIONS, new_catalog

COPY, MERGE = "copy-on-write", "merge-on-read"
# Of each version, `make test` uses the first mode in slow tests.
MODES = [(1, COPY), (2, COPY), (2, MERGE), (3, MERGE), (3, COPY), (4, MERGE), (4, COPY)]
EACH_MODE = [pytest.param((version, mode), id=f"v{version}-{mode}") for version, mode in MODES]
SCHEMA = "id bigint not null, city string, amount int"
ALL_VERSIONS = VERSIONS


def new_table(
    folder: Path,
    version: int,
    mode: str | None = None,
    partition_by: tuple[str, ...] = (),
    schema: str = SCHEMA,
    **more: str,
) -> Table:
    """A table whose deletes, updates and merges are all of one mode."""
    modes = {} if mode is None else {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    properties = {**modes, "commit.retry.min-wait-ms": "1", **{k.replace("_", "."): v for k, v in more.items()}}
    return new_catalog(folder).create_table(
        "db.people", schema=schema, partition_by=partition_by, format_version=version, properties=properties
    )


def people(*ids: int, city: str | None = "Oslo", amount: int | None = 1) -> pa.Table:
    """One row for each id."""
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "city": pa.array([city] * len(ids), pa.string()),
            "amount": pa.array([amount] * len(ids), pa.int32()),
        }
    )


def rows_of(table: Table, **when: object) -> list[tuple[object, ...]]:
    """All rows, in order of their ids."""
    found = table.at(**when).scan().to_arrow()  # type: ignore[arg-type]
    assert table.at(**when).scan().count() == found.num_rows  # type: ignore[arg-type]
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


def ids_of(table: Table, **when: object) -> list[int]:
    """The ids of all rows."""
    return sorted(row[0] for row in rows_of(table, **when))  # type: ignore[misc]


def lineage_of(table: Table) -> dict[int, tuple[int, int]]:
    """Row id and sequence number of the last change, by id."""
    found = table.scan(columns=["id", "_row_id", "_last_updated_sequence_number"]).to_arrow()
    return {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in found.to_pylist()}


def delete_files(table: Table) -> list[tuple[int, str | None]]:
    """Position and equality delete files that apply: content type and format."""
    deletes = table.scan().plan().deletes
    return sorted(zip(deletes["content_type"].to_pylist(), deletes["file_format"].to_pylist(), strict=True))


def check(table: Table) -> None:
    """Check that the table is sound and that its folder has no unreferenced files."""
    assert check_table(getattr(table, "plain", table)) == []


def stored(folder: Path) -> set[Path]:
    """The data and delete files on disk, referenced or not."""
    return {
        path for path in folder.rglob("*") if path.suffix in (".parquet", ".puffin") and path.parent.name != "metadata"
    }

"""When ``rewrite_manifests`` has something to do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.table.table import Table
from support.tables import new_catalog

VERSIONS = pytest.mark.parametrize("version", [1, 2, 3, 4])


def table_of(folder: Path, version: int, **properties: str) -> Table:
    return new_catalog(folder).create_table(
        "db.t", schema="id bigint, city string", partition_by=["city"], format_version=version, properties=properties
    )


def cities(*names: str) -> pa.Table:
    return pa.table({"id": range(len(names)), "city": names})


@VERSIONS
@pytest.mark.parametrize("properties", [{}, {"commit.root.max-data-files": "0"}])
def test_with_nothing_to_do_nothing_is_committed(tmp_path: Path, version: int, properties: dict[str, str]) -> None:
    table = table_of(tmp_path, version, **properties)
    assert table.rewrite_manifests().snapshot_id is None  # an empty table
    table.append(cities("Oslo", "Rome"))
    before = table.metadata_location
    result = table.rewrite_manifests()  # one manifest, or entries in the root: no other form would be better
    assert (result.snapshot_id, result.snapshots, table.metadata_location) == (None, 0, before)
    assert len(table.snapshots) == 1


@VERSIONS
def test_small_manifests_are_rewritten_once(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, version, **{"commit.root.max-data-files": "0"})
    for name in ("Oslo", "Rome", "Bern"):
        table.append(cities(name))
    assert table.rewrite_manifests().operation == "replace"
    assert table.rewrite_manifests().snapshot_id is None
    assert len(table.snapshots) == 4


@VERSIONS
def test_removed_entries_are_a_reason(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, version, **{"commit.root.max-data-files": "0"})
    table.append(cities("Oslo", "Rome", "Bern"))
    table.delete("city = 'Rome'")
    assert table.rewrite_manifests().operation == "replace"
    assert table.rewrite_manifests().snapshot_id is None
    assert sorted(table.scan().to_arrow()["city"].to_pylist()) == ["Bern", "Oslo"]

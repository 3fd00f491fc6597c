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
    assert table.rewrite_manifests().execute().snapshot_id is None  # an empty table
    table.append(cities("Oslo", "Rome"))
    before = table.metadata_location
    result = table.rewrite_manifests().execute()  # one manifest, or entries in the root: no other form would be better
    assert (result.snapshot_id, result.snapshots, table.metadata_location) == (None, 0, before)
    assert len(table.snapshots) == 1


@VERSIONS
def test_small_manifests_are_rewritten_once(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, version, **{"commit.root.max-data-files": "0"})
    for name in ("Oslo", "Rome", "Bern"):
        table.append(cities(name))
    assert table.rewrite_manifests().execute().operation == "replace"
    assert table.rewrite_manifests().execute().snapshot_id is None
    assert len(table.snapshots) == 4


@VERSIONS
def test_removed_entries_are_a_reason(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, version, **{"commit.root.max-data-files": "0"})
    table.append(cities("Oslo", "Rome", "Bern"))
    table.delete("city = 'Rome'")
    assert table.rewrite_manifests().execute().operation == "replace"
    assert table.rewrite_manifests().execute().snapshot_id is None
    assert sorted(table.scan().to_arrow()["city"].to_pylist()) == ["Bern", "Oslo"]


@VERSIONS
def test_a_plan_says_why_manifests_are_rewritten_and_changes_nothing(tmp_path: Path, version: int) -> None:
    # It was done at once, unlike compaction and expiry.
    table = table_of(tmp_path, version, **{"commit.root.max-data-files": "0"})
    for name in ("Oslo", "Rome"):
        table.append(cities(name))
    plan = table.rewrite_manifests()
    assert (plan.manifests, plan.large, plan.is_empty) == (2, 0, False)
    assert plan.reasons[0].startswith("several manifests are smaller than ")
    assert repr(plan).startswith("rewrite manifests db.t: 2 manifests (")
    assert plan.as_dict()["reasons"] == plan.reasons
    assert len(table.refresh().snapshots) == 2
    table.append(cities("Bern"))  # the plan is done on the newest state
    assert plan.execute().operation == "replace"
    assert (table.rewrite_manifests().is_empty, table.rewrite_manifests().manifests) == (True, 1)
    assert "nothing to do, 1 manifests" in repr(table.rewrite_manifests())


@VERSIONS
def test_a_large_manifest_is_split(tmp_path: Path, version: int) -> None:
    # A single manifest was never large enough to be split, whatever its size.
    table = table_of(tmp_path, version, **{"commit.root.max-data-files": "0"})
    table.append(cities("Oslo", "Rome", "Bern", "Lima"))
    table.set_properties({"commit.manifest.target-size-bytes": "1"})
    assert (table.rewrite_manifests().manifests, table.rewrite_manifests().large) == (1, 1)
    assert table.rewrite_manifests().execute().operation == "replace"
    assert (table.rewrite_manifests().manifests, table.rewrite_manifests().is_empty) == (4, True)
    assert sorted(table.scan().to_arrow()["city"].to_pylist()) == ["Bern", "Lima", "Oslo", "Rome"]
    assert table.verify(files=True).ok


@VERSIONS
def test_a_manifest_of_many_files_is_split_into_manifests_of_the_target_size(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, version, **{"commit.root.max-data-files": "0"})
    table.append(cities(*(f"city {number}" for number in range(100))))
    target = 500  # bytes of the entries of a manifest; its schemas take more
    table.set_properties({"commit.manifest.target-size-bytes": str(target)})
    plan = table.rewrite_manifests()
    assert (plan.manifests, plan.large) == (1, 1)
    plan.execute()
    after = table.rewrite_manifests()
    assert (after.is_empty, after.manifests > 1) == (True, True)
    assert all(count < 100 for count in table.inspect.manifests()["existing_data_files_count"].to_pylist())
    assert table.scan().count() == 100

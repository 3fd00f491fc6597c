"""What a table references is collected in memory that follows the number of files, not that of snapshots."""

from __future__ import annotations

import pyarrow as pa
import pytest

import icefloe
from icefloe.maintenance import reachable

COMMITS = 12


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_file_that_many_snapshots_reference_is_held_once(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachable, "_FOLDED_ROWS", 2)
    catalog = icefloe.catalog("reachable", uri="memory://")
    table = catalog.create_table(
        f"db.t{version}",
        schema="id bigint",
        format_version=version,
        properties={"commit.manifest-merge.enabled": "false"},
    )
    for number in range(COMMITS):
        table.append(pa.table({"id": [number]}))
    base = table._pointer.load()
    files = reachable._read_trees(base, base.metadata.snapshots).files
    rows = pa.concat_tables(files)["location"]
    assert len(rows) <= 2 * len(rows.unique()) + COMMITS  # of each snapshot it would be six times as many
    every = reachable.reachable_files(base)
    counts = {kind.value: every["kind"].to_pylist().count(kind.value) for kind in reachable.Kind}
    assert counts["data"] == COMMITS
    assert counts["manifest"] == (COMMITS if version == 4 else 2 * COMMITS)

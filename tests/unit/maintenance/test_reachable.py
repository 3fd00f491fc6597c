"""What a table references is collected in memory that follows the number of files, not that of snapshots."""

from __future__ import annotations

import pyarrow as pa
import pytest

import icefloe
from icefloe.engines import file_sets
from icefloe.maintenance import reachable
from icefloe.table.held_table import pointer_of

COMMITS = 12


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_file_that_many_snapshots_reference_is_held_once(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_sets, "FOLDED_ROWS", 2)
    catalog = icefloe.catalog("reachable", uri="memory://")
    table = catalog.create_table(
        f"db.t{version}",
        schema="id bigint",
        format_version=version,
        properties={"commit.manifest-merge.enabled": "false"},
    )
    for number in range(COMMITS):
        table.append(pa.table({"id": [number]}))
    base = pointer_of(table).load()
    files = reachable._read_trees(base, base.metadata.snapshots).files
    rows = pa.concat_tables(files._parts)["location"]
    assert len(rows) <= 2 * len(rows.unique()) + COMMITS  # of each snapshot it would be six times as many
    every = reachable.reachable_files(base)
    counts = {kind.value: every["kind"].to_pylist().count(kind.value) for kind in reachable.Kind}
    assert counts["data"] == COMMITS
    assert counts["manifest"] == (COMMITS if version == 4 else 2 * COMMITS)


def test_files_that_many_leaves_name_are_held_about_twice_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_sets, "FOLDED_ROWS", 5)
    found = file_sets.DistinctFiles()
    for number in range(40):
        names = [f"file:///t/{place}" for place in range(number % 4, 10)]
        found.add(file_sets.files_at(names, file_sets.Kind.DATA))
        assert sum(part.num_rows for part in found._parts) <= 20
    assert sorted(found.all()["location"].to_pylist()) == [f"file:///t/{place}" for place in range(10)]

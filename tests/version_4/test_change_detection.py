"""Statement 55: what a snapshot changed, told by its root alone."""

from __future__ import annotations

from pathlib import Path

from icefloe.model.entries import Status
from icefloe.table.held_table import pointer_of
from icefloe.testing.counting_io import CountingFileIO
from icefloe.tree.snapshot_changes import snapshot_changes
from icefloe.tree.store import ManifestCache, ManifestStore
from version_4.scenes import TO_LEAVES, Stage, with_leaf


def told(stage: Stage) -> tuple[list[str], list[str]]:
    """What the head changed, and the files that were read to tell it: roots by their number, others by name."""
    base = pointer_of(stage.table).load()
    io = CountingFileIO(base.store.io)
    changes = snapshot_changes(
        ManifestStore(io, base.store.context, ManifestCache()), base.metadata, stage.snapshots[-1]
    )
    named = {place: name for (place, _), name in stage.names.items()}
    named |= {stage.stored_location(s.root_location): f"root {n}" for n, s in enumerate(stage.snapshots, 1)}
    read = sorted({named[stage.stored_location(call.location)] for call in io.calls})
    found = (("+" if row["status"] == Status.ADDED else "-") + stage._called(row) for row in changes.to_pylist())
    return sorted(found), read


def test_55_appends_to_the_root_are_told_by_the_root(tmp_path: Path) -> None:  # the scene of statement 10
    stage = with_leaf(tmp_path)
    assert told(stage) == (["+D1", "+D2", "+D3"], ["M1", "root 1"])
    stage.append("D4")
    assert told(stage) == (["+D4"], ["root 2"])
    stage.append("D5")
    assert told(stage) == (["+D5"], ["root 3"])


def test_55_a_removal_from_the_root_is_told_by_the_root(tmp_path: Path) -> None:  # 18
    stage = Stage(tmp_path)
    stage.append("D1", "D2")
    stage.remove("D1")
    assert told(stage) == (["-D1"], ["root 2"])
    stage.append("D3")
    assert told(stage) == (["+D3"], ["root 3"])


def test_55_a_removal_from_a_leaf_is_told_by_the_root_and_that_leaf(tmp_path: Path) -> None:  # 20 and 22
    stage = with_leaf(tmp_path)
    stage.remove("D2")
    assert told(stage) == (["-D2"], ["M1", "root 2"])
    stage.remove("D3")
    assert told(stage) == (["-D3"], ["M1", "root 3"])
    stage.append("D4")
    assert told(stage) == (["+D4"], ["root 4"])


def test_55_vectors_in_puffin_files_tell_as_much(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    stage.settings({"write.manifest-dv.inline-max-bytes": "0"})
    for number, name in enumerate(("D2", "D3"), 2):
        stage.remove(name)
        for row in stage.root_rows():
            stage.names.setdefault((row["location"], None), f"vectors of {number}")
        changes, read = told(stage)
        assert changes == [f"-{name}"]
        assert [place for place in read if place.startswith("root")] == [f"root {number}"]


def test_55_an_overwrite_in_a_leaf_is_told_by_the_root_and_that_leaf(tmp_path: Path) -> None:  # 29
    stage = with_leaf(tmp_path)
    stage.overwrite("D2", "D4")
    assert told(stage) == (["+D4", "-D2"], ["M1", "root 2"])


def test_55_a_row_delta_is_told_by_the_root_and_the_leaves_it_touched(tmp_path: Path) -> None:  # 32
    stage = Stage(tmp_path, **TO_LEAVES)
    stage.append("D1", "D2")
    stage.call("DM1")
    stage.table.delete("id in (10, 20, 21)")
    stage.call("DVM1", "DV1", "DV2")
    assert told(stage) == (["+DV1", "+DV2"], ["DVM1", "root 2"])
    stage.upsert(11, 12)
    stage.call("DM2", "DVM2", "D3", "DV4")
    assert told(stage) == (["+D3", "+DV4", "-DV1"], ["DM2", "DVM1", "DVM2", "root 3"])


def test_55_a_leaf_that_lost_its_last_file_is_told_once(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    stage.remove("D1")
    stage.remove("D2", "D3")
    assert told(stage) == (["-D2", "-D3"], ["M1", "root 3"])
    stage.append("D4")
    assert told(stage) == (["+D4"], ["root 4"])

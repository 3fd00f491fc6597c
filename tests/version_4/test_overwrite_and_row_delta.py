"""Statements 28 to 35: overwriting files, and deleting rows by deletion vectors and equality deletes."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.errors import FormatError, InputError
from icefloe.model.entries import ContentType
from icefloe.scan.plan import plan_scan
from support.metadata_tree import Tree, data_file, planned_files, rows, short, vector
from support.tables import new_catalog
from version_4.scenes import (
    DATA_MANIFEST,
    DELETE_MANIFEST,
    DELETED,
    DV,
    MANIFEST_DV,
    TO_LEAVES,
    TO_ROOT,
    Stage,
    tens,
    with_leaf,
)


def test_28_an_overwrite_in_the_root_shows_the_old_file_as_deleted_and_the_new_one_as_added(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.append("D1")
    assert stage.root() == ["DATA D1 ADDED by 1 at 1/1: 10 rows ids 0.."]
    stage.overwrite("D1", "D2")
    assert stage.root() == [
        "DATA D1 DELETED by 2 at 1/1: 10 rows ids 0..",
        "DATA D2 ADDED by 2 at 2/2: 10 rows ids 10..",
    ]
    stage.overwrite("D2", "D3")
    assert stage.root() == [
        "DATA D2 DELETED by 3 at 2/2: 10 rows ids 10..",
        "DATA D3 ADDED by 3 at 3/3: 10 rows ids 20..",
    ]
    assert stage.ids() == tens(3)


def test_29_an_overwrite_in_a_leaf_is_a_manifest_vector_and_a_new_file_in_one_metadata_file(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    before, leaf = stage.metadata_files(), stage.path("M1").read_bytes()
    stage.overwrite("D2", "D4")
    assert stage.root() == [
        "DATA_MANIFEST M1 EXISTING by 1 at 1/1: 3 rows of +3=0-0 files +30=0-0 rows since 1 ids 0..",
        "MANIFEST_DV ADDED by 2 at 2/2: 1 rows for M1 [1]",
        "DATA D4 ADDED by 2 at 2/2: 10 rows ids 30..",
    ]
    assert stage.metadata_files() - before == {stage.root_path().name}
    assert stage.path("M1").read_bytes() == leaf
    assert stage.ids() == tens(1, 3, 4)


def row_delta(folder: Path) -> Stage:
    """D1 in the root; two of its rows replaced, which gives DV1 and D2."""
    stage = Stage(folder)
    stage.append("D1")
    stage.upsert(10, 15)
    stage.call("D2", "DV1")
    return stage


def test_30_a_row_delta_in_the_root_has_the_vector_and_the_new_file_beside_the_old_one(tmp_path: Path) -> None:
    stage = row_delta(tmp_path)
    assert sorted(stage.root()) == [
        "DATA D1 EXISTING by 1 at 1/1: 10 rows ids 0..",
        "DATA D2 ADDED by 2 at 2/2: 2 rows ids 10..",
        "DV DV1 ADDED by 2 at 2/2: 2 rows for D1 [0, 5]",
    ]
    row = stage.row("DV1")
    assert (row["content_type"], row["file_format"]) == (1, "puffin")
    assert row["referenced_file"] == stage.row("D1")["location"]
    assert row["deletion_vector"]["inline_content"] is None
    assert row["deletion_vector"]["offset"] >= 4  # behind the magic of the Puffin file
    assert row["deletion_vector"]["size_in_bytes"] >= 20
    assert row["file_size_in_bytes"] == stage.path("DV1").stat().st_size
    assert row["manifest_stats"] is None


def test_30_a_data_vector_is_never_inline() -> None:
    tree = Tree()
    tree.commit(added=rows(data_file("D1")))
    inline = {**vector("DV1", "D1"), "location": None, "dv_offset": None, "dv_size_in_bytes": None}
    with pytest.raises(InputError):
        tree.commit(added=rows({**inline, "dv_inline_content": b"any", "file_size_in_bytes": None}))


def test_30_a_vector_has_statistics_of_its_partition_only(tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table(
        "db.t", schema="id bigint, city string, ts date", partition_by=["city", "month(ts)"], format_version=4
    )
    days = [date(2026, 11, day) for day in range(1, 11)]
    table.append(pa.table({"id": range(10), "city": ["Oslo"] * 5 + [None] * 5, "ts": days}))
    table.delete("id in (1, 2, 7)")
    rows_ = pq.ParquetFile(table.snapshots[-1].root_location.removeprefix("file://")).read().to_pylist()
    found = [(row["record_count"], row["content_stats"]) for row in rows_ if row["content_type"] == DV]
    month = (2026 - 1970) * 12 + 10
    assert [count for count, _ in found] == [2, 1]
    for (count, measures), city in zip(found, ("Oslo", None), strict=True):
        assert measures["id"] is None
        assert measures["ts"] is None
        assert (measures["city"]["lower_bound"], measures["city"]["value_count"]) == (city, count)
        assert measures["city"]["null_value_count"] == (count if city is None else 0)
        derived = measures["ts_month"]
        assert (derived["lower_bound"], derived["value_count"], derived["null_value_count"]) == (month, count, 0)
        assert derived.get("upper_bound") is None


def test_31_a_scan_finds_the_old_file_without_its_deleted_rows_and_the_new_file(tmp_path: Path) -> None:
    stage = row_delta(tmp_path)
    (old,) = (task for task in stage.table.scan().plan().tasks.to_pylist() if task["location"] == stage.location("D1"))
    assert (old["dv_cardinality"], old["dv_location"]) == (2, stage.location("DV1"))
    assert stage.ids() == tens(1)
    stage.remove("D2")
    assert stage.ids() == [11, 12, 13, 14, 16, 17, 18, 19]
    assert stage.ids(snapshot=stage.snapshots[0].snapshot_id) == tens(1)


def complex_row_delta(folder: Path) -> Stage:
    """DM1 (D1, D2) with DVM1 (DV1, DV2); then more rows of D1 are replaced."""
    stage = Stage(folder, **TO_LEAVES)
    stage.append("D1", "D2")
    stage.call("DM1")
    stage.table.delete("id in (10, 20, 21)")
    stage.call("DVM1", "DV1", "DV2")
    stage.upsert(11, 12)
    stage.call("DM2", "DVM2", "D3", "DV4")
    return stage


def test_32_a_replaced_vector_of_a_delete_leaf_is_hidden_and_the_new_one_has_a_leaf_of_its_own(tmp_path: Path) -> None:
    stage = complex_row_delta(tmp_path)
    assert sorted(line.split(" by ")[0] for line in stage.root()) == [
        "DATA_MANIFEST DM1 EXISTING",
        "DATA_MANIFEST DM2 ADDED",
        "DELETE_MANIFEST DVM1 EXISTING",
        "DELETE_MANIFEST DVM2 ADDED",
        "MANIFEST_DV ADDED",
    ]
    (hidden,) = (row for row in stage.root_rows() if row["content_type"] == MANIFEST_DV)
    assert (hidden["referenced_file"], stage.dead(hidden)) == (stage.row("DVM1")["location"], [0])
    assert [line.split(":")[1] for line in stage.leaf("DVM1")] == [" 1 rows for D1 [0]", " 2 rows for D2 [0, 1]"]
    assert [line.split(":")[1] for line in stage.leaf("DVM2")] == [" 3 rows for D1 [0, 1, 2]"]
    assert stage.live() == ["D1", "D2", "D3", "DV2", "DV4"]
    tasks = {task["location"]: task["dv_cardinality"] for task in stage.table.scan().plan().tasks.to_pylist()}
    assert tasks == {stage.location("D1"): 3, stage.location("D2"): 2, stage.location("D3"): None}
    assert stage.ids() == sorted({*tens(1, 2)} - {10, 20, 21})


def live_vectors(stage: Stage) -> list[str]:
    """The data files that live vectors name, wherever the vectors stand, one name for each vector."""
    rows_ = [row for row in stage.root_rows() if row["version_info"]["status"] != DELETED]
    hidden = {row["referenced_file"]: stage.dead(row) for row in rows_ if row["content_type"] == MANIFEST_DV}
    found = [row["referenced_file"] for row in rows_ if row["content_type"] == DV]
    for leaf in rows_:
        if leaf["content_type"] == DELETE_MANIFEST:
            inside = enumerate(stage.leaf_rows(leaf))
            found += [row["referenced_file"] for at, row in inside if at not in hidden.get(leaf["location"], ())]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_33_a_data_file_has_at_most_one_live_vector_after_any_row_deltas(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    stage = Stage(tmp_path, **TO_LEAVES)
    stage.append("D1", "D2", "D3")
    there = set(tens(1, 2, 3))
    for _ in range(12):
        stage.settings(chance.choice([TO_ROOT, TO_LEAVES]))
        chosen = sorted(chance.sample(range(10, 40), 3))
        if chance.random() < 0.6:
            stage.table.delete(f"id in ({', '.join(map(str, chosen))})")
            there -= set(chosen)
        else:
            stage.upsert(*chosen)
            there |= set(chosen)
        found = live_vectors(stage)
        assert len(found) == len(set(found))
        assert stage.ids() == sorted(there)
    assert len(stage.snapshots) > 6


@pytest.mark.broken_tables
def test_33_two_live_vectors_of_one_file_are_refused() -> None:
    tree = Tree()
    tree.commit(added=rows(data_file("D1")))
    tree.commit(added=rows(vector("DV1", "D1")))
    tree.commit(added=rows(vector("DV2", "D1")))
    with pytest.raises(FormatError):
        plan_scan(tree.fresh_store(), tree.metadata, tree.snapshots[-1])


def test_34_replacing_a_vector_in_the_root_keeps_the_old_one_as_deleted_and_adds_the_union(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.append("D1")
    stage.table.delete("id in (12, 17)")
    stage.call("DV1")
    assert stage.root() == [
        "DATA D1 EXISTING by 1 at 1/1: 10 rows ids 0..",
        "DV DV1 ADDED by 2 at 2/2: 2 rows for D1 [2, 7]",
    ]
    stage.table.delete("id = 10")
    stage.call("DV2")
    assert stage.root() == [
        "DATA D1 EXISTING by 1 at 1/1: 10 rows ids 0..",
        "DV DV1 DELETED by 3 at 2/2: 2 rows for D1 [2, 7]",
        "DV DV2 ADDED by 3 at 3/3: 3 rows for D1 [0, 2, 7]",
    ]
    assert stage.changes() == ["+DV2", "-DV1"]
    assert stage.ids() == sorted({*tens(1)} - {10, 12, 17})


def equality_delete(name: str) -> dict[str, object]:
    return {**data_file(name, rows=1), "content_type": int(ContentType.EQUALITY_DELETES), "equality_ids": [1]}


@pytest.mark.parametrize("leaves", [False, True])
def test_35_an_equality_delete_in_the_root_applies_only_to_data_of_strictly_smaller_sequence_numbers(
    leaves: bool,
) -> None:
    tree = Tree(properties={"commit.root.max-data-files": "0"} if leaves else {})
    tree.commit(added=rows(data_file("D1")))
    tree.commit(added=rows(data_file("D2"), equality_delete("E1")))  # D2 has the same number as E1
    tree.commit(added=rows(data_file("D3")))
    found = [row for row in tree.root().entries.to_pylist() if row["content_type"] == 2]
    assert [(short(row["location"]), row["sequence_number"], row["equality_ids"]) for row in found] == [("E1", 2, [1])]
    kinds = {row["content_type"] for row in tree.root().entries.to_pylist()}
    assert (DATA_MANIFEST in kinds) == leaves
    plan = plan_scan(tree.fresh_store(), tree.metadata, tree.snapshots[-1])
    applied = {
        short(task["location"]): [short(plan.deletes["location"][n].as_py()) for n in task["deletes"]]
        for task in plan.tasks.to_pylist()
    }
    assert applied == {"D1": ["E1"], "D2": [], "D3": []}


def test_35_a_removed_equality_delete_applies_to_nothing() -> None:
    tree = Tree()
    tree.commit(added=rows(data_file("D1")))
    tree.commit(added=rows(equality_delete("E1")))
    tree.commit(removed_deletes=planned_files("E1"))
    assert tree.describe() == ["DATA D1 EXISTING", "EQUALITY_DELETES E1 DELETED"]
    plan = plan_scan(tree.fresh_store(), tree.metadata, tree.snapshots[-1])
    assert plan.tasks["deletes"].to_pylist() == [[]]

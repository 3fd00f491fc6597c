"""Statements 18 to 27: removing files that the root holds, and files that leaves hold."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from icefloe.codecs.puffin.deletion_vector import decode_dv
from icefloe.codecs.puffin.puffin_file import BlobMetadata, decode_puffin_footer
from icefloe.env import CREATED_BY
from icefloe.model.entries import ContentType, Status
from icefloe.tree.root import read_live_leaf, read_root
from support.metadata_tree import Tree, data_file, planned_files, rows, short
from version_4.scenes import ADDED, DELETED, EXISTING, MANIFEST_DV, TO_LEAVES, TO_ROOT, Row, Stage, tens

M1 = "DATA_MANIFEST M1 {} by 1 at 1/1: 3 rows of +3=0-0 files +30=0-0 rows since 1 ids 0.."
INLINE_MAX = "write.manifest-dv.inline-max-bytes"
POSITION_ONE = "00000022d1d339640100000000000000000000003a3000000100000000000000100000000100eebd85f4"


def with_leaf(folder: Path, **properties: str) -> Stage:
    """A table whose first snapshot is one leaf M1 of D1, D2 and D3; later changes go to the root."""
    stage = Stage(folder, **{**TO_LEAVES, **properties})
    stage.append("D1", "D2", "D3")
    stage.call("M1")
    stage.settings(TO_ROOT)
    return stage


def vectors(stage: Stage, status: int) -> list[Row]:
    """The manifest deletion vectors of the head's root that have a status."""
    return [
        row
        for row in stage.root_rows()
        if row["content_type"] == MANIFEST_DV and row["version_info"]["status"] == status
    ]


def test_18_a_file_removed_from_the_root_is_deleted_by_this_snapshot_and_keeps_its_numbers(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.append("D1")
    stage.append("D2")
    before = stage.metadata_files()
    stage.remove("D1")
    assert stage.root() == [
        "DATA D1 DELETED by 3 at 1/1: 10 rows ids 0..",
        "DATA D2 EXISTING by 2 at 2/2: 10 rows ids 10..",
    ]
    assert stage.metadata_files() - before == {stage.root_path().name}
    assert stage.ids() == tens(2)
    assert stage.ids(snapshot=stage.snapshots[1].snapshot_id) == tens(1, 2)


def test_18_all_that_a_removed_row_says_stays_but_its_status_and_snapshot(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.append("D1", "D2")
    before = stage.row("D1")
    stage.remove("D1")
    after = stage.row("D1")
    info = {**before["version_info"], "status": DELETED, "snapshot_id": stage.snapshots[-1].snapshot_id}
    assert after == {**before, "version_info": info}


def test_19_a_vector_in_the_root_leaves_with_the_file_it_belongs_to(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.append("D1", "D2")
    stage.table.delete("id in (12, 21)")
    stage.call("DV1", "DV2")
    stage.remove("D1")
    assert stage.root() == [
        "DATA D1 DELETED by 3 at 1/1: 10 rows ids 0..",
        "DATA D2 EXISTING by 1 at 1/1: 10 rows ids 10..",
        "DV DV1 DELETED by 3 at 2/2: 1 rows for D1 [2]",
        "DV DV2 EXISTING by 2 at 2/2: 1 rows for D2 [1]",
    ]
    assert stage.live() == ["D2", "DV2"]
    stage.append("D3")
    assert stage.live() == ["D2", "D3", "DV2"]
    assert stage.ids() == sorted({*tens(2, 3)} - {21})


def test_20_a_file_removed_from_a_leaf_is_hidden_by_one_vector_in_one_new_metadata_file(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    leaf, before = stage.path("M1"), stage.metadata_files()
    bytes_before, changed_before = leaf.read_bytes(), leaf.stat().st_mtime_ns
    result = stage.remove("D2")
    assert stage.root() == [M1.format("EXISTING"), "MANIFEST_DV ADDED by 2 at 2/2: 1 rows for M1 [1]"]
    assert stage.metadata_files() - before == {stage.root_path().name}
    assert result.metadata_files_written == 1
    assert (leaf.read_bytes(), leaf.stat().st_mtime_ns) == (bytes_before, changed_before)
    (hidden,) = vectors(stage, ADDED)
    assert hidden["referenced_file"] == stage.row("M1")["location"] == stage.stored_location(stage.location("M1"))
    assert (hidden["location"], hidden["file_size_in_bytes"], hidden["file_format"]) == (None, None, "puffin")
    assert (hidden["record_count"], hidden["partition_spec_id"], hidden["first_row_id"]) == (1, 0, None)
    assert hidden["manifest_stats"] is None
    assert hidden.get("content_stats") is None
    assert stage.ids() == tens(1, 3)


def test_21_the_vector_of_position_one_is_the_known_bytes(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    stage.remove("D2")
    (hidden,) = vectors(stage, ADDED)
    assert hidden["deletion_vector"]["inline_content"].hex() == POSITION_ONE
    assert hidden["deletion_vector"]["offset"] is None
    assert hidden["deletion_vector"]["size_in_bytes"] is None


def test_22_a_second_removal_gives_one_vector_of_both_and_keeps_the_old_one_as_deleted(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    stage.remove("D2")
    (first,) = vectors(stage, ADDED)
    stage.remove("D3")
    assert stage.root() == [
        M1.format("EXISTING"),
        "MANIFEST_DV DELETED by 3 at 2/2: 1 rows for M1 [1]",
        "MANIFEST_DV ADDED by 3 at 3/3: 2 rows for M1 [1, 2]",
    ]
    (old,) = vectors(stage, DELETED)
    assert old["deletion_vector"] == first["deletion_vector"]
    stage.append("D4")
    assert stage.root() == [
        M1.format("EXISTING"),
        "MANIFEST_DV EXISTING by 3 at 3/3: 2 rows for M1 [1, 2]",
        "DATA D4 ADDED by 4 at 4/4: 10 rows ids 30..",
    ]
    assert stage.ids() == tens(1, 4)


def test_22_a_leaf_never_has_two_live_vectors() -> None:
    tree = Tree(properties={**TO_LEAVES, "commit.leaf.max-dead-percent": "1000"})
    names = [f"D{n}" for n in range(12)]
    tree.commit(added=rows(*(data_file(name) for name in names)))
    for name in names[:-1]:
        tree.commit(removed=planned_files(name))
        live = tree.root().rows(ContentType.MANIFEST_DV)
        assert live.num_rows == 1
        assert live["record_count"].to_pylist() == [names.index(name) + 1]


def test_23_counts_and_statistics_of_the_leafs_row_are_not_touched_by_its_vectors(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    before = stage.row("M1")
    assert before["content_stats"]["id"]["lower_bound"] == 10
    for name in ("D1", "D3"):
        stage.remove(name)
        after = stage.row("M1")
        assert after == {**before, "version_info": {**before["version_info"], "status": EXISTING}}


def test_24_a_file_of_a_leaf_with_its_vector_in_a_delete_leaf_leaves_by_two_manifest_vectors(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path, **TO_LEAVES)
    stage.settings(TO_LEAVES)
    stage.table.delete("id in (11, 22, 23, 35)")
    stage.call("M2", "DV1", "DV2", "DV3")
    before = stage.metadata_files()
    stage.remove("D2")
    assert [line.split(":")[0] + ":" + line.rsplit(" for ")[-1] for line in stage.root()[2:]] == [
        "MANIFEST_DV ADDED by 3 at 3/3:M1 [1]",
        "MANIFEST_DV ADDED by 3 at 3/3:M2 [1]",
    ]
    assert [line.split(" by ")[0] for line in stage.root()[:2]] == [
        "DATA_MANIFEST M1 EXISTING",
        "DELETE_MANIFEST M2 EXISTING",
    ]
    assert stage.metadata_files() - before == {stage.root_path().name}
    assert stage.live() == ["D1", "D3", "DV1", "DV3"]
    assert stage.changes() == ["-D2", "-DV2"]
    assert stage.ids() == sorted({*tens(1, 3)} - {11, 35})


def test_25_a_leaf_that_lost_all_its_files_stays_for_one_snapshot_and_is_not_read(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    stage.remove("D1", "D2", "D3")
    assert stage.root() == [M1.format("EXISTING"), "MANIFEST_DV ADDED by 2 at 2/2: 3 rows for M1 [0, 1, 2]"]
    moved = stage.path("M1").rename(stage.path("M1").with_suffix(".away"))
    assert stage.ids() == []  # so nothing reads the leaf
    stage.append("D4")
    assert stage.root() == ["DATA D4 ADDED by 3 at 3/3: 10 rows ids 30.."]
    assert stage.changes() == ["+D4"]
    assert stage.ids() == tens(4)
    moved.rename(stage.path("M1"))
    assert stage.ids(snapshot=stage.snapshots[0].snapshot_id) == tens(1, 2, 3)


def test_25_a_leaf_is_dropped_with_its_vectors_when_it_emptied_in_steps(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    for name in ("D2", "D1", "D3"):
        stage.remove(name)
    assert stage.root() == [
        M1.format("EXISTING"),
        "MANIFEST_DV DELETED by 4 at 3/3: 2 rows for M1 [0, 1]",
        "MANIFEST_DV ADDED by 4 at 4/4: 3 rows for M1 [0, 1, 2]",
    ]
    stage.append("D4")
    assert stage.live() == ["D4"]
    assert len(stage.root()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("leaves", [1, 10, 100])
def test_26_removing_one_file_writes_one_metadata_file_whatever_the_number_of_leaves(leaves: int) -> None:
    tree = Tree(properties={**TO_LEAVES, "commit.manifest-merge.enabled": "false"})
    for n in range(leaves):
        tree.commit(added=rows(*(data_file(f"{kind}{n}") for kind in "ABC")))
    assert len(tree.root().leaves(ContentType.DATA_MANIFEST)) == leaves
    tree.io.reset()
    tree.commit(removed=planned_files(f"B{leaves // 2}"))
    assert tree.io.count("write_new") == 1
    assert tree.io.count("put_if_absent") == 0


def test_26_the_table_metadata_aside_a_removal_writes_one_file(tmp_path: Path) -> None:
    stage = Stage(tmp_path, **{**TO_LEAVES, "commit.manifest-merge.enabled": "false"})
    for n in range(10):
        stage.append(f"D{2 * n + 1}", f"D{2 * n + 2}")
    before = stage.metadata_files()
    result = stage.remove("D7")
    assert stage.metadata_files() - before == {stage.root_path().name}
    assert result.metadata_files_written == 1


def blobs(stage: Stage, row: Row) -> tuple[bytes, tuple[BlobMetadata, ...]]:
    """The Puffin file that a row points to, and what its footer says."""
    data = (stage.folder / row["location"]).read_bytes()
    footer = decode_puffin_footer(data, where="here")
    assert footer.properties == {"created-by": CREATED_BY}
    return data, footer.blobs


def test_27_a_vector_beyond_the_inline_limit_is_a_blob_of_a_puffin_file(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path, **{INLINE_MAX: "41"})  # the smallest vector of one position has 42 bytes
    before = stage.metadata_files()
    result = stage.remove("D2")
    (hidden,) = vectors(stage, ADDED)
    assert stage.metadata_files() - before == {stage.root_path().name, hidden["location"].removeprefix("metadata/")}
    assert hidden["location"].startswith("metadata/")
    assert result.metadata_files_written == 2
    data, (blob,) = blobs(stage, hidden)
    pointer = hidden["deletion_vector"]
    assert (pointer["offset"], pointer["size_in_bytes"]) == (blob.location.offset, blob.location.length)
    assert pointer["inline_content"] is None
    assert (hidden["file_size_in_bytes"], hidden["record_count"]) == (len(data), 1)
    assert data[pointer["offset"] :][: pointer["size_in_bytes"]].hex() == POSITION_ONE
    assert (blob.type, blob.fields, blob.compression_codec) == ("deletion-vector-v1", (2147483645,), None)
    assert (blob.snapshot_id, blob.sequence_number) == (-1, -1)
    assert blob.properties == {"referenced-data-file": stage.row("M1")["location"], "cardinality": "1"}
    assert stage.ids() == tens(1, 3)


def test_27_a_vector_at_the_limit_is_inline(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path, **{INLINE_MAX: "42"})
    stage.remove("D2")
    (hidden,) = vectors(stage, ADDED)
    assert hidden["location"] is None
    assert hidden["deletion_vector"]["inline_content"].hex() == POSITION_ONE


def test_27_all_large_vectors_of_a_commit_share_one_file_and_small_ones_stay_inline(tmp_path: Path) -> None:
    stage = Stage(tmp_path, **{**TO_LEAVES, INLINE_MAX: "84", "commit.leaf.max-dead-percent": "1000"})
    for first in (1, 11, 21):
        stage.append(*(f"D{first + n}" for n in range(6)))
    stage.call("M1", "M2", "M3")
    before = stage.metadata_files()
    stage.remove("D1", "D3", "D12", "D22", "D24")
    found = vectors(stage, ADDED)
    assert [(stage.names[row["referenced_file"], None], stage.dead(row)) for row in found] == [
        ("M1", [0, 2]),
        ("M2", [1]),
        ("M3", [1, 3]),
    ]
    assert [row["location"] is None for row in found] == [False, True, False]
    assert found[0]["location"] == found[2]["location"]
    assert len(stage.metadata_files() - before) == 2
    _, stored = blobs(stage, found[0])
    assert [(blob.location.offset, blob.location.length) for blob in stored] == [
        (row["deletion_vector"]["offset"], row["deletion_vector"]["size_in_bytes"]) for row in (found[0], found[2])
    ]
    assert [blob.properties["referenced-data-file"] for blob in stored] == [
        found[0]["referenced_file"],
        found[2]["referenced_file"],
    ]


def test_27_a_replaced_vector_keeps_its_pointer_and_the_new_one_has_both(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path, **{INLINE_MAX: "0"})
    stage.remove("D2")
    (first,) = vectors(stage, ADDED)
    stage.remove("D3")
    (old,), (new,) = vectors(stage, DELETED), vectors(stage, ADDED)
    kept = ("location", "file_size_in_bytes", "deletion_vector", "record_count")
    assert {name: old[name] for name in kept} == {name: first[name] for name in kept}
    assert new["location"] != old["location"]
    assert (stage.dead(old), stage.dead(new)) == ([1], [1, 2])
    assert stage.changes() == ["-D3"]
    assert stage.ids() == tens(1)


def test_27_a_puffin_file_is_read_when_its_leaf_is_wanted_and_not_before() -> None:
    tree = Tree(properties={**TO_LEAVES, INLINE_MAX: "0", "commit.manifest-merge.enabled": "false"})
    for n in range(30):
        tree.commit(added=rows(data_file(f"A{n}"), data_file(f"B{n}")))
    tree.commit(removed=planned_files(*(f"A{n}" for n in range(30))))
    tree.io.reset()
    store = tree.fresh_store()
    root = read_root(store, tree.head)
    assert len(root.leaves(ContentType.DATA_MANIFEST)) == 30
    assert len(root.dead) == 30
    assert tree.io.count("read_range") == 0
    leaf = root.leaves(ContentType.DATA_MANIFEST)[7]
    assert [short(place) for place in read_live_leaf(store, root, leaf)["location"].to_pylist()] == ["B7"]
    assert tree.io.count("read_range") == 1
    read_live_leaf(store, root, leaf)
    assert tree.io.count("read_range") == 1


def test_27_a_later_commit_carries_a_puffin_vector_without_reading_it() -> None:
    tree = Tree(properties={**TO_LEAVES, INLINE_MAX: "0"})
    tree.commit(added=rows(data_file("D1"), data_file("D2"), data_file("D3")))
    tree.commit(removed=planned_files("D2"))
    before = tree.root().rows(ContentType.MANIFEST_DV).to_pylist()
    tree.io.reset()
    tree.store = tree.fresh_store()
    tree.commit(added=rows(data_file("D4")))
    assert tree.io.count("read_range") == 0
    (after,) = tree.root().rows(ContentType.MANIFEST_DV).to_pylist()
    assert {**after, "status": int(Status.ADDED), "ordinal": 1} == {**before[0], "ordinal": 1}


def test_27_what_is_in_the_file_is_what_a_scan_hides() -> None:
    tree = Tree(properties={**TO_LEAVES, INLINE_MAX: "60", "commit.leaf.max-dead-percent": "1000"})
    names = [f"D{n:03d}" for n in range(200)]
    tree.commit(added=rows(*(data_file(name) for name in names)))
    gone = names[::3]
    tree.commit(removed=planned_files(*gone))
    root = tree.root()
    (row,) = root.rows(ContentType.MANIFEST_DV).to_pylist()
    blob = tree.io.read_range(row["location"], row["dv_offset"], row["dv_size_in_bytes"])
    assert decode_dv(blob, where="here", cardinality=len(gone)) == BitMap64(range(0, 200, 3))
    (leaf,) = root.leaves(ContentType.DATA_MANIFEST)
    found: pa.Table = read_live_leaf(tree.fresh_store(), root, leaf)
    assert [short(place) for place in found["location"].to_pylist()] == [n for n in names if n not in gone]

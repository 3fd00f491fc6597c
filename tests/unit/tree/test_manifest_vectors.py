"""Rows of leaves hidden by vectors: merged with what is hidden, inline or in one file of the attempt."""

from __future__ import annotations

from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.codecs.puffin.puffin_file import decode_puffin_footer
from icefloe.errors import ConflictError, LimitError
from icefloe.io.memory import MemoryFileIO
from icefloe.model.entries import MANIFESTS, ContentType, Status, put
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.tree.manifest_vectors import delete_leaf_rows, manifest_vectors
from icefloe.tree.new_snapshot import SnapshotIdentity
from icefloe.tree.root import Root, read_live_leaf, read_root
from icefloe.tree.staging import Staging
from icefloe.tree.store import ManifestCache, ManifestStore
from support.manifests.random_entries import manifest, manifest_dv
from support.manifests.sample import context, table
from support.metadata_tree import Tree, data_file, planned_files, rows, short

INLINE_MAX = "write.manifest-dv.inline-max-bytes"
IDENTITY = SnapshotIdentity(snapshot_id=9, sequence_number=5, first_row_id=0)


def staging() -> Staging:
    return Staging("memory://wh/metadata", lambda: UUID(int=7))


def store() -> ManifestStore:
    return ManifestStore(MemoryFileIO(), context(4), ManifestCache())


def leaf(number: int) -> str:
    return str(manifest(number)["location"])


def test_large_vectors_are_a_file_of_the_attempt_which_another_attempt_does_not_find() -> None:
    at, staged = store(), staging()
    listed = table([manifest(n, record_count=100) for n in range(3)])
    wanted = {leaf(0): BitMap64([1]), leaf(2): BitMap64(range(0, 90, 3))}
    found = delete_leaf_rows(at, listed, Root().dead, wanted, IDENTITY, staged, {INLINE_MAX: "90"}).to_pylist()
    assert [row["dv_inline_content"] is None for row in found[3:]] == [False, True]
    (location,) = staged.written
    assert found[4]["location"] == location
    (blob,) = decode_puffin_footer(at.io.read(location), where=location).blobs
    assert (found[4]["dv_offset"], found[4]["dv_size_in_bytes"]) == (blob.location.offset, blob.location.length)
    assert blob.properties == {"referenced-data-file": "metadata/m2.parquet", "cardinality": "30"}
    assert staged.forget_attempt() == (location,)
    again = delete_leaf_rows(at, listed, Root().dead, wanted, IDENTITY, staged, {INLINE_MAX: "90"}).to_pylist()
    assert again[4]["location"] != location


def test_no_file_is_written_when_all_vectors_fit_in_the_root() -> None:
    staged = staging()
    delete_leaf_rows(store(), table([manifest(0)]), Root().dead, {leaf(0): BitMap64([1])}, IDENTITY, staged, {})
    assert staged.written == {}


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["0", "131072"])
@given(data=st.data())
def test_any_removals_one_after_another_leave_the_rest(limit: str, data: st.DataObject) -> None:
    tree = Tree(
        properties={
            "commit.root.max-data-files": "0",
            INLINE_MAX: limit,
            "commit.leaf.max-dead-percent": "1000",
            "commit.manifest-merge.enabled": "false",
        }
    )
    leaves = data.draw(st.integers(1, 3))
    names = [[f"L{n}F{k}" for k in range(data.draw(st.integers(1, 5)))] for n in range(leaves)]
    for inside in names:
        tree.commit(added=rows(*(data_file(name) for name in inside)))
    left = [name for inside in names for name in inside]
    for _ in range(data.draw(st.integers(1, 3))):
        if len(left) == 0:
            break
        gone = data.draw(st.lists(st.sampled_from(left), unique=True, min_size=1))
        tree.commit(removed=planned_files(*gone))
        left = [name for name in left if name not in gone]
        root, at = tree.root(), tree.fresh_store()
        found = [read_live_leaf(at, root, each) for each in root.leaves(*MANIFESTS)]
        assert sorted(short(place) for part in found for place in part["location"].to_pylist()) == sorted(left)
        assert all(row["location"] is None for row in root.rows(ContentType.MANIFEST_DV).to_pylist()) == (limit != "0")


def test_a_file_that_is_hidden_already_is_not_removed_again() -> None:
    tree = Tree(properties={"commit.root.max-data-files": "0", "commit.leaf.max-dead-percent": "1000"})
    tree.commit(added=rows(data_file("D1"), data_file("D2"), data_file("D3")))
    seen = tree.root().leaves(*MANIFESTS)[0].location
    tree.commit(removed=planned_files("D2"))
    with pytest.raises(ConflictError, match=r"D2\.parquet is no longer in the table"):
        tree.commit(removed=planned_files("D2"))
    remembered = put(put(planned_files("D2"), "manifest", seen), "ordinal", 1)
    with pytest.raises(ConflictError, match=r"D2\.parquet is no longer in the table"):
        tree.commit(removed=remembered)


def test_an_old_vector_is_deleted_by_this_snapshot_and_says_what_it_said() -> None:
    tree = Tree(properties={"commit.root.max-data-files": "0", "commit.leaf.max-dead-percent": "1000"})
    tree.commit(added=rows(data_file("D1"), data_file("D2"), data_file("D3")))
    tree.commit(removed=planned_files("D2"))
    (before,) = tree.root().rows(ContentType.MANIFEST_DV).to_pylist()
    tree.commit(removed=planned_files("D3"))
    (after,) = (row for row in tree.root().entries.to_pylist() if row["status"] == Status.DELETED)
    assert after == {**before, "status": int(Status.DELETED), "snapshot_id": 3}


def test_a_vector_beyond_the_limit_is_not_read() -> None:
    at = store()
    pointer = {"location": "memory://wh/v.puffin", "file_size_in_bytes": 2**50, "dv_inline_content": None}
    pointer |= {"dv_offset": 4, "dv_size_in_bytes": 2**49}
    listed = table([manifest(0), manifest_dv(0) | pointer])
    with pytest.raises(LimitError, match=r"r: row 1: memory://wh/v\.puffin at byte 4: a deletion vector of \d+ bytes"):
        manifest_vectors(at, put(listed, "ordinal", pa.array([0, 1])), "r", Status.ADDED)[leaf(0)]


def test_a_table_without_snapshots_hides_nothing() -> None:
    nothing: Snapshot | None = None
    assert len(read_root(store(), nothing).dead) == 0


def test_the_limit_holds_for_all_inline_vectors_of_a_root_and_the_largest_are_written_to_one_file() -> None:
    settings = {"commit.root.max-data-files": "0", "commit.leaf.max-dead-percent": "1000"}
    tree = Tree(properties={**settings, INLINE_MAX: "180", "commit.manifest-merge.enabled": "false"})
    for number in range(4):
        tree.commit(added=rows(*(data_file(f"L{number}F{k}") for k in range(30))))
    removals = [("L0F1",), tuple(f"L1F{k}" for k in range(0, 30, 4)), ("L2F3",)]
    for gone in removals:
        tree.commit(removed=planned_files(*gone))
        assert all(row["location"] is None for row in tree.root().rows(ContentType.MANIFEST_DV).to_pylist())
    tree.commit(removed=planned_files("L3F5"))
    found = {short(row["referenced_file"]): row for row in tree.root().rows(ContentType.MANIFEST_DV).to_pylist()}
    inline = [row for row in found.values() if row["dv_inline_content"] is not None]
    moved = [row for row in found.values() if row["dv_inline_content"] is None]
    assert sorted(row["record_count"] for row in moved) == [1, 8]
    assert {row["status"] for row in moved} == {int(Status.EXISTING)}  # their leaves did not change
    assert len({row["location"] for row in moved}) == 1
    assert sum(len(row["dv_inline_content"]) for row in inline) <= 90  # half of the limit is free for later commits
    left = {f"L{n}F{k}" for n in range(4) for k in range(30)} - {name for gone in removals for name in gone} - {"L3F5"}
    root, at = tree.root(), tree.fresh_store()
    read = [read_live_leaf(at, root, each) for each in root.leaves(*MANIFESTS)]
    assert {short(place) for part in read for place in part["location"].to_pylist()} == left

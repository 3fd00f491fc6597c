"""Files removed by name: found wherever they are, gone with their vectors, and little is read to do it."""

from __future__ import annotations

import pytest

from icefloe.commit.operations.append import Append
from icefloe.commit.operations.remove_files import RemoveFiles
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.errors import ConflictError
from icefloe.model.entries import ContentType
from icefloe.model.metadata.snapshots import SummaryKey
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import read_root
from support.entry_tables import at, audit, data, new_world, rows, vector

LEAVES = {"commit.root.max-data-files": "0", "commit.root.max-dvs": "0", "commit.manifest-merge.enabled": "false"}


@pytest.mark.parametrize("version", [3, 4])
def test_a_file_in_a_leaf_takes_its_vector_in_a_delete_leaf_along(version):
    world = new_world(version, **LEAVES)
    world.commit(Append(added=rows(data("a"), data("b"))))
    world.commit(Append(added=rows(data("c"))))
    world.commit(
        RowDelta(changes=FileChanges(added=rows(vector("v", "b", rows=2), vector("w", "c", rows=3))), read=world.head)
    )
    world.commit(RemoveFiles(locations=(at("b"),)))
    assert world.names() == ["a", "c"]
    assert [row["referenced_file"] for row in world.deletes().to_pylist()] == [at("c")]
    assert world.head.summary[SummaryKey.DELETED_DATA_FILES] == "1"
    assert world.head.summary[SummaryKey.REMOVED_DVS] == "1"
    assert world.head.summary[SummaryKey.REMOVED_POSITION_DELETES] == "2"
    audit(world)


def test_two_manifest_vectors_hide_a_file_and_its_vector():
    world = new_world(4, **LEAVES)
    world.commit(Append(added=rows(data("a"), data("b"))))
    world.commit(RowDelta(changes=FileChanges(added=rows(vector("w", "a"), vector("v", "b"))), read=world.head))
    before = world.files()
    world.commit(RemoveFiles(locations=(at("b"),)))
    root = read_root(world.base().store, world.head)
    assert [sorted(positions) for positions in dict(root.dead).values()] == [[1], [1]]
    assert {leaf.location for leaf in world.leaves()} <= before  # no leaf is written again
    assert root.rows(ContentType.MANIFEST_DV).num_rows == 2


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_file_that_is_not_there_removes_nothing(version):
    world = new_world(version, **LEAVES)
    world.commit(Append(added=rows(data("a"), data("b"))))
    world.commit(RemoveFiles(locations=(at("a"),)))
    for gone in ("a", "never"):
        with pytest.raises(ConflictError, match=f"{gone}.*not a live data file"):
            world.commit(RemoveFiles(locations=(at("b"), at(gone))))
    assert world.names() == ["b"]

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.codecs.context import manifest_context
from icefloe.codecs.manifests import encode_leaf, encode_root
from icefloe.errors import FormatError
from icefloe.inspect.outline import outline_snapshot
from icefloe.io.memory import MemoryFileIO
from icefloe.model.entries import ContentType, Status, entries
from icefloe.model.snapshots import Snapshot
from icefloe.tree.inherit import inherit
from icefloe.tree.root import live_rows, read_leaf, read_root
from icefloe.tree.store import ManifestCache, ManifestStore
from unit.codecs.rows import manifest
from unit.codecs.sample import context, data_file, metadata, table

WHERE = "memory://wh"


def store(version: int) -> ManifestStore:
    return ManifestStore(MemoryFileIO(), context(version), ManifestCache())


def put(at: ManifestStore, name: str, rows: list[dict[str, object]], *, version: int) -> str:
    data = encode_leaf(table(rows), context(version), delete=False, spec_id=0)
    at.io.write_new(f"{WHERE}/{name}.avro", data)
    return f"{WHERE}/{name}.avro"


def snapshot(**changes: object) -> Snapshot:
    known = {"snapshot_id": 9, "sequence_number": 0, "timestamp_ms": 1, "root": None, **changes}
    return Snapshot(**known)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_snapshot_may_name_its_manifests_itself(version: int) -> None:
    at = store(version)
    one = put(at, "m1", [data_file(n, snapshot_id=3) for n in range(3)], version=1)
    two = put(at, "m2", [data_file(7, snapshot_id=4, status=2), data_file(8, snapshot_id=4)], version=1)
    none = put(at, "m3", [], version=1)
    root = read_root(at, snapshot(manifests=(one, two, none)))
    leaves = root.leaves(ContentType.DATA_MANIFEST)
    assert [(leaf.location, leaf.record_count, leaf.live_count) for leaf in leaves] == [(one, 3, 3), (two, 2, 1)]
    rows = pa.concat_tables([live_rows(at, root, leaf) for leaf in leaves])
    assert rows["file_size_in_bytes"].to_pylist() == [1000, 1001, 1002, 1008]
    assert rows["snapshot_id"].to_pylist() == [3, 3, 3, 4]
    assert set(rows["sequence_number"].to_pylist()) == {0}
    assert root.entries["ordinal"].to_pylist() == [0, 1]


def test_the_outline_of_such_a_snapshot_can_be_drawn() -> None:
    at = store(1)
    one = put(at, "m1", [data_file(1, snapshot_id=3)], version=1)
    drawn = str(outline_snapshot(at.io, metadata(1), snapshot(manifests=(one,))))
    assert "snapshot 9" in drawn
    assert "names its manifests itself" in drawn
    assert "00001.parquet" in drawn


def listed(at: ManifestStore, *rows: dict[str, object], version: int) -> str:
    data = encode_root(table(list(rows)), context(version), snapshot_id=9, parent_id=None, sequence_number=5)
    at.io.write_new(f"{WHERE}/list.avro", data)
    return f"{WHERE}/list.avro"


def test_a_list_of_version_3_alone_says_which_manifests_have_row_ids() -> None:
    at = store(3)
    root = listed(at, manifest(1, first_row_id=None), manifest(2, first_row_id=100), version=3)
    found = read_root(at, snapshot(root=root, first_row_id=40, sequence_number=5))
    assert found.entries["first_row_id"].to_pylist() == [None, 100]


@pytest.mark.parametrize(
    ("first", "expected"), [(100, [100, 55, None, 110, None]), (None, [None, 55, None, None, None])]
)
def test_files_without_row_ids_get_them_from_a_manifest_that_has_one(
    first: int | None, expected: list[int | None]
) -> None:
    at = store(3)
    new = {"sequence_number": None, "file_sequence_number": None}
    rows = [
        data_file(0, **new),
        data_file(1, status=int(Status.EXISTING), first_row_id=55),
        data_file(2, status=int(Status.DELETED)),
        data_file(3, status=int(Status.EXISTING)),
    ]
    location = put(at, "m", rows, version=3)
    row = manifest(
        0, location=location, first_row_id=first, record_count=4, added_files_count=1, existing_files_count=2
    )
    root = read_root(at, snapshot(root=listed(at, row | {"deleted_files_count": 1}, version=3), sequence_number=5))
    (leaf,) = root.leaves(ContentType.DATA_MANIFEST)
    assert read_leaf(at, leaf)["first_row_id"].to_pylist() == expected[:4]


def test_rows_of_version_1_count_as_sequence_0_in_later_versions() -> None:
    rows = entries([data_file(0, sequence_number=None, file_sequence_number=None, status=int(Status.EXISTING))])
    found = inherit(rows, where="m", snapshot_id=9, sequence_number=0)
    assert (found["sequence_number"].to_pylist(), found["file_sequence_number"].to_pylist()) == ([0], [0])
    with pytest.raises(FormatError, match="only an ADDED entry may inherit"):
        inherit(rows, where="m", snapshot_id=9, sequence_number=3)


def test_the_size_of_a_leaf_is_known_from_its_root() -> None:
    at = ManifestStore(MemoryFileIO(), manifest_context(metadata(2)), ManifestCache())
    root = read_root(at, snapshot(root=listed(at, manifest(1, first_row_id=None), version=2), sequence_number=5))
    (leaf,) = root.leaves(ContentType.DATA_MANIFEST)
    assert leaf.size == 1001

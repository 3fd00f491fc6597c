from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.codecs.manifest.context import manifest_context
from icefloe.codecs.manifest.manifests import encode_leaf, encode_root
from icefloe.codecs.puffin.deletion_vector import encode_dv
from icefloe.errors import CorruptFile, FormatError
from icefloe.inspect.outline import outline_snapshot
from icefloe.io.memory import MemoryFileIO
from icefloe.model.entries import MANIFESTS, ContentType, Status, entries
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.testing.counting_io import CountingFileIO
from icefloe.tree.root import Root, inherit, leaves_of, read_leaf, read_live_leaf, read_root
from icefloe.tree.root_checks import check_root
from icefloe.tree.store import ManifestCache, ManifestStore
from support.manifests.random_entries import Row, data_dv, equality_delete, manifest, manifest_dv
from support.manifests.sample import context, data_file, metadata, table

WHERE = "memory://wh"


def store(version: int) -> ManifestStore:
    return ManifestStore(MemoryFileIO(), context(version), ManifestCache())


def put(at: ManifestStore, name: str, rows: list[dict[str, object]], *, version: int) -> str:
    data = encode_leaf(table(rows), context(version), content=ContentType.DATA_MANIFEST, spec_id=0)
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
    rows = pa.concat_tables([read_live_leaf(at, root, leaf) for leaf in leaves])
    assert rows["file_size_in_bytes"].to_pylist() == [1000, 1001, 1002, 1008]
    assert rows["snapshot_id"].to_pylist() == [3, 3, 3, 4]
    assert set(rows["sequence_number"].to_pylist()) == {0}
    assert root.entries["ordinal"].to_pylist() == [0, 1]


def test_the_outline_of_such_a_snapshot_can_be_drawn() -> None:
    at = store(1)
    one = put(at, "m1", [data_file(1, snapshot_id=3)], version=1)
    drawn = str(outline_snapshot(at.io, metadata(1), snapshot(manifests=(one,))))
    assert "snapshot 9" in drawn
    assert "lists its manifests itself" in drawn
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


def test_row_ids_after_a_file_of_unknown_length_are_unknown() -> None:
    rows = entries([data_file(n, record_count=c, status=0) for n, c in enumerate([10, 5, None, 7, 3])])
    found = inherit(rows, where="m", snapshot_id=9, sequence_number=5, first_row_id=100)
    assert found["first_row_id"].to_pylist() == [100, 110, 115, None, None]


def test_rows_of_version_1_count_as_sequence_0_in_later_versions() -> None:
    rows = entries([data_file(0, sequence_number=None, file_sequence_number=None, status=int(Status.EXISTING))])
    found = inherit(rows, where="m", snapshot_id=9, sequence_number=0)
    assert (found["sequence_number"].to_pylist(), found["file_sequence_number"].to_pylist()) == ([0], [0])
    with pytest.raises(FormatError, match="row 0: sequence_number is null, which only an ADDED entry may inherit"):
        inherit(rows, where="m", snapshot_id=9, sequence_number=3)


def test_numbers_that_old_writers_did_not_tell_stay_unknown() -> None:
    """Apache Iceberg before 1.1 told no file sequence numbers of older entries, and none of removed ones at all.

    Every scan of such a table was refused.
    """
    untold = [{"file_sequence_number": None}, {"file_sequence_number": None, "sequence_number": None}]
    kinds = [(Status.EXISTING, 0), (Status.DELETED, 1), (Status.ADDED, 1), (Status.EXISTING, None)]
    rows = [data_file(n, status=int(s), **({} if u is None else untold[u])) for n, (s, u) in enumerate(kinds)]
    found = inherit(entries(rows), where="here", snapshot_id=7, sequence_number=9)
    assert found["sequence_number"].to_pylist() == [5, None, 9, 5]
    assert found["file_sequence_number"].to_pylist() == [None, None, 9, 5]


def test_the_size_of_a_leaf_is_known_from_its_root() -> None:
    at = ManifestStore(MemoryFileIO(), manifest_context(metadata(2)), ManifestCache())
    root = read_root(at, snapshot(root=listed(at, manifest(1, first_row_id=None), version=2), sequence_number=5))
    (leaf,) = root.leaves(ContentType.DATA_MANIFEST)
    assert leaf.size == 1001


def test_a_list_from_before_an_upgrade_keeps_its_silence_about_row_ids():
    at = store(4)
    root = listed(at, manifest(1, first_row_id=None), manifest(2, first_row_id=100), version=3)
    found = read_root(at, snapshot(root=root, first_row_id=40, sequence_number=5))
    assert found.entries["first_row_id"].to_pylist() == [None, 100]


# -- manifest deletion vectors


def v4_root(at: ManifestStore, *rows: Row) -> str:
    data = encode_root(table(list(rows)), context(4), snapshot_id=9, parent_id=None, sequence_number=5)
    at.io.write_new(f"{WHERE}/root.parquet", data)
    return f"{WHERE}/root.parquet"


def read_rows(*rows: Row, at: ManifestStore | None = None) -> Root:
    at = store(4) if at is None else at
    return read_root(at, snapshot(root=v4_root(at, *rows), sequence_number=5))


def test_vectors_apply_to_avro_leaves_by_the_place_of_rows_of_every_status() -> None:
    at = store(4)
    rows = [
        data_file(0, status=int(Status.DELETED)),
        data_file(1, status=int(Status.EXISTING)),
        data_file(2, status=int(Status.DELETED)),
        data_file(3, sequence_number=None, file_sequence_number=None, snapshot_id=None),
        data_file(4, status=int(Status.EXISTING)),
    ]
    for version in (2, 3):
        location = put(at, f"m{version}", rows, version=version)
        counts = {"added_files_count": 1, "existing_files_count": 2, "deleted_files_count": 2, "record_count": 5}
        row = manifest(0, **counts) | {"location": location, "file_format": "avro", "first_row_id": None}
        hidden = manifest_dv(0, (1, 3)) | {"referenced_file": location}
        at.io.delete([f"{WHERE}/root.parquet"])
        root = read_rows(row, hidden, at=at)
        (leaf,) = root.leaves(ContentType.DATA_MANIFEST)
        found = read_live_leaf(at, root, leaf)
        assert found["ordinal"].to_pylist() == [4]
        assert found["location"].to_pylist() == [rows[4]["location"]]


def test_a_vector_of_rows_that_an_avro_leaf_does_not_have_is_refused_whatever_its_root_counts() -> None:
    at = store(4)
    location = put(at, "m", [data_file(0), data_file(1)], version=2)
    counts = {"added_files_count": 9, "record_count": 9, "format_version": None}
    row = manifest(0, **counts) | {"location": location, "file_format": "avro", "first_row_id": None}
    root = read_rows(row, manifest_dv(0, (2,)) | {"referenced_file": location}, at=at)
    (leaf,) = root.leaves(ContentType.DATA_MANIFEST)
    assert read_leaf(at, leaf).num_rows == 2
    with pytest.raises(FormatError, match=r"m.*: a deletion vector has position 2, the manifest has only 2 rows"):
        read_live_leaf(at, root, leaf)


def test_a_root_tells_how_many_rows_are_hidden_without_reading_vectors() -> None:
    io = CountingFileIO(MemoryFileIO())
    at = ManifestStore(io, context(4), ManifestCache())
    in_file = {"location": f"{WHERE}/absent.puffin", "file_size_in_bytes": 99, "dv_inline_content": None}
    in_file |= {"dv_offset": 4, "dv_size_in_bytes": 42}
    listed = [manifest(n) for n in range(50)]
    location = v4_root(at, *listed, *(manifest_dv(n, (n % 3,)) | in_file for n in range(0, 50, 2)))
    io.reset()
    root = read_root(at, snapshot(root=location, sequence_number=5))
    assert len(root.leaves(*MANIFESTS)) == 50
    assert not any(root.are_dead(root.entries).to_pylist())
    assert len(root.dead) == 25
    assert sorted(root.dead) == sorted(str(row["location"]) for row in listed[::2])
    assert [root.dead.count(str(row["location"])) for row in listed] == [1, 0] * 25
    assert listed[0]["location"] in root.dead
    assert listed[1]["location"] not in root.dead
    assert [call.verb for call in io.calls] == ["read"]


def test_a_vector_is_decoded_once() -> None:
    root = read_rows(manifest(1), manifest_dv(1, (0, 2)))
    (location,) = root.dead
    assert root.dead[location] == BitMap64([0, 2])
    assert root.dead[location] is root.dead[location]
    assert root.dead.get("elsewhere") is None


def test_no_root_and_no_vectors_hide_nothing() -> None:
    assert len(Root().dead) == 0
    assert Root().dead.count("anything") == 0
    assert read_rows(manifest(1)).dead.get("anything") is None


@pytest.mark.parametrize("blob", [encode_dv(BitMap64([1])), encode_dv(BitMap64([0, 1, 2]))[:-1] + b"x"])
def test_the_count_of_a_vector_alone_makes_no_leaf_vanish(blob: bytes) -> None:
    root = read_rows(manifest(1), manifest_dv(1, (0, 1, 2)) | {"dv_inline_content": blob})
    (leaf,) = leaves_of(root.rows(*MANIFESTS))
    for look in (lambda: root.is_dead(leaf), lambda: root.leaves(*MANIFESTS), lambda: root.are_dead(root.entries)):
        with pytest.raises(FormatError, match=r"root\.parquet: row 1: "):
            look()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=6))
def test_leaves_are_dead_one_by_one_as_they_are_all_at_once(shapes: list[tuple[int, int, int]]) -> None:
    rows = []
    for n, (added, existing, hidden) in enumerate(shapes):
        counts = {"added_files_count": added, "existing_files_count": existing, "record_count": added + existing}
        rows.append(manifest(n, **counts))
        if min(hidden, added + existing) > 0:
            rows.append(manifest_dv(n, tuple(range(min(hidden, added + existing)))))
    root = read_rows(*rows)
    leaves = list(leaves_of(root.rows(*MANIFESTS)))
    at_once = root.are_dead(root.entries).to_pylist()
    kinds = root.entries["content_type"].to_pylist()
    assert [dead for dead, kind in zip(at_once, kinds, strict=True) if kind in MANIFESTS] == [
        root.is_dead(leaf) for leaf in leaves
    ]
    expected = [added + existing - min(hidden, added + existing) <= 0 for added, existing, hidden in shapes]
    assert [root.is_dead(leaf) for leaf in leaves] == expected


def test_a_damaged_vector_is_refused_when_its_leaf_is_read_and_not_before() -> None:
    blob = encode_dv(BitMap64([1]))
    root = read_rows(manifest(1), manifest_dv(1) | {"dv_inline_content": blob[:-1] + bytes([blob[-1] ^ 1])})
    (leaf,) = root.leaves(*MANIFESTS)
    with pytest.raises(CorruptFile, match=r"root\.parquet: row 1: .*checksum"):
        root.dead[leaf.location]


# -- what rows of a root say together, against a reading of them one by one

KINDS = {
    ContentType.DATA: data_file,
    ContentType.POSITION_DELETES: data_dv,
    ContentType.EQUALITY_DELETES: equality_delete,
    ContentType.DATA_MANIFEST: manifest,
    ContentType.DELETE_MANIFEST: lambda number, **changes: manifest(number, delete=True, **changes),
    ContentType.MANIFEST_DV: manifest_dv,
}


@st.composite
def root_rows(draw: st.DrawFn) -> Row:
    kind, status = draw(st.sampled_from(ContentType)), draw(st.sampled_from(Status))
    row = KINDS[kind](draw(st.integers(0, 3)), status=int(status))
    if kind is ContentType.DELETE_MANIFEST and draw(st.booleans()):
        row["referenced_file"] = manifest(draw(st.integers(0, 3)))["location"]
    return row


def contradicts(rows: list[Row]) -> bool:
    live = [row for row in rows if row["status"] != Status.DELETED]
    kinds = {
        name: [row for row in rows if row["content_type"] == kind] for name, kind in ContentType.__members__.items()
    }
    files = [row["location"] for row in live if row["content_type"] not in (1, 5)]
    vectors = [row["referenced_file"] for row in live if row["content_type"] == 1]
    hidden = [(row["referenced_file"], row["status"] == Status.DELETED) for row in kinds["MANIFEST_DV"]]
    data_leaves = {row["location"] for row in live if row["content_type"] == 3}
    leaves = {row["location"] for row in kinds["DATA_MANIFEST"] + kinds["DELETE_MANIFEST"]}
    affinities = {row.get("referenced_file") for row in live if row["content_type"] == 4} - {None}
    return (
        any(len(found) != len(set(found)) for found in (files, vectors, hidden))
        or not affinities <= data_leaves
        or not {leaf for leaf, gone in hidden if not gone} <= leaves
    )


@given(st.lists(root_rows(), max_size=7))
def test_rows_that_contradict_each_other_are_refused_and_no_others(rows: list[Row]) -> None:
    if contradicts(rows):
        with pytest.raises(FormatError, match=r"here: row [0-9]+: "):
            check_root(table(rows), "here")
    else:
        check_root(table(rows), "here")


def test_the_row_that_is_named_is_the_second_of_two() -> None:
    rows = [data_file(n) for n in range(100)]
    rows.insert(70, data_file(30))
    with pytest.raises(FormatError) as caught:
        check_root(table(rows), "here")
    assert caught.value.context["row"] == 70
    assert str(rows[30]["location"]) in str(caught.value)
    assert np.unique([row["location"] for row in rows]).size == 100

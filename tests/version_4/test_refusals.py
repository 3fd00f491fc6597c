"""Statements 66 to 69: what readers refuse, by an error that names the file, the row and the rule."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

import icefloe
from icefloe.codecs.json.table_metadata import decode_metadata
from icefloe.codecs.manifest.field_ids import CONTENT_ENTRY, CONTENT_STATS, Group
from icefloe.codecs.manifest.parquet_layout import field_of, group_field
from icefloe.codecs.puffin.deletion_vector import decode_dv, encode_dv
from icefloe.errors import CorruptFile, FormatError, IcefloeError, UnsupportedError
from icefloe.model.entries import MANIFESTS
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.table.held_table import pointer_of
from icefloe.tree.root import read_live_leaf, read_root
from icefloe.tree.store import ManifestCache, ManifestStore
from support.metadata_documents import metadata_json
from support.shared_files import shared
from version_4.scenes import DATA, DATA_MANIFEST, DELETE_MANIFEST, DV, MANIFEST_DV, TO_LEAVES, TO_ROOT, Row, Stage

APACHE = ("all-container-types", "empty", "small-alternating-values", "small-and-large-values")
EQUALITY_DELETE = 2

# -- 66: row ids


def full(folder: Path) -> Stage:
    """A root of all kinds of rows: M1 (D1, D2, D3) with a vector on D2, M2 (DV1), D4 with DV4, D5."""
    stage = Stage(folder, **{**TO_LEAVES, "commit.leaf.max-dead-percent": "1000"})
    stage.append("D1", "D2", "D3")
    stage.call("M1")
    stage.table.delete("id = 10")
    stage.call("M2", "DV1")
    stage.settings(TO_ROOT)
    stage.append("D4", "D5")
    stage.table.delete("id = 41")
    stage.call("DV4")
    stage.remove("D2")
    return stage


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    made = full(tmp_path_factory.mktemp("refusals"))
    assert [line.split(" by ")[0] for line in made.root()] == ROOT
    return made


ROOT = [
    "DATA_MANIFEST M1 EXISTING",
    "DELETE_MANIFEST M2 EXISTING",
    "DATA D4 EXISTING",
    "DATA D5 EXISTING",
    "DV DV4 EXISTING",
    "MANIFEST_DV ADDED",
]
M1, M2, D4, D5, DV4, VECTOR = range(6)


def test_66_first_row_id_is_null_on_all_rows_that_are_no_data(stage: Stage) -> None:
    found = [row for back in range(len(stage.snapshots)) for row in stage.root_rows(back)]
    found += [row for name in ("M1", "M2") for row in stage.leaf_rows(name)]
    kinds = {row["content_type"] for row in found if row["content_type"] not in (DATA, DATA_MANIFEST)}
    assert kinds == {DV, DELETE_MANIFEST, MANIFEST_DV}
    for row in found:
        if row["content_type"] in kinds:
            assert row["first_row_id"] is None


# -- 67: the bytes of deletion vectors


@pytest.mark.parametrize("name", APACHE)
def test_67_blobs_are_byte_equal_to_those_of_apache_in_both_directions(name: str) -> None:
    blob = shared(f"golden/apache/deletion-vectors/{name}-position-index.bin").read_bytes()
    positions = decode_dv(blob, where="here", cardinality=None)
    assert encode_dv(positions) == blob
    assert encode_dv(BitMap64(list(positions))) == blob
    assert decode_dv(encode_dv(positions), where="here", cardinality=len(positions)) == positions


def flipped(blob: bytes, place: int) -> bytes:
    return (
        blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1 :] if place >= 0 else flipped(blob, len(blob) + place)
    )


def with_magic(blob: bytes, magic: bytes) -> bytes:
    body = magic + blob[8:-4]
    return blob[:4] + body + zlib.crc32(body).to_bytes(4, "big")


@pytest.mark.parametrize("name", APACHE)
@pytest.mark.parametrize(
    ("damage", "rule"),
    [
        (lambda blob: flipped(blob, -1), "checksum"),
        (lambda blob: flipped(blob, -4), "checksum"),
        (lambda blob: with_magic(blob, b"\xd1\xd3\x39\x65"), "these bytes are no deletion vector"),
        (lambda blob: flipped(blob, 3), "says [0-9]+ bytes"),
        (lambda blob: blob + b"\x00", "says [0-9]+ bytes"),
        (lambda blob: blob[:-1], "says [0-9]+ bytes|cut short"),
    ],
)
def test_67_a_damaged_blob_is_refused(name: str, damage: Callable[[bytes], bytes], rule: str) -> None:
    blob = shared(f"golden/apache/deletion-vectors/{name}-position-index.bin").read_bytes()
    with pytest.raises(CorruptFile, match=f"here: .*({rule})"):
        decode_dv(damage(blob), where="here", cardinality=None)


@pytest.mark.parametrize("name", APACHE)
def test_67_a_blob_of_another_cardinality_is_refused(name: str) -> None:
    blob = shared(f"golden/apache/deletion-vectors/{name}-position-index.bin").read_bytes()
    count = len(decode_dv(blob, where="here", cardinality=None))
    with pytest.raises(FormatError, match=f"has {count} positions, its entry says {count + 1}"):
        decode_dv(blob, where="here", cardinality=count + 1)


@pytest.mark.broken_tables
@pytest.mark.parametrize("place", [0, 4, 9, -1])
def test_67_a_damaged_vector_in_a_puffin_file_is_refused_when_its_leaf_is_read(tmp_path: Path, place: int) -> None:
    stage = Stage(tmp_path, **{**TO_LEAVES, "write.manifest-dv.inline-max-bytes": "0"})
    stage.append("D1", "D2", "D3")
    stage.call("M1")
    stage.remove("D2")
    row = stage.root_rows()[1]
    path = stage.folder / row["location"]
    data, offset = path.read_bytes(), row["deletion_vector"]["offset"]
    at = offset + place if place >= 0 else offset + row["deletion_vector"]["size_in_bytes"] + place
    path.write_bytes(flipped(data, at))
    with pytest.raises(CorruptFile, match=re.escape(f"{stage.root_path().name}: row 1: {path.as_uri()}")):
        new_catalog_table(tmp_path).scan().to_arrow()


def new_catalog_table(folder: Path) -> Any:
    """The table of a stage, opened by a program that has read nothing of it."""
    return icefloe.catalog(
        "lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    ).load_table("db.t")


# -- 68: rows that break the format, written by another program

Edit = Callable[[list[Row]], object]


def loose(type_: pa.DataType) -> pa.DataType:
    """A type that may be null at every level, so that anything can be stored."""
    if pa.types.is_struct(type_):
        return pa.struct([optional(type_.field(i)) for i in range(type_.num_fields)])
    if pa.types.is_list(type_):
        return pa.list_(optional(type_.value_field))
    return type_


def optional(field: pa.Field) -> pa.Field:
    return pa.field(field.name, loose(field.type), metadata=field.metadata)


def write_manifest(source: Path, target: Path, edit: Edit, **metadata: str) -> None:
    """A manifest with its rows edited as they are stored, and nothing checked."""
    file = pq.ParquetFile(source)
    known = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
    rows = file.read().to_pylist()
    edit(rows)
    present = {int(field.metadata[b"PARQUET:field_id"]) for field in file.schema_arrow}
    missing = [item for item in CONTENT_ENTRY if item.id not in {*present, CONTENT_STATS}]  # those without any value
    others = [group_field(item) if isinstance(item, Group) else field_of(item) for item in missing]
    schema = pa.schema([optional(field) for field in (*file.schema_arrow, *others)])
    with pq.ParquetWriter(target, schema, store_schema=False) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema=schema))
        writer.add_key_value_metadata({**known, **metadata})


def read_all(stage: Stage, snapshot: Snapshot) -> None:
    """Read a root and all its leaves, by a store that has read nothing."""
    base = pointer_of(stage.table).load()
    store = ManifestStore(base.store.io, base.store.context, ManifestCache())
    root = read_root(store, snapshot)
    for leaf in root.leaves(*MANIFESTS):
        read_live_leaf(store, root, leaf)


def with_root(stage: Stage, folder: Path, edit: Edit, **metadata: str) -> Snapshot:
    """The head of a stage with its root edited, in a file called bad.parquet."""
    path = folder / "bad.parquet"
    write_manifest(stage.root_path(), path, edit, **metadata)
    return replace(stage.snapshots[-1], root=f"file://{path}")


def refused(stage: Stage, folder: Path, row: int, rule: str, edit: Edit) -> None:
    snapshot = with_root(stage, folder, edit)
    with pytest.raises(FormatError, match=rf"bad\.parquet: row {row}: .*{rule}") as caught:
        read_all(stage, snapshot)
    assert not isinstance(caught.value, CorruptFile)


def put(row: int, **values: object) -> Edit:
    return lambda rows: rows[row].update(values)


def put_info(row: int, **values: object) -> Edit:
    return lambda rows: rows[row]["version_info"].update(values)


def put_vector(row: int, **values: object) -> Edit:
    return lambda rows: rows[row]["deletion_vector"].update(values)


def copied(row: int, **values: object) -> Edit:
    return lambda rows: rows.append({**rows[row], **values})


def put_stats(row: int, **values: object) -> Edit:
    return lambda rows: rows[row]["manifest_stats"].update(values)


def inline(*positions: int) -> dict[str, object]:
    blob = encode_dv(BitMap64(positions))
    return {"offset": None, "size_in_bytes": None, "inline_content": blob}


def test_68_the_root_that_the_others_are_made_from_is_read(stage: Stage, tmp_path: Path) -> None:
    read_all(stage, with_root(stage, tmp_path, lambda rows: None))


def test_68_two_live_vectors_of_a_leaf_are_refused(stage: Stage, tmp_path: Path) -> None:
    refused(stage, tmp_path, 6, "another live row is the deletion vector of the same manifest: .*m0", copied(VECTOR))


def test_68_a_vector_that_left_beside_a_live_one_is_no_contradiction(stage: Stage, tmp_path: Path) -> None:
    def edit(rows: list[Row]) -> None:
        rows.append({**rows[VECTOR], "version_info": {**rows[VECTOR]["version_info"], "status": 2}})

    read_all(stage, with_root(stage, tmp_path, edit))


@pytest.mark.parametrize("position", [3, 4, 2**40])
def test_68_a_position_beyond_the_rows_of_the_leaf_is_refused(stage: Stage, tmp_path: Path, position: int) -> None:
    rule = f"has position {position}, the manifest has only 3 rows"
    refused(stage, tmp_path, VECTOR, rule, put(VECTOR, deletion_vector=inline(position)))


def test_68_an_inline_vector_of_a_data_file_is_refused(stage: Stage, tmp_path: Path) -> None:
    rule = "the deletion vector of a data file cannot be inline"
    refused(stage, tmp_path, DV4, rule, put(DV4, deletion_vector=inline(1)))


def test_68_a_manifest_without_manifest_stats_is_refused(stage: Stage, tmp_path: Path) -> None:
    refused(stage, tmp_path, M1, "added_files_count is for manifests, which must have it", put(M1, manifest_stats=None))


@pytest.mark.parametrize("row", [M1, M2, D4, DV4])
@pytest.mark.parametrize("name", ["sequence_number", "file_sequence_number"])
def test_68_an_existing_row_without_sequence_numbers_is_refused(
    stage: Stage, tmp_path: Path, row: int, name: str
) -> None:
    refused(stage, tmp_path, row, "sequence numbers", put_info(row, **{name: None}))


RULES: list[tuple[int, str, Edit]] = [
    # content types and statuses
    (D4, "content type is not allowed in a manifest of content 'root'", put(D4, content_type=6)),
    (D4, "content type is not allowed", put(D4, content_type=-1)),
    (D4, "version_info is null", put(D4, version_info=None)),
    (D4, r"status \(field id 0\) is null", put_info(D4, status=None)),
    (D4, "status is not 0", put_info(D4, status=3)),
    (D4, "status is not 0", put_info(D4, status=4)),
    (M1, "the two sequence numbers of a manifest differ", put_info(M1, sequence_number=7)),
    (M2, "the two sequence numbers of a manifest differ", put_info(M2, file_sequence_number=7)),
    # files
    (D4, "location is null", put(D4, location=None)),
    (DV4, "location is null", put(DV4, location=None)),
    (M1, "location is null", put(M1, location=None)),
    (VECTOR, "file_size_in_bytes is null", put(VECTOR, location="metadata/x.puffin")),
    (D4, r"split_offsets of .*/data/.* do not ascend: \[9, 4\]\. .* sort them", put(D4, split_offsets=[9, 4])),
    (D5, r"split_offsets of .* do not ascend: \[4, 9, 8\]", put(D5, split_offsets=[4, 9, 8])),
    (D4, "file_size_in_bytes is null", put(D4, file_size_in_bytes=None)),
    (D4, "file_size_in_bytes is negative", put(D4, file_size_in_bytes=-1)),
    (D4, "record_count is negative", put(D4, record_count=-1)),
    (D4, r"record_count \(field id 103\) is null", put(D4, record_count=None)),
    (D4, r"file_format \(field id 101\) is null", put(D4, file_format=None)),
    (D4, "file_format is not avro, orc, parquet or puffin", put(D4, file_format="csv")),
    (D4, "file_format is puffin, which is for deletion vectors", put(D4, file_format="puffin")),
    (DV4, "file_format of a deletion vector is not puffin", put(DV4, file_format="parquet")),
    (VECTOR, "file_format of a deletion vector is not puffin", put(VECTOR, file_format="avro")),
    (M1, "file_format of a manifest is not avro or parquet", put(M1, file_format="orc")),
    (D4, r"partition_spec_id \(field id 148\) is null", put(D4, partition_spec_id=None)),
    (D4, "names partition spec 5, which the table lacks", put(D4, partition_spec_id=5)),
    # what belongs to some kinds only
    (D4, "equality_ids belong to equality deletes", put(D4, equality_ids=[1])),
    (DV4, "equality_ids belong to equality deletes", put(DV4, equality_ids=[1])),
    (M2, "sort_order_id is for data files only", put(M2, sort_order_id=0)),
    (DV4, "sort_order_id is for data files only", put(DV4, sort_order_id=0)),
    (VECTOR, "sort_order_id is for data files only", put(VECTOR, sort_order_id=0)),
    (M1, "split_offsets", put(M1, split_offsets=[4])),
    (DV4, "split_offsets", put(DV4, split_offsets=[4])),
    (VECTOR, "split_offsets", put(VECTOR, split_offsets=[4])),
    (M2, "first_row_id is for data", put(M2, first_row_id=1)),
    (DV4, "first_row_id is for data", put(DV4, first_row_id=1)),
    (VECTOR, "first_row_id is for data", put(VECTOR, first_row_id=1)),
    (VECTOR, "must not have content_stats", put(VECTOR, content_stats={"id": {"lower_bound": 1}})),
    (D4, "added_files_count is for manifests", lambda rows: rows[D4].update(manifest_stats=rows[M1]["manifest_stats"])),
    (M2, "min_sequence_number is for manifests, which must have it", put_stats(M2, min_sequence_number=None)),
    (M2, "deleted_rows_count is for manifests, which must have it", put_stats(M2, deleted_rows_count=None)),
    # deletion vectors
    (DV4, "either inline or at an offset", put(DV4, deletion_vector=None)),
    (VECTOR, "location is null", put(VECTOR, deletion_vector=None)),
    (VECTOR, "either inline or at an offset", put_vector(VECTOR, offset=4, size_in_bytes=42)),
    (DV4, "needs both offset and size", put_vector(DV4, size_in_bytes=None)),
    (DV4, "needs both offset and size", put_vector(DV4, offset=None)),
    (DV4, "offset is negative", put_vector(DV4, offset=-1)),
    (DV4, "size_in_bytes is too small", put_vector(DV4, size_in_bytes=19)),
    (D4, "only deletion vectors may have", put(D4, deletion_vector={"offset": 4, "size_in_bytes": 42})),
    (M1, "only deletion vectors may have", put(M1, deletion_vector=inline(1))),
    (DV4, "must name the file it belongs to", put(DV4, referenced_file=None)),
    (VECTOR, "must name the file it belongs to", put(VECTOR, referenced_file=None)),
    (D4, "referenced_file must be null", put(D4, referenced_file="data/x.parquet")),
    (M1, "referenced_file must be null", put(M1, referenced_file="metadata/x.parquet")),
    (VECTOR, "its entry says 2", put(VECTOR, record_count=2)),
    (VECTOR, "a deletion vector of 4 rows, more than its manifest has", put(VECTOR, record_count=4)),
    # what rows say together
    (6, "another live row has the same location: .*/data/", copied(D4)),
    (6, "another live row has the same location: .*/metadata/", copied(M1)),
    (
        6,
        "another live row has the same location",
        copied(D4, content_type=EQUALITY_DELETE, equality_ids=[1], first_row_id=None),
    ),
    (6, "another live row is the deletion vector of the same data file", copied(DV4)),
    (
        M2,
        "a delete manifest belongs to a data manifest that is not in this root: .*gone",
        put(M2, referenced_file="gone"),
    ),
    (M2, "that is not in this root", lambda rows: rows[M2].update(referenced_file=rows[D4]["location"])),
    (M2, "that is not in this root", lambda rows: rows[M2].update(referenced_file=rows[M2]["location"])),
    (VECTOR, "a deletion vector belongs to a manifest that is not in this root", put(VECTOR, referenced_file="gone")),
    (VECTOR, "that is not in this root", lambda rows: rows[VECTOR].update(referenced_file=rows[D4]["location"])),
]


@pytest.mark.parametrize(
    ("row", "rule", "edit"), RULES, ids=[f"{n}-{rule[:30]}" for n, (_, rule, _) in enumerate(RULES)]
)
def test_68_every_other_rule_names_file_row_and_rule(
    stage: Stage, tmp_path: Path, row: int, rule: str, edit: Edit
) -> None:
    refused(stage, tmp_path, row, rule, edit)


def test_68_a_delete_leaf_may_belong_to_a_live_data_leaf(stage: Stage, tmp_path: Path) -> None:
    read_all(stage, with_root(stage, tmp_path, lambda rows: rows[M2].update(referenced_file=rows[M1]["location"])))


def test_68_a_delete_leaf_may_not_belong_to_a_data_leaf_that_left(stage: Stage, tmp_path: Path) -> None:
    def edit(rows: list[Row]) -> None:
        rows[M2]["referenced_file"] = rows[M1]["location"]
        rows[M1]["version_info"]["status"] = 2

    refused(stage, tmp_path, M2, "a data manifest that is not in this root", edit)


def test_68_rows_that_left_may_name_the_same_file_as_live_ones(stage: Stage, tmp_path: Path) -> None:
    def edit(rows: list[Row]) -> None:
        for row in (D4, DV4):
            rows.append({**rows[row], "version_info": {**rows[row]["version_info"], "status": 2}})

    read_all(stage, with_root(stage, tmp_path, edit))


@pytest.mark.parametrize(
    ("metadata", "rule"),
    [({"format-version": "5"}, "format-version is b'5'"), ({"content": "data"}, "content is 'data', expected root")],
)
def test_68_a_root_that_says_to_be_something_else_is_refused(
    stage: Stage, tmp_path: Path, metadata: dict[str, str], rule: str
) -> None:
    with pytest.raises(FormatError, match=rf"bad\.parquet: {rule}"):
        read_all(stage, with_root(stage, tmp_path, lambda rows: None, **metadata))


def with_leaf(stage: Stage, folder: Path, row: int, edit: Edit, **metadata: str) -> Snapshot:
    """The head of a stage with one of its leaves edited, in a file called leaf.parquet."""
    path = folder / "leaf.parquet"
    write_manifest(stage.path("M1" if row == M1 else "M2"), path, edit, **metadata)

    def point(rows: list[Row]) -> None:
        del rows[VECTOR]
        rows[M2]["referenced_file"] = None
        rows[row]["location"] = f"file://{path}"

    return with_root(stage, folder, point)


@pytest.mark.parametrize("kind", [DV, EQUALITY_DELETE, DATA_MANIFEST, DELETE_MANIFEST, MANIFEST_DV])
def test_68_other_rows_than_data_files_in_a_data_leaf_are_refused(stage: Stage, tmp_path: Path, kind: int) -> None:
    with pytest.raises(FormatError, match=r"leaf\.parquet: row 1: its content type is not allowed"):
        read_all(stage, with_leaf(stage, tmp_path, M1, put(1, content_type=kind)))


@pytest.mark.parametrize("kind", [DATA, DATA_MANIFEST, DELETE_MANIFEST, MANIFEST_DV])
def test_68_other_rows_than_deletes_in_a_delete_leaf_are_refused(stage: Stage, tmp_path: Path, kind: int) -> None:
    with pytest.raises(FormatError, match=r"leaf\.parquet: row 0: its content type is not allowed"):
        read_all(stage, with_leaf(stage, tmp_path, M2, put(0, content_type=kind)))


@pytest.mark.parametrize("content", ["root", "delete", "other"])
def test_68_a_leaf_of_another_kind_than_its_root_says_is_refused(stage: Stage, tmp_path: Path, content: str) -> None:
    with pytest.raises(FormatError, match=rf"leaf\.parquet: content is '{content}', expected data"):
        read_all(stage, with_leaf(stage, tmp_path, M1, lambda rows: None, content=content))


def test_68_a_leaf_with_fewer_rows_than_its_root_says_is_refused(stage: Stage, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"leaf\.parquet: has 2 rows, its root says 3"):
        read_all(stage, with_leaf(stage, tmp_path, M1, lambda rows: rows.pop()))


@pytest.mark.broken_tables
def test_68_a_root_that_breaks_the_format_is_refused_by_scans_and_commits(tmp_path: Path) -> None:
    stage = full(tmp_path)
    write_manifest(stage.root_path(), stage.root_path(), copied(VECTOR))
    table = new_catalog_table(tmp_path)
    rule = f"{stage.root_path().name}: row 6: another live row is the deletion vector of the same manifest"
    for act in (lambda: table.scan().to_arrow(), lambda: table.append(pa.table({"id": [1]}))):
        with pytest.raises(FormatError, match=re.escape(rule)):
            act()


# -- 69: metadata


def opened(stage: Stage, edit: Callable[[dict[str, Any]], object]) -> Any:
    """The metadata of a table from its newest file, edited."""
    newest = max((stage.folder / "metadata").glob("*.metadata.json"), key=lambda path: path.name)
    document = metadata_json(newest)
    edit(document)
    return decode_metadata(json.dumps(document).encode(), where=newest.as_uri())


def test_69_a_table_of_format_version_5_is_refused(stage: Stage) -> None:
    with pytest.raises(UnsupportedError, match="5"):
        opened(stage, lambda document: document.update({"format-version": 5}))


def test_69_a_snapshot_whose_two_roots_differ_is_refused(stage: Stage) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["snapshots"][-1]["manifest-list"] = "metadata/other.avro"

    with pytest.raises(FormatError, match=r"snapshots\[\d+\]: root-manifest and manifest-list differ"):
        opened(stage, edit)


def test_69_a_snapshot_of_the_past_whose_two_roots_differ_is_refused_when_it_is_read(
    stage: Stage,
) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["snapshots"][0]["manifest-list"] = "metadata/other.avro"

    metadata = opened(stage, edit)
    assert metadata.current_snapshot is not None
    with pytest.raises(FormatError, match=r"snapshots\[0\]: root-manifest and manifest-list differ"):
        metadata.snapshot(stage.snapshots[0].snapshot_id)


@pytest.mark.parametrize("absolute", [False, True])
def test_69_a_mirrored_root_is_accepted(stage: Stage, absolute: bool) -> None:
    def edit(document: dict[str, Any]) -> None:
        head = document["snapshots"][-1]
        place = head["root-manifest"]
        head["manifest-list"] = f"{stage.table.location}/{place}" if absolute else place

    assert opened(stage, edit).current_snapshot.root == stage.snapshots[-1].root


def test_69_a_root_may_be_called_manifest_list_alone(stage: Stage) -> None:
    def edit(document: dict[str, Any]) -> None:
        head = document["snapshots"][-1]
        head["manifest-list"] = head.pop("root-manifest")

    snapshot = opened(stage, edit).current_snapshot
    assert snapshot.root == stage.snapshots[-1].root
    read_all(stage, snapshot)


def test_69_a_snapshot_without_any_root_is_refused(stage: Stage) -> None:
    with pytest.raises(IcefloeError, match="root-manifest or manifest-list"):
        opened(stage, lambda document: document["snapshots"][-1].pop("root-manifest"))

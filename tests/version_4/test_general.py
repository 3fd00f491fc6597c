"""Statements 1 to 8: what holds for every root and leaf, whatever the commit did."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.codecs.manifest.context import manifest_context
from icefloe.codecs.manifest.manifests import decode_leaf, decode_root, encode_leaf
from icefloe.errors import FormatError, InputError
from icefloe.model.entries import ContentType
from support.metadata_documents import metadata_json
from support.metadata_tree import Tree, data_file, planned_files, rows, vector
from support.tables import new_catalog
from version_4.scenes import (
    ADDED,
    DATA_MANIFEST,
    DELETE_MANIFEST,
    DELETED,
    EXISTING,
    TO_LEAVES,
    TO_ROOT,
    Row,
    Stage,
    tens,
)

MANIFESTS = (DATA_MANIFEST, DELETE_MANIFEST)

# The columns of every manifest: the ids of the proposal's main table, types and which of them are required.
ENTRY = """\
required group field_id=-1 schema {
  required int32 field_id=134 content_type;
  optional binary field_id=100 location (String);
  required binary field_id=101 file_format (String);
  optional int32 field_id=157 format_version;
  optional group field_id=5 version_info {
    required int32 field_id=0 status;
    optional int64 field_id=1 snapshot_id;
    optional int64 field_id=3 sequence_number;
    optional int64 field_id=4 file_sequence_number;
  }
  optional group field_id=147 deletion_vector {
    optional int64 field_id=144 offset;
    optional int64 field_id=145 size_in_bytes;
    optional binary field_id=146 inline_content;
  }
  required int32 field_id=148 partition_spec_id;
  optional int32 field_id=140 sort_order_id;
  required int64 field_id=103 record_count;
  optional int64 field_id=104 file_size_in_bytes;
@STATS@
  optional group field_id=521 manifest_stats {
    required int32 field_id=504 added_files_count;
    required int32 field_id=505 existing_files_count;
    required int32 field_id=506 deleted_files_count;
    required int64 field_id=512 added_rows_count;
    required int64 field_id=513 existing_rows_count;
    required int64 field_id=514 deleted_rows_count;
    required int64 field_id=516 min_sequence_number;
  }
  optional binary field_id=143 referenced_file (String);
  optional binary field_id=131 key_metadata;
  optional group field_id=132 split_offsets (List) {
    repeated group field_id=-1 list {
      required int64 field_id=133 element;
    }
  }
  optional group field_id=135 equality_ids (List) {
    repeated group field_id=-1 list {
      required int32 field_id=136 element;
    }
  }
  optional int64 field_id=142 first_row_id;
}
"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A history with every kind of row: files and vectors in the root and in leaves, hidden, replaced, flushed."""
    stage = Stage(tmp_path_factory.mktemp("history"), **TO_LEAVES)
    stage.append("D1", "D2", "D3")
    stage.table.delete("id in (10, 20, 30)")
    stage.settings(TO_ROOT)
    stage.append("D4")
    stage.remove("D2")
    stage.upsert(11, 41)
    stage.table.delete("id in (31, 42)")
    stage.overwrite("D4", "D5")
    stage.settings({"commit.root.max-data-files": "1", "commit.root.max-dvs": "0"})
    stage.append("D6")
    stage.append("D7", "D8")
    stage.remove("D3")
    stage.table.rewrite_manifests().execute()
    stage.append("D9")
    # 40 left with D4, which was overwritten as a whole; 11 was put back by the upsert, 41 as well
    assert stage.ids() == sorted({*tens(1, 5, 6, 7, 8, 9), 41} - {10})
    return stage


def roots(stage: Stage) -> list[list[Row]]:
    """The rows of all roots, oldest first."""
    return [stage.root_rows(back) for back in reversed(range(len(stage.snapshots)))]


def footer(path: Path) -> dict[bytes, bytes]:
    return dict(pq.ParquetFile(path).metadata.metadata)


def test_01_every_snapshot_has_exactly_one_root_and_no_manifest_list(stage: Stage) -> None:
    path = Path(stage.table.metadata_location.removeprefix("file://"))
    snapshots = metadata_json(path)["snapshots"]
    named = [snapshot["root-manifest"] for snapshot in snapshots]
    assert len(set(named)) == len(snapshots) == len(stage.snapshots) > 10
    assert all("manifest-list" not in snapshot and "manifests" not in snapshot for snapshot in snapshots)
    for back in range(len(named)):
        assert footer(stage.root_path(back)) == {b"content": b"root", b"format-version": b"4"}
    contents = [footer(file)[b"content"] for file in (stage.folder / "metadata").glob("*.parquet")]
    assert contents.count(b"root") == len(named)
    assert [file.name for file in stage.folder.rglob("*.avro")] == []


def schema_text(path: Path) -> str:
    return str(pq.ParquetFile(path).schema).split("\n", 1)[1]


def group(id_: int, name: str, *members: str) -> str:
    lines = [f"    optional group field_id={id_} {name} {{", *(f"      optional {member};" for member in members)]
    return "\n".join([*lines, "    }"])


def stats(*groups: str) -> str:
    text = "\n".join(["  optional group field_id=149 content_stats {", *groups, "  }"])
    return ENTRY.replace("@STATS@", text)


def without(text: str, *names: str) -> str:
    """The schema without optional fields that no row has."""
    for name in names:
        text, found = re.subn(rf"  optional group field_id=\d+ {name} .*?\n  \}}\n", "", text, flags=re.DOTALL)
        if found == 0:
            text, found = re.subn(rf"  optional \w+ field_id=\d+ {name}\b.*\n", "", text)
        assert found == 1, name
    return text


def measured(column: int, name: str, kind: str, *others: str, tight: bool) -> str:
    """The measures of a column; whether bounds are tight is not stated of manifests."""
    first = 10_000 + 200 * column
    bound = "{} field_id={} {}{}".format
    text = " (String)" if kind == "binary" else ""
    measures = [bound(kind, first + 1, "lower_bound", text), bound(kind, first + 2, "upper_bound", text)]
    measures += [f"boolean field_id={first + 3} tight_bounds"] if tight else []
    measures += [f"int64 field_id={first + 4} value_count", f"int64 field_id={first + 5} null_value_count"]
    return group(first, name, *measures, *others)


def columns(*, tight: bool) -> tuple[str, ...]:
    return (
        measured(1, "id", "int64", tight=tight),
        measured(2, "price", "double", "int64 field_id=10406 nan_value_count", tight=tight),
        measured(3, "note", "binary", "int32 field_id=10607 avg_value_size_in_bytes", tight=tight),
    )


def bucket(*measures: str) -> str:
    return group(10800, "id_bucket", *measures)


ON_FILES = (
    "int32 field_id=10801 lower_bound",
    "int64 field_id=10804 value_count",
    "int64 field_id=10805 null_value_count",
)
ON_MANIFESTS = (ON_FILES[0], "int32 field_id=10802 upper_bound", *ON_FILES[1:])


def test_02_roots_and_leaves_have_exactly_the_columns_of_the_proposal(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    table = catalog.create_table(
        "db.t",
        schema="id bigint, price double, note string",
        partition_by=["bucket(4, id)"],
        format_version=4,
        properties=TO_LEAVES,
    )
    ids = list(range(40))
    table.append(pa.table({"id": ids, "price": [None, *(i / 2 for i in ids[1:])], "note": [str(i) for i in ids]}))
    table.delete("id = 1 or id = 2")
    leaves: dict[bytes, Path] = {}
    for file in (tmp_path / "warehouse").rglob("metadata/*-m*.parquet"):
        leaves[footer(file)[b"content"]] = file
        assert set(footer(file)) == {b"content", b"format-version"}
    root = Path(table.snapshots[-1].root_location.removeprefix("file://"))
    found = {"root": root, "data": leaves[b"data"], "delete": leaves[b"delete"]}
    texts = {name: schema_text(path) for name, path in found.items()}
    unused = ("sort_order_id", "key_metadata", "equality_ids")
    of_files = ("format_version", "manifest_stats", *unused)
    of_deletes = ("split_offsets", "first_row_id")
    root_stats = stats(*columns(tight=False), bucket(*ON_MANIFESTS))
    data_stats = stats(*columns(tight=True), bucket(*ON_FILES))
    assert texts["root"] == without(root_stats, "deletion_vector", "split_offsets", *unused)
    assert texts["data"] == without(data_stats, "deletion_vector", "referenced_file", "first_row_id", *of_files)
    assert texts["delete"] == without(stats(bucket(*ON_FILES)), *of_deletes, *of_files)


def test_02_no_manifest_stores_a_schema_or_a_partition_spec(stage: Stage) -> None:
    footers = [footer(file) for file in (stage.folder / "metadata").glob("*.parquet")]
    assert {frozenset(keys) for keys in footers} == {frozenset({b"content", b"format-version"})}


def test_03_a_data_leaf_holds_data_files_and_a_delete_leaf_holds_deletes(stage: Stage) -> None:
    seen = set()
    for rows_of_root in roots(stage):
        for row in rows_of_root:
            if row["content_type"] in MANIFESTS:
                inside = {inner["content_type"] for inner in stage.leaf_rows(row)}
                content = footer(stage.folder / row["location"])[b"content"]
                assert (content, inside <= ({0} if content == b"data" else {1, 2})) == (content, True)
                assert content == (b"data" if row["content_type"] == DATA_MANIFEST else b"delete")
                seen.add(content)
    assert seen == {b"data", b"delete"}


def relabelled(data: bytes, content: str) -> bytes:
    """A manifest that calls itself something else."""
    file = pq.ParquetFile(pa.BufferReader(data))
    table = file.read()
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"format-version": "4", "content": content})
    return bytes(sink.getvalue().to_pybytes())


def tree_with_everything() -> Tree:
    """A root with a data leaf, a manifest vector on it, a data file and a data vector."""
    tree = Tree(properties={"commit.root.max-data-files": "1"})
    tree.commit(added=rows(data_file("D1"), data_file("D2"), data_file("D3")))
    tree.properties = {}
    tree.commit(removed=planned_files("D2"), added=rows(data_file("D4"), vector("DV1", "D1")))
    return tree


@pytest.mark.parametrize("content", [ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST])
@pytest.mark.parametrize("kind", range(6))
def test_03_any_other_kind_of_row_in_a_leaf_is_refused_when_it_is_written_and_when_it_is_read(
    kind: int, content: ContentType
) -> None:
    lists_deletes = content is ContentType.DELETE_MANIFEST
    tree = tree_with_everything()
    tree.properties = {"commit.root.max-dvs": "0"}
    tree.commit(added=rows(vector("DV2", "D3")))
    equality = {**data_file("E1"), "content_type": 2, "equality_ids": [1]}
    tree.properties = {}
    tree.commit(added=rows(equality, vector("DV3", "D4")))
    root = tree.root().entries
    wrong = root.filter(pa.array([value == kind for value in root["content_type"].to_pylist()])).slice(0, 1)
    assert wrong.num_rows == 1
    context = manifest_context(tree.metadata)
    stored = pq.ParquetFile(pa.BufferReader(tree.io.read(tree.snapshots[-1].root_location)))
    table = stored.read().filter(pa.array([v == kind for v in stored.read()["content_type"].to_pylist()])).slice(0, 1)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"format-version": "4", "content": "delete" if lists_deletes else "data"})
    data = sink.getvalue().to_pybytes()
    if kind in ((1, 2) if lists_deletes else (0,)):
        assert decode_leaf(data, context, where="leaf", content=content).num_rows == 1
        return
    with pytest.raises(InputError):
        encode_leaf(wrong, context, content=content, spec_id=0)
    with pytest.raises(FormatError, match="leaf"):
        decode_leaf(data, context, where="leaf", content=content)


def test_04_no_root_names_another_root(stage: Stage) -> None:
    own = {stage.stored_location(snapshot.root_location) for snapshot in stage.snapshots}
    named = {row[name] for rows_of_root in roots(stage) for row in rows_of_root for name in ("location",)}
    assert named.isdisjoint(own)
    leaves = {row["location"] for rows_of_root in roots(stage) for row in rows_of_root if row["manifest_stats"]}
    inside = {inner["location"] for leaf in leaves for inner in stage.leaf_rows({"location": leaf})}
    assert inside.isdisjoint(leaves | own)
    assert all(name.startswith("data/") for name in inside)


def test_04_a_root_in_the_place_of_a_leaf_is_refused() -> None:
    tree = tree_with_everything()
    context = manifest_context(tree.metadata)
    data = tree.io.read(tree.snapshots[-1].root_location)
    assert decode_root(data, context, where="root").num_rows == 4
    with pytest.raises(FormatError, match="content is 'root'"):
        decode_leaf(data, context, where="leaf", content=ContentType.DATA_MANIFEST)
    with pytest.raises(FormatError, match="content is 'data'"):
        decode_root(relabelled(data, "data"), context, where="root")


def identity(row: Row) -> tuple[Any, ...]:
    vector_ = row["deletion_vector"] or {}
    return row["content_type"], row["location"], row["referenced_file"], vector_.get("offset"), row["record_count"]


def test_05_deleted_rows_of_a_root_are_absent_from_the_next(stage: Stage) -> None:
    found = 0
    history = roots(stage)
    for before, after in pairwise(history):
        gone = {identity(row) for row in before if row["version_info"]["status"] == DELETED}
        assert gone.isdisjoint(identity(row) for row in after)
        found += len(gone)
    assert found >= 4  # a file, a data vector and two manifest vectors at least


def test_05_what_a_rolled_back_snapshot_deleted_is_there_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.append("D1", "D2")
    stage.remove("D1")
    stage.table.rollback(snapshot=stage.snapshots[0].snapshot_id)
    stage.append("D3")
    assert stage.root() == [
        "DATA D1 EXISTING by 1 at 1/1: 10 rows ids 0..",
        "DATA D2 EXISTING by 1 at 1/1: 10 rows ids 10..",
        "DATA D3 ADDED by 3 at 3/3: 10 rows ids 20..",
    ]
    assert stage.ids() == tens(1, 2, 3)


FIRST: dict[str, Callable[[Stage], object]] = {
    "append": lambda stage: stage.append("D1", "D2"),
    "upsert": lambda stage: stage.upsert(1, 2, 3),
    "append to a branch": lambda stage: stage.table.append(pa.table({"id": [1]}), branch="dev", create_branch=True),
    "staged append": lambda stage: stage.table.append(pa.table({"id": [1]}), wap_id="one"),
}


@pytest.mark.parametrize("limits", [TO_ROOT, TO_LEAVES], ids=["root", "leaves"])
@pytest.mark.parametrize("name", FIRST)
def test_06_the_first_snapshot_has_no_deleted_rows(tmp_path: Path, name: str, limits: dict[str, str]) -> None:
    stage = Stage(tmp_path, **limits)
    FIRST[name](stage)
    (snapshot,) = stage.snapshots
    assert snapshot.parent_id is None
    assert {row["version_info"]["status"] for row in stage.root_rows()} == {ADDED}


def test_06_a_transaction_that_adds_and_removes_leaves_no_deleted_rows_in_a_first_snapshot(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    with stage.table.transaction() as tx:
        tx.append(pa.table({"id": [1, 2, 3]}))
        tx.append(pa.table({"id": [4]}))
        tx.delete("id in (2, 4)")
    (snapshot,) = stage.snapshots
    assert snapshot.parent_id is None
    assert {row["version_info"]["status"] for row in stage.root_rows()} == {ADDED}
    assert stage.ids() == [1, 3]


def known(value: Any) -> Any:
    """A stored value without what is null in it: a file may lack a column that another one has."""
    if not isinstance(value, dict):
        return value
    inner = {name: known(member) for name, member in value.items()}
    return {name: member for name, member in inner.items() if member is not None and member != {}}


def test_07_rows_carried_over_are_existing_and_otherwise_unchanged(stage: Stage) -> None:
    carried = 0
    history = roots(stage)
    for before, after in pairwise(history):
        live = {identity(row): row for row in before if row["version_info"]["status"] != DELETED}
        for row in after:
            old = live.get(identity(row))
            if old is None or row["version_info"]["status"] == DELETED:
                continue
            carried += 1
            assert row["version_info"]["status"] == EXISTING
            assert known({**row, "version_info": {**row["version_info"], "status": 0}}) == known(
                {**old, "version_info": {**old["version_info"], "status": 0}}
            )
    assert carried > 20


def test_07_a_live_row_is_new_in_a_root_only_as_added_or_as_a_leaf_that_this_snapshot_wrote(stage: Stage) -> None:
    history, leaves = roots(stage), 0
    for number, (before, after) in enumerate(pairwise(history), 1):
        old = {identity(row) for row in before if row["version_info"]["status"] != DELETED}
        for row in after:
            if identity(row) in old or row["version_info"]["status"] == ADDED:
                continue
            leaves += 1
            assert row["content_type"] in MANIFESTS
            assert row["version_info"]["status"] == EXISTING
            assert row["version_info"]["snapshot_id"] == stage.snapshots[number].snapshot_id
    assert leaves > 0


def test_07_a_leaf_is_added_only_if_it_has_news(stage: Stage) -> None:
    leaves = 0
    for rows_of_root in roots(stage):
        for row in rows_of_root:
            if row["content_type"] in MANIFESTS and row["version_info"]["status"] == ADDED:
                leaves += 1
                assert {inner["version_info"]["status"] for inner in stage.leaf_rows(row)} == {ADDED}
                assert row["manifest_stats"]["added_files_count"] == row["record_count"]
    assert leaves > 0


def test_08_only_the_three_statuses_of_the_proposal_are_written(stage: Stage) -> None:
    found = set()
    for file in (stage.folder / "metadata").glob("*.parquet"):
        found |= {row["version_info"]["status"] for row in pq.ParquetFile(file).read().to_pylist()}
    assert found == {EXISTING, ADDED, DELETED}

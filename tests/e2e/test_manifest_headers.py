"""Manifests whose file metadata is incomplete or wrong: the manifest list says which spec and which kind they are.

Version 1 does not require ``partition-spec-id`` in the metadata of a manifest. A manifest without it was read as one of
spec 0, and filters lost rows. Delete manifests without ``content`` were refused.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from e2e.test_evolved_tables import path_of, put
from e2e.test_reused_partition_ids import FILTERS, LAYOUTS, check, reused, rows
from icefloe.commit.loop import commit
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.deletes.equality_writer import write_equality_deletes
from icefloe.errors import FormatError
from icefloe.model.entries import MANIFESTS
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import leaves_of, read_root
from support.tables import append_without, new_catalog, sorted_rows

Changes = Mapping[str, str | None]  # new values of keys; None removes a key


def write_again(path: Path, records: list[Any] | None = None, changes: Changes | None = None) -> None:
    """Write an Avro file again, with other records or changed file metadata."""
    reader = fastavro.reader(io.BytesIO(path.read_bytes()))
    stored = list(reader)
    header = {**reader.metadata, **({} if changes is None else changes)}
    kept = {k: v for k, v in header.items() if v is not None and k not in ("avro.schema", "avro.codec")}
    changed = io.BytesIO()
    schema = json.loads(reader.metadata["avro.schema"])
    fastavro.writer(changed, schema, stored if records is None else records, metadata=kept)
    path.write_bytes(changed.getvalue())


def change_headers(table: Table, changes: Changes, *, spec_id: int | None = None, delete: bool | None = None) -> int:
    """Write manifests of the current snapshot again with changed file metadata; how many there were."""
    base = pointer_of(table).load()
    root = read_root(base.store, base.metadata.current_snapshot)
    leaves = leaves_of(root.rows(*MANIFESTS))
    chosen = [leaf for leaf in leaves if spec_id in (None, leaf.spec_id) and delete in (None, not leaf.is_data)]
    for leaf in chosen:
        write_again(path_of(leaf.location), changes=changes)
    sizes = {leaf.location: path_of(leaf.location).stat().st_size for leaf in chosen}

    def resize(row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "manifest_length": sizes.get(row["manifest_path"], row["manifest_length"])}

    change_lists(table, resize)
    return len(chosen)


def change_lists(table: Table, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change every row of every manifest list of a table."""
    for snapshot in pointer_of(table).load().metadata.snapshots:
        path = path_of(str(snapshot.root))
        write_again(path, [change(row) for row in fastavro.reader(io.BytesIO(path.read_bytes()))])


def reopened(table: Table) -> Table:
    return new_catalog(path_of(table.location).parents[2]).load_table("db.t")


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "header"), list(product(LAYOUTS, [None, "0", "7"])))
def test_the_list_says_the_spec_of_a_manifest_whatever_its_header_says(tmp_path, layout, header):
    table = reused(tmp_path, layout)
    assert change_headers(table, {"partition-spec-id": header}, spec_id=1) == 1

    table = reopened(table)
    check(table)
    table.append(rows(2))
    table.delete("b = 'x'")
    check(table)
    table.rewrite_manifests().execute()
    check(table)
    assert table.scan().to_arrow().num_rows == 24 - 6  # "x" is in two of eight rows


@pytest.mark.parametrize("version", [1, 2])
def test_partition_values_that_no_file_holds_are_found(tmp_path, version):
    """Files taken over from Hive: the partition column is in the tuple only."""
    table = new_catalog(tmp_path).create_table("db.t", schema="id int, p int", format_version=version)
    with table.update_partitioning() as update:
        update.add("p")
    numbers = pa.array([1, 2, 3], pa.int32())
    append_without(table, pa.table({"id": numbers, "p": numbers}), "p")
    change_headers(table, {"partition-spec-id": None})

    assert sorted_rows(reopened(table).scan().to_arrow()) == [(1, 1), (2, 2), (3, 3)]
    assert sorted_rows(reopened(table).scan("p = 2").to_arrow()) == [(2, 2)]


def test_a_tuple_that_cannot_be_of_the_listed_spec_is_refused(tmp_path):
    """Both specs use field id 1000; the list was changed to name the other one."""
    table = reused(tmp_path, "one type")
    change_lists(table, lambda row: {**row, "partition_spec_id": 1})

    with pytest.raises(
        FormatError, match=r"-m0\.avro: the partition tuple has the fields \[a \(1000\)\].*spec 1.*n \(1000\)"
    ):
        reopened(table).scan().to_arrow()


def test_a_tuple_without_a_field_of_the_listed_spec_is_refused(tmp_path):
    table = new_catalog(tmp_path).create_table("db.t", schema="id int, p int", format_version=2)
    table.append(pa.table({"id": pa.array([1], pa.int32()), "p": pa.array([1], pa.int32())}))
    with table.update_partitioning() as update:
        update.add("p")
    change_lists(table, lambda row: {**row, "partition_spec_id": 1, "partitions": None})
    change_headers(table, {"partition-spec-id": None})

    with pytest.raises(FormatError, match=r"partition has no field 'p' \(1000\)"):
        reopened(table).scan().to_arrow()


@pytest.mark.parametrize("content", [None, "data"])
def test_the_list_says_that_a_manifest_holds_deletes(tmp_path, content):
    table = new_catalog(tmp_path).create_table("db.t", schema="id int, p int", format_version=2)
    numbers = pa.array(range(9), pa.int32())
    table.append(pa.table({"id": numbers, "p": numbers}))
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.delete("id = 3")
    keys = pa.table({"id": pa.array([5], pa.int32())})
    deletes = write_equality_deletes(pointer_of(table).io, keys, table.schema.fields[:1], metadata=table.metadata)
    commit(pointer_of(table), RowDelta(changes=FileChanges(added=deletes), read=table.metadata.current_snapshot))
    assert change_headers(table, {"content": content}, delete=True) == 2

    table = reopened(table)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 4, 6, 7, 8]
    table.delete("id = 8")
    assert check_table(table) == []
    table.rewrite_manifests().execute()
    assert sorted(reopened(table).scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 4, 6, 7]


def test_data_files_in_a_manifest_that_the_list_calls_a_delete_manifest_are_refused(tmp_path):
    table = new_catalog(tmp_path).create_table("db.t", schema="id int", format_version=2)
    table.append(pa.table({"id": pa.array([1], pa.int32())}))
    first = table.metadata.current_snapshot
    table.append(pa.table({"id": pa.array([2], pa.int32())}))
    last = table.metadata.current_snapshot
    change_lists(table, lambda row: {**row, "content": int(row["sequence_number"] == last.sequence_number)})
    assert first.sequence_number < last.sequence_number

    with pytest.raises(FormatError, match=r"row 0: content 0 .* manifest of deletes"):
        reopened(table).scan().to_arrow()


def test_a_snapshot_without_a_list_takes_the_spec_from_the_header(tmp_path):
    table = reused(tmp_path, "two types")
    base = pointer_of(table).load()
    root = read_root(base.store, base.metadata.current_snapshot)
    locations = [leaf.location for leaf in leaves_of(root.rows(*MANIFESTS))]

    def without_list(document):
        snapshots = [{**s, "manifests": locations} for s in document["snapshots"]]
        return {**document, "snapshots": [{k: v for k, v in s.items() if k != "manifest-list"} for s in snapshots]}

    put(table, without_list)
    table = reopened(table)
    whole = table.scan().to_arrow()
    assert whole.num_rows == 16
    for where, holds in FILTERS.items():
        expected = pa.Table.from_pylist([row for row in whole.to_pylist() if holds(row)], whole.schema)
        assert sorted_rows(table.scan(where).to_arrow()) == sorted_rows(expected), where

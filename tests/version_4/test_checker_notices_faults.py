"""The checker of the conformance kit names the right rule for deliberate faults of our writer, one at a time.

A fault is put into one function of the writer. Then a history runs until the end, or until the library itself notices
the fault. The checks that the library makes before it writes entries are off where they would prevent the fault.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

from icefloe.codecs.manifest import parquet
from icefloe.commit import stage as commit_stage
from icefloe.commit.operations.append import Append
from icefloe.errors import IcefloeError
from icefloe.model.entries import ContentType, Status, choose, live, of_type, put
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.tree import apply_changes, compaction, leaf_writer, manifest_vectors, staging
from icefloe.tree.find_entries import FoundEntries
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.new_snapshot import RowIds
from support import entry_tables
from support.conformance import check_v4, nonconformities_in, used_tables
from version_4.scenes import TO_LEAVES, TO_ROOT, Stage

Fault = Callable[[pytest.MonkeyPatch], None]
FAULTS: dict[str, tuple[str, Fault]] = {}


def fault(rule: str) -> Callable[[Fault], Fault]:
    """Add a fault that must be found as a broken rule."""

    def add(function: Fault) -> Fault:
        FAULTS[function.__name__] = (rule, function)
        return function

    return add


def history(folder: Path) -> Path:
    """Appends, removals and row deltas in the root and in leaves, a flush and a merge; the folder of the table."""
    stage = Stage(folder, **{**TO_LEAVES, "commit.leaf.max-dead-percent": "1000"})
    with contextlib.suppress(IcefloeError):
        stage.append("D1", "D2", "D3")
        stage.table.delete("id in (10, 20, 30)")
        stage.settings(TO_ROOT)
        stage.append("D4", "D5")
        stage.remove("D1")
        stage.remove("D2")
        stage.table.delete("id = 41")
        stage.table.delete("id = 42")
        stage.append("D6")
        stage.remove("D4")
        stage.settings({"commit.root.max-data-files": "1"})
        stage.append("D7")
        stage.settings({"commit.manifest.min-count-to-merge": "2"})
        stage.append("D8")
    return stage.folder


def rules_found(folder: Path) -> set[str]:
    return {finding.rule for finding in check_v4.check(folder)[0]}


def test_without_a_fault_the_checker_finds_nothing(tmp_path: Path) -> None:
    assert rules_found(history(tmp_path)) == set()


def test_there_are_at_least_twenty_faults() -> None:
    assert len(FAULTS) >= 20


def around(patch: pytest.MonkeyPatch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Replace a function by one that gets the original as its first argument."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **options: change(original, *args, **options))


def unchecked(patch: pytest.MonkeyPatch) -> None:
    """Turn off the checks of entries before they are written, and after they are read."""
    patch.setattr(parquet, "check_entries", lambda *args, **options: None)


def on_rows_of_root(patch: pytest.MonkeyPatch, change: Callable[[pa.Table], pa.Table]) -> None:
    around(patch, commit_stage, "encode_root", lambda encode, rows, *args, **o: encode(change(rows), *args, **o))


def on_manifest_rows(patch: pytest.MonkeyPatch, change: Callable[[pa.Table], pa.Table]) -> None:
    around(patch, leaf_writer, "manifest_row", lambda make, *args, **o: change(make(*args, **o)))


def add_one(name: str) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: put(rows, name, pc.add(rows[name], 1))


# -- entries that are carried over


@fault("carried-status")
def carried_rows_keep_their_status(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(apply_changes, "_carry_over", lambda root: choose(root.entries, live(root.entries)))


@fault("deleted-entry")
def deleted_rows_are_carried_over(patch: pytest.MonkeyPatch) -> None:
    def change(carry: Callable[..., pa.Table], root: Any) -> pa.Table:
        return pa.concat_tables([carry(root), choose(root.entries, pc.invert(live(root.entries)))])

    around(patch, apply_changes, "_carry_over", change)


@fault("carried-values")
def first_row_ids_of_carried_rows_are_assigned_again(patch: pytest.MonkeyPatch) -> None:
    around(patch, apply_changes, "_carry_over", lambda carry, root: add_one("first_row_id")(carry(root)))


@fault("carried-values")
def carried_leaves_get_the_counts_of_their_live_entries(patch: pytest.MonkeyPatch) -> None:
    def change(carry: Callable[..., pa.Table], root: Any) -> pa.Table:
        rows = carry(root)
        return put(rows, "added_files_count", pc.subtract(rows["added_files_count"], pa.scalar(1, pa.int32())))

    around(patch, apply_changes, "_carry_over", change)


@fault("sequence-inherited")
def sequence_numbers_of_carried_rows_are_missing(patch: pytest.MonkeyPatch) -> None:
    unchecked(patch)
    nothing = pa.scalar(None, pa.int64())
    on_rows_of_root(patch, lambda rows: put(rows, "sequence_number", nothing.as_py()))


# -- removals


@fault("deleted-entry")
def a_removed_entry_keeps_the_snapshot_that_added_it(patch: pytest.MonkeyPatch) -> None:
    def change(mark: Callable[..., pa.Table], rows: pa.Table, *args: Any) -> pa.Table:
        return put(mark(rows, *args), "snapshot_id", rows["snapshot_id"])

    around(patch, apply_changes, "mark_deleted", change)


@fault("changes")
def a_removed_entry_is_left_out(patch: pytest.MonkeyPatch) -> None:
    around(patch, apply_changes, "mark_deleted", lambda mark, *args: choose(mark(*args), live(mark(*args))))


def forget_vectors(find: Callable[..., FoundEntries], *args: Any) -> FoundEntries:
    return FoundEntries() if "referenced_file" in args else find(*args)


@fault("orphan-vector")
def a_file_is_removed_without_its_deletion_vector(patch: pytest.MonkeyPatch) -> None:
    around(patch, apply_changes, "find_entries", forget_vectors)


@fault("one-data-vector")
def a_deletion_vector_is_added_beside_the_old_one(patch: pytest.MonkeyPatch) -> None:
    around(patch, apply_changes, "find_entries", forget_vectors)


@fault("one-manifest-vector")
def a_leaf_gets_a_second_vector(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(manifest_vectors, "mark_deleted", lambda rows, *args: rows)


@fault("changes")
def the_old_vector_of_a_leaf_is_not_kept(patch: pytest.MonkeyPatch) -> None:
    around(patch, manifest_vectors, "mark_deleted", lambda mark, *args: choose(mark(*args), live(mark(*args))))


@fault("vector-grows")
def a_new_vector_lacks_the_old_positions(patch: pytest.MonkeyPatch) -> None:
    def change(delete: Callable[..., pa.Table], store: Any, rows: Any, dead: Any, *args: Any) -> pa.Table:
        return delete(store, rows, {}, *args)

    around(patch, apply_changes, "delete_leaf_rows", change)


@fault("vector-position")
def a_vector_has_positions_beyond_its_leaf(patch: pytest.MonkeyPatch) -> None:
    around(patch, manifest_vectors, "encode_dv", lambda encode, found: encode(BitMap64(n + 100 for n in found)))


@fault("vector-bytes")
def the_checksum_of_an_inline_vector_is_wrong(patch: pytest.MonkeyPatch) -> None:
    def change(encode: Callable[..., bytes], positions: BitMap64) -> bytes:
        blob = encode(positions)
        return blob[:-1] + bytes([blob[-1] ^ 1])

    around(patch, manifest_vectors, "encode_dv", change)


@fault("vector-cardinality")
def the_record_count_of_a_vector_is_not_its_cardinality(patch: pytest.MonkeyPatch) -> None:
    def change(make: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
        row = make(*args)
        return {**row, "record_count": row["record_count"] + 1}

    around(patch, manifest_vectors, "_vector_row", change)


# -- leaves


@fault("leaf-rows")
def the_record_count_of_a_leaf_is_wrong(patch: pytest.MonkeyPatch) -> None:
    on_manifest_rows(patch, add_one("record_count"))


@fault("leaf-counts")
def the_row_count_of_a_leaf_is_wrong(patch: pytest.MonkeyPatch) -> None:
    on_manifest_rows(patch, add_one("added_rows_count"))


@fault("leaf-counts")
def the_least_sequence_number_of_a_leaf_is_wrong(patch: pytest.MonkeyPatch) -> None:
    on_manifest_rows(patch, add_one("min_sequence_number"))


@fault("leaf-statistics")
def the_aggregated_lower_bound_is_too_high(patch: pytest.MonkeyPatch) -> None:
    def change(row: pa.Table) -> pa.Table:
        return add_one("lower_bound:1")(row) if "lower_bound:1" in row.column_names else row

    on_manifest_rows(patch, change)


@fault("sequence-of-manifest")
def the_sequence_numbers_of_a_leaf_differ(patch: pytest.MonkeyPatch) -> None:
    unchecked(patch)
    on_manifest_rows(patch, add_one("file_sequence_number"))


@fault("content-type")
def a_leaf_lists_manifests(patch: pytest.MonkeyPatch) -> None:
    unchecked(patch)

    def change(encode: Callable[..., bytes], rows: pa.Table, *args: Any, **options: Any) -> bytes:
        return encode(put(rows, "content_type", int(ContentType.DATA_MANIFEST)), *args, **options)

    around(patch, staging, "encode_leaf", change)


@fault("compaction")
def a_new_file_is_flushed_with_older_ones(patch: pytest.MonkeyPatch) -> None:
    def of_status(original: Any, self: Any, status: Status) -> Any:
        found = original(self, status)
        return found | original(self, Status.ADDED) if status is Status.EXISTING else found

    around(patch, compaction._RootRows, "of_status", of_status)
    patch.setattr(LeafWriter, "_check_unchanged", lambda self, rows: None)


@fault("compaction")
def merged_leaves_contain_removed_entries(patch: pytest.MonkeyPatch) -> None:
    def change(read: Callable[..., Any], store: Any, root: Any, leaves: Any, *args: Any) -> Any:
        return read(store, replace(root, dead=manifest_vectors.ManifestVectors.none()), leaves, *args)

    around(patch, compaction, "read_live_leaves", change)


@fault("affinity")
def the_affinity_names_a_leaf_that_was_merged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compaction, "with_current_affinity", lambda rows, replaced: rows)


# -- files and metadata


@fault("location")
def a_relative_location_leaves_the_table(patch: pytest.MonkeyPatch) -> None:
    def change(relativized: Callable[..., pa.Array], column: pa.Array, location: str) -> pa.Array:
        return pc.binary_join_element_wise("../t", relativized(column, location), "/")

    around(patch, parquet, "relativized", change)


@fault("manifest-keys")
def manifests_state_another_format_version(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(parquet, "FORMAT_VERSION", "3")


@fault("manifest-keys")
def manifests_do_not_state_their_content(patch: pytest.MonkeyPatch) -> None:
    def change(add: Callable[..., None], writer: Any, keys: dict[str, str]) -> None:
        add(writer, {key: value for key, value in keys.items() if key != "content"})

    around(patch, pq.ParquetWriter, "add_key_value_metadata", change)


@fault("field-ids")
def a_column_has_another_field_id(patch: pytest.MonkeyPatch) -> None:
    def change(write: Callable[..., bytes], table: pa.Table, layout: Any, content: str) -> bytes:
        index = table.schema.get_field_index("record_count")
        field = table.schema.field(index).with_metadata({b"PARQUET:field_id": b"9103"})
        return write(table.cast(table.schema.set(index, field)), layout, content)

    around(patch, parquet, "_write", change)


@fault("row-id-range")
def the_next_row_id_is_not_advanced(patch: pytest.MonkeyPatch) -> None:
    def change(add: Callable[..., TableMetadata], self: TableMetadata, *args: Any, **options: Any) -> TableMetadata:
        return replace(add(self, *args, **options), next_row_id=self.next_row_id)

    around(patch, TableMetadata, "with_snapshot", change)


@fault("row-ids")
def two_files_get_the_same_row_ids(patch: pytest.MonkeyPatch) -> None:
    around(patch, RowIds, "take_each", lambda take, self, counts: take(self, counts * 0))


@fault("added-entry")
def a_new_entry_has_the_sequence_number_of_an_older_snapshot(patch: pytest.MonkeyPatch) -> None:
    def change(rows: pa.Table) -> pa.Table:
        new = pc.and_(of_type(rows, ContentType.DATA), pc.equal(rows["status"], int(Status.ADDED)))
        return put(rows, "file_sequence_number", pc.if_else(new, 0, rows["file_sequence_number"]))

    on_rows_of_root(patch, change)


@pytest.mark.broken_tables
@pytest.mark.parametrize("name", FAULTS)
def test_the_checker_names_the_rule_that_a_fault_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    rule, break_writer = FAULTS[name]
    break_writer(monkeypatch)
    assert rule in rules_found(history(tmp_path))


@pytest.mark.broken_tables
@pytest.mark.parametrize("is_broken", [True, False])
def test_the_check_after_each_test_notices_a_fault_in_a_table_in_memory(
    monkeypatch: pytest.MonkeyPatch, is_broken: bool
) -> None:
    with used_tables() as used:
        world = entry_tables.new_world(4)
        if is_broken:
            two_files_get_the_same_row_ids(monkeypatch)
        world.commit(Append(added=entry_tables.rows(entry_tables.data("a"), entry_tables.data("b"))))
    findings = list(used.nonconformities())
    assert any("row-ids" in finding for finding in findings) if is_broken else findings == []


@pytest.mark.broken_tables
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_the_check_after_each_test_notices_a_fault_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str
) -> None:
    # Scar: compressed metadata was taken for half of a file, and its table was not judged.
    two_files_get_the_same_row_ids(monkeypatch)
    Stage(tmp_path, **{"write.metadata.compression-codec": codec}).append("D1", "D2")
    assert any("row-ids" in finding for finding in nonconformities_in(tmp_path))

"""What manifest lists of icefloe tell of partitions, in histories of appends, deletes and rewritten manifests.

A list told of live files alone, so that a program that looks by it for removed files, as Apache Iceberg does before it
commits, passed over the manifests that say so.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import AlwaysTrue, EqualTo, IsNull
from pyiceberg.expressions.visitors import manifest_evaluator
from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table

from support.tables import new_catalog

VERSIONS = (1, 2, 3)
LARGE = 50  # rows of the partition null, more than all others have


def table_of(folder: Path, version: int, **properties: str):
    table = new_catalog(folder).create_table(
        "db.t", schema="p int, x bigint", partition_by=["p"], format_version=version, properties=properties
    )
    values = [1, 5, 7, *([None] * LARGE)]
    table.append(pa.table({"p": pa.array(values, pa.int32()), "x": pa.array(range(len(values)), pa.int64())}))
    return table


def theirs(folder: Path) -> Table:
    return SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}").load_table("db.t")


def check(folder: Path) -> list[ManifestFile]:
    """Every manifest's summary is that of all its entries, and none is passed over that has a value."""
    other = theirs(folder)
    snapshot = other.current_snapshot()
    assert snapshot is not None
    manifests = snapshot.manifests(other.io)
    for manifest in manifests:
        entries = manifest.fetch_manifest_entry(other.io, discard_deleted=False)
        values = [entry.data_file.partition[0] for entry in entries]
        plain = [value.to_bytes(4, "little") for value in sorted(v for v in values if v is not None)]
        (summary,) = manifest.partitions or []
        assert summary.contains_null == (None in values)
        assert [summary.lower_bound, summary.upper_bound] == ([plain[0], plain[-1]] if len(plain) > 0 else [None, None])
        for value in set(values):
            of_value = IsNull("p") if value is None else EqualTo("p", value)
            assert manifest_evaluator(other.spec(), other.schema(), of_value, True)(manifest), value
    return manifests


@pytest.mark.parametrize("version", VERSIONS)
def test_lists_tell_of_the_partitions_of_removed_files(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, version)
    left = {1, 5, 7, None}
    for gone in (None, 5, 1, 7):
        table.delete("p is null" if gone is None else f"p = {gone}")
        check(tmp_path)
        left -= {gone}
        for value in (1, 5, 7):  # in this process the list is not read again, and must not be taken for all null
            assert table.scan(f"p = {value}").to_arrow().num_rows == (1 if value in left else 0)
    (last,) = check(tmp_path)
    assert (last.added_files_count, last.existing_files_count, last.deleted_files_count) == (0, 0, 1)
    table.append(pa.table({"p": pa.array([3], pa.int32()), "x": pa.array([0], pa.int64())}))
    assert len(check(tmp_path)) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_merged_and_rewritten_manifests_tell_it_too(tmp_path: Path, version: int) -> None:
    table = table_of(tmp_path, version, **{"commit.manifest.min-count-to-merge": "2"})
    table.append(pa.table({"p": pa.array([2, 9], pa.int32()), "x": pa.array([0, 0], pa.int64())}))
    assert len(check(tmp_path)) == 1
    table.overwrite(pa.table({"p": pa.array([4], pa.int32()), "x": pa.array([0], pa.int64())}), "p = 9 or p is null")
    (merged,) = check(tmp_path)
    assert (merged.added_files_count, merged.deleted_files_count) == (1, 2)
    table.rewrite_manifests().execute()
    (whole,) = check(tmp_path)
    assert whole.deleted_files_count == 0
    assert theirs(tmp_path).scan(AlwaysTrue()).to_arrow().num_rows == table.scan().to_arrow().num_rows == 5

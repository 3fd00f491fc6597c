"""Tables that Apache Iceberg 1.12 writes with format-version 4: the layout of version 3 with manifests in Parquet."""

from __future__ import annotations

import pytest

from icefloe.codecs.json.table_metadata import decode_metadata
from icefloe.codecs.manifest.context import manifest_context
from icefloe.io.local import LocalFileIO
from icefloe.model.entries import ContentType, concat
from icefloe.tree.root import read_live_leaf, read_root
from icefloe.tree.store import ManifestCache, ManifestStore
from interop.test_programs_read_icefloe import events

pytestmark = pytest.mark.interop

NAME = "lake.theirs.interim"
DDL = "id bigint not null, ts timestamp, city string, amount decimal(9,2), score double, day date, ok boolean"


def test_files_statistics_and_deletes_of_the_interim_version_are_read(spark, folder):
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.theirs")
    spark.sql(
        f"CREATE TABLE {NAME} ({DDL}) USING iceberg PARTITIONED BY (days(ts), bucket(4, id), city)"
        f" LOCATION 'file://{folder}/warehouse/theirs/interim'"
        " TBLPROPERTIES ('format-version' = '4', 'write.delete.mode' = 'merge-on-read')"
    )
    spark.createDataFrame(events(range(40))).coalesce(1).writeTo(NAME).append()
    spark.createDataFrame(events(range(40, 60))).coalesce(1).writeTo(NAME).append()
    spark.sql(f"DELETE FROM {NAME} WHERE id = 3 OR id = 50")
    log = spark.sql(f"SELECT file FROM {NAME}.metadata_log_entries ORDER BY timestamp, file").collect()
    location = log[-1].file
    io = LocalFileIO()
    metadata = decode_metadata(io.read(location), where=location)
    store = ManifestStore(io, manifest_context(metadata), ManifestCache())
    root = read_root(store, metadata.current_snapshot)
    kinds = (ContentType.DATA_MANIFEST, ContentType.DELETE_MANIFEST)
    assert all(leaf.location.endswith(".parquet") for leaf in root.leaves(*kinds))
    rows = concat([read_live_leaf(store, root, leaf) for leaf in root.leaves(*kinds)]).to_pylist()
    theirs = spark.sql(
        f"SELECT content, file_path, record_count, file_size_in_bytes, first_row_id, content_offset,"
        f" lower_bounds[1] AS lower, partition.city AS city FROM {NAME}.files"
    ).collect()
    ours = {
        (
            row["content_type"],
            row["location"],
            row["record_count"],
            row["file_size_in_bytes"],
            row["first_row_id"],
            row["dv_offset"],
            row["lower_bound:1"],
            row["lower_bound:p1002"],
        )
        for row in rows
    }
    assert ours == {
        (
            row.content,
            row.file_path,
            row.record_count,
            row.file_size_in_bytes,
            row.first_row_id,
            row.content_offset,
            None if row.lower is None else int.from_bytes(row.lower, "little", signed=True),
            row.city,
        )
        for row in theirs
    }
    assert {row["content_type"] for row in rows} == {int(ContentType.DATA), int(ContentType.POSITION_DELETES)}

"""Tables with a partition transform of a later specification: they are read and dropped, and not written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import icefloe

pytestmark = pytest.mark.broken_tables  # their partition values have a type that is not known


def with_unknown_transform(demo: icefloe.Catalog, name: str) -> Path:
    """A table whose metadata file names a transform that does not exist; its folder."""
    t = demo.create_table(name, schema="id bigint, city string", partition_by=["bucket(4, id)"])
    t.append(pa.table({"id": [1, 2], "city": ["Oslo", "Rome"]}))
    file = Path(t.metadata_location.removeprefix("file://"))
    file.write_text(file.read_text().replace("bucket[4]", "zero"))
    return file.parents[1]


def test_a_table_with_an_unknown_partition_transform_is_read_and_dropped(
    spark: SparkSession, demo: icefloe.Catalog
) -> None:
    # Loading such a table failed, as it has partition fields but no _partition: it could not even be dropped.
    kept, purged = (with_unknown_transform(demo, name) for name in ("db.t", "db.u"))
    assert sorted(row.id for row in spark.table("demo.db.t").where("id > 0").collect()) == [1, 2]
    assert [row[0] for row in spark.sql("SELECT DISTINCT _spec_id FROM demo.db.t").collect()] == [0]
    with pytest.raises(PySparkException, match="cannot write partition field 'id_bucket': zero of column 'id'"):
        spark.sql("INSERT INTO demo.db.t VALUES (3, 'Bern')")
    spark.sql("DROP TABLE demo.db.t")
    spark.sql("DROP TABLE demo.db.u PURGE")
    assert not spark.catalog.tableExists("demo.db.t")
    assert [len(list(folder.rglob("*.parquet"))) > 0 for folder in (kept, purged)] == [True, False]

"""Partitions, sort orders and distributions of icefloe's Spark engine, checked by Apache Iceberg in the same Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from icefloe.table.catalog import Catalog
from interop.iceberg_reads import CATALOG, check_every_snapshot, check_head
from interop.test_spark_engine_rows import FLAT, SCHEMA, frame

pytestmark = pytest.mark.interop
TRANSFORMS = {  # by transform of icefloe: the partition field and the function of Apache Iceberg that computes it
    "city": ("city", "city"),
    "ok": ("ok", "ok"),
    "year(ts)": ("ts_year", "years(ts)"),
    "month(day)": ("day_month", "months(day)"),
    "day(at)": ("at_day", "days(at)"),
    "hour(ts)": ("ts_hour", "hours(ts)"),
    "truncate(2, city)": ("city_trunc", "truncate(2, city)"),
    "truncate(10, price)": ("price_trunc", "truncate(10, price)"),
    "truncate(7, n)": ("n_trunc", "truncate(7, n)"),
    "truncate(1, raw)": ("raw_trunc", "truncate(1, raw)"),
    "bucket(4, id)": ("id_bucket", "bucket(4, id)"),
    "bucket(4, city)": ("city_bucket", "bucket(4, city)"),
    "bucket(4, price)": ("price_bucket", "bucket(4, price)"),
    "bucket(4, day)": ("day_bucket", "bucket(4, day)"),
    "bucket(4, ts)": ("ts_bucket", "bucket(4, ts)"),
    "bucket(4, raw)": ("raw_bucket", "bucket(4, raw)"),
}
LAYOUTS = {  # version, file format, distribution, sort order, transforms
    "version 1": (1, "parquet", "none", (), ("city", "year(ts)", "bucket(4, city)")),
    "version 1, sorted": (1, "orc", "range", ("price desc", "id"), ("truncate(7, n)",)),
    "version 2": (2, "parquet", "hash", (), ("month(day)", "truncate(2, city)", "bucket(4, price)")),
    "version 2, sorted": (2, "avro", "hash", ("bucket(4, id)", "city"), ("ok", "bucket(4, day)", "truncate(1, raw)")),
    "version 3": (3, "parquet", "range", (), ("hour(ts)", "truncate(10, price)")),
    "version 3, sorted, lists": (
        3,
        "parquet",
        "range",
        ("day", "n desc"),
        ("day(at)", "bucket(4, raw)", "bucket(4, ts)"),
    ),
    "version 3, unpartitioned": (3, "orc", "range", ("city", "id desc"), ()),
    "version 2, buckets": (2, "parquet", "hash", (), ("bucket(4, id)",)),
}
FILTERS = (
    "city = 'Oslo'",
    "ts >= timestamp '1970-01-01 00:00:00Z' and day > date '1970-01-05'",
    "n in (-3, 4) or raw is null",
    "price < 3 and ok",
    "id = 17",
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_apache_iceberg_finds_the_rows_of_every_layout(layout: str, catalog: Catalog, spark: SparkSession) -> None:
    version, file_format, distribution, order, transforms = LAYOUTS[layout]
    name = f"db.spark_layout_{list(LAYOUTS).index(layout)}"
    table = catalog.create_table(
        name,
        schema=FLAT if file_format == "parquet" and "lists" not in layout else SCHEMA,
        partition_by=transforms,
        format_version=version,
        properties={"write.format.default": file_format, "write.distribution-mode": distribution},
    )
    if len(order) > 0:
        table.set_sort_order(*order)
    table.append(frame(spark, table, range(40)).repartition(2))
    table.append(frame(spark, table, range(40, 60)))
    table.overwrite_partitions(frame(spark, table, range(100, 104)))
    table.overwrite(frame(spark, table, [50, 51]), where="id >= 45 and id < 52")
    check_every_snapshot(spark, table)
    check_head(spark, table, FILTERS)
    for transform in transforms:
        field, function = TRANSFORMS[transform]
        value = f"{CATALOG}.system.{function}" if "(" in function else function
        wrong = spark.sql(f"SELECT * FROM {CATALOG}.{name} WHERE NOT ({value} <=> _partition.{field})")
        assert wrong.count() == 0, transform
    orders = spark.sql(f"SELECT DISTINCT sort_order_id FROM {CATALOG}.{name}.data_files").collect()
    assert [row.sort_order_id for row in orders] == [table.metadata.default_sort_order_id if len(order) > 0 else None]

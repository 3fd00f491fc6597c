"""Spark's Parquet writer honours every ``write.parquet.*`` property that Arrow's writer honours."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from icefloe.engines.spark.write.write import parquet_settings, write
from icefloe.errors import InputError
from icefloe.io.local import LocalFileIO
from icefloe.model.metadata.properties import REGISTRY
from icefloe.model.text.ddl import parse_ddl
from spark.fakes import metadata_of

pytestmark = pytest.mark.spark

SCHEMA = parse_ddl("id bigint, note string")
PREFIX = "write.parquet."
BLOOM = {f"{PREFIX}bloom-filter-enabled.column.note": "true"}
# A value of each property, with others that it needs.
VALUES = {
    "row-group-size-bytes": ("1000000", {}),
    "page-size-bytes": ("2000", {}),
    "page-row-limit": ("100", {}),
    "dict-size-bytes": ("10", {}),
    "compression-codec": ("gzip", {}),
    "compression-level": ("9", {f"{PREFIX}compression-codec": "gzip"}),
    "bloom-filter-max-bytes": ("4096", BLOOM),
    "bloom-filter-enabled.column.": ("true", {}),
    "bloom-filter-fpp.column.": ("0.2", BLOOM),
}


def test_every_property_has_a_setting() -> None:
    names = [name.removeprefix(PREFIX) for name in REGISTRY.names if name.startswith(PREFIX)]
    assert sorted(names) == sorted(VALUES)
    for name, (value, others) in VALUES.items():
        key = f"{PREFIX}{name}note" if name.endswith(".") else PREFIX + name
        if name != "compression-codec":  # a setting of the session
            assert parquet_settings(SCHEMA, {**others, key: value}) != parquet_settings(SCHEMA, others), name


def test_files_have_what_the_properties_ask_for(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0, 20_000, 1, 1).selectExpr("id", "sha(string(id)) AS note")
    large, small = {"write.parquet.compression-level": "19"}, {"write.parquet.compression-level": "1"}
    sizes = {}
    for name, properties in {
        "plain": {},
        "large": large,
        "small": small,
        "bloom": BLOOM,
        "groups": {"write.parquet.row-group-size-bytes": "100000", "write.parquet.page-size-bytes": "10000"},
        "dictionary": {"write.parquet.dict-size-bytes": "100"},
    }.items():
        [location] = write(
            frame, metadata=metadata_of(tmp_path / name, SCHEMA, properties=properties), io=LocalFileIO()
        )["location"].to_pylist()
        sizes[name] = Path(location).stat().st_size
        footer = pq.ParquetFile(location).metadata
        assert (footer.num_row_groups > 1) == (name == "groups")
    assert sizes["large"] < sizes["small"]
    assert sizes["bloom"] > sizes["plain"] + 8192
    with pytest.raises(InputError, match="levels"):
        write(
            frame,
            metadata=metadata_of(tmp_path, SCHEMA, properties={f"{PREFIX}compression-level": "99"}),
            io=LocalFileIO(),
        )

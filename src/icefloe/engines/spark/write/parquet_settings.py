"""The ``write.parquet.*`` properties of a table as settings of Spark's Parquet writer (spec: Appendix A, Parquet)."""

from __future__ import annotations

from collections.abc import Mapping

from icefloe.formats.parquet.options import parquet_options
from icefloe.formats.write.layout import layout
from icefloe.model.metadata.properties import (
    PARQUET_BLOOM_MAX_BYTES,
    PARQUET_COMPRESSION,
    PARQUET_COMPRESSION_LEVEL,
    PARQUET_DICT_SIZE,
    PARQUET_PAGE_ROWS,
    PARQUET_PAGE_SIZE,
)
from icefloe.model.schema.schema import Schema

_ZLIB_LEVELS = [
    "NO_COMPRESSION",
    "BEST_SPEED",
    "TWO",
    "THREE",
    "FOUR",
    "FIVE",
    "SIX",
    "SEVEN",
    "EIGHT",
    "BEST_COMPRESSION",
]


def parquet_settings(schema: Schema, properties: Mapping[str, str]) -> dict[str, str]:
    """The options of a write. The values of properties are checked as they are for files that Arrow writes."""
    options = parquet_options(layout(schema, properties))
    settings = {
        "parquet.block.size": str(options.row_group_bytes),
        "parquet.page.size": str(PARQUET_PAGE_SIZE.of(properties)),
        "parquet.page.row.count.limit": str(PARQUET_PAGE_ROWS.of(properties)),
        "parquet.dictionary.page.size": str(PARQUET_DICT_SIZE.of(properties)),
        "parquet.page.write-checksum.enabled": "true",
        **_level(properties),
    }
    for path, rate in options.blooms.items():
        settings[f"parquet.bloom.filter.enabled#{path}"] = "true"
        settings[f"parquet.bloom.filter.fpp#{path}"] = str(rate)
    if len(options.blooms) > 0:
        settings["parquet.bloom.filter.max.bytes"] = str(PARQUET_BLOOM_MAX_BYTES.of(properties))
        settings["parquet.bloom.filter.adaptive.enabled"] = "true"  # as large as the values of a row group need
    return settings


def _level(properties: Mapping[str, str]) -> dict[str, str]:
    codec, level = PARQUET_COMPRESSION.of(properties), PARQUET_COMPRESSION_LEVEL.of(properties)
    if level == "" or codec not in ("zstd", "gzip"):
        return {}
    if codec == "zstd":
        return {"parquet.compression.codec.zstd.level": level}
    return {"zlib.compress.level": _ZLIB_LEVELS[int(level)]}

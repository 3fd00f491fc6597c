"""How Parquet files are written: settings by Iceberg's names (spec: Appendix A, Parquet).

Sizes of row groups, pages and dictionaries, codecs and their levels, and Bloom filters by column.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.errors import InputError, UnsupportedError
from icefloe.formats.parquet.types import Stored, stored_form
from icefloe.formats.write.layout import Layout
from icefloe.model.metadata.properties import (
    PARQUET_BLOOM_COLUMN,
    PARQUET_BLOOM_FPP_COLUMN,
    PARQUET_BLOOM_MAX_BYTES,
    PARQUET_COMPRESSION,
    PARQUET_COMPRESSION_LEVEL,
    PARQUET_DICT_SIZE,
    PARQUET_PAGE_ROWS,
    PARQUET_PAGE_SIZE,
    PARQUET_ROW_GROUP_SIZE,
    Property,
)
from icefloe.model.schema.schema import Schema, derived
from icefloe.model.schema.types import BOOLEAN, is_primitive

_LEVELLED = frozenset({"zstd", "gzip", "brotli"})
_KNOWN = frozenset(inspect.signature(pq.ParquetWriter).parameters)  # the options of this Arrow version
_FPP = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetOptions:
    """The options of a Parquet writer."""

    stored: Stored
    row_group_bytes: int
    blooms: Mapping[str, float]  # the rate of false answers, by path
    bloom_bytes: int
    settings: Mapping[str, Any]

    def begin(self, sink: Any, unmeasured: frozenset[int], group_rows: int, footers: list[Any]) -> Any:
        """A writer of one file; ``unmeasured`` columns have no statistics in its footer."""
        blooms = {path: {"fpp": fpp, "ndv": self._distinct(fpp, group_rows)} for path, fpp in self.blooms.items()}
        measured = [path for id_, path in self.stored.paths.items() if id_ not in unmeasured]
        return pq.ParquetWriter(
            sink,
            self.stored.schema,
            write_statistics=measured if len(unmeasured) > 0 else True,
            metadata_collector=footers,
            **({} if len(blooms) == 0 else {"bloom_filter_options": blooms}),
            **self.settings,
        )

    def _distinct(self, fpp: float, rows: int) -> int:
        """For how many values a Bloom filter is made: all rows of a group, as far as its size is allowed."""
        most = -self.bloom_bytes * math.log(1 - fpp ** (1 / 8))
        return max(1, min(rows, int(most)))


def parquet_options(layout: Layout) -> ParquetOptions:
    """The options that a table's schema and properties ask for."""
    properties = layout.properties
    stored: Stored = derived(layout.schema, "parquet", stored_form)
    group = PARQUET_ROW_GROUP_SIZE.of(properties)
    return ParquetOptions(
        stored=stored,
        row_group_bytes=min(group, layout.target_bytes),
        blooms=_blooms(layout.schema, properties, stored.paths),
        bloom_bytes=PARQUET_BLOOM_MAX_BYTES.of(properties),
        settings={
            **_compression(properties),
            "data_page_size": PARQUET_PAGE_SIZE.of(properties),
            **_page_rows(properties),
            "dictionary_pagesize_limit": PARQUET_DICT_SIZE.of(properties),
            "store_schema": False,
            "store_decimal_as_integer": True,
            "use_compliant_nested_type": True,
            "write_page_checksum": True,
            "write_page_index": True,
        },
    )


def _page_rows(properties: Mapping[str, str]) -> dict[str, Any]:
    """At most how many rows a page has; an older Arrow has pages by size alone, which are as good to read."""
    rows = PARQUET_PAGE_ROWS.of(properties)
    return {"max_rows_per_page": rows} if "max_rows_per_page" in _KNOWN else {}


def _compression(properties: Mapping[str, str]) -> dict[str, Any]:
    codec = PARQUET_COMPRESSION.of(properties)
    if codec not in _LEVELLED:  # then a level means nothing, whatever it is
        return {"compression": "none" if codec == "uncompressed" else codec}
    text, name = PARQUET_COMPRESSION_LEVEL.of(properties), PARQUET_COMPRESSION_LEVEL.name
    if text == "":
        return {"compression": codec}
    level = int(text)
    lowest, highest = pa.Codec.minimum_compression_level(codec), pa.Codec.maximum_compression_level(codec)
    if not lowest <= level <= highest:
        raise InputError(f"property {name}: {codec} has levels {lowest} to {highest}, not {level}", property=name)
    return {"compression": codec, "compression_level": level}


def _blooms(schema: Schema, properties: Mapping[str, str], paths: Mapping[int, str]) -> dict[str, float]:
    """The columns that get a Bloom filter, with its rate; names of columns that the table lacks are ignored."""
    rates: dict[str, float] = {}
    for name in properties:
        if not name.startswith(PARQUET_BLOOM_COLUMN) or not Property(name, False).of(properties):
            continue
        column = schema.by_name.get(name.removeprefix(PARQUET_BLOOM_COLUMN))
        if column is None:
            continue
        if column.id not in paths or not is_primitive(column.type) or column.type == BOOLEAN:
            raise InputError(f"property {name}: a column of type {column.type} has no Bloom filter", property=name)
        if "bloom_filter_options" not in _KNOWN:
            raise UnsupportedError(f"property {name}: Bloom filters need a newer pyarrow", property=name)
        rates[paths[column.id]] = _rate(PARQUET_BLOOM_FPP_COLUMN + schema.names[column.id], properties)
    return rates


def _rate(name: str, properties: Mapping[str, str]) -> float:
    text = properties.get(name)
    try:
        rate = _FPP if text is None else float(text)
    except ValueError:
        rate = math.nan
    if not 0 < rate < 1:
        raise InputError(f"property {name}: expected a number between 0 and 1, got {text!r}", property=name)
    return rate

"""Settings of Parquet files by Iceberg's names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.errors import InputError
from icefloe.formats.write.write_files import write_files
from icefloe.io.local import LocalFileIO
from icefloe.model.schema.schema import Schema
from icefloe.model.text.ddl import parse_ddl

SCHEMA = parse_ddl("id bigint, text string, flag boolean, s struct<x: double>, l array<int>")
BLOOM = "write.parquet.bloom-filter-enabled.column."


def rows(count: int) -> pa.Table:
    numbers = np.random.default_rng(7).permutation(count)
    texts = [f"text {n % 97}" for n in range(count)]
    return pa.table(
        {
            "id": numbers,
            "text": texts,
            "flag": [n % 2 == 0 for n in range(count)],
            "s": [{"x": n / 7} for n in range(count)],
            "l": [[n] for n in range(count)],
        }
    )


def entries(folder: Path, data: pa.Table, schema: Schema = SCHEMA, **properties: str) -> list[dict[str, Any]]:
    asked = {name.replace("__", "-").replace("_", "."): value for name, value in properties.items()}
    made = write_files(LocalFileIO(), data, schema=schema, data_location=f"file://{folder}", properties=asked)
    return made.to_pylist()


def footer(folder: Path, data: pa.Table, properties: dict[str, str]) -> Any:
    made = write_files(LocalFileIO(), data, schema=SCHEMA, data_location=f"file://{folder}", properties=properties)
    return pq.read_metadata(made["location"][0].as_py().removeprefix("file://"))


def chunks(meta: Any, group: int = 0) -> dict[str, Any]:
    made = [meta.row_group(group).column(i) for i in range(meta.num_columns)]
    return {chunk.path_in_schema: chunk for chunk in made}


@pytest.mark.parametrize(
    ("codec", "stored"),
    [
        ("zstd", "ZSTD"),
        ("GZIP", "GZIP"),
        ("snappy", "SNAPPY"),
        ("lz4", "LZ4"),
        ("brotli", "BROTLI"),
        ("uncompressed", "UNCOMPRESSED"),
    ],
)
def test_codecs_have_icebergs_names(tmp_path: Path, codec: str, stored: str) -> None:
    meta = footer(tmp_path, rows(50), {"write.parquet.compression-codec": codec})
    assert {chunk.compression for chunk in chunks(meta).values()} == {stored}


def test_a_level_changes_how_small_files_become(tmp_path: Path) -> None:
    letters = np.random.default_rng(3).choice(list("abcd"), 200_000, p=[0.7, 0.1, 0.1, 0.1])
    data = pa.table({"text": ["".join(letters[n * 40 : n * 40 + 40]) for n in range(5000)]})
    schema = Schema(fields=(SCHEMA.field("text"),))

    def size(**properties: str) -> int:
        [made] = entries(tmp_path, data, schema, **properties)
        return int(made["file_size_in_bytes"])

    gzip = {"write_parquet_compression__codec": "gzip"}
    assert size(write_parquet_compression__level="9", **gzip) < size(write_parquet_compression__level="1", **gzip)
    snappy = {"write_parquet_compression__codec": "snappy"}
    assert size(write_parquet_compression__level="9", **snappy) == size(**snappy)  # which has no levels
    assert size(write_parquet_compression__level="none", **snappy) == size(**snappy)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("write.parquet.compression-codec", "rar", "expected brotli, gzip"),
        ("write.parquet.compression-level", "99", "levels"),
        ("write.parquet.compression-level", "high", "expected a whole number"),
        ("write.parquet.page-size-bytes", "0", "expected a whole number of 1 or more"),
        ("write.parquet.page-row-limit", "-1", "expected a whole number of 1 or more"),
        ("write.parquet.dict-size-bytes", "0", "expected a whole number of 1 or more"),
        ("write.parquet.row-group-size-bytes", "0", "expected a whole number of 1 or more"),
        ("write.parquet.bloom-filter-max-bytes", "0", "expected a whole number of 1 or more"),
        ("write.target-file-size-bytes", "0", "expected a whole number of 1 or more"),
        (BLOOM + "id", "maybe", "expected true or false"),
        (BLOOM + "flag", "true", "boolean has no Bloom filter"),
        (BLOOM + "s", "true", "has no Bloom filter"),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_a_file_is_made(
    tmp_path: Path, name: str, value: str, rule: str
) -> None:
    with pytest.raises(InputError, match=rf"{name}.*{rule}"):
        footer(tmp_path, rows(3), {name: value})
    assert list(tmp_path.iterdir()) == []


def test_pages_have_as_many_rows_as_the_table_allows(tmp_path: Path) -> None:
    def pages(properties: dict[str, str]) -> int:
        made = write_files(
            LocalFileIO(), rows(5000), schema=SCHEMA, data_location=f"file://{tmp_path}", properties=properties
        )
        return int(made["file_size_in_bytes"][0].as_py())

    assert pages({"write.parquet.page-row-limit": "10"}) > 1.5 * pages({})  # each page has a header and an index entry
    plain = {"write.parquet.dict-size-bytes": "1"}
    assert pages({**plain, "write.parquet.page-size-bytes": "64"}) > 500 + pages(plain)


def test_a_dictionary_that_grows_too_large_is_given_up(tmp_path: Path) -> None:
    whole = chunks(footer(tmp_path, rows(5000), {}))["text"]
    given_up = chunks(footer(tmp_path, rows(5000), {"write.parquet.dict-size-bytes": "10"}))["text"]
    assert given_up.total_uncompressed_size > 2 * whole.total_uncompressed_size


def test_bloom_filters_are_made_for_the_columns_that_ask(tmp_path: Path) -> None:
    wanted = {BLOOM + "id": "true", BLOOM + "s.x": "true", BLOOM + "l.element": "true", BLOOM + "text": "false"}
    made = chunks(footer(tmp_path, rows(100), {**wanted, BLOOM + "gone": "true"}))
    has = {path for path, chunk in made.items() if chunk.bloom_filter_offset is not None}
    assert has == {"id", "s.x", "l.list.element"}


@pytest.mark.slow
def test_a_bloom_filter_is_as_large_as_its_rate_and_limit_ask(tmp_path: Path) -> None:
    fpp = "write.parquet.bloom-filter-fpp.column.id"
    most = "write.parquet.bloom-filter-max-bytes"

    def size(**properties: str) -> int:
        asked = {BLOOM + "id": "true", **properties}
        return int(chunks(footer(tmp_path, rows(4000), asked))["id"].bloom_filter_length)

    exact, rough = size(**{fpp: "0.000001"}), size(**{fpp: "0.9"})
    assert exact > size() > rough
    assert size(**{most: "1024"}) <= 2048
    with pytest.raises(InputError, match=r"fpp\.column\.id.*between 0 and 1"):
        size(**{fpp: "2"})


@pytest.mark.parametrize("repeated", [True, False])
def test_files_come_close_to_their_target_in_compressed_bytes(tmp_path: Path, repeated: bool) -> None:
    generator = np.random.default_rng(1)
    numbers = np.zeros(600_000, np.int64) if repeated else generator.integers(0, 2**62, 600_000)
    noise = generator.integers(0, 255, 600_000)
    schema = parse_ddl("a bigint, b bigint")
    target = 200_000 if repeated else 2_000_000
    made = entries(tmp_path, pa.table({"a": numbers, "b": noise}), schema, write_target__file__size__bytes=str(target))
    sizes = [entry["file_size_in_bytes"] for entry in made]
    assert len(sizes) >= 2
    assert all(0.9 * target <= size <= 1.1 * target for size in sizes[:-1])
    assert sum(entry["record_count"] for entry in made) == 600_000

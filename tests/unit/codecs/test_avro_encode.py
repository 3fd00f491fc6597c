from __future__ import annotations

import io
import zlib
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.avro.container import BLOCK_BYTES, read_container, write_container
from icefloe.codecs.avro.encode import encode_records, number
from icefloe.errors import InputError
from icefloe.limits import Limits

PAIR = {
    "type": "record",
    "name": "pair",
    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}],
}
SCHEMA = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "long", "type": "long"},
        {"name": "maybe", "type": ["null", "int"]},
        {"name": "text", "type": ["null", "string"]},
        {"name": "flag", "type": "boolean"},
        {"name": "float", "type": "float"},
        {"name": "double", "type": ["null", "double"]},
        {"name": "fixed", "type": ["null", {"type": "fixed", "name": "f3", "size": 3}]},
        {"name": "list", "type": ["null", {"type": "array", "items": "long"}]},
        {"name": "pairs", "type": {"type": "array", "items": PAIR}},
        {"name": "nothing", "type": {"type": "record", "name": "empty", "fields": []}},
    ],
}
PAIR_TYPE = pa.struct([pa.field("key", pa.int32()), pa.field("value", pa.binary())])
TYPE = pa.struct(
    [
        pa.field("long", pa.int64()),
        pa.field("maybe", pa.int32()),
        pa.field("text", pa.string()),
        pa.field("flag", pa.bool_()),
        pa.field("float", pa.float32()),
        pa.field("double", pa.float64()),
        pa.field("fixed", pa.binary(3)),
        pa.field("list", pa.list_(pa.int64())),
        pa.field("pairs", pa.list_(PAIR_TYPE)),
        pa.field("nothing", pa.struct([])),
    ]
)
LONGS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-200, 200))
INTS = st.integers(-(2**31), 2**31 - 1)
ROWS = st.fixed_dictionaries(
    {
        "long": LONGS,
        "maybe": st.one_of(st.none(), INTS),
        "text": st.one_of(st.none(), st.text(st.characters(codec="utf-8"))),
        "flag": st.booleans(),
        "float": st.floats(width=32, allow_nan=False),
        "double": st.one_of(st.none(), st.floats(allow_nan=False)),
        "fixed": st.one_of(st.none(), st.binary(min_size=3, max_size=3)),
        "list": st.one_of(st.none(), st.lists(LONGS, max_size=3)),
        "pairs": st.lists(st.fixed_dictionaries({"key": INTS, "value": st.binary(max_size=70)}), max_size=3),
        "nothing": st.just({}),
    }
)


def by_fastavro(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


@given(st.lists(ROWS, max_size=6))
def test_fastavro_reads_back_what_was_written(rows: list[dict[str, Any]]) -> None:
    data = write_container(pa.array(rows, TYPE), SCHEMA, {"k": "v"})
    assert by_fastavro(data) == rows


@given(st.lists(ROWS, min_size=3, max_size=6))
def test_a_slice_is_written_like_a_copy(rows: list[dict[str, Any]]) -> None:
    whole = pa.array(rows, TYPE)
    sliced = pa.StructArray.from_arrays([c.slice(1, 2) for c in whole.flatten()], fields=list(TYPE))
    assert by_fastavro(write_container(sliced, SCHEMA, {})) == rows[1:3]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "00"), (-1, "01"), (1, "02"), (-64, "7f"), (64, "8001"), (2**63 - 1, "feffffffffffffffff01")],
)
def test_numbers_are_zigzag(value: int, expected: str) -> None:
    assert number(value).hex() == expected


def test_the_same_rows_give_the_same_bytes() -> None:
    rows = pa.array([{"a": n} for n in range(10)], pa.struct([pa.field("a", pa.int64())]))
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    assert write_container(rows, schema, {}) == write_container(rows, schema, {})


def test_blocks_are_cut_where_they_are_full() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "bytes"}]}
    type_ = pa.struct([pa.field("a", pa.binary())])
    rows = pa.array([{"a": bytes([n]) * (BLOCK_BYTES // 3)} for n in range(10)], type_)
    container = read_container(write_container(rows, schema, {}), where="here", limits=Limits())
    assert len(container.blocks) == 4
    assert container.rows({"a": pa.binary()})["a"].equals(rows.field("a"))


def test_no_rows_are_a_file_without_blocks() -> None:
    data = write_container(pa.array([], TYPE), SCHEMA, {"k": "v"})
    container = read_container(data, where="here", limits=Limits())
    assert (container.blocks, container.metadata) == ((), {"k": "v"})
    assert by_fastavro(data) == []


def test_types_that_manifests_do_not_use_are_refused() -> None:
    with pytest.raises(InputError, match="enum"):
        encode_records(pa.array(["a"]), {"type": "enum", "name": "e", "symbols": ["a"]})


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_what_fastavro_wrote_is_read(codec: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "string"}]}
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [{"a": "x" * 500}, {"a": "y"}], codec=codec)
    container = read_container(sink.getvalue(), where="here", limits=Limits())
    assert container.rows({"a": pa.string()})["a"].to_pylist() == ["x" * 500, "y"]


def test_snappy_and_zstandard_blocks_made_by_hand_are_read() -> None:
    type_ = pa.struct([pa.field("a", pa.int64())])
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    plain = write_container(pa.array([{"a": 5}, {"a": -9}], type_), schema, {})
    payload = encode_records(pa.array([{"a": 5}, {"a": -9}], type_), schema)
    raw = b"".join(payload.to_pylist())
    sync = plain[-16:]
    for codec, name, tail in (("snappy", b"snappy", zlib.crc32(raw).to_bytes(4, "big")), ("zstd", b"zstandard", b"")):
        block = pa.compress(raw, codec, asbytes=True) + tail
        head = plain[: plain.index(sync)].replace(number(7) + b"deflate", number(len(name)) + name)
        data = head + sync + number(2) + number(len(block)) + block + sync
        container = read_container(data, where="here", limits=Limits())
        assert container.rows({"a": pa.int64()})["a"].to_pylist() == [5, -9]

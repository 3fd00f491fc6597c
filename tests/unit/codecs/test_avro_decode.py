"""Reading records together gives what fastavro gives reading them in order, or hands over to it."""

from __future__ import annotations

import io
import json
import random
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from icefloe.codecs.avro import container as avro_container
from icefloe.codecs.avro.container import read_container
from icefloe.codecs.avro.encode import encode_metadata, number
from icefloe.codecs.avro.projection import ByKeys, ColumnTree, Shape
from icefloe.codecs.avro.vectorized import decode_together
from icefloe.codecs.avro.vectorized.lanes import PADDING, Source
from icefloe.codecs.json.table_metadata import decode_metadata
from icefloe.codecs.manifest.avro import decode_manifest, encode_manifest
from icefloe.codecs.manifest.context import manifest_context
from icefloe.codecs.manifest.manifests import decode_leaf
from icefloe.errors import FormatError, IcefloeError, UnsupportedError
from icefloe.limits import Limits
from icefloe.model.entries import ContentType, column_key, parse_stat, partition_key
from icefloe.model.metadata.table_metadata import TableMetadata
from support.manifests.random_entries import data_dv, equality_delete
from support.manifests.sample import DAY, LOCATION, column_stats, context, data_file, mixed_partition, table
from support.shared_files import shared

Json = dict[str, Any]
LONGS = st.one_of(st.integers(-70, 70), st.integers(-(2**63), 2**63 - 1))
PREFIX = "s3://bucket/warehouse/"
PAIRS = {
    "type": "array",
    "items": {
        "type": "record",
        "name": "pair",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}],
    },
}


def optional(type_: Any) -> list[Any]:
    return ["null", type_]


def schema_of(**fields: Any) -> Json:
    return {"type": "record", "name": "r", "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def by_fastavro(schema: Json, record: Json) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(schema), record)
    return sink.getvalue()


def together(blocks: list[list[bytes]], schema: Json, shape: Shape) -> ColumnTree:
    """The records of some blocks, read together; never handed over."""
    data = [b"".join(block) for block in blocks]
    counts = np.array([len(block) for block in blocks])
    return decode_together(data, counts, schema, shape)


def plain(found: Any) -> Any:
    """Columns as Python values, floats by their bits."""
    if isinstance(found, dict):
        return {key: plain(value) for key, value in found.items()}
    if pa.types.is_floating(found.type):
        return [None if v is None else struct.pack("<d", v) for v in found.to_pylist()]
    return found.to_pylist()


@contextmanager
def fewest(records: int) -> Iterator[None]:
    """From how many records on they are read together."""
    before = avro_container.FEWEST_RECORDS
    avro_container.FEWEST_RECORDS = records
    try:
        yield
    finally:
        avro_container.FEWEST_RECORDS = before


# -- random schemas


SIMPLE: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), LONGS),
    "boolean": (pa.bool_(), st.booleans()),
    "float": (pa.float32(), st.floats(width=32)),
    "double": (pa.float64(), st.floats()),
    "string": (pa.string(), st.text(st.characters(codec="utf-8"), max_size=6)),
    "bytes": (pa.binary(), st.one_of(st.binary(max_size=9), st.just(b"x" * 300))),
}


@st.composite
def typed(draw: st.DrawFn, depth: int = 1) -> tuple[Any, Any, st.SearchStrategy[Any]]:
    """An Avro type, the Arrow type it is read as, and its values."""
    kinds = ["simple", "fixed", "optional", "last null", "array", "record"]
    kind = draw(st.sampled_from(kinds if depth > 0 else kinds[:2]))
    if kind == "simple":
        name = draw(st.sampled_from(list(SIMPLE)))
        return name, *SIMPLE[name]
    if kind == "fixed":
        size = draw(st.integers(1, 20))
        fixed = {"type": "fixed", "name": "f", "size": size}
        return fixed, pa.binary(), st.binary(min_size=size, max_size=size)
    if kind == "record":
        inner = [draw(typed(0)) for _ in range(draw(st.integers(1, 3)))]
        fields = [{"name": f"m{i}", "type": type_} for i, (type_, _, _) in enumerate(inner)]
        arrow = pa.struct([pa.field(f"m{i}", each) for i, (_, each, _) in enumerate(inner)])
        values = st.fixed_dictionaries({f"m{i}": each for i, (_, _, each) in enumerate(inner)})
        return {"type": "record", "name": "n", "fields": fields}, arrow, values
    type_, arrow, values = draw(typed(0))
    if kind == "array":
        return {"type": "array", "items": type_}, pa.list_(arrow), st.lists(values, max_size=4)
    union = ["null", type_] if kind == "optional" else [type_, "null"]
    return union, arrow, st.one_of(st.none(), values)


def numbered(schema: Any, numbers: Iterator[int]) -> Any:
    """The schema with a name of its own for each record and fixed type, which Avro demands."""
    if isinstance(schema, list):
        return [numbered(each, numbers) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: numbered(value, numbers) for key, value in schema.items()}
    return {**inner, "name": f"n{next(numbers)}"} if schema.get("type") in ("record", "fixed") else inner


def shape_of(type_: pa.DataType) -> Any:
    return {f.name: f.type for f in type_} if pa.types.is_struct(type_) else type_


@given(st.data())
def test_random_records_are_read_as_fastavro_reads_them(data: st.DataObject) -> None:
    head = [data.draw(typed()) for _ in range(data.draw(st.integers(0, 2)))]
    tail = [data.draw(typed()) for _ in range(data.draw(st.integers(0, 3)))]
    paths = st.text("abc", max_size=3).map(lambda text: PREFIX + text)
    parts = {
        **{f"h{i}": each for i, each in enumerate(head)},
        "path": ("string", pa.string(), paths),
        **{f"t{i}": each for i, each in enumerate(tail)},
    }
    schema = numbered(schema_of(**{name: type_ for name, (type_, _, _) in parts.items()}), count())
    records = st.fixed_dictionaries({name: values for name, (_, _, values) in parts.items()})
    blocks = data.draw(st.lists(st.lists(records, min_size=1, max_size=4), min_size=1, max_size=2))
    kept = data.draw(st.sets(st.sampled_from(list(parts))))
    shape = {name: shape_of(arrow) for name, (_, arrow, _) in parts.items() if name in kept}
    encoded = [[by_fastavro(schema, record) for record in block] for block in blocks]
    container = read_container(file_of(schema, encoded), where="here", limits=Limits())
    with fewest(10**9):
        expected = container.rows(shape)
    with fewest(1):
        assert plain(container.rows(shape)) == plain(expected)


def file_of(schema: Json, blocks: list[list[bytes]]) -> bytes:
    """A container file of blocks of encoded records."""
    sync = bytes(range(16))
    parts = [b"Obj\x01", encode_metadata({"avro.schema": json.dumps(schema).encode(), "avro.codec": b"null"}), sync]
    for block in blocks:
        payload = b"".join(block)
        parts += [number(len(block)), number(len(payload)), payload, sync]
    return b"".join(parts)


# -- numbers


@given(st.lists(LONGS, min_size=1, max_size=30))
def test_numbers_of_every_width_are_read(values: list[int]) -> None:
    encoded = [number(value) for value in values]
    starts = np.cumsum([0, *map(len, encoded)])
    found, after = Source(b"".join(encoded) + PADDING).numbers(starts[:-1])
    assert (found.tolist(), after.tolist()) == (values, starts[1:].tolist())


@pytest.mark.parametrize("width", range(2, 11))
def test_numbers_with_needless_bytes_are_read(width: int) -> None:
    data = b"\x8a" + b"\x80" * (width - 2) + b"\x00"
    found, after = Source(data + PADDING).numbers(np.zeros(1, np.int64))
    assert (found.tolist(), after.tolist()) == ([5], [width])


@pytest.mark.parametrize("data", [b"\x80" * 11, b"\xff" * 9 + b"\x02", b"\x80\x80", b""])
def test_a_number_that_does_not_end_kills_its_lane(data: bytes) -> None:
    source = Source(data + PADDING)
    _, after = source.numbers(np.array([0]))
    assert not source.alive(after).any()


# -- the search for records

NAMED = schema_of(status="int", path="string", note=optional("string"), sizes={"type": "array", "items": "long"})
NAMED_SHAPE = {"status": pa.int32(), "path": pa.string(), "note": pa.string(), "sizes": pa.list_(pa.int64())}


def named(path: str, note: str | None = None, sizes: tuple[int, ...] = ()) -> Json:
    return {"status": len(path), "path": path, "note": note, "sizes": list(sizes)}


def check_named(blocks: list[list[Json]]) -> None:
    found = plain(together([[by_fastavro(NAMED, r) for r in block] for block in blocks], NAMED, NAMED_SHAPE))
    records = [record for block in blocks for record in block]
    assert found == {name: [record[name] for record in records] for name in NAMED_SHAPE}


def test_one_record_in_a_block_is_read() -> None:
    check_named([[named(f"{PREFIX}{n}")] for n in range(60)])


def test_paths_may_begin_differently() -> None:
    check_named([[named(f"{bucket}://bucket/warehouse/{n}") for bucket in ("s3", "gs", "abfs") for n in range(20)]])


def test_very_different_paths_are_left_to_fastavro() -> None:
    records = [by_fastavro(NAMED, named(f"{n:x}-a-path-of-its-own")) for n in range(100, 160)]
    with pytest.raises(UnsupportedError, match="too different"):
        together([records], NAMED, NAMED_SHAPE)


def test_paths_that_occur_elsewhere_in_records_are_told_apart() -> None:
    check_named([[named(f"{PREFIX}{n}", note=f"{PREFIX}{n}", sizes=(n, -n)) for n in range(50)]])
    inside = by_fastavro(NAMED, named(f"{PREFIX}other")).decode(errors="ignore")  # a whole record in a text
    check_named([[named(f"{PREFIX}{n}", note=inside) for n in range(50)]])


def test_paths_of_every_length_are_found() -> None:
    check_named([[named(PREFIX + "x" * length) for length in (0, 1, 40, 42, 43, 50, 200, 8_200, 20_000)]])
    check_named([[named("a"), named("ab"), named("abc")]])


@pytest.mark.parametrize(("counts", "held"), [([2], [1]), ([1], [2]), ([3], [2]), ([1, 1], [2, 0])])
def test_records_that_do_not_fit_their_blocks_are_left_to_fastavro(counts: list[int], held: list[int]) -> None:
    one = by_fastavro(NAMED, named(f"{PREFIX}a"))
    with pytest.raises(UnsupportedError):
        decode_together([one * records for records in held], np.array(counts), NAMED, NAMED_SHAPE)


def by_hand(*blocks: bytes) -> bytes:
    """A record whose array is written in these blocks."""
    return number(1) + number(len(PREFIX)) + PREFIX.encode() + number(0) + b"".join(blocks) + number(0)


def test_arrays_in_several_blocks_and_with_sizes_are_read() -> None:
    items = number(7) + number(2**62)
    records = [
        by_hand(),
        by_hand(number(2) + items, number(1) + number(-3)),
        by_hand(number(-2) + number(len(items)) + items, number(2) + items),
        by_hand(*[number(-1) + number(1) + number(9)] * 5),
    ]
    found = together([records], NAMED, NAMED_SHAPE)["sizes"].to_pylist()
    assert found == [[], [7, 2**62, -3], [7, 2**62, 7, 2**62], [9] * 5]


def test_arrays_of_fixed_bytes_are_read() -> None:
    fixed = {"type": "fixed", "name": "f", "size": 5}
    schema = schema_of(path="string", codes={"type": "array", "items": fixed}, after="int")
    records = [{"path": f"{PREFIX}{n}", "codes": [b"%05d" % n, b"%05d" % (n + 1)], "after": n} for n in range(4)]
    shape = {"codes": pa.list_(pa.binary()), "after": pa.int32()}
    found = together([[by_fastavro(schema, record) for record in records]], schema, shape)
    assert plain(found) == {"codes": [r["codes"] for r in records], "after": [0, 1, 2, 3]}


@pytest.mark.parametrize(
    "blocks",
    [
        [number(2**40)],  # more items than bytes
        [number(-(2**63)), number(0)],  # a number that has no absolute value
        [number(1) + number(5)] * 50_000,  # more steps than reading together is worth
    ],
)
def test_wild_arrays_are_left_to_fastavro(blocks: list[bytes]) -> None:
    with pytest.raises(UnsupportedError):
        together([[by_hand(*blocks)] * 2], NAMED, NAMED_SHAPE)


def test_a_buffer_full_of_places_that_look_like_records_is_left_to_fastavro() -> None:
    text = "a" * 100_000
    with pytest.raises(UnsupportedError, match="too many places"):
        together([[by_fastavro(NAMED, named(text))]], NAMED, NAMED_SHAPE)


@pytest.mark.parametrize(
    "type_",
    [
        "null",
        {"type": "map", "values": "int"},
        {"type": "array", "items": {"type": "array", "items": "int"}},
        ["int", "string"],
    ],
)
def test_types_that_manifests_do_not_use_are_left_to_fastavro(type_: Any) -> None:
    with pytest.raises(UnsupportedError):
        together([[b""]], schema_of(path="string", odd=type_), {"path": pa.string()})
    with pytest.raises(UnsupportedError, match="no text"):
        together([[b""]], schema_of(a="int"), {"a": pa.int32()})


# -- maps

KEYED = schema_of(path="string", bounds=optional(PAIRS))


def pairs(**values: bytes) -> list[Json]:
    return [{"key": int(key[1:]), "value": value} for key, value in values.items()]


def check_keys(rows: list[list[Json] | None], keys: set[int]) -> dict[int, list[bytes | None]]:
    records = [{"path": f"{PREFIX}{n}", "bounds": row} for n, row in enumerate(rows)]
    file = file_of(KEYED, [[by_fastavro(KEYED, record) for record in records]])
    container = read_container(file, where="here", limits=Limits())
    shape = {"bounds": ByKeys(pa.binary(), keys)}
    with fewest(10**9):
        expected = plain(container.rows(shape))
    found = plain(together([[by_fastavro(KEYED, record) for record in records]], KEYED, shape))
    assert found == expected
    return dict(found["bounds"])


def test_maps_come_out_as_one_column_for_each_key() -> None:
    same = [pairs(k1=bytes([n]), k2=b"x" * n) for n in range(5)]
    assert check_keys(same, {1, 2, 9}) == {1: [bytes([n]) for n in range(5)], 2: [b"x" * n for n in range(5)]}
    assert check_keys(same, {2}).keys() == {2}
    assert check_keys([None, [], pairs(k2=b"b", k1=b"a"), pairs(k1=b"c")], {1, 2}) == {
        1: [None, None, b"a", b"c"],
        2: [None, None, b"b", None],
    }


def test_of_equal_keys_in_a_row_the_last_counts() -> None:
    doubled = [*pairs(k1=b"first"), *pairs(k1=b"last")]
    assert check_keys([doubled, pairs(k1=b"only")], {1}) == {1: [b"last", b"only"]}


@given(st.lists(st.one_of(st.none(), st.lists(st.tuples(st.integers(-3, 5), st.binary(max_size=9)))), min_size=1))
def test_random_maps_are_read_as_fastavro_reads_them(rows: list[list[tuple[int, bytes]] | None]) -> None:
    turned = [None if row is None else [{"key": k, "value": v} for k, v in row] for row in rows]
    check_keys(turned, {-1, 0, 2, 5})


# -- manifests


def both_ways(data: bytes, decode: Callable[[bytes], pa.Table]) -> tuple[object, object]:
    """What reading together and reading in order give: a table, or the kind of error."""

    def outcome(records: int) -> object:
        with fewest(records):
            try:
                return decode(data)
            except IcefloeError as error:
                return type(error)

    return outcome(1), outcome(10**9)


def same(one: object, other: object) -> bool:
    if isinstance(one, pa.Table) and isinstance(other, pa.Table):
        return bool(one.equals(other))
    return one == other


def of_rows(
    rows: list[dict[str, object]], version: int, *, spec_id: int = 0, content: ContentType = ContentType.DATA_MANIFEST
) -> bytes:
    return encode_manifest(
        table(rows),
        context(version),
        content=content,
        spec_id=spec_id,
    )


def files(count: int) -> list[dict[str, object]]:
    return [
        data_file(
            n,
            **mixed_partition(None if n % 7 == 0 else f"n{n}", DAY, n % 16, -0.0 if n % 2 == 0 else 1e300),
            **column_stats("id", n * 10**12, None if n % 3 == 0 else n, nulls=n % 11),
            **column_stats("name", f"a{n}", "Grüße" * (n % 5)),
            **({} if n % 4 == 0 else column_stats("day", DAY, DAY)),
            split_offsets=list(range(n % 4)),
        )
        for n in range(count)
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_our_manifests_are_read_the_same_both_ways(version: int) -> None:
    one, other = both_ways(
        of_rows(files(150), version, spec_id=1), lambda d: decode_manifest(d, context(version), where="m")
    )
    assert isinstance(one, pa.Table)
    assert one.num_rows == 150
    assert same(one, other)


def test_delete_manifests_whose_bounds_are_paths_are_read_the_same_both_ways() -> None:
    path = "2147483546"
    rows = table([equality_delete(n, format_version=3) for n in range(40)] + [data_dv(n) for n in range(40)])
    for measure in ("lower_bound", "upper_bound"):
        rows = rows.append_column(
            f"{measure}:{path}", pa.array([f"{LOCATION}/data/{n:05d}.parquet" for n in range(80)])
        )
    data = encode_manifest(rows, context(3), content=ContentType.DELETE_MANIFEST, spec_id=0)
    one, other = both_ways(data, lambda d: decode_manifest(d, context(3), where="m"))
    assert isinstance(one, pa.Table)
    assert same(one, other)


def test_only_the_wanted_statistics_are_decoded_but_all_partition_values() -> None:
    data = of_rows(files(60), 2, spec_id=1)
    whole = decode_manifest(data, context(2), where="m")
    for keys in (
        frozenset(),
        frozenset({column_key(3)}),
        frozenset({column_key(3), partition_key(1000), column_key(77)}),
    ):
        for records in (1, 10**9):
            with fewest(records):
                part = decode_manifest(data, context(2), where="m", wanted=keys)
            parsed = ((name, parse_stat(name)) for name in whole.column_names)
            kept = [name for name, c in parsed if c is None or c.key.is_partition or c.key in keys]
            assert part.equals(whole.select(kept))


@pytest.mark.slow
def test_golden_manifests_are_read_the_same_both_ways() -> None:
    seen = 0
    for path in sorted(shared("golden/tables").rglob("*.metadata.json")):
        metadata = attempted(decode_metadata, path.read_bytes())
        for leaf in path.parent.glob("*-m*.avro") if isinstance(metadata, TableMetadata) else ():
            known = manifest_context(metadata)
            one, other = both_ways(leaf.read_bytes(), lambda d, c=known: decode_manifest(d, c, where="m"))  # type: ignore[misc]
            assert same(one, other), leaf
            seen += isinstance(one, pa.Table)
    assert seen > 20


def attempted(decode: Callable[..., Any], data: bytes) -> object:
    try:
        return decode(data, where="x")
    except IcefloeError as error:
        return error


def test_pyiceberg_manifests_of_one_record_per_block_are_read_the_same_both_ways(tmp_path: Path) -> None:
    output = PyArrowFileIO().new_output(f"file://{tmp_path}/m.avro")
    with write_manifest(
        2, UNPARTITIONED_PARTITION_SPEC, Schema(NestedField(3, "id", LongType())), output, 7, "null"
    ) as writer:
        for n in range(70):
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"{PREFIX}{n}.parquet",
                file_format=FileFormat.PARQUET,
                partition=Record(),
                record_count=n,
                file_size_in_bytes=n * 1000,
                value_counts={3: n},
                lower_bounds={3: struct.pack("<q", n)},
                upper_bounds={3: struct.pack("<q", 2 * n)},
            )
            writer.add_entry(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=7, data_file=file))
    data = (tmp_path / "m.avro").read_bytes()
    one, other = both_ways(data, lambda d: decode_manifest(d, context(2), where="m"))
    assert isinstance(one, pa.Table)
    assert one["upper_bound:3"].to_pylist() == [2 * n for n in range(70)]
    assert same(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_damaged_manifests_have_the_same_outcome_both_ways(seed: int) -> None:
    """Blocks are not compressed here, so that a flipped bit reaches the records."""
    good = of_rows(files(60), 2, spec_id=1)
    container = read_container(good, where="m", limits=Limits())
    keys = {key: value.encode() for key, value in container.metadata.items()}
    header = encode_metadata({"avro.schema": json.dumps(container.schema).encode(), "avro.codec": b"null", **keys})
    payload = b"".join(block.data for block in container.blocks)
    choose = random.Random(seed)
    for _ in range(25):
        data = bytearray(payload)
        for _ in range(choose.randint(1, 3)):
            data[choose.randrange(len(data))] = choose.choice([0, 1, 0x7F, 0x80, 0xFF, choose.randrange(256)])
        sync = bytes(16)
        file = b"Obj\x01" + header + sync + number(60) + number(len(data)) + bytes(data) + sync
        one, other = both_ways(file, lambda d: decode_leaf(d, context(2), where="m", content=ContentType.DATA_MANIFEST))
        assert same(one, other) or (isinstance(one, type) and isinstance(other, type))
        assert isinstance(one, pa.Table) or issubclass(one, FormatError)  # type: ignore[arg-type]

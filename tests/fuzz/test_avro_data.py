"""Avro data files, fed mutated: read or refused with a typed error, nothing else."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from fuzz.harness import INPUTS, INTERESTING, fuzz
from icefloe.codecs.avro.block_index import find_blocks, read_header
from icefloe.codecs.avro.encode import encode_metadata, number
from icefloe.formats.avro.file import open_avro
from icefloe.io.memory import MemoryFileIO
from icefloe.limits import MIB, Limits
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import STRING, UNKNOWN, VARIANT, Field, List, Map, Struct
from support.avro_rows import PLACE, VALUES, lanes, write

FEWER = max(1, INPUTS // 4)  # these take longer
TIGHT = Limits(avro_block_bytes=4 * MIB)


def _file(wide: bool, codec: str) -> tuple[Schema, bytes]:
    """A file with a column of every type, and one with lists, maps and structs of them."""
    fields: list[Field] = []
    rows: list[dict[str, Any]] = [{} for _ in range(9)]
    for place, (type_, values) in enumerate(VALUES):
        id_, name = 10 * place + 1, f"c{place}"
        if wide:
            fields.append(Field(id_, name, type_, required=place % 3 == 0))
        elif type_ != VARIANT and place % 3 == 0:
            inner = Struct((Field(id_ + 2, "x", type_), Field(id_ + 3, "u", UNKNOWN)))
            fields.append(Field(id_, name, Map(id_ + 4, STRING, id_ + 5, List(id_ + 1, inner))))
        else:
            continue
        for at, row in enumerate(rows):
            value = values[at % len(values)]
            row[name] = value if wide else [("k", [{"x": value, "u": None}, None]), ("", None)]
    schema = Schema(fields=tuple(fields))
    io = MemoryFileIO()
    write(io, schema, rows, compression_codec=codec)
    return schema, io.read(PLACE)


FILES = {"wide": _file(True, "uncompressed"), "nested": _file(False, "uncompressed"), "gzip": _file(True, "gzip")}


def reader(schema: Schema) -> Callable[[bytes], object]:
    def decode(data: bytes) -> object:
        io = MemoryFileIO()
        io.write_new(PLACE, data)
        with open_avro(io, PLACE, limits=TIGHT) as file:
            rows = 0
            for group in file.row_groups[:4]:
                for batch in file.read(group, schema.fields, 100_000):
                    batch.validate()
                    rows += batch.num_rows
                    if rows > 10_000_000:
                        return rows
            return rows

    return decode


@pytest.mark.slow
@pytest.mark.parametrize("least", [1, 10**9], ids=["together", "in order"])
@pytest.mark.parametrize("kind", FILES)
def test_damaged_files_are_read_or_refused(kind: str, least: int) -> None:
    schema, data = FILES[kind]
    with lanes(least):
        outcomes = fuzz([data], reader(schema))
    assert len(outcomes) > 1


@pytest.mark.slow
@pytest.mark.parametrize("least", [1, 10**9], ids=["together", "in order"])
@pytest.mark.parametrize("kind", ["wide", "nested"])
def test_damaged_records_are_read_or_refused(kind: str, least: int) -> None:
    """The frame stays whole, so that what is in the blocks reaches the decoders."""
    schema, data = FILES[kind]
    header = read_header(lambda offset, length: data[offset : offset + length], len(data), PLACE)
    (block,) = find_blocks(lambda offset, length: data[offset : offset + length], header, len(data), PLACE)

    def wrap(payload: bytes) -> bytes:
        return data[: header.size] + number(block.count) + number(len(payload)) + payload + header.sync

    with lanes(least):
        outcomes = fuzz([data[block.offset : block.offset + block.size]], reader(schema), wrap=wrap, inputs=FEWER)
    assert outcomes["read"] > 0
    assert outcomes["CorruptFile"] > 0


def _changed(seed: bytes, chance: random.Random) -> bytes:
    """A schema with values of it replaced or taken out; it stays JSON."""
    document = json.loads(seed)
    for _ in range(chance.randint(1, 3)):
        holders = [document]
        for holder in holders:  # grows while it is read
            inner = holder.values() if isinstance(holder, dict) else holder
            holders.extend(each for each in inner if isinstance(each, (dict, list)))
        holder = chance.choice([each for each in holders if len(each) > 0])
        key = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        atoms = [None, True, -1, 0, 17, 2**31, 2**70, 1.5, "", "null", "int", "long", "string", "fixed", "r1", "map"]
        nested: tuple[Any, ...] = (
            ["null", "bytes"],
            {"type": "array", "items": "null"},
            {"type": "map", "values": json.loads(seed)},
            [],
            {},
        )
        holder[key] = chance.choice([*atoms, *nested])
        if holder[key] == {} and chance.random() < 0.5:
            del holder[key]
    return json.dumps(document).encode()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wide", "nested"])
def test_damaged_schemas_are_read_or_refused(kind: str) -> None:
    schema, data = FILES[kind]
    header = read_header(lambda offset, length: data[offset : offset + length], len(data), PLACE)

    def wrap(text: bytes) -> bytes:
        keys = {"avro.schema": text, "avro.codec": b"null"}
        return b"Obj\x01" + encode_metadata(keys) + header.sync + data[header.size :]

    seed = json.dumps(header.schema).encode()
    outcomes = fuzz([seed], reader(schema), mutate=_changed, wrap=wrap)
    assert outcomes["read"] < INPUTS


def test_blocks_of_random_bytes_are_read_or_refused() -> None:
    schema, data = FILES["nested"]
    header = read_header(lambda offset, length: data[offset : offset + length], len(data), PLACE)

    def random_bytes(seed: bytes, chance: random.Random) -> bytes:
        groups = [chance.choice((*INTERESTING, chance.randbytes(3))) for _ in range(chance.randint(1, 200))]
        return b"".join(groups)

    def wrap(payload: bytes) -> bytes:
        count = min(len(payload), 40)
        return data[: header.size] + number(count) + number(len(payload)) + payload + header.sync

    with lanes(1):
        fuzz([b""], reader(schema), mutate=random_bytes, wrap=wrap, inputs=FEWER)


def test_the_files_themselves_are_read() -> None:
    for schema, data in FILES.values():
        assert reader(schema)(data) == 9

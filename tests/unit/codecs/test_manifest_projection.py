"""What is read of a V4 manifest and how it is stored: only wanted statistics, numbers packed, names alone."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.manifest.manifests import decode_leaf, encode_leaf, leaf_names
from icefloe.codecs.manifest.parquet import decode_parquet_manifest, encode_parquet_manifest
from icefloe.errors import CorruptFile, FormatError
from icefloe.model.entries import ContentType, StatKeys, column_key, stat_keys
from icefloe.model.location_columns import relativized, resolved
from icefloe.model.locations import is_absolute, relativize, resolve
from icefloe.model.partition.spec import UNPARTITIONED
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, STRING, Field, Struct
from support.manifests.random_entries import data_dv, differences
from support.manifests.sample import (
    IDS,
    LOCATION,
    MIXED,
    VALUES,
    column_stats,
    context,
    data_file,
    mixed_partition,
    table,
)

V4 = context(4, specs={0: UNPARTITIONED, 1: MIXED})
MEASURED = ("id", "name", "price", "seen", "raw")


def rows(count: int = 3) -> pa.Table:
    stats: dict[str, object] = {}
    for name in MEASURED:
        stats |= column_stats(name, VALUES[name], VALUES[name])
    return table([{**data_file(n), **stats, **mixed_partition()} for n in range(count)])


def encode(entries: pa.Table, content: str = "data") -> bytes:
    return encode_parquet_manifest(entries, V4, content=content)  # type: ignore[arg-type]


def decode(data: bytes, wanted: StatKeys | None = None) -> pa.Table:
    return decode_parquet_manifest(data, V4, where="here", content=("data",), wanted=wanted)


def chunks(data: bytes) -> dict[str, pq.ColumnChunkMetaData]:
    group = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    return {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}


def damaged(data: bytes, path: str) -> bytes:
    """The file with the last byte of a column's page flipped, which its checksum tells."""
    chunk = chunks(data)[path]
    at = chunk.data_page_offset + chunk.total_compressed_size - 1
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


# -- reading a part


def test_a_part_has_the_wanted_statistics_and_all_partition_values():
    whole = decode(encode(rows()))
    wanted = column_key(IDS["seen"])
    part = decode(encode(rows()), frozenset({wanted}))
    partitions = [key for key in stat_keys(whole) if key.is_partition]
    identity = {column_key(IDS["name"]), column_key(IDS["price"])}  # whose columns hold partition values
    assert len(partitions) == 4
    assert set(stat_keys(part)) == {wanted, *partitions, *identity}
    assert differences(part, whole.select(part.column_names)) == {}


def test_nothing_is_read_of_statistics_that_nobody_wants():
    data = damaged(encode(rows()), "content_stats.raw.lower_bound")
    with pytest.raises(CorruptFile):
        decode(data)
    with pytest.raises(CorruptFile):
        decode(data, frozenset({column_key(IDS["raw"])}))
    part = decode(data, frozenset({column_key(IDS["seen"])}))
    assert part.num_rows == 3


def test_a_part_without_statistics_is_read_of_an_unpartitioned_manifest():
    entries = table([{**data_file(1), **column_stats("id", 1, 5)}])
    part = decode(encode(entries), frozenset())
    assert stat_keys(part) == []
    assert part["location"].to_pylist() == entries["location"].to_pylist()


def test_a_leaf_is_read_in_part():
    data = encode(rows())
    assert column_key(IDS["raw"]) in stat_keys(decode_leaf(data, V4, where="here", content=ContentType.DATA_MANIFEST))
    assert column_key(IDS["raw"]) not in stat_keys(
        decode_leaf(data, V4, where="here", content=ContentType.DATA_MANIFEST, wanted=frozenset())
    )


# -- how columns are stored


def test_whole_numbers_are_packed_and_all_else_is_compressed():
    found = chunks(encode(rows(200)))
    for path in (
        "record_count",
        "version_info.status",
        "content_stats.id.lower_bound",
        "content_stats.seen.upper_bound",
    ):
        assert "DELTA_BINARY_PACKED" in found[path].encodings
        assert found[path].compression == "UNCOMPRESSED"
    for path in ("location", "content_stats.name.lower_bound", "content_stats.price.lower_bound"):
        assert "PLAIN" in found[path].encodings
        assert found[path].compression == "ZSTD"
    assert all(chunk.statistics is None and not chunk.has_dictionary_page for chunk in found.values())


def test_columns_whose_statistics_have_one_name_are_stored_and_read():
    # The inner field a.b and the column a_b give the same name to their structs.
    schema = Schema(fields=(Field(1, "a", Struct((Field(2, "b", LONG),))), Field(3, "a_b", STRING)))
    known = context(4, schema=schema, types={2: LONG, 3: STRING}, specs={0: UNPARTITIONED}, expressions={})
    entries = table([data_file(1)])
    entries = entries.append_column("lower_bound:2", pa.array([5])).append_column("lower_bound:3", pa.array(["five"]))
    data = encode_parquet_manifest(entries, known, content="data")
    again = decode_parquet_manifest(data, known, where="here", content=("data",))
    assert (again["lower_bound:2"].to_pylist(), again["lower_bound:3"].to_pylist()) == ([5], ["five"])


# -- names alone


def names(*numbers: int) -> pa.Array:
    return pa.array([data_file(n)["location"] for n in numbers], pa.string())


@pytest.mark.parametrize("version", [2, 4])
def test_a_leaf_tells_whether_it_names_a_file(version):
    known = context(version)
    entries = table([{**data_file(n), **mixed_partition(), "snapshot_id": 7} for n in range(20)])
    data = encode_leaf(entries, known, content=ContentType.DATA_MANIFEST, spec_id=1)
    told = [leaf_names(data, known, where="here", column="location", names=names(*n)) for n in ((3,), (77,), (77, 19))]
    assert told == [True, False, True]


def test_a_delete_leaf_tells_whether_it_has_the_vector_of_a_file():
    entries = table([data_dv(7)])
    data = encode_parquet_manifest(entries, V4, content="delete")
    target = entries["referenced_file"].combine_chunks()
    assert leaf_names(data, V4, where="here", column="referenced_file", names=target) is True
    assert leaf_names(data, V4, where="here", column="referenced_file", names=names(77)) is False
    assert leaf_names(data, V4, where="here", column="location", names=target) is False


def test_only_the_column_of_names_is_read():
    data = damaged(encode(rows()), "record_count")
    assert leaf_names(data, V4, where="here", column="location", names=names(1)) is True
    with pytest.raises(CorruptFile, match="here"):
        leaf_names(damaged(data, "location"), V4, where="here", column="location", names=names(1))


def test_an_avro_leaf_is_not_searched_for_many_names():
    known = context(2)
    data = encode_leaf(
        table([{**data_file(1), **mixed_partition()}]), known, content=ContentType.DATA_MANIFEST, spec_id=1
    )
    many = names(*range(100, 150))
    assert leaf_names(data, known, where="here", column="location", names=many) is True


# -- locations

PARTS = st.lists(st.sampled_from(["a", ".", "..", "b.", ".c", "x:", "", "d e"]), min_size=1, max_size=4)


@given(st.lists(PARTS, min_size=1, max_size=4), st.booleans())
def test_locations_are_stored_as_one_by_one(many, under):
    given_ = [(f"{LOCATION}/" if under else "s3:/") + "/".join(parts) for parts in many]
    stored = relativized(pa.array(given_, pa.string()), LOCATION).to_pylist()
    assert stored == [relativize(each, LOCATION) for each in given_]


@given(st.lists(st.one_of(PARTS.map("/".join), st.none()), min_size=1, max_size=4))
def test_locations_are_resolved_as_one_by_one(stored):
    expected: list[str | None] | None
    try:
        expected = [None if each is None else resolve(each, LOCATION) for each in stored]
    except FormatError:
        expected = None
    try:
        found = resolved(pa.array(stored, pa.string()), LOCATION, where="here").to_pylist()
    except FormatError:
        found = None
    assert found == expected
    assert found is None or all(each is None or is_absolute(each) for each in found)

"""Text that is not UTF-8 in Parquet manifests is found by the decoders, wherever it stands."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.codecs.manifest.manifests import decode_leaf, decode_root, encode_leaf, encode_root
from icefloe.codecs.manifest.utf8_checks import check_text
from icefloe.errors import CorruptFile
from icefloe.model.entries import ContentType
from support.manifests.random_entries import data_dv, manifest, manifest_dv
from support.manifests.sample import column_stats, context, data_file, mixed_partition, table
from unit.codecs.test_manifest_parquet_v3 import parquet, stored

V4 = context(4)
BAD = b"\xff\xfe\x80"

Spoil = Callable[[pa.Array], pa.Array]


def spoiled(array: pa.Array) -> pa.Array:
    """Text with its last value replaced by bytes that are no text."""
    values = array.cast(pa.binary()).to_pylist()
    return pa.array([*values[:-1], BAD], pa.binary()).view(pa.string())


def inside(*path: str) -> Spoil:
    """Structs with the text at a path spoiled."""

    def spoil(array: pa.Array) -> pa.Array:
        if len(path) == 0:
            return spoiled(array)
        fields = [array.type.field(i) for i in range(array.type.num_fields)]
        children = [array.field(i) for i in range(array.type.num_fields)]
        at = [field.name for field in fields].index(path[0])
        children[at] = inside(*path[1:])(children[at])
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())

    return spoil


def rewritten(data: bytes, column: str, spoil: Spoil) -> bytes:
    """A manifest with a column changed and no checksums of pages."""
    file = pq.read_table(pa.BufferReader(data))
    keys = pq.read_metadata(pa.BufferReader(data)).metadata
    at = file.schema.get_field_index(column)
    changed = file.set_column(at, file.schema.field(at), spoil(file.column(at).combine_chunks()))
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, changed.schema, store_schema=False, write_statistics=False) as writer:
        writer.write_table(changed)
        writer.add_key_value_metadata({k.decode(): v.decode() for k, v in keys.items() if k != b"ARROW:schema"})
    return bytes(sink.getvalue())


FILES = table([data_file(n, **mixed_partition(f"n{n}"), **column_stats("name", "a", "b")) for n in range(3)])
ROOT = table([manifest(1), manifest(2, delete=True), data_dv(3), manifest_dv(1)])


@pytest.mark.parametrize(
    ("column", "path"),
    [
        ("location", ()),
        ("file_format", ()),
        ("content_stats", ("name", "lower_bound")),
        ("content_stats", ("name", "upper_bound")),
    ],
)
def test_text_of_a_leaf_that_is_not_utf8_is_refused(column: str, path: tuple[str, ...]) -> None:
    data = rewritten(encode_leaf(FILES, V4, content=ContentType.DATA_MANIFEST, spec_id=1), column, inside(*path))
    named = r"\.".join((column, *path))
    with pytest.raises(CorruptFile, match=rf"m0: {named}: text that is not UTF-8"):
        decode_leaf(data, V4, where="m0", content=ContentType.DATA_MANIFEST)


def test_text_of_a_root_that_is_not_utf8_is_refused() -> None:
    whole = encode_root(ROOT, V4, snapshot_id=1, parent_id=None, sequence_number=1)
    with pytest.raises(CorruptFile, match="r0: referenced_file: text that is not UTF-8"):
        decode_root(rewritten(whole, "referenced_file", spoiled), V4, where="r0")


@pytest.mark.parametrize("path", [("file_path",), ("file_format",), ("partition", "name")])
def test_text_of_version_3_entries_that_is_not_utf8_is_refused(path: tuple[str, ...]) -> None:
    whole = parquet([stored(n) for n in range(2)])
    data = rewritten(whole, "data_file", inside(*path))
    with pytest.raises(CorruptFile, match=rf"m0: data_file\.{'.'.join(path)}: text that is not UTF-8"):
        decode_leaf(data, V4, where="m0", content=ContentType.DATA_MANIFEST)


def test_bounds_of_version_3_entries_that_are_not_utf8_are_unknown() -> None:
    """DuckDB cut bounds in the middle of a character: no commit could write such an entry again."""
    rows = [stored(n) for n in range(3)]
    for row, bound in zip(rows, (BAD, b"a", "Grüße 🧊".encode()), strict=True):
        row["data_file"]["lower_bounds"] = [(10, bound)]
    found = decode_leaf(parquet(rows), V4, where="m0", content=ContentType.DATA_MANIFEST)
    assert found["lower_bound:10"].to_pylist() == [None, "a", "Grüße 🧊"]


def bad_list(type_: pa.DataType) -> pa.Array:
    values = pa.array([b"a", BAD], pa.binary()).view(pa.string())
    if pa.types.is_map(type_):
        return pa.MapArray.from_arrays([0, 2], pa.array([1, 2], pa.int32()), values)
    return pa.ListArray.from_arrays([0, 2], values)


@pytest.mark.parametrize(
    ("column", "path"),
    [
        (bad_list(pa.list_(pa.string())), "c.element"),
        (bad_list(pa.map_(pa.int32(), pa.string())), "c.value"),
        (spoiled(pa.array(["a", "b"])).dictionary_encode(), "c"),
        (pa.chunked_array([pa.array(["a"]), spoiled(pa.array(["b"]))]), "c"),
    ],
)
def test_text_is_found_in_every_kind_of_column(column: pa.Array, path: str) -> None:
    with pytest.raises(CorruptFile, match=f"here: {path}: "):
        check_text(pa.table({"c": column}), where="here")


def test_other_columns_may_hold_any_bytes() -> None:
    check_text(pa.table({"raw": [BAD], "n": [1], "text": ["Grüße 🧊"], "none": pa.nulls(1, pa.string())}), where="here")

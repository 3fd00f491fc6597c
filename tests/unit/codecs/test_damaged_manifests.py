"""Damaged manifests of every kind give an error of this library that names the file, or a whole table."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.manifest.manifests import (
    avro_leaf_version,
    decode_leaf,
    decode_root,
    encode_leaf,
    encode_root,
    extension,
)
from icefloe.errors import CorruptFile, FormatError, IcefloeError, LimitError
from icefloe.limits import Limits
from icefloe.model.entries import ENTRY, ContentType
from support.manifests.random_entries import data_dv, manifest_dv, mixed_manifest
from support.manifests.sample import column_stats, context, data_file, mixed_partition, table

FILES = table([data_file(n, **mixed_partition(f"n{n}"), **column_stats("id", n, n)) for n in range(5)])
ROOT = table([*FILES.to_pylist(), mixed_manifest(1), manifest_dv(1), data_dv(1, **mixed_partition(count=3))])
LISTED = table([mixed_manifest(1), mixed_manifest(2, delete=True)])

Decoder = Callable[[bytes], pa.Table]


def leaf(version: int) -> tuple[bytes, Decoder]:
    known = context(version)
    data = encode_leaf(FILES, known, content=ContentType.DATA_MANIFEST, spec_id=1)
    return data, lambda damaged: decode_leaf(damaged, known, where="the file", content=ContentType.DATA_MANIFEST)


def root(version: int) -> tuple[bytes, Decoder]:
    known = context(version)
    rows = ROOT if version == 4 else LISTED
    data = encode_root(rows, known, snapshot_id=1, parent_id=None, sequence_number=5)
    return data, lambda damaged: decode_root(damaged, known, where="the file")


KINDS = {"avro leaf": leaf(2), "avro root": root(2), "parquet leaf": leaf(4), "parquet root": root(4)}


def attempt(decode: Decoder, damaged: bytes) -> pa.Table | None:
    """The decoded rows, or none if they were refused properly."""
    try:
        return decode(damaged)
    except IcefloeError as error:
        if "the file" not in str(error):
            raise
        return None


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_a_flipped_byte_gives_an_error_or_a_whole_table(kind: str, data: st.DataObject) -> None:
    whole, decode = KINDS[kind]
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[:place] + bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :]
    rows = attempt(decode, flipped)
    if rows is not None:
        rows.validate(full=True)
        assert rows.schema.names[: len(ENTRY)] == ENTRY.names


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_a_cut_file_is_refused(kind: str, data: st.DataObject) -> None:
    whole, decode = KINDS[kind]
    rows = attempt(decode, whole[: data.draw(st.integers(0, len(whole) - 1))])
    # An Avro file has no end mark: one that was cut between blocks is a shorter file, which record_count tells.
    assert rows is None or rows.num_rows == 0


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_overwritten_bytes_give_an_error_or_a_whole_table(kind: str, data: st.DataObject) -> None:
    whole, decode = KINDS[kind]
    place = data.draw(st.integers(0, len(whole) - 1))
    noise = data.draw(st.binary(min_size=1, max_size=16))
    rows = attempt(decode, whole[:place] + noise + whole[place + len(noise) :])
    if rows is not None:
        rows.validate(full=True)


@pytest.mark.parametrize("kind", ["parquet leaf", "parquet root"])
def test_no_flipped_byte_in_parquet_pages_goes_unnoticed(kind: str) -> None:
    """Pages have checksums, so damage in them is an error or lies in a header and changes nothing."""
    whole, decode = KINDS[kind]
    expected = decode(whole)
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for place in range(4, footer, 17):
        flipped = whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :]
        rows = attempt(decode, flipped)
        assert rows is None or rows.equals(expected)


@pytest.mark.parametrize("decode", [decode for _, decode in KINDS.values()])
def test_other_files_are_refused_by_their_first_bytes(decode: Decoder) -> None:
    for data in (b"", b"PFA1" * 9, b"{}", b"PAR1", b"Obj\x01"):
        with pytest.raises(CorruptFile, match="the file"):
            decode(data)


@pytest.mark.parametrize("version", [2, 4])
def test_a_file_beyond_the_size_limit_is_not_decoded(version: int) -> None:
    tight = context(version, limits=Limits(manifest_bytes=100))
    data = encode_leaf(FILES, context(version), content=ContentType.DATA_MANIFEST, spec_id=1)
    with pytest.raises(LimitError, match="limit of 100"):
        decode_leaf(data, tight, where="the file", content=ContentType.DATA_MANIFEST)
    with pytest.raises(LimitError, match="limit of 100"):
        decode_root(data, tight, where="the file")


def test_the_version_decides_how_manifests_are_written() -> None:
    assert [extension(context(version)) for version in (2, 3, 4)] == ["avro", "avro", "parquet"]
    assert KINDS["avro leaf"][0].startswith(b"Obj\x01")
    assert KINDS["parquet root"][0].startswith(b"PAR1")


@pytest.mark.parametrize("key", [b"format-version", b"schema-id"])
def test_a_header_that_is_not_text_gives_the_version_or_an_error_of_this_library(key: bytes) -> None:
    whole, _ = KINDS["avro leaf"]
    value = whole.index(key) + len(key) + 1  # after the length of the value
    damaged = whole[:value] + b"\xff" + whole[value + 1 :]

    def fetch(offset: int, length: int) -> bytes:
        return damaged[offset : offset + length]

    if key == b"format-version":
        with pytest.raises(FormatError, match="the file: format-version is"):
            avro_leaf_version(fetch, len(damaged), where="the file")
    else:
        assert avro_leaf_version(fetch, len(damaged), where="the file") == 2

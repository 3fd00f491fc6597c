from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.codecs.puffin.deletion_vector import decode_dv, encode_dv
from icefloe.codecs.puffin.puffin_file import (
    MAGIC,
    Blob,
    BlobLocation,
    decode_puffin_footer,
    deletion_vector_blob,
    encode_puffin,
)
from icefloe.errors import CorruptFile, FormatError, IcefloeError, InputError, LimitError, UnsupportedError
from icefloe.limits import Limits
from support.shared_files import shared
from support.statistics_files import read_blob

BLOBS = (Blob(type="a", data=b"first", fields=(1, 2), snapshot_id=3, sequence_number=4), Blob(type="b", data=b""))


def golden(name: str) -> bytes:
    return shared(f"golden/apache/puffin/{name}.bin").read_bytes()


def with_footer(payload: bytes, flags: int = 0) -> bytes:
    return MAGIC + MAGIC + payload + len(payload).to_bytes(4, "little") + flags.to_bytes(4, "little") + MAGIC


def test_blobs_and_their_descriptions_come_back() -> None:
    data, places = encode_puffin(BLOBS, created_by="a test")
    footer = decode_puffin_footer(data, where="f")
    assert [blob.location for blob in footer.blobs] == list(places)
    assert [read_blob(data, blob) for blob in footer.blobs] == [b"first", b""]
    assert (footer.blobs[0].fields, footer.blobs[0].snapshot_id, footer.blobs[0].sequence_number) == ((1, 2), 3, 4)
    assert footer.properties == {"created-by": "a test"}


def test_a_deletion_vector_lies_where_the_footer_says() -> None:
    blob = deletion_vector_blob(encode_dv(BitMap64([5])), referenced_file="data/a.parquet", cardinality=1)
    data, (place,) = encode_puffin([blob], created_by="a test")
    (found,) = decode_puffin_footer(data, where="f").blobs
    assert found.type == "deletion-vector-v1"
    assert found.fields == (2147483645,)
    assert (found.snapshot_id, found.sequence_number, found.compression_codec) == (-1, -1, None)
    assert found.properties == {"referenced-data-file": "data/a.parquet", "cardinality": "1"}
    stored = data[place.offset : place.offset + place.length]
    assert decode_dv(stored, where="f", cardinality=1) == BitMap64([5])


def test_apaches_empty_file_is_read() -> None:
    expected = golden("empty-puffin-uncompressed")
    footer = decode_puffin_footer(expected, where="f")
    assert (footer.blobs, footer.properties) == ((), {})
    assert expected[:8] == MAGIC + MAGIC


@pytest.mark.parametrize("name", ["sample-metric-data-uncompressed", "sample-metric-data-compressed-zstd"])
def test_apaches_sample_blobs_are_read(name: str) -> None:
    data = golden(name)
    first, second = decode_puffin_footer(data, where="f").blobs
    assert (first.type, first.fields, first.snapshot_id, first.sequence_number) == ("some-blob", (1,), 2, 1)
    assert read_blob(data, first) == b"abcdefghi"
    text = "some blob \x00 binary data 🤯 that is not very very very very very very long, is it?"
    assert read_blob(data, second) == text.encode()


@pytest.mark.parametrize("codec", [None, "zstd"])
def test_blobs_come_back_from_every_form_of_file(codec: str | None) -> None:
    contents = [b"", b"a", b"abc" * 5_000, bytes(range(256)), b"\x00" * 5_000_000]
    blobs = [Blob(type="t", data=data, compression_codec=codec, properties={"n": "1"}) for data in contents]
    file, _ = encode_puffin(blobs, created_by="a test")
    footer = decode_puffin_footer(file, where="f")
    assert [read_blob(file, blob) for blob in footer.blobs] == contents
    assert {(blob.compression_codec, blob.properties["n"]) for blob in footer.blobs} == {(codec, "1")}


@pytest.mark.parametrize("name", ["empty-puffin-uncompressed", "sample-metric-data-uncompressed"])
def test_apaches_files_are_written_back_byte_for_byte(name: str) -> None:
    data = golden(name)
    footer = decode_puffin_footer(data, where="f")
    blobs = [
        Blob(
            type=blob.type,
            data=read_blob(data, blob),
            fields=blob.fields,
            snapshot_id=blob.snapshot_id,
            sequence_number=blob.sequence_number,
            properties=blob.properties,
            compression_codec=blob.compression_codec,
        )
        for blob in footer.blobs
    ]
    assert encode_puffin(blobs, footer.properties.get("created-by"))[0] == data


def test_compressed_blobs_hold_the_size_of_their_content() -> None:
    file, (place,) = encode_puffin([Blob(type="t", data=b"x" * 100, compression_codec="zstd")], created_by=None)
    assert file[place.offset + 4 : place.offset + 6] == bytes([0x20, 100])  # one segment; the size in one byte


def test_other_codecs_are_not_written() -> None:
    with pytest.raises(InputError, match="'lz4'"):
        encode_puffin([Blob(type="t", data=b"", compression_codec="lz4")], created_by=None)


def test_a_compressed_footer_is_read_and_bounded() -> None:
    payload = pa.compress(b'{"blobs": [], "properties": {"a": "' + b"x" * 1000 + b'"}}', "lz4", asbytes=True)
    assert len(decode_puffin_footer(with_footer(payload, 1), where="f").properties["a"]) == 1000
    with pytest.raises(LimitError, match="after decompression"):
        decode_puffin_footer(with_footer(payload, 1), where="f", limits=Limits(puffin_footer_bytes=500))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", CorruptFile),
        (MAGIC * 3, CorruptFile),
        (with_footer(b"{"), CorruptFile),
        (with_footer(b"\xff"), CorruptFile),
        (with_footer(b'{"blobs": 3}'), CorruptFile),
        (with_footer(b'{"blobs": []}', 2), UnsupportedError),
        (with_footer(b"not lz4", 1), CorruptFile),
    ],
)
def test_a_broken_file_is_refused_by_name(data: bytes, error: type[IcefloeError]) -> None:
    with pytest.raises(error, match="somewhere"):
        decode_puffin_footer(data, where="somewhere")


def listing(offset: int, length: int, more: str = "") -> bytes:
    """A footer with one blob."""
    plain = '"type":"a","fields":[],"snapshot-id":1,"sequence-number":1'
    return f'{{"blobs":[{{{plain},"offset":{offset},"length":{length}{more}}}]}}'.encode()


@pytest.mark.parametrize(("offset", "length"), [(0, 1), (4, -1), (4, 100), (2**62, 2**62)])
def test_a_blob_outside_the_file_is_refused(offset: int, length: int) -> None:
    with pytest.raises(FormatError, match=r"blobs\[0\]"):
        decode_puffin_footer(with_footer(listing(offset, length)), where="f")


@given(st.data())
def test_a_damaged_file_gives_an_icefloe_error_or_a_footer(data: st.DataObject) -> None:
    whole, _ = encode_puffin(BLOBS, created_by="a test")
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[:place] + bytes([whole[place] ^ data.draw(st.integers(1, 255))]) + whole[place + 1 :]
    for damaged in (flipped, whole[:place]):
        try:
            footer = decode_puffin_footer(damaged, where="f")
        except IcefloeError:
            continue
        assert all(isinstance(blob.location, BlobLocation) for blob in footer.blobs)

"""Puffin files: a sequence of blobs and a JSON footer that describes them (Puffin spec).

The file is ``magic | blobs | magic | payload | payload size | flags | magic``. The payload may be LZ4-compressed, which
is read and not written. Blobs are written uncompressed or with Zstandard; only deletion vectors are read, which are
never compressed.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa

from icefloe.errors import CorruptFile, FormatError, InputError, LimitError, UnsupportedError, damaged
from icefloe.limits import DEFAULT, Limits

MAGIC = b"PFA1"
DELETION_VECTOR = "deletion-vector-v1"
REFERENCED_DATA_FILE = "referenced-data-file"  # the property of a deletion vector that names its data file
POSITION_FIELD_ID = 2147483645  # the metadata column _pos, which deletion vectors are about
UNKNOWN = -1  # snapshot id and sequence number of a blob that is written before its commit

_TAIL = struct.Struct("<iI4s")  # payload size, flags, magic
_LZ4_PAYLOAD = 1
MIN_FILE_BYTES = 2 * len(MAGIC) + _TAIL.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Bytes to be stored with what the footer says about them."""

    type: str
    data: bytes
    fields: tuple[int, ...] = ()
    snapshot_id: int = UNKNOWN
    sequence_number: int = UNKNOWN
    properties: Mapping[str, str] = field(default_factory=dict)
    compression_codec: str | None = None  # zstd or none; a deletion vector is never compressed


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobLocation:
    """The bytes of a blob in its file."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobMetadata:
    """The entry of one blob in a footer."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    location: BlobLocation
    compression_codec: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PuffinFooter:
    """The blobs of a file, and its properties such as ``created-by``."""

    blobs: tuple[BlobMetadata, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


class _BlobJson(msgspec.Struct, rename="kebab", omit_defaults=True):
    type: str
    fields: list[int]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    compression_codec: str | None = None
    properties: dict[str, str] = msgspec.field(default_factory=dict)


class _FooterJson(msgspec.Struct, omit_defaults=True):
    blobs: list[_BlobJson]
    properties: dict[str, str] = msgspec.field(default_factory=dict)


def deletion_vector_blob(data: bytes, *, referenced_file: str, cardinality: int) -> Blob:
    """The blob of a deletion vector of ``referenced_file``, whose spelling is kept."""
    properties = {REFERENCED_DATA_FILE: referenced_file, "cardinality": str(cardinality)}
    return Blob(type=DELETION_VECTOR, data=data, fields=(POSITION_FIELD_ID,), properties=properties)


def encode_puffin(blobs: Sequence[Blob], created_by: str | None) -> tuple[bytes, tuple[BlobLocation, ...]]:
    """A file of blobs, and the location of each blob in it.

    >>> data, locations = encode_puffin([Blob(type="note", data=b"hello")], created_by="doc")
    >>> data[locations[0].offset : locations[0].offset + locations[0].length]
    b'hello'
    """
    stored = [_compress(blob.data, blob.compression_codec) for blob in blobs]
    locations: list[BlobLocation] = []
    offset = len(MAGIC)
    for data in stored:
        locations.append(BlobLocation(offset=offset, length=len(data)))
        offset += len(data)
    listed = [_to_json(blob, location) for blob, location in zip(blobs, locations, strict=True)]
    properties = {} if created_by is None else {"created-by": created_by}
    payload = msgspec.json.encode(_FooterJson(blobs=listed, properties=properties))
    tail = _TAIL.pack(len(payload), 0, MAGIC)
    return b"".join([MAGIC, *stored, MAGIC, payload, tail]), tuple(locations)


def footer_bytes(data: bytes) -> int:
    """The size of a whole file's footer, from its first magic to its last, as statistics entries record it."""
    size, _, _ = _TAIL.unpack_from(data, len(data) - _TAIL.size)
    return int(len(MAGIC) + size + _TAIL.size)


def _compress(data: bytes, codec: str | None) -> bytes:
    """The bytes of a blob as they are stored. Arrow's Zstandard frames hold the content size, as Puffin requires."""
    if codec not in (None, "zstd"):
        raise InputError(f"Puffin blobs are written uncompressed or with zstd, not {codec!r}", codec=codec)
    return data if codec is None else bytes(pa.compress(data, codec, asbytes=True))


def _to_json(blob: Blob, location: BlobLocation) -> _BlobJson:
    return _BlobJson(
        type=blob.type,
        fields=list(blob.fields),
        snapshot_id=blob.snapshot_id,
        sequence_number=blob.sequence_number,
        offset=location.offset,
        length=location.length,
        compression_codec=blob.compression_codec,
        properties=dict(blob.properties),
    )


def decode_puffin_footer(data: bytes, *, where: str, limits: Limits = DEFAULT) -> PuffinFooter:
    """The footer of a whole file; every blob is checked to be inside the file."""
    payload, blobs_end = _payload(data, where, limits)
    return _footer(payload, blobs_end, where)


def _payload(data: bytes, where: str, limits: Limits) -> tuple[bytes, int]:
    """The JSON of a whole file's footer, and where its blobs end."""
    if len(data) < MIN_FILE_BYTES or not data.startswith(MAGIC) or not data.endswith(MAGIC):
        raise CorruptFile(f"{where}: not a whole Puffin file", location=where)
    size, flags, _ = _TAIL.unpack_from(data, len(data) - _TAIL.size)
    if size > limits.puffin_footer_bytes:
        raise LimitError(f"{where}: a footer of {size} bytes, limit {limits.puffin_footer_bytes}", location=where)
    end = len(data) - _TAIL.size
    start = end - size
    if size < 0 or start < 2 * len(MAGIC) or data[start - len(MAGIC) : start] != MAGIC:
        raise CorruptFile(f"{where}: the footer does not begin where its size of {size} says", location=where)
    if flags & ~_LZ4_PAYLOAD != 0:
        raise UnsupportedError(f"{where}: unknown Puffin flags {flags:#x}", location=where)
    payload = data[start:end]
    if flags & _LZ4_PAYLOAD != 0:
        payload = _decompressed(payload, limits.puffin_footer_bytes, where)
    return payload, start - len(MAGIC)


def with_references(data: bytes, references: Mapping[str, str], *, where: str, limits: Limits = DEFAULT) -> bytes:
    """A whole file whose blobs name other data files, by their former names; blobs keep their bytes and offsets.

    >>> blob = deletion_vector_blob(b"bits", referenced_file="/old/a", cardinality=1)
    >>> moved = with_references(encode_puffin([blob], None)[0], {"/old/a": "/new/a"}, where="x")
    >>> decode_puffin_footer(moved, where="x").blobs[0].properties[REFERENCED_DATA_FILE]
    '/new/a'
    """
    payload, blobs_end = _payload(data, where, limits)
    _footer(payload, blobs_end, where)
    footer = msgspec.json.decode(payload)
    for blob in footer["blobs"]:
        properties = blob.get("properties", {})
        if properties.get(REFERENCED_DATA_FILE) in references:
            properties[REFERENCED_DATA_FILE] = references[properties[REFERENCED_DATA_FILE]]
    changed = msgspec.json.encode(footer)
    return b"".join([data[:blobs_end], MAGIC, changed, _TAIL.pack(len(changed), 0, MAGIC)])


def _footer(payload: bytes, blobs_end: int, where: str) -> PuffinFooter:
    try:
        decoded = msgspec.json.decode(payload, type=_FooterJson)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptFile(f"{where}: the Puffin footer is broken: {error}", location=where) from error
    for index, blob in enumerate(decoded.blobs):
        if blob.offset < len(MAGIC) or blob.length < 0 or blob.offset + blob.length > blobs_end:
            raise FormatError(
                f"{where}: blobs[{index}]: bytes {blob.offset} to {blob.offset + blob.length} are not in the file",
                location=where,
            )
    return PuffinFooter(blobs=tuple(_from_json(blob) for blob in decoded.blobs), properties=decoded.properties)


def _from_json(blob: _BlobJson) -> BlobMetadata:
    return BlobMetadata(
        type=blob.type,
        fields=tuple(blob.fields),
        snapshot_id=blob.snapshot_id,
        sequence_number=blob.sequence_number,
        location=BlobLocation(offset=blob.offset, length=blob.length),
        compression_codec=blob.compression_codec,
        properties=blob.properties,
    )


def _decompressed(payload: bytes, limit: int, where: str) -> bytes:
    """One LZ4 frame; reading stops at the limit, whatever size the frame records."""
    try:
        with pa.CompressedInputStream(pa.BufferReader(payload), "lz4") as stream:
            decompressed: Any = stream.read(limit + 1)
    except (OSError, pa.ArrowException) as error:
        raise damaged(error, f"{where}: broken lz4 data: {error}", location=where) from error
    if len(decompressed) > limit:
        raise LimitError(f"{where}: more than {limit} bytes after decompression", location=where)
    return bytes(decompressed)

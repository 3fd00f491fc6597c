"""The codecs of Avro blocks, by the names of the Avro specification (spec: Appendix A, Avro).

The size of a decompressed block is limited before it is allocated: a few bytes can inflate to any size.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable

import pyarrow as pa

from icefloe.errors import LimitError, UnsupportedError
from icefloe.limits import MIB

_CHECKSUM_BYTES = 4


def decompress(block: bytes, codec: str, budget: int, where: str) -> bytes:
    """Decompresses a block. LimitError if the result exceeds the budget, ValueError if the block is damaged."""
    match codec:
        case "null":
            data = block
        case "deflate":
            data = _whole(zlib.decompressobj(-zlib.MAX_WBITS), block, budget, codec)
        case "snappy":
            data = bytes(pa.Codec("snappy").decompress(block[:-4], _snappy_size(block, budget), asbytes=True))
            if zlib.crc32(data) != int.from_bytes(block[-_CHECKSUM_BYTES:], "big"):
                raise ValueError("the checksum of a block is wrong")
        case "zstandard":
            data = _zstandard(block, budget)
        case "bzip2":
            data = _whole(bz2.BZ2Decompressor(), block, budget, codec)
        case "xz":
            data = _whole(lzma.LZMADecompressor(memlimit=64 * MIB), block, budget, codec)
        case _:
            raise UnsupportedError(f"{where}: Avro codec {codec!r}", location=where)
    if len(data) > budget:
        raise LimitError(f"{where}: blocks inflate beyond the limit", location=where)
    return data


def compressor(codec: str, level: int | None = None) -> Callable[[memoryview], bytes]:
    """The function that compresses blocks; without a level, at the default level of the codec."""
    match codec:
        case "null":
            return bytes
        case "deflate":
            return lambda data: _deflated(data, -1 if level is None else level)
        case "snappy":
            engine = pa.Codec("snappy")
            return lambda data: engine.compress(data, asbytes=True) + zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "big")
        case "zstandard":
            zstd = pa.Codec("zstd", level)
            return lambda data: bytes(zstd.compress(data, asbytes=True))
    raise UnsupportedError(f"Avro codec {codec!r} is not written", codec=codec)


def _deflated(data: memoryview, level: int) -> bytes:
    engine = zlib.compressobj(level, wbits=-zlib.MAX_WBITS)
    return engine.compress(data) + engine.flush()


def _whole(
    engine: zlib._Decompress | bz2.BZ2Decompressor | lzma.LZMADecompressor, block: bytes, budget: int, codec: str
) -> bytes:
    data = engine.decompress(block, budget + 1)
    if len(data) <= budget and not engine.eof:
        raise ValueError(f"a {codec} block is cut short")
    return data


def _zstandard(block: bytes, budget: int) -> bytes:
    """Frames do not always record the size of their content, so it is read in chunks."""
    parts: list[bytes] = []
    left = budget + 1
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        while left > 0 and len(part := stream.read(min(left, MIB))) > 0:
            parts.append(part)
            left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _snappy_size(block: bytes, budget: int) -> int:
    """The size before compression, with which a snappy block begins."""
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return min(size, budget + 1)

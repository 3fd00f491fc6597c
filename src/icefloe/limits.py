"""Bounds on untrusted input: every decoder takes a ``Limits`` and refuses what exceeds it."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a decoder may be made to do by the bytes it reads."""

    metadata_bytes: int = 512 * MIB  # one metadata.json, after decompression
    manifest_bytes: int = 512 * MIB  # one manifest or manifest list, as stored
    manifest_entries: int = 10_000_000
    puffin_footer_bytes: int = 64 * MIB
    deletion_vector_bytes: int = 256 * MIB
    avro_block_bytes: int = 512 * MIB  # one block of an Avro data file, decompressed
    type_depth: int = 100
    expression_depth: int = 1_000  # filters inside filters


DEFAULT = Limits()

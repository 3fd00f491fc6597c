"""Bounds on untrusted input: every decoder takes a ``Limits`` and refuses what exceeds it."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024
_SMALL = 16 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much work and memory a decoder may spend on a file."""

    metadata_bytes: int = 512 * MIB  # one metadata.json, after decompression
    manifest_bytes: int = 512 * MIB  # one manifest or manifest list, as stored
    inflation: int = 100  # how many times larger metadata may be than the file that it is compressed in
    manifest_entries: int = 10_000_000
    puffin_footer_bytes: int = 64 * MIB
    deletion_vector_bytes: int = 256 * MIB
    avro_block_bytes: int = 512 * MIB  # one block of an Avro data file, decompressed
    type_depth: int = 100
    expression_depth: int = 1_000  # filters inside filters

    def inflated(self, stored: int, most: int) -> int:
        """How many bytes a file of ``stored`` bytes may have after decompression, never more than ``most``.

        Small files may inflate more: they do no harm.

        >>> DEFAULT.inflated(10 * MIB, 512 * MIB) // MIB, DEFAULT.inflated(1000, 512 * MIB) // MIB
        (512, 16)
        """
        return min(most, max(_SMALL, self.inflation * stored))


DEFAULT = Limits()

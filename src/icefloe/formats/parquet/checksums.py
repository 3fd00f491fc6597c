"""Checksums of the pages of Parquet files (spec: Appendix A, Parquet).

A page header may have a CRC-32 of the page as it is stored. Arrow compares it if it is asked to, and takes a page
without one as it is. A footer does not say whether pages have checksums; a writer gives them to all pages or to none,
so the first page of a file tells.
"""

from __future__ import annotations

from typing import Any

from icefloe.codecs.parquet.pages import read_page_header
from icefloe.errors import CorruptFile

_HEADER_BYTES = 256  # more than most headers have; those with long bounds are read again


class Checksums:
    """Asks a reader to compare checksums with the stored pages; the reader reports whether the file has any."""

    def __init__(self) -> None:
        self.present = False


def has_checksums(source: Any, footer: Any) -> bool:
    """Whether the pages of an open file have checksums; a file without pages has nothing that could be damaged."""
    chunks = (
        footer.row_group(group).column(column)
        for group in range(footer.num_row_groups)
        for column in range(footer.num_columns)
    )
    chunk = next((chunk for chunk in chunks if chunk.num_values > 0), None)
    if chunk is None:
        return True
    length = _HEADER_BYTES
    while True:
        data = source.read_at(length, chunk.data_page_offset)
        try:
            return read_page_header(data).has_checksum
        except CorruptFile:
            if len(data) < length or length > chunk.total_compressed_size:
                return False  # some writers give the place of the dictionary; what cannot be read is found by reading
            length *= 16

"""Page indexes of Parquet files, and footers for files of copied pages.

Replaces a Thrift library and a second Parquet reader (decision 024): Arrow neither exposes the page index nor reads
ranges of rows. ``ParquetTail`` reads a footer, ``decode_pages`` and ``decode_page_bounds`` an index, and
``read_page_header`` the head of a page.
"""

from __future__ import annotations

from icefloe.codecs.parquet.pages.footer import (
    MAGIC,
    Copied,
    PageBounds,
    PageHeader,
    Pages,
    ParquetTail,
    Range,
    decode_page_bounds,
    decode_pages,
    read_page_header,
)

__all__ = [
    "MAGIC",
    "Copied",
    "PageBounds",
    "PageHeader",
    "Pages",
    "ParquetTail",
    "Range",
    "decode_page_bounds",
    "decode_pages",
    "read_page_header",
]

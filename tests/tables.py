"""What tests of whole tables share: catalogs in a folder, and rows in an order that can be compared."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from icefloe.table.catalog import Catalog, catalog

VERSIONS = (2, 4)


def new_catalog(folder: Path, name: str = "lake") -> Catalog:
    """A SQLite catalog with its warehouse beside it; the same folder gives the same catalog."""
    return catalog(name, uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")


def sorted_rows(table: pa.Table) -> list[tuple[object, ...]]:
    """Rows as tuples, in an order that does not depend on files."""
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)

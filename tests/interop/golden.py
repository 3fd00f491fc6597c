"""Tables that other programs wrote, kept as files: where they are, and icefloe's plans of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from icefloe.codecs.context import manifest_context
from icefloe.codecs.metadata_json import decode_metadata
from icefloe.expr.nodes import ALWAYS_TRUE, Expr
from icefloe.io.local import LocalFileIO
from icefloe.model.metadata import TableMetadata
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import Plan
from icefloe.tree.store import ManifestCache, ManifestStore


class Relative(LocalFileIO):
    """Local files named relative to the working folder, which icefloe itself does not take."""

    def read(self, location: str) -> bytes:
        return super().read(absolute(location))

    def arrow_path(self, location: str) -> tuple[Any, str]:
        return super().arrow_path(absolute(location))


def absolute(location: str) -> str:
    return location if ":" in location or location.startswith("/") else str(Path.cwd() / location)


def metadata_files(table: str) -> list[str]:
    return sorted(map(str, Path("data/persistent", table, "metadata").glob("*.metadata.json")))


def metadata_of(file: str) -> TableMetadata:
    return decode_metadata(Path(file).read_bytes(), where=file)


def plan_of(metadata: TableMetadata, filter_: Expr = ALWAYS_TRUE) -> Plan:
    store = ManifestStore(Relative(), manifest_context(metadata), ManifestCache())
    return plan_scan(store, metadata, metadata.current_snapshot, filter=filter_)

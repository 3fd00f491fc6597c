"""The state of a table that an attempt starts with: its pointer, its metadata and its manifests."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icefloe.catalogs.catalog import Pointer, Pointers, same_file
from icefloe.catalogs.names import Identifier
from icefloe.codecs.manifest.context import manifest_context
from icefloe.commit.table_location import read_metadata
from icefloe.errors import ConflictError
from icefloe.io.contained import ALLOWED_ROOTS, contain
from icefloe.io.file_io import FileIO
from icefloe.limits import DEFAULT, Limits
from icefloe.model.metadata.properties import DATA_PATH
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.tree.disk_cache import DiskCache
from icefloe.tree.store import ManifestCache, ManifestStore

CACHE_FOLDER = "cache.folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The state of a table when it was loaded."""

    pointer: str  # the location of its metadata file
    metadata: TableMetadata
    store: ManifestStore
    mark: bytes | None = None  # identifies the file, if another file may get the same name
    name: str | None = None  # of the table, in its catalog

    @property
    def expected(self) -> str:
        """The pointer as the catalog returned it, which a swap expects."""
        return self.pointer if self.mark is None else Pointer(self.pointer, mark=self.mark)


class TablePointer:
    """A table in a catalog. Loads its current state, and decodes a metadata file only if the pointer has changed.

    ``settings`` are those of the catalog: ``cache.folder`` caches decoded manifests on local disk for later processes,
    ``allowed-roots`` are locations outside the table from which files may be read. ``location`` is where the table is,
    if the catalog or the user knows; ``stated_location`` is then the location in its metadata, if it is a different
    one.

    A pickled one has the state that was held, and reaches the catalog and the storage with the same settings and keys.
    """

    def __init__(
        self,
        catalog: Pointers,
        identifier: Identifier,
        io: FileIO,
        limits: Limits = DEFAULT,
        settings: Mapping[str, str] | None = None,
        location: str | None = None,
        cache: ManifestCache | None = None,
    ) -> None:
        self.catalog = catalog
        self.identifier = identifier
        self.io = io
        self.stated_location: str | None = None
        self._location = location
        self._limits = limits
        self._settings: Mapping[str, str] = {} if settings is None else settings
        self._cache = ManifestCache() if cache is None else cache
        folder = self._settings.get(CACHE_FOLDER)
        self._disk = None if folder is None else DiskCache(folder)
        self._last: Base | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    def __str__(self) -> str:
        return ".".join(self.identifier)

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of the catalog."""
        return self._settings

    def load(self) -> Base:
        """The current state; ConflictError if the name belongs to another table now."""
        last = self._last
        pointer = self.catalog.load(self.identifier)
        if last is not None and same_file(last.expected, pointer):
            return last
        metadata, stated = read_metadata(self._metadata_io(pointer), pointer, self._location, self._limits)
        if last is not None and last.metadata.table_uuid not in ("", metadata.table_uuid):  # v1 may have none
            raise ConflictError(
                f"table {self} was dropped, and another table has its name now, at {pointer}: its uuid is"
                f" {metadata.table_uuid}, expected {last.metadata.table_uuid}; load the table again",
                table=str(self),
                location=pointer,
                retryable=False,
                next_step="Load the table again by its name; it is another table now.",
            )
        self.stated_location = stated
        return self.remember(pointer, metadata, replaces=last)

    def _metadata_io(self, pointer: str) -> FileIO:
        """The storage of a metadata file. With ``allowed-roots`` a link must not lead out of them and its folder."""
        if ALLOWED_ROOTS not in self._settings:
            return self.io
        return contain(self.io, pointer.rpartition("/")[0], self._settings)

    def held(self) -> Base:
        """The state that was loaded or committed last; loads one only if there is none yet."""
        last = self._last
        return self.load() if last is None else last

    def remember(self, pointer: str, metadata: TableMetadata, *, replaces: Base | None = None) -> Base:
        """Hold a state that is known without reading it back.

        A newer state that another thread has stored meanwhile is kept: it is not the one to replace, and its metadata
        log names this one.
        """
        last = self._last
        if last is not None and decodes_alike(last.metadata, metadata):
            store = last.store
        else:
            data_path = metadata.properties.get(DATA_PATH.name)
            io = contain(self.io, metadata.location, self._settings, data_path=data_path)
            store = ManifestStore(io, manifest_context(metadata, self._limits), self._cache, self._disk)
        mark = pointer.mark if isinstance(pointer, Pointer) else None
        base = Base(pointer=str(pointer), metadata=metadata, store=store, mark=mark, name=str(self))
        with self._lock:
            if self._last is replaces or not _follows(self._last, base):
                self._last = base
        return base


def decodes_alike(before: TableMetadata, after: TableMetadata) -> bool:
    """Whether manifests are decoded alike with both, and new files are written to the same folders."""
    names = ("schemas", "specs", "expressions", "format_version", "location", "current_schema_id")
    is_same_path = before.properties.get(DATA_PATH.name) == after.properties.get(DATA_PATH.name)
    return is_same_path and all(getattr(before, name) == getattr(after, name) for name in names)


def _follows(state: Base | None, other: Base) -> bool:
    """Whether a state is a later state of another one; commit timestamps never go backwards."""
    if state is None or state.metadata.last_updated_ms < other.metadata.last_updated_ms:
        return False
    return other.pointer in (entry.metadata_file for entry in state.metadata.metadata_log)

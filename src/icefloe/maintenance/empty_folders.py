"""Removes the empty folders that killed Spark writes leave on a local disk (spec: File System Operations).

Spark writes below ``_temporary`` in a folder of the write, and moves the files out of it when the write ends. Object
stores have no folders.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

import pyarrow as pa

from icefloe.io.local import local_path
from icefloe.maintenance.containment import inside_mask
from icefloe.model.locations import FILE, parse_location
from icefloe.model.metadata.table_metadata import TableMetadata

_TEMPORARY = "_temporary"


def abandoned_folders(metadata: TableMetadata, folder: str, older_than_ms: int) -> tuple[str, ...]:
    """The temporary folders of writes, in a folder of the table, that have no file and did not change since a time."""
    data = metadata.data_location.rstrip("/")
    if parse_location(data).scheme != FILE:
        return ()
    try:
        with os.scandir(local_path(data)) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    found = [f"{data}/{name}/{_TEMPORARY}" for name in names if _is_abandoned(f"{data}/{name}", older_than_ms)]
    inside = inside_mask(pa.array([f"{each}/file" for each in found], pa.string()), folder).to_pylist()
    return tuple(each for each, is_inside in zip(found, inside, strict=True) if is_inside)


def _is_abandoned(write: str, older_than_ms: int) -> bool:
    """Whether the temporary folder of a write is there, empty at every depth, and old."""
    path = os.path.join(local_path(write), _TEMPORARY)
    if os.path.islink(path) or not os.path.isdir(path):
        return False
    for inner, folders, files in os.walk(path):
        is_linked = any(os.path.islink(os.path.join(inner, each)) for each in folders)
        if len(files) > 0 or is_linked or os.stat(inner).st_mtime_ns // 1_000_000 >= older_than_ms:
            return False
    return True


def remove_folders(folders: Iterable[str]) -> int:
    """Remove empty folders, and the folders of their writes if they are empty too; how many temporary ones went.

    A folder that got a file meanwhile stays, as the storage removes empty ones only.
    """
    removed = 0
    for folder in folders:
        path = local_path(folder)
        with suppress(OSError):
            for inner, _, _ in os.walk(path, topdown=False):
                os.rmdir(inner)
            removed += 1
            os.rmdir(os.path.dirname(path))
    return removed

"""Creates folders on the local disk that survive a power cut.

A new folder is durable once its parent was fsynced after its creation, and the parent's parent, and so on up. Doing
that for every file would cost one fsync per level, so durable folders are remembered, with their inodes in case a
folder is removed and recreated.
"""

from __future__ import annotations

import contextlib
import os


class DurableFolders:
    """Makes folders, and remembers which of them are durable; safe to share between threads."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int]] = {}

    def __reduce__(self) -> tuple[type[DurableFolders], tuple[()]]:
        return DurableFolders, ()  # another process may run on another machine, whose disk is another one

    def ensure(self, folder: str) -> None:
        """The folder exists on return, and its name and those above it are durable."""
        missing = self._not_known(folder)
        for path in reversed(missing):
            if not os.path.isdir(path):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(path)
            parent = os.path.dirname(path)
            if parent != path:
                _sync_if_readable(parent)
            self._known[path] = _identity(path)

    def _not_known(self, folder: str) -> list[str]:
        """The folder and those above it, up to the first one that is known, from the bottom."""
        missing: list[str] = []
        path = folder
        while True:
            known = self._known.get(path)
            if known is not None and _is_still(path, known):
                return missing
            missing.append(path)
            parent = os.path.dirname(path)
            if parent == path:
                return missing
            path = parent


def sync_folder(path: str) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_if_readable(path: str) -> None:
    # A folder that this user may not open was most likely created by another user.
    with contextlib.suppress(PermissionError):
        sync_folder(path)


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _is_still(path: str, known: tuple[int, int]) -> bool:
    try:
        return _identity(path) == known
    except OSError:
        return False

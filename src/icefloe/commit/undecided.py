"""Files of commits whose outcome nobody knows (spec: Commit Conflict Resolution and Retry).

A program may repeat an operation that ended in CommitStateUnknown with the very files it had written. If the first
commit has landed after all, the second must neither add the files again nor delete them when it fails. This process
therefore remembers such files; another process cannot have the same operation in hand.
"""

from __future__ import annotations

from collections.abc import Iterable

from icefloe.errors import ConflictError
from icefloe.model.metadata import TableMetadata

_SNAPSHOTS: dict[str, tuple[int, ...]] = {}  # by file


def remember_undecided(files: Iterable[str], snapshot_ids: tuple[int, ...]) -> None:
    """Take note of the files of a commit that may or may not have landed as these snapshots."""
    _SNAPSHOTS.update(dict.fromkeys(files, snapshot_ids))


def unreferenced(files: Iterable[str]) -> list[str]:
    """The files that no commit of unknown outcome may have put into a table."""
    return [file for file in files if file not in _SNAPSHOTS]


def check_not_landed(metadata: TableMetadata, files: Iterable[str]) -> None:
    """Refuse files that an earlier commit of unknown outcome has brought into the table."""
    if len(_SNAPSHOTS) == 0:
        return
    for file in files:
        for snapshot_id in _SNAPSHOTS.get(file, ()):
            if metadata.snapshots.find(snapshot_id) is not None:
                raise ConflictError(
                    f"table {metadata.location}: {file} is in the table already: the earlier commit whose outcome was"
                    f" unknown has landed as snapshot {snapshot_id}, so there is nothing to repeat",
                    files=[file],
                    snapshot_ids=[snapshot_id],
                )

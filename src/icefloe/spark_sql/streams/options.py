"""The options of a stream that reads a table, by the names that Apache Iceberg gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icefloe.errors import InputError
from icefloe.model.metadata.snapshots import Operation

_SKIPS = {
    Operation.OVERWRITE: "streaming-skip-overwrite-snapshots",
    Operation.DELETE: "streaming-skip-delete-snapshots",
}
_MAX_FILES, _MAX_ROWS = "streaming-max-files-per-micro-batch", "streaming-max-rows-per-micro-batch"
_FROM, _FROM_TIMESTAMP, _AFTER_SNAPSHOT = "stream-from", "stream-from-timestamp", "start-snapshot-id"
_ALL, _LATEST = "all", "latest"
_NO_LIMIT = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """Where a stream starts, how much a batch reads, and which snapshots are skipped.

    Without a start, the first batches read all rows of the table. ``from_latest`` reads only later appends;
    ``after_snapshot`` those after a snapshot, and ``from_timestamp_ms`` those that were committed at or after a time.
    """

    from_latest: bool = False
    after_snapshot: int | None = None
    from_timestamp_ms: int | None = None
    max_files: int = _NO_LIMIT
    max_rows: int = _NO_LIMIT
    skipped: frozenset[Operation] = frozenset({Operation.REPLACE})  # such as compactions, which change no rows
    branch: str | None = None


def stream_options(options: Mapping[str, str]) -> StreamOptions:
    """The options of a stream; InputError if a value makes no sense. Options of other names are left to Spark.

    >>> stream_options({"streaming-max-files-per-micro-batch": "2"}).max_files
    2
    """
    given = {name.lower(): value for name, value in options.items()}
    starts = [name for name in (_FROM, _FROM_TIMESTAMP, _AFTER_SNAPSHOT) if name in given]
    if len(starts) > 1:
        raise InputError(f"a stream has one start: give one of the options {', '.join(starts)}")
    start = given.get(_FROM, _ALL)
    if start not in (_ALL, _LATEST):
        raise InputError(f"option {_FROM}={start!r}: give {_ALL!r} or {_LATEST!r}")
    skipped = {operation for operation, name in _SKIPS.items() if _flag(given, name)}
    return StreamOptions(
        from_latest=start == _LATEST,
        after_snapshot=_number(given, _AFTER_SNAPSHOT),
        from_timestamp_ms=_number(given, _FROM_TIMESTAMP),
        max_files=_limit(given, _MAX_FILES),
        max_rows=_limit(given, _MAX_ROWS),
        skipped=frozenset({Operation.REPLACE, *skipped}),
        branch=given.get("branch"),
    )


def skip_option(operation: Operation) -> str:
    """The option that skips the snapshots of an operation."""
    return _SKIPS[operation]


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise InputError(f"option {name}={text!r}: give true or false")
    return text == "true"


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is not None and not text.isdecimal():
        raise InputError(f"option {name}={text!r} is not a number")
    return None if text is None else int(text)


def _limit(options: Mapping[str, str], name: str) -> int:
    limit = _number(options, name)
    if limit == 0:
        raise InputError(f"option {name}=0: a batch reads at least one")
    return _NO_LIMIT if limit is None else limit

"""The options of a stream that reads a table, by the names that Apache Iceberg gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icefloe.errors import InputError
from icefloe.model.metadata.snapshots import Operation
from icefloe.spark_sql.options.known_options import choice_option, lowered, number_option

_SKIPS = {
    Operation.OVERWRITE: "streaming-skip-overwrite-snapshots",
    Operation.DELETE: "streaming-skip-delete-snapshots",
}
_MAX_FILES, _MAX_ROWS = "streaming-max-files-per-micro-batch", "streaming-max-rows-per-micro-batch"
_MAX_SNAPSHOTS, _IMAGES, _KEYS = "streaming-max-snapshots-per-micro-batch", "images", "keys"
_OF_CHANGES = (_IMAGES, _KEYS, _MAX_SNAPSHOTS)
_OF_DELTA = ("readChangeFeed", "readChangeData")
_FROM, _FROM_TIMESTAMP, _AFTER_SNAPSHOT = "stream-from", "stream-from-timestamp", "start-snapshot-id"
_ALL, _LATEST, _BRANCH = "all", "latest", "branch"
_KNOWN = (
    *(_FROM, _FROM_TIMESTAMP, _AFTER_SNAPSHOT, _BRANCH, _MAX_FILES, _MAX_ROWS, *_SKIPS.values()),
    *(*_OF_CHANGES, *_OF_DELTA),
)
NO_LIMIT = (1 << 63) - 1  # of rows, files or snapshots in a batch


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """Where a stream starts, how much a batch reads, and which snapshots are skipped.

    Without a start, the first batches read all rows of the table, or all changes. ``from_latest`` reads only later
    snapshots; ``after_snapshot`` those after a snapshot, and ``from_timestamp_ms`` those that were committed at or
    after a time. ``images`` and ``keys`` pair the rows before and after an update.
    """

    from_latest: bool = False
    after_snapshot: int | None = None
    from_timestamp_ms: int | None = None
    max_files: int = NO_LIMIT
    max_rows: int = NO_LIMIT
    max_snapshots: int = NO_LIMIT
    images: bool = False
    keys: tuple[str, ...] | None = None
    skipped: frozenset[Operation] = frozenset({Operation.REPLACE})  # such as compactions, which change no rows
    branch: str | None = None


def stream_options(options: Mapping[str, str], *, of_changes: bool = False) -> StreamOptions:
    """The options of a stream of appended rows or of changes; InputError if one is not known, or makes no sense.

    >>> stream_options({"streaming-max-files-per-micro-batch": "2"}).max_files
    2
    """
    given = lowered(options, _KNOWN, "a stream")
    _check_kind(given, of_changes=of_changes)
    starts = [name for name in (_FROM, _FROM_TIMESTAMP, _AFTER_SNAPSHOT) if name in given]
    if len(starts) > 1:
        raise InputError(f"a stream has one start: give one of the options {', '.join(starts)}")
    start = given.get(_FROM, _ALL)
    if start not in (_ALL, _LATEST):
        raise InputError(f"option {_FROM}={start!r}: give {_ALL!r} or {_LATEST!r}")
    skipped = {operation for operation, name in _SKIPS.items() if _flag(given, name)}
    return StreamOptions(
        from_latest=start == _LATEST,
        after_snapshot=number_option(given, _AFTER_SNAPSHOT),
        from_timestamp_ms=number_option(given, _FROM_TIMESTAMP),
        max_files=_limit(given, _MAX_FILES),
        max_rows=_limit(given, _MAX_ROWS),
        max_snapshots=_limit(given, _MAX_SNAPSHOTS),
        images=_flag(given, _IMAGES),
        keys=key_columns(given, _KEYS),
        skipped=frozenset({Operation.REPLACE, *skipped}),
        branch=given.get(_BRANCH),
    )


def skip_option(operation: Operation) -> str:
    """The option that skips the snapshots of an operation."""
    return _SKIPS[operation]


def key_columns(options: Mapping[str, str], option: str) -> tuple[str, ...] | None:
    """The columns that an option names; none without the option.

    >>> key_columns({"Keys": "id, city"}, "keys"), key_columns({}, "keys")
    (('id', 'city'), None)
    """
    text = next((value for name, value in options.items() if name.lower() == option), None)
    if text is None:
        return None
    keys = tuple(name.strip() for name in text.split(","))
    if "" in keys:
        raise InputError(f"option {option}={text!r}: name the key columns, with commas between them")
    return keys


def _check_kind(given: Mapping[str, str], *, of_changes: bool) -> None:
    """InputError if an option is one of the other kind of stream."""
    if of_changes:
        skips = [name for name in _SKIPS.values() if name in given]
        if len(skips) > 0:
            raise InputError(
                f"option {skips[0]}: a stream of changes reads every snapshot; leave the option out, and select rows by"
                " _change_type"
            )
        if _KEYS in given and not _flag(given, _IMAGES):
            raise InputError(f"option {_KEYS} pairs the rows of updates; give the option {_IMAGES}=true too")
        return
    asked = [name for name in _OF_DELTA if given.get(name.lower(), "false").lower() != "false"]
    asked += [name for name in _OF_CHANGES if name in given]
    if len(asked) > 0:
        raise InputError(
            f"option {asked[0]}: a stream of a table reads appended rows; for its changes, read the metadata table"
            ' changes, such as spark.readStream.table("demo.db.t.changes")'
        )


def _flag(options: Mapping[str, str], name: str) -> bool:
    return choice_option(options, name, ("true", "false")) == "true"


def _limit(options: Mapping[str, str], name: str) -> int:
    limit = number_option(options, name)
    if limit == 0:
        raise InputError(f"option {name}=0: a batch reads at least one")
    return NO_LIMIT if limit is None else limit

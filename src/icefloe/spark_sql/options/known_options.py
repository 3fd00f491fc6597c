"""The options of reads, writes and streams, by the names that Apache Iceberg gives them; unknown ones are refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icefloe.errors import InputError

# Options that Spark adds, and those that name a table or a stream.
_OF_SPARK = frozenset({"path", "paths", "table", "versionasof", "timestampasof", "checkpointlocation", "queryname"})
_PREFIXES_OF_SPARK = ("__", "asyncprogresstracking")
CHANGES = "changes"  # the name of the metadata table
STARTS, ENDS = ("start-snapshot-id", "start-timestamp"), ("end-snapshot-id", "end-timestamp")
OF_STATE = ("branch", "tag", "snapshot-id", "as-of-timestamp")
# Settings of Spark by which its readers divide files among tasks.
_SPLITS = {"split-size": "spark.sql.files.maxPartitionBytes", "file-open-cost": "spark.sql.files.openCostInBytes"}


def lowered(options: Mapping[str, str], known: Iterable[str], what: str) -> dict[str, str]:
    """The options by their names in lower case; InputError for one that is not among the known ones.

    A known name that ends with a dot is a prefix.

    >>> lowered({"Split-Size": "7", "path": "db.t"}, ["split-size"], "a read")
    {'split-size': '7', 'path': 'db.t'}
    >>> lowered({"slit-size": "7"}, ["split-size", "x."], "a read")
    Traceback (most recent call last):
    icefloe.errors.InputError: option 'slit-size' is not known for a read; there are: split-size, x.<key>
    """
    names = {name.lower(): name for name in known}
    prefixes = tuple(name for name in names if name.endswith("."))
    for name in options:
        low = name.lower()
        if low in names or low in _OF_SPARK or low.startswith(prefixes + _PREFIXES_OF_SPARK):
            continue
        shown = ", ".join(sorted(f"{name}<key>" if name.endswith(".") else name for name in names.values()))
        raise InputError(f"option {name!r} is not known for {what}; there are: {shown}", option=name)
    return {name.lower(): value for name, value in options.items()}


def number_option(options: Mapping[str, str], name: str) -> int | None:
    """The value of an option that is a number."""
    text = options.get(name)
    if text is not None and not text.isdecimal():
        raise InputError(f"option {name}={text!r} is not a number", option=name)
    return None if text is None else int(text)


def choice_option(options: Mapping[str, str], name: str, values: tuple[str, ...]) -> str | None:
    """The value of an option in lower case; InputError if it is not one of ``values``."""
    text = options.get(name)
    if text is not None and text.lower() not in values:
        raise InputError(f"option {name}={text!r}: give {' or '.join(values)}", option=name)
    return None if text is None else text.lower()


def branch_by_option(named: str | None, option: str | None, *, is_selected: bool) -> str | None:
    """The branch of the option, or else the one that the name of the table selects; None for another state."""
    if option is not None and is_selected and option != named:
        raise InputError(
            f"the option branch={option} and the name of the table, which selects a branch or a state, contradict each"
            " other; give one of them",
            ref=option,
        )
    return named if option is None else option


def selecting_options(options: Mapping[str, str], metadata_table: str | None) -> dict[str, str]:
    """The options that say which rows of a table are read; InputError for one that such a read does not know.

    >>> selecting_options({"Branch": "audit", "split-size": "9", "path": "db.t"}, None)
    {'branch': 'audit'}
    """
    if metadata_table is None:
        known, what = (*OF_STATE, STARTS[0], ENDS[0], *_SPLITS), "a read"
    elif metadata_table == CHANGES:
        known, what = (*OF_STATE, *STARTS, *ENDS, *_SPLITS), "a read of changes"
    else:
        known, what = OF_STATE, f"a read of the metadata table {metadata_table}"
    given = lowered(options, known, what)
    return {name: value for name, value in given.items() if name in known and name not in _SPLITS}


def split_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The settings of Spark for how a read divides files among tasks.

    >>> split_settings({"Split-Size": "1000000"})
    {'spark.sql.files.maxPartitionBytes': '1000000'}
    """
    given = {name.lower(): value for name, value in options.items()}
    asked = {name: given[name] for name in _SPLITS if name in given}
    for name, value in asked.items():
        if not value.isdecimal() or int(value) == 0:
            raise InputError(f"option {name}={value!r}: give a number of bytes", option=name)
    return {_SPLITS[name]: value for name, value in asked.items()}

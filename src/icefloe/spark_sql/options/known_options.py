"""The names and values of options: those that a read or a write does not know are refused, not ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icefloe.errors import InputError

# What Spark itself, or the one who names a table or a stream, puts among the options.
_OF_SPARK = frozenset({"path", "paths", "table", "versionasof", "timestampasof", "checkpointlocation", "queryname"})
_PREFIXES_OF_SPARK = ("__", "asyncprogresstracking")


def lowered(options: Mapping[str, str], known: Iterable[str], what: str) -> dict[str, str]:
    """The options by their names in lower case; InputError for one that is not among the known ones.

    A known name that ends with a dot is the beginning of names.

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
    """The value of an option that has few, in lower case; InputError for another one."""
    text = options.get(name)
    if text is not None and text.lower() not in values:
        raise InputError(f"option {name}={text!r}: give {' or '.join(values)}", option=name)
    return None if text is None else text.lower()


def branch_by_option(named: str | None, option: str | None, *, is_selected: bool) -> str | None:
    """The branch of the option, or that of the name of the table; none for a state of the past."""
    if option is not None and is_selected and option != named:
        raise InputError(
            f"the option branch={option} and the name of the table, which selects a branch or a state, contradict each"
            " other; give one of them",
            ref=option,
        )
    return named if option is None else option

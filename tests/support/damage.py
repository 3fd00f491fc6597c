"""Ways to damage valid bytes, as a bad disk, an incomplete transfer or a hostile writer would."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

MOST_CHANGES = 4


def damaged(good: bytes) -> st.SearchStrategy[bytes]:
    """Valid bytes with a few changes: bytes replaced, removed, inserted or repeated, or the end cut off."""
    return st.lists(_change(len(good)), min_size=1, max_size=MOST_CHANGES).map(lambda changes: _apply(good, changes))


def _change(size: int) -> st.SearchStrategy[tuple[str, int, bytes]]:
    kinds = st.sampled_from(["replace", "insert", "remove", "repeat", "cut"])
    # Extreme bytes turn counts and lengths into huge or negative ones.
    chunks = st.one_of(
        st.binary(min_size=1, max_size=8), st.sampled_from([b"\x00" * 8, b"\xff" * 8, b"\x7f\xff\xff\xff"])
    )
    return st.tuples(kinds, st.integers(0, size), chunks)


def _apply(good: bytes, changes: list[tuple[str, int, bytes]]) -> bytes:
    data = good
    for kind, at, chunk in changes:
        head, tail = data[:at], data[at:]
        match kind:
            case "replace":
                data = head + chunk + tail[len(chunk) :]
            case "insert":
                data = head + chunk + tail
            case "remove":
                data = head + tail[len(chunk) :]
            case "repeat":
                data = head + tail[: len(chunk)] + tail
            case _:
                data = head
    return data


def damaged_json(good: bytes) -> st.SearchStrategy[bytes]:
    """A JSON document with a few of its values replaced or removed; it is still JSON."""
    paths = list(_paths(json.loads(good), ()))
    change = st.tuples(st.sampled_from(paths), st.one_of(st.just(_GONE), _VALUES))
    changes = st.lists(change, min_size=1, max_size=MOST_CHANGES)
    return changes.map(lambda found: json.dumps(_edit(json.loads(good), found)).encode())


_GONE = object()
_ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**30, 1.5, 1e308]),
    st.sampled_from(["", "x", "struct", "list", "map", "long", "fixed[99999999999]", "decimal(99, 1)", "bucket[0]"]),
)
_VALUES = st.one_of(_ATOMS, st.lists(_ATOMS, max_size=2), st.dictionaries(st.sampled_from(["type", "id", "x"]), _ATOMS))


def _paths(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from _paths(inner, (*path, key))


def _edit(document: Any, changes: list[tuple[tuple[str | int, ...], object]]) -> object:
    for path, value in changes:
        # An earlier change may have taken away the place of this one.
        with contextlib.suppress(KeyError, IndexError, TypeError):
            holder = document
            for key in path[:-1]:
                holder = holder[key]
            if value is _GONE:
                del holder[path[-1]]
            else:
                holder[path[-1]] = value
    return document

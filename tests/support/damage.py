"""Ways to damage good bytes: what a bad disk, a cut transfer or a hostile writer would leave."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

MOST_CHANGES = 4


def damaged(good: bytes) -> st.SearchStrategy[bytes]:
    """Give good bytes with a few changes: bytes replaced, cut out, put in or repeated, or the end cut off."""
    return st.lists(_change(len(good)), min_size=1, max_size=MOST_CHANGES).map(lambda changes: _apply(good, changes))


def _change(size: int) -> st.SearchStrategy[tuple[str, int, bytes]]:
    kinds = st.sampled_from(["replace", "insert", "remove", "repeat", "cut"])
    # Extreme bytes turn counts and lengths into huge or negative ones.
    pieces = st.one_of(
        st.binary(min_size=1, max_size=8), st.sampled_from([b"\x00" * 8, b"\xff" * 8, b"\x7f\xff\xff\xff"])
    )
    return st.tuples(kinds, st.integers(0, size), pieces)


def _apply(good: bytes, changes: list[tuple[str, int, bytes]]) -> bytes:
    data = good
    for kind, at, piece in changes:
        head, tail = data[:at], data[at:]
        match kind:
            case "replace":
                data = head + piece + tail[len(piece) :]
            case "insert":
                data = head + piece + tail
            case "remove":
                data = head + tail[len(piece) :]
            case "repeat":
                data = head + tail[: len(piece)] + tail
            case _:
                data = head
    return data


def damaged_json(good: bytes) -> st.SearchStrategy[bytes]:
    """Give a JSON document with a few of its values replaced by others or taken out; it stays JSON."""
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

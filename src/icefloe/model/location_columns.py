"""Columns of locations: which of them name the same file, in any spelling (V4 proposal: relative locations).

Programs write the location of one file in several ways: as a plain path, with ``file:`` or ``file://`` before it, with
``s3``, ``s3a`` or ``s3n``, or relative to the table. Equal texts are compared first. Texts that match nothing are
converted to a canonical form only if the columns are not spelled alike, which is cheap to test.
``locations.same_location`` is the same comparison of two texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import FormatError
from icefloe.model.columns import Column, one_array

_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*:"
_ABSOLUTE = f"^(/|{_SCHEME})"
_FILE_PREFIX = r"^(?i:file):(?:///|//(?i:localhost)/|/([^/]))"
_S3_PREFIX = r"^(?i:s3[an]?)://"
_STORE = re.compile(f"{_SCHEME}(?://)?|")  # the part before the authority and the path
_ROOT = rf"^((?:{_SCHEME}(?://[^/]*)?)?/)[^/].*$"  # the part of a complete location before its path
_NOT_PLAIN = r"^$|(^|/)\.\.?(/|$)"
_DOTS = r"/(\.|%2[eE]){1,2}(/|$)"


def canonical(locations: Column, table_location: str | None) -> pa.Array:
    """One text for all spellings of a location: files as plain paths, S3 as ``s3://``; null stays null.

    Without a table, relative locations stay as they are.

    >>> canonical(pa.array(["file:///wh/t/a", "/wh//t/a", "a", "s3a://b/k"]), "file:/wh/t").to_pylist()
    ['/wh/t/a', '/wh/t/a', '/wh/t/a', 's3://b/k']
    """
    texts = one_array(locations)
    absolute = pc.match_substring_regex(texts, _ABSOLUTE)
    if table_location is not None and pc.all(absolute).as_py() is False:
        inside = pc.binary_join_element_wise(pa.scalar(table_location.rstrip("/")), texts, "/")
        texts = pc.if_else(absolute, texts, inside)
    texts = pc.replace_substring_regex(texts, _FILE_PREFIX, r"/\1")
    texts = pc.replace_substring_regex(texts, _S3_PREFIX, "s3://")
    paths, remote = pc.starts_with(texts, "/"), pc.match_substring_regex(texts, "^(?i:file)://")
    if pc.any(paths).as_py() is True:
        texts = pc.if_else(paths, pc.replace_substring_regex(texts, "/{2,}", "/"), texts)
    if pc.any(remote).as_py() is True:  # a file of another host
        texts = pc.if_else(remote, pc.replace_substring_regex(texts, "([^:])/{2,}", r"\1/"), texts)
        texts = pc.replace_substring_regex(texts, "^(?i:file)://", "file://")
    return texts


def inner_paths(locations: Column, table_location: str) -> pa.Array:
    """The path of each location relative to the table, for any spelling; null if it is not inside the table.

    >>> inner_paths(pa.array(["/wh/t/data/a", "file:/wh/u/b"]), "file:///wh/t").to_pylist()
    ['data/a', None]
    """
    texts = canonical(locations, table_location)
    folder = canonical(pa.array([table_location.rstrip("/")]), None)[0].as_py() + "/"
    inner = pc.binary_replace_slice(texts, 0, len(folder.encode()), "")
    return pc.if_else(pc.starts_with(texts, folder), inner, None)


def spelled_alike(*columns: Column) -> bool:
    """Whether all locations are spelled in the same way, so that different texts certainly name different files.

    >>> spelled_alike(pa.array(["s3://b/x"]), pa.array(["s3://b//x"])), spelled_alike(pa.array(["/x", "//x"]))
    (True, False)
    """
    present = [column for column in columns if column.null_count < len(column)]
    if len(present) == 0:
        return True
    first = present[0].drop_null()[0].as_py()
    match = _STORE.match(first)
    store = "" if match is None else match[0]
    if store == "" or store.lower().startswith("file:"):
        return _plain_paths(present, first, store)
    return store.endswith("//") and all(pc.all(pc.starts_with(column, store)).as_py() is True for column in present)


def _plain_paths(columns: list[Column], first: str, store: str) -> bool:
    """Whether all are absolute paths with this text before them, and without empty segments."""
    prefix, slashes = f"{store}/", store.count("//")
    if not first.startswith(prefix):
        return False
    return all(
        pc.all(pc.starts_with(column, prefix)).as_py() is True
        and _count(column, b"//") == slashes * (len(column) - column.null_count)
        for column in columns
    )


def _count(column: Column, part: bytes) -> int:
    """How often the texts have a part, or more often: the end of one and the start of the next may make it too."""
    total = 0
    for texts in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        offsets, values = texts.buffers()[1:]
        if len(texts) > 0 and values is not None:
            first, last = np.frombuffer(offsets, np.int32)[[texts.offset, texts.offset + len(texts)]]
            total += values.slice(first, last - first).to_pybytes().count(part)
    return total


def index_of(names: Column, locations: Column, table_location: str | None) -> pa.Array:
    """For each name, the first index in ``locations`` of the same file; null if there is none."""
    names, locations = one_array(names), one_array(locations)
    indices = pc.index_in(names, value_set=locations, skip_nulls=True)
    missing = pc.and_(pc.is_valid(names), pc.is_null(indices))
    if pc.any(missing).as_py() is not True:
        return indices
    rest = names.filter(missing)
    if spelled_alike(rest, locations):
        return indices
    more = pc.index_in(canonical(rest, table_location), value_set=canonical(locations, table_location))
    return pc.replace_with_mask(indices, missing, more)


def is_among(names: Column, locations: Column, table_location: str | None) -> pa.Array:
    """Which names have the file of one of the locations; false for null."""
    return pc.is_valid(index_of(names, locations, table_location))


def respelled(names: Column, locations: Column, table_location: str | None) -> Column:
    """The names, those of files among ``locations`` in the spelling that they have there."""
    place = index_of(names, locations, table_location)
    if place.null_count == len(place):
        return names
    return pc.coalesce(pc.take(one_array(locations), place), one_array(names))


def file_names(locations: Column) -> Column:
    """The last segment of each location, which is the same in all spellings."""
    return pc.replace_substring_regex(locations, "(?s)^.*/", "")


def canonical_ranges(lower: Column, upper: Column, table_location: str | None) -> tuple[pa.Array, pa.Array]:
    """Ranges of locations in their canonical form; null where a range may hold locations of several spellings.

    All texts between two with the same beginning have that beginning too, so their canonical forms have the same order.
    """
    ends = [one_array(lower), one_array(upper)]
    roots = [pc.replace_substring_regex(end, _ROOT, r"\1") for end in ends]
    complete = [pc.match_substring_regex(end, _ROOT) for end in ends]
    empty = pc.match_substring_regex(ends[0], "[^:/]/{2,}"), pc.match_substring_regex(ends[1], "[^:/]/{2,}")
    known = pc.and_(pc.and_(*complete), pc.and_(pc.equal(*roots), pc.invert(pc.or_(*empty))))
    known = pc.fill_null(known, False)
    return tuple(pc.if_else(known, canonical(end, table_location), None) for end in ends)


def undecided(names: Column, locations: Column, table_location: str | None) -> tuple[str, str] | None:
    """A name and a location that may be two spellings of one file, though their canonical forms differ; or none.

    ``names`` are not among ``locations``. A pair must have the same file name. It is undecided if a location has ``.``
    or ``..`` segments, if only scheme or authority differ, or if the name lies elsewhere but ends like a location that
    lies inside the table, as in a table that was moved.
    """
    names = names.drop_null()
    if len(names) == 0 or len(locations) == 0 or _all_inside(names, locations, table_location):
        return None
    names, locations = pc.unique(names), one_array(locations)
    ends = file_names(names), file_names(locations)
    names = names.filter(pc.is_in(ends[0], value_set=ends[1]))
    locations = locations.filter(pc.is_in(ends[1], value_set=ends[0]))
    for mine, theirs in _suspects(names, locations, table_location):
        place = pc.index_in(mine, value_set=theirs, skip_nulls=True)
        hits = np.flatnonzero(pc.is_valid(place).to_numpy(zero_copy_only=False))
        if len(hits) > 0:
            return names[int(hits[0])].as_py(), locations[place[int(hits[0])].as_py()].as_py()
    return None


def _all_inside(names: Column, locations: Column, table_location: str | None) -> bool:
    """Whether all are plain paths inside the table, spelled as its location is, so that no pair is undecided."""
    if table_location is None:
        return False
    prefix = table_location.rstrip("/") + "/"
    return all(
        pc.all(pc.starts_with(texts, prefix)).as_py() is True and _count(texts, b"/.") == _count(texts, b"/%2") == 0
        for texts in (names, locations)
    )


def _suspects(names: pa.Array, locations: pa.Array, table_location: str | None) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Pairs of key columns, one for each way in which two spellings may differ: equal keys may be one file."""
    dots = pc.match_substring_regex(names, _DOTS), pc.match_substring_regex(locations, _DOTS)
    yield pc.if_else(dots[0], file_names(names), None), file_names(locations)
    yield file_names(names), pc.if_else(dots[1], file_names(locations), None)
    mine, theirs = canonical(names, table_location), canonical(locations, table_location)
    store = rf"^{_SCHEME}//[^/]*"
    paths = pc.replace_substring_regex(mine, store, "")
    yield paths, pc.replace_substring_regex(theirs, store, "")
    if table_location is None:
        return
    inner = inner_paths(locations, table_location)
    elsewhere = pc.if_else(pc.is_valid(inner_paths(names, table_location)), None, paths)
    for depth in pc.unique(pc.count_substring(inner, "/")).drop_null().to_pylist():
        yield pc.replace_substring_regex(elsewhere, rf"^.*/((?:[^/]*/){{{depth}}}[^/]*)$", r"\1"), inner


def compared_names(names: Column, column: str) -> Column:
    """The form of names that a column of locations is searched by: ``referenced_file`` may be spelled differently."""
    return names if column == "location" else file_names(names)


def has_name(locations: Column, names: pa.Array, column: str) -> bool:
    """Whether a column of locations may have one of these names."""
    matches = pc.is_in(compared_names(locations, column), value_set=compared_names(names, column))
    return pc.any(matches).as_py() is True


def _are_plain(locations: pa.Array) -> bool:
    """Whether all are certainly plain relative paths, by a scan of their bytes, which is faster than patterns."""
    offsets, values = locations.buffers()[1:]
    if values is None:
        return False
    first, last = np.frombuffer(offsets, np.int32)[[locations.offset, locations.offset + len(locations)]]
    together = values.slice(first, last - first).to_pybytes()
    return (
        b":" not in together
        and b"./" not in together  # which may also be the end of one and the beginning of the next
        and pc.any(pc.starts_with(locations, "/")).as_py() is not True
        and pc.any(pc.ends_with(locations, ".")).as_py() is not True
        and pc.min(pc.binary_length(locations)).as_py() > 0
    )


def relativized(locations: pa.Array, table_location: str) -> pa.Array:
    """Locations as V4 stores them: relative to the table if they are under it and resolve to the same location."""
    if locations.null_count == len(locations):
        return locations
    prefix = table_location + "/"
    tail = pc.utf8_slice_codeunits(locations, start=len(prefix))
    if pc.all(pc.starts_with(locations, prefix)).as_py() is True and _are_plain(tail):
        return tail
    plain = pc.invert(pc.match_substring_regex(tail, f"{_ABSOLUTE}|{_NOT_PLAIN}"))
    return pc.if_else(pc.and_(pc.starts_with(locations, prefix), plain), tail, locations)


def resolved(locations: pa.Array, table_location: str, *, where: str) -> pa.Array:
    """Stored locations as absolute locations; null stays null.

    An absolute location inside the table equals a relative one, so its prefix is spelled like the table location.
    """
    if locations.null_count == len(locations):
        return locations
    if _are_plain(locations):
        return pc.binary_join_element_wise(pa.scalar(table_location), locations, "/")
    absolute = pc.match_substring_regex(locations, _ABSOLUTE)
    broken = pc.and_(pc.match_substring_regex(locations, _NOT_PLAIN), pc.invert(absolute))
    row = pc.index(broken, True).as_py()
    if row >= 0:
        location = locations[row].as_py()
        raise FormatError(f"{where}: row {row}: location {location!r} is not a plain relative path", location=where)
    joined = pc.binary_join_element_wise(pa.scalar(table_location), locations, "/")
    return pc.if_else(absolute, _spelled_like(locations, table_location), joined)


def _spelled_like(locations: pa.Array, table_location: str) -> pa.Array:
    """Locations, those inside the table with its own text before them."""
    prefix = table_location + "/"
    if pc.all(pc.starts_with(locations, prefix)).as_py() is True:
        return locations
    inner = inner_paths(locations, table_location)
    inner = pc.if_else(pc.match_substring_regex(inner, f"{_ABSOLUTE}|{_NOT_PLAIN}"), None, inner)
    inner = pc.if_else(pc.starts_with(locations, prefix), None, inner)
    return pc.coalesce(pc.binary_join_element_wise(pa.scalar(table_location), inner, "/"), locations)

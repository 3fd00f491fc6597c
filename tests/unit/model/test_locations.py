"""Locations as parsed values: what names the same file, and what lies inside a folder."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icefloe.errors import FormatError
from icefloe.model.locations import S3, Location, contains, parse_location, relativize, resolve, same_location


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("/wh/t", ("file", "", "/wh/t")),
        ("file:/wh/t", ("file", "", "/wh/t")),
        ("file:///wh/t", ("file", "", "/wh/t")),
        ("FILE://localhost/wh/t", ("file", "", "/wh/t")),
        ("file://host/wh/t", ("file", "host", "/wh/t")),
        ("s3://b/k", ("s3", "b", "/k")),
        ("S3://B/K", ("s3", "B", "/K")),
        ("s3://b", ("s3", "b", "")),
        ("s3://b/", ("s3", "b", "/")),
        ("s3://b//k/", ("s3", "b", "//k/")),
        ("s3://b/a%20b%2Fc?d#e:f", ("s3", "b", "/a%20b%2Fc?d#e:f")),
        ("abfss://box@account.host:80/k", ("abfss", "box@account.host:80", "/k")),
        ("/a:b/c", ("file", "", "/a:b/c")),
        ("//host/x", ("file", "", "//host/x")),
    ],
)
def test_a_location_has_a_scheme_an_authority_and_a_path(text, parts):
    scheme, authority, path = parts

    assert parse_location(text) == Location(scheme=scheme, authority=authority, path=path)


@pytest.mark.parametrize("text", ["", "a/b", ".", "file:x", "s3:", "s3://", "c:\\x", "/a\0b", "s3://b/\0"])
def test_what_is_not_an_absolute_location_is_refused(text):
    with pytest.raises(FormatError, match="location"):
        parse_location(text)


@pytest.mark.parametrize(
    ("root", "location"),
    [
        ("s3://b/t", "s3://b/t/x"),
        ("s3://b/t/", "s3://b/t/x"),
        ("s3://b/t", "s3://b/t/x/y/"),
        ("s3://b/t", "s3://b/t//x"),
        ("s3://b/t//", "s3://b/t//x"),
        ("s3://b", "s3://b/x"),
        ("s3://b/", "s3://b//x"),
        ("S3://b/t", "s3://b/t/x"),
        ("s3://b/t", "s3://b/t/..x/.y/z.."),
        ("/", "/x"),
        ("/wh/t", "file:///wh/t/x"),
        ("file:/wh//t/", "/wh/t//x"),
        ("s3://b/a%20b", "s3://b/a%20b/x"),
    ],
)
def test_a_location_inside_a_folder_is_contained(root, location):
    assert contains(root, location)


@pytest.mark.parametrize(
    ("root", "location"),
    [
        ("s3://b/t", "s3://b/t"),
        ("s3://b/t", "s3://b/t/"),
        ("s3://b/t", "s3://b/t//"),
        ("/wh/t", "/wh/t//"),
        ("s3://b/t", "s3://b/t2/x"),
        ("s3://b/t", "s3://b/t/../x"),
        ("s3://b/t", "s3://b/t/./x"),
        ("s3://b/t", "s3://b/t/x/.."),
        ("s3://b/t", "s3://b/t/%2e%2E/x"),
        ("s3://b/t", "s3://b/t/.%2e/x"),
        ("s3://b/u/../t", "s3://b/t/x"),
        ("s3://b/u/../t", "s3://b/u/../t/x"),
        ("s3://b/t", "s3://b2/t/x"),
        ("s3://b/t", "s3://B/t/x"),
        ("s3://b/t", "s3://b/T/x"),
        ("s3://b/t", "s3a://b/t/x"),
        ("s3://b/t", "gs://b/t/x"),
        ("s3://b/t", "/b/t/x"),
        ("s3://b/t//", "s3://b/t/x"),
        ("s3://b//t", "s3://b/t/x"),
        ("s3://b/a b", "s3://b/a%20b/x"),
        ("file://host/t", "/t/x"),
        ("/wh/t/x", "/wh/t"),
    ],
)
def test_a_location_that_only_looks_like_it_is_not_contained(root, location):
    assert not contains(root, location)


def test_schemes_are_one_store_only_where_that_is_said():
    assert contains("s3://b/t", "s3a://b/t/x", same_schemes=S3)
    assert not contains("s3://b/t", "s3a://c/t/x", same_schemes=S3)
    assert not contains("gs://b/t", "s3a://b/t/x", same_schemes=S3)
    assert same_location("s3n://b/t", "s3a://b/t", same_schemes=S3)
    assert not same_location("s3n://b/t", "s3a://b/t")


def test_the_same_file_has_several_texts_and_the_same_key_only_one():
    assert same_location("file:/wh//t/", "/wh/t")
    assert not same_location("s3://b/t", "s3://b/t/")
    assert not same_location("s3://b/t", "s3://b//t")


segments = st.lists(st.sampled_from(["a", "b", "ab", "", ".", "..", "%2e%2e"]), max_size=4)
bases = st.sampled_from(["s3://b", "s3://bb", "file:///f", "s3a://b"])


@given(bases, segments, segments)
@example("s3://b", ["a"], ["b", "", "ab"])
def test_what_is_put_into_a_plain_folder_is_in_it_unless_it_climbs(base, around, inner):
    root = "/".join([base, *around])
    location = "/".join([root, *inner])
    is_plain = {".", "..", "%2e%2e"}.isdisjoint([*around, *inner])

    # A root that ends with a slash is the folder itself: what follows it must not be swallowed by that slash.
    if is_plain and any(part != "" for part in inner) and around[-1:] != [""]:
        assert contains(root, location)
    if not is_plain:
        assert not contains(root, location)


@given(bases, segments, bases, st.booleans(), segments)
def test_containment_agrees_with_walking_up_from_the_location(base, around, other, is_below, below):
    """The oracle: cut the last segment off until the folder is reached."""
    root = "/".join([base, *around, "t"])
    path = [*around, "t", *below] if is_below else below
    location = "/".join([other, *path])
    parents = ["/".join([other, *path[:n]]) for n in range(len(path)) if any(part != "" for part in path[n:])]
    is_plain = {".", "..", "%2e%2e"}.isdisjoint([*around, *path])

    assert contains(root, location) == (is_plain and any(same_location(root, parent) for parent in parents))


@given(bases, segments, segments)
def test_whoever_contains_is_shorter_and_containment_is_passed_on(base, first, second):
    a, b = "/".join([base, *first]), "/".join([base, *first, "x"])
    c = "/".join([b, *second, "y"])

    assert not (contains(a, b) and contains(b, a))
    if contains(a, b) and contains(b, c):
        assert contains(a, c)


def test_a_slash_at_the_end_of_the_table_location_changes_nothing():
    assert resolve("data/a", "s3://b/t/") == resolve("data/a", "s3://b/t") == "s3://b/t/data/a"
    assert relativize("s3://b/t/data/a", "s3://b/t/") == "data/a"
    assert relativize("s3://b/t2/a", "s3://b/t/") == "s3://b/t2/a"

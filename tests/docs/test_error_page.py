"""The page on errors lists the whole class tree, with what each class says about itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

import icefloe
from docs.test_code_blocks import REPO
from icefloe.errors import IcefloeError

LINE = re.compile(
    r"^\| (?P<indent>(?:&emsp;)*)`(?P<name>\w+)`(?: \(also an? `(?P<also>\w+)`\))?"
    r" \| (?P<retryable>yes|no) \| (?P<meaning>[^|]+) \| (?P<next_step>[^|]+) \|$",
    re.MULTILINE,
)
Row = tuple[int, str, str | None, bool, str, str]


def listed() -> list[Row]:
    """The lines of the page's table."""
    text = (REPO / "docs" / "errors.md").read_text(encoding="utf-8")
    return [
        (
            found["indent"].count("&"),
            found["name"],
            found["also"],
            found["retryable"] == "yes",
            found["meaning"],
            found["next_step"],
        )
        for found in LINE.finditer(text)
    ]


def classes(error: type[IcefloeError] = IcefloeError, depth: int = 0) -> Iterator[tuple[int, type[IcefloeError]]]:
    """The class tree, each error before those below it."""
    yield depth, error
    for below in error.__subclasses__():
        if below.__module__ == IcefloeError.__module__:
            yield from classes(below, depth + 1)


def row(depth: int, error: type[IcefloeError]) -> Row:
    foreign = [
        base.__name__ for base in error.__bases__ if not issubclass(base, IcefloeError) and base is not Exception
    ]
    meaning = " ".join((error.__doc__ or "").split("\n\n")[0].split()).replace("``", "`")
    return (
        depth,
        error.__name__,
        foreign[0] if len(foreign) > 0 else None,
        error.retryable,
        meaning,
        error.next_step,
    )


def test_the_page_and_the_class_tree_agree() -> None:
    assert listed() == [row(depth, error) for depth, error in classes()]


def test_every_error_is_exported_with_a_next_step_of_its_own() -> None:
    tree = [error for _, error in classes()]
    assert len(tree) > 10
    assert len({error.next_step for error in tree}) == len(tree)
    for error in tree:
        assert getattr(icefloe, error.__name__) is error
        assert getattr(icefloe.errors, error.__name__) is error
        assert error.__name__ in icefloe.__all__

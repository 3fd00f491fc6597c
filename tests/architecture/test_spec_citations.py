"""A docstring or comment that says ``spec:`` cites headings that the specification has, so that a reader finds them.

``spec_headings.txt`` lists the headings, so that the check runs on a clone alone; where the documents are at hand it
is compared with them.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from architecture.source_tree import FUNCTIONS, SRC, Module, expect_none, parse_modules, write_tree
from support.shared_files import shared

HEADINGS = frozenset((Path(__file__).parent / "spec_headings.txt").read_text(encoding="utf-8").splitlines())
# An appendix may be cited by its letter; the proposal for version 4 has no headings of its own to cite.
SHORT = frozenset(heading.partition(":")[0] for heading in HEADINGS if heading.startswith("Appendix")) | {"V4 proposal"}
_CITATION = re.compile(r"\bspec: ([^)\n]+(?:\n[^)\n]+)*?)(?=\)|\.\s|\.$|$)")


def bad_citations(root: Path) -> list[str]:
    """List the citations of headings that do not exist."""
    return [problem for module in parse_modules(root) for problem in _problems_of(module)]


def _problems_of(module: Module) -> Iterator[str]:
    for line, text in (*_docstrings(module), *_comments(module)):
        for found in _CITATION.finditer(text):
            for part in _parts(found[1]):
                if part not in HEADINGS and part not in SHORT:
                    yield f"{module.name}:{line}: the specification has no heading {part!r}"


def _parts(cited: str) -> list[str]:
    """The headings of a citation; the comma inside a heading does not part it."""
    plain = " ".join(cited.split())
    if plain in HEADINGS:
        return [plain]
    return [part.strip() for part in re.split(r"[,;]", plain)]


def _docstrings(module: Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""


def _comments(module: Module) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def test_every_cited_heading_exists() -> None:
    expect_none(bad_citations(SRC))


def test_a_citation_of_a_heading_that_does_not_exist_is_seen(tmp_path: Path) -> None:
    text = '"""Good (spec: Scan Planning, Manifests; V4 proposal)."""\nX = 1  # spec: Sorting\n'
    bad = '"""Bad (spec: Sorting, Shorting)."""\ndef f():\n    """Bad too (spec: Appendix Z)."""\n    # spec: Nothing\n'
    tree = write_tree(tmp_path, {"icefloe/a.py": text, "icefloe/b.py": bad})
    assert bad_citations(tree) == [
        "icefloe.b:1: the specification has no heading 'Shorting'",
        "icefloe.b:2: the specification has no heading 'Appendix Z'",
        "icefloe.b:4: the specification has no heading 'Nothing'",
    ]


def test_the_list_of_headings_is_that_of_the_specification() -> None:
    (document,) = shared("spec").glob("000_*.txt")
    found = re.findall(r"^#{2,4} (.+?)\s*$", document.read_text(encoding="utf-8"), re.MULTILINE)
    assert frozenset(found) == HEADINGS

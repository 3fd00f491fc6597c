"""The decoders written here are packages behind one interface each: the names that ``__init__.py`` exports."""

from __future__ import annotations

from pathlib import Path

from architecture.source_tree import REPO, SRC, expect_none, imports_of, parse_modules, write_tree

DECODERS = ("icefloe.codecs.avro.vectorized", "icefloe.codecs.parquet.pages", "icefloe.codecs.orc.tail")
DECISION = REPO / "docs" / "decisions" / "024-decoders-written-here.md"


def inner_imports(root: Path) -> list[str]:
    """List the imports of the modules inside of a decoder from outside of it."""
    modules = parse_modules(root)
    names = frozenset(module.name for module in modules)
    return [
        f"{inner.where}: import {decoder} instead of {inner.target}"
        for decoder in DECODERS
        for module in modules
        if not f"{module.name}.".startswith(f"{decoder}.")
        for inner in imports_of(module, names)
        if inner.target.startswith(f"{decoder}.")
    ]


def test_decoders_are_used_through_their_interfaces() -> None:
    expect_none(inner_imports(SRC))


def test_an_import_from_the_inside_of_a_decoder_is_found(tmp_path: Path) -> None:
    files = {
        "icefloe/codecs/orc/tail/protobuf.py": "def message_of(): pass\n",
        "icefloe/codecs/orc/tail/stripes.py": "from icefloe.codecs.orc.tail.protobuf import message_of\n",
        "icefloe/formats.py": "from icefloe.codecs.orc.tail.protobuf import message_of\n",
    }
    assert inner_imports(write_tree(tmp_path, files)) == [
        "icefloe.formats:1: import icefloe.codecs.orc.tail instead of icefloe.codecs.orc.tail.protobuf"
    ]


def test_the_decision_names_every_decoder() -> None:
    page = DECISION.read_text(encoding="utf-8")
    packages = {decoder: decoder.removeprefix("icefloe.").replace(".", "/") for decoder in DECODERS}
    assert [decoder for decoder, folder in packages.items() if f"`{folder}`" not in page] == []

"""The public names and their signatures change only on purpose."""

from __future__ import annotations

import ast
import difflib
import os
from pathlib import Path

import icefloe
from architecture.public_surface import public_surface
from architecture.source_tree import SRC, write_tree

PINNED = Path(__file__).with_name("public_api.txt")
BLESS = "ICEFLOE_BLESS=1 python -m pytest tests/architecture/test_public_api.py"


# The session is what these functions are about: it is their first argument.
ABOUT_SPARK = ("attach", "detach", "to_spark")


def positional_sessions(surface: str) -> list[str]:
    """Return the signatures that take ``spark`` by position: arguments would move if one came before it."""
    found = []
    for line in surface.splitlines():
        signature = line.strip()
        if not signature.startswith("def ") or "spark" not in signature:
            continue
        (function,) = ast.parse(f"{signature}: ...").body
        assert isinstance(function, ast.FunctionDef)
        names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        if "spark" in names and function.name not in ABOUT_SPARK:
            found.append(signature)
    return found


def test_a_session_is_given_by_name() -> None:
    assert positional_sessions(public_surface(SRC)) == []


def test_a_session_by_position_is_seen() -> None:
    bad = "def expire(self, older: int | None=None, spark: Any=None) -> Plan"
    good = "def verify(self, *, spark: Any=None) -> Result\n    def to_spark(self, spark: Any) -> Any"
    assert positional_sessions(f"class Table\n    {bad}\n    {good}\n") == [bad]


def surface_changes(root: Path, pinned: str) -> str:
    """Return the difference between the pinned surface and that of the tree under ``root``; empty if none."""
    before, after = pinned.splitlines(), public_surface(root).splitlines()
    return "\n".join(difflib.unified_diff(before, after, "pinned", "now", lineterm="", n=1))


def test_the_public_surface_is_the_pinned_one() -> None:
    if "ICEFLOE_BLESS" in os.environ:
        PINNED.write_text(public_surface(SRC), encoding="utf-8")
    changes = surface_changes(SRC, PINNED.read_text(encoding="utf-8"))
    assert changes == "", f"the public surface changed:\n{changes}\n\nif that is meant, bless it with\n    {BLESS}\n"


def test_every_public_name_is_there() -> None:
    assert [name for name in getattr(icefloe, "__all__", []) if not hasattr(icefloe, name)] == []


def test_a_changed_signature_is_seen(tmp_path: Path) -> None:
    files = {
        "icefloe/__init__.py": (
            "from icefloe.table import Table, load as open_table\n__all__ = ['Table', 'open_table', 'errors']\n"
        ),
        "icefloe/errors.py": "",
        "icefloe/base.py": (
            "class Base:\n    def close(self): ...\n    def append(self): ...\n    def _hidden(self): ...\n"
        ),
        "icefloe/table.py": (
            "from icefloe.base import Base\nclass Table(Base):\n    name: str = 'x'\n"
            "    @property\n    def rows(self) -> int: ...\n"
            "    def append(self, data: object, *, branch: str = 'main') -> Result: ...\n"
            "async def load(name: str) -> Table: ...\n"
        ),
    }
    tree = write_tree(tmp_path, files)
    pinned = (
        "class Table(Base)\n    def append(self, data: object, *, branch: str='main') -> Result\n"
        "    def close(self)\n    name: str = 'x'\n    property rows -> int\nmodule errors\n"
        "async def open_table(name: str) -> Table\n"
    )
    assert public_surface(tree) == pinned
    assert surface_changes(tree, pinned) == ""
    changes = surface_changes(tree, pinned.replace("branch", "ref"))
    assert "-    def append(self, data: object, *, ref: str='main') -> Result" in changes
    assert "+    def append(self, data: object, *, branch: str='main') -> Result" in changes


def test_a_name_that_nothing_defines_is_seen(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {"icefloe/__init__.py": "__all__ = ['gone']\n"})
    assert public_surface(tree) == "gone: not defined\n"

"""Names of tables and namespaces: parsing, joining, suggestions, and their form in paths.

Catalog databases store a namespace as dotted text, so the parts of a namespace contain no dots. The name of a table may
contain one if it is passed as a tuple or between backticks, which every part may have. Only ``path_part`` converts
names to parts of a path.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from icefloe.errors import InputError

Identifier = tuple[str, ...]
NameLike = str | Sequence[str]

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_PART = r"(?:`(?:[^`]|``)+`|[^.`][^.]*)"
_PARTS = re.compile(rf"{_PART}(?:\.{_PART})+", re.DOTALL)
_ONE = re.compile(_PART, re.DOTALL)
_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\%:?#*"<>|]|^\.+$')


def parse_identifier(name: NameLike) -> Identifier:
    """A table's name as a tuple: at least one namespace part, then the table.

    >>> parse_identifier("db.orders")
    ('db', 'orders')
    >>> parse_identifier(("lake", "db", "orders.v1"))
    ('lake', 'db', 'orders.v1')
    >>> parse_identifier("`lake`.db.`orders.v1`")
    ('lake', 'db', 'orders.v1')
    """
    return _identifier(name if isinstance(name, str) else tuple(name))


def fresh_identifier(name: NameLike) -> Identifier:
    """The name of a new table as a tuple; names that mean another folder in a path are refused."""
    parts = parse_identifier(name)
    if parts[-1] in (".", ".."):
        raise InputError(
            f"a table cannot be called {parts[-1]!r}, which means another folder in paths; choose another name",
            table=dotted(parts),
        )
    return parts


def parse_namespace(name: NameLike) -> Identifier:
    """A namespace's name as a tuple; the empty tuple or text is the top.

    >>> parse_namespace("lake.db")
    ('lake', 'db')
    """
    return _namespace(name if isinstance(name, str) else tuple(name))


def some_namespace(name: NameLike) -> Identifier:
    """A namespace's name as a tuple that is not the top."""
    parts = parse_namespace(name)
    if len(parts) == 0:
        raise InputError("a namespace needs a name")
    return parts


def dotted(parts: Identifier) -> str:
    """The form in catalog databases and in messages."""
    return ".".join(parts)


def spelled(parts: Identifier) -> str:
    """A table's name as text that ``parse_identifier`` takes: dotted, with backticks around a table that holds a dot.

    >>> spelled(("db", "orders")), spelled(("db", "orders.v1"))
    ('db.orders', 'db.`orders.v1`')
    """
    return dotted(
        tuple(f"`{part.replace('`', '``')}`" if "." in part or part.startswith("`") else part for part in parts)
    )


def path_part(name: str) -> str:
    """A name as one segment of a path: characters that mean something in paths become ``%XX``.

    >>> path_part("orders"), path_part("a/b"), path_part("..")
    ('orders', 'a%2Fb', '%2E%2E')
    """
    return _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name)


def table_location(warehouse: str, identifier: Identifier) -> str:
    """The default location of a table under a warehouse: one folder for each part of its name.

    >>> table_location("file:///wh", ("db", "orders"))
    'file:///wh/db/orders'
    """
    return "/".join((warehouse, *map(path_part, identifier)))


def folder_of(namespace_location: str, identifier: Identifier) -> str:
    """The default location of a table whose namespace has a location."""
    return f"{namespace_location.rstrip('/')}/{path_part(identifier[-1])}"


def similar(name: str, known: Iterable[str]) -> str:
    """The end of a "not found" message: names that look like ``name``, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=3)
    return "" if len(close) == 0 else f"; similar names: {', '.join(close)}"


@lru_cache(maxsize=1024)
def _identifier(name: str | Identifier) -> Identifier:
    parts = _split(name) if isinstance(name, str) else name
    if len(parts) < 2:
        raise InputError(f"table name {name!r} has no namespace; write it as 'namespace.table'", table=name)
    _check(parts[:-1], whole=name, dots=False)
    _check(parts[-1:], whole=name, dots=True)
    return parts


def _split(name: str) -> Identifier:
    """The parts between the dots; those between backticks without them."""
    if "`" not in name or _PARTS.fullmatch(name) is None:
        return tuple(name.split("."))
    parts = _ONE.findall(name)
    return tuple(part[1:-1].replace("``", "`") if part.startswith("`") else part for part in parts)


@lru_cache(maxsize=1024)
def _namespace(name: str | Identifier) -> Identifier:
    parts = tuple(name.split(".")) if isinstance(name, str) and name != "" else tuple(name)
    _check(parts, whole=name, dots=False)
    return parts


def _check(parts: Identifier, *, whole: object, dots: bool) -> None:
    for part in parts:
        if not isinstance(part, str):
            raise InputError(f"name {whole!r} has a part that is not text: {part!r}")
        if part.strip() == "":
            raise InputError(f"name {whole!r} has an empty part")
        if _CONTROL.search(part) is not None:
            raise InputError(f"name {whole!r} holds a control character")
        if _SURROGATE.search(part) is not None:
            raise InputError(f"name {whole!r} holds half of a character (a lone surrogate), which cannot be stored")
        if not dots and "." in part:
            raise InputError(f"part {part!r} of namespace in {whole!r} holds a dot, which separates namespaces")

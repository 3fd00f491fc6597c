"""Finding a catalog by its name: arguments first, then the environment, then ``icefloe.toml``, then a default.

Environment: ``ICEFLOE_CATALOG__<NAME>__URI`` and ``ICEFLOE_CATALOG__<NAME>__WAREHOUSE``, with the name in capitals and
``_`` for what is not a letter or digit. File: ``icefloe.toml`` in the current folder or else in the home folder, with a
table ``[catalog.<name>]``. A catalog that is configured nowhere is a SQLite file with a warehouse in ``~/.icefloe``.
"""

from __future__ import annotations

import os
import re
import threading
import tomllib
from collections.abc import Mapping
from pathlib import Path

from icefloe.catalogs.catalog import Catalog
from icefloe.catalogs.memory import MemoryCatalog
from icefloe.catalogs.sql import SqlCatalog
from icefloe.catalogs.sql_connections import sqlite_uri
from icefloe.errors import InputError

FILE_NAME = "icefloe.toml"
_KEYS = ("uri", "warehouse")
_MEMORY: dict[tuple[str, str], MemoryCatalog] = {}
_MEMORY_LOCK = threading.Lock()


def open_catalog(name: str = "default", *, uri: str | None = None, warehouse: str | None = None) -> Catalog:
    """Open a catalog; an argument that is given wins over the configuration.

    A catalog that is given by ``uri`` alone has no warehouse: it opens tables, and creates those given a location.

    >>> open_catalog("demo", uri="memory://", warehouse="memory://wh")
    MemoryCatalog('demo', warehouse='memory://wh')
    """
    settings = {"uri": uri, "warehouse": warehouse}
    if uri is None:
        configured = _configured(name) or _default()
        settings = {key: configured.get(key) if value is None else value for key, value in settings.items()}
    if settings["uri"] is None:
        raise InputError(f"the configuration of catalog {name!r} has a warehouse but no uri", catalog=name)
    if settings["uri"].startswith("memory:"):
        return _memory_catalog(name, settings["warehouse"])
    return SqlCatalog(name, settings["uri"], warehouse=settings["warehouse"])


def _memory_catalog(name: str, warehouse: str | None) -> MemoryCatalog:
    """The same catalog for the same name and warehouse, as long as the process lives."""
    place = "memory://warehouse" if warehouse is None else warehouse
    with _MEMORY_LOCK:
        return _MEMORY.setdefault((name, place), MemoryCatalog(name, warehouse=place))


def _configured(name: str) -> dict[str, str]:
    """What the environment and the file say about the catalog, the environment first."""
    return {**_from_file(name), **_from_environment(name)}


def _from_environment(name: str) -> dict[str, str]:
    prefix = f"ICEFLOE_CATALOG__{re.sub(r'[^A-Z0-9]', '_', name.upper())}__"
    return {key: os.environ[prefix + key.upper()] for key in _KEYS if prefix + key.upper() in os.environ}


def _from_file(name: str) -> dict[str, str]:
    for path in (Path.cwd() / FILE_NAME, Path.home() / FILE_NAME):
        if path.is_file():
            return _checked(_section(path, name), path, name)
    return {}


def _section(path: Path, name: str) -> object:
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}", path=str(path)) from error
    catalogs = document.get("catalog", {})
    return catalogs.get(name, {}) if isinstance(catalogs, dict) else catalogs


def _checked(section: object, path: Path, name: str) -> dict[str, str]:
    if not isinstance(section, Mapping):
        raise InputError(f"{path}: [catalog.{name}] is not a table", path=str(path))
    for key, value in section.items():
        if key not in _KEYS or not isinstance(value, str):
            raise InputError(
                f"{path}: {key} = {value!r} in [catalog.{name}]; it takes the texts {' and '.join(_KEYS)}",
                path=str(path),
            )
    return dict(section)


def _default() -> dict[str, str]:
    home = Path.home() / ".icefloe"
    return {"uri": sqlite_uri(str(home / "catalog.db")), "warehouse": f"file://{home / 'warehouse'}"}

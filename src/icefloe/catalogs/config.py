"""Opening a catalog by its name: arguments first, then what is configured (see ``settings``), then a default.

Catalogs without configuration are in one SQLite file with a warehouse in ``~/.icefloe``. Only the catalog ``default``
is created there automatically; other names must exist or be created explicitly, so that a misspelt name is an error.
Settings with a dot in their name, such as ``s3.endpoint``, are passed to the storage of the catalog's tables.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from icefloe.catalogs.catalog import Catalog
from icefloe.catalogs.files import FilesCatalog
from icefloe.catalogs.memory import MemoryCatalog
from icefloe.catalogs.settings import DEFAULT_NAME, KEYS, configured, configured_names, default_name
from icefloe.errors import InputError, NotFound, UnsupportedError
from icefloe.io.local import file_location, local_path
from icefloe.lazy import LazyModule
from icefloe.model.locations import FILE, parse_location

if TYPE_CHECKING:
    from icefloe.catalogs import sql, sql_connections
else:  # they load SQLAlchemy
    sql = LazyModule("icefloe.catalogs.sql")
    sql_connections = LazyModule("icefloe.catalogs.sql_connections")

_MEMORY: dict[tuple[str, str], MemoryCatalog] = {}
_MEMORY_LOCK = threading.Lock()

_SQL, _IN_MEMORY, _FILES = "sql", "memory", "files"
_ALIASES = {_SQL: _SQL, _IN_MEMORY: _IN_MEMORY, "in-memory": _IN_MEMORY, _FILES: _FILES, "hadoop": _FILES}
_URIS = "sqlite:///path/to/catalog.db, postgresql://host/database, file:///folder or memory://"
_BY_SCHEME = {"memory": _IN_MEMORY, "file": _FILES, "http": "rest", "https": "rest", "thrift": "hive"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSettings:
    """Everything that decides which catalog is opened, and how its storage is reached."""

    name: str
    type: str
    uri: str | None = field(default=None, repr=False)  # may hold a password
    warehouse: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold keys
    create: bool | None = None  # whether it may be new; None: a file or folder may be, in a folder that exists


def catalog_settings(
    name: str | None = None,
    *,
    uri: str | None = None,
    warehouse: str | None = None,
    type: str | None = None,
    properties: Mapping[str, str] | None = None,
    create: bool | None = None,
) -> CatalogSettings:
    """The settings of a catalog, from the arguments and from the configuration.

    With ``uri`` or ``type``, nothing is taken from the configuration, which may be for a catalog of another kind.
    Without a warehouse, the catalog opens tables, and creates only tables with an explicit location.

    >>> catalog_settings("demo", uri="postgresql://db/lake").type
    'sql'
    """
    chosen = default_name() if name is None else name
    arguments = {"uri": uri, "warehouse": warehouse, "type": type}
    settings = {key: value for key, value in arguments.items() if value is not None}
    if uri is None and type is None:
        configuration = configured(chosen)
        if len(configuration) == 0:
            configuration = _in_home(chosen, create=create is True)
            create = True
        settings = {**configuration, **settings}
    settings = {**settings, **({} if properties is None else properties)}
    return CatalogSettings(
        name=chosen,
        type=_type(chosen, settings),
        uri=settings.get("uri"),
        warehouse=settings.get("warehouse"),
        properties={key: value for key, value in settings.items() if key not in KEYS},
        create=create,
    )


def open_settings(settings: CatalogSettings) -> Catalog:
    """Open the catalog that the settings describe.

    >>> open_settings(catalog_settings("demo", uri="memory://", warehouse="memory://wh"))
    MemoryCatalog('demo', warehouse='memory://wh')
    """
    _require_place(settings)
    return _OPENERS[settings.type](settings)


def _type(name: str, settings: Mapping[str, str]) -> str:
    """The type of catalog: configured, or else derived from the URI."""
    said, uri = settings.get("type"), settings.get("uri")
    if said is None and uri is None:
        raise InputError(f"the configuration of catalog {name!r} has a warehouse but no uri and no type", catalog=name)
    if said is None:
        scheme = re.match(r"([A-Za-z][A-Za-z0-9.-]*):", str(uri))
        said = _SQL if scheme is None else _BY_SCHEME.get(scheme[1].lower(), _SQL)
    known = _ALIASES.get(said.lower())
    if known is None:
        by_uri = "" if "type" in settings else f", by the scheme of its uri ({str(uri).partition(':')[0]}:)"
        raise UnsupportedError(
            f"catalog {name!r} is of type {said!r}{by_uri}, which this library does not open; it opens "
            f"{', '.join(sorted(_ALIASES))}: uri= is {_URIS}",
            catalog=name,
            type=said,
        )
    return known


def _open_sql(settings: CatalogSettings) -> Catalog:
    if settings.uri is None:
        raise InputError(
            f"catalog {settings.name!r} needs a uri, such as sqlite:///path/to/catalog.db", catalog=settings.name
        )
    return sql.SqlCatalog(settings.name, settings.uri, warehouse=settings.warehouse)


def _open_memory(settings: CatalogSettings) -> Catalog:
    """The same catalog for the same name and warehouse, as long as the process lives."""
    place = "memory://warehouse" if settings.warehouse is None else settings.warehouse
    with _MEMORY_LOCK:
        return _MEMORY.setdefault((settings.name, place), MemoryCatalog(settings.name, warehouse=place))


def _open_files(settings: CatalogSettings) -> Catalog:
    place = settings.uri if settings.warehouse is None else settings.warehouse
    if place is None:
        raise InputError(
            f"catalog {settings.name!r} needs a warehouse: the folder of its tables", catalog=settings.name
        )
    return FilesCatalog(settings.name, warehouse=place)


def _in_home(name: str, *, create: bool) -> dict[str, str]:
    """The settings of a catalog that is configured nowhere; it has to be there unless it may be created."""
    home = Path.home() / ".icefloe"
    uri = sql_connections.sqlite_uri(str(home / "catalog.db"))
    if name != DEFAULT_NAME and not create:
        _require_name(name, uri if (home / "catalog.db").is_file() else None)
    return {"uri": uri, "warehouse": f"file://{home / 'warehouse'}"}


def _require_name(name: str, uri: str | None) -> None:
    database = None if uri is None else sql.SqlCatalog(name, uri)
    present = [] if database is None else database.catalog_names()
    if database is not None:
        database.close()
    if name not in present:
        names = sorted({*configured_names(), *present})
        known = "none is configured" if len(names) == 0 else f"there are: {', '.join(names)}"
        raise NotFound(
            f"no catalog {name!r}; {known}",
            next_step="Correct the name, configure it in icefloe.toml, or give a uri. A new catalog in ~/.icefloe is "
            "made by icefloe.catalog(name, create=True), or by icefloe create --create-catalog.",
            catalog=name,
            catalogs=names,
        )


def _require_place(settings: CatalogSettings) -> None:
    """Refuse a SQLite file or folder of tables that is missing, without a parent, or of the other kind."""
    path = _local_place(settings)
    if path is None:
        return
    if os.path.exists(path) and os.path.isdir(path) != (settings.type == _FILES):
        kinds = ("a file", "the folder of its tables") if settings.type == _FILES else ("a folder", "a SQLite file")
        raise InputError(
            f"catalog {settings.name!r} cannot be at {path}: it is {kinds[0]}, not {kinds[1]}",
            catalog=settings.name,
            location=path,
        )
    if settings.create:
        return
    if not os.path.isdir(os.path.dirname(path)):
        problem = f"catalog {settings.name!r} cannot be at {path}: folder {os.path.dirname(path)} does not exist"
    elif settings.create is False and not os.path.exists(path):
        problem = f"catalog {settings.name!r} does not exist: there is no {path}"
    else:
        return
    raise NotFound(
        problem,
        next_step="Correct the uri or warehouse. A new catalog and its folder are made by "
        "icefloe.catalog(..., create=True), or by icefloe create --create-catalog.",
        catalog=settings.name,
        location=path,
    )


def _local_place(settings: CatalogSettings) -> str | None:
    """The SQLite file of a catalog, or the folder of its tables; none if it is not on a local disk."""
    if settings.type == _SQL and settings.uri is not None:
        return sql_connections.sqlite_path(settings.uri)
    folder = settings.uri if settings.warehouse is None else settings.warehouse
    if settings.type != _FILES or folder is None:
        return None
    location = file_location(folder)
    return local_path(location) if parse_location(location).scheme == FILE else None


_OPENERS: dict[str, Callable[[CatalogSettings], Catalog]] = {
    _SQL: _open_sql,
    _IN_MEMORY: _open_memory,
    _FILES: _open_files,
}

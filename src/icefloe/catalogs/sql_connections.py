"""Connections to a catalog database: one for each thread of each process, opened when first needed.

Every connection commits each statement by itself. A connection must not cross a fork, so a child process that finds its
parent's engine sets it aside, neither using nor closing it, and opens its own.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from typing import Any

from sqlalchemy import URL, Connection, Dialect, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from icefloe.errors import InputError, UnsupportedError
from icefloe.io.folders import DurableFolders

# SQLite answers these before it changes the file, and a statement that commits by itself is rolled back with them.
_UNDONE = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_REFUSED = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN})
_SET_ASIDE: list[_Process] = []


class Connections:
    """Hands each thread its connection to the database."""

    def __init__(self, url: URL, *, busy_seconds: float) -> None:
        self._url = url
        self._busy_seconds = busy_seconds
        self._process = _Process(self._new_engine())

    @property
    def engine(self) -> Engine:
        """This process's engine."""
        return self._of_this_process().engine

    @property
    def dialect(self) -> Dialect:
        """How the database spells SQL."""
        return self._process.engine.dialect

    def get(self) -> Connection:
        """This thread's connection."""
        process = self._of_this_process()
        connection: Connection | None = getattr(process.local, "connection", None)
        if connection is None:
            connection = process.local.connection = process.engine.connect()
        return connection

    def discard(self) -> None:
        """Close this thread's connection, which ends whatever it had begun; the next ``get`` opens a new one."""
        local = self._of_this_process().local
        connection: Connection | None = getattr(local, "connection", None)
        if connection is not None:
            local.connection = None
            with contextlib.suppress(Exception):
                connection.close()

    def _of_this_process(self) -> _Process:
        process = self._process
        if process.pid != os.getpid():
            _SET_ASIDE.append(process)  # garbage collection would close the parent's connections
            process = self._process = _Process(self._new_engine())
        return process

    def _new_engine(self) -> Engine:
        sqlite = self._url.get_backend_name() == "sqlite"
        arguments: dict[str, Any] = {"timeout": self._busy_seconds} if sqlite else {}
        try:
            engine = create_engine(self._url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=arguments)
        except (ModuleNotFoundError, NoSuchModuleError) as error:
            raise UnsupportedError(
                f"no driver for {self._url.drivername} databases is installed ({error}); "
                "for PostgreSQL install icefloe[postgres]"
            ) from error
        if sqlite:
            event.listen(engine, "connect", _prepare_sqlite)
        return engine


class _Process:
    """What belongs to one process."""

    def __init__(self, engine: Engine) -> None:
        self.pid = os.getpid()
        self.engine = engine
        self.local = threading.local()


def catalog_url(uri: str) -> URL:
    """The URL of a catalog database; a SQLite path becomes absolute, and its folder is made.

    >>> str(catalog_url("sqlite:////tmp/cat.db"))
    'sqlite:////tmp/cat.db'
    """
    try:
        url = make_url(uri)
    except ArgumentError as error:
        raise InputError(f"{uri!r} is not a database URL; write sqlite:///path/to/catalog.db") from error
    if url.get_backend_name() == "sqlite":
        return _sqlite_url(url)
    # Without a driver's name SQLAlchemy may choose one that is not among our extras.
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


def sqlite_uri(path: str) -> str:
    """The URL of a SQLite file; database URLs, unlike locations of tables, are percent-encoded.

    >>> sqlite_uri("/data/100%.db")
    'sqlite:////data/100%25.db'
    """
    return URL.create("sqlite", database=path).render_as_string()


def proved_undone(error: BaseException) -> bool:
    """Whether the error shows that the database was busy and the statement has no effect, now or later."""
    return _sqlite_code(error) in _UNDONE


def proved_refused(error: BaseException) -> bool:
    """Whether the error shows that the database may not be written by this user at all."""
    return _sqlite_code(error) in _REFUSED


def _sqlite_code(error: BaseException) -> int | None:
    original = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(original, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None  # the low byte is the kind, the rest its detail


def _sqlite_url(url: URL) -> URL:
    path = url.database
    if path is None or path in ("", ":memory:") or "mode=memory" in path or url.query.get("mode") == "memory":
        raise InputError("a SQLite catalog needs a file; for a catalog in memory give uri='memory://'")
    if path.startswith("file:"):
        return url
    path = os.path.abspath(os.path.expanduser(path))
    DurableFolders().ensure(os.path.dirname(path))
    return url.set(database=path)


def _prepare_sqlite(connection: Any, record: object) -> None:
    # FULL is SQLite's default, but a build may say otherwise, and an acknowledged commit must survive a power cut.
    connection.execute("PRAGMA synchronous = FULL")

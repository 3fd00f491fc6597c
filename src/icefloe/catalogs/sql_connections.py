"""Connections to a catalog database: one per thread and process, opened on first use.

Every connection commits each statement by itself. A connection must not cross a fork, so a child process keeps its
parent's engine without using or closing it, and opens its own.
"""

from __future__ import annotations

import contextlib
import os
import threading
from functools import partial
from typing import Any

from sqlalchemy import URL, Connection, Dialect, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from icefloe.errors import InputError, UnsupportedError
from icefloe.io.folders import DurableFolders
from icefloe.io.secrets import without_secrets
from icefloe.lazy import load_optional

# Names without a driver, or with the one that other programs use: all are served by the one among our extras.
_POSTGRESQL = frozenset({"postgresql", "postgres", "postgresql+psycopg2"})
_PSYCOPG = "postgresql+psycopg"
_SET_ASIDE: list[_Process] = []


class Connections:
    """Provides each thread with its own connection to the database."""

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
        """Close this thread's connection, which rolls back its transaction; the next ``get`` opens a new one."""
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
        backend = self._url.get_backend_name()
        arguments: dict[str, Any] = {"timeout": self._busy_seconds} if backend == "sqlite" else {}
        if self._url.drivername == _PSYCOPG:
            load_optional("psycopg", needed_by="a catalog in PostgreSQL")
        try:
            engine = create_engine(self._url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args=arguments)
        except NoSuchModuleError as error:
            raise InputError(
                f"no kind of catalog has the scheme {self._url.drivername!r}; write sqlite:///path/to/catalog.db, "
                "postgresql://host/db or file:///folder. Tables in an object store need one of the databases; the "
                "warehouse says where they are",
                scheme=self._url.drivername,
            ) from error
        except ModuleNotFoundError as error:
            raise UnsupportedError(
                f"uri={self._url.drivername}://...: no driver for such databases is installed ({error}); write"
                " sqlite:///path/to/catalog.db, postgresql://host/db or file:///folder"
            ) from error
        if backend == "sqlite":
            event.listen(engine, "connect", _prepare_sqlite)
        if backend == "postgresql":
            event.listen(engine, "connect", partial(_prepare_postgresql, round(self._busy_seconds * 1000)))
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
    url, path = _parsed(uri), sqlite_path(uri)
    if path is not None:
        DurableFolders().ensure(os.path.dirname(path))
        return url.set(database=path)
    return url.set(drivername=_PSYCOPG) if url.drivername in _POSTGRESQL else url


def sqlite_path(uri: str) -> str | None:
    """The absolute path of the SQLite file that a URL names; none for other databases and for SQLite's own URIs.

    >>> sqlite_path("sqlite:////data/cat.db"), sqlite_path("postgresql://host/db")
    ('/data/cat.db', None)
    """
    url = _parsed(uri)
    if url.get_backend_name() != "sqlite":
        return None
    path = url.database
    if path is None or path in ("", ":memory:") or "mode=memory" in path or url.query.get("mode") == "memory":
        raise InputError("a SQLite catalog needs a file; for a catalog in memory give uri='memory://'")
    return None if path.startswith("file:") else os.path.abspath(os.path.expanduser(path))


def sqlite_uri(path: str) -> str:
    """The URL of a SQLite file; database URLs, unlike locations of tables, are percent-encoded.

    >>> sqlite_uri("/data/100%.db")
    'sqlite:////data/100%25.db'
    """
    return URL.create("sqlite", database=path).render_as_string()


def _parsed(uri: str) -> URL:
    try:
        return make_url(uri)
    except ArgumentError as error:
        raise InputError(
            f"{without_secrets(uri)!r} is not a database URL; write sqlite:///path/to/catalog.db"
        ) from error


def _prepare_sqlite(connection: Any, record: object) -> None:
    # FULL is SQLite's default, but a build may say otherwise, and an acknowledged commit must survive a power cut.
    connection.execute("PRAGMA synchronous = FULL")


def _prepare_postgresql(busy_ms: int, connection: Any, record: object) -> None:
    # A server may be configured to acknowledge commits that a power cut can undo; stricter settings are kept.
    cursor = connection.cursor()
    cursor.execute(
        "SELECT set_config('lock_timeout', %s, false), CASE current_setting('synchronous_commit')"
        " WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END",
        (str(busy_ms),),
    )
    cursor.close()
    # A connection pooler may send each transaction to another session, which lacks the prepared statements.
    connection.prepare_threshold = None

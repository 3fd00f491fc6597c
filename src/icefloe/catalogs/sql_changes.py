"""Runs a change on a catalog database, and reports whether it was committed (spec: Optimistic Concurrency).

A server receives three messages: BEGIN, the statements, COMMIT. Before COMMIT is sent nothing can be committed, so
every earlier error is definite, even a lost connection; after it, only an error in which the server reports a rollback
is. SQLite has no messages that can be lost: a single statement commits by itself, and its error codes are exact.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from icefloe.catalogs.sql_connections import Connections
from icefloe.catalogs.sql_statements import Statement

Step = tuple[Statement, dict[str, object]]

# SQLite answers these before it changes the file, and a statement that commits by itself is rolled back with them.
_SQLITE_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_SQLITE_REFUSED = frozenset(
    {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL}
)
# SQLSTATE: serialization failure, deadlock, rollback by the server, a lock not had in time.
_SERVER_BUSY = frozenset({"40000", "40001", "40002", "40P01", "55P03"})


class Effect(Enum):
    """What is known about a change that failed."""

    BUSY = "nothing happened: others were in the way"
    LOST = "nothing happened: the connection was lost before the commit was sent"
    REFUSED = "nothing happened: the database refused it"
    TAKEN = "nothing happened: the key is taken"
    UNKNOWN = "it may or may not have happened"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A change that was committed, with the number of rows that each of its statements changed."""

    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A change that failed, and what is known about it."""

    effect: Effect
    cause: BaseException


def run_change(connections: Connections, steps: Sequence[Step]) -> Done | Failed:
    """Run the statements as one transaction.

    A connection that has been idle may have died unseen, so one that is lost before the commit was sent is replaced
    once.
    """
    outcome = _attempt(connections, steps)
    if isinstance(outcome, Failed) and outcome.effect is Effect.LOST:
        return _attempt(connections, steps)
    return outcome


def is_busy(error: BaseException) -> bool:
    """Whether the error says that the database is locked by others."""
    return _sqlite_code(error) in _SQLITE_BUSY or _sql_state(error) in _SERVER_BUSY


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def _attempt(connections: Connections, steps: Sequence[Step]) -> Done | Failed:
    try:
        connection = connections.get()
    except Exception as error:  # no connection, no change
        connections.discard()
        return Failed(effect=Effect.REFUSED, cause=error)
    sqlite = connection.dialect.name == "sqlite"
    if sqlite and len(steps) == 1:
        return _alone(connections, connection, steps)
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if sqlite else "BEGIN")
        done = _run(connection, steps)
    except BaseException as error:
        effect = _before_commit(error)
        _roll_back(connections, connection, effect)
        return Failed(effect=effect, cause=error)
    try:
        connection.exec_driver_sql("COMMIT")
    except BaseException as error:
        connections.discard()
        return Failed(effect=Effect.BUSY if is_busy(error) else Effect.UNKNOWN, cause=error)
    return done


def _roll_back(connections: Connections, connection: Connection, effect: Effect) -> None:
    """Roll back a transaction; closing the connection always does so."""
    if effect not in (Effect.BUSY, Effect.TAKEN):
        connections.discard()
        return
    try:
        connection.exec_driver_sql("ROLLBACK")
    except SQLAlchemyError:
        connections.discard()


def _alone(connections: Connections, connection: Connection, steps: Sequence[Step]) -> Done | Failed:
    """A single statement of SQLite, which commits by itself."""
    try:
        return _run(connection, steps)
    except BaseException as error:
        connections.discard()
        return Failed(effect=_of_sqlite(error), cause=error)


def _run(connection: Connection, steps: Sequence[Step]) -> Done:
    return Done(
        rows=tuple([connection.exec_driver_sql(said.sql, said.parameters(values)).rowcount for said, values in steps])
    )


def _before_commit(error: BaseException) -> Effect:
    if not isinstance(error, Exception):
        return Effect.UNKNOWN  # an interrupt proves nothing to those who have to clean up after it
    if isinstance(error, IntegrityError):
        return Effect.TAKEN
    if is_busy(error):
        return Effect.BUSY
    return Effect.LOST if is_lost(error) else Effect.REFUSED


def _of_sqlite(error: BaseException) -> Effect:
    if isinstance(error, IntegrityError):
        return Effect.TAKEN
    if is_busy(error):
        return Effect.BUSY
    return Effect.REFUSED if _sqlite_code(error) in _SQLITE_REFUSED else Effect.UNKNOWN


def _original(error: BaseException) -> Any:
    return error.orig if isinstance(error, DBAPIError) else error


def _sqlite_code(error: BaseException) -> int | None:
    code = getattr(_original(error), "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None  # the low byte is the kind, the rest its detail


def _sql_state(error: BaseException) -> str | None:
    state = getattr(_original(error), "sqlstate", None)
    return state if isinstance(state, str) else None

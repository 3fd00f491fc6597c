"""Conditional puts to object stores whose outcome is certain, and errors of the client as errors of this library.

A conditional put is sent only once, but a gateway may repeat it, and then the answer "exists" refers to our own object.
So every put carries a mark, an id of its own in the metadata of the object. After any answer but success the object is
read back: it is ours if it has the mark and the bytes. Equal bytes alone prove nothing, as two writers may make the
same change.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import obstore
from obstore import exceptions as refused

from icefloe.env import Env
from icefloe.errors import (
    AlreadyExists,
    CommitStateUnknown,
    IcefloeError,
    InputError,
    NoSuchFile,
    StorageError,
    UnsupportedError,
)
from icefloe.io.retries import retried
from icefloe.io.secrets import without_secrets

_MARK = "writer"  # the name of the mark in the metadata of an object
_TAKEN = (refused.AlreadyExistsError, refused.PreconditionError)  # 409 and 412
# Errors raised before the store touched the object: the request had no effect.
_DEFINITE = (
    FileNotFoundError,  # no such bucket
    refused.PermissionDeniedError,
    refused.UnauthenticatedError,
    refused.NotSupportedError,
    refused.InvalidPathError,
    ValueError,  # the client's own checks
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Two clients for one bucket: one that retries failed requests, one that sends every request once."""

    retrying: Any
    once: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """An object in a bucket."""

    location: str
    authority: str
    bucket: Bucket
    key: str


class Put:
    """A conditional put of one object, with the mark by which it is recognized."""

    def __init__(self, target: Object, data: bytes) -> None:
        self.target = target
        self._data = data
        self._mark = str(uuid.uuid4())

    def send(self) -> None:
        """Send the request once."""
        with _without_secrets():
            attributes: Any = {_MARK: self._mark}
            obstore.put(self.target.bucket.once, self.target.key, self._data, mode="create", attributes=attributes)

    def is_won(self, env: Env) -> bool:
        """Send the request; whether this put created the object, or CommitStateUnknown."""
        location = self.target.location
        try:
            self.send()
        except _DEFINITE as error:
            with translated_request("write", location):
                raise error
        except Exception as error:
            return self._settle(error, env)
        except BaseException as error:
            raise _unknown(location, error) from error
        return True

    def create(self, attempt: int) -> None:
        """Send the request for an object of a new name, the ``attempt``-th time.

        The store may say that the object exists because of an earlier request of ours.
        """
        location = self.target.location
        try:
            with translated_request("write", location):
                self.send()
        except AlreadyExists as error:
            try:
                is_stored = self.is_stored()
            except NoSuchFile:
                raise StorageError(
                    f"could not write {location}: the store says that it exists, and has no such object",
                    location=location,
                ) from error
            if is_stored is False or (is_stored is None and attempt == 1):
                raise

    def is_stored(self) -> bool | None:
        """Whether the object in the store is of this put; None if it has the bytes, but no mark.

        A store that keeps no metadata of objects has no marks.
        """
        with translated_request("read", self.target.location):
            answer = obstore.get(self.target.bucket.retrying, self.target.key)
            if answer.meta["size"] != len(self._data) or bytes(answer.bytes()) != self._data:
                return False
            mark = answer.attributes.get(_MARK)
        return None if mark is None else mark == self._mark

    def _settle(self, error: Exception, env: Env) -> bool:
        """Whether a put that was not confirmed won.

        An object that is reported to exist but cannot be read may appear soon; so may one that is not reported.
        """
        location, is_taken = self.target.location, isinstance(error, _TAKEN)
        try:
            won = retried(
                lambda _: self.is_stored(),
                passes=lambda failure: is_taken and isinstance(failure, NoSuchFile),
                env=env,
            )
        except IcefloeError:
            raise _unknown(location, error) from error
        if won is None:
            raise _unknown(location, error) from error
        return won


@contextlib.contextmanager
def translated_request(verb: str, location: str) -> Iterator[None]:
    """Raise errors of the client as errors of this library."""
    try:
        with _without_secrets():
            yield
    except _TAKEN as error:
        raise AlreadyExists(f"there is a file at {location} already", location=location) from error
    except FileNotFoundError as error:
        if verb == "write":
            raise StorageError(
                f"could not write {location}: there is no such bucket", location=location, retryable=False
            ) from error
        raise NoSuchFile(f"no file at {location}", location=location) from error
    except refused.NotSupportedError as error:
        raise UnsupportedError(f"the store cannot {verb} {location}: {_reason(error)}", location=location) from error
    except ValueError as error:
        raise InputError(f"{location!r} is no name of an object: {_reason(error)}", location=location) from error
    except (refused.BaseError, OSError) as error:
        passes = isinstance(error, refused.GenericError)
        raise StorageError(
            f"could not {verb} {location}: {_reason(error)}", location=location, retryable=passes
        ) from error


@contextlib.contextmanager
def _without_secrets() -> Iterator[None]:
    """Remove the user and password of an endpoint from errors of the client, which tracebacks also print."""
    try:
        yield
    except (refused.BaseError, OSError) as error:
        if "@" in str(error) and not isinstance(error, IcefloeError):
            error.args = (without_secrets(str(error)),)
        raise


def _unknown(location: str, error: BaseException) -> CommitStateUnknown:
    return CommitStateUnknown(
        f"{location} may or may not have been written: {_reason(error)}; nothing was deleted, read it before you retry",
        location=location,
    )


def _reason(error: BaseException) -> str:
    """The first line of the client's message; the rest is the response body and internals."""
    text = str(error).partition("\n")[0]
    return type(error).__name__ if text == "" else text

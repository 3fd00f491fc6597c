"""Raises errors of reading and writing data files as errors of this library, with the location of the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa

from icefloe.errors import FormatError, IcefloeError, LimitError, NoSuchFile, damaged, is_out_of_memory
from icefloe.io.file_io import FileIO, storage_error

# Messages of Arrow, besides an error class, for texts that take more than the 2 GB that an array can hold.
_TOO_LARGE = ("overflowed binary array capacity", "not implemented for chunked array outputs")


@contextmanager
def reading(location: str) -> Iterator[None]:
    """Errors of storage and of decoders while a data file is read."""
    try:
        yield
    except FormatError as error:
        raise error if "location" in error.context else _at(error, location) from error
    except IcefloeError:  # errors of this library's storage are passed on, also through Arrow
        raise
    except MemoryError as error:
        raise damaged(error, f"cannot read data file {location}: {error!r}", location=location) from error
    except FileNotFoundError as error:
        raise NoSuchFile(f"data file {location} is missing", location=location) from error
    except (OSError, pa.ArrowException) as error:
        no_memory = is_out_of_memory(error)
        if (
            isinstance(error, OSError) and error.errno is not None and not no_memory
        ):  # an error of the machine, not of the file
            raise storage_error(f"cannot read data file {location}: {error}", location, error) from error
        if isinstance(error, pa.ArrowCapacityError) or any(text in str(error) for text in _TOO_LARGE):
            raise LimitError(
                f"cannot read data file {location}: a part of it holds more text than one array of Arrow, which is"
                f" 2 GB ({error}); write the file again with smaller row groups or stripes",
                location=location,
            ) from error
        raise damaged(error, f"cannot read data file {location}: {error}", location=location) from error


def _at(error: FormatError, location: str) -> FormatError:
    text = str(error) if location in str(error) else f"{location}: {error}"
    return type(error)(text, **{**error.context, "location": location})


@contextmanager
def writing(location: str) -> Iterator[None]:
    """Errors of storage while a file is written."""
    try:
        yield
    except IcefloeError:  # as above
        raise
    except OSError as error:
        raise storage_error(f"cannot write {location}: {error}", location, error) from error


def open_sink(io: FileIO, location: str) -> Any:
    """An output stream of Arrow to a new file; folders are created as needed."""
    files, path = io.arrow_path(location)
    with writing(location):
        files.create_dir(path.rpartition("/")[0], recursive=True)
        return files.open_output_stream(path)


def close_quietly(*streams: Any) -> None:
    """Close streams of an abandoned file; errors are ignored."""
    for stream in streams:
        with suppress(Exception):  # Arrow raises errors of several kinds after a write that failed
            stream.close()

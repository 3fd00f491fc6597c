"""Adds the table and the snapshot to errors about files: the location of a file alone does not identify its table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from icefloe.errors import FormatError, IcefloeError, NoSuchFile, StorageError, UnsupportedError

_ABOUT_FILES = (FormatError, NoSuchFile, StorageError, UnsupportedError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The table and the snapshot that are read; without a table, errors are not changed.

    >>> with Origin(table="file:///wh/db/t", snapshot_id=7).named():
    ...     raise FormatError("cannot read a.parquet", location="a.parquet")
    Traceback (most recent call last):
    icefloe.errors.FormatError: table file:///wh/db/t, snapshot 7: cannot read a.parquet
    """

    table: str | None = None
    snapshot_id: int | None = None

    @contextmanager
    def named(self) -> Iterator[None]:
        """Adds the table and the snapshot to errors about files that are raised inside, in message and ``context``."""
        try:
            yield
        except _ABOUT_FILES as error:
            if self.table is not None:
                self._name(error)
            raise

    def _name(self, error: IcefloeError) -> None:
        if "snapshot_id" in error.context:  # added already: several readers may raise one error
            return
        error.context |= {"table": self.table, "snapshot_id": self.snapshot_id}
        where = "" if self.snapshot_id is None else f", snapshot {self.snapshot_id}"
        error.args = (f"table {self.table}{where}: {error.args[0]}", *error.args[1:])


NOWHERE = Origin()

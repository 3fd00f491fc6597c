"""What a metadata table is: its name, its columns, and the function that computes its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from icefloe.commit.base import Base
from icefloe.model.metadata.snapshots import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataTable:
    """A metadata table.

    ``of_snapshot`` says whether its rows depend on the snapshot that is chosen, ``of_all`` whether it has rows for all.
    ``schema`` reads no file. ``rows`` has exactly its columns; without a snapshot, the table was never written.
    """

    schema: Callable[[Base], pa.Schema]
    rows: Callable[[Base, Snapshot | None], pa.Table]
    of_snapshot: bool = False
    of_all: bool = False


def fixed(*fields: pa.Field) -> Callable[[Base], pa.Schema]:
    """The schema of a table whose columns are the same for all tables."""
    schema = pa.schema(fields)
    return lambda base: schema


def required(name: str, type_: pa.DataType) -> pa.Field:
    """A column without nulls."""
    return pa.field(name, type_, nullable=False)


def optional(name: str, type_: pa.DataType) -> pa.Field:
    """A column that may have nulls."""
    return pa.field(name, type_)


def chosen(snapshot: Snapshot | None) -> list[Snapshot]:
    """The snapshot as a list, empty if there is none."""
    return [] if snapshot is None else [snapshot]

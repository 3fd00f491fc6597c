"""What an engine supports, stated by the engine as a value; everything else is refused here, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from icefloe.errors import UnsupportedError
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Type
from icefloe.scan.tasks import Plan


class RowOperation(StrEnum):
    """Operations that an engine may lack."""

    UPDATE = "update"
    MERGE = "merge"
    EQUALITY_DELETES = "equality deletes"  # an upsert that writes them
    SCHEMA_MERGE = "schema merge"  # an append that adds the columns that the table lacks


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine supports. ``refused`` has the message for each operation that it does not.

    ``refused_types`` are types, or classes of types, whose values it neither reads nor writes.
    """

    engine: str  # its name in messages
    applies_initial_defaults: bool = True
    refused: Mapping[RowOperation, str] = field(default_factory=dict)
    refused_types: tuple[Type | type, ...] = ()

    def check(self, operation: RowOperation) -> None:
        """UnsupportedError if the engine lacks an operation."""
        if operation in self.refused:
            raise self.refusal(operation)

    def refusal(self, operation: RowOperation) -> UnsupportedError:
        """The error for an operation that the engine lacks."""
        return UnsupportedError(self.refused[operation], feature=str(operation))

    def check_plan(self, plan: Plan) -> None:
        """UnsupportedError if the engine would read wrong rows, or cannot read a column of the plan."""
        self.check_defaults(plan.table_schema)
        self.check_types(plan.schema)

    def check_defaults(self, schema: Schema) -> None:
        """UnsupportedError if the engine would read null where a column has an initial default."""
        if self.applies_initial_defaults:
            return
        for name, column in schema.by_name.items():
            if column.initial_default is not None:
                raise UnsupportedError(
                    f"column {name!r} has an initial default, which is not applied on {self.engine} yet", field=name
                )

    def check_types(self, schema: Schema) -> None:
        """UnsupportedError if the engine does not read or write the values of a column."""
        for name, column in schema.by_name.items():
            if any(_is_of(column.type, refused) for refused in self.refused_types):
                raise UnsupportedError(
                    f"column {name!r}: values of type {column.type} are not read or written on {self.engine} yet; leave"
                    " the column out",
                    field=name,
                )


def _is_of(type_: Type, refused: Type | type) -> bool:
    return isinstance(type_, refused) if isinstance(refused, type) else type_ == refused

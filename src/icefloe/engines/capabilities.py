"""What an engine supports, stated by the engine as a value; everything else is refused here, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from icefloe.errors import UnsupportedError


class RowOperation(StrEnum):
    """Operations that an engine may lack."""

    SCHEMA_MERGE = "schema merge"  # an append that adds the columns that the table lacks


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine supports. ``refused`` has the message for each operation that it does not."""

    engine: str  # its name in messages
    refused: Mapping[RowOperation, str] = field(default_factory=dict)

    def check(self, operation: RowOperation) -> None:
        """UnsupportedError if the engine lacks an operation."""
        if operation in self.refused:
            raise self.refusal(operation)

    def refusal(self, operation: RowOperation) -> UnsupportedError:
        """The error for an operation that the engine lacks."""
        return UnsupportedError(self.refused[operation], feature=str(operation))

"""The condition that chooses the rows of a change: a filter, and on Spark also SQL that filters cannot express."""

from __future__ import annotations

from dataclasses import dataclass

from icefloe.expr.filter.nodes import Expr
from icefloe.model.schema.types import Field


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A row is chosen if ``filter`` and ``sql`` are both true for it, and not false or null.

    ``filter`` prunes files and finds conflicting commits; it may test metadata columns, such as ``_file``. ``sql`` is
    the Spark SQL of the user, which only Spark evaluates; none if the filter alone is the condition.
    ``metadata_columns`` are those that ``sql`` tests.
    """

    filter: Expr
    sql: str | None = None
    metadata_columns: tuple[Field, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether the filter alone is the condition, so that statistics can prove that all rows of a file match."""
        return self.sql is None

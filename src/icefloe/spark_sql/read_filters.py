"""Records what row changes read, so that conflicting commits can be told from others."""

from __future__ import annotations

from collections.abc import Callable

from icefloe.errors import InputError
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr, disjunction
from icefloe.model.schema.schema import Schema
from icefloe.scan.metadata_filter import split_filter
from icefloe.spark_sql.kept import Kept

_KEPT = 64


class ReadFilters:
    """The filters by which the scans of each row change were planned."""

    def __init__(self) -> None:
        self._filters: Kept[str, list[Expr]] = Kept(_KEPT)

    def observer(self, operation: str) -> Callable[[Expr], None]:
        """The function that records a filter of a row change, by the id of the change."""
        filters = self._filters.get(operation)
        if filters is None:
            filters = []
            self._filters.put(operation, filters)
        return filters.append

    def take(self, operation: str, schema: Schema) -> Expr:
        """What a row change has read, on the columns of the table; its record is dropped."""
        filters = self._filters.get(operation)
        self._filters.drop(operation)
        return ALWAYS_TRUE if filters is None else disjunction([_on_columns(part, schema) for part in filters])


def _on_columns(filter_: Expr, schema: Schema) -> Expr:
    on_table, _ = split_filter(filter_, schema)
    try:
        bind(on_table, schema)
    except InputError:  # a filter on values as Spark reads them, which the table has in another type
        return ALWAYS_TRUE
    return on_table

"""What an engine does not support is refused by name, by the capabilities that it states."""

from __future__ import annotations

import pytest

from icefloe.engines.capabilities import Capabilities, RowOperation
from icefloe.errors import UnsupportedError
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import INT, TIMESTAMP_NS, VARIANT, Field, Struct, Variant

SCHEMA = Schema(
    fields=(
        Field(1, "id", INT),
        Field(2, "at", Struct((Field(3, "ns", TIMESTAMP_NS),))),
        Field(4, "v", VARIANT),
        Field(5, "n", INT, initial_default=7),
    )
)


def test_an_engine_without_limits_refuses_nothing() -> None:
    engine = Capabilities(engine="Arrow")
    for operation in RowOperation:
        engine.check(operation)
    engine.check_types(SCHEMA)
    engine.check_defaults(SCHEMA)


def test_operations_are_refused_with_the_message_of_the_engine() -> None:
    engine = Capabilities(engine="Spark", refused={RowOperation.MERGE: "merge is not supported; use upsert"})
    engine.check(RowOperation.UPDATE)
    with pytest.raises(UnsupportedError, match="merge is not supported; use upsert") as caught:
        engine.check(RowOperation.MERGE)
    assert caught.value.context["feature"] == "merge"


@pytest.mark.parametrize(("refused", "column"), [(TIMESTAMP_NS, "at.ns"), (Variant, "v")])
def test_types_are_refused_by_column_also_inside_structs(refused: object, column: str) -> None:
    engine = Capabilities(engine="Spark", refused_types=(refused,))  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=f"column '{column}': values of type .* on Spark yet") as caught:
        engine.check_types(SCHEMA)
    assert caught.value.context["field"] == column


def test_initial_defaults_are_refused_by_column() -> None:
    engine = Capabilities(engine="Spark", applies_initial_defaults=False)
    with pytest.raises(UnsupportedError, match="column 'n' has an initial default, which is not applied on Spark yet"):
        engine.check_defaults(SCHEMA)

"""What an engine does not support is refused by name, by the capabilities that it states."""

from __future__ import annotations

import pytest

from icefloe.engines.capabilities import Capabilities, RowOperation
from icefloe.errors import UnsupportedError


def test_an_engine_without_limits_refuses_nothing() -> None:
    engine = Capabilities(engine="Arrow")
    for operation in RowOperation:
        engine.check(operation)


def test_operations_are_refused_with_the_message_of_the_engine() -> None:
    engine = Capabilities(engine="Spark", refused={RowOperation.SCHEMA_MERGE: "they are not supported; use positions"})
    with pytest.raises(UnsupportedError, match="they are not supported; use positions") as caught:
        engine.check(RowOperation.SCHEMA_MERGE)
    assert caught.value.context["feature"] == "schema merge"

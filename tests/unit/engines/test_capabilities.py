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
    engine = Capabilities(engine="Spark", refused={RowOperation.UPDATE: "update is not supported; use upsert"})
    engine.check(RowOperation.SCHEMA_MERGE)
    with pytest.raises(UnsupportedError, match="update is not supported; use upsert") as caught:
        engine.check(RowOperation.UPDATE)
    assert caught.value.context["feature"] == "update"

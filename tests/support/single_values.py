"""Single values as bytes and back, each as a column of one bound."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from icefloe.codecs.value.bounds import decode_bounds, encode_bounds
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.schema.types import TIMESTAMP_NS, TIMESTAMPTZ_NS, Type


def encode_value(value: Any, type_: Type) -> bytes:
    """The bytes of one value."""
    encoded: bytes = encode_bounds(pa.array([value], arrow_type(type_)), type_)[0].as_py()
    return encoded


def decode_value(data: bytes, type_: Type, *, where: str = "bounds") -> Any:
    """The value of some bytes; for timestamps of nanoseconds their number since 1970."""
    value = decode_bounds(pa.array([data], pa.binary()), type_, where=where)[0]
    return value.value if type_ in (TIMESTAMP_NS, TIMESTAMPTZ_NS) else value.as_py()

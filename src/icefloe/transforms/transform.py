"""Transforms as frozen values, and their texts (spec: Partition Transforms, Bucket Transform Details).

A transform this library does not compute is an ``UnknownTransform``: a reader ignores it, as the spec asks, and a
writer refuses it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from icefloe.errors import FormatError, UnsupportedError
from icefloe.model.arrow import arrow_type
from icefloe.model.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Fixed,
    Type,
    is_primitive,
)
from icefloe.transforms.base import MAX_INT, Transform, masked
from icefloe.transforms.murmur3 import hash_binary, hash_decimals, hash_integers
from icefloe.transforms.times import Day, Hour, Month, Year
from icefloe.transforms.truncate import Truncate

_INTEGERS = frozenset({INT, LONG, DATE, TIME, TIMESTAMP, TIMESTAMPTZ})
_STRINGS = frozenset({STRING, BINARY, UUID})
_WITH_NUMBER = re.compile(r"(bucket|truncate)\[(\d{1,10})\]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Identity(Transform):
    """The value itself."""

    preserves_order: ClassVar[bool] = True

    def __str__(self) -> str:
        return "identity"

    def accepts(self, source: Type) -> bool:
        """Any primitive type."""
        return is_primitive(source)

    def result_type(self, source: Type) -> Type:
        """The type of the column."""
        return source

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        return array


@dataclass(frozen=True, slots=True)
class Void(Transform):
    """Null for every value: what remains of a field that was dropped from a spec."""

    def __str__(self) -> str:
        return "void"

    def accepts(self, source: Type) -> bool:
        """Any type."""
        return True

    def result_type(self, source: Type) -> Type:
        """The type of the column; no value of it ever occurs."""
        return source

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        return pa.nulls(len(array), arrow_type(source))


@dataclass(frozen=True, slots=True)
class Bucket(Transform):
    """A hash of the value, modulo the number of buckets."""

    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MAX_INT:
            raise FormatError(f"bucket[{self.count}]: the number of buckets is 1 to {MAX_INT}", transform=str(self))

    def __str__(self) -> str:
        return f"bucket[{self.count}]"

    def accepts(self, source: Type) -> bool:
        """Every primitive type but boolean, float and double."""
        return source in _INTEGERS or source in _STRINGS or isinstance(source, (Decimal, Fixed))

    def result_type(self, source: Type) -> Type:
        """An int from 0 to the number of buckets less one."""
        return INT

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        hashes = self._hashes(array, source)
        return masked((hashes & np.int32(MAX_INT)) % np.int32(self.count), pa.int32(), array)

    def _hashes(self, array: pa.Array, source: Type) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        if isinstance(source, Decimal):
            return hash_decimals(array)
        if source in _INTEGERS:
            narrow = pa.int32() if source == DATE else pa.int64()
            return hash_integers(array.cast(narrow).cast(pa.int64()).fill_null(0).to_numpy())
        return hash_binary(array)


@dataclass(frozen=True, slots=True)
class UnknownTransform(Transform):
    """A transform that this library does not compute."""

    text: str

    def __str__(self) -> str:
        return self.text

    def accepts(self, source: Type) -> bool:
        """Never."""
        return False

    def result_type(self, source: Type) -> Type:
        """Unknown transforms have no known result; asking is an error that names the transform."""
        raise self._refusal()

    def apply(self, array: pa.Array | pa.ChunkedArray, source: Type) -> pa.Array:
        """Always an error that names the transform."""
        raise self._refusal()

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        raise self._refusal()

    def _refusal(self) -> UnsupportedError:
        return UnsupportedError(
            f"transform {self.text!r} cannot be computed; supported are identity, bucket[N], truncate[W], year, month,"
            " day, hour and void",
            transform=self.text,
        )


def parse_transform(text: str) -> Transform:
    """Parse the text of a transform; one that is not known parses too, as ``UnknownTransform``.

    >>> parse_transform("bucket[16]")
    Bucket(count=16)
    >>> str(parse_transform("zorder[2]"))
    'zorder[2]'
    """
    if (found := _WITH_NUMBER.fullmatch(text)) is not None:
        return (Bucket if found[1] == "bucket" else Truncate)(int(found[2]))
    return _NAMED.get(text) or UnknownTransform(text)


_NAMED: dict[str, Transform] = {str(t): t for t in (Identity(), Void(), Year(), Month(), Day(), Hour())}

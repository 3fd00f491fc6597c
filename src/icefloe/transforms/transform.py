"""Transforms as frozen values (spec: Partition Transforms, Bucket Transform Details).

``apply`` works on whole Arrow arrays; ``value`` is the same for one value. A transform this library does not compute
is an ``UnknownTransform``: a reader ignores it, as the spec asks, and a writer refuses it.
"""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import FormatError, InputError, UnsupportedError
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
from icefloe.transforms.murmur3 import hash_binary, hash_decimals, hash_integers

MICROS_PER_DAY = 86_400_000_000
_MAX_INT = 2**31 - 1
_INTEGERS = frozenset({INT, LONG, DATE, TIME, TIMESTAMP, TIMESTAMPTZ})
_STRINGS = frozenset({STRING, BINARY, UUID})
_BUCKET = re.compile(r"bucket\[(\d{1,10})\]")


class Transform(ABC):
    """A function from a column's values to partition values; null always gives null."""

    preserves_order: ClassVar[bool] = False

    @abstractmethod
    def accepts(self, source: Type) -> bool:
        """Whether columns of this type can be transformed."""

    @abstractmethod
    def result_type(self, source: Type) -> Type:
        """The type of the partition values."""

    @abstractmethod
    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        """The partition values of an array that has the Arrow type of an accepted source."""

    def apply(self, array: pa.Array | pa.ChunkedArray, source: Type) -> pa.Array:
        """The partition values of a column.

        >>> parse_transform("bucket[16]").apply(pa.array([34, None]), LONG).to_pylist()
        [3, None]
        """
        if not self.accepts(source):
            raise InputError(f"{self} cannot be applied to a column of type {source}", transform=str(self))
        wanted = arrow_type(source)
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        done = [self._apply(chunk if chunk.type == wanted else chunk.cast(wanted), source) for chunk in chunks]
        if len(done) == 1:
            return done[0]
        return pa.concat_arrays([pa.nulls(0, arrow_type(self.result_type(source))), *done])

    def value(self, value: object, source: Type) -> object:
        """The partition value of one value, as Arrow's Python value.

        >>> import datetime
        >>> parse_transform("day").value(datetime.datetime(1969, 12, 31, 23), TIMESTAMP)
        datetime.date(1969, 12, 31)
        """
        if isinstance(value, uuid.UUID):
            value = value.bytes
        return self.apply(pa.array([value], arrow_type(source)), source)[0].as_py()


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
class Day(Transform):
    """The UTC day of a timestamp, rounded towards the past also before 1970."""

    preserves_order: ClassVar[bool] = True

    def __str__(self) -> str:
        return "day"

    def accepts(self, source: Type) -> bool:
        """Dates and timestamps."""
        return source in (DATE, TIMESTAMP, TIMESTAMPTZ)

    def result_type(self, source: Type) -> Type:
        """A date."""
        return DATE

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        if source == DATE:
            return array
        micros = array.cast(pa.int64()).fill_null(0).to_numpy()
        return _masked((micros // MICROS_PER_DAY).astype(np.int32), array).cast(pa.date32())


@dataclass(frozen=True, slots=True)
class Bucket(Transform):
    """A hash of the value, modulo the number of buckets."""

    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.count <= _MAX_INT:
            raise FormatError(f"bucket[{self.count}]: the number of buckets is 1 to {_MAX_INT}", transform=str(self))

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
        return _masked((hashes & np.int32(_MAX_INT)) % np.int32(self.count), array)

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
            f"transform {self.text!r} cannot be computed; supported are identity, bucket[N], day and void",
            transform=self.text,
        )


def parse_transform(text: str) -> Transform:
    """Parse the text of a transform; one that is not known parses too, as ``UnknownTransform``.

    >>> parse_transform("bucket[16]")
    Bucket(count=16)
    >>> str(parse_transform("zorder[2]"))
    'zorder[2]'
    """
    if (found := _BUCKET.fullmatch(text)) is not None:
        return Bucket(int(found[1]))
    return _NAMED.get(text) or UnknownTransform(text)


_NAMED: dict[str, Transform] = {"identity": Identity(), "void": Void(), "day": Day()}


def _masked(values: np.ndarray[tuple[int], np.dtype[np.int32]], array: pa.Array) -> pa.Array:
    mask = None if array.null_count == 0 else pc.is_null(array).to_numpy(zero_copy_only=False)
    return pa.array(values, pa.int32(), mask=mask)

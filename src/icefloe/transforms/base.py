"""What every partition transform does, on values and on Arrow arrays (spec: Partition Transforms).

``apply`` works on whole Arrow arrays of any layout that can hold the column's values; ``value`` is the same for one
value. The helpers below look into Arrow's buffers without copying them.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.schema.types import BINARY, STRING, Type

MAX_INT = 2**31 - 1
ROWS = 2**15  # at a time, in computations of many steps
Longs: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[np.int32] | npt.NDArray[np.int64]


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

    def satisfies_order_of(self, other: Transform, source: Type) -> bool:
        """Whether rows in the order of this transform are in the order of another of the same column, too.

        >>> from icefloe.model.schema.types import TIMESTAMP
        >>> from icefloe.transforms import Day, Hour
        >>> Hour().satisfies_order_of(Day(), TIMESTAMP), Day().satisfies_order_of(Hour(), TIMESTAMP)
        (True, False)
        """
        return self == other

    def apply(self, array: pa.Array | pa.ChunkedArray, source: Type) -> pa.Array:
        """The partition values of a column.

        >>> from icefloe.model.schema.types import LONG
        >>> from icefloe.transforms import parse_transform
        >>> parse_transform("bucket[16]").apply(pa.array([34, None]), LONG).to_pylist()
        [3, None]
        """
        if not self.accepts(source):
            raise InputError(f"{self} cannot be applied to a column of type {source}", transform=str(self))
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        done = [self._apply_to_layout(chunk, source) for chunk in chunks]
        if len(done) == 1:
            return done[0]
        return pa.concat_arrays([pa.nulls(0, arrow_type(self.result_type(source))), *done])

    def _apply_to_layout(self, array: pa.Array, source: Type) -> pa.Array:
        """The partition values of an array of any layout."""
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if pa.types.is_dictionary(array.type):
            # Texts are transformed once each. Numbers are not: one that no row has may have no partition value.
            if source in (STRING, BINARY) and len(array.dictionary) <= len(array):
                return self._apply_to_layout(array.dictionary, source).take(array.indices)
            array = array.dictionary_decode()
        return self._apply(_as_type(array, source), source)

    def value(self, value: object, source: Type) -> object:
        """The partition value of one value, as Arrow's Python value; nanoseconds from 1970 where it has none.

        >>> import datetime
        >>> from icefloe.model.schema.types import TIMESTAMP
        >>> from icefloe.transforms import parse_transform
        >>> parse_transform("day").value(datetime.datetime(1969, 12, 31, 23), TIMESTAMP)
        datetime.date(1969, 12, 31)
        """
        if isinstance(value, uuid.UUID):
            value = value.bytes
        type_ = arrow_type(source)
        try:
            array = pa.array([value], type_)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise InputError(f"{self}: {value!r} is no value of type {source}: {error}", value=value) from error
        found = self.apply(array, source)[0]
        return found.value if found.type in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")) else found.as_py()


def _as_type(array: pa.Array, source: Type) -> pa.Array:
    """The array in the Arrow type of a source; a value that it cannot hold is an error."""
    wanted = arrow_type(source)
    if array.type == wanted:
        return array
    try:
        return array.cast(wanted)
    except pa.ArrowException as error:
        raise InputError(f"Arrow {array.type} cannot be read as {source}: {error}", type=str(source)) from error


def numbers(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The stored numbers of an array, not copied; null slots hold arbitrary numbers."""
    if len(array) == 0:
        return np.empty(0, dtype)
    start = array.offset * np.dtype(dtype).itemsize
    return np.frombuffer(array.buffers()[1], dtype, count=len(array), offset=start)


def masked(values: npt.NDArray[Any], type_: pa.DataType, array: pa.Array) -> pa.Array:
    """Numbers as an Arrow array of a type that stores them so, null where another array is; they are not copied."""
    # The values of a boolean array are packed like a validity bitmap.
    validity = None if array.null_count == 0 else pc.is_valid(array).buffers()[1]
    return pa.Array.from_buffers(type_, len(array), [validity, pa.py_buffer(values)], array.null_count)


def parts(count: int) -> Iterator[slice]:
    """Ranges of rows that together are all rows, each small enough that its scratch space stays in the cache.

    >>> [(part.start, part.stop) for part in parts(40_000)]
    [(0, 32768), (32768, 40000)]
    """
    return (slice(start, min(start + ROWS, count)) for start in range(0, count, ROWS))

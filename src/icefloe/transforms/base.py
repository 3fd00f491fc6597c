"""The base class of partition transforms (spec: Partition Transforms).

Other packages use transforms only through ``Transform``: it computes values, draws conclusions from results about the
column, gives the Spark SQL of a transform, and displays results. The defaults draw no conclusions, so a new transform
needs only the three abstract methods; each further method makes plans more selective or writes on Spark faster.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
BEYOND = object()  # a limit that Python has no value for, although a column may hold values beyond it


@dataclass(frozen=True, slots=True)
class ResultNumbers:
    """The numbers that a transform returns: multiples of ``step``, in units of the last digit, within limits."""

    step: int = 1
    lowest: int | None = None
    highest: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """The least values of the column whose result is at least, and above, a given one.

    Both functions return None if there is no such value, and ``BEYOND`` if Python has none.
    """

    at_least: Callable[[Any], Any]
    above: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class HashBuckets:
    """Murmur3 hashes without their sign, modulo ``count``."""

    count: int


@dataclass(frozen=True, slots=True)
class DecimalSteps:
    """Decimals cut to multiples of ``width``, in units of their last digit."""

    width: int


class Transform(ABC):
    """A function from a column's values to partition values; null always gives null."""

    preserves_order: ClassVar[bool] = False
    is_identity: ClassVar[bool] = False
    is_void: ClassVar[bool] = False
    is_known: ClassVar[bool] = True
    takes_several_columns: ClassVar[bool] = False

    # -- results

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

    def apply_to_columns(self, columns: Sequence[pa.Array | pa.ChunkedArray], sources: Sequence[Type]) -> pa.Array:
        """The partition values of rows, from their values in each source column; most transforms take one."""
        (column,), (source,) = columns, sources
        return self.apply(column, source)

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
        except MemoryError:
            raise
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise InputError(f"{self}: {value!r} is no value of type {source}: {error}", value=value) from error
        result = self.apply(array, source)[0]
        return result.value if result.type in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")) else result.as_py()

    def display(self, value: object) -> object:
        """A partition value as people write it, which is also how folders are named."""
        return value

    # -- conclusions from stored results

    def is_evidence(self, source: Type) -> bool:
        """Whether conclusions about a column of this type can be drawn from stored results."""
        return self.accepts(source)

    def source_bounds(self, lowest: Any, highest: Any, source: Type) -> tuple[Any, Any]:
        """Bounds of the column from the lowest and highest stored results.

        All are inclusive Arrow columns. A bound is null where nothing is certain, and None if it is null everywhere.
        """
        return None, None

    def lowest_results(self, lowest: Any, source: Type) -> Any:
        """The lowest results that the column may have, from the lowest stored results."""
        return lowest

    # -- tests of the column as tests of results, and the reverse

    @property
    def result_numbers(self) -> ResultNumbers:
        """Which numbers are results, if results are numbers."""
        return ResultNumbers()

    def prefix_length(self, source: Type) -> int | None:
        """The length of the beginning that is kept of texts or bytes; None if the results are no beginnings."""
        return None

    def limits(self, source: Type) -> Limits | None:
        """The intervals of the column that share a result; None if they are unknown."""
        return None

    # -- Spark

    def spark_sql(self, column: str, source: Type) -> str | None:
        """Spark SQL that computes the result of a quoted column; None if Spark has no function for it."""
        return None

    def spark_key(self, column: str, source: Type) -> str | None:
        """Spark SQL with the order and equality of the results, or None if Spark has none.

        Integer results that do not fit must not overflow: such a row is refused later, with its value in the message.
        """
        return self.spark_sql(column, source)

    def spark_method(self, source: Type) -> HashBuckets | DecimalSteps | None:
        """The computation for which Spark has Java methods but no SQL; None if there is none."""
        return None

    def spark_folder(self, column: str, source: Type) -> str | None:
        """Spark SQL for the folder name of a result; None if it is that of the value of ``spark_key``."""
        return None


def _as_type(array: pa.Array, source: Type) -> pa.Array:
    """The array in the Arrow type of a source; a value that it cannot hold is an error."""
    wanted = arrow_type(source)
    if array.type == wanted:
        return array
    try:
        return array.cast(wanted)
    except MemoryError:
        raise
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

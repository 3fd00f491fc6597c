"""What every partition transform does, on values and on Arrow arrays (spec: Partition Transforms).

``apply`` works on whole Arrow arrays; ``value`` is the same for one value.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.model.arrow import arrow_type
from icefloe.model.types import Type

MAX_INT = 2**31 - 1
Longs: TypeAlias = npt.NDArray[np.int64]


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

        >>> from icefloe.model.types import LONG
        >>> from icefloe.transforms import parse_transform
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
        >>> from icefloe.model.types import TIMESTAMP
        >>> from icefloe.transforms import parse_transform
        >>> parse_transform("day").value(datetime.datetime(1969, 12, 31, 23), TIMESTAMP)
        datetime.date(1969, 12, 31)
        """
        if isinstance(value, uuid.UUID):
            value = value.bytes
        return self.apply(pa.array([value], arrow_type(source)), source)[0].as_py()


def masked(values: npt.NDArray[Any], type_: pa.DataType, array: pa.Array) -> pa.Array:
    """Numbers as an Arrow array that is null where another array is."""
    mask = None if array.null_count == 0 else pc.is_null(array).to_numpy(zero_copy_only=False)
    return pa.array(values, type_, mask=mask)

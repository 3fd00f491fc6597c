"""Rows spread over buckets by a hash of several columns (spec: Partitioning; V4 proposal).

The spec has a place for several source columns (``source-ids``) and does not define how they are hashed. Here the bytes
that ``bucket`` hashes of each value are joined in the order of the columns, and hashed as one value. Nulls have no
bytes; if all values of a row are null, its bucket is null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InputError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.columns import one_array
from icefloe.model.schema.types import INT, Type
from icefloe.transforms.base import ResultNumbers, Transform
from icefloe.transforms.bucket import Bucket, hashed_bytes, modulo
from icefloe.transforms.murmur3 import hash_binary


@dataclass(frozen=True, slots=True)
class BucketOfColumns(Transform):
    """A hash of the values of several columns, modulo the number of buckets.

    >>> from icefloe.model.schema.types import LONG, STRING
    >>> columns = [pa.array([1, 1, None]), pa.array(["a", None, None])]
    >>> BucketOfColumns(16).apply_to_columns(columns, [LONG, STRING]).to_pylist()
    [12, 4, None]
    """

    takes_several_columns: ClassVar[bool] = True
    count: int

    def __str__(self) -> str:
        return f"bucket[{self.count}]"

    def accepts(self, source: Type) -> bool:
        """The types of single columns that have buckets."""
        return Bucket(self.count).accepts(source)

    def result_type(self, source: Type) -> Type:
        """An int from 0 to the number of buckets less one."""
        return INT

    def is_evidence(self, source: Type) -> bool:
        """Never: a bucket depends on the other columns too."""
        return False

    @property
    def result_numbers(self) -> ResultNumbers:
        """The numbers of the buckets."""
        return ResultNumbers(lowest=0, highest=self.count - 1)

    def apply_to_columns(self, columns: Sequence[pa.Array | pa.ChunkedArray], sources: Sequence[Type]) -> pa.Array:
        """The buckets of rows, from their values in each column."""
        parts = [_bytes(column, source, self) for column, source in zip(columns, sources, strict=True)]
        filled = [pc.fill_null(part, pa.scalar(b"", pa.large_binary())) for part in parts]
        joined = pc.binary_join_element_wise(*filled, pa.scalar(b"", pa.large_binary()))
        absent = pc.is_null(parts[0])
        for part in parts[1:]:
            absent = pc.and_(absent, pc.is_null(part))
        buckets = pa.array(modulo(hash_binary(joined), self.count), pa.int32())
        return pc.if_else(absent, pa.scalar(None, pa.int32()), buckets)

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        raise InputError(f"{self} of several columns cannot be applied to one", transform=str(self))


def _bytes(column: pa.Array | pa.ChunkedArray, source: Type, transform: Transform) -> pa.Array:
    """The hashed bytes of a column as one array."""
    if not transform.accepts(source):
        raise InputError(f"{transform} cannot be applied to a column of type {source}", transform=str(transform))
    array = one_array(column)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    wanted = arrow_type(source)
    return hashed_bytes(array if array.type == wanted else array.cast(wanted), source)

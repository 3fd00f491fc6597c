"""Parses transforms; identity, void and unknown transforms (spec: Partition Transforms).

A transform that this library does not compute is an ``UnknownTransform``: readers ignore it, as the spec requires, and
writers refuse it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from icefloe.errors import UnsupportedError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.partition.sort_order import SortField
from icefloe.model.partition.spec import PartitionField
from icefloe.model.partition.transform_names import TRANSFORM_NAMES
from icefloe.model.schema.types import Geography, Geometry, Type, is_primitive
from icefloe.transforms.base import Transform
from icefloe.transforms.bucket import Bucket
from icefloe.transforms.bucket_of_columns import BucketOfColumns
from icefloe.transforms.times import Day, Hour, Month, Year
from icefloe.transforms.truncate import Truncate

_SIZED: dict[str, Callable[[int], Transform]] = {"bucket": Bucket, "truncate": Truncate}
_WITH_NUMBER = re.compile(rf"({'|'.join(_SIZED)})\[(\d+)\]", re.ASCII | re.IGNORECASE)
# A number with more digits is out of range; Python refuses to parse very long numbers.
_DIGITS = 11


@dataclass(frozen=True, slots=True)
class Identity(Transform):
    """The value itself."""

    preserves_order: ClassVar[bool] = True
    is_identity: ClassVar[bool] = True

    def __str__(self) -> str:
        return "identity"

    def accepts(self, source: Type) -> bool:
        """Any primitive type but shapes, which have no order and no equality."""
        return is_primitive(source) and not isinstance(source, (Geometry, Geography))

    def result_type(self, source: Type) -> Type:
        """The type of the column."""
        return source

    def source_bounds(self, lowest: Any, highest: Any, source: Type) -> tuple[Any, Any]:
        """The stored values."""
        return lowest, highest

    def spark_sql(self, column: str, source: Type) -> str:
        """The column."""
        return column

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        return array


@dataclass(frozen=True, slots=True)
class Void(Transform):
    """Null for every value: the transform of a field that was dropped from a spec."""

    is_void: ClassVar[bool] = True

    def __str__(self) -> str:
        return "void"

    def accepts(self, source: Type) -> bool:
        """Any type."""
        return True

    def result_type(self, source: Type) -> Type:
        """The type of the column; no value of it ever occurs."""
        return source

    def is_evidence(self, source: Type) -> bool:
        """Never: all results are null."""
        return False

    def _apply(self, array: pa.Array, source: Type) -> pa.Array:
        return pa.nulls(len(array), arrow_type(source))


@dataclass(frozen=True, slots=True)
class UnknownTransform(Transform):
    """A transform that this library does not compute."""

    is_known: ClassVar[bool] = False
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
        known = ", ".join(f"{names.name}[N]" if names.is_sized else names.name for names in TRANSFORM_NAMES)
        return UnsupportedError(
            f"transform {self.text!r} cannot be computed; supported are {known}", transform=self.text
        )


def parse_transform(text: str) -> Transform:
    """Parse the text of a transform, in any case; one that is not known parses too, as ``UnknownTransform``.

    >>> parse_transform("bucket[16]")
    Bucket(count=16)
    >>> str(parse_transform("Day")), str(parse_transform("zorder[2]"))
    ('day', 'zorder[2]')
    """
    if (sized := _WITH_NUMBER.fullmatch(text)) is not None:
        return _SIZED[sized[1].lower()](int(sized[2].lstrip("0")[:_DIGITS] or "0"))
    return NAMED.get(text.lower()) or UnknownTransform(text)


NAMED: dict[str, Transform] = {str(t): t for t in (Identity(), Void(), Year(), Month(), Day(), Hour())}


def transform_of(field: PartitionField | SortField) -> Transform:
    """The transform of a partition field or sort key. Of several columns, only buckets of partitions are computed.

    >>> transform_of(SortField(source_id=1, transform="day"))
    Day()
    >>> transform_of(PartitionField(source_id=1, other_source_ids=(2,), field_id=1000, name="b", transform="bucket[4]"))
    BucketOfColumns(count=4)
    """
    transform = parse_transform(field.transform)
    if len(field.source_ids) == 1 or transform.is_void:
        return transform
    if isinstance(field, PartitionField) and isinstance(transform, Bucket):
        return BucketOfColumns(transform.count)
    return UnknownTransform(field.transform)

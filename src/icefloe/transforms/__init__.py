"""Partition transforms, scalar and over Arrow arrays: identity, bucket, truncate, times, void (spec: Partitioning)."""

from __future__ import annotations

from icefloe.transforms.base import BEYOND, DecimalSteps, HashBuckets, Limits, ResultNumbers, Transform
from icefloe.transforms.bucket import Bucket
from icefloe.transforms.bucket_of_columns import BucketOfColumns
from icefloe.transforms.times import Day, Hour, Month, TimeTransform, Year
from icefloe.transforms.transform import Identity, UnknownTransform, Void, parse_transform, transform_of
from icefloe.transforms.truncate import Truncate

__all__ = [
    "BEYOND",
    "Bucket",
    "BucketOfColumns",
    "Day",
    "DecimalSteps",
    "HashBuckets",
    "Hour",
    "Identity",
    "Limits",
    "Month",
    "ResultNumbers",
    "TimeTransform",
    "Transform",
    "Truncate",
    "UnknownTransform",
    "Void",
    "Year",
    "parse_transform",
    "transform_of",
]

"""Partition transforms: identity, bucket, day and void, scalar and over Arrow arrays (spec: Partition Transforms)."""

from __future__ import annotations

from icefloe.transforms.transform import Bucket, Day, Identity, Transform, UnknownTransform, Void, parse_transform

__all__ = ["Bucket", "Day", "Identity", "Transform", "UnknownTransform", "Void", "parse_transform"]

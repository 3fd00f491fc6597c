"""Schemes of locations that different clients give to one and the same kind of store, and the settings they read."""

from __future__ import annotations

from collections.abc import Mapping

from icefloe.model.locations import S3

GS = frozenset({"gs", "gcs"})
ABFS = frozenset({"abfs", "abfss", "wasb", "wasbs"})
OBJECT_STORES = (S3, GS, ABFS)

_PREFIXES = ("s3.", "client.", "gcs.", "adls.")


def scheme_family(scheme: str) -> frozenset[str]:
    """The schemes of the object store that one of them names; empty for other storage.

    >>> sorted(scheme_family("s3a")), sorted(scheme_family("file"))
    (['s3', 's3a', 's3n'], [])
    """
    return next((family for family in OBJECT_STORES if scheme in family), frozenset())


def storage_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that say how to reach storage; the others are not its concern.

    >>> storage_properties({"warehouse": "s3://b/wh", "s3.region": "eu-west-1"})
    {'s3.region': 'eu-west-1'}
    """
    return {name: value for name, value in properties.items() if name.startswith(_PREFIXES)}

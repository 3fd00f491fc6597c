"""The options of a write, by the names that Apache Iceberg gives them."""

from __future__ import annotations

from collections.abc import Mapping

_SUMMARY_PREFIX = "snapshot-property."


def summary_properties(options: Mapping[str, str]) -> dict[str, str]:
    """What options such as ``snapshot-property.team`` add to the summary of the snapshot; the key keeps its case.

    >>> summary_properties({"snapshot-property.Team": "sales", "Snapshot-Property.run": "7", "branch": "audit"})
    {'Team': 'sales', 'run': '7'}
    """
    return {
        name[len(_SUMMARY_PREFIX) :]: value
        for name, value in options.items()
        if name.lower().startswith(_SUMMARY_PREFIX) and len(name) > len(_SUMMARY_PREFIX)
    }

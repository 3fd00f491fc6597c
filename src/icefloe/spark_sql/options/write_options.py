"""The options of a write, by the names that Apache Iceberg gives them."""

from __future__ import annotations

from collections.abc import Mapping

_BRANCH = "branch"
_MERGE_SCHEMA = frozenset({"mergeschema", "merge-schema"})
_SUMMARY_PREFIX = "snapshot-property."


def branch_option(options: Mapping[str, str]) -> str | None:
    """The branch that a write goes to by the option ``branch``.

    >>> branch_option({"Branch": "audit"})
    'audit'
    """
    return next((value for name, value in options.items() if name.lower() == _BRANCH), None)


def merges_schema(options: Mapping[str, str]) -> bool:
    """Whether a write first adds the columns that the table lacks.

    >>> merges_schema({"mergeSchema": "true"}), merges_schema({"merge-schema": "false"})
    (True, False)
    """
    return any(name.lower() in _MERGE_SCHEMA and value.lower() == "true" for name, value in options.items())


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

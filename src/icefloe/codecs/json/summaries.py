"""Summaries of V4 without their zeros: most tables have no deletes, and each snapshot said so in four keys.

A count that other versions write even if it is zero is left out if its group is complete: ``total-data-files`` says
that the totals are known, ``manifests-created`` that manifests were counted. Without these two keys, an absent count is
unknown, as in other versions.
"""

from __future__ import annotations

from collections.abc import Mapping

from icefloe.model.metadata.snapshots import SummaryKey

_ZERO = "0"
_GROUPS: Mapping[str, tuple[str, ...]] = {  # the key that is never left out, and those that are
    SummaryKey.TOTAL_DATA_FILES: (
        SummaryKey.TOTAL_RECORDS,
        SummaryKey.TOTAL_FILES_SIZE,
        SummaryKey.TOTAL_DELETE_FILES,
        SummaryKey.TOTAL_POSITION_DELETES,
        SummaryKey.TOTAL_EQUALITY_DELETES,
    ),
    SummaryKey.MANIFESTS_CREATED: (SummaryKey.MANIFESTS_KEPT, SummaryKey.MANIFESTS_REPLACED),
}


def without_zeros(summary: Mapping[str, str]) -> dict[str, str]:
    """A summary as V4 stores it; ``with_zeros`` returns the original.

    >>> stored = without_zeros({"manifests-created": "1", "manifests-kept": "0", "manifests-replaced": "1"})
    >>> stored
    {'manifests-created': '1', 'manifests-replaced': '1'}
    >>> with_zeros(stored)
    {'manifests-created': '1', 'manifests-replaced': '1', 'manifests-kept': '0'}
    """
    stored = dict(summary)
    for known, counts in _GROUPS.items():
        if all(key in summary for key in (known, *counts)):
            stored = {key: value for key, value in stored.items() if key not in counts or value != _ZERO}
        elif _leaves_out_zeros(summary, known, counts):
            del stored[known]  # what is absent here is unknown, not zero
    return stored


def with_zeros(summary: Mapping[str, str]) -> dict[str, str]:
    """A summary with the zeros that V4 leaves out."""
    complete = dict(summary)
    for known, counts in _GROUPS.items():
        if _leaves_out_zeros(summary, known, counts):
            complete |= {str(key): _ZERO for key in counts if key not in summary}
    return complete


def _leaves_out_zeros(summary: Mapping[str, str], known: str, counts: tuple[str, ...]) -> bool:
    return known in summary and all(summary.get(key) != _ZERO for key in counts)

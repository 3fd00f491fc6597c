"""Which deletes apply to which data file, pair by pair, as the specification says; tests compare results with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icefloe.model.entries import ContentType, column_key
from icefloe.model.partition.spec import PartitionSpec

PATH = column_key(2147483546)
Entry = Mapping[str, Any]


def applies(data: Entry, delete: Entry, specs: Mapping[int, PartitionSpec]) -> bool:
    """Whether a delete file must be applied to a data file, by its scope alone."""
    same_partition = partition(data, specs) == partition(delete, specs)
    if delete["content_type"] == ContentType.POSITION_DELETES:
        return bool(data["sequence_number"] <= delete["sequence_number"]) and same_partition
    older = bool(data["sequence_number"] < delete["sequence_number"])
    unpartitioned = all(field.transform == "void" for field in specs[delete["partition_spec_id"]].fields)
    return older and (same_partition or unpartitioned)


def partition(entry: Entry, specs: Mapping[int, PartitionSpec]) -> tuple[object, ...]:
    """The spec and the partition values of an entry, so that equal partitions are equal tuples."""
    fields = specs[entry["partition_spec_id"]].fields
    return entry["partition_spec_id"], *(value(entry, f"p{field.field_id}") for field in fields)


def value(entry: Entry, key: str) -> str:
    if (entry.get(f"nan_value_count:{key}") or 0) > 0:
        return "NaN"
    found = entry.get(f"lower_bound:{key}")
    return repr(found)


def may_name(delete: Entry, location: str) -> bool:
    """Whether a position delete file can hold a position of a data file, by what its entry says of paths."""
    if delete["referenced_file"] is not None:
        return bool(delete["referenced_file"] == location)
    lower, upper = delete.get(f"lower_bound:{PATH}"), delete.get(f"upper_bound:{PATH}")
    return bool((lower is None or lower <= location) and (upper is None or location <= upper))


def may_equal(data: Entry, delete: Entry) -> bool:
    """Whether a row of a data file can equal a row of an equality delete file in all its delete columns."""
    return all(_common(data, delete, str(field_id)) for field_id in delete["equality_ids"])


def _common(data: Entry, delete: Entry, key: str) -> bool:
    if _may_be_null(data, key) and _may_be_null(delete, key):
        return True
    if _only_null(data, key) or _only_null(delete, key):
        return False
    bounds = [(e.get(f"lower_bound:{key}"), e.get(f"upper_bound:{key}")) for e in (data, delete)]
    (low, high), (lowest, highest) = bounds
    return not (
        (high is not None and lowest is not None and high < lowest)
        or (highest is not None and low is not None and highest < low)
    )


def _may_be_null(entry: Entry, key: str) -> bool:
    nulls, values = entry.get(f"null_value_count:{key}"), entry.get(f"value_count:{key}")
    return bool(nulls is None or values is None or nulls > 0 or values < entry["record_count"])


def _only_null(entry: Entry, key: str) -> bool:
    nulls, values = entry.get(f"null_value_count:{key}"), entry.get(f"value_count:{key}")
    return bool(nulls is not None and (nulls >= entry["record_count"] or (values is not None and nulls >= values)))

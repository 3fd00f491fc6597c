"""Differences between two states of a table's metadata in plain words: columns, partitioning, order, properties, refs.

(spec: Schema Evolution, Partition Evolution, Snapshot Reference)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icefloe.model.metadata.snapshots import MAIN, Ref
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import SortOrder, same_order
from icefloe.model.partition.spec import PartitionSpec, same_partitioning
from icefloe.model.schema.schema import Schema


def schema_differences(before: Schema, after: Schema) -> Iterator[str]:
    """Columns that were added, dropped, renamed or changed; columns are matched by id.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> list(schema_differences(parse_ddl("id int"), parse_ddl("uid bigint, note string")))
    ["column 'id' renamed to 'uid'", "column 'uid' changed from int to long", "column 'note' string added"]
    """
    for id_, field in before.by_id.items():
        if id_ not in after.by_id:
            yield f"column {before.names[id_]!r} {field.type} dropped"
            continue
        new, name = after.by_id[id_], after.names[id_]
        if before.names[id_] != name:
            yield f"column {before.names[id_]!r} renamed to {name!r}"
        if str(field.type) != str(new.type):
            yield f"column {name!r} changed from {field.type} to {new.type}"
        if field.required != new.required:
            yield f"column {name!r} is {'required' if new.required else 'optional'} now"
    for id_, field in after.by_id.items():
        if id_ not in before.by_id:
            yield f"column {after.names[id_]!r} {field.type} added"


def partitioning_differences(before: TableMetadata, after: TableMetadata) -> Iterator[str]:
    """Changes of the partition spec and of the sort order of new files."""
    if not same_partitioning(before.spec, after.spec):
        old, new = _spec_text(before.spec, before.schema), _spec_text(after.spec, after.schema)
        yield f"partitioned by {old} before, by {new} now"
    if not same_order(before.sort_order, after.sort_order):
        old, new = (_order_text(state.sort_order, state.schema) for state in (before, after))
        yield f"sorted by {old} before, by {new} now"


def _spec_text(spec: PartitionSpec, schema: Schema) -> str:
    fields = [f"{field.transform}({_columns(field.source_ids, schema)})" for field in spec.fields if not field.is_void]
    return ", ".join(fields) if len(fields) > 0 else "nothing"


def _order_text(order: SortOrder, schema: Schema) -> str:
    fields = [
        f"{field.transform}({_columns(field.source_ids, schema)}) {field.direction} {field.null_order}"
        for field in order.fields
    ]
    return ", ".join(fields) if len(fields) > 0 else "nothing"


def _columns(ids: tuple[int, ...], schema: Schema) -> str:
    return ", ".join(schema.names.get(id_, f"column {id_}") for id_ in ids)


def property_differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Properties that were set, changed or removed.

    >>> list(property_differences({"a": "1", "b": "2"}, {"b": "3", "c": "4"}))
    ["property 'a' removed, was '1'", "property 'b' changed from '2' to '3'", "property 'c' set to '4'"]
    """
    for key, value in before.items():
        if key not in after:
            yield f"property {key!r} removed, was {value!r}"
        elif after[key] != value:
            yield f"property {key!r} changed from {value!r} to {after[key]!r}"
    for key, value in after.items():
        if key not in before:
            yield f"property {key!r} set to {value!r}"


def ref_differences(before: Mapping[str, Ref], after: Mapping[str, Ref]) -> Iterator[str]:
    """Branches and tags that were created, moved, changed or removed; main moves with every commit."""
    for name, ref in before.items():
        new = after.get(name)
        if new is None:
            yield f"{ref.type} {name!r} removed, was at snapshot {ref.snapshot_id}"
        elif new.snapshot_id != ref.snapshot_id and name != MAIN:
            yield f"{new.type} {name!r} moved from snapshot {ref.snapshot_id} to {new.snapshot_id}"
        elif _retention(new) != _retention(ref):
            yield f"{new.type} {name!r} has another retention"
    for name, ref in after.items():
        if name not in before and name != MAIN:
            yield f"{ref.type} {name!r} created at snapshot {ref.snapshot_id}"


def _retention(ref: Ref) -> tuple[int | None, ...]:
    return ref.min_snapshots_to_keep, ref.max_snapshot_age_ms, ref.max_ref_age_ms

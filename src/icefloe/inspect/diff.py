"""The difference between two snapshots of a table: files, rows, bytes, columns, properties (spec: Snapshots).

Files are compared by the trees of both snapshots; leaves that both have are not read. Properties, partitioning and refs
are those of the metadata files that the commits of the snapshots wrote, as long as the metadata log names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.base import Base
from icefloe.commit.table_location import read_metadata
from icefloe.errors import IcefloeError, NoSuchSnapshot
from icefloe.inspect.node import rows_text, short_name
from icefloe.model.columns import one_array
from icefloe.model.entries import DELETES, ContentType, Status, choose, concat, of_status, of_type, partition_key, total
from icefloe.model.location_columns import index_of, is_among
from icefloe.model.metadata.snapshots import MAIN, Ref, Snapshot
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import SortOrder, same_order
from icefloe.model.partition.spec import PartitionSpec, same_partitioning
from icefloe.model.schema.schema import Schema
from icefloe.model.text.figures import plural, size_text
from icefloe.scan.partition_values import partition_struct, partition_tuples
from icefloe.scan.plan import read_schema
from icefloe.scan.select import Point, snapshot_at
from icefloe.tree.root import read_root
from icefloe.tree.snapshot_changes import compare_roots

CHANGED_DELETES = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("deletes_added", pa.int64()),
        pa.field("deletes_removed", pa.int64()),
        pa.field("rows_deleted", pa.int64()),  # more than before; negative if rows came back
    ]
)
_SHOWN = 10  # files in the text of a difference
_NO_METADATA = "properties, partitioning and refs are not compared: the metadata log has lost the file of snapshot {}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Diff:
    """The difference between two snapshots.

    ``files_added`` and ``files_removed`` are Arrow tables of data files: ``location``, ``file_format``,
    ``record_count``, ``file_size_in_bytes``, ``partition_spec_id`` and ``partition``. ``changed_deletes`` has the data
    files of both snapshots whose deletion vectors or position delete files differ. ``delete_files_added`` and
    ``delete_files_removed`` have all deletes, with ``content_type`` and ``referenced_file``. Rows of ``rows_added`` and
    ``rows_removed`` are without those that deletion vectors delete; equality deletes are not applied.
    """

    table: str
    before: int | None  # the snapshot; none for an empty table
    after: int | None
    files_added: pa.Table
    files_removed: pa.Table
    changed_deletes: pa.Table
    delete_files_added: pa.Table
    delete_files_removed: pa.Table
    rows_added: int
    rows_removed: int
    bytes_added: int
    bytes_removed: int
    schema: tuple[str, ...] = ()
    partitioning: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what could not be compared

    @property
    def is_empty(self) -> bool:
        """Whether there is no difference."""
        tables = (self.files_added, self.files_removed, self.delete_files_added, self.delete_files_removed)
        words = (self.schema, self.partitioning, self.properties, self.refs)
        return all(table.num_rows == 0 for table in tables) and all(len(text) == 0 for text in words)

    def as_dict(self) -> dict[str, object]:
        """All fields by name; tables as lists of rows."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: _plain(value) for name, value in values.items()}

    def __repr__(self) -> str:
        lines = [f"diff {self.table}: snapshot {_named(self.before)} to {_named(self.after)}"]
        files = [
            *_file_lines(self.files_added, "+"),
            *_file_lines(self.files_removed, "-"),
            *_delete_lines(self.changed_deletes),
        ]
        shown = sum(min(table.num_rows, _SHOWN) for table in self._file_tables)
        lines += [f" {line}" for line in files]
        rest = sum(table.num_rows for table in self._file_tables) - shown
        if rest > 0:
            lines.append(f" … {plural(rest, 'more file')}")
        lines.append(
            f" {plural(self.files_added.num_rows, 'file')} added, {self.files_removed.num_rows:,} removed, "
            f"{self.changed_deletes.num_rows:,} with other deletes; rows +{self.rows_added:,} -{self.rows_removed:,}; "
            f"bytes +{size_text(self.bytes_added)} -{size_text(self.bytes_removed)}"
        )
        words = (*self.schema, *self.partitioning, *self.properties, *self.refs, *self.notes)
        return "\n".join([*lines, *(f" {text}" for text in words)])

    @property
    def _file_tables(self) -> tuple[pa.Table, ...]:
        return self.files_added, self.files_removed, self.changed_deletes


def diff_snapshots(base: Base, before: Point | None = None, after: Point | None = None) -> Diff:
    """The difference from one snapshot to another, by default from the parent of the current snapshot to it."""
    metadata, store = base.metadata, base.store
    last = metadata.current_snapshot if after is None else snapshot_at(metadata, after)
    first = _parent(metadata, last) if before is None else snapshot_at(metadata, before)
    named = metadata.location if base.name is None else base.name
    wanted = frozenset(partition_key(field.id) for field in partition_struct(store.context).fields)
    newer = last if last is not None else first
    if newer is None:
        changes = concat([])
    else:
        changes = compare_roots(store, read_root(store, first), read_root(store, last), newer, wanted)
    files = _FileDifferences(changes, metadata.location)
    return Diff(
        table=named,
        before=None if first is None else first.snapshot_id,
        after=None if last is None else last.snapshot_id,
        files_added=_file_table(files.added, base),
        files_removed=_file_table(files.removed, base),
        changed_deletes=files.changed_deletes(),
        delete_files_added=_delete_table(files.deletes_added),
        delete_files_removed=_delete_table(files.deletes_removed),
        rows_added=total(files.added, "record_count") - files.rows_deleted_of(files.added, files.deletes_added),
        rows_removed=total(files.removed, "record_count") - files.rows_deleted_of(files.removed, files.deletes_removed),
        bytes_added=total(files.added, "file_size_in_bytes"),
        bytes_removed=total(files.removed, "file_size_in_bytes"),
        schema=tuple(schema_differences(*(_schema(metadata, snapshot) for snapshot in (first, last)))),
        **_metadata_words(base, first, last),
    )


def _parent(metadata: TableMetadata, snapshot: Snapshot | None) -> Snapshot | None:
    if snapshot is None or snapshot.parent_id is None:
        return None
    parent = metadata.snapshots.find(snapshot.parent_id)
    if parent is None:
        raise NoSuchSnapshot(
            f"table {metadata.location}: snapshot {snapshot.parent_id}, the parent of {snapshot.snapshot_id}, has"
            " expired; name the snapshot to compare with",
            snapshot_id=snapshot.parent_id,
        )
    return parent


class _FileDifferences:
    """Changed entries by kind."""

    def __init__(self, changes: pa.Table, table_location: str) -> None:
        data = choose(changes, of_type(changes, ContentType.DATA))
        deletes = choose(changes, of_type(changes, *DELETES))
        self._location = table_location
        self.added, self.removed = (choose(data, of_status(data, s)) for s in (Status.ADDED, Status.DELETED))
        self.deletes_added, self.deletes_removed = (
            choose(deletes, of_status(deletes, s)) for s in (Status.ADDED, Status.DELETED)
        )

    def rows_deleted_of(self, files: pa.Table, deletes: pa.Table) -> int:
        """The rows that deletes of single files delete in these files."""
        mine = is_among(deletes["referenced_file"], files["location"], self._location)
        return total(deletes.filter(mine), "record_count")

    def changed_deletes(self) -> pa.Table:
        """Data files of both snapshots whose deletes changed, as far as deletes name their file."""
        deletes = concat([self.deletes_added, self.deletes_removed])
        moved = concat([self.added, self.removed])["location"]
        known = pc.is_valid(deletes["referenced_file"])
        deletes = deletes.filter(pc.and_(known, pc.invert(is_among(deletes["referenced_file"], moved, self._location))))
        first = index_of(deletes["referenced_file"], deletes["referenced_file"], self._location)
        is_added = of_status(deletes, Status.ADDED)
        counts = pa.table(
            {
                "location": deletes["referenced_file"].take(one_array(first)),
                "deletes_added": is_added.cast(pa.int64()),
                "deletes_removed": pc.invert(is_added).cast(pa.int64()),
                "rows_deleted": pc.if_else(
                    is_added, deletes["record_count"], pc.negate(pc.fill_null(deletes["record_count"], 0))
                ),
            }
        )
        totals = counts.group_by("location", use_threads=False).aggregate(
            [(name, "sum") for name in CHANGED_DELETES.names[1:]]
        )
        return (
            totals.rename_columns({f"{name}_sum": name for name in CHANGED_DELETES.names[1:]})
            .select(CHANGED_DELETES.names)
            .cast(CHANGED_DELETES)
        )


def _file_table(files: pa.Table, base: Base) -> pa.Table:
    names = ["location", "file_format", "record_count", "file_size_in_bytes", "partition_spec_id"]
    partition = partition_struct(base.store.context)
    if len(partition.fields) == 0:
        return files.select(names)
    return files.select(names).append_column("partition", partition_tuples(files, partition))


def _delete_table(files: pa.Table) -> pa.Table:
    names = ["location", "content_type", "file_format", "referenced_file", "dv_offset", "record_count"]
    return files.select(names)


def _schema(metadata: TableMetadata, snapshot: Snapshot | None) -> Schema:
    """The columns with which a snapshot is read; an empty table has those that it was created with."""
    if snapshot is None:
        return min(metadata.schemas, key=lambda schema: schema.schema_id)
    return read_schema(metadata, snapshot)


def _metadata_words(base: Base, first: Snapshot | None, last: Snapshot | None) -> dict[str, tuple[str, ...]]:
    states = []
    for snapshot in (first, last):
        if snapshot is None:
            return {}
        state = _metadata_of(base, snapshot)
        if state is None:
            return {"notes": (_NO_METADATA.format(snapshot.snapshot_id),)}
        states.append(state)
    before, after = states
    return {
        "partitioning": tuple(partitioning_differences(before, after)),
        "properties": tuple(property_differences(before.properties, after.properties)),
        "refs": tuple(ref_differences(before.refs, after.refs)),
    }


def _metadata_of(base: Base, snapshot: Snapshot) -> TableMetadata | None:
    """The metadata that the commit of a snapshot wrote, or the current one for the current snapshot; none if gone."""
    metadata = base.metadata
    if snapshot.snapshot_id == metadata.current_snapshot_id:
        return metadata
    states = [(entry.timestamp_ms, entry.metadata_file) for entry in metadata.metadata_log]
    states.append((metadata.last_updated_ms, base.pointer))
    for time, location in states:
        if time < snapshot.timestamp_ms:
            continue
        try:
            state, _ = read_metadata(base.store.io, location, None if metadata.states_location else metadata.location)
        except IcefloeError:
            return None
        if state.snapshots.find(snapshot.snapshot_id) is None:
            continue  # of another commit in the same millisecond
        is_first = (time, location) == states[0]
        return None if is_first and time > snapshot.timestamp_ms else state
    return None


def _named(snapshot_id: int | None) -> str:
    return "none" if snapshot_id is None else str(snapshot_id)


def _file_lines(files: pa.Table, sign: str) -> list[str]:
    names = ["location", "record_count", "file_size_in_bytes"]
    return [
        f"{sign} {short_name(row['location'])} | {rows_text(row['record_count'])},"
        f" {size_text(row['file_size_in_bytes'])}"
        for row in files.select(names).slice(0, _SHOWN).to_pylist()
    ]


def _delete_lines(files: pa.Table) -> list[str]:
    return [
        f"~ {short_name(row['location'])} | {row['rows_deleted']:+,} rows deleted"
        for row in files.slice(0, _SHOWN).to_pylist()
    ]


def _plain(value: object) -> object:
    return value.to_pylist() if isinstance(value, pa.Table) else list(value) if isinstance(value, tuple) else value


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

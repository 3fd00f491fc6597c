"""Deletes rows of planned files by position: copy-on-write or merge-on-read (spec: Row-level Deletes).

Copy-on-write writes the remaining rows of a file to a new file. Merge-on-read keeps the file and writes the deleted
positions: to a deletion vector from version 3 on, to position delete files in version 2. Both modes remove files of
which every row is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.bitmaps import within
from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.deletes.position_files import write_position_deletes
from icefloe.deletes.vectors import write_vectors
from icefloe.engines.engine import Engine
from icefloe.engines.work import PlannedFiles, Positions
from icefloe.errors import InputError
from icefloe.model.entries import ContentType, of_type, total
from icefloe.model.metadata.properties import Property
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.rows.prepared import CountedChanges
from icefloe.rows.target import Target
from icefloe.scan.tasks import Plan
from icefloe.tree.file_changes import FileChanges


class Mode(StrEnum):
    """How rows of existing files are deleted."""

    COPY_ON_WRITE = "copy-on-write"
    MERGE_ON_READ = "merge-on-read"


def mode_of(setting: Property[str], metadata: TableMetadata) -> Mode:
    """The mode of a table, from one of its ``write.*.mode`` properties and its format version.

    Without the property the mode is merge-on-read if the version has deletion vectors, else copy-on-write. Version 1
    has no deletes, so its mode is always copy-on-write.
    """
    text = setting.of(metadata.properties)
    known = {str(mode): mode for mode in Mode}
    if text not in ("", *known):
        raise InputError(f"property {setting.name}: expected {' or '.join(known)}, got {text!r}", property=setting.name)
    if not metadata.rules.sequence_numbers:
        return Mode.COPY_ON_WRITE
    return known.get(text, Mode.MERGE_ON_READ if metadata.rules.deletion_vectors else Mode.COPY_ON_WRITE)


def remove_rows(
    target: Target, files: PlannedFiles, positions: Positions, engine: Engine, setting: Property[str]
) -> CountedChanges:
    """Delete the live rows at these positions of planned files; files without remaining rows are removed."""
    plan = files.plan
    tasks = tasks_of(plan, positions)
    row_counts = _row_counts(tasks)
    old = deleted_before(files.deleted_rows, tasks)
    partly = {file: rows for file, rows in positions.items() if len(rows) + len(old.get(file, ())) < row_counts[file]}
    whole_files = remove_files(plan, tasks_of(plan, positions.keys() - partly.keys()), old)
    if len(partly) == 0:
        return whole_files
    touched = tasks_of(plan, partly)
    if mode_of(setting, target.metadata) is Mode.COPY_ON_WRITE:
        added = engine.write_survivors(files, partly)
        kept, deleted = total(added, "record_count"), sum(len(rows) for rows in partly.values())
        return whole_files.combined(replace_files(plan, touched, added, live=kept + deleted, copied=kept))
    if target.metadata.rules.deletion_vectors:
        return whole_files.combined(_by_vectors(target, plan, touched, old, partly))
    return whole_files.combined(_by_position_files(target, touched, partly))


def remove_files(plan: Plan, tasks: pa.Table, old: Positions) -> CountedChanges:
    """Remove planned files as a whole; ``old`` are the rows in them that are already deleted, as far as known."""
    deletes = _deletes_of_one_file(plan, tasks)
    return CountedChanges(
        files=FileChanges(removed=tasks, removed_deletes=deletes),
        rows_already_deleted=_deleted_by_files(tasks, old) - total(deletes, "record_count"),
    )


def replace_files(plan: Plan, tasks: pa.Table, added: pa.Table, *, live: int, copied: int) -> CountedChanges:
    """Replace planned files, which have ``live`` rows together, by new ones; ``copied`` of the rows are unchanged."""
    deletes = _deletes_of_one_file(plan, tasks)
    in_vectors = int(pc.sum(pc.fill_null(tasks["dv_cardinality"], 0)).as_py())
    in_delete_files = total(tasks, "record_count") - in_vectors - live
    return CountedChanges(
        files=FileChanges(added=added, removed=tasks, removed_deletes=deletes),
        rows_copied=copied,
        rows_already_deleted=in_delete_files - total(deletes, "record_count"),
    )


def _by_vectors(target: Target, plan: Plan, tasks: pa.Table, old: Positions, deleted: Positions) -> CountedChanges:
    """Write deletion vectors, which also contain the positions in position delete files of older versions."""
    metadata = target.metadata
    location = f"{metadata.data_location}/{target.env.new_uuid()}-deletes.puffin"
    vectors = write_vectors(target.io, tasks, old, deleted, location=location)
    deletes = _deletes_of_one_file(plan, tasks)
    return CountedChanges(
        files=FileChanges(added=vectors, revectored=tasks, removed_deletes=deletes),
        rows_already_deleted=_deleted_by_files(tasks, old) - total(deletes, "record_count"),
    )


def _by_position_files(target: Target, tasks: pa.Table, deleted: Positions) -> CountedChanges:
    """Write position delete files; existing ones still apply."""
    entries = write_position_deletes(
        target.io,
        tasks,
        deleted,
        data_location=target.metadata.data_location,
        properties=target.properties,
        new_uuid=target.env.new_uuid,
    )
    return CountedChanges(files=FileChanges(added=entries, referenced=tuple(deleted)))


def _deletes_of_one_file(plan: Plan, tasks: pa.Table) -> pa.Table:
    """The planned position delete files that delete rows of one of these data files and of no other file."""
    deletes = plan.deletes
    if deletes.num_rows == 0:
        return deletes
    names_task = pc.is_in(deletes["referenced_file"], value_set=tasks["location"].combine_chunks())
    return deletes.filter(pc.and_(of_type(deletes, ContentType.POSITION_DELETES), names_task))


def deleted_before(deleted_rows: DeletedRows, tasks: pa.Table) -> Positions:
    """The rows of planned files that are deleted by position; deletes may also name rows that do not exist."""
    counts = _row_counts(tasks)
    return {file: within(positions, counts[file]) for file, positions in deleted_rows.positions(counts).items()}


def _row_counts(tasks: pa.Table) -> dict[str, int]:
    return dict(zip(tasks["location"].to_pylist(), tasks["record_count"].to_pylist(), strict=True))


def _deleted_by_files(tasks: pa.Table, old: Positions) -> int:
    """How many rows are already deleted, besides those that summaries count for their vectors."""
    vectors = dict(zip(tasks["location"].to_pylist(), tasks["dv_cardinality"].to_pylist(), strict=True))
    return sum(len(old[file]) - (0 if count is None else count) for file, count in vectors.items() if file in old)


def tasks_of(plan: Plan, locations: Iterable[str]) -> pa.Table:
    """The planned tasks of these files."""
    return plan.tasks.filter(pc.is_in(plan.tasks["location"], value_set=pa.array(list(locations), pa.string())))

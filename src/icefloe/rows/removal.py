"""Rows taken out of files, by position: copy-on-write or merge-on-read (spec: Row-level Deletes).

Copy-on-write writes the rest of a touched file again. Merge-on-read leaves the file as it is and writes down which
rows are gone: in a deletion vector from version 3 on, in position delete files in version 2. Files of which every row
goes are removed in both.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.deletes.position_files import write_position_deletes
from icefloe.deletes.vectors import write_vectors
from icefloe.engines.engine import Engine, Positions
from icefloe.errors import InputError
from icefloe.model.entries import ContentType, of_type
from icefloe.model.metadata.properties import Property
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.rows.prepared import Removal
from icefloe.rows.target import Target
from icefloe.scan.tasks import Plan


class Mode(StrEnum):
    """How rows leave the files that hold them."""

    COPY_ON_WRITE = "copy-on-write"
    MERGE_ON_READ = "merge-on-read"


def mode_of(setting: Property[str], metadata: TableMetadata) -> Mode:
    """The mode that a table asks for by one of the ``write.*.mode`` properties, as far as its version has it.

    Without the property it is merge-on-read where the version has deletion vectors, and else copy-on-write. Version 1
    has no deletes, so there it is always copy-on-write.
    """
    text = setting.of(metadata.properties)
    known = {str(mode): mode for mode in Mode}
    if text not in ("", *known):
        raise InputError(f"property {setting.name}: expected {' or '.join(known)}, got {text!r}", property=setting.name)
    if not metadata.rules.sequence_numbers:
        return Mode.COPY_ON_WRITE
    return known.get(text, Mode.MERGE_ON_READ if metadata.rules.deletion_vectors else Mode.COPY_ON_WRITE)


def remove_rows(
    target: Target, plan: Plan, drops: DeletedRows, found: Positions, engine: Engine, setting: Property[str]
) -> Removal:
    """Take the live rows that were found out of the planned files; a file that loses its last row leaves."""
    matched = choose(plan.tasks, found)
    counts = dict(zip(matched["location"].to_pylist(), matched["record_count"].to_pylist(), strict=True))
    old = drops.positions(found)
    partly = {file: rows for file, rows in found.items() if len(rows) + len(old.get(file, ())) < counts[file]}
    touched = choose(matched, partly)
    removal = remove_files(plan, choose(matched, found.keys() - partly.keys()), old)
    if len(partly) == 0:
        return removal
    if mode_of(setting, target.metadata) is Mode.COPY_ON_WRITE:
        files = engine.write_survivors(target.io, plan, drops, partly, target.metadata, horizon=target.horizon)
        kept, gone = _records(files), sum(len(rows) for rows in partly.values())
        return removal.and_all(replaced_files(plan, touched, files, live=kept + gone, copied=kept))
    if target.metadata.rules.deletion_vectors:
        return removal.and_all(_by_vectors(target, plan, touched, old, partly))
    return removal.and_all(_by_position_files(target, touched, partly))


def remove_files(plan: Plan, tasks: pa.Table, old: Positions) -> Removal:
    """Planned files that leave as a whole; ``old`` are the positions that they had lost before."""
    dropped = _scoped_deletes(plan, tasks)
    return Removal(removed=tasks, dropped=dropped, rows_dead=_dead(tasks, old) - _records(dropped))


def replaced_files(plan: Plan, touched: pa.Table, files: pa.Table, *, live: int, copied: int) -> Removal:
    """Planned files with so many live rows, whose place new ones take; ``copied`` of these only moved."""
    dropped = _scoped_deletes(plan, touched)
    in_vectors = int(pc.sum(pc.fill_null(touched["dv_cardinality"], 0)).as_py())
    dead = _records(touched) - in_vectors - live  # by delete files of any kind
    return Removal(
        added=files, removed=touched, dropped=dropped, rows_copied=copied, rows_dead=dead - _records(dropped)
    )


def _by_vectors(target: Target, plan: Plan, touched: pa.Table, old: Positions, gone: Positions) -> Removal:
    """Deletion vectors, which take over what position delete files of older versions say of their files."""
    metadata = target.metadata
    location = f"{metadata.data_location}/{target.env.new_uuid()}-deletes.puffin"
    vectors = write_vectors(target.io, touched, old, gone, location=location)
    dropped = _scoped_deletes(plan, touched)
    return Removal(added=vectors, replaced=touched, dropped=dropped, rows_dead=_dead(touched, old) - _records(dropped))


def _by_position_files(target: Target, touched: pa.Table, gone: Positions) -> Removal:
    """Position delete files, which add up with those of before."""
    files = write_position_deletes(
        target.io,
        touched,
        gone,
        data_location=target.metadata.data_location,
        properties=target.properties,
        new_uuid=target.env.new_uuid,
    )
    return Removal(added=files, referenced=tuple(gone))


def _scoped_deletes(plan: Plan, tasks: pa.Table) -> pa.Table:
    """The planned position delete files that are about one of these data files and no other."""
    deletes = plan.deletes
    if deletes.num_rows == 0:
        return deletes
    about = pc.is_in(deletes["referenced_file"], value_set=tasks["location"].combine_chunks())
    return deletes.filter(pc.and_(of_type(deletes, ContentType.POSITION_DELETES), about))


def _dead(tasks: pa.Table, old: Positions) -> int:
    """How many rows of the files position delete files had deleted."""
    plain = tasks.filter(pc.is_null(tasks["dv_location"]))["location"].to_pylist()
    return sum(len(old.get(file, ())) for file in plain)


def _records(entries: pa.Table) -> int:
    return int(pc.sum(entries["record_count"], min_count=0).as_py())


def choose(tasks: pa.Table, locations: Iterable[str]) -> pa.Table:
    """The tasks of these files."""
    return tasks.filter(pc.is_in(tasks["location"], value_set=pa.array(list(locations), pa.string())))

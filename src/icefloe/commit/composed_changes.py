"""The file changes of several steps as those of one snapshot (spec: Snapshots, Sequence Number Inheritance).

A file that one step adds and a later one removes is left out, and of the deletion vectors that a data file gets only
the last one remains. Deletes by position apply to data files of the same snapshot. Equality deletes do not, so rows
that one step adds and a later one deletes by value need two snapshots.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import ContentType, Measure, concat, of_type, put, stat, stat_keys
from icefloe.tree.file_changes import PLANNED_FILE, FileChanges

_STEP, _IS_REMOVED = "step", "is_removed"  # columns of this module: the number of the step, and what it did to a file
_VECTOR = ("dv_location", "dv_size_in_bytes", "dv_cardinality", "dv_manifest", "dv_ordinal")  # of a planned file


def need_two_snapshots(before: Sequence[FileChanges], after: FileChanges) -> bool:
    """Whether a step deletes by value, after steps that add rows."""
    deletes = pc.any(of_type(after.added, ContentType.EQUALITY_DELETES)).as_py() is True
    return deletes and any(pc.any(of_type(each.added, ContentType.DATA)).as_py() is True for each in before)


def composed(steps: Sequence[FileChanges]) -> FileChanges:
    """The difference between the files before the first step and those after the last one."""
    if len(steps) == 1:
        return steps[0]
    added = _numbered(concat([step.added for step in steps]), [step.added for step in steps])
    touched = _together([_touched(step) for step in steps])
    delete_files = _together([step.removed_deletes for step in steps])
    is_data = of_type(added, ContentType.DATA)
    files = _first(added.filter(is_data), "location")
    vectors = _first(added.filter(pc.is_valid(added["dv_offset"])), "referenced_file")
    deletes = _first(added.filter(pc.invert(is_data)), "location")

    gone = _of(_last(touched.filter(touched[_IS_REMOVED]), "location"), added["location"])
    revectored = _of(_last(touched, "location"), added["referenced_file"])
    unused = _of(_last(delete_files, "location"), added["location"])
    is_vector = pc.is_valid(added["dv_offset"])
    is_gone = _is_before(added, pc.if_else(is_data, gone, pc.if_else(is_vector, revectored, unused)))
    older = touched.filter(pc.invert(_is_after(touched, _of(files, touched["location"]))))
    older = _without_own_vectors(older, _of(vectors, older["location"]))
    removed = pc.unique(older["location"].filter(older[_IS_REMOVED]).combine_chunks())
    first = older.take(_rows_of_first(older))
    is_removed = pc.is_in(first["location"], value_set=removed)
    has_vector = pc.is_valid(first["dv_location"])
    return FileChanges(
        added=added.filter(pc.invert(is_gone)).drop_columns([_STEP]),
        removed=first.filter(is_removed).drop_columns([_STEP, _IS_REMOVED]),
        revectored=first.filter(pc.and_(has_vector, pc.invert(is_removed))).drop_columns([_STEP, _IS_REMOVED]),
        removed_deletes=delete_files.filter(
            pc.invert(_is_after(delete_files, _of(deletes, delete_files["location"])))
        ).drop_columns([_STEP]),
        referenced=tuple(dict.fromkeys(file for step in steps for file in step.referenced)),
        merge_manifests=all(step.merge_manifests for step in steps),
    )


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    return _numbered(pa.concat_tables(tables, promote_options="permissive"), tables)


def _numbered(rows: pa.Table, parts: Sequence[pa.Table]) -> pa.Table:
    """The rows of all steps, with the number of the step."""
    return rows.append_column(_STEP, pa.array(np.repeat(np.arange(len(parts)), [part.num_rows for part in parts])))


def _touched(step: FileChanges) -> pa.Table:
    """The data files that a step removes, and those whose deletion vector it replaces, with their partitions."""
    parts = []
    for table, is_removed in ((step.removed, True), (step.revectored, False)):
        partition = [stat(Measure.LOWER, key) for key in stat_keys(table) if key.is_partition]
        parts.append(
            table.select([*PLANNED_FILE.names, *partition]).append_column(
                _IS_REMOVED, pa.repeat(is_removed, table.num_rows)
            )
        )
    return pa.concat_tables(parts, promote_options="permissive")


class _Steps:
    """The first or the last step that names a file."""

    def __init__(self, files: pa.Table) -> None:
        self.names = files.column(0).combine_chunks()
        self.steps = files.column(1).combine_chunks()


def _first(rows: pa.Table, column: str) -> _Steps:
    return _Steps(rows.group_by(column).aggregate([(_STEP, "min")]))


def _last(rows: pa.Table, column: str) -> _Steps:
    return _Steps(rows.group_by(column).aggregate([(_STEP, "max")]))


def _of(found: _Steps, names: pa.ChunkedArray) -> pa.ChunkedArray:
    """The step of each name, null if there is none."""
    if len(found.names) == 0:
        return pa.chunked_array([pa.nulls(len(names), pa.int64())])
    return pa.chunked_array([found.steps.take(pc.index_in(names, value_set=found.names).combine_chunks())])


def _is_before(rows: pa.Table, steps: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.less(rows[_STEP], steps), False)


def _is_after(rows: pa.Table, steps: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.greater(rows[_STEP], steps), False)


def _without_own_vectors(touched: pa.Table, steps: pa.ChunkedArray) -> pa.Table:
    """The files, without the deletion vectors that an earlier step has added: these were never in the table."""
    is_own = _is_after(touched, steps)
    for name in _VECTOR:
        touched = put(touched, name, pc.if_else(is_own, pa.scalar(None, touched[name].type), touched[name]))
    return touched


def _rows_of_first(touched: pa.Table) -> pa.Array:
    """The row of the first step that touches each file, which has the deletion vector that the file had before."""
    rows = touched.select(["location"]).append_column("row", pa.array(np.arange(touched.num_rows)))
    return rows.group_by("location").aggregate([("row", "min")])["row_min"].combine_chunks().sort()

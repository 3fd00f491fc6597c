"""Finds deletes that no data file needs any more (spec: Scan Planning).

A delete applies to data files by sequence number, partition and, for deletes by position, the file that it names. If
compaction replaces all files that a delete applies to, it can be removed in the same commit: the new files do not
contain the deleted rows.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.deletes.delete_index import DeleteOutcome, attach_deletes
from icefloe.model.entries import choose
from icefloe.tree.file_changes import PLANNED_FILE, FileChanges


def dangling_deletes(
    deletes: pa.Table, remaining: pa.Table, removed: pa.Table, context: ManifestContext
) -> FileChanges:
    """The removal of deletes that apply to none of the ``remaining`` data files.

    ``deletes`` are all live delete entries of the snapshot, ``remaining`` and ``removed`` its data files as tasks. The
    deletion vectors of removed files are not included: they are removed together with their files.
    """
    if deletes.num_rows == 0:
        return FileChanges()
    outcomes = attach_deletes(remaining.drop_columns(["deletes"]), deletes, context).outcomes
    unused = choose(deletes, pc.equal(outcomes, int(DeleteOutcome.NO_FILE)))
    is_vector = pc.is_valid(unused["dv_offset"])
    vectors = unused.filter(is_vector)
    own = pc.is_in(vectors["referenced_file"], value_set=removed["location"].combine_chunks())
    return FileChanges(
        removed_deletes=unused.filter(pc.invert(is_vector)), revectored=_as_files(vectors.filter(pc.invert(own)))
    )


def _as_files(vectors: pa.Table) -> pa.Table:
    """The data files that deletion vectors name, in the form in which vectors are removed."""
    columns = {
        "location": vectors["referenced_file"],
        "partition_spec_id": vectors["partition_spec_id"],
        "dv_location": vectors["location"],
        "dv_size_in_bytes": vectors["dv_size_in_bytes"],
        "dv_cardinality": vectors["record_count"],
        "dv_manifest": vectors["manifest"],
        "dv_ordinal": vectors["ordinal"],
    }
    unknown = {field.name: pa.nulls(vectors.num_rows, field.type) for field in PLANNED_FILE}
    return pa.table({**unknown, **columns}, schema=PLANNED_FILE)

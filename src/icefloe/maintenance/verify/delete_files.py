"""Checks of the entries of position and equality delete files (spec: Position Delete Files, Equality Delete Files)."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.deletes.delete_index import DeleteOutcome, attach_deletes
from icefloe.errors import IcefloeError
from icefloe.maintenance.verify.findings import Finding, Rule, broken, finding, problem_of
from icefloe.maintenance.verify.snapshot_checks import View, partition_differences
from icefloe.model.columns import one_array
from icefloe.model.entries import DELETES, ContentType, choose
from icefloe.model.location_columns import index_of
from icefloe.model.metadata.table_metadata import TableMetadata


def check_delete_files(view: View, metadata: TableMetadata, context: ManifestContext) -> Iterator[Finding]:
    """Position delete files fit the data files that they name, and every delete file applies to some data file."""
    deletes = view.of(*DELETES)
    files = deletes.filter(pc.is_null(deletes["dv_offset"]))
    if files.num_rows == 0:
        return
    data = view.of(ContentType.DATA)
    positions = files.filter(pc.equal(files["content_type"], int(ContentType.POSITION_DELETES)))
    yield from _new_positions(view, positions, metadata)
    yield from _targets(view, positions, data, metadata)
    try:
        outcomes = attach_deletes(data, deletes, context).outcomes
    except IcefloeError as error:
        problem_of(error)
        return  # the rules of deletion vectors report it
    dangling = pc.and_(pc.is_null(deletes["dv_offset"]), pc.equal(outcomes, int(DeleteOutcome.NO_FILE)))
    dangling_files = choose(deletes, dangling)
    if dangling_files.num_rows > 0:
        message = f"{dangling_files.num_rows} delete files apply to no live data file, such as "
        message += str(dangling_files["location"][0])
        yield finding(rule=Rule.DANGLING_DELETES, location=view.where, message=message)


def _new_positions(view: View, files: pa.Table, metadata: TableMetadata) -> Iterator[Finding]:
    """A snapshot with row ids is one of version 3 or later, which adds deletion vectors only."""
    if not metadata.rules.deletion_vectors or files.num_rows == 0:
        return
    makers = [metadata.snapshots.find(id_) for id_ in pc.unique(files["snapshot_id"]).to_pylist() if id_ is not None]
    later = [maker.snapshot_id for maker in makers if maker is not None and maker.first_row_id is not None]
    wrong = pc.is_in(files["snapshot_id"], value_set=pa.array(later, pa.int64()))
    message = "a position delete file was added where only deletion vectors are allowed"
    yield from broken(Rule.POSITION_DELETES, view.where, wrong, message, files["ordinal"])


def _targets(view: View, files: pa.Table, data: pa.Table, metadata: TableMetadata) -> Iterator[Finding]:
    named = files.filter(pc.is_valid(files["referenced_file"]))
    if named.num_rows == 0:
        return
    place = index_of(named["referenced_file"], data["location"], metadata.location)
    target = data.take(one_array(place))
    rule, where = Rule.POSITION_DELETES, view.where
    for wrong, message in (
        (pc.not_equal(named["partition_spec_id"], target["partition_spec_id"]), "has another spec than its data file"),
        *partition_differences(named, target, place, metadata),
    ):
        yield from broken(rule, where, wrong, f"{message}, so it does not apply", named["ordinal"])

"""Checks of a manifest against its row in the root (spec: Manifest Lists; V4 proposal).

Counts must be right; statistics may be missing but never narrower than the rows. What is computed here shares no code
with what writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.maintenance.verify.findings import Finding, Rule, broken, finding
from icefloe.model.entries import (
    BOUNDS,
    COUNTS,
    ContentType,
    Measure,
    StatColumn,
    StatKey,
    Status,
    live,
    parse_stat,
    partition_key,
    stat,
)
from icefloe.model.partition.transform_names import IDENTITY
from icefloe.model.schema.types import Geography, Geometry
from icefloe.tree.root import Leaf

_OF_STATUS = {Status.ADDED: "added", Status.EXISTING: "existing", Status.DELETED: "deleted"}
_MEASURES = (*BOUNDS, *COUNTS)
_V4 = 4


def check_leaf(
    where: str, row: Mapping[str, object], leaf: Leaf, rows: pa.Table, context: ManifestContext, *, snapshot_id: int
) -> Iterator[Finding]:
    """Everything about one leaf: ``row`` is its row in the root at ``where``, ``rows`` are its own with inheritance."""
    number = int(str(row["ordinal"]))
    for message in _counts(row, rows):
        yield finding(rule=Rule.MANIFEST_COUNTS, location=where, row=number, message=f"{leaf.location}: {message}")
    for message in _statistics(row, rows.filter(live(rows)), context):
        yield finding(rule=Rule.MANIFEST_STATISTICS, location=where, row=number, message=f"{leaf.location}: {message}")
    unknown = pc.is_null(rows["record_count"])
    message = "record_count is negative, so the number of rows is unknown"
    yield from broken(Rule.MANIFEST_COUNTS, leaf.location, unknown, message)
    yield from _statuses(where, row, leaf, rows, new=leaf.snapshot_id == snapshot_id)
    yield from _numbers(leaf, rows)


def check_hidden(where: str, leaf: Leaf, rows: pa.Table, hidden: BitMap64) -> Iterator[Finding]:
    """A manifest deletion vector hides rows that were live, or the number of those that are left would be wrong."""
    positions = np.asarray(hidden.to_array(), dtype=np.int64)
    if len(positions) == 0 or positions.max() >= rows.num_rows:
        return  # which the decoder reports
    dead = np.asarray(rows["status"])[positions] == int(Status.DELETED)
    for position in positions[dead][:1].tolist():
        message = f"the deletion vector of {leaf.location} hides its row {position}, which is DELETED anyway"
        yield finding(rule=Rule.MANIFEST_VECTORS, location=where, message=message)


def _counts(row: Mapping[str, object], rows: pa.Table) -> Iterator[str]:
    statuses, records = np.asarray(rows["status"]), np.asarray(pc.fill_null(rows["record_count"], 0))
    expected: dict[str, int] = {"record_count": rows.num_rows}
    for status, name in _OF_STATUS.items():
        mine = statuses == int(status)
        expected[f"{name}_files_count"] = int(np.count_nonzero(mine))
        expected[f"{name}_rows_count"] = int(records[mine].sum())
    least = pc.min(rows.filter(live(rows))["sequence_number"]).as_py()
    if least is not None:
        expected["min_sequence_number"] = least
    for name, count in expected.items():
        if row[name] is not None and row[name] != count:
            yield f"{name} is {row[name]}, its rows say {count}"
    specs = pc.unique(rows["partition_spec_id"]).to_pylist()
    if rows.num_rows > 0 and specs != [row["partition_spec_id"]]:
        yield f"partition_spec_id is {row['partition_spec_id']}, its rows say {specs}"


def _statistics(row: Mapping[str, object], rows: pa.Table, context: ManifestContext) -> Iterator[str]:
    if rows.num_rows == 0:
        return
    columns = ((parse_stat(name), value) for name, value in row.items() if value is not None)
    recorded = {column: value for column, value in columns if column is not None}
    for key in dict.fromkeys(column.key for column in recorded):
        if recorded.get(StatColumn(Measure.TIGHT, key)) is True:
            yield f"tight_bounds of {key} is claimed, which no manifest can know"
        if not key.is_partition and isinstance(context.column_type(key.id), (Geometry, Geography)):
            continue  # their bounds are corner points, which have no order
        known = _known(rows, key, context)
        for measure in COUNTS if rows["record_count"].null_count == 0 else ():
            if (value := recorded.get(StatColumn(measure, key))) is not None:
                total = pc.sum(known[measure], skip_nulls=False).as_py()
                if value != total:
                    yield f"{measure} of {key} is {value}, its rows say {'nothing' if total is None else total}"
        yield from _bounds(recorded, known, key)


def _known(rows: pa.Table, key: StatKey, context: ManifestContext) -> dict[Measure, pa.ChunkedArray]:
    """The measures of a key in all rows; for a column, those of its identity partition value take precedence."""
    keys = [key]
    if not key.is_partition:
        mine = (f for f in context.partition_fields.values() if f.transform == IDENTITY)
        keys = [*(partition_key(f.field_id) for f in mine if f.source_id == key.id), key]
    measures: dict[Measure, pa.ChunkedArray] = {}
    for measure in _MEASURES:
        columns = [rows[stat(measure, k)] for k in keys if stat(measure, k) in rows.column_names]
        if len(columns) == 0:
            measures[measure] = pa.chunked_array([pa.nulls(rows.num_rows, pa.int64())])
        else:
            measures[measure] = columns[0] if len(columns) == 1 else pc.coalesce(*columns)
    if key.is_partition:
        lower, upper = measures[Measure.LOWER], measures[Measure.UPPER]
        measures[Measure.UPPER] = lower if upper.null_count == len(upper) else pc.coalesce(upper, lower)
    return measures


def _bounds(
    recorded: Mapping[StatColumn, object], known: Mapping[Measure, pa.ChunkedArray], key: StatKey
) -> Iterator[str]:
    rest = pc.subtract(known[Measure.VALUES], known[Measure.NULLS])
    rest = pc.subtract(rest, pc.fill_null(known[Measure.NANS], 0))
    void = pc.fill_null(pc.equal(rest, 0), False)
    for measure, outside in ((Measure.LOWER, pc.less), (Measure.UPPER, pc.greater)):
        value, bounds = recorded.get(StatColumn(measure, key)), known[measure]
        if value is None:
            continue
        if pc.any(pc.and_(pc.is_null(bounds), pc.invert(void))).as_py() is True:
            yield f"{measure} of {key} is {value!r}, a row with values does not tell its own"
        elif bounds.null_count == len(bounds):
            continue
        elif pc.any(outside(bounds, pa.scalar(value, bounds.type))).as_py() is True:
            yield f"{measure} of {key} is {value!r}, which leaves out a row"


def _statuses(where: str, row: Mapping[str, object], leaf: Leaf, rows: pa.Table, *, new: bool) -> Iterator[Finding]:
    """Rows that are not EXISTING were made so by the snapshot that wrote the leaf, and only those."""
    old = pc.equal(rows["status"], int(Status.EXISTING))
    own = pc.equal(rows["snapshot_id"], leaf.snapshot_id)
    rule, number = Rule.STATUS, int(str(row["ordinal"]))
    stale = pc.and_(pc.invert(old), pc.invert(own))
    yield from broken(rule, leaf.location, stale, f"ADDED or DELETED by another snapshot than {leaf.snapshot_id}")
    yield from broken(
        rule, leaf.location, pc.and_(old, own), f"EXISTING, but came with snapshot {leaf.snapshot_id} itself"
    )
    if row["format_version"] != _V4 or rows.num_rows == 0:
        return
    some, every = pc.any(old).as_py(), pc.all(old).as_py()
    if some and not every:
        message = "a manifest of V4 has new rows, or rows that left, beside old ones"
        yield finding(rule=rule, location=leaf.location, message=message)
    if every and row["status"] == int(Status.ADDED):
        message = f"{leaf.location} only moves old rows, so it must be EXISTING"
        yield finding(rule=rule, location=where, row=number, message=message)
    if not some and row["status"] == int(Status.EXISTING) and new:
        message = f"{leaf.location} has new rows, so it must be ADDED"
        yield finding(rule=rule, location=where, row=number, message=message)


def _numbers(leaf: Leaf, rows: pa.Table) -> Iterator[Finding]:
    rule, where = Rule.SEQUENCE_NUMBERS, leaf.location
    data, file = rows["sequence_number"], rows["file_sequence_number"]
    late = pc.greater(file, leaf.sequence_number)
    yield from broken(rule, where, late, f"file_sequence_number is later than the manifest's {leaf.sequence_number}")
    yield from broken(rule, where, pc.greater(data, file), "sequence_number is later than file_sequence_number")
    added = pc.equal(rows["status"], int(Status.ADDED))
    early = pc.and_(added, pc.less(file, leaf.sequence_number))
    yield from broken(rule, where, early, f"ADDED, but not with the manifest's sequence number {leaf.sequence_number}")
    if leaf.first_row_id is not None:
        data_rows = pc.and_(live(rows), pc.equal(rows["content_type"], int(ContentType.DATA)))
        without_id = pc.and_(data_rows, pc.is_null(rows["first_row_id"]))
        yield from broken(Rule.ROW_IDS, where, without_id, "a data file has no first_row_id")

"""Rows of a Parquet data file as a table sees them now (spec: Column Projection; Scan Planning).

Columns are matched by field id through renames, moves, additions and promotions. Physics comes first: a row's position
is where it lies in the file, whatever row groups are skipped and whatever rows a deletion vector or a filter drops.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyroaring import BitMap64

from icefloe.errors import CorruptFile, IcefloeError, InputError, NoSuchFile, StorageError
from icefloe.expr.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Bound, BoundPredicate, Expr, Not, Predicate, leaves
from icefloe.expr.row_filter import to_arrow
from icefloe.expr.stats_eval import Match, evaluate
from icefloe.formats.align import Aligner, without_columns
from icefloe.formats.field_ids import projected_leaves, require_ids, struct_ids
from icefloe.formats.inherited import NO_LINEAGE, Completer, Lineage
from icefloe.formats.parquet_stats import group_stats
from icefloe.formats.row_mask import DeletedRows, matching
from icefloe.io.file_io import FileIO
from icefloe.model.metadata_columns import POS
from icefloe.model.schema import Schema
from icefloe.model.types import walk

BATCH_ROWS = 128 * 1024


def read_file(
    io: FileIO,
    location: str,
    *,
    schema: Schema,
    filter: Expr = ALWAYS_TRUE,
    table_schema: Schema | None = None,
    deleted: BitMap64 | None = None,
    constants: Mapping[int, pa.Scalar] = MappingProxyType({}),
    lineage: Lineage = NO_LINEAGE,
    row_positions: bool = False,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The columns of ``schema`` for rows that are not deleted and match a filter, batch by batch, in file order.

    ``filter`` is bound to ``table_schema`` (by default ``schema``) and may test columns that are not returned.
    ``constants`` has values by column id for columns that the file lacks, such as those of its partition. ``schema``
    may have the metadata columns of ``metadata_columns.SCANNED``; ``lineage`` is what rows inherit then. With
    ``row_positions`` a last column ``_pos`` holds each row's position in the file.
    """
    if filter == ALWAYS_FALSE:
        return
    with _opened(io, location) as file:
        bound = _bound(filter)
        selection = _Selection(
            tested=_tested(bound, table_schema or schema),
            filter=bound,
            deleted=DeletedRows(deleted),
            constants=constants,
        )
        wanted = Schema(fields=(*schema.fields, POS)) if row_positions else schema
        yield from _read(file, Completer(wanted, location, lineage), location, selection, batch_rows)


def stored_columns(io: FileIO, location: str) -> frozenset[int]:
    """The ids of the columns that a file holds, those inside structs included; only its footer is read."""
    with _opened(io, location) as file:
        require_ids(file.schema_arrow, location)
        return struct_ids(file.schema_arrow)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Selection:
    """Which rows to return."""

    tested: Schema  # the columns that the filter needs
    filter: Bound
    deleted: DeletedRows
    constants: Mapping[int, pa.Scalar]  # what the filter sees, and rows have, in place of columns that are not there


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowGroup:
    """A row group to read, with the position of its first row; ``every`` row of it matches the filter, or some may."""

    index: int
    start: int
    rows: int
    every: bool


def _bound(filter: Expr) -> Bound:
    unbound = [leaf.term for leaf in leaves(filter) if isinstance(leaf, Predicate)]
    if len(unbound) > 0 or isinstance(filter, (Predicate, Not)):
        raise InputError(f"bind the filter to the table's schema before reading: {filter}")
    return filter


def _tested(filter: Bound, schema: Schema) -> Schema:
    """The top-level columns that a filter looks into."""
    wanted = {leaf.field_id for leaf in leaves(filter) if isinstance(leaf, BoundPredicate)}
    tops = tuple(top for top in schema.fields if any(field.id in wanted for _, field in walk((top,))))
    return Schema(fields=tops, schema_id=schema.schema_id)


def _read(
    file: Any, complete: Completer, location: str, selection: _Selection, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """All row groups that may have rows to return."""
    stored, schema = file.schema_arrow, complete.stored
    require_ids(stored, location)
    indexes = {*projected_leaves(stored, schema.fields), *projected_leaves(stored, selection.tested.fields)}
    paths = [file.metadata.schema.column(index).path for index in sorted(indexes)]
    expression = to_arrow(selection.filter)
    output: Aligner | None = None
    for group in _row_groups(file.metadata, selection):
        position = group.start
        for batch in _batches(file, group, paths, batch_rows):
            if output is None:
                output = Aligner(batch.schema, schema, location, selection.constants)
                test = Aligner(batch.schema, selection.tested, location, selection.constants)
            keep = selection.deleted.kept(position, batch.num_rows)
            if not group.every and (keep is None or keep.any()):
                matched = matching(test(batch), expression)
                keep = matched if keep is None else keep & matched
            if keep is None or keep.any():
                rows = complete(output(batch), position)
                yield rows if keep is None or keep.all() else rows.filter(pa.array(keep))
            position += batch.num_rows


def _row_groups(footer: Any, selection: _Selection) -> Iterator[_RowGroup]:
    """The row groups whose statistics do not rule them out."""
    counts = [footer.row_group(index).num_rows for index in range(footer.num_row_groups)]
    if selection.filter == ALWAYS_TRUE:
        matches = [int(Match.ALL)] * len(counts)
    else:
        matches = evaluate(selection.filter, group_stats(footer, selection.tested)).to_pylist()
    start = 0
    for index, (rows, match) in enumerate(zip(counts, matches, strict=True)):
        if match != Match.NONE and rows > 0:
            yield _RowGroup(index=index, start=start, rows=rows, every=match == Match.ALL)
        start += rows


def _batches(file: Any, group: _RowGroup, paths: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    if len(paths) > 0:
        yield from file.iter_batches(batch_size=batch_rows, row_groups=[group.index], columns=paths)
        return
    for start in range(0, group.rows, batch_rows):
        yield without_columns(min(batch_rows, group.rows - start))


@contextlib.contextmanager
def _opened(io: FileIO, location: str) -> Iterator[Any]:
    """The open file; what goes wrong while it is read is told in the terms of this library."""
    files, path = io.arrow_path(location)
    try:
        # Far away each read is a request, so the columns of a row group are fetched together.
        far = not isinstance(files, fs.LocalFileSystem)
        with pq.ParquetFile(files.open_input_file(path), pre_buffer=far) as file:
            yield file
    except IcefloeError:  # storage of this library speaks for itself, also through Arrow
        raise
    except FileNotFoundError as error:
        raise NoSuchFile(f"data file {location} is missing", location=location) from error
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the machine's doing, not the file's
            raise StorageError(f"cannot read data file {location}: {error}", location=location) from error
        raise CorruptFile(f"cannot read data file {location}: {error}", location=location) from error

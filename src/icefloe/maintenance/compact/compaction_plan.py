"""Plans a compaction: which data files are rewritten, in which groups, and what that is expected to gain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.deletes.partition_keys import scopes
from icefloe.engines.engine import Engine
from icefloe.engines.work import PlannedFiles, TableFiles
from icefloe.engines.zorder import z_columns
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import Expr
from icefloe.maintenance.compact.choose_files import (
    NO_GROUP,
    REASONS,
    Candidates,
    Ints,
    Reason,
    choose_files,
    expected_files,
)
from icefloe.maintenance.compact.compact_options import CompactOptions, compact_options
from icefloe.maintenance.compact.compact_result import CompactResult
from icefloe.model.entries import ContentType, of_type, total
from icefloe.model.metadata.properties import TARGET_FILE_SIZE
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.sort_order import UNSORTED, SortOrder, same_order
from icefloe.model.schema.types import Field
from icefloe.model.text.partition_text import sort_order
from icefloe.progress import Progress, silent
from icefloe.rows.target import Target
from icefloe.scan.partition_values import partition_struct, partition_tuples
from icefloe.scan.tasks import Plan


class Strategy(StrEnum):
    """How rows are written: as they are read, sorted, or in z-order."""

    BINPACK = "binpack"
    SORT = "sort"
    ZORDER = "zorder"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrder:
    """The order of rows in new files: a sort order, or columns of a z-order."""

    strategy: Strategy
    order: SortOrder = UNSORTED
    z_columns: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWork:
    """What executing a plan needs: the branch as it was read, its files with their deletes, and the engine."""

    target: Target
    files: PlannedFiles  # all data files of the branch
    engine: Engine
    order: RowOrder
    options: CompactOptions
    groups_of: Ints  # the group of each data file, NO_GROUP if it is not rewritten
    is_parallel: bool  # whether the engine rewrites several groups at the same time


Run = Callable[["CompactPlan", Progress], CompactResult]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompactPlan:
    """The files that a compaction considers, why it rewrites each or not, and what it is expected to gain.

    ``files`` has a row for each considered file: ``location``, ``bytes``, ``rows``, ``deletes`` (rows that are known to
    be deleted), ``delete_files``, ``partition``, ``group`` (null if it is not rewritten), ``chosen`` and ``reason``.
    ``groups`` has a row for each group: ``group``, ``partition`` (null for files of other specs), ``files``, ``bytes``,
    ``rows``, ``deletes``, ``expected_files`` and ``expected_bytes``. ``execute`` rewrites the groups.
    """

    table: str
    strategy: Strategy
    files: pa.Table
    groups: pa.Table
    work: PlannedWork = field(compare=False)
    run: Run = field(compare=False)

    @property
    def files_before(self) -> int:
        """How many files are rewritten."""
        return total(self.groups, "files")

    @property
    def files_after(self) -> int:
        """How many files they are expected to become."""
        return total(self.groups, "expected_files")

    @property
    def rows_dropped(self) -> int:
        """How many deleted rows are known to be dropped; equality deletes do not state how many rows they delete."""
        return total(self.groups, "deletes")

    def within(self, max_bytes: int) -> CompactPlan:
        """The plan with only those groups that fit into ``max_bytes`` together, the ones that save most files first."""
        size, files = (np.asarray(self.groups[name]) for name in ("bytes", "files"))
        saved = (files - np.asarray(self.groups["expected_files"])) / np.maximum(size, 1)
        order = np.argsort(-saved, kind="stable")
        fitting = np.sort(order[np.cumsum(size[order]) <= max_bytes])
        groups = self.groups.take(pa.array(fitting))
        kept = np.asarray(groups["group"])
        old = np.asarray(pc.fill_null(self.files["group"], NO_GROUP))
        dropped = pa.array((old != NO_GROUP) & ~np.isin(old, kept))
        is_kept = pc.and_not(self.files["chosen"], dropped)
        renumbered = pa.array(np.arange(len(kept)))
        group = pc.if_else(is_kept, renumbered.take(pc.index_in(self.files["group"], value_set=pa.array(kept))), None)
        reason = pc.if_else(dropped, Reason.OVER_BUDGET.value, self.files["reason"])
        files_table = self.files
        for name, column in (("group", group), ("chosen", is_kept), ("reason", reason)):
            files_table = files_table.set_column(files_table.schema.get_field_index(name), name, column)
        return replace(
            self,
            files=files_table,
            groups=groups.set_column(0, "group", renumbered),
            work=replace(self.work, groups_of=_renumbered(self.work.groups_of, kept)),
        )

    def execute(self, progress: Progress = silent) -> CompactResult:
        """Rewrite the groups and commit; ``progress`` is called after each group."""
        return self.run(self, progress)

    def as_dict(self) -> dict[str, object]:
        """The figures of the plan by name, with the files and groups as lists of rows."""
        return {
            "table": self.table,
            "strategy": str(self.strategy),
            "files_before": self.files_before,
            "files_after": self.files_after,
            "rows_dropped": self.rows_dropped,
            "groups": self.groups.to_pylist(),
            "files": self.files.to_pylist(),
        }

    def __repr__(self) -> str:
        considered = self.files.num_rows
        head = f"compact {self.table} ({self.strategy}): "
        if self.groups.num_rows == 0:
            head += f"nothing to do, {considered} files considered"
        else:
            head += (
                f"{self.files_before} of {considered} files ({total(self.groups, 'bytes')} bytes) in"
                f" {self.groups.num_rows} groups -> about {self.files_after} files"
                f" ({total(self.groups, 'expected_bytes')} bytes), {self.rows_dropped} deleted rows dropped"
            )
        counts = self.files.group_by(["chosen", "reason"]).aggregate([([], "count_all")])
        rows = sorted(counts.to_pylist(), key=lambda row: (not row["chosen"], row["reason"]))
        verbs = {True: "rewritten", False: "kept"}
        return "\n".join([head, *(f"  {row['count_all']} {verbs[row['chosen']]}: {row['reason']}" for row in rows)])


def plan_compaction(
    name: str,
    target: Target,
    engine: Engine,
    run: Run,
    *,
    where: Expr,
    strategy: str,
    sort_by: str | Sequence[str] | None,
    zorder_by: Sequence[str] | None,
    options: Mapping[str, object] | None,
    is_parallel: bool,
) -> CompactPlan:
    """Plan a compaction of the data files of a branch that may contain rows matching ``where``."""
    chosen = compact_options(options, target.metadata)
    order = _row_order(target.metadata, strategy, sort_by, zorder_by)
    files = target.planned()
    plan = files.plan
    considered = _considered(target, plan, where)
    columns = _candidates(plan)
    part = {name: values[considered] for name, values in columns.items()}
    choice = choose_files(Candidates(**part), chosen)
    groups_of: Ints = np.full(plan.files, NO_GROUP, np.int64)
    groups_of[considered] = choice.groups
    tuples = _partitions(target, plan.tasks).take(pa.array(considered))
    return CompactPlan(
        table=name,
        strategy=order.strategy,
        files=_files(plan.tasks.take(pa.array(considered)), part, tuples, choice.groups, choice.reasons),
        groups=_groups(part, tuples, choice.groups, chosen),
        work=PlannedWork(
            target=target,
            files=replace(files, table=_output(target, order, chosen)),
            engine=engine,
            order=order,
            options=chosen,
            groups_of=groups_of,
            is_parallel=is_parallel,
        ),
        run=run,
    )


def _row_order(
    metadata: TableMetadata, strategy: str, sort_by: str | Sequence[str] | None, zorder_by: Sequence[str] | None
) -> RowOrder:
    known = {str(each): each for each in Strategy}
    if strategy not in known:
        raise InputError(f"compact: strategy {strategy!r} is unknown; choose {', '.join(known)}")
    chosen = known[strategy]
    if sort_by is not None and chosen is not Strategy.SORT:
        raise InputError(f"compact: sort_by= needs strategy='sort', not {strategy!r}")
    if zorder_by is not None and chosen is not Strategy.ZORDER:
        raise InputError(f"compact: zorder_by= needs strategy='zorder', not {strategy!r}")
    if chosen is Strategy.ZORDER:
        names = [] if zorder_by is None else [zorder_by] if isinstance(zorder_by, str) else list(zorder_by)
        return RowOrder(strategy=chosen, z_columns=z_columns(names, metadata.schema))
    if sort_by is None:
        if chosen is Strategy.SORT and not metadata.sort_order.is_sorted:
            raise InputError("compact: the table has no sort order; give one with sort_by=, or set that of the table")
        return RowOrder(strategy=chosen, order=metadata.sort_order)
    order = sort_order([sort_by] if isinstance(sort_by, str) else sort_by, metadata.schema)
    if not order.is_sorted:
        raise InputError("compact: sort_by= names no column")
    known_order = next((other for other in metadata.sort_orders if same_order(other, order)), None)
    if known_order is not None:
        return RowOrder(strategy=chosen, order=known_order)
    unused_id = max((other.order_id for other in metadata.sort_orders), default=0) + 1
    return RowOrder(strategy=chosen, order=replace(order, order_id=unused_id))


def _output(target: Target, order: RowOrder, options: CompactOptions) -> TableFiles:
    """The table as new files are written to it: with the spec, sort order and target size of this compaction."""
    metadata = target.metadata
    others = tuple(other for other in metadata.sort_orders if other.order_id != order.order.order_id)
    output = replace(
        metadata,
        sort_orders=(*others, order.order),
        default_sort_order_id=order.order.order_id,
        default_spec_id=options.output_spec_id,
        properties={**metadata.properties, TARGET_FILE_SIZE.name: str(options.target_size)},
    )
    return TableFiles(io=target.io, metadata=output)


def _considered(target: Target, plan: Plan, where: Expr) -> Ints:
    """The numbers of the files that may contain matching rows."""
    matching = target.plan(where).tasks["location"].combine_chunks()
    mask = pc.is_in(plan.tasks["location"], value_set=matching)
    numbers: Ints = np.flatnonzero(np.asarray(mask))
    return numbers


def _candidates(plan: Plan) -> dict[str, Ints]:
    """What the choice of files depends on, as columns."""
    tasks = plan.tasks
    deleted, delete_files = _delete_counts(tasks, plan.deletes)
    return {
        "sizes": _numbers(tasks["file_size_in_bytes"]),
        "rows": _numbers(tasks["record_count"]),
        "deleted_rows": deleted,
        "delete_files": delete_files,
        "partitions": scopes(tasks),
        "spec_ids": _numbers(tasks["partition_spec_id"]),
    }


def _delete_counts(tasks: pa.Table, deletes: pa.Table) -> tuple[Ints, Ints]:
    """For each planned file the rows that are known to be deleted, and the number of deletes that apply to it.

    Rows are known from deletion vectors, and from position delete files that delete rows of one data file only.
    """
    lists = tasks["deletes"].combine_chunks()
    owners, numbers = np.asarray(pc.list_parent_indices(lists)), np.asarray(pc.list_flatten(lists))
    one_file = pc.and_(of_type(deletes, ContentType.POSITION_DELETES), pc.is_valid(deletes["referenced_file"]))
    known = np.where(np.asarray(one_file), _numbers(deletes["record_count"]), 0)
    by_files = np.bincount(owners, weights=known[numbers], minlength=tasks.num_rows).astype(np.int64)
    applying = np.bincount(owners, minlength=tasks.num_rows).astype(np.int64)
    deleted = np.minimum(_numbers(tasks["dv_cardinality"]) + by_files, _numbers(tasks["record_count"]))
    return deleted, applying + np.asarray(pc.is_valid(tasks["dv_location"]))


def _numbers(column: pa.ChunkedArray) -> Ints:
    numbers: Ints = np.asarray(pc.fill_null(column, 0)).astype(np.int64)
    return numbers


def _partitions(target: Target, tasks: pa.Table) -> pa.Array:
    """The partition tuple of each file; null if the table has no partition fields."""
    type_ = partition_struct(target.base.store.context)
    if len(type_.fields) == 0:
        return pa.nulls(tasks.num_rows, pa.struct([]))
    return partition_tuples(tasks, type_)


def _files(tasks: pa.Table, columns: Mapping[str, Ints], tuples: pa.Array, groups: Ints, reasons: Ints) -> pa.Table:
    texts = pa.array([reason.value for reason in REASONS])
    return pa.table(
        {
            "location": tasks["location"],
            "bytes": columns["sizes"],
            "rows": columns["rows"],
            "deletes": columns["deleted_rows"],
            "delete_files": columns["delete_files"],
            "partition": tuples,
            "group": pa.array(groups, mask=groups == NO_GROUP),
            "chosen": groups != NO_GROUP,
            "reason": texts.take(pa.array(reasons)),
        }
    )


def _groups(columns: Mapping[str, Ints], tuples: pa.Array, groups: Ints, options: CompactOptions) -> pa.Table:
    chosen = groups != NO_GROUP
    numbers, first = np.unique(groups[chosen], return_index=True)

    def sums(name: str) -> npt.NDArray[Any]:
        return np.bincount(groups[chosen], weights=columns[name][chosen], minlength=len(numbers)).astype(np.int64)

    size, rows, deleted = sums("sizes"), sums("rows"), sums("deleted_rows")
    live = size * ((rows - deleted) / np.maximum(rows, 1))
    first = np.flatnonzero(chosen)[first]
    has_partition = columns["spec_ids"][first] == options.output_spec_id  # else a group may have several
    return pa.table(
        {
            "group": numbers,
            "partition": tuples.take(pa.array(first, mask=~has_partition)),
            "files": np.bincount(groups[chosen], minlength=len(numbers)),
            "bytes": size,
            "rows": rows,
            "deletes": deleted,
            "expected_files": expected_files(live, options),
            "expected_bytes": live.astype(np.int64),
        }
    )


def _renumbered(groups_of: Ints, kept: Ints) -> Ints:
    """The group of each data file if only some groups are kept, which are numbered from 0."""
    found: Ints = np.searchsorted(kept, groups_of)
    is_kept = np.isin(groups_of, kept)
    return np.where(is_kept, found, NO_GROUP)

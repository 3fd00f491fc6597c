"""Checks that the parts of table metadata are consistent with each other (spec: Table Metadata Fields)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from icefloe.errors import FormatError
from icefloe.model.metadata.snapshots import MAIN
from icefloe.model.metadata.table_metadata import TableMetadata

_LONGS = (-(2**63), 2**63 - 1)


def check_metadata(metadata: TableMetadata, snapshot_ids: Collection[int]) -> None:
    """Refuse inconsistent metadata; ``snapshot_ids`` are passed so that the snapshots need not be parsed."""
    _check_unique("schemas", "schema-id", (schema.schema_id for schema in metadata.schemas))
    _check_unique("partition-specs", "spec-id", (spec.spec_id for spec in metadata.specs))
    _check_unique("sort-orders", "order-id", (order.order_id for order in metadata.sort_orders))
    _check_unique("expressions", "expr-id", (expression.expr_id for expression in metadata.expressions))
    _check_current(metadata)
    _check_expression_ids(metadata)
    _check_snapshots(metadata, snapshot_ids)
    _check_logs(metadata)


def _check_unique(key: str, name: str, ids: Iterable[int]) -> None:
    seen: dict[int, int] = {}
    for index, id_ in enumerate(ids):
        if id_ in seen:
            path = f"{key}[{index}].{name}"
            raise FormatError(f"{path}: {id_} is also the id of {key}[{seen[id_]}]", field=path)
        seen[id_] = index


def _check_current(metadata: TableMetadata) -> None:
    """The current schema and the default spec and sort order exist; sort order 0 always does."""
    expected = (
        ("current-schema-id", metadata.current_schema_id, [s.schema_id for s in metadata.schemas]),
        ("default-spec-id", metadata.default_spec_id, [s.spec_id for s in metadata.specs]),
        ("default-sort-order-id", metadata.default_sort_order_id, [0, *(o.order_id for o in metadata.sort_orders)]),
    )
    for key, wanted, there in expected:
        if wanted not in there:
            raise FormatError(f"{key}: there is no {wanted}, only {', '.join(map(str, there))}", field=key)


def _check_expression_ids(metadata: TableMetadata) -> None:
    """Expressions share the ids of columns."""
    for index, expression in enumerate(metadata.expressions):
        if any(expression.expr_id in schema.by_id for schema in metadata.schemas):
            path = f"expressions[{index}].expr-id"
            raise FormatError(f"{path}: {expression.expr_id} is also the id of a column", field=path)


def _check_snapshots(metadata: TableMetadata, snapshot_ids: Collection[int]) -> None:
    current = metadata.current_snapshot_id
    if current is not None and metadata.snapshots.find(current) is None:  # the one snapshot that is parsed
        raise FormatError(f"current-snapshot-id: there is no snapshot {current}", field="current-snapshot-id")
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in snapshot_ids:
            path = f'refs["{name[:40]}"].snapshot-id'
            raise FormatError(f"{path}: there is no snapshot {ref.snapshot_id}", field=path)
    main = metadata.refs.get(MAIN)
    if main is not None and main.type != "branch":
        raise FormatError(f'refs["{MAIN}"].type: expected "branch", got "{main.type}"', field=f'refs["{MAIN}"].type')
    if main is not None and main.snapshot_id != current:
        reason = f"{'none' if current is None else current}, but branch main is at snapshot {main.snapshot_id}"
        raise FormatError(f"current-snapshot-id: {reason}", field="current-snapshot-id")


def _check_logs(metadata: TableMetadata) -> None:
    for key, times in (
        ("snapshot-log", [entry.timestamp_ms for entry in metadata.snapshot_log]),
        ("snapshot-log", [entry.snapshot_id for entry in metadata.snapshot_log]),
        ("metadata-log", [entry.timestamp_ms for entry in metadata.metadata_log]),
    ):
        if len(times) > 0 and not (_LONGS[0] <= min(times) and max(times) <= _LONGS[1]):
            index = next(i for i, value in enumerate(times) if not _LONGS[0] <= value <= _LONGS[1])
            raise FormatError(f"{key}[{index}]: expected a long, got {times[index]:.3e}", field=f"{key}[{index}]")

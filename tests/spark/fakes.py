"""A table of loose Parquet files with a planner that prunes by smallest and largest value and counts what it does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from icefloe.engines.spark.read.source import Source
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Constant, Expr, Op, Or, Predicate, conjuncts
from icefloe.model.arrow.conform import arrow_schema, conform
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.scan.tasks import TASK, Plan

_COMPARE = {
    Op.LT: lambda low, high, v: low < v,
    Op.LE: lambda low, high, v: low <= v,
    Op.GT: lambda low, high, v: high > v,
    Op.GE: lambda low, high, v: high >= v,
    Op.EQ: lambda low, high, v: low <= v <= high,
}


@dataclass
class Files:
    """What a catalog, a tree and a planner would be, in a page."""

    folder: Path
    schema: Schema = field(default_factory=lambda: Schema(fields=()))
    rows: list[dict[str, object]] = field(default_factory=list)
    ranges: dict[str, dict[str, tuple[object, object]]] = field(default_factory=dict)
    deleted: dict[str, BitMap64] = field(default_factory=dict)
    asked: list[Expr] = field(default_factory=list)
    returned: list[list[str]] = field(default_factory=list)

    def add(self, name: str, data: dict[str, list[object]] | pa.Table, schema: Schema, **options: object) -> str:
        """Write a file with the ids of a schema; the planner knows the range of each column by name."""
        table = data if isinstance(data, pa.Table) else pa.table(data, arrow_schema(schema))
        self.schema = schema
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(conform(table, schema), path, store_schema=False, **options)
        self.ranges[str(path)] = _ranges(table)
        self.rows.append(
            {
                "location": str(path),
                "file_format": "parquet",
                "file_size_in_bytes": path.stat().st_size,
                "record_count": table.num_rows,
            }
        )
        return str(path)

    def delete(self, location: str, positions: list[int]) -> None:
        self.deleted[location] = BitMap64(positions)

    def plan(self, filter_: Expr, bounded: tuple[int, ...] = ()) -> Plan:
        self.asked.append(filter_)
        kept = [row for row in self.rows if self._may_match(str(row["location"]), filter_)]
        self.returned.append([str(row["location"]) for row in kept])
        tasks = pa.Table.from_pylist(kept, schema=TASK)
        return Plan(tasks=tasks, schema=self.schema, table_schema=self.schema, filter=ALWAYS_TRUE)

    def vectors(self, plan: Plan) -> Mapping[str, BitMap64]:
        return {name: self.deleted[name] for name in plan.tasks["location"].to_pylist() if name in self.deleted}

    def positions(self, locations: Iterable[str]) -> Mapping[str, BitMap64]:
        return {name: self.deleted[name] for name in locations if name in self.deleted}

    def source(self, schema: Schema) -> Source:
        return Source(
            plan=self.plan,
            vectors=self.vectors,
            schema=schema,
            location=str(self.folder),
            size_bytes=sum(int(str(row["file_size_in_bytes"])) for row in self.rows),
            has_deletes=len(self.deleted) > 0,
        )

    def _may_match(self, location: str, filter_: Expr) -> bool:
        return all(self._part_may_match(location, part) for part in conjuncts(filter_))

    def _part_may_match(self, location: str, part: Expr) -> bool:
        if isinstance(part, Constant):
            return part.value
        if isinstance(part, Or):
            return any(self._may_match(location, child) for child in part.children)
        if not isinstance(part, Predicate) or part.op not in _COMPARE:
            return True
        low, high = self.ranges.get(location, {}).get(part.term, (None, None))
        return low is None or bool(_COMPARE[part.op](low, high, part.literals[0]))


def _ranges(table: pa.Table) -> dict[str, tuple[object, object]]:
    found = {}
    for name in table.column_names:
        if not pa.types.is_nested(table[name].type) and table.num_rows > 0:
            extremes = pc.min_max(table[name]).as_py()
            found[name] = (extremes["min"], extremes["max"])
    return found


def metadata_of(
    location: object, schema: Schema, *partition_by: str, properties: Mapping[str, str] | None = None, version: int = 2
) -> TableMetadata:
    """A table of one schema; ``partition_by`` takes ``column`` or ``transform(column)``."""
    fields = []
    for number, text in enumerate(partition_by):
        transform, _, source = text.rstrip(")").rpartition("(")
        kind = "identity" if transform == "" else transform
        name = source if kind == "identity" else f"{source}_{kind.split('[')[0]}"
        fields.append(
            PartitionField(source_id=schema.field(source).id, field_id=1000 + number, name=name, transform=kind)
        )
    return TableMetadata(
        format_version=version,
        table_uuid="00000000-0000-0000-0000-000000000000",
        location=str(location),
        last_updated_ms=0,
        last_column_id=schema.highest_id,
        schemas=(schema,),
        specs=(PartitionSpec(fields=tuple(fields)),),
        properties=properties or {},
    )

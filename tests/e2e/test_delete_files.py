"""Tables with every kind of delete, after every change compared with a plain model of their rows."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from icefloe.commit.loop import commit
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.commit.operations.snapshot_operation import SnapshotOperation
from icefloe.deletes.bitmaps import bitmap_of
from icefloe.deletes.equality_writer import write_equality_deletes
from icefloe.deletes.position_files import write_position_deletes
from icefloe.deletes.vectors import write_vectors
from icefloe.engines.arrow.engine import ArrowEngine
from icefloe.env import SYSTEM
from icefloe.errors import InputError
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import ContentType, count, of_type
from icefloe.model.schema.types import INT, LONG, STRING, Field
from icefloe.rows.convert_deletes import convert_deletes
from icefloe.rows.target import Target
from icefloe.scan.tasks import Plan
from icefloe.table.catalog import Catalog
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.tree.file_changes import FileChanges
from support.tables import new_catalog, sorted_rows

pytestmark = pytest.mark.slow

Row = dict[int, object]  # values by column id, of the columns that its file has
POOLS: Mapping[str, list[object]] = {
    "int": [None, 0, 1, 2, 3, -7],
    "long": [None, 0, 1, 2, 3, -7],
    "string": [None, "", "a", "b", "a-long-text-of-more-than-16-letters"],
    "date": [None, 0, 20_000],
}


def converted(table: Table) -> RowDelta | None:
    """The change that converts the deletes of a table."""
    return convert_deletes(Target(base=pointer_of(table).load(), env=SYSTEM), ArrowEngine())


@dataclass
class Model:
    """A table, the rows that it should have, and the dice."""

    catalog: Catalog
    dice: random.Random
    rows: list[Row] = field(default_factory=list)

    @property
    def table(self) -> Table:
        return self.catalog.load_table("db.t")

    def values(self, column: Field) -> object:
        return self.dice.choice(POOLS[str(column.type)])

    def append(self) -> None:
        table = self.table
        new = [
            {column.id: self.values(column) for column in table.schema.fields} for _ in range(self.dice.randint(1, 30))
        ]
        table.append(self.arrow(new, table.schema.fields))
        self.rows += new

    def arrow(self, rows: list[Row], columns: tuple[Field, ...]) -> pa.Table:
        arrays = {c.name: pa.array([row[c.id] for row in rows], arrow_type(c.type)) for c in columns}
        return pa.table(arrays)

    def delete_by_position(self) -> None:
        table = self.table
        plan = table.scan().plan()
        live = table.scan(columns=["_file", "_pos", *(c.name for c in table.schema.fields)]).to_arrow()
        chosen = sorted(self.dice.sample(range(live.num_rows), live.num_rows // 5))
        gone: dict[str, list[int]] = {}
        for row in live.take(pa.array(chosen, pa.int64())).to_pylist():
            gone.setdefault(row["_file"], []).append(row["_pos"])
            self.rows.remove(self.seen_before(row))
        positions = {file: bitmap_of(np.array(found)) for file, found in gone.items()}
        if len(positions) == 0:
            return
        io, metadata = pointer_of(table).io, table.metadata
        if metadata.rules.deletion_vectors:
            old = plan.deleted_rows(io).positions(positions)
            place = f"{metadata.location}/data/{self.dice.random()}.puffin"
            touched = plan.tasks.filter(pa.compute.is_in(plan.tasks["location"], pa.array(list(positions))))
            vectors = write_vectors(io, touched, old, positions, location=place)
            self.commit(
                RowDelta(changes=FileChanges(added=vectors, revectored=touched), read=metadata.current_snapshot)
            )
        else:
            how = {"write.delete.granularity": self.dice.choice(["file", "partition"])}
            entries = write_position_deletes(
                io,
                plan.tasks,
                positions,
                data_location=f"{metadata.location}/data",
                properties={**table.properties, **how},
            )
            self.commit(
                RowDelta(
                    changes=FileChanges(added=entries, referenced=tuple(positions)), read=metadata.current_snapshot
                )
            )

    def seen_before(self, shown: Mapping[str, object]) -> Row:
        """A row of the model that looks like one that a scan showed."""
        columns = self.table.schema.fields
        return next(row for row in self.rows if all(told(row.get(c.id)) == told(shown[c.name]) for c in columns))

    def delete_by_value(self) -> None:
        table = self.table
        columns = tuple(self.dice.sample(table.schema.fields, self.dice.randint(1, min(3, len(table.schema.fields)))))
        keys = [{c.id: self.values(c) for c in columns} for _ in range(self.dice.randint(1, 4))]
        entries = self.entries_of(table, keys, columns)
        if entries is None:
            return
        self.commit(RowDelta(changes=FileChanges(added=entries), read=table.metadata.current_snapshot))
        self.rows = [row for row in self.rows if all(any(row.get(id_) != key[id_] for id_ in key) for key in keys)]

    def entries_of(self, table: Table, keys: list[Row], columns: tuple[Field, ...]) -> pa.Table | None:
        try:
            return write_equality_deletes(
                pointer_of(table).io, self.arrow(keys, columns), columns, metadata=table.metadata
            )
        except InputError as error:
            if "do not determine the partition" not in str(error):
                raise
            return None

    def convert(self) -> None:
        table = self.table
        operation = converted(table)
        if operation is not None:
            self.commit(operation)
        assert equality_deletes(self.table.scan().plan()) == 0

    def add_column(self) -> None:
        name = f"c{self.dice.randint(0, 10**9)}"
        with self.table.update_schema() as schema:
            schema.add_column(name, self.dice.choice(["int", "string", "date"]))

    def drop_column(self) -> None:
        if len(free := self.free()) > 1:
            with self.table.update_schema() as schema:
                schema.drop_column(self.dice.choice(free).name)

    def free(self) -> list[Field]:
        """The columns that no partition is made of."""
        table = self.table
        sources = {f.source_id for spec in table.metadata.specs for f in spec.fields}
        return [column for column in table.schema.fields if column.id not in sources]

    def swap_names(self) -> None:
        if len(free := self.free()) < 2:
            return
        one, other = self.dice.sample(free, 2)
        with self.table.update_schema() as schema:
            schema.rename_column(one.name, "between")
        with self.table.update_schema() as schema:
            schema.rename_column(other.name, one.name)
        with self.table.update_schema() as schema:
            schema.rename_column("between", other.name)

    def promote(self) -> None:
        narrow = [column for column in self.table.schema.fields if column.type == INT]
        if len(narrow) > 0:
            with self.table.update_schema() as schema:
                schema.update_column(self.dice.choice(narrow).name, type="bigint")

    def repartition(self) -> None:
        names = [column.name for column in self.table.schema.fields if column.type in (INT, LONG, STRING)]
        with self.table.update_partitioning() as spec:
            fields = self.table.spec.fields
            for old in fields:
                if not old.is_void:
                    spec.remove(old.name)
        wanted = f"bucket({self.dice.randint(2, 4)}, {self.dice.choice(names)})" if len(names) > 0 else None
        if wanted is not None and self.dice.random() < 0.6:
            with self.table.update_partitioning() as spec:
                spec.add(wanted, f"p{self.dice.randint(0, 10**9)}")

    def commit(self, operation: SnapshotOperation) -> None:
        commit(pointer_of(self.table), operation)

    def check(self) -> None:
        table = self.table
        columns = table.schema.fields
        expected = sorted([tuple(told(row.get(c.id)) for c in columns) for row in self.rows], key=repr)
        found = [tuple(map(told, row.values())) for row in table.scan().to_arrow().to_pylist()]
        assert sorted(found, key=repr) == expected
        assert table.scan().count() == len(expected)


def told(value: object) -> object:
    """A value that compares: dates as the days they are."""
    return (value - EPOCH).days if hasattr(value, "toordinal") else value


EPOCH = pa.scalar(0, pa.date32()).as_py()
STEPS = {
    "append": 5,
    "delete_by_position": 4,
    "delete_by_value": 6,
    "convert": 1,
    "add_column": 1,
    "drop_column": 1,
    "swap_names": 1,
    "promote": 1,
    "repartition": 1,
}


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_table_with_any_deletes_has_the_rows_of_the_model(tmp_path: Path, version: int, file_format: str) -> None:
    catalog = new_catalog(tmp_path)
    dice = random.Random(f"{version} {file_format}")
    partitioned = dice.choice([(), ("k",), ("bucket(3, id)",)])
    catalog.create_table(
        "db.t",
        schema="id int, k string, d date, n bigint",
        partition_by=partitioned,
        format_version=version,
        properties={"write.format.default": file_format},
    )
    model = Model(catalog, dice)
    model.append()
    for _ in range(14):
        verb = dice.choices(list(STEPS), list(STEPS.values()))[0]
        getattr(model, verb)()
        model.check()


def equality_deletes(plan: Plan) -> int:
    """How many equality delete files apply to the files of a plan."""
    return count(of_type(plan.deletes, ContentType.EQUALITY_DELETES))


@pytest.mark.parametrize("version", [2, 3, 4])
def test_equality_deletes_are_converted_without_a_change_of_rows(tmp_path: Path, version: int) -> None:
    catalog = new_catalog(tmp_path)
    table = catalog.create_table("db.t", schema="id bigint, note string", format_version=version)
    table.append(pa.table({"id": [1, 2, 3, 4], "note": list("abcd")}))
    table.append(pa.table({"id": [5, 6], "note": list("ef")}))
    model = Model(catalog, random.Random(1))
    assert equality_deletes(model.table.scan().plan()) == 0
    for key in (2, 6, 77):
        now = model.table
        entries = write_equality_deletes(
            pointer_of(now).io, pa.table({"id": [key]}), now.schema.fields[:1], metadata=now.metadata
        )
        model.commit(RowDelta(changes=FileChanges(added=entries), read=now.metadata.current_snapshot))
    model.table.append(pa.table({"id": [2], "note": ["again"]}))
    before = sorted_rows(model.table.scan().to_arrow())
    assert before == [(1, "a"), (2, "again"), (3, "c"), (4, "d"), (5, "e")]
    assert equality_deletes(model.table.scan().plan()) > 0
    read = model.table
    operation = converted(read)
    assert operation is not None
    model.table.append(pa.table({"id": [6], "note": ["late"]}))  # rows that come meanwhile are not in the way
    model.commit(operation)
    assert sorted_rows(model.table.scan().to_arrow()) == [*before, (6, "late")]
    plan = model.table.scan().plan()
    assert equality_deletes(plan) == 0
    assert (
        sum(map(len, plan.deleted_rows(pointer_of(table).io).positions(plan.tasks["location"].to_pylist()).values()))
        == 2
    )
    summary = model.table.metadata.current_snapshot.summary
    assert summary["operation"] == "replace"
    assert converted(model.table) is None

"""Random operations on the rows of a table, and what they do to the model."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from icefloe.commit.loop import commit
from icefloe.commit.operations.rewrite import RewriteFiles
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.deletes.equality_writer import write_equality_deletes
from icefloe.engines.arrow.engine import ArrowEngine
from icefloe.errors import FormatError, InputError
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.metadata.snapshots import MAIN
from icefloe.model.text.ddl import parse_ddl
from icefloe.scan.plan import plan_scan
from icefloe.scan.tasks import Plan
from icefloe.table.held_table import pointer_of
from icefloe.transforms.transform import parse_transform
from icefloe.tree.file_changes import FileChanges
from support.engine_work import planned_for_engine
from support.row_histories.assignments import Assignment, draw_assignments
from support.row_histories.columns import VALUES, Column, Row, draw, flat, in_order, plain, shown, value_in
from support.row_histories.conditions import value_at
from support.row_histories.merges import MergingRows
from support.row_histories.model import CHANGED, CORE, SIDE, TOKEN, Step


class RowHistory(MergingRows):
    """A table, and what is done to its rows."""

    def do(self, verb: str, rng: random.Random) -> None:
        """Carry out a step."""
        VERBS[verb](self, rng)

    def append(self, rng: random.Random, most: int = 4) -> None:
        branch = self.branch_for(rng)
        rows, table = self.new_rows(rng, most, least=0)
        before = self.head(branch)
        result = self.table.append(self.engine.data(table), branch=branch)
        assert result.rows_added == len(rows)
        assert (self.head(branch) == before) == (len(rows) == 0), "a snapshot for nothing"
        self.put(branch, [*self.rows[branch], *rows])

    def append_wider(self, rng: random.Random) -> None:
        """Rows with a column that the table does not have yet."""
        rows, table = self.new_rows(rng, 3)
        kind = plain(rng.choice(tuple(kind for kind in VALUES if kind != "timestamp")))
        new = self.new_column(kind)
        type_ = arrow_schema(parse_ddl(f"x {kind}")).field("x").type
        for row in rows:
            row[new.key] = draw(rng, kind)
        table = table.append_column(new.name, pa.array([row[new.key] for row in rows], type_))
        self.table.append(self.engine.data(table), schema_mode="merge")
        self.columns = (*self.columns, new)
        self.put(MAIN, [*self.rows[MAIN], *rows])

    def add_files(self, rng: random.Random) -> None:
        """A file that another program wrote, without ids; where there are partitions it may not fit into one."""
        rows, table = self.new_rows(rng, 3)
        for column in self.columns:
            if column.name not in table.column_names:  # no default is written into it: it is read like an older file
                rows = [{key: value for key, value in row.items() if key != column.key} for row in rows]
        location = f"{self.engine.warehouse}/taken/{next(self.taken)}.parquet"
        sink = pa.BufferOutputStream()
        pq.write_table(without_ids(table), sink, store_schema=False)
        self.io.write_new(location, sink.getvalue().to_pybytes())
        try:
            self.table.add_files(location)
        except (InputError, FormatError):
            if not self.table.spec.is_partitioned:
                raise
            return
        self.put(MAIN, [*self.rows[MAIN], *rows])

    def delete(self, rng: random.Random) -> None:
        branch, condition = self.branch_for(rng), self.condition(rng)
        kept = [row for row in self.rows[branch] if not condition.holds(row)]
        before, gone = self.head(branch), len(self.rows[branch]) - len(kept)
        result = self.table.delete(condition.text, branch=branch, **self.engine.options)
        if self.counted:
            assert result.rows_deleted - result.rows_added == gone, f"{result} for {gone} rows where {condition.text}"
            assert (self.head(branch) == before) == (gone == 0), "a snapshot for nothing"
        self.put(branch, kept)

    def overwrite(self, rng: random.Random) -> None:
        branch, condition = self.branch_for(rng), self.condition(rng)
        rows, table = self.new_rows(rng, 3, least=0)
        kept = [row for row in self.rows[branch] if not condition.holds(row)]
        if rng.random() < 0.15:
            self.table.overwrite(self.engine.data(table), overwrite_all=True, branch=branch)
            kept = []
        else:
            self.table.overwrite(self.engine.data(table), condition.text, branch=branch)
        self.put(branch, [*kept, *rows])

    def overwrite_partitions(self, rng: random.Random) -> None:
        """Where all files are of the present spec; elsewhere what is replaced depends on files."""
        branch, spec = self.branch_for(rng), self.table.spec
        tasks = self._plan(branch).tasks
        if set(tasks["partition_spec_id"].to_pylist()) - {spec.spec_id} != set():
            return
        rows, table = self.new_rows(rng, 3, least=0)
        self.table.overwrite_partitions(self.engine.data(table), branch=branch)
        if len(rows) > 0:
            replaced = {self._partition(row) for row in rows}
            kept = [row for row in self.rows[branch] if self._partition(row) not in replaced]
            self.put(branch, [*kept, *rows])

    def _partition(self, row: Row) -> tuple[object, ...]:
        """The partition of a row in the present spec."""
        schema, found = self.table.schema, []
        for field in self.table.spec.fields:
            source = schema.by_id[field.source_id]
            if field.transform == "void":
                continue
            value = shown(row, self.columns)[source.name]
            array = pa.array([value], arrow_schema(schema).field(source.name).type)
            found.append(parse_transform(field.transform).apply(array, source.type)[0].as_py())
        return tuple(found)

    def update(self, rng: random.Random) -> None:
        branch, condition = self.branch_for(rng), self.condition(rng)
        assignments = draw_assignments(rng, self.columns, CORE)
        if len(assignments) == 0:
            return
        before = self.head(branch)
        everywhere = rng.random() < 0.1
        where = None if everywhere else condition.text
        texts = {each.name: each.text for each in assignments}
        self.table.update(texts, where, branch=branch, **self.engine.options)
        hit = [everywhere or condition.holds(row) for row in self.rows[branch]]
        assert (self.head(branch) == before) == (not any(hit)), "a snapshot for nothing"
        pairs = zip(self.rows[branch], hit, strict=True)
        self.put(branch, [self._updated(row, assignments) if chosen else row for row, chosen in pairs])

    def _updated(self, row: Row, assignments: Sequence[Assignment]) -> Row:
        new = {**row, **{each.key: each.of(row) for each in assignments}}
        del new[CHANGED]
        return new

    def upsert(self, rng: random.Random) -> None:
        branch = self.branch_for(rng)
        on = rng.choice((["id"], ["id", "part"], ["uid"]))
        keys = [self.columns_by_name[name] for name in on]
        rows, _ = self.new_rows(rng, 4, least=0)
        if on == ["uid"] and len(self.rows[branch]) > 0:
            for row in rows[:2]:
                row[keys[0].key] = rng.choice(self.rows[branch])[keys[0].key]
        by_key = {key: row for row in rows if None not in (key := tuple(row[each.key] for each in keys))}
        rows = list(by_key.values())
        old = [(tuple(value_in(row, key) for key in keys), row) for row in self.rows[branch]]
        kept = [row for key, row in old if key not in by_key]
        if self._upsert_unread(rng, rows, on, branch):
            self.put(branch, [*kept, *rows])
            return
        self.table.upsert(self.engine.data(self.arrow(rows)), on=on, branch=branch)
        for row in rows:
            match [known for key, known in old if key == tuple(row[each.key] for each in keys)]:
                case [known]:
                    row[TOKEN] = known[TOKEN]
                case [_, _, *_]:  # any of their ids may be kept
                    self.exact = False
        self.put(branch, [*kept, *rows])

    def _upsert_unread(self, rng: random.Random, rows: list[Row], on: list[str], branch: str) -> bool:
        """By equality deletes, where they are possible; rows do not keep their ids then."""
        if self.table.format_version == 1 or len(rows) == 0 or rng.random() < 0.6:
            return False
        try:
            self.table.upsert(self.engine.data(self.arrow(rows)), on=on, deletes="equality", branch=branch)
        except InputError as error:
            if "do not determine the partition" not in str(error):
                raise
            return False
        self.counted = False
        return True

    def delete_equal(self, rng: random.Random) -> None:
        """Equality deletes, of values that rows have or might have."""
        paths = [path for path in flat(self.columns) if path[-1].kind.name not in ("float", "double")]
        self._delete_equal(rng, rng.sample(paths, rng.choice((1, 1, 2))))

    def delete_equal_and_name_again(self, rng: random.Random) -> None:
        """Equality deletes by a column whose name another column gets at once: deletes go by ids, filters by names."""
        paths = [path for path in flat(self.columns) if path[0].name not in CORE]
        paths = [path for path in paths if path[-1].kind.name not in ("float", "double")]
        if len(paths) == 0 or not self.names_come_back:
            return
        path = rng.choice(paths)
        self._delete_equal(rng, [path])
        self.name_again(rng, ".".join(column.name for column in path[:-1]), path[-1])
        names = [column.name for column in path]
        [now] = [each for each in flat(self.columns) if [column.name for column in each] == names]
        lacking = [row for row in self.rows[MAIN] if value_at(row, now) is None]
        found = self.table.scan(f"{'.'.join(names)} is null").to_arrow().to_pylist()
        assert in_order(found) == self.shown(lacking), f"rows where {'.'.join(names)} is null"

    def _delete_equal(self, rng: random.Random, chosen: Sequence[tuple[Column, ...]]) -> None:
        branch, metadata = self.branch_for(rng), self.table.metadata
        head = self.head(branch)
        if metadata.format_version == 1 or head is None:
            return
        models, _ = self.new_rows(rng, 2)
        if len(self.rows[branch]) > 0:
            models = [*rng.sample(self.rows[branch], 1), *models]
        fields = tuple(metadata.schema.by_name[".".join(column.name for column in path)] for path in chosen)
        try:
            entries = write_equality_deletes(self.io, self.arrow(models), fields, metadata=metadata)
        except InputError as error:
            if "do not determine the partition" not in str(error):
                raise
            return  # the columns do not determine it, and no spec of the table is without partitions
        commit(
            pointer_of(self.table),
            RowDelta(changes=FileChanges(added=entries), read=metadata.snapshot(head), branch=branch),
            self.env,
        )
        self.counted = False
        gone = [tuple(value_at(row, path) for path in chosen) for row in models]
        kept = [row for row in self.rows[branch] if tuple(value_at(row, path) for path in chosen) not in gone]
        self.put(branch, kept)

    def transaction(self, rng: random.Random) -> None:
        rows, table = self.new_rows(rng, 3)
        more, other = self.new_rows(rng, 3)
        condition = self.condition(rng)
        assignments = draw_assignments(rng, self.columns, CORE)
        known = {snapshot.snapshot_id for snapshot in self.table.snapshots}
        states = [[*self.rows[MAIN], *rows]]
        with self.table.transaction() as tx:
            tx.append(self.engine.data(table))
            tx.delete(condition.text, **self.engine.options)
            states.append([row for row in states[-1] if not condition.holds(row)])
            if len(assignments) > 0:
                tx.update({each.name: each.text for each in assignments}, **self.engine.options)
                for row in states[-1]:
                    row.setdefault(CHANGED, None)
                states.append([self._updated(row, assignments) for row in states[-1]])
            tx.append(other)  # in this process, on any engine of the history
            states.append([*states[-1], *more])
        made = [snapshot.snapshot_id for snapshot in self.table.snapshots if snapshot.snapshot_id not in known]
        distinct = [state for i, state in enumerate(states) if i == 0 or self.shown(state) != self.shown(states[i - 1])]
        if len(made) == len(distinct):
            self.expected |= {id_: self.shown(state) for id_, state in zip(made, distinct, strict=True)}
        else:  # an update to the same values is a snapshot too
            self.expected |= {id_: self._read(id_) for id_ in made[:-1]}
        self.exact = False  # which of the snapshots changed a row last is not followed
        self.put(MAIN, states[-1])

    def _read(self, snapshot_id: int) -> list[str]:
        return in_order(self.table.at(snapshot=snapshot_id).scan().to_arrow().to_pylist())

    def compact(self, rng: random.Random) -> None:
        """Write the files that may hold some rows again."""
        branch = self.branch_for(rng)
        base, head, engine = pointer_of(self.table).load(), self.head(branch), ArrowEngine()
        if head is None:
            return
        snapshot = base.metadata.snapshot(head)
        every = plan_scan(base.store, base.metadata, snapshot, schema=base.metadata.schema)
        locations = every.tasks["location"].to_pylist()
        chosen = [location for location in locations if rng.random() < 0.6]
        if len(chosen) == 0:
            return
        touched = every.tasks.filter(pa.array([location in chosen for location in locations]))
        plan = every.with_tasks(touched)
        gone = {location: BitMap64() for location in chosen}
        added = engine.write_survivors(planned_for_engine(self.io, base.metadata, plan), gone)
        number = snapshot.sequence_number if rng.random() < 0.5 else None
        commit(
            pointer_of(self.table),
            RewriteFiles(
                changes=FileChanges(added=added, removed=touched), read=snapshot, sequence_number=number, branch=branch
            ),
            self.env,
        )
        self.settle(branch)

    def _plan(self, branch: str) -> Plan:
        base, head = pointer_of(self.table).load(), self.head(branch)
        return plan_scan(base.store, base.metadata, None if head is None else base.metadata.snapshot(head))

    def branch(self, rng: random.Random) -> None:
        """Begin a branch, or publish it, or give it up."""
        if self.head() is None:
            return
        if SIDE not in self.rows:
            self.table.branch(SIDE)
            self.rows[SIDE], self.side_from = self.rows[MAIN], len(self.states)
            return
        if rng.random() < 0.6 and len(self.states) == self.side_from:
            self.table.publish(SIDE)
            self.put(MAIN, self.rows[SIDE])
        self.end_branch()

    def rollback(self, rng: random.Random) -> None:
        if len(self.states) < 2:
            return
        self.end_branch()
        del self.states[len(self.states) - rng.randint(1, min(4, len(self.states) - 1)) :]
        head, rows = self.states[-1]
        self.table.rollback(snapshot=head)
        self.rows[MAIN] = rows


VERBS: dict[str, Callable[[RowHistory, random.Random], None]] = {
    "append": RowHistory.append,
    "append wider": RowHistory.append_wider,
    "add files": RowHistory.add_files,
    "delete": RowHistory.delete,
    "merge": RowHistory.merge,
    "update": RowHistory.update,
    "upsert": RowHistory.upsert,
    "overwrite": RowHistory.overwrite,
    "overwrite partitions": RowHistory.overwrite_partitions,
    "delete equal": RowHistory.delete_equal,
    "delete equal and name again": RowHistory.delete_equal_and_name_again,
    "schema": RowHistory.edit_schema,
    "partitioning": RowHistory.edit_partitioning,
    "compact": RowHistory.compact,
    "transaction": RowHistory.transaction,
    "branch": RowHistory.branch,
    "rollback": RowHistory.rollback,
    "property": RowHistory.set_property,
    "sort": RowHistory.sort,
    "upgrade": RowHistory.upgrade,
}
WEIGHTS = {
    "append": 6,
    "delete": 4,
    "update": 4,
    "upsert": 3,
    "overwrite": 2,
    "delete equal": 2,
    "schema": 6,
    "merge": 4,
    "compact": 2,
}


def without_ids(table: pa.Table) -> pa.Table:
    """The same rows with plain fields."""
    fields = [pa.field(field.name, _plain_type(field.type)) for field in table.schema]
    return pa.Table.from_pylist(table.to_pylist(), schema=pa.schema(fields))


def _plain_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, _plain_type(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(_plain_type(type_.key_type), _plain_type(type_.item_type))
    return pa.list_(_plain_type(type_.value_type)) if pa.types.is_list(type_) else type_


def random_steps(seed: int, length: int) -> list[Step]:
    """A history of a length, which begins with rows."""
    rng = random.Random(seed)
    verbs, weights = list(VERBS), [WEIGHTS.get(verb, 1) for verb in VERBS]
    first = ("append", rng.getrandbits(32))
    return [first, *((rng.choices(verbs, weights)[0], rng.getrandbits(32)) for _ in range(length - 1))]

"""Random histories of one table against a plain list of rows, compared at every snapshot.

A step is a verb and a number from which all that it does is drawn, so that any part of a history can be run again, and
a failing one can be cut down. The version, the file format, the modes and the layout of the table are drawn as well.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from uuid import UUID

import pyarrow as pa

from icefloe.catalogs.memory import MemoryCatalog
from icefloe.commit.base import TablePointer
from icefloe.commit.operations.create_table import create_table, new_metadata
from icefloe.env import SYSTEM
from icefloe.limits import MIB
from icefloe.model.arrow.conform import arrow_schema
from icefloe.model.metadata.snapshots import MAIN
from icefloe.model.schema.metadata_columns import LAST_UPDATED, ROW_ID
from icefloe.model.text.ddl import parse_ddl
from icefloe.model.text.partition_text import partition_spec
from icefloe.table.table import Table
from icefloe.testing.check import check_table
from icefloe.tree.store import ManifestCache
from support.conformance import nonconformities
from support.row_histories.columns import (
    Column,
    Columns,
    Kind,
    Row,
    Value,
    draw,
    in_order,
    plain,
    selected,
    shown,
    value_in,
)
from support.row_histories.conditions import Condition, draw_condition
from support.row_histories.engines import HistoryEngine, InProcess

NAME = ("db", "t")
SIDE = "side"
TOKEN, CHANGED = -1, -2  # which row it is, and the sequence number of its last change, among the values of a row
CORE = ("uid", "id", "part", "city", "at")  # the columns that are never dropped, and that partitions are made of
FORMATS = ("parquet", "orc", "avro")
MODES = ("copy-on-write", "merge-on-read")
FIELDS = ("part", "bucket(3, id)", "truncate(2, city)", "city", "day(at)", "truncate(10, id)")
SETTINGS: dict[str, tuple[str, ...]] = {
    "write.format.default": FORMATS,
    "write.delete.mode": MODES,
    "write.update.mode": MODES,
    "write.merge.mode": MODES,
    "write.delete.granularity": ("file", "partition"),
    "write.metadata.metrics.default": ("none", "counts", "truncate(2)", "full"),
    "write.target-file-size-bytes": ("600", "100000"),
    "write.parquet.row-group-size-bytes": ("100", "100000"),
    "write.parquet.page-row-limit": ("1", "3"),
    "commit.manifest.min-count-to-merge": ("2", "100"),
    "commit.root.max-data-files": ("1", "5"),
    "write.delete.format.default": FORMATS,
}
Step = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Start:
    """What a history begins with."""

    version: int
    properties: dict[str, str]
    partition_by: tuple[str, ...] = ()

    @staticmethod
    def drawn(seed: int) -> Start:
        """A version, a format and all the rest; a seed always gives the same."""
        rng = random.Random(seed)
        properties = {"write.format.default": FORMATS[seed % 3]}
        properties |= {name: rng.choice(values) for name, values in SETTINGS.items() if rng.random() < 0.4}
        properties["write.format.default"] = FORMATS[seed % 3]
        fields = tuple(rng.sample(FIELDS[:4], rng.choice((0, 0, 1, 1, 2))))
        fields = fields if not {"city", "truncate(2, city)"} <= set(fields) else fields[:1]
        return Start(version=1 + seed // 3 % 4, properties=properties, partition_by=fields)


class RowModel:
    """A table, and what it must hold."""

    def __init__(self, start: Start, engine: HistoryEngine | None = None) -> None:
        self.start = start
        self.engine = InProcess() if engine is None else engine
        self._keys = count(1)
        self._tokens = count(1)
        self._uids = count()
        self.taken = count()
        self.columns = self._first_columns()
        self.freed: list[str] = []  # names that columns had before
        self.rows: dict[str, list[Row]] = {MAIN: []}
        self.side_from = 0
        self.expected: dict[int, list[str]] = {}  # rows by snapshot, as the schema of its time shows them
        self.states: list[tuple[int, list[Row]]] = []  # snapshots of main that it can roll back to, with their rows
        self.row_ids: dict[Value, object] = {}  # by token, for ever
        self.exact = start.version >= 3  # whether rows had ids from the beginning
        self.counted = True  # whether it is known how many rows of each file are deleted: not by equality deletes
        self.done: list[Step] = []
        self._open()

    def _first_columns(self) -> Columns:
        address = (self._column("a", plain("int")), self._column("b", plain("string")))
        inner = Kind(name="struct", fields=(self._column("p", plain("float")), self._column("q", plain("date"))))
        return (
            self._column("uid", plain("bigint")),
            self._column("id", plain("int")),
            self._column("part", plain("int")),
            self._column("city", plain("string")),
            self._column("at", plain("timestamp_ntz")),
            self._column("amount", plain("double")),
            self._column("price", plain("decimal(9,2)")),
            self._column("s", Kind(name="struct", fields=address)),
            self._column("l", Kind(name="list", inside=inner)),
            self._column("m", Kind(name="map", inside=plain("int"))),
        )

    def new_column(self, kind: Kind, default: Value = None) -> Column:
        return self._column(f"c{next(self._keys)}", kind, default)

    def _column(self, name: str, kind: Kind, default: Value = None) -> Column:
        return Column(key=next(self._keys), name=name, kind=kind, initial=default, default=default)

    def _open(self) -> None:
        self.io = self.engine.io
        catalog = MemoryCatalog("test", warehouse=self.engine.warehouse)
        catalog.create_namespace("db")
        schema = parse_ddl(", ".join(f"{column.name} {column.kind}" for column in self.columns))
        metadata = new_metadata(
            location=f"{self.engine.warehouse}/t",
            schema=schema,
            spec=partition_spec(self.start.partition_by, schema),
            properties=self.start.properties,
            format_version=self.start.version,
        )
        create_table(catalog, NAME, self.io, metadata)
        bits, clock = random.Random(1), count(1_000_000)
        self.env = replace(
            SYSTEM,
            sleep=lambda seconds: None,
            now_ms=lambda: next(clock),
            new_uuid=lambda: UUID(int=bits.getrandbits(128), version=4),
        )
        self.table = Table(TablePointer(catalog, NAME, self.io, cache=ManifestCache(32 * MIB)), self.env)

    # -- running

    def run(self, steps: Sequence[Step], *, check_each: bool = True) -> None:
        """Do the steps, checking after each or after the last; a failure says how to repeat it."""
        for place, (verb, number) in enumerate(steps, 1):
            self.done.append((verb, number))
            try:
                rng = random.Random(number)
                self.do(verb, rng)
                if check_each or place == len(steps):
                    self.check(rng)
            except BaseException as error:
                error.add_note(f"RowHistory({self.start}).run({self.done})")
                raise

    def finish(self) -> None:
        """Check every snapshot again."""
        try:
            for snapshot in self.table.snapshots:
                if snapshot.snapshot_id != self.table.metadata.current_snapshot_id:
                    found = in_order(self.engine.rows(self.table.at(snapshot=snapshot.snapshot_id).scan()))
                    assert found == self.expected[snapshot.snapshot_id], f"snapshot {snapshot.snapshot_id}"
            findings = [*check_table(self.table, rows=True), *nonconformities(self.table)]
            assert findings == [], "; ".join(map(str, findings[:5]))
        except BaseException as error:
            error.add_note(f"RowHistory({self.start}).run({self.done}), at the end")
            raise

    def do(self, verb: str, rng: random.Random) -> None:
        """Carry out a step."""
        raise NotImplementedError(verb)

    # -- what must hold

    def shown(self, rows: Iterable[Row], columns: Columns | None = None) -> list[str]:
        """Rows as the present schema, or some of its columns, show them."""
        return in_order([shown(row, self.columns if columns is None else columns) for row in rows])

    def head(self, branch: str = MAIN) -> int | None:
        ref = self.table.metadata.refs.get(branch)
        return None if ref is None else ref.snapshot_id

    def settle(self, branch: str) -> None:
        """Note what the head of a branch holds, and when its newest rows came."""
        head = self.head(branch)
        if head is None:
            return
        self.expected.setdefault(head, self.shown(self.rows[branch]))
        number = self.table.metadata.snapshot(head).sequence_number
        for row in self.rows[branch]:
            row.setdefault(CHANGED, number)
        if branch == MAIN and (len(self.states) == 0 or self.states[-1][0] != head):
            self.states.append((head, self.rows[branch]))

    def check(self, rng: random.Random) -> None:
        rows = self.rows[MAIN]
        scan = self.table.scan()
        assert in_order(self.engine.rows(scan)) == self.shown(rows), "rows of main"
        assert scan.count() == len(rows), "count"
        condition = draw_condition(rng, self.columns)
        picked = tuple(rng.sample(self.columns, rng.randint(1, len(self.columns))))
        filtered = self.table.scan(condition.text, columns=[column.name for column in picked])
        matching = [row for row in rows if condition.holds(row)]
        assert in_order(self.engine.rows(filtered)) == self.shown(matching, picked), f"rows where {condition.text}"
        assert self.table.scan(condition.text).count() == len(matching), f"count where {condition.text}"
        every = list(self.table.schema.by_name)
        chosen = rng.sample(every, rng.randint(1, min(6, len(every))))
        nested = in_order(self.table.scan(condition.text, columns=chosen).to_arrow().to_pylist())
        assert nested == self.shown(matching, selected(self.columns, chosen)), f"{chosen} where {condition.text}"
        if SIDE in self.rows and (head := self.head(SIDE)) is not None and head != self.head():
            found = in_order(self.engine.rows(self.table.at(snapshot=head).scan()))
            assert found == self.expected[head], "rows of the branch"
        self._check_lineage()

    def _check_lineage(self) -> None:
        metadata = self.table.metadata
        head = metadata.current_snapshot
        if head is None or head.first_row_id is None:
            return
        names = ["uid", ROW_ID.name, LAST_UPDATED.name]
        found = {row["uid"]: row for row in self.engine.rows(self.table.scan(columns=names))}
        ids = [row[ROW_ID.name] for row in found.values()]
        assert None not in ids, "a row has no id"
        assert len(set(ids)) == len(ids), "two rows have the same id"
        if not self.exact:
            return
        for row in self.rows[MAIN]:
            stored = found[row[self.columns_by_name["uid"].key]]
            token = row[TOKEN]
            assert self.row_ids.setdefault(token, stored[names[1]]) == stored[names[1]], (
                f"row {stored['uid']} has a new id"
            )
            assert stored[names[2]] == row[CHANGED], f"row {stored['uid']} was changed at {row[CHANGED]}: {stored}"

    @property
    def columns_by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    # -- rows

    def branch_for(self, rng: random.Random) -> str:
        return SIDE if SIDE in self.rows and rng.random() < 0.4 else MAIN

    def new_rows(self, rng: random.Random, most: int, least: int = 1) -> tuple[list[Row], pa.Table]:
        """New rows, and the same as a table; it may lack columns, which then have their default."""
        columns = self.columns_by_name
        optional = [name for name in columns if name not in CORE]
        lacking = set(rng.sample(optional, min(len(optional), rng.choice((0, 0, 0, 1, 3)))))
        rows = []
        for _ in range(rng.randint(least, most)):
            row: Row = {TOKEN: next(self._tokens)}
            for column in self.columns:
                row[column.key] = column.default if column.name in lacking else draw(rng, column.kind)
            row[columns["uid"].key] = next(self._uids)
            row[columns["id"].key] = rng.randrange(8) if rng.random() < 0.9 else None
            row[columns["part"].key] = rng.randrange(3)
            rows.append(row)
        table = self.arrow(rows)
        return rows, table.drop_columns(sorted(lacking))

    def arrow(self, rows: list[Row]) -> pa.Table:
        shown_rows = [shown(row, self.columns) for row in rows]
        return pa.Table.from_pylist(shown_rows, schema=arrow_schema(self.table.schema))

    def put(self, branch: str, rows: list[Row]) -> None:
        self.rows[branch] = rows
        self.settle(branch)

    def condition(self, rng: random.Random) -> Condition:
        if rng.random() < 0.3:
            number, name = rng.randrange(8), rng.choice(("id", "part"))
            column = self.columns_by_name[name]
            return Condition(text=f"{name} = {number}", of=lambda row: value_in(row, column) == number)
        return draw_condition(rng, self.columns)

    def end_branch(self) -> None:
        if SIDE in self.rows:
            self.table.remove_ref(SIDE)
            del self.rows[SIDE]

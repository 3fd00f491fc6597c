"""The model of a table that two programs change in turns: its rows, and in version 3 their ids."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterable
from itertools import count

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from icefloe.errors import InputError
from icefloe.table.catalog import Catalog
from icefloe.table.scan import Scan
from interop.plain_rows import Row, as_texts
from interop.turns import CATALOG, DDL, FIELDS, MAIN, SIDE, Iceberg, Icefloe, Program

CITIES = ("Oslo", "Rome", None, "", "São Paulo")
TYPES = {
    "id": pa.int64(),
    "city": pa.string(),
    "n": pa.int32(),
    "at": pa.timestamp("us", tz="UTC"),
    "tags": pa.list_(pa.string()),
}
LINEAGE = ("_row_id", "_last_updated_sequence_number")
MODES = ("copy-on-write", "merge-on-read")
FORMATS = ("parquet", "orc", "avro")
SETTINGS = {
    "write.format.default": FORMATS,
    "write.delete.granularity": ("file", "partition"),
    "write.distribution-mode": ("none", "hash", "range"),
    **{f"write.{kind}.mode": MODES for kind in ("delete", "update", "merge")},
}
Test = Callable[[Row], bool]
Step = tuple[str, str]  # the program and the verb


class Turns:
    """A table, and what it must hold."""

    def __init__(self, catalog: Catalog, spark: SparkSession, name: str, version: int, seed: int) -> None:
        rng = random.Random(seed)
        properties = {"format-version": str(version)}
        properties |= {setting: rng.choice(SETTINGS[setting]) for setting in self._settings(version)}
        file_format = FORMATS[seed // len(FORMATS) % len(FORMATS)]
        properties["write.format.default"] = file_format
        # Spark's Parquet writer writes tables without lists; files with lists, and those of other formats, tasks do.
        self._types = {name: type_ for name, type_ in TYPES.items() if file_format != "parquet" or name != "tags"}
        columns = ", ".join(f"{name} {DDL[name]}" for name in self._types)
        ours, field = rng.random() < 0.5, rng.choice((None, *FIELDS))
        if ours:
            partitions = [] if field is None else [field]
            catalog.create_table(name, schema=columns, partition_by=partitions, properties=properties)
        else:
            partitioned = "" if field is None else f"PARTITIONED BY ({FIELDS[field]})"
            texts = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
            spark.sql(f"CREATE TABLE {CATALOG}.{name} ({columns}) USING iceberg {partitioned} TBLPROPERTIES ({texts})")
        self.done = [f"{'icefloe' if ours else 'Iceberg'} creates {properties} by {field}"]
        self.table = catalog.load_table(name)
        self.name = name
        self._spark = spark
        self._programs: dict[str, Program] = {"icefloe": Icefloe(self.table, spark), "Iceberg": Iceberg(name, spark)}
        self._rng = rng
        self._ids = count()
        self._names = count()
        self._rows: dict[str, dict[int, Row]] = {MAIN: {}}
        self._changed: set[int] = set()  # ids of rows of main that a step gave new values
        self._replaced: set[int] = set()  # ids of those that also get a new row id
        self._lineage: dict[int, tuple[int, int]] = {}

    @staticmethod
    def _settings(version: int) -> list[str]:
        """Version 1 has no delete files: Apache Iceberg fails in merge-on-read instead of rewriting the files."""
        return [setting for setting in SETTINGS if version > 1 or not setting.endswith(".mode")]

    def run(self, steps: Iterable[Step]) -> None:
        """Take steps, and compare after each."""
        for program, verb in steps:
            self.done.append(f"{program}: {verb}")
            self._changed, self._replaced = set(), set()
            try:
                self.table.refresh()
                STEPS[verb](self, self._programs[program])
                self._check()
            except BaseException as error:
                error.add_note("\n".join(self.done))
                raise
        print("\n".join(self.done))

    def _say(self, text: object) -> None:
        self.done[-1] += f" {text}"

    # -- steps

    def append(self, program: Program) -> None:
        branch, rows = self._branch(), self._new_rows(6)
        program.append(self._frame(rows), branch)
        self._put(branch, rows, replaced=True)

    def delete(self, program: Program) -> None:
        branch = self._branch()
        text, test = self._condition()
        program.delete(text, branch)
        self._rows[branch] = {id_: row for id_, row in self._rows[branch].items() if not test(row)}

    def update(self, program: Program) -> None:
        branch = self._branch()
        text, test = self._condition()
        program.update({"n": "n + 1", "city": "upper(city)"}, text, branch)
        self._put(branch, [_incremented(row) for row in self._rows[branch].values() if test(row)])

    def upsert(self, program: Program) -> None:
        branch = self._branch()
        rows = self._keyed_rows(branch)
        program.upsert(self._frame(rows), branch)
        self._put(branch, rows)

    def upsert_equal(self, program: Program) -> None:
        """By equality deletes, written in this process; Spark's SQL has none."""
        branch = self._branch()
        rows = self._keyed_rows(branch)
        if self.table.format_version == 1:
            return
        try:
            self.table.upsert(self._arrow(rows), on=["id"], deletes="equality", branch=branch)
        except InputError as error:
            if "do not determine the partition" not in str(error):
                raise
            return
        self._put(branch, rows, replaced=True)

    def merge(self, program: Program) -> None:
        branch = self._branch()
        sources = [(row["id"], self._rng.choice("DUI"), self._rng.randrange(9)) for row in self._keyed_rows(branch)]
        values = ", ".join(f"({id_}L, '{op}', {n})" for id_, op, n in sources)
        self._say(values)
        program.merge(self._spark.sql(f"SELECT * FROM VALUES {values} AS v(id, op, n)"), branch)
        rows = dict(self._rows[branch])
        for id_, op, n in sources:
            old = rows.pop(id_, None)
            if op == "D":
                continue
            if old is None:
                new = dict.fromkeys(self._types) | {"id": id_, "city": op, "n": n}
            else:
                new = old | {"n": n, "city": None if old["city"] is None else f"{old['city']}{op}"}
            rows[id_] = new
            if branch == MAIN:
                self._changed.add(id_)
        self._rows[branch] = rows

    def overwrite(self, program: Program) -> None:
        branch = self._branch()
        text, test = self._condition()
        rows = self._new_rows(3)
        program.overwrite(self._frame(rows), text, branch)
        self._rows[branch] = {id_: row for id_, row in self._rows[branch].items() if not test(row)}
        self._put(branch, rows, replaced=True)

    def branch(self, program: Program) -> None:
        """Begin a branch, or publish it; main is not changed while there is one."""
        if SIDE not in self._rows:
            program.create_branch()
            self._rows[SIDE] = self._rows[MAIN]
            return
        program.publish_branch()
        self._rows[MAIN] = self._rows.pop(SIDE)
        self._lineage = {}

    def columns(self, program: Program) -> None:
        """Add a column, or rename one that was added."""
        name, added = f"c{next(self._names)}", [name for name in self._types if name not in TYPES]
        if len(added) == 0 or self._rng.random() < 0.5:
            program.add_column(name)
            self._types[name] = pa.int32()
            self._each_row(lambda row: row | {name: None})
            return
        old = self._rng.choice(added)
        program.rename_column(old, name)
        self._types = {name if key == old else key: type_ for key, type_ in self._types.items()}
        self._each_row(lambda row: {name if key == old else key: value for key, value in row.items()})

    def partitioning(self, program: Program) -> None:
        taken = [self.table.schema.by_id[field.source_id].name for field in self.table.spec.fields]
        free = [field for field in FIELDS if not any(name in field.split("(")[-1] for name in taken)]
        if len(free) > 0:
            field = self._rng.choice(free)
            self._say(field)
            program.partition_by(field)

    def sort(self, program: Program) -> None:
        program.sort()

    def upgrade(self, program: Program) -> None:
        """To the next version, up to 3, which is the last one of Apache Iceberg."""
        if self.table.format_version < 3:
            program.upgrade(self.table.format_version + 1)
            self._lineage = {}

    def rewrite(self, program: Program) -> None:
        program.rewrite()

    def setting(self, program: Program) -> None:
        name = self._rng.choice(self._settings(self.table.format_version))
        value = self._rng.choice(SETTINGS[name])
        self._say(f"{name} = {value}")
        program.set_property(name, value)

    # -- rows

    def _branch(self) -> str:
        return SIDE if SIDE in self._rows else MAIN

    def _new_rows(self, most: int) -> list[Row]:
        return [self._new_row(next(self._ids)) for _ in range(self._rng.randint(1, most))]

    def _keyed_rows(self, branch: str) -> list[Row]:
        """Rows with keys that the table has, and with new ones."""
        known = list(self._rows[branch])
        keys = [*self._rng.sample(known, min(len(known), 3)), next(self._ids)]
        return [self._new_row(key) for key in keys]

    def _new_row(self, id_: int) -> Row:
        rng = self._rng
        row = {
            "id": id_,
            "city": rng.choice(CITIES),
            "n": rng.choice((None, *range(5))),
            "at": rng.choice((None, dt.datetime(1969, 12, 31, 23, rng.randrange(60), tzinfo=dt.UTC), MOMENT)),
            "tags": rng.choice((None, [], ["a", None])),
        }
        row |= {name: rng.choice((None, 1)) for name in self._types if name not in TYPES}
        return {name: row[name] for name in self._types}

    def _arrow(self, rows: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(rows, pa.schema(list(self._types.items())))

    def _frame(self, rows: list[Row]) -> DataFrame:
        return self._spark.createDataFrame(self._arrow(rows))

    def _put(self, branch: str, rows: list[Row], *, replaced: bool = False) -> None:
        new = {int(str(row["id"])): row for row in rows}
        self._rows[branch] = self._rows[branch] | new
        if branch == MAIN:
            self._changed |= set(new)
            self._replaced |= set(new) if replaced else set()

    def _each_row(self, change: Callable[[Row], Row]) -> None:
        for branch, rows in self._rows.items():
            self._rows[branch] = {id_: change(row) for id_, row in rows.items()}

    def _condition(self) -> tuple[str, Test]:
        number = self._rng.randrange(5)
        tests: list[tuple[str, Test]] = [
            (f"id % 5 = {number}", lambda row: int(str(row["id"])) % 5 == number),
            ("city = 'Oslo'", lambda row: row["city"] == "Oslo"),
            (f"n > {number}", lambda row: row["n"] is not None and int(str(row["n"])) > number),
            ("n is null and id > 2", lambda row: row["n"] is None and int(str(row["id"])) > 2),
            ("length(city) = 4", lambda row: row["city"] is not None and len(str(row["city"])) == 4),
            ("at < timestamp '1970-01-01 00:00:00Z'", lambda row: row["at"] is not None and row["at"] != MOMENT),
        ]
        chosen = self._rng.choice(tests)
        self._say(chosen[0])
        return chosen

    # -- what must hold

    def _check(self) -> None:
        self.table.refresh()
        head = self.table.metadata.current_snapshot
        traced = head is not None and head.first_row_id is not None  # ids begin with the first commit in version 3
        names = [*self._types, *(LINEAGE if traced else ())]
        frame = self._spark.table(f"{CATALOG}.{self.name}").select(*names)
        read = {"Iceberg": _rows(frame), "Spark": _rows(self.table.scan(columns=names).to_spark(self._spark))}
        read["Arrow"] = self.table.scan(columns=names).to_arrow().to_pylist()
        expected = as_texts(self._rows[MAIN].values())
        for reader, rows in read.items():
            assert as_texts({name: row[name] for name in self._types} for row in rows) == expected, f"rows by {reader}"
        if traced:
            assert as_texts(read["Spark"]) == as_texts(read["Arrow"]) == as_texts(read["Iceberg"]), "lineage"
            self._check_lineage(read["Iceberg"])
        if SIDE in self._rows:
            expected = as_texts(self._rows[SIDE].values())
            side = self._spark.sql(f"SELECT * FROM {CATALOG}.{self.name} VERSION AS OF '{SIDE}'")
            assert as_texts(_rows(side)) == expected, "the branch by Iceberg"
            assert as_texts(_rows(self._side().to_spark(self._spark))) == expected, "the branch by Spark"
            assert as_texts(self._side().to_arrow().to_pylist()) == expected, "the branch by Arrow"

    def _side(self) -> Scan:
        return self.table.at(branch=SIDE).scan()

    def _check_lineage(self, rows: list[Row]) -> None:
        """Rows keep their ids unless they are replaced; those with new values have the new sequence number."""
        found = {row["id"]: (row[LINEAGE[0]], row[LINEAGE[1]]) for row in rows}
        assert len({row_id for row_id, _ in found.values()} - {None}) == len(found), "row ids"
        newest = self.table.metadata.current_snapshot.sequence_number
        for id_, (row_id, number) in found.items():
            if id_ in self._changed:
                assert number == newest, f"row {id_}: {number} instead of {newest}"
            if id_ in self._lineage and id_ not in self._replaced:
                old = self._lineage[id_]
                assert row_id == old[0], f"row {id_} has the id {row_id} instead of {old[0]}"
                assert id_ in self._changed or number == old[1], f"row {id_} was not changed"
        self._lineage = found


MOMENT = dt.datetime(2026, 11, 17, 5, 30, 0, 1, tzinfo=dt.UTC)
STEPS: dict[str, Callable[[Turns, Program], None]] = {
    "append": Turns.append,
    "delete": Turns.delete,
    "update": Turns.update,
    "merge": Turns.merge,
    "upsert": Turns.upsert,
    "upsert by equality deletes": Turns.upsert_equal,
    "overwrite": Turns.overwrite,
    "branch": Turns.branch,
    "columns": Turns.columns,
    "partitioning": Turns.partitioning,
    "sort": Turns.sort,
    "upgrade": Turns.upgrade,
    "rewrite": Turns.rewrite,
    "setting": Turns.setting,
}
WEIGHTS = {"append": 2, "delete": 3, "update": 3, "merge": 3, "upsert": 2, "setting": 2}
DECK = [(program, verb) for program in ("icefloe", "Iceberg") for verb in STEPS for _ in range(WEIGHTS.get(verb, 1))]


def steps_of(seed: int, length: int) -> list[Step]:
    """The steps of a history: an append, then steps of a shuffled deck, which goes on from one seed to the next."""
    rng, deck = random.Random(0), list[Step]()
    while len(deck) < (seed + 1) * length:
        deck += rng.sample(DECK, len(DECK))
    return [(rng.choice(DECK)[0], "append"), *deck[seed * length : (seed + 1) * length]]


def _rows(frame: DataFrame) -> list[Row]:
    rows: list[Row] = frame.toArrow().to_pylist()
    return rows


def _incremented(row: Row) -> Row:
    n, city = row["n"], row["city"]
    return row | {
        "n": None if n is None else int(str(n)) + 1,
        "city": None if city is None else str(city).upper(),
    }

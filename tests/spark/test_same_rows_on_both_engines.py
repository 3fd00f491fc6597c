"""Random tables, filters and time zones: Spark and Arrow return the same rows with the same values."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import And, Expr, Not, Op, Or, Predicate
from icefloe.expr.text.spark_sql import to_sql
from icefloe.table.table import Table
from support.on_spark import ids_of_all
from support.tables import new_catalog

pytestmark = pytest.mark.spark
EXAMPLES, GROUPS = 5, 20  # examples in a group; three groups run in ``make test``
ZONES = ("UTC", "America/New_York", "Asia/Kathmandu")
FLOATS = (0.0, -0.0, 1.0, -1.5, 1e30, float("nan"), float("inf"), float("-inf"), 0.5)
TEXTS = ("", "a", "A", "ab", "a\0b", "a\nb", "ü", "\U0001f600", "it's", "back\\slash", "a%", "z" * 40)
EPOCH = dt.datetime(1970, 1, 1)
COMPARISONS = (Op.LT, Op.LE, Op.GT, Op.GE, Op.EQ, Op.NE)
Draw = Callable[[random.Random], Any]


def _moment(draw: random.Random) -> dt.datetime:
    seconds = draw.choice((-62_135_596_800, -12_219_292_800, -2_208_988_800, -1, 0, 1_710_037_800, 253_402_300_799))
    shift = dt.timedelta(hours=draw.randint(0, 5), microseconds=draw.choice((0, 1, 999_999)))
    return EPOCH + dt.timedelta(seconds=seconds) + (shift if seconds < 253_000_000_000 else -shift)


VALUES: dict[str, Draw] = {
    "boolean": lambda draw: draw.random() < 0.5,
    "int": lambda draw: draw.choice((-(2**31), -1, 0, 1, 7, 2**31 - 1)),
    "bigint": lambda draw: draw.choice((-(2**63), -1, 0, 1, 7, 2**40, 2**63 - 1)),
    "float": lambda draw: draw.choice(FLOATS),
    "double": lambda draw: draw.choice((*FLOATS, 0.1)),
    "decimal(9, 2)": lambda draw: Decimal(draw.choice((-999_999_999, -150, 0, 1, 150, 999_999_999))).scaleb(-2),
    "decimal(38, 10)": lambda draw: Decimal(draw.choice((-(10**30), -1, 0, 1, 10**30))).scaleb(-10),
    "date": lambda draw: _moment(draw).date(),
    "timestamp_ntz": _moment,
    "timestamp": lambda draw: _moment(draw).replace(tzinfo=dt.UTC),
    "string": lambda draw: draw.choice(TEXTS),
    "binary": lambda draw: draw.choice((b"", b"\0", b"\xff\0", b"abc")),
}


@pytest.fixture
def zones(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    former = spark.conf.get("spark.sql.session.timeZone")
    yield lambda zone: spark.conf.set("spark.sql.session.timeZone", zone)
    spark.conf.set("spark.sql.session.timeZone", former)


class Case:
    """A table of random columns and rows, and random filters on it."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.draw = random.Random(seed)
        types = self.draw.sample(sorted(VALUES), 5)
        self.columns = {f"c{number}": type_ for number, type_ in enumerate(types)}
        inner = {"a": self.draw.choice(sorted(VALUES)), "b": self.draw.choice(("double", "string"))}
        self.paths = {**self.columns, **{f"s.{name}": type_ for name, type_ in inner.items()}}
        texts = [*(f"{name} {type_}" for name, type_ in self.columns.items())]
        texts.append(f"s struct<{', '.join(f'{name}: {type_}' for name, type_ in inner.items())}>")
        self.inner = inner
        partition = [f"bucket(2, {name})" for name, type_ in self.columns.items() if type_ in ("bigint", "string")][:1]
        self.table = new_catalog(folder).create_table(
            "db.t",
            schema=f"id bigint, {', '.join(texts)}",
            partition_by=partition if self.draw.random() < 0.3 else [],
            format_version=self.draw.choice((2, 3, 4)),
        )
        self._fill()

    def _fill(self) -> None:
        next_id = 0
        for _ in range(self.draw.randint(1, 4)):
            count = self.draw.randint(1, 30)
            # Few values per file, so that bounds and dictionaries exclude others.
            self.pool = {path: [self._value(type_) for _ in range(3)] for path, type_ in self.paths.items()}
            rows = [self._row(id_) for id_ in range(next_id, next_id + count)]
            self.table.append(pa.Table.from_pylist(rows, self.table.scan().to_arrow().schema))
            next_id += count
            if self.draw.random() < 0.5:
                self.table.delete(f"id in ({', '.join(str(self.draw.randrange(next_id)) for _ in range(3))})")

    def _row(self, id_: int) -> dict[str, Any]:
        row = {"id": id_, **{name: self.draw.choice(self.pool[name]) for name in self.columns}}
        inner = {name: self.draw.choice(self.pool[f"s.{name}"]) for name in self.inner}
        return {**row, "s": None if self.draw.random() < 0.1 else inner}

    def _value(self, type_: str) -> Any:
        return None if self.draw.random() < 0.15 else VALUES[type_](self.draw)

    def filter(self, depth: int = 2) -> Expr:
        kind = self.draw.random()
        if depth > 0 and kind < 0.25:
            return And((self.filter(depth - 1), self.filter(depth - 1)))
        if depth > 0 and kind < 0.5:
            return Or((self.filter(depth - 1), self.filter(depth - 1)))
        if depth > 0 and kind < 0.6:
            return Not(self.filter(depth - 1))
        path = self.draw.choice(sorted(self.paths))
        return self._predicate(path, self.paths[path])

    def _predicate(self, path: str, type_: str) -> Expr:
        choices: list[Op] = [Op.IS_NULL, Op.NOT_NULL, Op.IN, Op.NOT_IN, *COMPARISONS]
        if type_ in ("float", "double"):
            choices += [Op.IS_NAN, Op.NOT_NAN]
        if type_ == "string":
            choices += [Op.STARTS_WITH, Op.NOT_STARTS_WITH]
        op = self.draw.choice(choices)
        if op in (Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN):
            return Predicate(op, path)
        count = self.draw.choice((1, 2, 12)) if op in (Op.IN, Op.NOT_IN) else 1
        return Predicate(op, path, tuple(VALUES[type_](self.draw) for _ in range(count)))


def comparable(rows: pa.Table) -> list[str]:
    """Rows as texts that also distinguish -0.0 from 0.0, in the order of their ids."""
    is_null = rows["s"].is_null()
    flat = rows.flatten().append_column("no struct", is_null)
    columns = [_comparable(flat[name]).to_pylist() for name in flat.column_names]
    return [repr(row) for row in sorted(zip(*columns, strict=True), key=lambda row: row[0])]


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date(column.type) else column


def check(spark: SparkSession, table: Table, filters: list[Expr]) -> None:
    whole = table.scan().to_spark(spark)
    assert comparable(whole.toArrow()) == comparable(table.scan().to_arrow())
    expected = [sorted(table.scan(filter_).to_arrow()["id"].to_pylist()) for filter_ in filters]
    scans = [table.scan(filter_, columns=["id"]).to_spark(spark) for filter_ in filters]
    later = [whole.where(F.expr(to_sql(bind(filter_, table.schema)))) for filter_ in filters]
    found = ids_of_all([*scans, *later])
    for place, filter_ in enumerate(filters):
        assert found[place] == expected[place], f"scan: {filter_}"
        assert found[place + len(filters)] == expected[place], f"where: {filter_}"


@pytest.mark.parametrize("group", range(GROUPS))
def test_both_engines_return_the_same_rows(
    spark: SparkSession, zones: Callable[[str], None], tmp_path: Path, group: int
) -> None:
    for seed in range(group * EXAMPLES, (group + 1) * EXAMPLES):
        folder = tmp_path / str(seed)
        folder.mkdir()
        case = Case(seed, folder)
        zones(ZONES[seed % len(ZONES)])
        check(spark, case.table, [case.filter() for _ in range(4)])

"""Bench ``lookups``: one row of millions, and a few columns of thousands.

All contenders read the same files in one process, in turns: plain pyarrow.dataset and polars as files, icefloe and
pyiceberg as the tables that icefloe wrote. The row is found by a column that is sorted in the file, of which bounds
tell, and by one that is not. The wide table has one file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from pyiceberg.catalog.sql import SqlCatalog

import icefloe
from arrow_rows import lineitem
from measure import Clock, Sample, median, ratio, spread
from report import Table

TITLE = "lookups: one row of millions, and a few columns of thousands"
CONTENDERS = ("icefloe", "pyarrow", "pyiceberg", "polars")
WIDE_ROWS = 2_000
PART = "l_partkey"  # the column that is not sorted, of which one value is made the only one of its kind
RARE = -7


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much to do: the rows of the long table, the columns of the wide one, and how often each has its turn."""

    rows: int = 5_000_000
    columns: int = 5_000
    turns: int = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to read of which table: columns, none for all, and the value of one."""

    table: str
    columns: tuple[str, ...] | None = None
    column: str | None = None
    value: int = 0


def questions(sizes: Sizes) -> dict[str, Question]:
    key = sizes.rows // 4 // 2
    return {
        "one order, by its sorted key": Question(table="long", column="l_orderkey", value=key),
        "one row, by a key that is not sorted": Question(table="long", column=PART, value=RARE),
        f"1 of {sizes.columns:,} columns": Question(table="wide", columns=("c77",)),
        f"1 of {sizes.columns:,} columns, filtered": Question(table="wide", columns=("c77",), column="c5", value=99),
        f"all of {sizes.columns:,} columns": Question(table="wide"),
    }


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Ask every question of every contender, in turns; samples by question and contender."""
    samples: dict[str, dict[str, list[Sample]]] = {}
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        tell(f"lookups: writing {sizes.rows:,} rows, and {sizes.columns:,} columns")
        own, peer, files = _tables(folder, sizes)
        for what, question in questions(sizes).items():
            tell(f"lookups: {what}")
            asked = {
                "icefloe": _icefloe(own[question.table], question),
                "pyarrow": _pyarrow(files[question.table], question),
                "pyiceberg": _pyiceberg(peer[question.table], question),
                "polars": _polars(files[question.table], question),
            }
            samples[what] = {name: [] for name in CONTENDERS}
            for turn in range(sizes.turns + 1):
                found = {name: _timed(read) for name, read in asked.items()}
                if len({rows for rows, _ in found.values()}) > 1:
                    raise RuntimeError(f"{what}: the contenders do not find the same rows: {found}")
                for name, (_, sample) in found.items() if turn > 0 else ():  # the first turn warms caches
                    samples[what][name].append({key: round(value, 2) for key, value in sample.items()})
    return {"sizes": asdict(sizes), "samples": samples}


def _tables(folder: str, sizes: Sizes) -> tuple[dict[str, Any], dict[str, Any], dict[str, list[str]]]:
    place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/wh"}
    cat, other = icefloe.catalog("bench", **place), SqlCatalog("bench", **place)
    long = lineitem(0, sizes.rows)
    parts = long[PART].to_numpy().copy()
    parts[sizes.rows // 3] = RARE
    long = long.set_column(long.schema.get_field_index(PART), PART, pa.array(parts))
    wide = pa.table({f"c{n}": np.arange(WIDE_ROWS) + n for n in range(sizes.columns)})
    own: dict[str, Any] = {}
    for name, rows in (("long", long), ("wide", wide)):
        own[name] = cat.create_table(f"db.{name}", schema=rows.schema)
        own[name].append(rows)
    peer = {name: other.load_table(f"db.{name}") for name in own}
    files = {
        name: [each.removeprefix("file://") for each in table.scan().plan().tasks["location"].to_pylist()]
        for name, table in own.items()
    }
    return own, peer, files


def _icefloe(table: Any, question: Question) -> Callable[[], Any]:
    where = None if question.column is None else f"{question.column} = {question.value}"
    return lambda: table.scan(where, columns=question.columns).to_arrow()


def _pyarrow(files: list[str], question: Question) -> Callable[[], Any]:
    columns = None if question.columns is None else list(question.columns)
    filter_ = None if question.column is None else ds.field(question.column) == question.value
    return lambda: ds.dataset(files).to_table(columns=columns, filter=filter_)


def _pyiceberg(table: Any, question: Question) -> Callable[[], Any]:
    where = {} if question.column is None else {"row_filter": f"{question.column} = {question.value}"}
    return lambda: table.scan(selected_fields=question.columns or ("*",), **where).to_arrow()


def _polars(files: list[str], question: Question) -> Callable[[], Any]:
    def read() -> Any:
        rows = pl.scan_parquet(files)
        if question.column is not None:
            rows = rows.filter(pl.col(question.column) == question.value)
        return (rows if question.columns is None else rows.select(question.columns)).collect()

    return read


def _timed(read: Callable[[], Any]) -> tuple[int, Sample]:
    start = Clock.now()
    rows = len(read())
    return rows, start.until(Clock.now())


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Times, and how many times as fast icefloe is."""
    sizes, samples = result["sizes"], result["samples"]
    title = f"Wall ms: {sizes['rows']:,} rows of 16 columns, and {WIDE_ROWS:,} of {sizes['columns']:,}"
    times = [[what, *(spread(found[name], "wall_ms") for name in CONTENDERS)] for what, found in samples.items()]
    ratios = [
        [what, *(ratio(median(found[peer], key), median(found["icefloe"], key)) for key in KEYS for peer in PEERS)]
        for what, found in samples.items()
    ]
    columns = ("", *PEERS, *(f"{name}, CPU" for name in PEERS))
    return [
        Table(title=f"{title}, median of {sizes['turns']} turns", columns=("", *CONTENDERS), rows=times),
        Table(title="Throughput of icefloe as a multiple: above 1, icefloe is faster", columns=columns, rows=ratios),
    ]


PEERS = CONTENDERS[1:]
KEYS = ("wall_ms", "cpu_ms")

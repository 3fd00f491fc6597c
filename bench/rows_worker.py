"""The process of one contender of bench ``rows``: ``rows_worker.py <contender> <folder> <question> <deleted>``."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import Clock, peak_mb

PARTS = 2000
ORDERS = (1_000_000, 1_001_000)
COLUMNS = ("l_orderkey", "l_extendedprice", "l_shipdate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to read: columns, none for all, and a range of a column's values."""

    columns: tuple[str, ...] | None = None
    column: str | None = None
    low: int = 0
    high: int = 0

    @property
    def sql(self) -> str | None:
        """The filter as text."""
        return None if self.column is None else f"{self.column} >= {self.low} and {self.column} < {self.high}"


QUESTIONS = {
    "all columns": Question(),
    "3 of 16 columns": Question(columns=COLUMNS),
    "1 % filter": Question(column="l_partkey", low=0, high=PARTS),
    "one order in a thousand": Question(column="l_orderkey", low=ORDERS[0], high=ORDERS[1]),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the table is, and which snapshot of it to read."""

    folder: Path
    metadata: str
    files: list[str]
    snapshot: int | None


def read_icefloe(place: Place, question: Question) -> Callable[[], Any]:
    library = importlib.import_module("icefloe")
    cat = library.catalog("bench", uri=f"sqlite:///{place.folder}/catalog.db", warehouse=f"file://{place.folder}/wh")
    table = cat.load_table("db.lineitem")
    at = table if place.snapshot is None else table.at(snapshot=place.snapshot)
    return lambda: at.scan(question.sql, columns=question.columns).to_arrow()


def read_pyarrow(place: Place, question: Question) -> Callable[[], Any]:
    dataset = importlib.import_module("pyarrow.dataset")
    files = dataset.dataset([file.removeprefix("file://") for file in place.files])
    columns = None if question.columns is None else list(question.columns)
    filter_ = None
    if question.column is not None:
        field = dataset.field(question.column)
        filter_ = (field >= question.low) & (field < question.high)
    return lambda: files.to_table(columns=columns, filter=filter_)


def read_pyiceberg(place: Place, question: Question) -> Callable[[], Any]:
    sql = importlib.import_module("pyiceberg.catalog.sql")
    cat = sql.SqlCatalog("bench", uri=f"sqlite:///{place.folder}/catalog.db", warehouse=f"file://{place.folder}/wh")
    table = cat.load_table("db.lineitem")
    options = {
        "selected_fields": ("*",) if question.columns is None else question.columns,
        "snapshot_id": place.snapshot,
        **({} if question.sql is None else {"row_filter": question.sql}),
    }
    return lambda: table.scan(**options).to_arrow()


def read_polars(place: Place, question: Question) -> Callable[[], Any]:
    os.environ["POLARS_ICEBERG_PLANNER"] = "pyiceberg"  # which it takes anyhow, with a warning
    polars = importlib.import_module("polars")

    def read() -> Any:
        if place.snapshot is None:
            rows = polars.scan_parquet(place.files)
        else:
            rows = polars.scan_iceberg(place.metadata, snapshot_id=place.snapshot)
        if question.column is not None:
            column = polars.col(question.column)
            rows = rows.filter((column >= question.low) & (column < question.high))
        return (rows if question.columns is None else rows.select(question.columns)).collect()

    return read


READERS = {"icefloe": read_icefloe, "pyarrow": read_pyarrow, "pyiceberg": read_pyiceberg, "polars": read_polars}


def sample(read: Callable[[], Any]) -> dict[str, float]:
    before = Clock.now()
    rows = read()
    found = before.until(Clock.now())
    return {**{key: round(value, 1) for key, value in found.items()}, "peak_mb": round(peak_mb(), 1), "rows": len(rows)}


def main(contender: str, folder: str, question: str, deleted: str) -> None:
    told = json.loads((Path(folder) / "table.json").read_text(encoding="utf-8"))
    snapshot = None if deleted == "" else told["heads"][deleted]
    place = Place(folder=Path(folder), metadata=told["metadata"], files=told["files"], snapshot=snapshot)
    read = READERS[contender](place, QUESTIONS[question])
    print("[]", flush=True)  # ready
    for line in sys.stdin:
        print(json.dumps([sample(read) for _ in range(int(line))]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

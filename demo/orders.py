"""The demo: thirty commits of orders from Spark into a v2 and a V4 table, then an upsert, a delete and a look back.

Both tables get the same rows. At the end their contents are compared with each other and with what Spark computes
without any table, and the metadata of both is drawn. Exit code 1 if anything differs.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import icefloe
import show
from events import COLUMNS, PER_COMMIT, SCHEMA, changes, commit_of_events, expected
from icefloe import CommitResult, Table
from icefloe.inspect.outline import outline
from icefloe.io.select import file_io
from quiet_spark import start_spark

FOLDER = Path(__file__).resolve().parents[1] / ".cache" / "demo"
COMMITS = 30
DELETED = "status = 'cancelled' OR ts < TIMESTAMP '2026-11-02T00:00:00Z'"
# A root may hold a thousand files before it moves them to leaves; this demo has sixty and wants leaves.
ROOT_MAX_DATA_FILES = 16


@dataclass
class Sides:
    """The two tables and what was written to each."""

    v2: Table
    v4: Table
    log: dict[str, tuple[show.Written, show.Written]] = field(default_factory=dict)
    points: dict[str, tuple[int | None, int | None]] = field(default_factory=dict)  # snapshot ids after a step

    def step(self, name: str, v2: CommitResult, v4: CommitResult) -> None:
        """Note a step that was done on both tables."""
        self.log[name] = (_written(self.v2, v2), _written(self.v4, v4))
        self.points[name] = (v2.snapshot_id, v4.snapshot_id)


def main() -> int:
    started = time.monotonic()
    screen = show.console()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    screen.rule("[bold]icefloe[/bold]: the same orders in a v2 table and a V4 table")
    screen.print(f"warehouse, SQLite catalog and Spark's log: {_shown(FOLDER)}\n", style="dim")
    with screen.status("starting Spark"):
        spark = start_spark(FOLDER)
    try:
        sides = make_tables()
        commit_everything(spark, sides, screen)
        ok = compare(spark, sides, screen)
        draw(sides, screen)
        screen.print(show.written(_summary(sides.log)))
    finally:
        spark.stop()
    verdict = "[green]both tables hold the same rows[/green]" if ok else "[bold red]the tables differ[/bold red]"
    screen.print(f"{verdict}; {time.monotonic() - started:.0f} s")
    return 0 if ok else 1


def make_tables() -> Sides:
    """One table of each version in one catalog, partitioned by day."""
    cat = icefloe.catalog("demo", uri=f"sqlite:///{FOLDER}/catalog.db", warehouse=f"file://{FOLDER}/warehouse")
    properties = {4: {"commit.root.max-data-files": str(ROOT_MAX_DATA_FILES)}}
    v2, v4 = (
        cat.create_table(
            f"shop.orders_v{version}",
            schema=SCHEMA,
            partition_by=["day(ts)"],
            format_version=version,
            properties=properties.get(version),
        )
        for version in (2, 4)
    )
    return Sides(v2, v4)


def commit_everything(spark: SparkSession, sides: Sides, screen: Console) -> None:
    """Thirty appends, an upsert and a delete, each on both tables."""
    columns = (TextColumn("{task.description:<36}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen) as progress:
        bar = progress.add_task("append", total=COMMITS + 2)
        for number in range(1, COMMITS + 1):
            progress.update(bar, description=f"append {PER_COMMIT:,} orders, commit {number}")
            rows = commit_of_events(spark, number)
            sides.step(f"append {number}", sides.v2.append(rows), sides.v4.append(rows))
            progress.advance(bar)
        progress.update(bar, description="upsert 1,000 known and 500 new")
        rows = changes(spark, COMMITS)
        sides.step("upsert", sides.v2.upsert(rows, on=["order_id"]), sides.v4.upsert(rows, on=["order_id"]))
        progress.advance(bar)
        progress.update(bar, description="delete on Spark")
        sides.step("delete", sides.v2.delete(DELETED, spark=spark), sides.v4.delete(DELETED, spark=spark))
        progress.advance(bar)
        progress.update(bar, description="32 commits on each table")
    screen.print()


def compare(spark: SparkSession, sides: Sides, screen: Console) -> bool:
    """Show rows and counts; whether both tables are what they must be, now and at points of their history."""
    right = expected(spark, COMMITS, DELETED)
    v2, v4 = sides.v2.scan().to_spark(spark), sides.v4.scan().to_spark(spark)
    sample = v4.where("customer_id = 7").orderBy("order_id", ascending=False).select(*COLUMNS).limit(5).collect()
    screen.print(show.rows("The last orders of customer 7, from the V4 table", COLUMNS, sample))
    appended = {f"append {n}": n * PER_COMMIT for n in (1, 10, 20, 30)}
    known = {**appended, "upsert": COMMITS * PER_COMMIT + 500, "delete": right.count()}
    counted = [(name, rows, *_counts(sides, name)) for name, rows in known.items()]
    screen.print(show.counts(counted))
    apart = differences(v2, v4) + differences(v4, right)
    screen.print(f"rows in one but not in the other (v2, V4, and Spark without a table): {apart}\n")
    return apart == 0 and all(rows == one == other for _, rows, one, other in counted)


def differences(one: DataFrame, other: DataFrame) -> int:
    """How many rows, duplicates counted, are on one side only."""
    one, other = one.select(*COLUMNS), other.select(*COLUMNS)
    return one.exceptAll(other).count() + other.exceptAll(one).count()


def draw(sides: Sides, screen: Console) -> None:
    """The metadata trees, abbreviated."""
    screen.print("[bold]The v2 table[/bold]: metadata.json, manifest list, manifests, files")
    screen.print(show.tree(outline(sides.v2.metadata_location, shown=2)))
    screen.print("\n[bold]The V4 table[/bold]: metadata.json, root, then leaves, files and deletion vectors")
    screen.print(
        f"(commit.root.max-data-files is {ROOT_MAX_DATA_FILES} here, not its default of 1000, so that files move to"
        " leaves and\nthe delete has to hide some of them with manifest deletion vectors)",
        style="dim",
    )
    screen.print(show.tree(outline(sides.v4.metadata_location, shown=2)))
    screen.print()


def _counts(sides: Sides, step: str) -> tuple[int, int]:
    v2, v4 = sides.points[step]
    return sides.v2.at(snapshot=v2).scan().count(), sides.v4.at(snapshot=v4).scan().count()


def _summary(log: Mapping[str, tuple[show.Written, show.Written]]) -> dict[str, tuple[show.Written, show.Written]]:
    chosen = {name: log[name] for name in ("append 1", "append 10", "append 20", "append 30", "upsert", "delete")}
    totals = reduce(add, (v2 for v2, _ in log.values())), reduce(add, (v4 for _, v4 in log.values()))
    return {**chosen, "total": totals}


def _written(table: Table, result: CommitResult) -> show.Written:
    location = table.metadata_location
    return show.Written.of(result, json_bytes=file_io(location).size(location))


def _shown(folder: Path) -> Path:
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


if __name__ == "__main__":
    sys.exit(main())

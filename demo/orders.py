"""The demo: thirty commits of orders by Spark SQL into a v2 and a V4 table, then MERGE, DELETE and time travel.

Both tables get the same rows. A stream copies the cancelled orders of the V4 table into a table of their own. At the
end the contents are compared with each other and with what Spark computes without any table, and the metadata of both
tables is drawn. Exit code 1 if anything differs.
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
from icefloe import Table
from icefloe.cli.verbs.contents import coloured_tree
from quiet_spark import start_spark

FOLDER = Path(__file__).resolve().parents[1] / ".cache" / "demo"
COMMITS = 30
DELETED = "status = 'cancelled' OR ts < TIMESTAMP '2026-11-02T00:00:00Z'"
# A root may hold a thousand files before it moves them to leaves; this demo has sixty and wants leaves.
ROOT_MAX_DATA_FILES = 16
CREATE = """
    CREATE TABLE {table} ({columns}) PARTITIONED BY (days(ts))
    TBLPROPERTIES ('format-version' = '{version}', 'commit.root.max-data-files' = '{root_files}')
"""
MERGE = """
    MERGE INTO {table} t USING changes s ON t.order_id = s.order_id
    WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
"""


@dataclass
class Sides:
    """The two tables and what was written to each."""

    v2: Table
    v4: Table
    log: dict[str, tuple[show.Written, show.Written]] = field(default_factory=dict)
    points: dict[str, tuple[int, int]] = field(default_factory=dict)  # snapshot ids after a step

    def step(self, spark: SparkSession, name: str, statement: str) -> None:
        """Run a statement on both tables, and note what it wrote."""
        written = []
        for table in (self.v2, self.v4):
            before = show.sizes(table)
            spark.sql(statement.format(table=f"demo.shop.orders_v{table.format_version}"))
            table.refresh()
            written.append(show.Written.since(before, table))
        self.log[name] = (written[0], written[1])
        self.points[name] = (self.v2.snapshots[-1].snapshot_id, self.v4.snapshots[-1].snapshot_id)


def main() -> int:
    started = time.monotonic()
    screen = show.console()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    screen.rule("[bold]icefloe[/bold]: the same orders in a v2 table and a V4 table, by Spark SQL")
    screen.print(f"warehouse, SQLite catalog and Spark's log: {_shown(FOLDER)}\n", style="dim")
    with screen.status("starting Spark"):
        spark = start_spark(FOLDER)
    try:
        sides = make_tables(spark)
        commit_everything(spark, sides, screen)
        ok = compare(spark, sides, screen)
        draw(sides, screen)
        screen.print(show.written(_summary(sides.log)))
    finally:
        spark.stop()
    verdict = "[green]both tables hold the same rows[/green]" if ok else "[bold red]the tables differ[/bold red]"
    screen.print(f"{verdict}; {time.monotonic() - started:.0f} s")
    return 0 if ok else 1


def make_tables(spark: SparkSession) -> Sides:
    """One table of each version in one catalog, partitioned by day."""
    cat = icefloe.catalog("demo", uri=f"sqlite:///{FOLDER}/catalog.db", warehouse=f"file://{FOLDER}/warehouse")
    icefloe.attach(spark, "demo", cat)
    spark.sql("CREATE NAMESPACE demo.shop")
    for version in (2, 4):
        table = f"demo.shop.orders_v{version}"
        spark.sql(CREATE.format(table=table, columns=SCHEMA, version=version, root_files=ROOT_MAX_DATA_FILES))
    return Sides(cat.load_table("shop.orders_v2"), cat.load_table("shop.orders_v4"))


def commit_everything(spark: SparkSession, sides: Sides, screen: Console) -> None:
    """Thirty INSERTs, a stream, a MERGE and a DELETE, on both tables."""
    columns = (TextColumn("{task.description:<36}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen) as progress:
        bar = progress.add_task("INSERT", total=COMMITS + 3)
        for number in range(1, COMMITS + 1):
            progress.update(bar, description=f"INSERT {PER_COMMIT:,} orders, commit {number}")
            commit_of_events(spark, number).createOrReplaceTempView("new_orders")
            sides.step(spark, f"insert {number}", "INSERT INTO {table} SELECT * FROM new_orders")
            progress.advance(bar)
        progress.update(bar, description="stream the cancelled orders")
        stream_cancelled(spark)
        progress.advance(bar)
        progress.update(bar, description="MERGE 1,000 known and 500 new")
        changes(spark, COMMITS).createOrReplaceTempView("changes")
        spark.sql("CALL demo.system.create_tag('shop.orders_v4', 'before_merge')")
        sides.step(spark, "merge", MERGE)
        progress.advance(bar)
        progress.update(bar, description="DELETE")
        sides.step(spark, "delete", f"DELETE FROM {{table}} WHERE {DELETED}")
        progress.advance(bar)
        progress.update(bar, description="32 commits on each table")
    screen.print()


def stream_cancelled(spark: SparkSession) -> None:
    """Copy the cancelled orders of the V4 table to a table of their own, by a stream that ends with the last commit."""
    orders = spark.readStream.table("demo.shop.orders_v4").where("status = 'cancelled'")
    writer = orders.writeStream.trigger(availableNow=True).option("checkpointLocation", str(FOLDER / "checkpoint"))
    spark.sql(f"CREATE TABLE demo.shop.cancelled ({SCHEMA}) TBLPROPERTIES ('format-version' = '4')")
    writer.toTable("demo.shop.cancelled").awaitTermination()


def compare(spark: SparkSession, sides: Sides, screen: Console) -> bool:
    """Show rows and counts; whether the tables are what they must be, now and at points of their history."""
    right = expected(spark, COMMITS, DELETED)
    v2, v4 = spark.table("demo.shop.orders_v2"), spark.table("demo.shop.orders_v4")
    sample = v4.where("customer_id = 7").orderBy("order_id", ascending=False).select(*COLUMNS).limit(5).collect()
    screen.print(show.rows("The last orders of customer 7, from the V4 table", COLUMNS, sample))
    inserted = {f"insert {n}": n * PER_COMMIT for n in (1, 10, 20, 30)}
    known = {**inserted, "merge": COMMITS * PER_COMMIT + 500, "delete": right.count()}
    counted = [(name, rows, *_counts(spark, sides, name)) for name, rows in known.items()]
    screen.print(show.counts(counted))
    tagged = spark.sql("SELECT * FROM demo.shop.orders_v4 VERSION AS OF 'before_merge' WHERE status = 'cancelled'")
    streamed = spark.table("demo.shop.cancelled")
    apart = differences(v2, v4) + differences(v4, right) + differences(tagged, streamed)
    screen.print(f"the stream copied {streamed.count():,} cancelled orders")
    screen.print(f"rows in one but not in the other (v2, V4, Spark without a table, the stream): {apart}\n")
    return apart == 0 and all(rows == one == other for _, rows, one, other in counted)


def differences(one: DataFrame, other: DataFrame) -> int:
    """How many rows, duplicates counted, are on one side only."""
    one, other = one.select(*COLUMNS), other.select(*COLUMNS)
    return one.exceptAll(other).count() + other.exceptAll(one).count()


def draw(sides: Sides, screen: Console) -> None:
    """The metadata trees, abbreviated."""
    screen.print("[bold]The v2 table[/bold]: metadata.json, manifest list, manifests, files")
    screen.print(coloured_tree(sides.v2.at().outline(shown=2)))
    screen.print("\n[bold]The V4 table[/bold]: metadata.json, root, then leaves, files and deletion vectors")
    screen.print(
        f"(commit.root.max-data-files is {ROOT_MAX_DATA_FILES} here, not its default of 1000, so that files move to"
        " leaves and\nthe delete has to hide some of them with manifest deletion vectors)",
        style="dim",
    )
    screen.print(coloured_tree(sides.v4.at().outline(shown=2)))
    screen.print()


def _counts(spark: SparkSession, sides: Sides, step: str) -> tuple[int, int]:
    v2, v4 = (
        spark.sql(f"SELECT count(*) FROM demo.shop.orders_v{version} VERSION AS OF {snapshot}").first()
        for version, snapshot in zip((2, 4), sides.points[step], strict=True)
    )
    return (0 if v2 is None else v2[0]), (0 if v4 is None else v4[0])


def _summary(log: Mapping[str, tuple[show.Written, show.Written]]) -> dict[str, tuple[show.Written, show.Written]]:
    chosen = {name: log[name] for name in ("insert 1", "insert 10", "insert 20", "insert 30", "merge", "delete")}
    totals = reduce(add, (v2 for v2, _ in log.values())), reduce(add, (v4 for _, v4 in log.values()))
    return {**chosen, "total": totals}


def _shown(folder: Path) -> Path:
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


if __name__ == "__main__":
    sys.exit(main())

"""Bench ``spark``: writing, reading and changing about 12 million rows with one Spark, beside other table formats.

Every contender writes its tables itself. Contenders take turns run by run, in another order every time, after runs that
do not count. A change is undone after its run, so that every run changes the same state. Results are compared before
they are timed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lineitem import QUESTIONS, lineitem, totals
from measure import Sample, Work, check_same, in_turns, median, ratio, spread
from report import Table
from spark_contenders import (
    KEYS,
    ApacheIceberg,
    Change,
    Contender,
    DeltaLake,
    Icefloe,
    Layout,
    Mode,
    PlainParquet,
    changed_rows,
)
from spark_jobs import JobTimes
from spark_session import start

TITLE = "spark: writing, reading and changing rows with Spark"
OWN, JAVA = Icefloe.name, ApacheIceberg.name
NO_DELETES, VECTORS, POSITIONS, EQUALITY = "no deletes", "1 % vectors", "1 % position deletes", "1 % equality deletes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much to do: rows, files of the source, runs of each kind of work that count, and runs before those.

    A kind of work with 0 runs is left out, and its last samples are kept; ``rewrites`` are changes by copy-on-write.
    """

    rows: int = 12_000_000
    files: int = 8
    writes: int = 5
    reads: int = 5
    changes: int = 5
    rewrites: int = 5
    warm_up: int = 1


ASKED: dict[str, Callable[[DataFrame], object]] = {
    **QUESTIONS,
    "TPC-H 1": lambda rows: _tpch_1(rows).collect(),
    "TPC-H 6": lambda rows: _tpch_6(rows).collect(),
}


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Write, read and change; samples by kind of work, what was done, and contender."""
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        spark = start(Path(folder), extended=True)
        try:
            bench = _Bench(spark, Path(folder), sizes, tell)
            samples = {
                "write": bench.writes() if sizes.writes > 0 else {},
                "read": bench.reads() if sizes.reads > 0 else {},
                "change": bench.changes(),
            }
        finally:
            spark.stop()
    return {"sizes": asdict(sizes), "versions": bench.versions, "samples": samples}


def with_earlier(result: dict[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """The result with the samples of an earlier run on as many rows, for work that this run left out."""
    if earlier["sizes"]["rows"] != result["sizes"]["rows"]:
        return result
    kept = earlier["samples"]
    return {**result, "samples": {kind: {**kept[kind], **samples} for kind, samples in result["samples"].items()}}


class _Bench:
    def __init__(self, spark: SparkSession, folder: Path, sizes: Sizes, tell: Callable[[str], None]) -> None:
        self._spark, self._folder, self._sizes, self._tell = spark, folder, sizes, tell
        self._jvm = spark.sparkContext._gateway.proc.pid
        self._jobs = JobTimes(spark)
        self._plain = PlainParquet(spark, folder / "plain")
        self._own = Icefloe(spark, folder)
        self._java = ApacheIceberg(spark)
        self._delta = DeltaLake(spark, folder / "delta")
        tell(f"spark: making {sizes.rows:,} rows")
        self._plain.write(lineitem(spark, sizes.rows, sizes.files), "t", Layout.PLAIN)
        self._rows = self._plain.read("t")
        changed_rows(self._rows).write.parquet(str(folder / "changed"))
        self._source = spark.read.parquet(str(folder / "changed"))
        jvm: Any = spark._jvm
        self.versions = {
            JAVA: str(jvm.org.apache.iceberg.IcebergBuild.version()),
            DeltaLake.name: str(getattr(getattr(jvm.io.delta, "package$"), "MODULE$").VERSION()),
        }

    def writes(self) -> dict[str, dict[str, list[Sample]]]:
        """Each layout as a new table, by every contender."""
        samples = {}
        for layout in Layout:
            self._tell(f"spark: writing {layout.value}")
            contenders: list[Contender] = [self._plain, self._own, self._java, self._delta]

            def once(one: Contender, layout: Layout = layout) -> Callable[[], object]:
                return lambda: one.write(self._rows, "written", layout)

            works = {one.name: (once(one), lambda one=one: one.drop("written")) for one in contenders}
            samples[layout.value] = self._measure(works, self._sizes.writes)
        return samples

    def reads(self) -> dict[str, dict[str, list[Sample]]]:
        """Every question of tables without and with deletes."""
        samples: dict[str, dict[str, list[Sample]]] = {}
        tables: list[Contender] = [self._own, self._java, self._delta]
        for one in tables:
            one.write(self._rows, "t", Layout.PLAIN)
        readers = {one.name: (lambda one=one: one.read("t")) for one in [self._plain, *tables]}
        self._ask(readers, NO_DELETES, samples)
        for one in tables:
            one.change("t", Change.DELETE, self._source)
        self._ask(readers, VECTORS, samples)
        older = Icefloe(self._spark, self._folder, version=2)
        for state, table in ((POSITIONS, "positions"), (EQUALITY, "keys")):
            older.write(self._rows, table, Layout.PLAIN)
            if state == POSITIONS:
                older.change(table, Change.DELETE, self._source)
            else:  # in this process, which both programs then read
                older.table(table).upsert(self._source.toArrow(), on=list(KEYS), deletes="equality")
            same = {
                self._plain.name: lambda: self._plain.read("t"),
                OWN: lambda table=table: older.read(table),
                JAVA: lambda table=table: self._spark.table(f"shared.db.{table}"),
            }
            self._ask(same, state, samples)
        return samples

    def changes(self) -> dict[str, dict[str, list[Sample]]]:
        """Every change of 1 % of the rows, in both modes."""
        samples = {}
        contenders: list[Contender] = [self._own, self._java, self._delta]
        for mode, runs in ((Mode.MERGE_ON_READ, self._sizes.changes), (Mode.COPY_ON_WRITE, self._sizes.rewrites)):
            if runs == 0:
                continue
            name = mode.name.lower()
            for one in contenders:
                one.write(self._rows, name, Layout.PLAIN, mode)
            for change in Change:
                self._tell(f"spark: {change.value}, {mode.value}")
                self._check_change(contenders, name, change)
                self._jobs()

                def once(one: Contender, change: Change = change, name: str = name) -> Callable[[], object]:
                    return lambda: one.change(name, change, self._source)

                works = {
                    one.name: (once(one), lambda one=one, name=name: self._undone(one, name)) for one in contenders
                }
                samples[f"{change.value}, {mode.value}"] = self._measure(works, runs)
            for one in contenders:
                one.drop(name)
        return samples

    def _undone(self, one: Contender, table: str) -> Sample:
        """Undo a change; returns the times of its jobs."""
        times = self._jobs()
        one.undo(table)
        self._jobs()
        return times

    def _check_change(self, contenders: Sequence[Contender], table: str, change: Change) -> None:
        results = {}
        for one in contenders:
            one.change(table, change, self._source)
            results[one.name] = totals(one.read(table)).collect()
            one.undo(table)
        check_same(results, f"{change.value} of {table}")

    def _ask(
        self, readers: Mapping[str, Callable[[], DataFrame]], state: str, samples: dict[str, dict[str, list[Sample]]]
    ) -> None:
        self._tell(f"spark: reading, {state}")
        results = {name: totals(read()).collect() for name, read in readers.items() if name != self._plain.name}
        check_same(results, state)
        self._jobs()
        for question, ask in ASKED.items():
            works = {name: (lambda read=read, ask=ask: ask(read()), self._jobs) for name, read in readers.items()}
            samples[f"{question}, {state}"] = self._measure(works, self._sizes.reads)

    def _measure(self, works: Mapping[str, Work], runs: int) -> dict[str, list[Sample]]:
        """Samples by contender of work that is undone, not timed, after every run."""
        return in_turns(works, runs, warm_up=self._sizes.warm_up, process=self._jvm)


def _tpch_1(rows: DataFrame) -> DataFrame:
    price = F.col("l_extendedprice") * (1 - F.col("l_discount"))
    return (
        rows.where("l_shipdate <= date '1998-09-02'")
        .groupBy("l_returnflag", "l_linestatus")
        .agg(
            F.sum("l_quantity"),
            F.sum("l_extendedprice"),
            F.sum(price),
            F.sum(price * (1 + F.col("l_tax"))),
            F.avg("l_quantity"),
            F.avg("l_extendedprice"),
            F.avg("l_discount"),
            F.count("*"),
        )
        .orderBy("l_returnflag", "l_linestatus")
    )


def _tpch_6(rows: DataFrame) -> DataFrame:
    return rows.where(
        "l_shipdate >= date '1994-01-01' AND l_shipdate < date '1995-01-01'"
        " AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24"
    ).agg(F.sum(F.col("l_extendedprice") * F.col("l_discount")))


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Times by kind of work, and the ratios of time to those of the other programs."""
    sizes = result["sizes"]
    what = f"{sizes['rows']:,} rows of 16 columns; median, least and greatest"
    names = {"write": "Writing", "read": "Reading", "change": "Changing 1 %"}
    shown = []
    for kind, samples in result["samples"].items():
        if len(samples) == 0:
            continue
        contenders = list(dict.fromkeys(name for work in samples.values() for name in work))
        rows = [[work, *(_time(found.get(name)) for name in contenders)] for work, found in samples.items()]
        shown.append(Table(title=f"{names[kind]}: wall ms, {what}", columns=("", *contenders), rows=rows))
        shown.append(_ratios(samples, contenders, names[kind], result["versions"]))
        shown += _profile(samples, names[kind])
    return shown


def _profile(samples: Mapping[str, Mapping[str, list[Sample]]], kind: str) -> list[Table]:
    """Where the time goes, for both implementations of the format."""
    profiled = {work: found for work, found in samples.items() if "jobs_ms" in found[OWN][0]}
    if len(profiled) == 0:
        return []
    parts = ("jobs_ms", "tasks_cpu_ms")
    rows = []
    for work, found in profiled.items():
        own, java = found[OWN], found[JAVA]
        driver = [f"{median([_driver(one) for one in each], 'driver_ms'):,.0f}" for each in (own, java)]
        rows.append([work, *driver, *(f"{median(each, part):,.0f}" for part in parts for each in (own, java))])
    columns = ("", *(f"{what}, {name}" for what in ("driver", "jobs", "CPU of tasks") for name in (OWN, JAVA)))
    note = (
        "Medians. Jobs are the wall time in which a Spark job ran. The driver's part is the rest: it opens the table,"
        " plans files, lets Spark analyse, optimize and compile the query, and commits."
    )
    return [Table(title=f"{kind}: where the time goes, in ms", columns=columns, rows=rows, note=note)]


def _driver(sample: Sample) -> Sample:
    return {"driver_ms": sample["wall_ms"] - sample["jobs_ms"]}


def _time(samples: list[Sample] | None) -> str:
    return "-" if samples is None else spread(samples, "wall_ms")


def _ratios(samples: Mapping[str, Any], contenders: Sequence[str], kind: str, versions: Mapping[str, str]) -> Table:
    others = [name for name in contenders if name != OWN]
    rows = []
    for work, found in samples.items():
        own = {key: median(found[OWN], key) for key in ("wall_ms", "cpu_ms")}
        cells = [_ratio(own["wall_ms"], found.get(name), "wall_ms") for name in others]
        rows.append([work, *cells, _ratio(own["cpu_ms"], found.get(JAVA), "cpu_ms")])
    columns = ("", *others, f"{JAVA}, CPU")
    note = (
        f"Apache Iceberg {versions[JAVA]} with tables of version 3, icefloe of version 4, Delta Lake"
        f" {versions[DeltaLake.name]} with deletion vectors. Tables with position or equality deletes are of version 2,"
        " written by icefloe and read by both. CPU includes the JVM and the Python driver."
    )
    return Table(
        title=f"{kind}: time of icefloe as a multiple of theirs, below 1 is faster",
        columns=columns,
        rows=rows,
        note=note,
    )


def _ratio(own: float, samples: list[Sample] | None, key: str) -> str:
    return "-" if samples is None else ratio(own, median(samples, key))

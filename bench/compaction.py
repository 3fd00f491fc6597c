"""Bench ``compaction``: about 12 million rows in many small files, rewritten with one Spark, beside Apache Iceberg.

Both programs have a table of their own with the same rows in as many files. They take turns run by run, in another
order every time, after runs that do not count. A compaction is undone after its run. Rows are compared before the runs.
Bin packing is also compared with Spark alone, which reads the files and writes their rows to files of the target size.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lineitem import lineitem, totals
from measure import Sample, check_same, in_turns, median, ratio, spread
from report import Table
from spark_contenders import ApacheIceberg, Change, Icefloe, Layout, changed_rows
from spark_jobs import JobTimes
from spark_session import start

TITLE = "compaction: small files rewritten with Spark"
OWN, JAVA, SPARK = Icefloe.name, ApacheIceberg.name, "Spark alone"
_TABLE = "small"
_SORT = "l_shipdate ASC NULLS FIRST"
_Z_COLUMNS = ("l_shipdate", "l_partkey")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much to do: rows, small files that they are in, MiB of a new file, runs that count, and runs before those.

    ``sorted_runs`` are those of sorting and z-order. A kind of work with 0 runs is left out, and its last samples kept.
    """

    rows: int = 12_000_000
    files: int = 200
    target_mib: int = 128
    runs: int = 5
    sorted_runs: int = 3
    warm_up: int = 1


def run(sizes: Sizes, tell: Callable[[str], None]) -> dict[str, Any]:
    """Compact without deletes, with deletes, sorted and in z-order; samples by kind of work and program."""
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        spark = start(Path(folder), extended=True)
        try:
            bench = _Bench(spark, Path(folder), sizes, tell)
            samples = bench.samples()
            version = str(spark._jvm.org.apache.iceberg.IcebergBuild.version())  # type: ignore[union-attr]
        finally:
            spark.stop()
    return {"sizes": asdict(sizes), "versions": {JAVA: version}, "samples": samples, "files": bench.files}


def with_earlier(result: dict[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """The result with the samples of an earlier run on as many rows and files, for work that this run left out."""
    if any(earlier["sizes"][key] != result["sizes"][key] for key in ("rows", "files", "target_mib")):
        return result
    return {**result, **{key: {**earlier[key], **result[key]} for key in ("samples", "files")}}


class _Bench:
    def __init__(self, spark: SparkSession, folder: Path, sizes: Sizes, tell: Callable[[str], None]) -> None:
        self._spark, self._sizes, self._tell = spark, sizes, tell
        self._jvm = spark.sparkContext._gateway.proc.pid
        self._own, self._java, self._folder = Icefloe(spark, folder), ApacheIceberg(spark), folder
        self._jobs = JobTimes(spark)
        self.files: dict[str, dict[str, int]] = {}
        tell(f"compaction: making {sizes.rows:,} rows in {sizes.files} files")
        lineitem(spark, sizes.rows, sizes.files).write.parquet(str(folder / "source"))
        source = spark.read.parquet(str(folder / "source")).repartition(sizes.files)
        for one in (self._own, self._java):
            one.write(source, _TABLE, Layout.PLAIN)
        changed_rows(source).write.parquet(str(folder / "changed"))
        self._changed = spark.read.parquet(str(folder / "changed"))

    def samples(self) -> dict[str, dict[str, list[Sample]]]:
        """Every kind of compaction, the last ones on tables with deleted rows."""
        runs, sorted_runs = self._sizes.runs, self._sizes.sorted_runs
        self._check_small()
        found = {}
        if runs > 0:
            found["bin packing"] = self._measure("bin packing", "binpack", runs)
        if sorted_runs > 0:
            found["sorting"] = self._measure("sorting", "sort", sorted_runs)
            found["z-order"] = self._measure("z-order", "zorder", sorted_runs)
        if runs > 0:
            for one in (self._own, self._java):
                one.change(_TABLE, Change.DELETE, self._changed)
                one.mark(_TABLE)
            found["bin packing, 1 % deleted"] = self._measure("bin packing, 1 % deleted", "binpack", runs)
        return found

    def _check_small(self) -> None:
        counts = {OWN: self._count(OWN), JAVA: self._count(JAVA)}
        if set(counts.values()) != {self._sizes.files}:
            raise RuntimeError(f"the tables have {counts} files, not {self._sizes.files}")

    def _count(self, name: str) -> int:
        """The number of data files of a contender's table."""
        if name == OWN:
            return int(self._own.table(_TABLE).scan().plan().files)
        return int(self._spark.sql(f"SELECT count(*) FROM iceberg.db.{_TABLE}.data_files").collect()[0][0])

    def _measure(self, what: str, strategy: str, runs: int) -> dict[str, list[Sample]]:
        self._tell(f"compaction: {what}")
        works = {OWN: lambda: self._compact(strategy), JAVA: lambda: self._call(strategy)}
        undo = {OWN: lambda: self._own.undo(_TABLE), JAVA: lambda: self._java.undo(_TABLE)}
        results, self.files[what] = {}, {}
        for name, one in ((OWN, self._own), (JAVA, self._java)):
            works[name]()
            rows: DataFrame = one.read(_TABLE)
            results[name] = totals(rows).collect()
            self.files[what][name] = self._count(name)
            undo[name]()
        check_same(results, what)
        if what == "bin packing":
            files = self._own.table(_TABLE).inspect.data_files().column("file_path").to_pylist()
            works[SPARK] = lambda: self._copy(files)
            undo[SPARK] = lambda: shutil.rmtree(self._folder / "copy")
        self._jobs()
        turns = {name: (works[name], lambda name=name: self._profiled(undo[name])) for name in works}
        return in_turns(turns, runs, warm_up=self._sizes.warm_up, process=self._jvm)

    def _profiled(self, undo: Callable[[], object]) -> Sample:
        """Undo what was measured, and return how much of its time was spent in Spark jobs."""
        sample = self._jobs()
        undo()
        self._jobs()
        return sample

    def _copy(self, files: Sequence[str]) -> None:
        """Read all rows of files and write them to files of about the target size."""
        total = sum(Path(file.removeprefix("file://")).stat().st_size for file in files)
        count = math.ceil(total / (self._sizes.target_mib * 1024 * 1024))
        rows = self._spark.read.parquet(*files).coalesce(count)
        rows.write.option("compression", "zstd").parquet(str(self._folder / "copy"))

    @property
    def _options(self) -> dict[str, str]:
        return {"target-file-size-bytes": str(self._sizes.target_mib * 1024 * 1024), "rewrite-all": "true"}

    def _compact(self, strategy: str) -> None:
        table = self._own.table(_TABLE)
        plan = table.compact(
            strategy=strategy,
            sort_by=[_SORT] if strategy == "sort" else None,
            zorder_by=_Z_COLUMNS if strategy == "zorder" else None,
            options=self._options,
            spark=self._spark,
        )
        plan.execute()

    def _call(self, strategy: str) -> None:
        orders = {"sort": _SORT, "zorder": f"zorder({', '.join(_Z_COLUMNS)})"}
        order = f", strategy => 'sort', sort_order => '{orders[strategy]}'" if strategy in orders else ""
        options = ", ".join(f"'{name}', '{value}'" for name, value in self._options.items())
        self._spark.sql(
            f"CALL iceberg.system.rewrite_data_files(table => 'db.{_TABLE}'{order}, options => map({options}))"
        ).collect()


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Times of both programs, the ratio, and the number of files afterwards."""
    sizes, version = result["sizes"], result["versions"][JAVA]
    rows = []
    for work, found in result["samples"].items():
        own, java = found[OWN], found[JAVA]
        files = result["files"][work]
        rows.append(
            [
                work,
                spread(own, "wall_ms"),
                spread(java, "wall_ms"),
                ratio(median(own, "wall_ms"), median(java, "wall_ms")),
                ratio(median(own, "cpu_ms"), median(java, "cpu_ms")),
                f"{files[OWN]} / {files[JAVA]}",
            ]
        )
    what = f"{sizes['rows']:,} rows in {sizes['files']} files, new files of {sizes['target_mib']} MiB"
    return [
        Table(
            title=f"Compaction: wall ms, {what}; median, least and greatest",
            columns=("", OWN, JAVA, "ratio", "ratio of CPU", "files after"),
            rows=rows,
            note=f"Apache Iceberg {version} with rewrite_data_files on a table of version 3, icefloe of version 4.",
        ),
        *_profile(result["samples"]),
    ]


def _profile(samples: Mapping[str, Mapping[str, Sequence[Sample]]]) -> list[Table]:
    """Where the time goes: in Spark jobs, which read and write rows, or outside of them."""
    rows = []
    for work, found in samples.items():
        for name, measured in found.items():
            if "jobs_ms" in measured[0]:
                wall, jobs = median(measured, "wall_ms"), median(measured, "jobs_ms")
                cpu = median(measured, "tasks_cpu_ms")
                rows.append([f"{work}: {name}", f"{wall:,.0f}", f"{jobs:,.0f}", f"{wall - jobs:,.0f}", f"{cpu:,.0f}"])
    if len(rows) == 0:
        return []
    columns = ("", "wall ms", "ms in Spark jobs", "ms outside", "CPU ms of tasks")
    note = "Medians. Spark alone reads the same files and writes the rows to as many files, and commits nothing."
    return [Table(title="Compaction: where the time goes", columns=columns, rows=rows, note=note)]

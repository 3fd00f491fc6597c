"""Runs the short page of Spark SQL on several versions of Spark, for ``make versions``.

A version is installed into ``.cache/versions`` on first use, the newest one of its series, and is put before the Spark
of the environment on the path of Python; all other packages are those of the environment. Wheels are kept in
``.cache/wheels``. The arguments are series, such as 4.3.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
CACHE = REPO / ".cache"
PROGRAM = REPO / "tests" / "spark_sql" / "short_page.py"
MASTER = "local[2]"
SPARK = "pyspark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the program did on a version."""

    spark: str
    passed: str
    seconds: float

    @property
    def line(self) -> str:
        return f"{self.spark:10} {self.passed:>18} {self.seconds:9.1f}"


def installed(series: str) -> Path | None:
    """The folder with the newest Spark of a series, and nothing for the one of the environment."""
    if version(SPARK).startswith(f"{series}."):
        return None
    folder = CACHE / "versions" / series
    if not folder.exists():
        print(f"installing {SPARK} {series} into {folder} (once)", flush=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        # A folder beside the target, so that the last step is a rename: a version is there whole or not at all.
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".installing-") as part:
            pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
            target = ["--cache-dir", str(CACHE / "wheels"), "--target", f"{part}/{series}"]
            subprocess.run([*pip, "install", *target, f"{SPARK}=={series}.*"], check=True)
            os.replace(f"{part}/{series}", folder)
    return folder


def run_program(master: str, spark: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the program on a master, with the Spark of a folder or that of the environment."""
    folders = [*([] if spark is None else [spark]), REPO / "tests"]
    paths = [*map(str, folders), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path != "")}
    command = [sys.executable, str(PROGRAM), master]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def run(series: str) -> Outcome:
    """Run the program on the newest Spark of a series, and print what it prints."""
    start = time.monotonic()
    done = run_program(MASTER, installed(series))
    seconds = time.monotonic() - start
    print(done.stdout, end="", flush=True)
    if done.returncode != 0:
        print(done.stderr, flush=True)
        return Outcome(spark=series, passed="failed", seconds=seconds)
    report = json.loads(done.stdout.splitlines()[-1])
    if not report["spark"].startswith(f"{series}."):
        raise RuntimeError(f"the program ran on Spark {report['spark']} instead of {series}")
    return Outcome(spark=report["spark"], passed=str(report["statements"]), seconds=seconds)


def main(chosen: tuple[str, ...]) -> int:
    """Run the program on all versions, print a table, and return the status of this process."""
    outcomes = [run(series) for series in chosen]
    print(f"\n{'Spark':10} {'statements passed':>18} {'seconds':>9}")
    for outcome in outcomes:
        print(outcome.line)
    return int(any(outcome.passed == "failed" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(tuple(sys.argv[1:])))

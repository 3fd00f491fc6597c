"""Verbs of the command line with ``--spark``: the plans and results are those of this process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.cli.verb import ExitCode
from icefloe.engines.spark.read.file_sets import SparkFileSets
from support.command_line import CommandLine

FUTURE = "2100-01-01T00:00:00+00:00"


@pytest.fixture
def run(tmp_path: Path) -> CommandLine:
    return CommandLine(uri=f"sqlite:///{tmp_path}/cat.db", warehouse=f"file://{tmp_path}/wh")


@pytest.fixture
def many(run: CommandLine) -> icefloe.Table:
    """A table of four small files in four snapshots."""
    table = run.catalog().create_table("shop.many", schema="id bigint, note string", format_version=4)
    for number in range(4):
        table.append(pa.table({"id": [number], "note": [str(number)]}))
    return table


@pytest.mark.spark
def test_expire_on_spark_shows_the_plan_of_this_process_and_executes_it(run, many, spark, monkeypatch):
    calls, subtract = [], SparkFileSets.subtract

    def counted(*given, **more):
        calls.append(1)
        return subtract(*given, **more)

    monkeypatch.setattr(SparkFileSets, "subtract", counted)
    verb = ("expire", "shop.many", "--older-than", FUTURE)
    here = run(*verb, "-o", "json")
    assert calls == []
    there = run(*verb, "--spark", "-o", "json")
    assert len(calls) == 1
    assert (there.code, there.json) == (ExitCode.OK, here.json)
    assert run(*verb, "--spark").out == run(*verb).out
    done = run(*verb, "--spark", "--execute", "-o", "json").json
    assert (done["snapshots"], done["manifests"], done["problem"]) == (3, here.json["files"]["manifest"], None)
    assert many.refresh().scan().count() == 4


@pytest.mark.spark
def test_delete_on_spark_takes_conditions_of_spark_sql(run, many, spark):
    verb = ("delete", "shop.many", "pmod(id, 2) = 1", "--spark")
    assert run(*verb, "-o", "json").json["rows"] == 2
    assert run(*verb, "--execute", "-o", "json").json["rows_deleted"] == 2
    assert sorted(many.refresh().scan().to_arrow()["id"].to_pylist()) == [0, 2]


def test_without_pyspark_the_option_says_what_to_install(run, many):
    code = "import sys; sys.modules['pyspark'] = None; from icefloe.cli.entry import main; main()"
    options = ["--uri", run.uri, "--warehouse", run.warehouse]
    result = subprocess.run(
        [sys.executable, "-c", code, "expire", "shop.many", "--spark", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == ExitCode.ERROR
    assert "--spark needs pyspark, which is not installed: pip install 'icefloe[spark]'" in result.stderr

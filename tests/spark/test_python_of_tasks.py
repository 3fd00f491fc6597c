"""Which Python runs the tasks: with a local master this one, unless the user has named another."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

import icefloe
from icefloe.engines.spark.task_python import task_python

pytestmark = pytest.mark.spark

# Writes a table whose rows (with a list) need Python in the tasks, and one whose partitions (buckets) need none.
PROGRAM = """
import sys
import icefloe
from pyspark.sql import SparkSession

folder, settings = sys.argv[1], dict(text.split("=", 1) for text in sys.argv[2:])
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
builder = builder.config("spark.sql.warehouse.dir", folder + "/spark")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
python, before = spark.sparkContext.pythonExec, {row.key: row.value for row in spark.sql("SET").collect()}
lake = icefloe.catalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
for name, schema in (("db.lists", "id bigint, next array<bigint>"), ("db.buckets", "id bigint")):
    table = lake.create_table(name, schema=schema, partition_by=["bucket(2, id)"])
    rows = spark.sql("SELECT id, array(id) AS next FROM range(9)")
    table.append(rows if "next" in schema else rows.select("id"))
    assert table.scan().count() == 9
assert spark.sparkContext.pythonExec == python
assert {row.key: row.value for row in spark.sql("SET").collect()} == before
print("written")
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for the front of the PATH whose ``python3`` notes that it was called, and fails."""
    return script(tmp_path / "bin" / "python3", "exit 3").parent


def script(path: Path, end: str) -> Path:
    """A program that notes in a file beside it that it was called, and ends with a command."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\necho called >> "{path}.log"\n{end}\n')
    path.chmod(0o755)
    return path


def run(folder: Path, programs: Path, *settings: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    given |= {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(icefloe.__file__).parents[1]),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        **environment,
    }
    command = [sys.executable, "-c", PROGRAM, str(folder), *settings]
    return subprocess.run(command, env=given, capture_output=True, text=True, timeout=500, check=False)


def test_a_local_session_runs_tasks_with_this_python(tmp_path: Path, programs: Path) -> None:
    """The ``python3`` of the PATH ran them, whatever that was."""
    ended = run(tmp_path, programs)
    assert ended.stdout == "written\n", ended.stderr[-2000:]
    assert not (programs / "python3.log").exists()


def test_the_python_that_the_environment_names_runs_the_tasks(tmp_path: Path, programs: Path) -> None:
    named = script(tmp_path / "named", f'exec "{sys.executable}" "$@"')
    ended = run(tmp_path, programs, PYSPARK_PYTHON=str(named))
    assert ended.stdout == "written\n", ended.stderr[-2000:]
    assert (tmp_path / "named.log").exists()


def test_the_python_that_a_setting_names_runs_the_tasks(tmp_path: Path, programs: Path) -> None:
    named = script(tmp_path / "named", f'exec "{sys.executable}" "$@"')
    ended = run(tmp_path, programs, f"spark.pyspark.python={named}")
    assert ended.stdout == "written\n", ended.stderr[-2000:]
    assert (tmp_path / "named.log").exists()


@dataclass
class Session:
    """As much of a session as the choice of a Python looks at."""

    master: str = "local[2]"
    python: str = "python3"
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def sparkContext(self) -> Any:  # noqa: N802
        return SimpleNamespace(master=self.master, pythonExec=self.python)

    @property
    def conf(self) -> Any:
        return self.settings


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2, 3]", "local-cluster[1, 1, 1024]"])
def test_every_local_master_uses_this_python(monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert task_python(Session(master)) == sys.executable


def test_what_the_user_names_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert task_python(Session(python="/x/python")) == "/x/python"
    assert task_python(Session(settings={"spark.pyspark.python": "/y/python"})) == "/y/python"
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    assert task_python(Session()) == "python3"


def test_a_cluster_uses_its_own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of this one means nothing on other machines."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    for master in ("yarn", "spark://localhost:7077", "k8s://https://local:443"):
        assert task_python(Session(master)) == "python3"

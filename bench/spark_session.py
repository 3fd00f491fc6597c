"""A local Spark with Apache Iceberg's and Delta Lake's jars on its class path.

The catalog ``iceberg`` is for tables of Apache Iceberg. Its catalog ``shared`` opens the tables of icefloe's catalog in
the same folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

EXTENSIONS = (
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "io.delta.sql.DeltaSparkSessionExtension",
)
JARS = Path(__file__).resolve().parents[1] / "tests" / "support" / "jars.py"


def start(folder: Path, *, extended: bool = False) -> SparkSession:
    """A session with two cores; its warehouse, temporary files and messages are in the folder.

    With ``extended`` it also has the extensions of Apache Iceberg and Delta Lake, which their statements need.
    """
    builder = SparkSession.builder.master("local[2]").appName("icefloe bench")
    settings = {
        "spark.jars": ",".join(_jars()),
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        "spark.local.dir": str(folder / "spark-local"),
        "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
        "spark.sql.catalog.iceberg.warehouse": (folder / "iceberg").as_uri(),
        "spark.sql.catalog.shared": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.shared.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "spark.sql.catalog.shared.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "spark.sql.catalog.shared.jdbc.schema-version": "V1",
        "spark.sql.catalog.shared.warehouse": f"file://{folder}/icefloe",
        "spark.sql.catalog.shared.cache-enabled": "false",
    }
    if extended:
        settings["spark.sql.extensions"] = ",".join(EXTENSIONS)
        settings["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _stderr_to(folder / "spark.log"):  # the JVM inherits it, and keeps it
        return builder.getOrCreate()


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    kept = os.dup(2)
    with path.open("ab") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _jars() -> list[str]:
    """Paths of the jars that the interoperability tests use, fetched on first use."""
    done = subprocess.run([sys.executable, str(JARS)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the jars of the other programs could not be fetched:\n{done.stderr.strip()}")
    return done.stdout.split()

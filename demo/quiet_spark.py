"""A local Spark whose own messages go to a file, so that the screen belongs to the demo."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

# A minute of small queries: the first compiler of the JVM pays for itself, the second one does not. With one compiler,
# the JVM keeps so little room for compiled code that it is full before the demo ends.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


def start_spark(folder: Path) -> SparkSession:
    """A session with two cores; what the JVM prints is in ``spark.log`` of the folder."""
    settings = folder / "log4j2.properties"
    settings.write_text(LOG4J, encoding="utf-8")
    builder = SparkSession.builder.master("local[2]").appName("icefloe demo")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "ERROR",  # or the session lowers the level of the file to WARN
        "spark.driver.extraJavaOptions": f"{QUICK_START} -Dlog4j2.configurationFile={settings.as_uri()}",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        "spark.local.dir": str(folder / "spark-local"),
    }.items():
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

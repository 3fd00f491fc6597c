"""A Spark Connect server in a process of its own: ``python connect_server.py FOLDER`` prints its port.

It ends with its standard input, so that it never outlives the tests.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from pyspark.sql import SparkSession

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"  # as java_options.py says


def free_port() -> int:
    """A port that nothing uses now; Spark does not report the one that it chooses itself."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(folder: Path) -> None:
    port = free_port()
    session = (
        SparkSession.builder.master("local[1]")
        .appName("icefloe connect server")
        .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
        .config("spark.connect.grpc.binding.address", "127.0.0.1")
        .config("spark.connect.grpc.binding.port", str(port))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", QUICK_START)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    print(port, flush=True)
    sys.stdin.read()
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

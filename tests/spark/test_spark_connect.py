"""Sessions and DataFrames of Spark Connect, with a real server: refused by name, before anything is written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.servers import connect_server

PROGRAM = Path(__file__).with_name("connect_entries.py")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a Connect server that runs as long as the test."""
    server = subprocess.Popen(
        [sys.executable, connect_server.__file__, str(tmp_path / "server")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        port = server.stdout.readline().strip()
        assert port.isdigit(), "the Spark Connect server did not start"
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.stdin.close()
        server.wait(60)


def test_every_entry_point_refuses_spark_connect_and_says_what_works(address: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), address, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert len(report["raised"]) == 16
    for name, (kind, message) in report["raised"].items():
        assert kind == "UnsupportedError", f"{name}: {kind}: {message}"
        assert message.startswith("Spark Connect is not supported")
        assert "to_arrow()" in message
        assert "toArrow()" in message
    assert report["unchanged"] == [1, 2]
    assert report["rows"] == 5  # those of the DataFrame as Arrow are appended

"""The short page on a cluster of two executors on this machine."""

from __future__ import annotations

import json

import pytest

from support.spark_versions import run_program


@pytest.mark.timeout(1800)
def test_the_short_page_passes_on_a_cluster() -> None:
    done = run_program("local-cluster[2,1,1024]")
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    *lines, report = done.stdout.splitlines()
    for version in (2, 4):
        for part in ("page", "dataframes", "stream", "conflicts"):
            assert any(line.startswith(f"format version {version}: {part}: ") for line in lines), (version, part)
    assert json.loads(report)["executors"] == 2

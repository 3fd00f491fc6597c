"""Writes and merges on a cluster whose tasks fail, hang and kill their executors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("cluster_faults.py")
OPERATIONS = int(os.environ.get("ICEFLOE_CLUSTER_OPERATIONS", "200"))


@pytest.mark.timeout(3600)
def test_no_row_is_lost_or_doubled_and_no_file_is_left_when_tasks_fail_hang_and_kill_executors(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), str(tmp_path), str(OPERATIONS), "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["operations"] == OPERATIONS
    assert {"fail", "slow", "kill"} <= set(report["faults"])
    assert {"append", "upsert", "merge", "overwrite"} <= set(report["verbs"])

"""A session that runs many statements holds no more threads, sockets, classes and memory than at its beginning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("many_statements.py")
STATEMENTS = int(os.environ.get("ICEFLOE_STATEMENTS", "2000"))
POOLS = 1_500  # threads of the JVM: Spark keeps up to 1,024 for shuffles and 128 for broadcasts, and a minute each
GROWTH = {  # after two fifths of the statements; Spark alone, on plain Parquet tables, is behind each
    "threads": 1,  # 0
    "descriptors": 3,  # 0
    "memory_mb": 60,  # 0
    "java_descriptors": 10,  # 0
    "java_heap_mb": 80,  # 8
    "java_classes": 300,  # 2
    "code_cache_mb": 30,  # 3
}


@pytest.mark.timeout(3600)
def test_a_session_of_many_statements_does_not_grow(tmp_path: Path) -> None:
    """Scar: each query with a shuffle left a thread and a socket behind, until there were too many open files."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), "icefloe", str(STATEMENTS)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-4000:]
    samples = [json.loads(line) for line in done.stdout.splitlines()]
    assert samples[-1]["statements"] == STATEMENTS
    growth = {name: samples[-1][name] - samples[1][name] for name in GROWTH}
    assert {name: by for name, by in growth.items() if by > GROWTH[name]} == {}, samples
    assert samples[-1]["java_threads"] < POOLS
